"""Rows of one factor with the other held, solved to the end although the parts that are held are nearly dependent."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hilbert
from scipy.optimize import lsq_linear, nnls

import partwise as pw
from partwise import kernels
from partwise import structures as s
from partwise.kernels import threads
from partwise.problem import gram_of
from partwise.solvers.exact_rows import dependent

from .covering import PAIRS

T = np.linspace(0, 1, 60)
RNG = np.random.default_rng(0)


def bumps(rank, width):
    """Peaks that overlap, more so the wider they are."""
    return np.exp(-(((T - np.linspace(0, 1, rank)[:, None]) / width) ** 2))


PARTS = {
    "hilbert": hilbert(60)[:10],
    "collinear": RNG.uniform(size=(1, 60)) + 1e-6 * RNG.uniform(size=(7, 60)),
    "wide peaks": bumps(12, 0.25),
    "narrow peaks": bumps(12, 0.1),
    "twice": np.vstack([bumps(4, 0.1)] * 2),
    "one is zero": np.vstack([bumps(4, 0.2), np.zeros((1, 60))]),
    "more than features": RNG.uniform(size=(9, 60))[:, :5],
}
parts = pytest.mark.parametrize("H", PARTS.values(), ids=PARTS)


def data_for(H, noise, rows=12, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.gamma(0.5, size=(rows, len(H))) * (rng.uniform(size=(rows, len(H))) < 0.6)
    X = np.maximum(W @ H * (1 + noise * rng.normal(size=(rows, H.shape[1]))), 0)
    return X * 10.0 ** rng.uniform(-3, 3, size=(rows, 1))


def errors(X, W, H):
    norms = np.linalg.norm(X, axis=1)
    return np.linalg.norm(X - W.astype(float) @ H, axis=1) / np.where(norms > 0, norms, 1)


def model_of(H, **options):
    """A fitted NMF with these parts."""
    model = pw.NMF(len(H), init="custom", max_iter=2, tol=1e-4, **options)
    model.fit(np.ones((len(H), H.shape[1])), W=np.ones((len(H), len(H))), H=np.maximum(H, 1e-300))
    model.components_ = H
    return model


@PAIRS
@parts
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_rows_are_as_good_as_nonnegative_least_squares(H, noise, store):
    X = data_for(H, noise)
    result = pw.factorize(store(X), len(H), structure_H=s.Fixed(H), normalize=None, sort=False)
    best = [nnls(H.T, x / np.linalg.norm(x), maxiter=5000)[1] if x.any() else 0.0 for x in X]
    assert result.converged
    assert np.all(errors(X, result.W, H) <= np.array(best) * (1 + 1e-9) + 1e-7)
    assert result.certificate.stationarity < 1e-9
    assert result.W.min() >= 0


@pytest.mark.slow
@parts
def test_single_precision_does_not_square_the_condition_number(H):
    X, H = data_for(H, 1e-3).astype(np.float32), H.astype(np.float32)
    result = pw.factorize(X, len(H), structure_H=s.Fixed(H), normalize=None, sort=False)
    exact = X.astype(float)
    best = [nnls(H.T.astype(float), x / np.linalg.norm(x), maxiter=5000)[1] if x.any() else 0.0 for x in exact]
    assert np.all(errors(exact, result.W, H.astype(float)) <= np.array(best) + 1e-6)
    assert result.W.dtype == np.float32


@pytest.mark.parametrize("bounds", [(0.0, 0.3), (-0.2, 0.2), (0.05, np.inf), (-np.inf, np.inf)])
@pytest.mark.parametrize("weight", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("solver", ["hals", "gcd"])
def test_bounds_and_a_ridge(bounds, weight, solver):
    H, low, high = bumps(8, 0.2), *bounds
    X = data_for(H, 0.01, rows=6) / 100
    structure = s.Box(None if low == -np.inf else low, None if high == np.inf else high)
    W = pw.factorize(
        X, 8, structure_W=structure & s.L2(weight), structure_H=s.Fixed(H), solver=solver, normalize=None, sort=False
    ).W
    A = np.vstack([H.T, np.sqrt(weight) * np.eye(8)])
    for x, w in zip(X, W, strict=True):
        b = np.concatenate([x, np.zeros(8)])
        best = lsq_linear(A, b, bounds, method="bvls", tol=1e-15, max_iter=500).cost
        assert 0.5 * np.square(A @ w - b).sum() <= best * (1 + 1e-12) + 1e-12 * np.square(b).sum()
    assert W.min() >= low
    assert W.max() <= high


@parts
def test_an_absolute_penalty(H):
    """At the optimum no slope says otherwise, by the normal equations."""
    weight, X = 0.01, data_for(H, 0.05)
    X = X / np.linalg.norm(X, axis=1, keepdims=True).clip(1e-300)
    structure = s.NonNegative() & s.L1(weight)
    W = pw.factorize(X, len(H), structure_W=structure, structure_H=s.Fixed(H), normalize=None, sort=False).W
    slopes = (W @ H - X) @ H.T + weight
    scale = np.linalg.norm(H, axis=1)
    assert np.all(slopes >= -1e-9 * scale)
    assert np.all(np.abs(np.where(W > 0, slopes, 0)) <= 1e-9 * scale)


@pytest.mark.parametrize("name", ["hilbert", "wide peaks", "narrow peaks"])
def test_a_row_does_not_depend_on_the_others(name):
    H = PARTS[name]
    X, model = data_for(H, 0.05), model_of(H)
    W = model.transform(X)
    alone = np.vstack([model.transform(x[None]) for x in X])
    assert np.allclose(W, alone, rtol=1e-6, atol=1e-9 * W.max())
    assert np.allclose(W[::-1], model.transform(X[::-1]), rtol=1e-6, atol=1e-9 * W.max())


def test_the_same_bits_for_any_number_of_tasks_and_threads(monkeypatch):
    H = bumps(12, 0.25)
    X, found = data_for(H, 0.05, rows=40), []
    for pieces, count in ((1, 1), (5, 1), (5, 2)):
        monkeypatch.setattr(threads, "pieces", lambda *_, n=pieces: n)
        monkeypatch.setattr(threads, "count", lambda n=count: n)
        Q, R = np.linalg.qr(H.T)
        box = 0.0, np.zeros((1, 12)), np.full((1, 12), np.inf)
        columns = np.ascontiguousarray(R.T)
        found.append(kernels.of(X).least_squares(columns, X @ Q, np.zeros((40, 12)), box, np.arange(40)))
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_rows_that_are_not_asked_for_stay():
    H = bumps(5, 0.3)
    Q, R = np.linalg.qr(H.T)
    A, X = RNG.uniform(size=(6, 5)), data_for(H, 0.05, rows=6)
    box = 0.0, np.zeros((1, 5)), np.full((1, 5), np.inf)
    out = kernels.of(A).least_squares(np.ascontiguousarray(R.T), X @ Q, A, box, np.array([1, 4]))
    assert np.array_equal(out[[0, 2, 3, 5]], A[[0, 2, 3, 5]])
    assert np.all(errors(X, out, H)[[1, 4]] < errors(X, A, H)[[1, 4]])


def test_parts_that_are_independent_are_left_to_descent():
    assert not dependent(gram_of(RNG.uniform(size=(60, 8))))
    assert dependent(gram_of(np.ascontiguousarray(bumps(12, 0.25).T)))
    assert dependent(np.diag([1.0, 0.0]))


@pytest.mark.parametrize("beta", [0, 0.5, 1, 1.5, 3])
@pytest.mark.parametrize("solver", ["newton", "newton_kl"])
def test_other_losses_end_at_their_optimum_too(beta, solver):
    if solver == "newton_kl" and beta != 1:
        pytest.skip("it minimises KL only")
    H = bumps(8, 0.3) + 1e-3
    X, loss = data_for(H, 0.1, rows=8, seed=1) + 1e-3, pw.losses.Beta(beta)
    options = {"loss": beta, "structure_H": s.Fixed(H), "solver": solver, "normalize": None, "sort": False}
    W = pw.factorize(X, 8, init=(np.ones((8, 8)), H), **options).W
    best = pw.factorize(X, 8, init=(W, H), tol=1e-10, max_iter=5000, **options).W
    for x, w, optimum in zip(X, W, best, strict=True):
        excess = loss.value(x, w @ H) - loss.value(x, optimum @ H)
        assert np.sqrt(max(2 * excess, 0) / np.power(x, float(beta)).sum()) < 1e-3
