"""Whether parts come again, and how that is told."""

import json
import signal
import warnings

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import structures as s
from partwise.cli import main
from partwise.data.observed import observed
from partwise.datasets import make_cp, make_parts
from partwise.errors import ArchiveError, IncompatibleError, UnknownNameError
from partwise.io.archive import read_archive, write_archive
from partwise.selection import connectivity
from partwise.selection.matching import clustered, compared, cosines, matched, silhouettes
from partwise.selection.resampling import RESAMPLES
from partwise.selection.setting import Setting
from partwise.selection.stability import Study

from .covering import EACH

PLANTED = make_parts(40, 30, 3, noise=0.1, random_state=0)
X = PLANTED.X
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(30 * make_parts(40, 30, 3, random_state=0).X).astype(float)
CUBE = make_cp((12, 10, 8), 3, noise=0.05, random_state=0).X
SIMILAR = PLANTED.W @ PLANTED.W.T
HOLES = np.where(RNG.uniform(size=X.shape) < 0.2, np.nan, X)
HIDDEN = np.ones(X.shape, bool)
HIDDEN[3] = False


@pytest.fixture(scope="module")
def study():
    return pw.stability(X, 3, n_runs=5, resample="rows")


def setting(X, symmetric=False, **counts):
    return Setting.of(X, "frobenius", (None, None, None), counts, {"symmetric": symmetric})


def drawn(name, setting, turn=0):
    """The data of a run, and which rows of X they have."""
    resample = RESAMPLES[name]
    return tuple(draw(setting, np.random.default_rng(0), turn) for draw in (resample.draw, resample.rows))


def as_array(data):
    """Entries of data and their weights, as arrays."""
    inner = getattr(data, "entries", data)
    full = np.zeros(data.shape)
    weights = np.full(data.shape, data.unlisted)
    values, counts = data.listed_pair()
    if inner.sparse:
        full.ravel()[inner.places()], weights.ravel()[inner.places()] = values, counts
        return full, weights
    back = np.argsort(inner.axes)
    shape = [data.shape[axis] for axis in inner.axes]
    return values.reshape(shape).transpose(back), np.asarray(counts).reshape(shape).transpose(back)


# -- data of some rows ---------------------------------------------------------------------------------

KINDS = {
    "dense": (X, {}),
    "fortran": (np.asfortranarray(X), {}),
    "sparse": (sparse.csr_array(COUNTS), {}),
    "holes": (HOLES, {}),
    "weights": (X, {"weights": RNG.uniform(size=X.shape)}),
    "ratings": (sparse.csr_array(COUNTS), {"missing": "zeros"}),
    "tensor": (CUBE, {}),
    "sparse tensor": (make_cp((12, 10, 8), 3, zeros=0.6, sparse=True, random_state=0).X, {}),
    "listed tensor": (make_cp((12, 10, 8), 3, zeros=0.6, sparse=True, random_state=0).X, {"missing": "zeros"}),
}


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_selected_with_what_they_count(kind, mode):
    data, counts = KINDS[kind]
    given, index = observed(data, **counts), np.array([5, 0, 5, 7])
    chosen = given.select(mode, index)
    assert type(chosen.data) is type(given.data)
    for whole, part in zip(as_array(given.data), as_array(chosen.data), strict=True):
        assert np.array_equal(part, whole.take(index, axis=mode))


def test_weights_of_rows_are_selected_with_them():
    rows, columns = RNG.uniform(size=40), RNG.uniform(size=30)
    given = observed(X, weights=(rows, columns))
    chosen = given.select(0, np.array([5, 0, 5]))
    assert np.array_equal(chosen.vectors[0], given.vectors[0][[5, 0, 5]])
    assert np.array_equal(chosen.vectors[1], given.vectors[1])


# -- resampling ----------------------------------------------------------------------------------------


def test_rows_are_drawn_with_replacement():
    given, rows = drawn("rows", setting(X))
    assert len(rows) == len(X)
    assert 20 < len(np.unique(rows)) < 32  # 1 - 1/e of 40 are 25
    assert np.array_equal(given.data.array, X[rows])


def test_halves_are_disjoint_and_everything():
    halves = [drawn("halves", setting(X), turn)[1] for turn in (0, 1)]
    assert np.array_equal(np.sort(np.concatenate(halves)), np.arange(40))
    assert [len(rows) for rows in halves] == [20, 20]


