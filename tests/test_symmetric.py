"""Symmetric factorization: `X ~ A A'`, with and without the diagonal of X."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linear_sum_assignment

import partwise as pw
from partwise import kernels, losses
from partwise import structures as s
from partwise.cli import main
from partwise.data import as_data
from partwise.errors import ArchiveError, IncompatibleError
from partwise.kernels.cpu.symmetric_cd import lowest_of_quartic
from partwise.problem.symmetric import pose_as
from partwise.result import certificate
from partwise.solvers import SymmetricCD

from .covering import EACH, PAIRS

SYMMETRIES = [True, "off-diagonal"]
STORES = [np.asarray, np.asfortranarray, sparse.csr_array]
DTYPES = [np.float64, np.float32]


def planted(n=40, rank=4, noise=0.0, seed=0):
    """A with blocks that overlap a little, and X."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(0.5, 1, size=(n, rank)) * (np.arange(n)[:, None] * rank // n == np.arange(rank))
    A += rng.uniform(size=(n, rank)) * (rng.uniform(size=(n, rank)) < 0.1)
    E = noise * rng.normal(size=(n, n))
    return A, np.maximum(A @ A.T + E + E.T, 0)


def network(n=40, seed=0):
    edges = np.triu(np.random.default_rng(seed).uniform(size=(n, n)) < 0.2, 1)
    return (edges + edges.T).astype(float)


A0, X = planted()
NOISY, GRAPH = planted(noise=0.1)[1], network()


def problem_of(Y, symmetric=True, rank=4, store=np.asarray):
    return pose_as(symmetric, as_data(store(Y)), losses.Frobenius(), (s.NonNegative(),) * 2, rank)


def value(Y, A, symmetric):
    R = Y - A @ A.T
    if symmetric == "off-diagonal":
        np.fill_diagonal(R, 0)
    return 0.5 * np.square(R).sum()


# -- one entry ---------------------------------------------------------------------------------------------


@settings(deadline=None)  # the first call compiles
@given(*(st.floats(-5, 5) for _ in range(2)), st.floats(0, 5))
def test_the_minimum_in_one_entry_is_that_of_a_fine_grid(p, q, near):
    z = lowest_of_quartic(p, q, near)
    grid = np.linspace(0, 6, 60_001)
    quartic = grid**4 / 4 + p * grid**2 / 2 + q * grid
    assert 0 <= z < 6
    assert z**4 / 4 + p * z**2 / 2 + q * z <= quartic.min() + 1e-12 * (1 + abs(p) + abs(q))


@pytest.mark.parametrize("q", [0.3, -0.3, 0.0, 1.07, 1.09])
def test_of_two_local_minima_it_is_the_lower(q):
    """For p = -3 they change places at `q = sqrt 2`, whatever the start."""
    roots = np.roots([1, 0, -3, q]).real
    at_zero, at_root = 0.0, min(z**4 / 4 - 1.5 * z**2 + q * z for z in roots)
    for near in (0.0, 0.1, 1.0, 1.7, 9.0, 1e6):
        z = lowest_of_quartic(-3.0, q, near)
        assert z == pytest.approx(roots.max() if at_root < at_zero else 0, rel=1e-12)
        assert lowest_of_quartic(-3.0, np.sqrt(2) * 1.001, near) == 0
        assert lowest_of_quartic(-3.0, np.sqrt(2) * 0.999, near) > 1


def candidates(a, R, i, column, symmetric):
    """Steps of one entry that may be best."""
    if symmetric is True:
        roots = np.roots([2, 6 * a, 2 * (R[i, i] + column @ column + a * a), 2 * R[i] @ column])
        real = roots[np.abs(roots.imag) < 1e-7].real
        return [-a, *real[a + real >= 0]]
    rest = np.square(np.delete(column, i)).sum()
    return [max(-a, -(R[i] @ column - R[i, i] * a) / rest)] if rest > 0 else []


