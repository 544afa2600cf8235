"""The greedy solver: what each part gains, what is proved of it, and where it leads."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

import partwise as pw
from partwise import structures as s
from partwise.cli import main
from partwise.data import as_data
from partwise.datasets import local_archive, make_parts
from partwise.errors import IncompatibleError
from partwise.losses import KL, Frobenius
from partwise.oracles import matrices
from partwise.problem import pose
from partwise.problem.parts import part_norms, part_products
from partwise.problem.symmetric import pose_as
from partwise.solvers import Greedy
from partwise.solvers.weights import mixed, weighted

from .covering import EACH, PAIRS, seeds
from .trials.data import Tensor

X = make_parts(40, 30, 6, zeros=0.5, noise=0.05, random_state=0).X
SYMMETRIC = X @ X.T
SEEDS = range(8)


def fit(Y=X, rank=6, tol=1e-4, **options):
    """By the greedy solver with these options."""
    symmetric = options.pop("symmetric", False)
    return pw.factorize(Y, rank, solver=Greedy(**options), random_state=0, tol=tol, symmetric=symmetric)


def best_of(Y, rank, starts=20):
    return pw.factorize(Y, rank, init="random", n_init=starts, random_state=0, max_iter=3000).relative_error


def blocks(n, rank, rng):
    """Nonnegative and orthogonal."""
    A = np.zeros((n, rank))
    A[np.arange(n), rng.permutation(n) % rank] = rng.uniform(0.1, 1, size=n)
    return A


# -- what a run is ------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@PAIRS
@pytest.mark.parametrize("polish", ["each", "end", None])
@pytest.mark.parametrize("weights", ["diagonal", "full"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_every_step_gains_what_its_record_says(polish, weights, dtype, store):
    result = fit(store(X.astype(dtype)), polish=polish, weights=weights)
    losses = [0.5 * np.square(X).sum(), *(step.objective for step in result.path)]
    slack = 1e-9 if dtype == np.float64 else 1e-5
    assert [step.rank for step in result.path] == [1, 2, 3, 4, 5, 6]
    for before, after, step in zip(losses[:-1], losses[1:], result.path, strict=True):
        assert before - after >= step.gain - slack * losses[0]
        assert 0 < step.gain <= step.bound
        assert step.status == "closed"
        assert step.relative_error == pytest.approx(np.sqrt(after / losses[0]), rel=1e-3)
    objective = [record.objective for record in result.history]
    assert np.diff(objective).max() <= slack * losses[0]
    assert result.W.dtype == dtype


def test_with_polish_the_run_converges_and_without_it_says_that_it_did_not():
    assert fit().converged
    assert fit(polish="end").converged
    assert fit(polish=None).status == "stalled"


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_first_part_of_nonnegative_data_is_the_leading_singular_pair(symmetric):
    Y = SYMMETRIC if symmetric else X
    part = fit(Y, 1, symmetric=symmetric, polish=None).path[0]
    assert part.gain == pytest.approx(np.linalg.svd(Y, compute_uv=False)[0] ** 2 / 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_one_round_inequality(seed):
    """Of the slides: a step gains at least `(R - R*)^2 / (2 (sum of weights of the best)^2)`; here R* = 0."""
    made = make_parts(30, 25, 5, zeros=0.5, random_state=seed)
    atomic = (np.linalg.norm(made.W, axis=0) * np.linalg.norm(made.H, axis=1)).sum()
    losses = [0.5 * np.square(made.X).sum(), *(step.objective for step in fit(made.X, 8, polish=None).path)]
    for before, after in pairwise(losses):
        assert before - after >= before**2 / (2 * atomic**2) * (1 - 1e-3)  # parts are best to the gap


@pytest.mark.parametrize("seed", seeds(100))
def test_orthogonal_parts_are_found_by_the_pure_method(seed):
    rng = np.random.default_rng(seed)
    result = fit(blocks(30, 6, rng) @ blocks(30, 6, rng).T, 6, polish=None)
    assert result.relative_error <= 1e-6
    assert {step.status for step in result.path} == {"closed"}


@pytest.mark.parametrize("seed", seeds(60))
def test_orthogonal_parts_of_symmetric_data_are_found_by_the_pure_method(seed):
    A = blocks(60, 10, np.random.default_rng(seed))
    assert fit(A @ A.T, 10, polish=None, symmetric=True).relative_error <= 1e-6


# -- how good it is -----------------------------------------------------------------------------------------


def patches(seed):
    """8 x 8 pixels of faces, 60 of them."""
    path = local_archive("orl")
    if path is None:
        pytest.skip("orl.npz is not here (set PARTWISE_DATA to its folder)")
    with np.load(path) as file:
        faces = file["images" if "images" in file else "faces"] / 255
    places = np.random.default_rng(seed).integers(np.array(faces.shape) - [0, 8, 8], size=(60, 3))
    return np.array([faces[k, i : i + 8, j : j + 8].ravel() for k, i, j in places])


def documents(seed):
    """Words of 150 abstracts, the 120 that most of them have."""
    path = local_archive("classic3")
    if path is None:
        pytest.skip("classic3.npz is not here (set PARTWISE_DATA to its folder)")
    counts = sparse.csr_array(sparse.load_npz(path)).astype(float)
    Y = counts[np.random.default_rng(seed).choice(counts.shape[0], 150, replace=False)].toarray()
    Y = Y[:, np.argsort(-np.count_nonzero(Y, axis=0), kind="stable")[:120]]
    Y *= np.log((1 + len(Y)) / (1 + np.count_nonzero(Y, axis=0))) + 1
    Y = Y[Y.any(axis=1)]
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


DATA = {
    "dense": lambda seed: make_parts(60, 50, 8, zeros=0.3, random_state=seed).X,
    "sparse": lambda seed: make_parts(60, 50, 8, zeros=0.8, random_state=seed).X,
    "noisy": lambda seed: make_parts(60, 50, 8, zeros=0.5, noise=0.1, random_state=seed).X,
    "patches": patches,
    "documents": documents,
}
CASES = [
    pytest.param(kind, seed, marks=[] if seed == 0 and kind in ("dense", "sparse", "noisy") else pytest.mark.slow)
    for kind in DATA
    for seed in SEEDS
]


@pytest.mark.parametrize("kind, seed", CASES)
def test_every_step_is_proved(kind, seed):
    for step in fit(DATA[kind](seed), 8).path:
        assert step.status == "closed"
        assert np.sqrt(step.bound / step.gain) - 1 <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("kind, seed", CASES)
def test_with_polish_it_is_as_good_as_the_best_of_twenty_starts(kind, seed):
    exact = kind in ("dense", "sparse")
    Y, within = DATA[kind](seed), 1.04 if kind == "documents" else 1.01
    if exact:
        assert fit(Y, 8, tol=1e-7).relative_error <= 1e-5  # nothing is left to compare
    else:
        assert fit(Y, 8).relative_error <= within * best_of(Y, 8)


@pytest.mark.slow
def test_structureless_noise_may_stay_open_with_both_bounds_in_order():
    Y = np.random.default_rng(0).uniform(size=(30, 25))
    path = fit(Y, 4).path
    assert {step.status for step in path} == {"closed", "open"}
    assert all(step.gain <= step.bound for step in path)
    assert "open" in str(next(step for step in path if step.status == "open"))


# -- where it ends ------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("polish", ["each", None])
def test_it_stops_where_no_part_is_left(dtype, polish):
    rng = np.random.default_rng(0)
    Y = blocks(30, 3, rng).astype(dtype) @ blocks(20, 3, rng).astype(dtype).T
    result = fit(Y, 9, polish=polish)
    assert np.diff([step.objective for step in result.path]).max() < 0
    assert result.rank == 3
    assert result.W.shape == (30, 3)
    assert result.certificate.zero_components == ()


def test_it_stops_at_a_target_error():
    result = fit(rank=6, target_error=0.2)
    assert result.rank < 6
    assert result.path[-1].relative_error <= 0.2 < result.path[-2].relative_error


ODD = {
    "one entry": np.array([[3.0]]),
    "ones": np.ones((4, 4)),
    "identity": np.eye(4),
    "one nonzero": np.eye(5, 5, 0) * [0, 0, 7, 0, 0],
    "tiny beside large": np.diag([1, 1e-200]),
    "0/1": (np.add.outer(np.arange(6), np.arange(6)) % 3 == 0) * 1.0,
    "star": np.eye(5)[0] + np.eye(5)[:, :1] - 2 * np.outer(np.eye(5)[0], np.eye(5)[0]),
    "huge": 1e200 * np.eye(3),
    "minute": 1e-200 * np.eye(3),
}


@pytest.mark.slow_cases("float32")
@PAIRS
@pytest.mark.parametrize("Y", ODD.values(), ids=ODD)
@pytest.mark.parametrize("symmetric", [False, True, "off-diagonal"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("options", [{}, {"polish": None}, {"polish": "end", "prune": 1}])
def test_odd_data(Y, symmetric, dtype, options):
    with np.errstate(over="ignore", under="ignore"):
        Y = Y.astype(dtype)
    if not np.isfinite(Y).all():
        pytest.skip("not a number of this type")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a hub may grow without end
        result = fit(Y, len(Y) + 1, symmetric=symmetric, **options)
    up = [step for step in result.path if step.status != "pruned"]
    assert all(step.gain <= step.bound for step in up)
    assert np.all(np.diff([step.relative_error for step in up]) <= 0)
    if symmetric != "off-diagonal":
        assert result.certify(Y, one_more=True).one_more.bound >= 0


@pytest.mark.slow_cases("^([4-9]|1.)-")
@EACH
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_exact_0_1_data_with_more_parts_than_they_have(seed, symmetric):
    rng = np.random.default_rng(seed)
    A, B = ((rng.uniform(size=(n, 3)) < 0.4) * 1.0 for n in (10, 8))
    Y = A @ (A if symmetric else B).T
    result = fit(Y, 5, symmetric=symmetric)
    assert result.certify(Y, one_more=True).one_more.bound <= 0.5 * np.square(Y).sum()


@pytest.mark.parametrize("symmetric", [False, True])
def test_parts_of_equal_weight_are_not_mixed(symmetric):
    Y = np.kron(np.eye(6), np.ones((5, 5)))
    assert fit(Y, 6, polish=None, symmetric=symmetric).relative_error <= 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_parts_that_become_superfluous_make_room(seed):
    rng = np.random.default_rng(seed)
    Y = rng.uniform(size=(12, 10)) * (rng.uniform(size=(12, 10)) < 0.3)
    for weights in ("diagonal", "full"):
        result = fit(Y, 8, polish=None, weights=weights, keep=True)
        for step in result.path:
            assert step.W.any(axis=0).all()
            assert step.H.any(axis=1).all()
        assert result.rank == 8


@pytest.mark.slow
def test_small_losses_beside_large_data():
    """The loss is a difference of large sums, unless it is looked at entry by entry."""
    Y = np.zeros((600, 800))
    Y[:128, :256] = 1
    Y[200:210, 400:410] = 1e-10
    result = pw.factorize(sparse.csr_array(Y), 1, random_state=0)
    more = result.certify(sparse.csr_array(Y), one_more=True).one_more
    assert more.bound >= 4.9e-19
    assert "rounding" not in str(more)  # small, but not that


def test_all_zero_data_have_no_part():
    result = fit(np.zeros((5, 4)), 3)
    assert result.path == ()
    assert result.W.shape == (5, 1)
    assert not result.W.any()


@pytest.mark.parametrize("symmetric", [False, True, "off-diagonal"])
def test_pruning_takes_the_least_parts_away(symmetric):
    Y = SYMMETRIC if symmetric else X
    result = fit(Y, 8, prune=5, symmetric=symmetric)
    assert result.rank == 5
    assert [step.rank for step in result.path] == [1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5]
    assert [step.status for step in result.path[8:]] == ["pruned"] * 3
    assert all(step.gain <= 0 and np.isnan(step.bound) for step in result.path[8:])
    assert result.converged
    assert result.certificate.stationary
    assert result.relative_error <= 1.05 * pw.factorize(Y, 5, symmetric=symmetric, random_state=0).relative_error


def test_given_parts_are_kept_and_filled_up():
    start = fit(rank=2)
    W, H = np.zeros((40, 4)), np.zeros((4, 30))
    W[:, [1, 3]], H[[1, 3]] = start.W, start.H
    result = pw.factorize(X, 4, solver=Greedy(), init=(W, H), random_state=0)
    assert [step.rank for step in result.path] == [3, 4]
    assert result.relative_error == pytest.approx(fit(rank=4).relative_error, rel=1e-2)


def test_factors_of_every_rank_can_be_kept(tmp_path):
    result = fit(rank=4, keep=True)
    for step in result.path:
        assert step.W.shape == (40, step.rank)
        error = np.linalg.norm(X - step.W @ step.H) / np.linalg.norm(X)
        assert error == pytest.approx(step.relative_error)
    with pytest.raises(ValueError, match="were not kept: use solver="):
        fit(rank=2).path[0].W  # noqa: B018
    again = pw.load(result.save(tmp_path / "path.partwise"))
    assert [str(step) for step in again.path] == [str(step) for step in result.path]
    assert np.array_equal(again.path[2].H, result.path[2].H)


@EACH
@pytest.mark.parametrize("symmetric", [False, True, "off-diagonal"])
@pytest.mark.parametrize("solver", [Greedy(keep=True), Greedy(prune=3), Greedy(weights="full", polish="end")])
def test_killed_on_the_way_it_goes_on_to_the_same_bits(solver, symmetric, tmp_path):
    if symmetric and solver.weights == "full":
        pytest.skip("full weights are for two factors")
    Y, options = SYMMETRIC if symmetric else X, {"solver": solver, "random_state": 0, "symmetric": symmetric}
    whole = pw.factorize(Y, 5, **options)
    for stop in (2, 6, 9):  # growing, taking away or polishing, polishing
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pw.factorize(Y, 5, max_iter=stop, checkpoint=tmp_path / "run", **options)
        rest = pw.factorize(Y, 5, resume=tmp_path / "run", **options)
        assert np.array_equal(rest.W, whole.W)
        assert [str(step) for step in rest.path] == [str(step) for step in whole.path]


# -- weights ------------------------------------------------------------------------------------------------


def parts_of(Y, rank=4, seed=0):
    """Random parts, and the problem that they are for."""
    problem = pose(as_data(Y), Frobenius(), (s.NonNegative(),) * 2, rank)
    rng = np.random.default_rng(seed)
    return problem, tuple(rng.uniform(size=(dim, rank)) for dim in Y.shape)


def test_weights_are_the_best_there_are():
    problem, (A, B) = parts_of(X)
    design = np.column_stack([np.outer(a, b).ravel() for a, b in zip(A.T, B.T, strict=True)])
    assert problem.fit(weighted(problem, (A, B))) == pytest.approx(nnls(design, X.ravel())[1] ** 2 / 2)
    full = np.column_stack([np.outer(a, b).ravel() for a in A.T for b in B.T])
    assert problem.fit(mixed(problem, (A, B))) == pytest.approx(nnls(full, X.ravel())[1] ** 2 / 2, rel=1e-6)


def test_weights_that_ignore_the_diagonal():
    problem = pose_as("off-diagonal", as_data(SYMMETRIC), Frobenius(), (s.NonNegative(),) * 2, 3)
    A = np.random.default_rng(0).uniform(size=(40, 3))
    off = ~np.eye(40, dtype=bool)
    design = np.column_stack([np.outer(a, a)[off] for a in A.T])
    assert problem.fit(weighted(problem, (A, A))) == pytest.approx(nnls(design, SYMMETRIC[off])[1] ** 2 / 2)


# -- symmetric, sparse, large -------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("symmetric", [True, "off-diagonal"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_symmetric_data(symmetric, store):
    result = fit(store(SYMMETRIC), 4, symmetric=symmetric)
    assert np.array_equal(result.W, result.H.T)
    status = "closed" if symmetric is True else "not certified"
    assert {step.status for step in result.path} == {status}
    others = pw.factorize(SYMMETRIC, 4, symmetric=symmetric, init="random", n_init=10, random_state=0)
    assert result.relative_error <= 1.01 * others.relative_error


def test_parts_that_ignore_the_diagonal_gain_what_they_say():
    first = fit(SYMMETRIC, 1, symmetric="off-diagonal", polish=None).path[0]
    off = SYMMETRIC * (1 - np.eye(len(SYMMETRIC)))
    assert 0.5 * np.square(off).sum() - first.objective == pytest.approx(first.gain)


@pytest.mark.parametrize("symmetric", [False, True])
def test_large_sparse_data_stay_sparse(symmetric, monkeypatch):
    Y = sparse.csr_array(np.where(0.5 * SYMMETRIC.max() < SYMMETRIC, SYMMETRIC, 0))
    known = fit(Y, 4, symmetric=symmetric)
    monkeypatch.setattr(matrices, "ENTRIES", 100)
    monkeypatch.setattr("partwise.data.rows.block", None)  # nothing asks for rows in full
    result = fit(Y, 4, symmetric=symmetric)
    assert {step.status for step in result.path} == {"not certified"}
    assert all(step.bound == np.inf for step in result.path)
    assert result.relative_error <= 1.02 * known.relative_error


# -- one more part ------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_one_more_part_could_gain(symmetric, dtype):
    Y = (SYMMETRIC if symmetric else X).astype(dtype)
    result = pw.factorize(Y, 3, random_state=0, symmetric=symmetric)
    more = result.certify(Y, one_more=True).one_more
    left = Y - result.W @ result.H
    assert more.status == "closed"
    assert more.loss == pytest.approx(0.5 * np.square(left).sum(), rel=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, v = (np.maximum(rng.normal(size=n), 0) for n in Y.shape)
        v = u if symmetric else v
        gain = max(u @ left @ v, 0) ** 2 / (2 * np.square(u).sum() * np.square(v).sum())
        assert gain <= more.bound
    assert more.gain <= more.bound <= more.gain * (1 + 2.1e-4)
    assert f"any one more part lowers the loss by at most {more.bound:.6g}" in str(more)


def test_what_one_more_part_could_gain_is_told_beside_the_other_bound():
    known = pw.factorize(X, 3, random_state=0).certify(X)
    assert known.one_more is None
    both = pw.factorize(X, 3, random_state=0).certify(X, one_more=True)
    assert str(both).startswith(str(known))
    assert len(str(both).splitlines()) == 2


def test_too_large_for_a_certificate_is_said(monkeypatch):
    monkeypatch.setattr(matrices, "ENTRIES", 100)
    more = pw.factorize(X, 3, random_state=0).certify(X, one_more=True).one_more
    assert (more.status, more.bound) == ("not certified", np.inf)
    assert "not certified: X is too large" in str(more)


def test_nothing_is_left_to_gain_of_an_exact_fit():
    rng = np.random.default_rng(0)
    Y = blocks(20, 3, rng) @ blocks(15, 3, rng).T
    more = fit(Y, 3).certify(Y, one_more=True).one_more
    assert more.bound <= 1e-10 * np.square(Y).sum()
    assert "at rounding level" in str(more)


@pytest.mark.parametrize("structure", [s.Free(), s.NonNegative() & s.L1(0.1)])
def test_one_more_part_is_for_nonnegative_parts_without_penalties(structure):
    result = pw.factorize(X, 3, structure_H=structure, random_state=0)
    with pytest.raises(ValueError, match=r"one_more=True speaks of nonnegative parts .* without penalties"):
        result.certify(X, one_more=True)


# -- as a start ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["hals", "gcd", "mu", "palm", "admm"])
def test_as_a_start_of_least_squares_solvers(solver):
    result = pw.factorize(X, 6, solver=solver, init="greedy", random_state=0, max_iter=3000, tol=2e-3)
    assert result.relative_error <= 1.02 * best_of(X, 6, 5)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_as_a_start_of_other_losses_it_has_no_zeros(store):
    counts = np.random.default_rng(0).poisson(3 * X)
    problem = pose(as_data(store(counts.astype(float))), KL(), (s.NonNegative(),) * 2, 5).normalized()
    factors = pw.init.GreedyLS()(problem, np.random.RandomState(0))
    assert min(A.min() for A in factors) > 0
    result = pw.factorize(store(counts), 5, loss="kl", init="greedy", random_state=0)
    others = pw.factorize(store(counts), 5, loss="kl", init="random", n_init=5, random_state=0)
    assert result.objective <= 1.02 * others.objective


def test_as_a_start_of_symmetric_data():
    result = pw.factorize(SYMMETRIC, 4, symmetric=True, init="greedy", random_state=0)
    assert result.relative_error <= 1.01 * fit(SYMMETRIC, 4, symmetric=True).relative_error


def test_as_a_start_under_structures():
    result = pw.factorize(X, 6, init="greedy", structure_H=s.NonNegative() & s.Fixed(X[:1]), random_state=0)
    assert np.array_equal(result.H[0], X[0])


# -- as an estimator ----------------------------------------------------------------------------------------


def test_an_estimator_may_find_fewer_parts_than_it_was_given():
    rng = np.random.default_rng(0)
    Y = blocks(30, 3, rng) @ blocks(20, 3, rng).T
    model = pw.NMF(7, solver="greedy", random_state=0).fit(Y)
    assert model.n_components_ == 3
    assert model.components_.shape == (3, 20)
    assert np.allclose(model.inverse_transform(model.transform(Y[:4])), Y[:4], atol=1e-3)
    assert model.get_feature_names_out().shape == (3,)


# -- pictures, files, errors --------------------------------------------------------------------------------


def test_picture_and_page(tmp_path):
    result = fit(rank=5, prune=3)
    left, right = result.plot.path().axes
    assert list(left.lines[0].get_xdata()) == [1, 2, 3, 4, 5]
    assert list(left.lines[1].get_xdata()) == [5, 4, 3]
    assert right.get_yscale() == "log"
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "One part at a time" in page
    assert "rank 5: relative error" in page
    with pytest.raises(ValueError, match="no path: factorize with solver='greedy'"):
        pw.factorize(X, 2, random_state=0).plot.path()


@pytest.mark.usefixtures("plain_pictures")
def test_command_line(tmp_path, capsys):
    np.save(tmp_path / "X.npy", X)
    words = ["fit", str(tmp_path / "X.npy"), "--rank", "4", "--out", str(tmp_path / "out"), "--force", "--one-more"]
    assert main([*words, "--solver", "greedy(polish='end')"]) == 0
    assert "any one more part lowers the loss by at most" in capsys.readouterr().out
    about = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [step["rank"] for step in about["path"]] == [1, 2, 3, 4]
    assert about["one_more"]["status"] == "closed"
    assert main([*words, "--structure-h", "free"]) == 0
    assert "one_more=True speaks of nonnegative parts" in capsys.readouterr().err
    assert (tmp_path / "out" / "W.npy").is_file()
    for why in (["--loss", "kl"], ["--no-certify"]):
        assert main([*words, *why]) == 0
        assert "--one-more is left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, value",
    [("polish", "often"), ("weights", "none"), ("rounds", 0), ("prune", 0), ("target_error", -1), ("gap", -1)],
)
def test_parameters_that_make_no_sense(name, value):
    with pytest.raises(ValueError, match=f"Greedy cannot have {name}="):
        Greedy(**{name: value})


@pytest.mark.parametrize(
    "options, words, message",
    [
        ({}, {"loss": "kl"}, "Greedy minimises least squares only"),
        ({}, {"structure_H": s.NonNegative() & s.L1(0.1)}, "Greedy finds nonnegative parts of no other structure"),
        ({"prune": 9}, {}, "Greedy cannot prune 4 parts to prune=9.$"),
        ({"weights": "full"}, {"symmetric": True}, "weights='full' for two factors, not where X ~ A A'"),
    ],
)
def test_problems_that_it_does_not_take(options, words, message):
    with pytest.raises(IncompatibleError, match=message):
        pw.factorize(SYMMETRIC, 4, solver=Greedy(**options), **words)


def test_several_starts_would_be_one():
    with pytest.raises(ValueError, match="Greedy begins with no parts, so n_init=3 would repeat one run"):
        pw.factorize(X, 4, solver="greedy", n_init=3)


def test_a_start_with_all_parts_leaves_nothing_to_find():
    with pytest.warns(UserWarning, match="the start has all 4 parts already"):
        assert pw.factorize(X, 4, solver="greedy", init="random", random_state=0).path == ()


def test_superfluous_parts_do_not_upset_the_last_rounds():
    """The state of these rounds keeps its size where a part vanishes."""
    with pytest.warns(UserWarning):
        result = pw.factorize(np.outer(*np.ones((2, 20))), 4, solver="greedy", init="random", random_state=0)
    assert result.rank == 4 and np.all(np.isfinite(result.W))
    assert result.relative_error < 1e-6


def test_a_run_that_is_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match=r"The solver had not finished: raise max_iter"):
        result = pw.factorize(X, 6, solver="greedy", max_iter=3, random_state=0)
    assert (result.status, result.rank) == ("max_iter", 3)


@pytest.mark.parametrize("seed", [4, 19])
def test_pruning_is_never_worse_than_the_path_at_that_rank(seed):
    noisy = make_parts(15, 12, 5, zeros=0.5, noise=0.3, random_state=seed).X
    result = pw.factorize(noisy, 6, solver=Greedy(prune=2), random_state=0)
    assert result.objective <= min(step.objective for step in result.path if step.rank == 2)
    assert [step.rank for step in result.path] == [1, 2, 3, 4, 5, 6, 5, 4, 3, 2]
    assert all(step.factors is None for step in result.path)


def test_parts_of_three_factors():
    rng = np.random.default_rng(0)
    factors = [rng.uniform(size=(dim, 3)) for dim in (4, 5, 6)]
    arrays = np.einsum("ir,jr,kr->rijk", *factors).reshape(3, -1)
    problem = pose(Tensor.of(arrays.sum(axis=0).reshape(4, 5, 6)), Frobenius(), (s.NonNegative(),) * 3, 3)
    assert np.allclose(part_products(problem, factors), arrays @ arrays.T)
    norms = part_norms(factors)
    assert np.allclose(norms / norms[0], np.linalg.norm(arrays, axis=1) / np.linalg.norm(arrays[0]))
    for exponents in ((5, 0, -5), (300, -20, 1000), (-1000, -900, 9)):  # whose squares are numbers, or not
        scaled = part_norms([np.ldexp(A, e) for A, e in zip(factors, exponents, strict=True)])
        assert np.allclose(scaled / scaled[0], norms / norms[0])
    target = problem.data.array.ravel() + rng.uniform(size=arrays.shape[1])
    problem = pose(Tensor.of(target.reshape(4, 5, 6)), Frobenius(), (s.NonNegative(),) * 3, 3)
    assert problem.fit(weighted(problem, factors)) == pytest.approx(nnls(arrays.T, target)[1] ** 2 / 2)
    assert Greedy(weights="full").supports(problem) == (
        "weights='full' of Greedy is for matrices, and X has 3 modes: use 'diagonal'"
    )