@pytest.mark.parametrize("name", ["rows", "halves"])
def test_rows_of_which_nothing_is_observed_are_not_drawn(name):
    assert 3 not in drawn(name, setting(X, mask=HIDDEN))[1]


@pytest.mark.parametrize("matrix", [COUNTS, sparse.csr_array(COUNTS)], ids=["dense", "sparse"])
def test_counts_are_drawn_around_those_given(matrix):
    given, rows = drawn("counts", setting(matrix))
    values, _ = as_array(given.data)
    assert given.data.sparse == sparse.issparse(matrix)
    assert np.array_equal(rows, np.arange(40))
    assert np.array_equal(values, np.rint(values))
    assert not values[COUNTS == 0].any()
    spread = (values - COUNTS)[COUNTS > 0] / np.sqrt(COUNTS[COUNTS > 0])
    assert 0.9 < np.mean(spread**2) < 1.1  # variance is mean; the standard error over some 1000 entries is 0.05


def test_noise_is_of_three_percent_and_keeps_zeros():
    values, _ = as_array(drawn("noise", setting(sparse.csr_array(COUNTS)))[0].data)
    ratio = values[COUNTS > 0] / COUNTS[COUNTS > 0]
    assert 0.97 <= ratio.min() < 0.971
    assert 1.029 < ratio.max() <= 1.03
    assert not values[COUNTS == 0].any()


