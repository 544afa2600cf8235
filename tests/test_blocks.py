"""X in blocks of rows that are loaded one after the other: the same answers as in memory, from files too."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import cli
from partwise.data.blocks import Blocks
from partwise.data.observed import observed
from partwise.data.places import FAN_IN, InProcess, Source, Sums, added
from partwise.errors import IncompatibleError
from partwise.io.lazy import bytes_of
from partwise.problem import pose
from partwise.report.build import all_rows
from partwise.result.residual import residual_of
from partwise.structures import NonNegative

from .covering import EACH
from .peak import printed

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(3 * RNG.gamma(0.5, size=(90, 4)) @ RNG.gamma(0.5, size=(4, 20))).astype(float)
HEIGHTS = (20, 1, 30, 25, 14)
LOSSES = ["frobenius", "kl", 1.5, "itakura-saito", 2.5]


SEEN = np.random.default_rng(1).uniform(size=COUNTS.shape) < 0.8
WEIGHTS = np.random.default_rng(2).uniform(0, 3, size=COUNTS.shape) * SEEN
WEIGHTS[:20] = 2.0  # of the first block, all alike
OF_ROWS, OF_COLUMNS = (np.random.default_rng(3).uniform(0.5, 2, size=size) for size in COUNTS.shape)
OF_ROWS[[3, 40]] = 0.0
SAID = {
    "mask": {"mask": SEEN},
    "weights": {"weights": WEIGHTS},
    "mask and weights": {"mask": SEEN, "weights": np.abs(WEIGHTS - 1)},
    "sparse weights": {"weights": sparse.csr_array(WEIGHTS)},
    "rows": {"weights": (OF_ROWS, None)},
    "rows and columns": {"weights": (OF_ROWS, OF_COLUMNS)},
    "rows of what is seen": {"weights": (OF_ROWS, OF_COLUMNS), "mask": SEEN},
}


class Rows(Source):
    """A matrix in memory that is handed out in blocks, and fails to be read now and then."""

    def __init__(self, X, heights=HEIGHTS, failures=()):
        self.X, self.shape, self.dtype, self.heights = X, X.shape, X.dtype, tuple(heights)
        self.failures, self.reads = list(failures), []

    def read(self, start, stop, room=None):
        self.reads.append(start)
        if self.failures and self.failures[0] == len(self.reads):
            self.failures.pop(0)
            raise OSError("the disk is busy")
        return self.X[start:stop]


def objectives(result):
    return [record.objective for record in result.history]


def fitted(X, loss="frobenius", **settings):
    settings = {"init": "random", "solver": "streamed", "random_state": 0, "max_iter": 12, "tol": 0.0} | settings
    return pw.factorize(X, 4, loss=loss, **settings)


@EACH
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_are_one_matrix(loss, store):
    X = store(COUNTS + 0.1 * (loss == "itakura-saito"))
    assert objectives(fitted(Rows(X), loss)) == pytest.approx(objectives(fitted(X, loss)), rel=1e-12)


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_entries_may_be_missing_in_some_blocks(loss):
    X = COUNTS.copy()
    X[21:51][RNG.uniform(size=(30, 20)) < 0.3] = np.nan
    found = fitted(Rows(X), loss)
    assert objectives(found) == pytest.approx(objectives(fitted(X, loss)), rel=1e-12)
    assert found.n_missing == np.isnan(X).sum()
    with pytest.raises(ValueError, match=r"block 2 of X \(rows 21 to 50\) contains \d+ NaN entries"):
        fitted(Rows(X), missing=None)


@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", ["frobenius", "kl", 1.5])
def test_masks_and_weights_are_read_beside_the_blocks(loss, store, said):
    X = store(COUNTS)
    beside = {name: given if isinstance(given, tuple) else Rows(given) for name, given in said.items()}
    found, whole = fitted(Rows(X), loss, max_iter=6, **beside), fitted(X, loss, max_iter=6, **said)
    assert objectives(found) == pytest.approx(objectives(whole), rel=1e-9)
    assert (found.n_missing, found.weighted) == (whole.n_missing, whole.weighted)
    assert found.relative_error == pytest.approx(whole.relative_error, rel=1e-9)


def altered(A, value):
    A = A.astype(float)
    A[30, 3] = value
    return Rows(A)


@pytest.mark.parametrize(
    "said, sentence",
    [
        ({"weights": altered(WEIGHTS, -1)}, r"block 2 of weights \(rows 21 to 50\) must be >= 0"),
        ({"weights": altered(WEIGHTS, np.nan)}, r"block 2 of weights \(rows 21 to 50\) must be finite"),
        ({"mask": altered(SEEN, 0.5)}, r"block 2 of mask \(rows 21 to 50\) says which entries of X are observed"),
        ({"weights": Rows(WEIGHTS[:, :7])}, r"weights has shape \(90, 7\), and X has shape \(90, 20\)"),
        ({"weights": (OF_ROWS[:7], None)}, "weights in a tuple are one vector for each mode"),
        ({"weights": Rows(0 * WEIGHTS)}, "no entry of X is observed"),
    ],
)
def test_bad_masks_and_weights_are_named(said, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(Rows(COUNTS), **said)


@pytest.mark.parametrize("structures", [("sparse(2)", None), ("simplex('item')", None), (None, "unimodal & l2(0.1)")])
def test_structures(structures):
    found, whole = (fitted(X, structure_W=structures[0], structure_H=structures[1]) for X in (Rows(COUNTS), COUNTS))
    assert objectives(found) == pytest.approx(objectives(whole), rel=1e-9)
    assert found.certificate.feasible


@pytest.mark.slow_cases("holes-nonnegative")
@pytest.mark.parametrize("penalty", ["nonnegative & l1(0.3)", "nonnegative & l2(0.3)", "box(0, 0.5)"])
@pytest.mark.parametrize("seen, solver", [(1.0, "hals"), (0.8, "newton")], ids=["complete", "holes"])
def test_an_optimum_is_that_of_memory(penalty, seen, solver):
    """From one start, on both factors."""
    stated = {"structure_W": penalty, "structure_H": penalty, "max_iter": 2000, "tol": 1e-7}
    X = np.where(np.random.default_rng(1).uniform(size=COUNTS.shape) < seen, COUNTS, np.nan)
    found, whole = fitted(Rows(X), **stated), fitted(X, **{**stated, "solver": solver})
    assert found.status == whole.status == "converged"
    assert found.objective == pytest.approx(whole.objective, rel=1e-6)


@pytest.mark.parametrize("structure", ["fixed", "unimodal", "nonnegative & sparse(6, per='component')"])
def test_structures_of_h_where_entries_are_missing(structure):
    X = np.where(SEEN, COUNTS, np.nan)
    parts = np.full((4, 20), np.nan)
    parts[0] = np.linspace(0, 1, 20)
    stated = {"structure_H": pw.structures.Fixed(parts) if structure == "fixed" else structure}
    found, whole = (fitted(source, **stated) for source in (Rows(X), X))
    assert objectives(found) == pytest.approx(objectives(whole), rel=1e-9)
    assert found.certificate.feasible


@pytest.mark.parametrize("loss", ["kl", 0.5, 1.5, 2.5])
def test_divergences_converge_in_few_passes(loss):
    """Multiplicative updates of H are not there after ten times as many."""
    found = fitted(Rows(COUNTS + 0.1), loss, max_iter=150, tol=1e-5)
    assert found.status == "converged"
    objective = np.array(objectives(found))
    assert np.diff(objective).max() <= 1e-12 * objective[0]


def test_one_pass_an_iteration():
    source = Rows(COUNTS)
    fitted(source, max_iter=12)
    once = len(source.reads)
    fitted(source, max_iter=22)
    assert len(source.reads) - 2 * once == 10 * len(HEIGHTS)


def test_the_default_start_is_close_to_that_of_memory():
    found, whole = (fitted(X, init=None, max_iter=1) for X in (Rows(COUNTS), COUNTS))
    assert found.history[0].objective == pytest.approx(whole.history[0].objective, rel=1e-3)


def test_sums_are_added_alike_as_they_come():
    numbers = RNG.normal(size=FAN_IN**2 + 3)
    running = Sums()
    for number in numbers:
        running.add((number,))
    groups = [(number,) for number in numbers]
    while len(groups) > 1:
        groups = [added(groups[start : start + FAN_IN]) for start in range(0, len(groups), FAN_IN)]
    assert running.total() == groups[0]


def test_a_block_that_fails_once_is_read_again():
    assert objectives(fitted(Rows(COUNTS, failures=[3, 40]))) == objectives(fitted(Rows(COUNTS)))
    with pytest.raises(ValueError, match=r"block 1 of X \(rows 20 to 20\) could not be read: the disk is busy"):
        fitted(Rows(COUNTS, failures=[2, 3, 4, 5]))


class Odd(Rows):
    def __init__(self, odd):
        super().__init__(COUNTS)
        self.odd = odd

    def read(self, start, stop, room=None):
        return self.odd(self.X[start:stop]) if start == 21 else self.X[start:stop]


@pytest.mark.parametrize(
    "odd, sentence",
    [
        (lambda X: X[:, :7], r"block 2 of X \(rows 21 to 50\) has shape \(30, 7\), and \(30, 20\) was announced"),
        (sparse.csr_array, r"block 2 of X \(rows 21 to 50\) is sparse, and block 0 is dense"),
        (lambda X: X * np.inf, r"block 2 of X \(rows 21 to 50\) contains \d+ infinite entries"),
        (lambda X: X.astype(str), r"block 2 of X .* must be a matrix of numbers"),
        (lambda X: X - 1, r"Negative values .* The first of them are in block 2 of X \(rows 21 to 50\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_bad_block_is_named(odd, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(Odd(odd))


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"solver": "hals"}, "HALS needs all of X at once, and X is read in blocks of rows. These can: streamed"),
        ({"solver": "greedy"}, "needs all of X at once"),
        ({"solver": "auto", "loss": "l1"}, "got the loss L1.* Pass X in memory"),
        ({"solver": "auto", "structure_W": "unimodal"}, "treats all rows alike.* Pass X in memory"),
        ({"solver": "auto", "loss": "huber"}, "got the loss Huber.* Pass X in memory"),
        ({"solver": "auto", "symmetric": True}, "needs all of it at once"),
        ({"mask": np.ones(COUNTS.shape, bool)}, "mask must come in blocks as X does, opened with partwise.open"),
        ({"init": "spa"}, "needs all of X at once, and X is read in blocks of rows: use 'random'"),
    ],
)
def test_what_blocks_cannot_do_is_said(settings, sentence):
    with pytest.raises((IncompatibleError, ValueError), match=sentence):
        fitted(Rows(COUNTS), **settings)


@pytest.mark.parametrize("search", [pw.select_rank, pw.holdout, pw.NMF("auto").fit], ids=["rank", "holdout", "auto"])
def test_searches_need_all_of_x(search):
    with pytest.raises(IncompatibleError, match="X is read in blocks of rows, and this needs all of it at once"):
        search(Rows(COUNTS))


@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_resumed_runs_have_the_same_bits(tmp_path, loss):
    path = tmp_path / "run.checkpoint"
    cut = fitted(Rows(COUNTS), loss, checkpoint=(path, 0), callbacks=[lambda record, factors: record.n_iter == 7])
    assert (cut.status, cut.n_iter) == ("callback", 7)
    resumed, whole = fitted(Rows(COUNTS), loss, resume=path), fitted(Rows(COUNTS), loss)
    assert objectives(resumed) == objectives(whole)
    assert np.array_equal(resumed.W, whole.W)
    with pytest.raises(ValueError, match="the contents of X"):
        fitted(Rows(COUNTS[::-1]), loss, resume=path)


def test_measures_are_those_of_memory():
    problems = [pose(data, pw.losses.Frobenius(), [NonNegative()] * 2, 4) for data in (Blocks.of(place()), whole())]
    factors = tuple(RNG.uniform(size=(dim, 4)) for dim in COUNTS.shape)
    (fit, left), expected = problems[0].measure(factors), problems[1].measure(factors)
    assert (fit, left) == pytest.approx(expected, rel=1e-12)
    assert problems[0].data.summary[:4] == problems[1].data.summary[:4]
    for mode in range(2):
        assert np.allclose(problems[0].data.row_sums(mode, 1.0), problems[1].data.row_sums(mode, 1.0))
        assert np.allclose(problems[0].data.cross(factors, mode), problems[1].data.cross(factors, mode))


def place():
    return InProcess(Rows(COUNTS), HEIGHTS)


def whole():
    return pw.data.as_data(COUNTS)


def test_estimators_take_blocks():
    model = pw.NMF(4, random_state=0, max_iter=20).fit(Rows(COUNTS))
    assert np.allclose(model.transform(Rows(COUNTS)), model.transform(COUNTS), rtol=1e-6, atol=1e-9)
    assert np.allclose(model.result_.transform(Rows(COUNTS)), model.result_.transform(COUNTS), rtol=1e-6, atol=1e-9)
    bound = model.result_.certify(Rows(COUNTS))
    assert bound.rigorous
    assert bound.bound == pytest.approx(model.result_.certify(COUNTS).bound, rel=1e-9)


def test_where_the_model_fails():
    result = fitted(COUNTS)
    given = [observed(X, weights=(OF_ROWS, None)) for X in (COUNTS, Rows(COUNTS))]
    whole, found = (residual_of(result, one) for one in given)
    for name in ("rows", "data", "model"):
        assert np.allclose(getattr(found, name), getattr(whole, name), equal_nan=True)
    for mode in range(2):
        assert np.allclose(found.losses[mode], whole.losses[mode])
    rows = np.array([3, 20, 50])
    assert np.array_equal(given[1].data.among_rows(rows, all_rows)[0], COUNTS[rows])


# -- files -----------------------------------------------------------------------------------------------


def write_npy(folder, X):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def write_hdf5(folder, X):
    h5py = pytest.importorskip("h5py", reason="reads .h5")
    with h5py.File(folder / "x.h5", "w") as file:
        file["X"] = X
    return folder / "x.h5"


def write_zarr(folder, X):
    zarr = pytest.importorskip("zarr", reason="reads .zarr")
    array = zarr.open_array(str(folder / "x.zarr"), mode="w", shape=X.shape, chunks=(16, 20), dtype=X.dtype)
    array[:] = X
    return folder / "x.zarr"


def write_h5ad(folder, X):
    """Of AnnData, sparse."""
    h5py = pytest.importorskip("h5py", reason="reads .h5ad")
    matrix = sparse.csr_array(X)
    with h5py.File(folder / "x.h5ad", "w") as file:
        group = file.create_group("X")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(matrix, name)
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", X.shape
        for name, size in zip(("obs", "var"), X.shape, strict=True):
            frame = file.create_group(name)
            frame.attrs["_index"] = "names"
            frame["names"] = [f"{name} {number}".encode() for number in range(size)]
    return folder / "x.h5ad"


@pytest.mark.parametrize("write", [write_npy, write_hdf5, write_zarr, write_h5ad])
def test_files(tmp_path, write):
    X = pw.open(write(tmp_path, COUNTS), memory="50KB")
    assert len(X.heights) > 3
    assert X.shape == COUNTS.shape
    assert objectives(fitted(X)) == pytest.approx(objectives(fitted(COUNTS)), rel=1e-12)
    assert "in a file: 90 x 20 of float64" in repr(X)
    if write is write_h5ad:
        assert fitted(X, max_iter=1).names[1][:2] == ("var 0", "var 1")


@pytest.mark.parametrize(
    "change, sentence",
    [
        (np.asfortranarray, "x.npy: it is stored by columns"),
        (lambda X: X[:, 0], r"x.npy: it holds an array of shape \(90,\)"),
        (lambda X: X.astype(complex), "not a matrix"),
    ],
)
def test_files_that_are_no_blocks_of_rows(tmp_path, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        pw.open(write_npy(tmp_path, change(COUNTS)))


def test_what_cannot_be_opened_is_said(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"x.csv: only .npy, .* files are read in blocks"):
        pw.open(tmp_path / "x.csv")
    assert [bytes_of(text) for text in ("2GB", "1.5 MiB", 1000)] == [2e9, 1.5 * 2**20, 1000]
    for text in ("2 apples", "", "-1GB", "0"):
        with pytest.raises(ValueError, match="memory must be a size such as"):
            bytes_of(text)


def test_the_command(tmp_path, capsys):
    path, out = write_npy(tmp_path, COUNTS), tmp_path / "out"
    arguments = ["fit", str(path), "--rank", "4", "--out", str(out), "--out-of-core", "--memory"]
    assert cli.main([*arguments, "2GB"]) == 0
    assert "opened 90 samples x 20 features in 1 block (" in capsys.readouterr().out
    assert np.load(out / "W.npy").shape == (90, 4)
    assert "<h3>Where the model fails</h3>" in (out / "report.html").read_text()
    np.save(tmp_path / "weights.npy", WEIGHTS)
    assert cli.main([*arguments, "2GB", "--force", "--weights", str(tmp_path / "weights.npy")]) == 0
    assert "of 1,800 observed" in (out / "report.html").read_text()
    capsys.readouterr()
    assert cli.main([*arguments, "1MB", "--force"]) == 2
    assert "rank 4 needs about 0.4 GB" in capsys.readouterr().err
    assert cli.main([*arguments, "2GB", "--force", "--transpose"]) == 2
    assert cli.main([argument for argument in arguments if argument != "--out-of-core"] + ["2GB", "--force"]) == 2
    assert "--memory goes with --out-of-core" in capsys.readouterr().err


WRITE = """
import sys
import numpy as np
rng = np.random.default_rng(0)
array = np.lib.format.open_memmap(sys.argv[1], "w+", np.float32, (100_000, 500))
parts = rng.gamma(0.5, size=(5, 500)).astype(np.float32)
for start in range(0, 100_000, 10_000):
    array[start : start + 10_000] = rng.gamma(0.5, size=(10_000, 5)).astype(np.float32) @ parts