def slow_sweep(Y, A, symmetric):
    """Entry by entry, the objective computed anew for every candidate."""
    A, gains = A.copy(), np.zeros(A.shape[1])
    for i, k in np.ndindex(*A.shape):
        before, best, stay = value(Y, A, symmetric), A[i, k], A[i, k]
        lowest = before
        for step in candidates(stay, A @ A.T - Y, i, A[:, k].copy(), symmetric):
            A[i, k] = stay + step
            if value(Y, A, symmetric) < lowest:
                lowest, best = value(Y, A, symmetric), A[i, k]
        A[i, k] = best
        gains[k] += before - lowest
    return A, gains


@PAIRS
@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("rank", [1, 3, 9, 35])
@pytest.mark.parametrize("own", [0.0, 1.0, 50.0])
def test_a_sweep_is_that_of_a_slow_oracle(store, dtype, symmetric, rank, own):
    rng = np.random.default_rng(rank)
    Y = rng.uniform(size=(14, 14)) * (rng.uniform(size=(14, 14)) < 0.5)
    Y = Y + Y.T
    np.fill_diagonal(Y, own if symmetric is True else 0)
    A = rng.uniform(size=(14, rank)) * (rng.uniform(size=(14, rank)) < 0.8)
    A[:2] = 0.1  # every column has two nonzeros: no curvature is 0
    data = as_data(store(Y.astype(dtype)))
    arguments = np.diag(Y).astype(float), float(symmetric is True), 1
    found, gains = kernels.cpu.symmetric_cd(next(data.rows(0)), A.astype(dtype), *arguments)
    expected, expected_gains = slow_sweep(Y, A, symmetric)
    close = {"atol": 1e-9} if dtype == np.float64 else {"atol": 1e-4}
    assert found.dtype == dtype
    assert np.allclose(found, expected, **close)
    assert np.allclose(gains, expected_gains, rtol=1e-4 if dtype == np.float32 else 1e-9, **close)


@pytest.mark.parametrize("symmetric", SYMMETRIES)
def test_an_entry_without_curvature_stays(symmetric):
    """The only nonzero of its column: off the diagonal it does nothing."""
    A = np.zeros((5, 2))
    A[:, 0], A[2, 1] = 0.3, 0.7
    Y = np.full((5, 5), 0.01) - 0.01 * np.eye(5) * (symmetric is not True)  # less than the model: nothing grows
    found, _ = kernels.cpu.symmetric_cd(next(as_data(Y).rows(0)), A, np.diag(Y).copy(), float(symmetric is True), 1)
    assert (found[2, 1] == 0.7) == (symmetric is not True)


# -- the problem -------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", SYMMETRIES)
def test_objective_gradient_and_stationarity(store, dtype, symmetric):
    Y, A = NOISY.astype(dtype), np.random.default_rng(1).uniform(size=A0.shape).astype(dtype)
    problem, factors = problem_of(Y, symmetric, store=store), (A, A)
    rel = 1e-10 if dtype == np.float64 else 1e-5
    assert problem.objective(factors) == pytest.approx(value(Y, A, symmetric), rel=rel)
    assert problem.precise_fit(factors) == pytest.approx(value(Y.astype(float), A.astype(float), symmetric), rel=1e-12)
    off = Y - np.diag(np.diag(Y))
    assert problem.size == pytest.approx(np.linalg.norm(Y if symmetric is True else off), rel=1e-6)
    gradient, h = problem.gradient(factors, 0), 1e-6
    for i, k in ((0, 0), (7, 2)):
        up, down = (A.astype(float) for _ in range(2))
        up[i, k] += h
        down[i, k] -= h
        slope = (value(Y, up, symmetric) - value(Y, down, symmetric)) / (2 * h)
        assert gradient[i, k] == pytest.approx(slope, rel=1e-4)
    gains = np.zeros(4)
    for i, k in np.ndindex(*A.shape):
        B, before = A.astype(float), value(Y, A, symmetric)
        steps = candidates(B[i, k], B @ B.T - Y, i, B[:, k].copy(), symmetric)
        trials = [B.copy() for _ in steps]
        for C, step in zip(trials, steps, strict=True):
            C[i, k] += step
        gains[k] += before - min(value(Y, C, symmetric) for C in trials)
    truth = np.sqrt(2 * gains.max()) / problem.size
    assert problem.stationarity(factors) == pytest.approx(truth, rel=1e-6 if dtype == np.float64 else 1e-3)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", SYMMETRIES)
