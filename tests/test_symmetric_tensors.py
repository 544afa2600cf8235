"""Symmetric tensors, `X ~ [[A, ..., A]]`: the problem, Gauss-Newton steps, and the bound on one part by moments."""

from functools import reduce

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, lsq_linear
from scipy.sparse import csr_array

import partwise as pw
from partwise import losses
from partwise import structures as s
from partwise.data import as_data
from partwise.errors import IncompatibleError
from partwise.kernels import cpu
from partwise.oracles import doubly_nonnegative, rank_one
from partwise.oracles.moments import Consistent, Moments, best_symmetric, contract, side_of, symmetrised
from partwise.problem import Quadratic, gram_of
from partwise.problem.symmetric import array_asymmetry, coordinate_asymmetry, pose_as
from partwise.solvers.symmetric_gn import Linearised

from .covering import EACH

ORDERS = [2, 3, 4, 5]
SIDE = {2: 12, 3: 7, 4: 5, 5: 4}
DTYPES = [np.float64, np.float32]


def listed(X):
    """By its nonzeros."""
    return csr_array(X) if X.ndim == 2 else pw.SparseTensor(np.argwhere(X), X[X != 0], X.shape)


STORES = [np.asarray, np.asfortranarray, listed]


@pytest.fixture(autouse=True)
def one_thread():
    """As a run has BLAS: many small products are slow in threads."""
    with cpu.alone():
        yield


def model(A, order):
    return sum(reduce(np.multiply.outer, [a] * order) for a in A.T)


def factor(n, rank, seed=0, zeros=0.4):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, rank)) * (rng.uniform(size=(n, rank)) >= zeros)


def noisy(order, n, rank=3, noise=0.2, seed=0):
    X = model(factor(n, rank, seed), order)
    E = symmetrised(np.random.default_rng(seed + 1).normal(size=X.shape))
    return np.maximum(X + noise * np.linalg.norm(X) / np.linalg.norm(E) * E, 0)


def problem_of(X, rank=3):
    return pose_as(True, as_data(X), losses.Frobenius(), (s.NonNegative(),) * len(X.shape), rank)


def value(X, A):
    return 0.5 * np.square(X - model(A, X.ndim)).sum()


def smallest_cosine(A, B):
    cosines = (A / np.linalg.norm(A, axis=0)).T @ (B / np.linalg.norm(B, axis=0))
    return cosines[linear_sum_assignment(-cosines)].min()


# -- the problem -------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_objective_and_gradient(order, store, dtype):
    X, A = noisy(order, SIDE[order]).astype(dtype), factor(SIDE[order], 3, seed=5).astype(dtype)
    problem = problem_of(store(X))
    factors = problem.tied((A,))
    assert len(factors) == order
    assert all(B is A for B in factors)
    assert problem.modes == [0]
    rel = 1e-10 if dtype == np.float64 else 1e-5
    assert problem.objective(factors) == pytest.approx(value(X, A), rel=rel)
    if dtype == np.float64:
        slopes, h = np.empty_like(A), 1e-6
        for place in np.ndindex(*A.shape):
            D = np.zeros_like(A)
            D[place] = h
            slopes[place] = (value(X, A + D) - value(X, A - D)) / (2 * h)
        assert np.allclose(problem.gradient(factors, 0), slopes, atol=1e-6 * np.abs(slopes).max())


@pytest.mark.parametrize("order", [3, 4, 5])
def test_stationarity_is_what_single_entries_gain_by_the_model(order):
    """Where X is met, second derivatives are those of the model of Gauss and Newton: near there gains are real."""
    A = factor(SIDE[order], 2, zeros=0.0)
    X = model(A, order)
    near = A.copy()
    near[1, 0] += 1e-4
    gained = np.zeros(2)
    steps = np.linspace(-3e-4, 3e-4, 6001)
    for i, k in np.ndindex(*A.shape):
        E = np.zeros_like(A)
        E[i, k] = 1.0
        gained[k] += value(X, near) - min(value(X, near + t * E) for t in steps[::20])
    measured = problem_of(X, 2).measure((near,) * order)
    assert measured.fit == pytest.approx(value(X, near), rel=1e-6)
    assert measured.stationarity == pytest.approx(np.sqrt(2 * gained.max()) / np.linalg.norm(X), rel=0.01)
    assert problem_of(X, 2).stationarity((A,) * order) < 1e-12