"""
FIT = """
import sys
import numpy as np, partwise as pw
pw.factorize(np.ones((50, 500), np.float32), 2, solver="streamed", max_iter=2, tol=0)  # kernels are compiled now
before = peak()
pw.factorize(pw.open(sys.argv[1], memory="40MB"), 5, max_iter=2, tol=0)
print(peak() - before)
"""


@pytest.mark.slow
def test_memory_is_that_of_blocks_and_w(tmp_path):
    """X takes 200 MB."""
    arguments = [str(tmp_path / "x.npy")]
    subprocess.run([sys.executable, "-c", WRITE, *arguments], check=True)
    assert printed(FIT, *arguments) < 60e6 + 8 * 100_000 * 5 * 8


WITH_HOLES = """
import sys
import numpy as np, partwise as pw
rng = np.random.default_rng(0)
X = np.lib.format.open_memmap(sys.argv[1], "w+", np.float64, (20_000, 1000))
for rows in np.split(X, 20):
    rows[:] = np.where(rng.random(rows.shape) < 0.1, np.nan, rng.random(rows.shape))
"""
BOUNDED = """
import sys
import partwise as pw
pw.factorize(pw.open(sys.argv[1], memory="500MB"), 8, loss=sys.argv[2], init="random", max_iter=3, tol=0)
print(peak())
"""


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "kl"])
def test_memory_is_as_allowed_where_entries_are_missing(tmp_path, loss):
    path = str(tmp_path / "x.npy")
    subprocess.run([sys.executable, "-c", WITH_HOLES, path], check=True)
    assert printed(BOUNDED, path, loss) < 500e6


def test_nothing_may_count_in_a_block():
    X = COUNTS.copy()
    X[:20] = np.nan
    assert objectives(fitted(Rows(X))) == pytest.approx(objectives(fitted(X)), rel=1e-9)


def test_steps_of_newton_that_fail_are_not_repeated():
    """For beta > 2 curvature grows with the model, and a step may go far too far; H moves on all the same."""
    rng = np.random.default_rng(3)
    W, H = rng.gamma(0.3, size=(40, 4)) * 10 ** rng.uniform(-2, 2, size=(40, 1)), rng.gamma(0.3, size=(4, 12))
    W[rng.uniform(size=W.shape) < 0.5] = 0
    H[rng.uniform(size=H.shape) < 0.5] = 0
    X = W @ H + 0.3 * rng.uniform(size=(40, 12)) * (rng.uniform(size=(40, 12)) < 0.3)
    found = pw.factorize(X, 4, loss=2.5, solver="streamed", random_state=0, max_iter=800, tol=1e-6)
    further = pw.factorize(X, 4, loss=2.5, init=found, max_iter=400, tol=1e-6)
    assert found.objective < 1.2 * further.objective


def test_gram_matrices_beyond_memory_are_refused():
    X = COUNTS.copy()
    X[3, 4] = np.nan
    with pytest.raises(IncompatibleError, match=r"Gram matrix for each feature.*take fewer parts"):
        pw.factorize(Rows(X), 4000)