def test_a_tiny_residual_is_summed_entry_by_entry(dtype, symmetric):
    A = A0.astype(dtype)
    Y = (A.astype(float) @ A.T.astype(float) + 1e-6 * network()).astype(dtype)
    problem = problem_of(Y, symmetric)
    truth = value(Y.astype(float), A.astype(float), symmetric)
    assert problem.fit((A, A)) == pytest.approx(truth, rel=1e-6)


def test_a_hub_off_the_diagonal():
    """A star is met as well as one likes by a weight that grows: its own square, huge, does not count."""
    star = np.zeros((20, 20))
    star[0, 1:] = star[1:, 0] = 1
    A = np.full((20, 1), 1e-3)
    A[0] = 1e3
    exact = 0.5 * 19 * 18 * 1e-12
    assert problem_of(star, "off-diagonal", 1).fit((A, A)) == pytest.approx(exact, rel=1e-6)


# -- the whole ---------------------------------------------------------------------------------------------


def fit(Y=NOISY, rank=4, **settings):
    return pw.factorize(Y, rank, **{"symmetric": True, "random_state": 0, "progress": False, **settings})


@pytest.mark.parametrize("init", [None, "random"])
@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("store", STORES)
def test_planted_parts_come_back(symmetric, store, init):
    result = fit(store(X), symmetric=symmetric, init=init, n_init=1 if init is None else 5, tol=1e-8)
    assert result.converged
    assert result.relative_error < 1e-6
    found = result.W / np.linalg.norm(result.W, axis=0)
    match = linear_sum_assignment(-(A0 / np.linalg.norm(A0, axis=0)).T @ found)[1]
    assert np.allclose(result.W[:, match], A0, atol=1e-5)
    assert np.array_equal(result.W, result.H.T)
    assert result.factors[0] is result.factors[1]


@pytest.mark.parametrize("symmetric", SYMMETRIES)
def test_what_is_told_of_a_result_is_true(symmetric):
    result = fit(symmetric=symmetric)
    assert result.symmetric == symmetric
    assert result.objective == pytest.approx(value(NOISY, result.W, symmetric), rel=1e-9)
    size = np.linalg.norm(NOISY - np.diag(np.diag(NOISY)) * (symmetric is not True))
    assert result.relative_error == pytest.approx(np.sqrt(2 * result.fit) / size, rel=1e-9)
    assert result.data_norm == pytest.approx(size)
    assert result.certificate.feasible
    assert result.certificate.stationary
    assert (", symmetric" in repr(result), "off the diagonal" in repr(result)) == (True, symmetric is not True)
    loose = fit(symmetric=symmetric, normalize=None, sort=False).W
    for A, order in ((result.W, np.arange(result.rank)), (loose, None)):
        parts = [np.outer(a, a) for a in A.T]
        norms = [np.linalg.norm(P - np.diag(np.diag(P)) * (symmetric is not True)) for P in parts]
        assert np.array_equal(A[:, np.argsort(-np.array(norms), kind="stable") if order is None else order], result.W)
        assert order is None or np.all(np.diff(norms) <= 0)


def test_off_the_diagonal_any_diagonal_gives_the_same_bits():
    orders = np.ascontiguousarray, np.asfortranarray
    plain = [fit(order(NOISY), symmetric="off-diagonal").W for order in orders]
    for own in (0.0, 1e-3, -7.0, 1e12, np.arange(40.0)):
        Y = NOISY.copy()
        np.fill_diagonal(Y, own)
        kept = Y.copy()
        for order, W in zip(orders, plain, strict=True):
            assert np.array_equal(fit(order(Y), symmetric="off-diagonal").W, W)
        assert np.array_equal(Y, kept)
        stored = sparse.csr_array(Y)
        assert np.allclose(fit(stored, symmetric="off-diagonal").W, plain[0], atol=1e-6)
        assert np.array_equal(stored.toarray(), kept)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sparse_equals_dense(symmetric, dtype):
    one, two = (fit(store(GRAPH.astype(dtype)), symmetric=symmetric, init="random") for store in STORES[1:])
    assert one.W.dtype == dtype
    assert one.objective == pytest.approx(two.objective, rel=1e-6 if dtype == np.float64 else 1e-3)
    assert np.allclose(one.W, two.W, atol=1e-8 if dtype == np.float64 else 0.02)


