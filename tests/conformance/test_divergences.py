"""The kernels of beta-divergences against the formulas written out with NumPy."""

import numpy as np
import pytest
from numba import njit
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar

from partwise import kernels
from partwise.data import as_data
from partwise.kernels import threads
from partwise.kernels.cpu.divergences import logarithm
from partwise.kernels.records import EntryLoss, Others
from partwise.losses import KL, Beta

from ..covering import PAIRS

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
STORES = {"dense": np.asarray, "Fortran order": np.asfortranarray, "sparse": sparse.csr_array}
betas = pytest.mark.parametrize("beta", BETAS)
stores = pytest.mark.parametrize("store", STORES.values(), ids=STORES)


@pytest.fixture(params=[1, 5], autouse=True)
def tasks(request, monkeypatch):
    """Every test with one task and with several."""
    monkeypatch.setattr(threads, "pieces", lambda *_: request.param)
    monkeypatch.setattr(threads, "count", lambda: 2)


def setting(beta, rank, seed=0, dtype=np.float64):
    """Counts with zeros where beta allows them, a row and a column of zeros among them, and sparse factors."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, size=(23, 31)).astype(float)
    X[4] = X[:, 7] = 0
    if beta <= 0:
        X += 0.5
    A, B = (rng.uniform(0.1, 1, size=(n, rank)) * (rng.uniform(size=(n, rank)) < 0.8) + 0.01 for n in X.shape)
    return X.astype(dtype), A.astype(dtype), B.astype(dtype)


def full_box(rank, dtype=np.float64, l1=0.0, lower=0.0, upper=np.inf):
    return dtype(l1), np.full((1, rank), lower, dtype), np.full((1, rank), upper, dtype)


def test_the_logarithm_is_that_of_numpy():
    x = np.concatenate([2.0 ** np.linspace(-300, 300, 4001), np.linspace(0.5, 2, 1001)])
    logarithms = njit(lambda x: [logarithm(value) for value in x])  # it is there for compiled functions only
    assert np.allclose(logarithms(x), np.log(x), rtol=4e-16, atol=4e-16)


@PAIRS
@pytest.mark.slow_cases("float32")
@betas
@stores
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("rank", [1, 5, 37])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_expansion_is_slope_curvature_and_value(beta, store, mode, rank, dtype):
    X, *factors = setting(beta, rank, dtype=dtype)
    data, loss = as_data(store(X)), Beta(beta)
    (minus, plus, curvature), _ = data.map(kernels.of(X).expansion, factors, mode, EntryLoss(beta))
    Y, V = (M.astype(float) if mode == 0 else M.T.astype(float) for M in (factors[0] @ factors[1].T, X))
    B = factors[1 - mode].astype(float)
    tolerance = {"rtol": 1e-10} if dtype == np.float64 else {"rtol": 2e-4}
    assert np.allclose(minus, (V * Y ** (beta - 2)) @ B, **tolerance)
    assert np.allclose(plus, Y ** (beta - 1) @ B, **tolerance)
    second = max(beta - 1, 0) * Y ** (beta - 2) + max(2 - beta, 0) * V * Y ** (beta - 3)
    assert np.allclose(curvature, second @ B**2, **tolerance)
    value = pytest.approx(loss.value(V, Y), rel=1e-10 if dtype == np.float64 else 1e-4)
    assert loss.counted(data, factors) == (value, 0)


@stores
def test_entries_out_of_reach_are_counted(store):
    X, A, B = setting(1.0, 4)
    B[5] = 0
    A[9] = 0
    expected = np.count_nonzero((X > 0) & (A @ B.T == 0))
    assert expected > 5
    assert KL().unreached(as_data(store(X)), (A, B)) == expected


@PAIRS
@pytest.mark.parametrize("l1", [0.0, 0.7])
@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("box", [{}, {"lower": 0.05, "upper": 0.4}])
@stores
def test_one_weight_goes_to_its_best_value(l1, l2, box, store):
    """Rank 1: many sweeps end at the minimum of a function of one variable, found by search."""
    X, A, B = setting(1.0, 1)
    lower, upper = box.get("lower", 0.0), box.get("upper", 50.0)
    A = np.clip(A, lower, upper)
    data, full = as_data(store(X)), full_box(1, l1=l1, **box)
    (new,), _ = kernels.of(A).newton_kl(next(data.rows(0)), A, Others(B), full, l2, (60, 0.0), np.arange(len(A)))
    for x, w in zip(X, new[:, 0], strict=True):
        best = minimize_scalar(
            lambda t, x=x: Beta(1).value(x[None], t * B.T) + l1 * t + l2 / 2 * t * t,
            bounds=(lower, upper),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert w == pytest.approx(best.x, abs=1e-5)


@PAIRS
@betas
@stores
@pytest.mark.parametrize("rank", [3, 5, 9])
@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.3, 0.2)])
def test_rows_go_to_their_optimum(beta, store, rank, penalty):
    """With the other factor held a row is a small problem, convex for 1 <= beta <= 2, that SciPy solves as well; what
    is found is stationary in any case."""
    X, A, B = setting(beta, rank)
    data, rows = as_data(store(X)), np.array([1, 4, 8])
    l1, l2 = penalty
    full, loss = full_box(rank, l1=l1), Beta(beta)

    def objective(w, x):
        return loss.value(x[None], w[None] @ B.T) + l1 * w.sum() + l2 / 2 * w @ w

    (new,), _ = kernels.of(A).newton(next(data.rows(0)), A, Others(B), full, l2, EntryLoss(beta), (80, 0.0, True), rows)
    for i in rows:
        w, x = new[i], X[i]
        assert objective(w, x) <= objective(A[i], x)
        slope = (loss.gradient(x[None], w[None] @ B.T) @ B)[0] + l1 + l2 * w
        scale = np.power(x[x > 0], beta).sum() if x.any() else 1.0
        assert np.max(np.minimum(np.abs(slope), np.abs(w * slope) + np.maximum(-slope, 0)), initial=0) < 1e-3 * (
            1 + scale
        )
        if 1 <= beta <= 2:
            found = minimize(
                objective, A[i], (x,), bounds=[(1e-12, None)] * rank, options={"ftol": 1e-15, "gtol": 1e-10}
            )
            assert objective(w, x) <= found.fun + 1e-6 * (1 + abs(found.fun))
    if beta == 1:
        (other,), _ = kernels.of(A).newton_kl(next(data.rows(0)), A, Others(B), full, l2, (400, 0.0), rows)
        for i in rows:
            assert objective(other[i], X[i]) == pytest.approx(objective(new[i], X[i]), rel=1e-6)


@PAIRS
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kernel", ["newton_kl", "newton"])
def test_no_step_raises_the_objective(kernel, seed):
    """Wild counts from wild starts with zeros, where a bare Newton step does raise it manyfold; penalties, bounds."""
    rng = np.random.default_rng(seed)
    beta = 1.0 if kernel == "newton_kl" else BETAS[seed % 7] if BETAS[seed % 7] != 2 else 1.0
    X = np.floor(np.exp(rng.normal(0, 4, size=(40, 25)))) * (rng.uniform(size=(40, 25)) < 0.5)
    X = X + 1e-3 if beta <= 0 else X
    A, B = (np.exp(rng.normal(0, 4, size=(n, 5))) * (rng.uniform(size=(n, 5)) < 0.7) for n in X.shape)
    l1, l2 = rng.choice([0.0, 0.01, 100.0], size=2)
    low, high = (0.0, np.inf) if seed % 3 else (1e-3, 10.0)
    A, B = np.clip(A, low, high), np.clip(B, low, high)
    data, full = as_data(X if seed % 2 else sparse.csr_array(X)), full_box(5, l1=l1, lower=low, upper=high)

    def objective(A, B):
        penalty = sum(l1 * M.sum() + l2 / 2 * np.square(M).sum() for M in (A, B))
        return Beta(beta).value(X, A @ B.T) + penalty

    before = objective(A, B)
    for step in range(12):
        mode = step % 2
        P, Q = (A, B) if mode == 0 else (B, A)
        rows = np.arange(len(P))
        if kernel == "newton_kl":
            (P,), _ = kernels.of(P).newton_kl(next(data.rows(mode)), P, Others(Q), full, l2, (1, 0.0), rows)
        else:
            (P,), _ = kernels.of(P).newton(
                next(data.rows(mode)), P, Others(Q), full, l2, EntryLoss(beta), (1, 0.0, bool(seed % 2)), rows
            )
        A, B = (P, Q) if mode == 0 else (Q, P)
        after = objective(A, B)
        assert after <= before * (1 + 1e-11)
        before = after


def test_a_row_of_zeros_is_given_mass():
    """From nothing a row gets to the optimum that it gets to from anywhere."""
    X, A, B = setting(1.0, 4)
    data, rows = as_data(sparse.csr_array(X)), np.arange(len(A))
    new, old = (
        kernels.of(A).newton_kl(next(data.rows(0)), start, Others(B), full_box(4), 0.0, (300, 0.0), rows)[0][0]
        for start in (np.zeros_like(A), A)
    )
    assert np.allclose(new, old, atol=1e-5)
    assert np.all(new[4] == 0)  # a row of X without counts