def test_a_tiny_residual_is_summed_entry_by_entry():
    A = factor(6, 3)
    X = model(A, 4)
    near = A + 1e-10
    assert problem_of(X).fit((near,) * 4) == pytest.approx(value(X, near), rel=1e-3)


@pytest.mark.parametrize(
    "X, options, error, sentence",
    [
        (np.ones((3, 3, 2)), {}, ValueError, "needs X with modes of one size, got one of shape"),
        (np.arange(27.0).reshape(3, 3, 3), {}, ValueError, "X is not symmetric: .* two neighbouring indices swapped"),
        (
            pw.SparseTensor([[0, 0, 1]], [1.0], (2, 2, 2)),
            {},
            ValueError,
            "is not symmetric.*by up to 1, .*mean of X over all orders of its modes",
        ),
        (np.ones((3, 3, 3)), {"symmetric": "off-diagonal"}, IncompatibleError, "is for matrices.*use symmetric=True"),
        (-np.ones((3, 3, 3)), {}, ValueError, r"Negative values.*\[\[A, ..., A\]\] with A >= 0 cannot"),
        (np.ones((3, 3, 3)), {"loss": "kl"}, IncompatibleError, "goes with least squares"),
        (np.ones((3, 3, 3)), {"structures": [None, None, "sparse(2)"]}, IncompatibleError, "got Sparse"),
        (
            np.ones((3, 3, 3)),
            {"solver": "symmetric_cd"},
            IncompatibleError,
            "SymmetricCD is for matrices.*symmetric_gn",
        ),
        (np.ones((3, 3)), {"symmetric": False, "solver": "symmetric_gn"}, IncompatibleError, "symmetric=True states"),
        (
            np.ones((3, 3)),
            {"symmetric": "off-diagonal", "solver": "symmetric_gn"},
            IncompatibleError,
            "in which the diagonal of X counts",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(X, options, error, sentence):
    with pytest.raises(error, match=sentence):
        pw.factorize(X, 1, **({"symmetric": True} | options))


@pytest.mark.parametrize("order", [3, 4])
def test_asymmetry_is_the_same_however_X_is_stored(order, monkeypatch):
    monkeypatch.setattr("partwise.problem.symmetric.BLOCK", 40)  # several slices at a time, not all
    X = noisy(order, 5)
    X[np.median(X) > X] = 0
    for place in [(0, 1, 2, 3)[:order], (4, 4, 3, 4)[:order], (1, 0, 0, 0)[:order]]:
        Y = X.copy()
        Y[place] += 0.25
        expected = max(np.abs(Y - Y.swapaxes(i, j)).max() for i in range(order) for j in range(i))
        assert array_asymmetry(Y) == pytest.approx(expected, rel=1e-12)
        assert coordinate_asymmetry(np.argwhere(Y), Y[Y != 0]) == pytest.approx(expected, rel=1e-12)
    assert array_asymmetry(symmetrised(X)) < 1e-15
    assert coordinate_asymmetry(np.zeros((0, order), int), np.zeros(0)) == 0


# -- Gauss-Newton steps ------------------------------------------------------------------------------------


def jacobian(A, order):
    """Of the model in the entries of A, (entries of X, entries of A)."""
    columns = []
    for i, k in np.ndindex(*A.shape):
        e = np.eye(len(A))[i]
        modes = ([e if m == here else A[:, k] for m in range(order)] for here in range(order))
        columns.append(sum(reduce(np.multiply.outer, vectors) for vectors in modes).ravel())
    return np.column_stack(columns)


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_is_that_of_least_squares_with_the_model_linearised(order):
    X, A = noisy(order, SIDE[order]), factor(SIDE[order], 2, seed=3)
    known = problem_of(X, 2).normal_equations((A,) * order, 0)
    linear, J = Linearised.of(order, A, known, 0.01), jacobian(A, order)
    left = (X - model(A, order)).ravel()
    D = np.random.default_rng(0).normal(size=A.shape)
    H = J.T @ J + linear.damping * np.eye(A.size)
    assert np.allclose(linear.times(D).ravel(), H @ D.ravel())
    assert np.allclose(linear.diagonal.ravel(), np.diag(H))
    assert np.allclose(linear.slopes.ravel(), -J.T @ left)
    found, promised = linear.least(1000, 1e-9)
    assert (A + found).min() >= 0
    damped = np.vstack([J, np.sqrt(linear.damping) * np.eye(A.size)])
    bounds = -A.ravel() - 1e-300, np.full(A.size, np.inf)
    best = lsq_linear(damped, np.append(left, np.zeros(A.size)), bounds, method="bvls", tol=1e-14)
    assert np.allclose(found.ravel(), best.x, atol=1e-6 * np.abs(best.x).max())
    assert promised == pytest.approx((left @ left - np.square(left - J @ found.ravel()).sum()) / 2, rel=1e-9)


def test_a_fall_below_rounding_is_known_from_slopes():
    """Of the objective nothing is seen at steps of 1e-9; slopes have it to their precision."""
    X, A = noisy(3, 7), factor(7, 3, seed=3)
    B = A + 1e-9 * np.random.default_rng(0).uniform(size=A.shape)

    def known(F):
        return Quadratic(gram_of(F) ** 2, contract(X, F, 2))

    expected = -np.vdot(problem_of(X).gradient((A,) * 3), B - A)
    assert Linearised.of(3, A, known(A), 0.1).fall(B, known(B)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", STORES[:1] + STORES[2:])
def test_it_descends_to_a_stationary_point(order, store):
    X = noisy(order, SIDE[order])
    result = pw.factorize(store(X), 3, symmetric=True, solver="symmetric_gn", tol=1e-8, random_state=0)
    objective = np.array([record.objective for record in result.history])
    assert result.status == "converged"
    assert np.diff(objective).max() <= 1e-14 * np.square(X).sum()
    assert objective[-1] == pytest.approx(value(X, result.factors[0]), rel=1e-9)
    assert all(np.array_equal(A, result.factors[0]) for A in result.factors)
    # no single entry is better elsewhere
    A, rng = result.factors[0], np.random.default_rng(0)
    for _ in range(50):
        B = A.copy()
        place = tuple(rng.integers(A.shape))
        B[place] = max(B[place] + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-4, -2), 0)
        assert value(X, B) >= objective[-1] * (1 - 1e-12)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("order, n, rank", [(3, 15, 4), (4, 12, 3), (5, 8, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_planted_parts_come_back(order, n, rank, dtype):
    A = factor(n, rank, seed=1)
    result = pw.factorize(model(A, order).astype(dtype), rank, symmetric=True, n_init=3, random_state=0)
    assert result.status == "converged"
    assert smallest_cosine(result.factors[0], A) > 0.9999


def test_units_do_not_matter():
    X = noisy(3, 7)
    plain, huge = (pw.factorize(unit * X, 3, symmetric=True, random_state=0) for unit in (1.0, 2.0**300))
    assert huge.relative_error == plain.relative_error
    assert np.array_equal(huge.factors[0], plain.factors[0] * 2.0**100)


@pytest.mark.parametrize(
    "X",
    [np.zeros((4, 4, 4)), np.ones((1, 1, 1)), np.eye(3)[:, :, None] * np.eye(3)[:, None], np.ones((2, 2, 2, 2))],
    ids=["zero", "one entry", "diagonal", "rank one"],
)
def test_odd_data(X):
    result = pw.factorize(X, 5, symmetric=True, random_state=0, tol=1e-6)
    assert result.status == "converged"
    assert all(np.isfinite(A).all() and (A >= 0).all() for A in result.factors)
    if X.any():
        assert result.relative_error < 1e-4


def test_the_same_bits_for_any_number_of_threads_and_after_a_pause(tmp_path):
    X, path = noisy(4, 12), tmp_path / "run"
    options = {"symmetric": True, "tol": 0, "random_state": 0}
    plain, two = (pw.factorize(X, 4, n_threads=n, max_iter=12, **options) for n in (1, 2))
    assert np.array_equal(plain.factors[0], two.factors[0])
    pw.factorize(X, 4, max_iter=5, checkpoint=(path, 0), **options)
    resumed = pw.factorize(X, 4, max_iter=12, resume=path, **options)
    assert np.array_equal(plain.factors[0], resumed.factors[0])
    assert [r.objective for r in plain.history] == [r.objective for r in resumed.history]


# -- the bound on one part ---------------------------------------------------------------------------------


def brute_force(P, count=200, steps=60):
    """The best of many ascents, in a way of its own: by small steps along the slopes."""
    V = np.random.default_rng(0).uniform(size=(P.shape[0], count)) ** 3
    V /= np.linalg.norm(V, axis=0)
    for _ in range(steps):
        V = np.maximum(V + 0.3 * contract(P, V, P.ndim - 1) / np.abs(P).sum() ** 0.5, 0)
        V /= np.linalg.norm(V, axis=0)
    return np.einsum("ik,ik->k", V, contract(P, V, P.ndim - 1)).max()


@pytest.mark.parametrize("n, order", [(1, 4), (1, 3), (5, 2), (6, 3), (6, 4), (4, 5), (4, 6)])
def test_monomials(n, order):
    rng, moments = np.random.default_rng(0), Moments.of(n, order)
    P = symmetrised(rng.normal(size=(n,) * order))
    u = rng.normal(size=n)
    u /= np.linalg.norm(u)
    y, B = moments.of_vector(u), moments.form(P)
    assert len(y) == side_of(n, order)
    assert np.linalg.norm(y) == pytest.approx(1)
    assert y @ B @ y == pytest.approx(u @ contract(P, u[:, None], order - 1)[:, 0])
    Z = np.outer(y, y)
    assert np.allclose(moments.consistent(moments.products(Z)), Z)
    for direction in moments.vectors(y).T:
        assert abs(direction @ u) == pytest.approx(np.linalg.norm(direction))


def test_the_projection_is_the_nearest_point_of_the_cone():
    rng, moments = np.random.default_rng(0), Moments.of(4, 4)
    cone = Consistent(moments, np.zeros(10), np.zeros(10))
    Y = rng.normal(size=(10, 10))
    Y = Y + Y.T
    nearest = cone.project(Y)
    assert np.allclose(cone.project(nearest), nearest)
    for u in rng.uniform(size=(50, 4)):  # `<Y - nearest, Z - nearest> <= 0` for every Z of it
        z = moments.of_vector(u)
        assert np.vdot(Y - nearest, np.outer(z, z) - nearest) <= 1e-12
        assert z @ cone.in_dual(Y) @ z >= -1e-12
    assert np.vdot(Y - nearest, nearest) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_any_multiplier_gives_a_bound(order):
    rng, moments = np.random.default_rng(order), Moments.of(4, order)
    P = symmetrised(rng.normal(size=(4,) * order))
    cone, B, best = Consistent(moments, np.zeros(0), np.zeros(0)), moments.form(P), brute_force(P)
    for size in (0, 1e-3, 1, 1e3):
        S = size * rng.normal(size=B.shape)
        assert cone.bound(B, S + S.T) >= best


@pytest.mark.slow_cases("None-5")
@EACH
@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("steps", [1, 2, 20, None])
def test_a_bound_holds_however_early_it_stops(order, steps, monkeypatch):
    if steps:
        monkeypatch.setattr(doubly_nonnegative, "STEPS", (steps, steps))
    for seed in range(3):
        P = symmetrised(np.random.default_rng(seed).normal(size=(4,) * order))
        u, found, bound, status, stage = best_symmetric(P, np.random.RandomState(0), 1e-4)
        assert u.min() >= 0
        assert np.linalg.norm(u) == pytest.approx(1)
        assert found == pytest.approx(u @ contract(P, u[:, None], order - 1)[:, 0], rel=1e-12)
        assert brute_force(P) <= found * (1 + 1e-9)
        assert found <= bound  # whatever the step: the margin for rounding is above it
        assert stage == "moments"
        assert (status == "closed") == (bound - found <= 1e-4 * found)


@pytest.mark.parametrize("order, n", [(3, 10), (4, 10), (5, 6), (6, 5)])
def test_what_parts_leave_is_closed(order, n):
    """The best part of a planted tensor, and of what is left without it."""
    A = factor(n, 3, seed=2)
    P = model(A, order)
    for _ in range(3):
        u, found, bound, status, _ = best_symmetric(P, np.random.RandomState(0), 1e-4)
        assert status == "closed"
        assert 0 < found <= bound <= found * (1 + 1e-4)
        P = P - found * model(u[:, None], order)


def test_order_2_is_the_matrix():
    for seed in range(5):
        P = symmetrised(np.random.default_rng(seed).normal(size=(15, 15)))
        _, found, bound, status, _ = best_symmetric(P, np.random.RandomState(0), 1e-4)
        atom = rank_one(-P, symmetric=True)
        assert found == pytest.approx(-atom.value, rel=1e-9)
        assert status == atom.status == "closed"
        assert bound >= found


def test_what_has_no_good_part():
    nothing = best_symmetric(np.zeros((3,) * 4), np.random.RandomState(0), 1e-4)
    assert nothing[1:] == (0.0, 0.0, "closed", "entries")
    u, found, bound, *_ = best_symmetric(-np.ones((3,) * 4), np.random.RandomState(0), 1e-4)
    assert found == pytest.approx(-1)  # `-(sum u)^4`, largest at a single entry
    assert -1 <= bound < 0
    assert np.sort(u) == pytest.approx([0, 0, 1])


def test_rounding_of_P_is_part_of_the_bound():
    P = model(factor(5, 1), 4)
    plain, rounded = (best_symmetric(P, np.random.RandomState(0), 1e-4, rounding) for rounding in (0.0, 0.5))
    assert rounded[2] == pytest.approx(plain[2] + 0.5)
    assert (plain[3], rounded[3]) == ("closed", "open")


@pytest.mark.parametrize("order, n", [(3, 6), (5, 5), (4, 6)])
def test_large_ones_are_not_certified(order, n, monkeypatch):
    monkeypatch.setattr(doubly_nonnegative, "SIDE", side_of(n, order) - 1)
    a = factor(n, 1)[:, 0]
    u, found, bound, status, stage = best_symmetric(model(a[:, None], order), np.random.RandomState(0), 1e-4)
    assert (bound, status, stage) == (np.inf, "not certified", "none")
    assert found == pytest.approx(np.linalg.norm(a) ** order)
    assert u @ a == pytest.approx(np.linalg.norm(a))


# -- one part at a time ------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("store", [np.asarray, listed])
@pytest.mark.parametrize("order, n, rank", [(3, 12, 4), (4, 8, 3), (5, 5, 2)])
def test_greedy_finds_planted_parts_and_proves_each(order, n, rank, store):
    A = factor(n, rank, seed=4)
    X = model(A, order)
    result = pw.factorize(store(X), rank, symmetric=True, solver="greedy", random_state=0)
    assert [step.status for step in result.path] == ["closed"] * rank
    assert all(step.gain <= step.bound <= step.gain * (1 + 1e-4) ** 2 for step in result.path)
    assert smallest_cosine(result.factors[0], A) > 0.999
    assert all(np.array_equal(B, result.factors[0]) for B in result.factors)


def test_greedy_without_bounds():
    A = factor(10, 3, seed=4)
    solver = pw.solvers.Greedy(certify=False)
    result = pw.factorize(model(A, 3), 3, symmetric=True, solver=solver, random_state=0)
    assert [step.status for step in result.path] == ["not certified"] * 3
    assert smallest_cosine(result.factors[0], A) > 0.999


def test_greedy_goes_on_with_the_same_bits(tmp_path):
    X, path = noisy(4, 6), tmp_path / "run"
    options = {"symmetric": True, "solver": "greedy", "tol": 0, "random_state": 0}
    for n_iter in (2, 5):  # between two parts, and in the rounds at the end
        pw.factorize(X, 3, max_iter=n_iter, checkpoint=(path, 0), **options)
        rest, whole = (pw.factorize(X, 3, max_iter=8, **options, **how) for how in ({"resume": path}, {}))
        assert np.array_equal(rest.factors[0], whole.factors[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_parts_of_order_4_are_found_and_proved(seed):
    """n = 20, rank 5: every step closed, every factor found."""
    A = factor(20, 5, seed)
    result = pw.factorize(model(A, 4), 5, symmetric=True, solver="greedy", random_state=seed)
    assert [step.status for step in result.path] == ["closed"] * 5
    assert smallest_cosine(result.factors[0], A) >= 0.999