@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_units_do_not_matter(symmetric, unit):
    one, two = fit(symmetric=symmetric), fit(unit * NOISY, symmetric=symmetric)
    assert np.allclose(two.W, np.sqrt(unit) * one.W, rtol=1e-6, atol=1e-9 * np.sqrt(unit))


@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("Y", [np.zeros((5, 5)), np.eye(5), np.ones((1, 1)), 1 - np.eye(3)], ids=str)
@pytest.mark.parametrize("init", [None, "random"])
def test_odd_data(Y, symmetric, init):
    result = fit(Y, min(2, len(Y)), symmetric=symmetric, init=init)
    assert result.certificate.feasible
    assert np.isfinite(result.objective)
    assert result.converged


def test_a_rank_above_the_side():
    result = fit(NOISY[:5, :5], 8, tol=1e-6)
    assert result.certify(NOISY[:5, :5]).relative_error == pytest.approx(result.relative_error)


def test_starts():
    several = fit(init="random", n_init=3)
    assert len(several.objectives) == 3
    assert several.objective == min(several.objectives)
    again = fit(init=several, max_iter=3)
    assert again.objective <= several.objective * (1 + 1e-9)
    given = [fit(X, init=pair, tol=1e-6) for pair in ((A0, A0.T), (A0, None), (A0, np.ones((4, 40))))]
    assert all(np.array_equal(result.W, given[0].W) and result.n_iter == 2 for result in given)
    for name in ("nndsvd", "nndsvdar", "spa"):
        assert fit(init=name).converged


def test_rounding_is_no_asymmetry():
    Y = NOISY * (1 + 1e-13 * np.random.default_rng(0).normal(size=NOISY.shape))
    assert fit(Y).objective == pytest.approx(fit().objective)


