"""The Huber loss: its value and limits, gross errors, its scale, weights and signs."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize

import partwise as pw
from partwise import kernels, losses, solvers
from partwise import structures as s
from partwise.data import as_data
from partwise.init import Random
from partwise.kernels.records import Box, EntryLoss, Others, Rows
from partwise.problem import pose
from partwise.run.limits import Limits
from partwise.run.loop import Control, solve

from .covering import EACH
from .trials.data import observed

SIGMA = 0.05


def planted(seed=0, share=0.05, shape=(200, 100), rank=5, sigma=SIGMA):
    """Parts, and data with Gaussian noise of which a share of entries has gross errors."""
    rng = np.random.default_rng(seed)
    W, H = rng.uniform(size=(shape[0], rank)), rng.uniform(size=(rank, shape[1]))
    W, H = (A * (rng.uniform(size=A.shape) < 0.6) for A in (W, H))
    X = 1 + W @ H + sigma * rng.normal(size=shape)  # above 0, so that noise stays as it is
    wrong = rng.uniform(size=shape) < share
    X[wrong] += rng.uniform(5, 50, size=wrong.sum())
    return np.vstack([np.ones((1, shape[1])), H]), X


def likeness(H, found):
    """The lowest cosine of a part with its match."""
    A, B = (M / np.maximum(np.linalg.norm(M, axis=1, keepdims=True), 1e-300) for M in (H, found))
    return (A @ B.T)[linear_sum_assignment(-A @ B.T)].min()


def brute_force(X, Y, delta):
    return sum(r * r / 2 if abs(r) <= delta else delta * abs(r) - delta**2 / 2 for r in np.ravel(X - Y))


X = np.random.default_rng(1).gamma(1.0, 1.0, size=(23, 17))
A, B = (np.random.default_rng(seed).uniform(size=(n, 3)) for seed, n in ((2, 23), (3, 17)))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("delta", [1e-3, 0.4, 50.0])
def test_the_value_is_that_of_the_formula(store, delta):
    loss = losses.Huber(delta)
    expected = pytest.approx(brute_force(X, A @ B.T, delta), rel=1e-12)
    assert loss.value(X, A @ B.T) == expected
    assert loss.direct_fit(as_data(store(X)), (A, B)) == expected


def test_its_limits_are_least_squares_and_l1():
    Y = A @ B.T
    assert losses.Huber(1e6).value(X, Y) == pytest.approx(losses.Frobenius().value(X, Y), rel=1e-14)
    assert losses.Huber(1e-9).value(X, Y) / 1e-9 == pytest.approx(losses.L1().value(X, Y), rel=1e-8)
    wide, plain = (pw.factorize(X, 3, loss=loss, tol=1e-7, init=(A, B.T)) for loss in ("huber(1e6)", "frobenius"))
    assert wide.objective == pytest.approx(plain.objective, rel=1e-6)  # both end within tol of the same optimum


@pytest.mark.parametrize("delta", [0, -1, np.nan, np.inf, "1", True])
def test_delta_must_be_a_positive_number(delta):
    with pytest.raises(ValueError, match="delta must be a number > 0 in the units of X"):
        losses.Huber(delta)


def test_names_and_what_is_not_estimated_yet():
    assert pw.registry.resolve("loss", "huber") == losses.Huber()
    assert pw.registry.resolve("loss", "huber(0.5)") == losses.Huber(0.5)
    with pytest.raises(ValueError, match="before its delta is estimated"):
        losses.Huber().value(X, X)


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_found_under_gross_errors(seed):
    H, X = planted(seed)
    robust, plain = (pw.factorize(X, len(H), loss=loss, random_state=0) for loss in ("huber", "frobenius"))
    model = robust.W @ robust.H
    true = pw.factorize(planted(seed, share=0)[1], len(H), random_state=0)
    clean = true.W @ true.H
    assert np.linalg.norm(model - clean) <= 0.03 * np.linalg.norm(clean)
    assert np.linalg.norm(plain.W @ plain.H - clean) >= 0.5 * np.linalg.norm(clean)


@pytest.mark.parametrize("solver", ["newton", "hals", "gcd"])
def test_sparse_parts_are_found_where_least_squares_finds_none(solver):
    rng = np.random.default_rng(5)
    W, H = (rng.uniform(size=shape) * (rng.uniform(size=shape) < 0.5) for shape in ((200, 5), (5, 100)))
    X = np.abs(W @ H + 0.02 * rng.normal(size=(200, 100)))
    wrong = rng.uniform(size=X.shape) < 0.05
    X[wrong] += rng.uniform(5, 50, size=wrong.sum())
    assert likeness(H, pw.factorize(X, 5, loss="huber(0.03)", solver=solver, random_state=0).H) >= 0.99
    assert likeness(H, pw.factorize(X, 5, random_state=0).H) < 0.8


@EACH
@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_the_scale_of_gaussian_noise_is_estimated(share, store):
    H, X = planted(share=share)
    result = pw.factorize(store(X), len(H), loss="huber", random_state=3)
    assert result.loss.delta == pytest.approx(1.345 * SIGMA, rel=0.2)
    assert result.fit == pytest.approx(brute_force(X, result.W @ result.H, result.loss.delta), rel=1e-9)
    assert result.explained == pytest.approx(1 - result.fit / result.loss.value(X, 0 * X), rel=1e-9)


def test_the_scale_follows_the_units_and_no_seed():
    H, X = planted(shape=(60, 40))
    plain, scaled, other = (
        pw.factorize(M, len(H), loss="huber", random_state=seed).loss.delta
        for M, seed in ((X, 0), (1e6 * X, 0), (X, 1))
    )
    # rounding in other units leads to slightly other fits
    assert scaled == pytest.approx(1e6 * plain, rel=1e-6)
    assert other == plain


def test_where_most_entries_are_zero_the_others_say_what_the_noise_is():
    """As a model of zeros alone would do for most entries."""
    rng = np.random.default_rng(0)
    W, H = (rng.uniform(1, 2, size=shape) * (rng.uniform(size=shape) < 0.15) for shape in ((150, 5), (5, 80)))
    X = W @ H * np.maximum(1 + 0.1 * rng.normal(size=(150, 80)), 0)
    deltas = [
        pw.factorize(store(X), 5, loss="huber", random_state=0).loss.delta for store in (np.asarray, sparse.csr_array)
    ]
    assert deltas[0] == pytest.approx(deltas[1], rel=1e-9)
    assert np.median(X) == 0
    # 10% of entries between 1 and 4
    assert 0.1 < deltas[0] / 1.345 < 0.4


@pytest.mark.parametrize("X", [np.full((6, 5), 3.0), np.zeros((6, 5)), np.outer(np.arange(6.0), np.ones(5))])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_what_is_met_exactly_has_a_scale_too(X, store):
    result = pw.factorize(store(X), 1, loss="huber", random_state=0)
    assert 0 < result.loss.delta < np.inf
    assert np.allclose(result.W @ result.H, X, atol=1e-2)


def test_sparse_and_dense_data_give_the_same():
    M = np.where(X > 0.7, X, 0.0)
    one, two = (
        pw.factorize(store(M), 3, loss="huber(0.3)", init=(A, B.T), max_iter=20, tol=0)
        for store in (np.asarray, sparse.csr_array)
    )
    assert np.allclose(one.W, two.W, atol=1e-12) and np.allclose(one.H, two.H, atol=1e-12)


@pytest.mark.slow
def test_float32_stays_float32():
    H, X = planted(shape=(60, 40))
    one, two = (pw.factorize(X.astype(kind), len(H), loss="huber", random_state=0) for kind in (np.float64, np.float32))
    assert two.W.dtype == np.float32
    assert two.loss.delta == pytest.approx(one.loss.delta, rel=1e-3)
    assert two.objective == pytest.approx(one.objective, rel=1e-2)


@pytest.mark.slow_cases("HALS|GCD|PALM")
@pytest.mark.parametrize("solver", [solvers.Newton(), solvers.HALS(), solvers.GCD(), solvers.PALM()], ids=repr)
def test_only_observed_entries_count(solver):
    """What is not observed may be anything, and a row goes where SciPy finds its minimum."""
    mask = np.random.default_rng(1).uniform(size=X.shape) < 0.7
    loss, found = losses.Huber(0.4), []
    for Y in (X, np.where(mask, X, 99.0)):
        problem = pose(observed(Y, mask), loss, [s.NonNegative(), s.Fixed(B.T)], 3).normalized()
        run, _ = solve(problem, [Random()], solver, np.random.RandomState(0), Control(Limits(5000, 1e-7)))
        found.append(problem.to_user(run.factors)[0])
    assert np.array_equal(*found)
    for w, x, seen in zip(found[0], X, mask, strict=True):
        value = lambda w, x=x, seen=seen: loss.value(x[seen], B[seen] @ w)  # noqa: E731
        best = minimize(value, w + 0.1, bounds=[(0, None)] * 3, options={"ftol": 1e-14, "gtol": 1e-10})
        assert value(w) <= best.fun * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("delta", [0.4, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_signed_rows_of_newton_go_to_their_optimum(delta, weighted):
    """From zeros too, whichever sign the optimum has: under Huber and weighted least squares."""
    rng = np.random.default_rng(0)
    Y, F = rng.normal(size=(9, 31)), rng.normal(size=(31, 4))
    weights = rng.choice([0.5, 1.0, 2.0], size=Y.shape) if weighted else np.ones(Y.shape)
    rows = Rows(0, 31 * np.arange(10), np.zeros(0, np.int32), Y.ravel(), 1.0, True, weights.ravel(), 1.0)
    box = Box(0.0, np.full((1, 4), -np.inf), np.full((1, 4), np.inf))
    loss, start = EntryLoss(2.0, delta), np.zeros((9, 4))
    (new,), (_, total) = kernels.of(Y).newton(rows, start, Others(F), box, 0.0, loss, (2000, 0.0, True), np.arange(9))
    r = new @ F.T - Y
    assert np.allclose((weights * np.clip(r, -delta, delta)) @ F, 0, atol=1e-6)
    size, within = np.abs(r), np.minimum(np.abs(r), delta)
    assert total == pytest.approx(np.sum(weights * within * (size - within / 2)), rel=1e-12)
    assert (new < 0).any() and (new > 0).any()


@pytest.mark.parametrize("solver", ["newton", "hals"])
def test_signed_factors_of_negative_data(solver):
    _, Y = planted(shape=(80, 50))
    Y = Y - np.median(Y)
    result = pw.factorize(Y, 5, loss="huber", structure_W="free", structure_H="free", solver=solver, random_state=0)
    assert result.loss.delta < 3 * SIGMA
    assert result.certificate.stationarity <= 1e-4


def test_newton_leaves_signed_penalties_to_others():
    with pytest.raises(pw.errors.IncompatibleError, match="Newton needs factors with L1 penalties to be nonnegative"):
        pw.factorize(X, 2, loss="huber(0.3)", structure_W="l1(0.1)", solver="newton")
    assert "HALS" in pw.factorize(X, 2, loss="huber(0.3)", structure_W="l1(0.1)", random_state=0, tol=1e-2).solver


def test_rows_with_weights_are_rows_that_are_repeated():
    H, X = planted(shape=(60, 40))
    repeats = np.random.default_rng(0).integers(1, 4, size=len(X))
    settings = {"loss": "huber(0.07)", "random_state": 0, "tol": 1e-6}
    weighted = pw.factorize(X, len(H), weights=(repeats, None), **settings)
    start = np.repeat(weighted.W, repeats, axis=0), weighted.H
    repeated = pw.factorize(np.repeat(X, repeats, axis=0), len(H), init=start, **settings)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)
    assert np.allclose(start[0] @ start[1], repeated.W @ repeated.H, atol=1e-3)
    deltas = [pw.factorize(X, len(H), loss="huber", weights=(c * repeats, None)).loss.delta for c in (1, 1000)]
    assert deltas[0] == pytest.approx(deltas[1], rel=1e-9)


@pytest.mark.slow_cases("hals|gcd|palm")
@pytest.mark.parametrize("solver", ["newton", "hals", "gcd", "palm"])
def test_holes_do_not_count_in_the_scale(solver):
    H, X = planted()
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.3] = np.nan
    assert pw.factorize(X, len(H), loss="huber", solver=solver).loss.delta == pytest.approx(1.345 * SIGMA, rel=0.2)


def test_new_samples_are_seen_by_the_scale_of_the_fit():
    H, X = planted(shape=(60, 40))
    model = pw.NMF(len(H), loss="huber", random_state=0).fit(X)
    held = pw.factorize(
        X, len(H), loss=model.result_.loss, structure_H=s.Fixed(model.components_), normalize=None, sort=False, tol=1e-4
    )
    new = model.transform(X)
    assert np.allclose(new, held.W, atol=2e-2)
    assert np.array_equal(model.transform(np.vstack([X[:5], 7 * X[:5]]))[:5], model.transform(X[:5]))
    tensor = pw.NTF(2, loss="huber", random_state=0).fit(X[:, :, None] * np.array([1.0, 2, 3]))
    assert tensor.transform(X[:5, :, None] * np.array([1.0, 2, 3])).shape == (5, 2)


def test_results_are_kept_and_runs_resumed(tmp_path):
    H, X = planted(shape=(60, 40))
    settings = {"loss": "huber", "random_state": 4, "tol": 0}
    whole = pw.factorize(X, len(H), max_iter=30, **settings)
    pw.factorize(X, len(H), max_iter=10, checkpoint=tmp_path / "run", **settings)
    resumed = pw.factorize(X, len(H), max_iter=30, resume=tmp_path / "run", **settings)
    assert resumed.loss == whole.loss
    assert np.array_equal(resumed.W, whole.W)
    whole.save(tmp_path / "result.partwise")
    assert pw.load(tmp_path / "result.partwise").loss == whole.loss
    assert f"Huber(delta={whole.loss.delta}" in str(whole)