@pytest.mark.parametrize("name", ["noise", "counts"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_symmetric_data_stay_symmetric(name, make):
    similar = np.rint(20 * SIMILAR)
    values, _ = as_array(drawn(name, setting(make(similar), symmetric=True))[0].data)
    assert np.array_equal(values, values.T)
    assert np.count_nonzero(values != similar) > 0.5 * np.count_nonzero(similar)


# -- matching ------------------------------------------------------------------------------------------


def unit(A):
    return A / np.linalg.norm(A, axis=0)


def test_the_same_parts_in_another_order():
    A = unit(RNG.uniform(size=(20, 4)))
    runs = [(A[:, RNG.permutation(4)] * RNG.choice([-1, 1], 4),) for _ in range(5)]
    assert np.allclose(matched((A,), runs), 1)
    orders, centre = clustered((A,), runs)
    assert np.allclose(centre[0], A)
    assert np.allclose(np.abs(runs[3][0][:, orders[3]]), A)
    assert np.allclose(silhouettes(runs, orders), 1, atol=1e-6)  # arccos near 1


def test_silhouettes_by_hand():
    """Two clusters of two parts in the plane, at 0 and 10, and 60 and 80 degrees."""
    angles = np.deg2rad([[0, 60], [10, 80]])
    runs = [(np.array([np.cos(a), np.sin(a)]),) for a in angles]
    first = np.mean([1 - 10 / 70, 1 - 10 / 60])
    second = np.mean([1 - 20 / 55, 1 - 20 / 75])
    assert np.allclose(silhouettes(runs, np.array([[0, 1], [0, 1]])), [first, second])


def test_zero_components_are_not_reproduced():
    A = np.eye(5)[:, :3]
    empty = A.copy()
    empty[:, 2] = 0
    assert np.array_equal(matched((A,), [(empty,), (A,)]), [[1, 1, 0], [1, 1, 1]])
    runs = [(A,), (empty,), (empty,)]
    orders, centre = clustered((A,), runs)
    found = silhouettes(runs, orders)
    assert np.allclose(found[:2], 1)
    assert 0 <= found[2] < 0.34  # one of three
    assert not np.isnan(centre[0]).any()


def test_runs_with_fewer_and_more_parts():
    A = np.eye(6)
    assert np.array_equal(matched((A[:, :3],), [(A[:, :2],), (A[:, 1:],)]), [[1, 1, 0], [0, 1, 1]])
    runs = [(A[:, :3],), (A[:, :2],), (A,)]
    orders, centre = clustered((A[:, :3],), runs)
    assert np.array_equal(orders, [[0, 1, 2], [0, 1, -1], [0, 1, 2]])
    assert np.allclose(centre[0], A[:, :3])
    # two of three have one other of their cluster at 0 and one at 90 degrees: 1 - 45 / 90; the third is zero
    assert np.allclose(silhouettes(runs, orders), [1, 1, (0.5 + 0.5 + 0) / 3])


def test_tensors_are_compared_by_all_modes_but_the_first():
    one, other = (pw.factorize(CUBE, 3, random_state=seed, init="random") for seed in (0, 1))
    assert len(compared(one)) == 2
    assert np.allclose(cosines(compared(one), compared(one)).diagonal(), 1)
    assert matched(compared(one), [compared(other)]).min() > 0.99


# -- what is found -------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(
    "matrix, resample, options, runs",
    [
        (X, None, {}, "starts"),
        (X, "halves", {}, "halves of the rows"),
        (COUNTS, "counts", {"loss": "kl"}, "sets of counts drawn anew"),
        (sparse.csr_array(COUNTS), "counts", {"loss": "kl"}, "sets of counts drawn anew"),
        (X, "noise", {}, "copies with noise of 3%"),
        (HOLES, "rows", {}, "samples of the rows"),
        (X, "rows", {"mask": HIDDEN}, "samples of the rows"),
        (CUBE, None, {}, "starts"),
        (X, lambda X, rng: X[rng.permutation(40)[:30]], {}, "resamples"),
        (X, "noise", {"solver": "greedy"}, "copies with noise of 3%"),
    ],
)
@pytest.mark.filterwarnings("ignore:nothing is observed")
def test_planted_parts_come_again(matrix, resample, options, runs):
    found = pw.stability(matrix, 3, n_runs=4, resample=resample, **options)
    assert str(found).startswith(f"all 3 parts came again in 4 of 4 {runs} (weakest cosine ")
    assert [part.reproduced for part in found.parts] == [3 if resample is None else 4] * 3
    assert all(0.9 <= part.least <= part.cosine <= 1 for part in found.parts)
    assert 0.5 < found.weakest <= found.mean <= 1
    assert np.isclose(sum(part.share for part in found.parts), 1)
    assert found.result.shape == matrix.shape
    assert found.consensus.shape == matrix.shape
    assert found.consensus.fit < 1.1 * found.result.fit


def test_too_many_parts_differ():
    found = pw.stability(X, 6, n_runs=6)
    weak = sum(n < 5 for n in found.found)
    assert weak >= 3
    assert f"{weak} of 6 parts differ from start to start: found again in {min(found.found)} to " in str(found)
    assert found.weakest < 0.5
    assert "The loss of the consensus parts is " in found.sentence


def test_the_reference_is_the_best_run():
    found = pw.stability(X, 4, n_runs=4, tol=1e-4)
    assert found.result.objective == min(found.objectives)
    assert found.n_compared == 3
    assert found.result.certificate.tol == 1e-4
    again = pw.Stability.of([pw.factorize(X, 4, init="random", random_state=seed, tol=1e-4) for seed in range(4)])
    assert again.result.objective == min(again.objectives)
    assert again.consensus is None
    assert again.without_consensus


def test_runs_that_cannot_be_compared_get_a_sentence():
    result = pw.factorize(X, 2)
    for runs in ([], [result], [result, pw.factorize(X[:, :20], 2)]):
        with pytest.raises(ValueError, match="runs must be two results or more"):
            pw.Stability.of(runs)


def test_consensus_parts_are_medians_held():
    runs = [pw.factorize(X, 3, init="random", random_state=seed, tol=1e-2) for seed in range(5)]
    found = pw.Stability.of(runs, setting=setting(X))
    parts = np.array([pw.metrics.aligned(found.result, run)[1].T for run in runs])
    medians = np.median(parts / np.linalg.norm(parts, axis=2, keepdims=True), axis=0)
    consensus = found.consensus.H / np.linalg.norm(found.consensus.H, axis=1, keepdims=True)
    assert np.allclose(consensus, medians / np.linalg.norm(medians, axis=1, keepdims=True), atol=1e-12)
    assert np.allclose(np.linalg.norm(found.consensus.H, axis=1), np.linalg.norm(found.result.H, axis=1))
    best = pw.factorize(X, 3, structure_H=s.Fixed(found.consensus.H), tol=1e-8)
    assert found.consensus.fit < 1.0001 * best.fit  # W is what is best for them


def test_consensus_parts_are_in_the_set():
    found = pw.stability(X, 3, n_runs=3, structure_H="box(0, 0.8)")
    assert found.result.H.max() > 0.79
    assert found.consensus.H.max() <= 0.8


@pytest.mark.slow
def test_the_same_bits_for_any_number_of_processes():
    one, two = (pw.stability(X, 3, n_runs=3, resample="rows", n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.parts == two.parts
    assert one.objectives == two.objectives
    assert np.array_equal(one.labels, two.labels)
    assert np.array_equal(one.consensus.W, two.consensus.W)


def test_the_seed_is_all_that_differs():
    one, two, other = (pw.stability(X, 3, n_runs=3, resample="rows", random_state=seed) for seed in (1, 1, 2))
    assert one.parts == two.parts
    assert np.array_equal(one.consensus.W, two.consensus.W)
    assert other.parts != one.parts


def test_more_runs_begin_with_the_same_ones():
    assert pw.stability(X, 3, n_runs=4).objectives[:2] == pw.stability(X, 3, n_runs=2).objectives


def test_units_do_not_matter():
    assert pw.stability(1024 * X, 3, n_runs=3).parts == pw.stability(X, 3, n_runs=3).parts


def test_symmetric_models_are_compared_by_their_factor():
    found = pw.stability(SIMILAR, 3, n_runs=3, symmetric=True, resample="noise")
    assert found.rank == 3
    assert found.consensus is None
    assert "one factor" in found.without_consensus


# -- the edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "matrix, options, message",
    [
        (X, {"n_runs": 1}, "n_runs must be a whole number >= 2"),
        (X, {"n_runs": 2.5}, "n_runs must be a whole number >= 2"),
        (X, {"rank": 0}, "rank must be a whole number >= 1"),
        (X, {"resample": "bootstrap"}, "resample must be None, 'rows', 'halves', 'counts', 'noise' or a function"),
        (X, {"resample": "counts"}, "redraws counts, and X has entries that are not counts"),
        (-COUNTS, {"resample": "counts", "structure_W": "free"}, "redraws counts"),
        (X[:1], {"resample": "halves"}, "needs two rows"),
        (SIMILAR, {"resample": "rows", "symmetric": True}, "rows and columns are the same"),
        (SIMILAR, {"symmetric": True, "structure_H": "box(0, 1)"}, "one factor"),
        (X, {"resample": "halves", "structure_W": s.UnitNorm()}, "the structure of W, UnitNorm.*, speaks of the rows"),
        (X, {"solver": "greedy"}, "Greedy begins with no parts, so that all runs would be the same"),
        (X, {"resample": lambda X, rng: X[:, :5]}, "only the number of rows may differ"),
    ],
)
def test_what_cannot_be_gets_a_sentence(matrix, options, message):
    with pytest.raises((ValueError, IncompatibleError, UnknownNameError), match=message):
        pw.stability(matrix, **{"rank": 2, "n_runs": 3, **options})


def test_words_that_differ_between_runs_are_refused():
    with pytest.raises(TypeError, match="n_init cannot be stated here"):
        pw.stability(X, 2, n_init=3)


EMPTY = COUNTS.copy()
EMPTY[5], EMPTY[:, 4] = 0, 0


@pytest.mark.parametrize(
    "matrix, rank, options, warning",
    [
        (X, 1, {}, None),
        (X, 1, {"resample": "halves"}, None),
        (X[:8, :6], 9, {}, "rank 9 is above min"),
        (np.ones((6, 5)), 2, {}, None),
        (np.zeros((6, 5)), 2, {}, None),
        (np.zeros((6, 5)), 1, {"resample": "rows"}, None),
        (X[:3], 2, {}, None),
        (X[:3], 2, {"resample": "rows"}, None),
        (X[:3], 2, {"resample": "halves"}, "too few to tell 2 parts apart"),
        (X[:1], 1, {}, None),
        (EMPTY, 2, {"loss": "kl", "resample": "rows"}, None),
        (EMPTY, 2, {"loss": "kl", "resample": "counts"}, None),
        (X, 2, {"mask": HIDDEN}, "nothing is observed in 1 row"),
        (X, 2, {"max_iter": 1}, "3 of 3 runs had not converged"),
    ],
)
def test_edges_are_told_and_do_not_crash(matrix, rank, options, warning):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = pw.stability(matrix, rank, n_runs=3, **options)
    said = [str(w.message) for w in caught]
    assert any(warning in text for text in said) if warning else not said
    assert found.sentence.endswith(".")
    assert found.rank == rank
    assert np.all(np.isfinite([tuple(part) for part in found.parts]))
    assert -1 <= found.cophenetic <= 1
    assert 0 <= found.dispersion <= 1


def test_nothing_but_zeros():
    found = pw.stability(np.zeros((6, 5)), 2, n_runs=3)
    assert str(found).startswith("both parts differ from start to start: found again in 0 of 3 starts. 2 parts of the")
    assert found.weakest == 0


def test_one_part():
    found = pw.stability(X, 1, n_runs=3)
    assert str(found) == "the only part came again in 3 of 3 starts (weakest cosine 1.00)."
    assert found.weakest == 1


# -- groups of samples ---------------------------------------------------------------------------------


def test_the_consensus_matrix_by_hand():
    labels = np.array([[0, 0, 1, -1], [1, 0, 0, -1]], np.int32)
    found = connectivity.consensus_matrix(labels)
    assert np.array_equal(found[:3, :3], [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]])
    assert np.all(found[3] == 0.5)


def test_samples_in_the_same_groups():
    labels = np.array([[0, 0, 1, 1], [1, 1, 0, 0]], np.int32)
    matrix = connectivity.consensus_matrix(labels)
    assert connectivity.cophenetic_correlation(matrix) == pytest.approx(1)
    order = connectivity.leaves(matrix)
    assert set(order[:2]) in ({0, 1}, {2, 3})


def test_many_samples_are_drawn_from():
    labels = RNG.integers(3, size=(2, 3000)).astype(np.int32)
    assert connectivity.consensus_matrix(labels).shape == (2000, 2000)


def test_samples_that_are_not_known():
    found = pw.stability(X, 2, n_runs=2, resample=lambda X, rng: X[:30])
    with pytest.raises(ValueError, match="which rows of X"):
        _ = found.cophenetic


def test_each_sample_is_with_its_part():
    blocks = np.kron(np.eye(3), np.ones((4, 5))) + 0.01 * RNG.uniform(size=(12, 15))
    found = pw.stability(blocks, 3, n_runs=3, resample="noise")
    assert found.dispersion == 1
    assert found.cophenetic == pytest.approx(1)
    assert np.array_equal(found.connectivity, np.kron(np.eye(3), np.ones((4, 4))))


# -- Ctrl-C and checkpoints ----------------------------------------------------------------------------


def interrupting(monkeypatch, number):
    """Ctrl-C in the run of this number."""
    run = Study.run

    def interrupted(study, n):
        if n == number:
            signal.raise_signal(signal.SIGINT)
        return run(study, n)

    monkeypatch.setattr(Study, "run", interrupted)


def test_ctrl_c_keeps_the_runs_done_and_a_checkpoint_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "runs.partwise"
    with monkeypatch.context() as patch:
        interrupting(patch, 3)
        found = pw.stability(X, 3, n_runs=5, resample="noise", checkpoint=path)
    assert found.n_runs == 3
    assert "in 3 of 3 copies" in found.sentence
    assert "Interrupted: 3 of 5 runs were done." in found.sentence
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    calls = []
    monkeypatch.setattr(Setting, "fit", lambda *a, fit=Setting.fit, **k: calls.append(1) or fit(*a, **k))
    again = pw.stability(X, 3, n_runs=5, resample="noise", resume=path)
    assert len(calls) == 3  # two runs, and the consensus
    whole = pw.stability(X, 3, n_runs=5, resample="noise")
    assert again.parts == whole.parts
    assert again.objectives == whole.objectives
    with pytest.raises(ArchiveError, match="resample is noise there and rows here"):
        pw.stability(X, 3, n_runs=5, resample="rows", resume=path)


def test_ctrl_c_before_two_runs_is_an_interrupt(monkeypatch):
    interrupting(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        pw.stability(X, 3, n_runs=5)


def test_a_solver_as_an_object_can_be_resumed(tmp_path):
    options = {"solver": pw.solvers.HALS(), "normalize": ("H", "l1"), "n_runs": 2}
    one = pw.stability(X, 3, checkpoint=tmp_path / "c", **options)
    assert pw.stability(X, 3, resume=tmp_path / "c", n_threads=1, **options).parts == one.parts


# -- files and pictures --------------------------------------------------------------------------------


def test_round_trip(study, tmp_path):
    same = pw.load(study.save(tmp_path / "s.partwise"))
    assert isinstance(same, pw.Stability)
    assert same.parts == study.parts
    assert str(same) == str(study)
    assert repr(same) == repr(study)
    assert same.table == study.table
    assert np.array_equal(same.labels, study.labels)
    assert np.array_equal(same.result.W, study.result.W)
    assert np.array_equal(same.consensus.W, study.consensus.W)
    assert same.cophenetic == study.cophenetic


@pytest.mark.parametrize(
    "field, value, what",
    [
        ("n_compared", 9, "number of runs"),
        ("n_asked", 1, "number of runs"),
        ("statuses", {"tuple": ["fine"] * 5}, "status"),
        ("objectives", {"tuple": [{"number": "nan"}] * 5}, "objectives"),
        ("parts", {"tuple": []}, "parts"),
        ("result", None, "which is not a"),
        ("labels", {"list": []}, "which is not a"),
        ("resample", 3, "which is not a"),
    ],
)
def test_files_that_cannot_be_are_refused(study, field, value, what, tmp_path):
    about, arrays = read_archive(study.save(tmp_path / "s.partwise"), "stability")
    about["stability"]["fields"][field] = value
    write_archive(tmp_path / "bad", "stability", {"stability": about["stability"]}, arrays)
    with pytest.raises(ArchiveError, match=f"bad holds no whole stability.*{what}"):
        pw.load(tmp_path / "bad")


def test_a_part_that_cannot_be_is_refused(study, tmp_path):
    about, arrays = read_archive(study.save(tmp_path / "s.partwise"), "stability")
    about["stability"]["fields"]["parts"]["tuple"][0]["fields"]["silhouette"] = {"number": "nan"}
    write_archive(tmp_path / "bad", "stability", {"stability": about["stability"]}, arrays)
    with pytest.raises(ArchiveError, match="what it says of the parts is not valid"):
        pw.load(tmp_path / "bad")
    write_archive(tmp_path / "other", "result", {"result": about["stability"]}, arrays)
    with pytest.raises(ArchiveError, match="it is something else"):
        pw.load(tmp_path / "other")


def test_pictures(study):
    (bars, _) = study.plot.parts().axes
    assert [bar.get_height() for bar in bars.patches] == [part.share for part in study.parts]
    image = study.plot.consensus().axes[0].images[0].get_array()
    assert image.shape == (40, 40)
    assert np.isclose(image.sum(), study.connectivity.sum())


# -- the command line ----------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys):
    np.save(tmp_path / "x.npy", COUNTS)
    words = ["stability", str(tmp_path / "x.npy"), "--rank", "3", "--runs", "3", "--loss", "kl", "--resample", "counts"]
    assert main([*words, "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert "all 3 parts came again in 3 of 3 sets of counts drawn anew" in out
    assert "part  share  found again" in out
    assert err == ""
    found = json.loads((tmp_path / "out" / "stability.json").read_text())
    assert [part["reproduced"] for part in found["parts"]] == [3, 3, 3]
    same = pw.load(tmp_path / "out" / "stability.partwise")
    assert same.sentence == found["sentence"]
    assert np.array_equal(np.load(tmp_path / "out" / "H.npy"), same.consensus.H)
    assert {"parts.png", "consensus.png"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentence"] == found["sentence"]
    assert pw.stability(COUNTS, 3, n_runs=3, loss="kl", resample="counts").sentence == found["sentence"]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--runs", "1"], "'1' is not a whole number >= 2"),
        (["--resample", "cells"], "invalid choice: 'cells'"),
        (["--resample", "counts"], "redraws counts"),
        (["--jobs", "0"], "n_jobs"),
    ],
)
def test_the_command_refuses_in_one_line(options, message, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["stability", str(tmp_path / "x.npy"), "--rank", "2", "--quiet", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_the_command_after_ctrl_c(tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", X)
    interrupting(monkeypatch, 2)
    assert main(["stability", str(tmp_path / "x.npy"), "--rank", "3"]) == 130
    assert "Interrupted: 2 of 20 runs were done." in capsys.readouterr().out