TILTED = NOISY + np.triu(np.full(NOISY.shape, 0.25), 1)


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"Y": NOISY[:-1]}, ValueError, r"needs a square X, got one of shape \(39, 40\)"),
        ({"Y": TILTED}, ValueError, r"by up to 0.25, where the largest is .* Pass \(X \+ X.T\) / 2"),
        ({"Y": sparse.csr_array(TILTED)}, ValueError, "X is not symmetric"),
        ({"Y": NOISY - 1}, ValueError, "Negative values .* A A' with A >= 0 cannot reproduce"),
        ({"loss": "kl"}, IncompatibleError, "goes with least squares"),
        ({"structure_H": s.NonNegative()}, ValueError, "there is one factor: state structure_W, not structure_H"),
        ({"structure_W": s.Box(0, 1)}, IncompatibleError, "no other structure, got Box"),
        ({"structure_W": s.NonNegative() & s.L1(1)}, IncompatibleError, "no other structure"),
        ({"normalize": "H"}, ValueError, "normalize='H' would rescale one of the factors"),
        ({"normalize": ("W", "l1")}, ValueError, "use normalize=None"),
        ({"solver": "hals"}, IncompatibleError, "not for symmetric=True. These can: symmetric_cd"),
        ({"solver": "symmetric_cd", "symmetric": False}, IncompatibleError, "is for X ~ A A', which symmetric=True"),
        ({"symmetric": "yes"}, ValueError, "symmetric must be True, False or 'off-diagonal', got 'yes'"),
        ({"symmetric": 1}, ValueError, "symmetric must be True, False or 'off-diagonal', got 1"),
        ({"solver": "symmetric_cd(sweeps=0)"}, ValueError, "cannot have sweeps=0"),
        ({"init": (np.ones((3, 4)), None)}, ValueError, "the initial W has shape"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(changes, error, sentence):
    with pytest.raises(error, match=sentence):
        fit(**changes)


def test_nonnegative_may_be_stated():
    assert np.array_equal(fit(structure_W="nonnegative").W, fit().W)
    assert np.array_equal(fit(symmetric=np.True_).W, fit().W)


# -- bounds ------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("Y", [NOISY, GRAPH])
@pytest.mark.parametrize("rank", [1, 4, 30, 45])
def test_the_bound_of_positive_eigenvalues(store, Y, rank):
    result = fit(store(Y), rank, init="random")
    optimality = result.certify(store(Y))
    positive = np.maximum(np.linalg.eigvalsh(Y)[::-1][:rank], 0)
    best = np.sqrt(1 - np.square(positive).sum() / np.square(Y).sum())
    assert optimality.rigorous
    assert best * (1 - 1e-9) <= optimality.bound <= best
    assert optimality.bound <= result.relative_error
    assert optimality.relative_error == pytest.approx(result.relative_error)
    assert optimality.bound >= certificate.optimality(as_data(store(Y)), 1.0, rank).bound - 1e-12


def test_it_is_tighter_where_eigenvalues_are_negative():
    plain = pw.factorize(GRAPH, 8, random_state=0).certify(GRAPH).bound
    assert fit(GRAPH, 8).certify(GRAPH).bound > 1.1 * plain


@pytest.mark.slow
def test_large_data_get_an_estimate_that_says_so(monkeypatch):
    exact = fit(GRAPH, 3).certify(GRAPH)
    monkeypatch.setattr(certificate, "FULL_SIDE", 10)
    for store in STORES:
        for dtype in DTYPES:
            estimate = fit(store(GRAPH.astype(dtype)), 3).certify(store(GRAPH.astype(dtype)))
            assert str(estimate).startswith("estimate: ")
            assert estimate.bound == pytest.approx(exact.bound, rel=1e-5)
    assert fit(GRAPH, 45, init="random").certify(GRAPH).bound == 0


def test_off_the_diagonal_no_bound_is_known():
    with pytest.raises(ValueError, match="no bound where the diagonal of X does not count"):
        fit(symmetric="off-diagonal").certify(NOISY)


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("solver", [SymmetricCD(), SymmetricCD(sweeps=1, extrapolate=False)], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_resumed_run_has_the_same_bits(symmetric, solver, tmp_path):
    settings = {"symmetric": symmetric, "solver": solver, "tol": 0, "init": "random"}
    path = tmp_path / "run.partwise"
    for n_iter in (1, 2, 7):
        fit(GRAPH, checkpoint=path, max_iter=n_iter, **settings)
        rest, whole = fit(GRAPH, resume=path, max_iter=20, **settings), fit(GRAPH, max_iter=20, **settings)
        assert np.array_equal(rest.W, whole.W)
        assert [r.objective for r in rest.history] == [r.objective for r in whole.history]
    other = next(sym for sym in SYMMETRIES if sym != symmetric)
    with pytest.raises(ArchiveError, match=r"the symmetry is .* there and .* here"):
        fit(GRAPH, resume=path, **{**settings, "symmetric": other})


@pytest.mark.parametrize("symmetric", SYMMETRIES)
def test_save_and_load(symmetric, tmp_path):
    result = fit(symmetric=symmetric)
    again = pw.load(result.save(tmp_path / "r.partwise"))
    assert again.symmetric is symmetric or again.symmetric == symmetric
    assert np.array_equal(again.W, result.W)
    assert np.array_equal(again.H, result.H)
    assert repr(again) == repr(result)
    if symmetric is True:
        assert again.certify(NOISY) == result.certify(NOISY)


@pytest.mark.slow
@pytest.mark.usefixtures("plain_pictures")
@pytest.mark.parametrize("words", [["--symmetric"], ["--off-diagonal"]])
def test_command_line(words, tmp_path, capsys):
    np.save(tmp_path / "X.npy", NOISY)
    out = tmp_path / "out"
    assert main(["fit", *words, str(tmp_path / "X.npy"), "--rank", "4", "--out", str(out)]) == 0
    symmetric = True if words == ["--symmetric"] else "off-diagonal"
    about = json.loads((out / "result.json").read_text())
    assert about["symmetric"] == symmetric
    assert ("optimality" in about) == (symmetric is True)
    assert np.array_equal(np.load(out / "W.npy"), np.load(out / "H.npy").T)
    assert ("diagonal of X does not count" in (out / "report.html").read_text()) == (symmetric is not True)
    assert "40 x 40, symmetric" in capsys.readouterr().out
    np.save(tmp_path / "X.npy", TILTED)
    assert main(["fit", str(tmp_path / "X.npy"), "--rank", "4", "--out", str(tmp_path / "other"), *words]) == 2
    assert "X is not symmetric" in capsys.readouterr().err


# -- rows far longer than the others -----------------------------------------------------------------------


def unlike(n, rank, seed):
    """Rows whose lengths have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, rank)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1)) * (rng.uniform(size=(n, rank)) < 0.7)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n, rank", [(3, 5), (30, 1), (30, 4)])
def test_the_loss_off_the_diagonal_has_its_digits(store, dtype, n, rank, monkeypatch):
    """Although the squares of long rows, which do not count, are larger by many orders of magnitude."""
    monkeypatch.setattr("partwise.problem.symmetric.cancels", lambda *_: False)
    for seed in range(5):
        A = unlike(n, rank, seed).astype(dtype)
        A[0] *= 10.0 ** (6 * (seed % 2))
        problem, exact = problem_of(network(n, seed), "off-diagonal", rank, store), A.astype(float)
        truth = value(network(n, seed), exact, "off-diagonal")
        assert problem.fit((A, A)) == pytest.approx(truth, rel=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("symmetric", SYMMETRIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_sweep_raises_the_objective_of_networks(symmetric, dtype):
    """Parts of single nodes, where an entry is nearly all of its column, come up in these."""
    for seed in (33, 61, 149, 257):
        rng = np.random.default_rng(seed)
        n, rank = int(rng.integers(8, 25)), int(rng.integers(2, 8))
        Y = rng.uniform(size=(n, n)) < 0.15
        Y = ((Y | Y.T) * 10.0 ** rng.uniform(-3 * (seed % 2), 0, size=n)).astype(float)
        Y = ((Y + Y.T) / 2).astype(dtype)
        np.fill_diagonal(Y, 0)
        true = []
        result = fit(
            Y,
            rank,
            symmetric=symmetric,
            init="random",
            random_state=seed,
            max_iter=150,
            tol=0,
            callbacks=[lambda _, f: true.append(value(Y.astype(float), f[0].astype(float), symmetric))],  # noqa: B023
        )
        told, size = np.array([record.objective for record in result.history]), np.square(Y, dtype=float).sum()
        rounding = 1e-14 if dtype == np.float64 else 1e-6
        assert np.diff(told).max() <= rounding * size
        assert np.diff(true).max() <= rounding * size
        assert np.allclose(told, true[: len(told)], rtol=0, atol=rounding * size)


def test_an_entry_that_is_its_column_goes_to_its_best_value():
    """Subtracting its square from that of the column would leave rounding."""
    A = np.full((6, 2), 1e-7)
    A[0, 0], A[:, 1] = 1e7, [0.3, 0.1, 0.2, 0.5, 0.7, 0.4]
    Y = np.ones((6, 6)) - np.eye(6)
    found, _ = kernels.cpu.symmetric_cd(next(as_data(Y).rows(0)), A, np.zeros(6), 0.0, 1)
    best = (Y[0, 1:] - A[0, 1] * A[1:, 1]) @ A[1:, 0] / np.square(A[1:, 0]).sum()
    assert found[0, 0] == pytest.approx(best, rel=1e-12)
    assert value(Y, found, "off-diagonal") < 0.5 * value(Y, A, "off-diagonal")
