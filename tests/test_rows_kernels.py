"""Kernels on rows of X whose entries have weights, or are missing, against the formulas written out with NumPy."""

import numpy as np
import pytest
from scipy.optimize import nnls

from partwise import kernels
from partwise.kernels import threads
from partwise.kernels.records import Box, EntryLoss, Others, Rows

from .covering import EACH, PAIRS

of = kernels.of(np.zeros(1))
DIM, OTHER, RANK = 17, 29, 4
BETAS = [-1.0, 0.0, 0.5, 1.0, 1.1, 1.5, 2.0, 3.0]
# which entries are listed, whether they have weights, and how much the others count
KINDS = {
    "all, weighted": ("all", True, 1.0),
    "some, weighted": ("some", True, 1.0),
    "some, missing": ("some", False, 0.0),
    "some, weighted, missing": ("some", True, 0.0),
    "some, false zeros": ("some", False, 0.3),
    "some, weighted, false zeros": ("some", True, 0.3),
}
kinds = pytest.mark.parametrize("kind", KINDS)
# entries that are not listed are 0, which for beta <= 0 is infinitely far from any model
FINITE = [
    (kind, beta)
    for kind, (_, _, unlisted) in KINDS.items()
    for beta in BETAS
    if beta > 0 or kind == "all, weighted" or unlisted == 0
]


@pytest.fixture(params=[1, 5], autouse=True)
def tasks(request, monkeypatch):
    """Every test with one task and with several."""
    monkeypatch.setattr(threads, "pieces", lambda *_: request.param)
    monkeypatch.setattr(threads, "count", lambda: 2)


def rows_of(X, listed, weights=None, unlisted=1.0):
    """Rows with the entries where `listed`, or all where that is None."""
    full = listed is None
    chosen = np.ones(X.shape, bool) if full else listed
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    indices = np.zeros(0, np.int32) if full else np.nonzero(chosen)[1].astype(np.int32)
    values, scale = X[chosen] / 2, X.dtype.type(2)
    return Rows(0, indptr, indices, values, scale, full, np.zeros(0) if weights is None else weights[chosen], unlisted)


def setting(kind, beta, seed=0):
    """Rows, the same as an array and how much each entry counts, and two factors."""
    rng = np.random.default_rng(seed)
    which, weighted, unlisted = KINDS[kind]
    X = rng.poisson(2.0, size=(DIM, OTHER)) + (rng.uniform(0.2, 1, (DIM, OTHER)) if beta <= 0 else 0.0)
    listed = None if which == "all" else rng.uniform(size=X.shape) < 0.5
    weights = rng.choice([0.0, 0.5, 1.0, 2.5], size=X.shape) if weighted else None
    total = np.ones(X.shape) if weights is None else weights
    if listed is not None:
        listed[3] = False
        X, total = np.where(listed, X, 0.0), np.where(listed, total, unlisted)
    A, B = (rng.uniform(0.1, 1, (n, RANK)) for n in X.shape)
    return rows_of(X, listed, weights, unlisted), X, total, A, B


def divergence(X, Y, beta):
    positive = np.where(X > 0, X, 1.0)
    if beta == 1:
        return np.where(X > 0, X * np.log(positive / Y), 0.0) - X + Y
    if beta == 0:
        return X / Y - np.log(positive / Y) - 1
    own = np.where(X > 0, positive**beta, 0.0) / (beta * (beta - 1))
    return own + Y**beta / beta - X * Y ** (beta - 1) / (beta - 1)


def value(X, total, Y, beta):
    counts = total > 0
    return float(np.sum(total[counts] * divergence(X[counts], Y[counts], beta)))


def gradient(X, total, Y, B, beta):
    return (total * (Y ** (beta - 1) - X * Y ** (beta - 2))) @ B


def box_of(lower=0.0, l1=0.0):
    return Box(l1, np.full((1, RANK), lower), np.full((1, RANK), np.inf))


@PAIRS
@pytest.mark.parametrize("kind, beta", FINITE)
def test_values_and_derivatives_count_entries_by_their_weights(kind, beta):
    rows, X, total, A, B = setting(kind, beta)
    Y = A @ B.T
    (by_row,), (loss, missed) = of.losses(rows, A, Others(B), EntryLoss(beta))
    assert loss == pytest.approx(value(X, total, Y, beta), rel=1e-10)
    assert by_row == pytest.approx([value(x, t, y, beta) for x, t, y in zip(X, total, Y, strict=True)], rel=1e-9)
    assert missed == 0
    (minus, plus, curvature), () = of.expansion(rows, A, Others(B), EntryLoss(beta))
    assert np.allclose(minus, (total * X * Y ** (beta - 2)) @ B, rtol=1e-10)
    assert np.allclose(plus, (total * Y ** (beta - 1)) @ B, rtol=1e-10)
    second = max(beta - 1, 0) * Y ** (beta - 2) + max(2 - beta, 0) * X * Y ** (beta - 3)
    assert np.allclose(curvature, (total * second) @ B**2, rtol=1e-10)


@pytest.mark.parametrize("listed", [False, True])
def test_the_linear_term_of_kl_is_in_every_loss(listed):
    X, A, B = (np.random.default_rng(0).uniform(0.1, 1, shape) for shape in ((DIM, OTHER), (DIM, RANK), (OTHER, RANK)))
    rows, ones = rows_of(X, np.ones(X.shape, bool) if listed else None), np.ones(X.shape)
    assert of.losses(rows, A, Others(B), EntryLoss(1.0))[1][0] == pytest.approx(value(X, ones, A @ B.T, 1.0), rel=1e-10)
    for chosen in (np.arange(DIM), np.arange(1, DIM)):
        (new,), (_, loss) = of.newton_kl(rows, A, Others(B), box_of(), 0.0, (1, 0.0), chosen)
        assert loss == pytest.approx(value(X[chosen], ones[chosen], new[chosen] @ B.T, 1.0), rel=1e-10)


@PAIRS
@pytest.mark.parametrize(
    "kernel, kind, beta", [("newton", *case) for case in FINITE] + [("newton_kl", kind, 1.0) for kind in KINDS]
)
@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.3, 0.2)])
def test_rows_fall_to_where_the_weighted_objective_is_stationary(kernel, kind, beta, penalty):
    rows, X, total, A, B = setting(kind, beta)
    l1, l2 = penalty
    lower = 0.01  # for beta < 1 the objective is not convex, and 0 is far away

    def objective(A):
        return value(X, total, A @ B.T, beta) + l1 * A.sum() + l2 / 2 * np.square(A).sum()

    def update(A, steps):
        box, chosen = box_of(lower, l1), np.arange(DIM)
        if kernel == "newton":
            (new,), (_, loss) = of.newton(rows, A, Others(B), box, l2, EntryLoss(beta), (steps, 0.0, True), chosen)
        else:
            (new,), (_, loss) = of.newton_kl(rows, A, Others(B), box, l2, (steps, 0.0), chosen)
        assert loss == pytest.approx(value(X, total, new @ B.T, beta), rel=1e-10, abs=1e-10)
        return new

    before = objective(A)
    for steps in (1, 1, 1, 200):
        A = update(A, steps)
        assert objective(A) <= before * (1 + 1e-12) + 1e-12
        before = objective(A)
    slope = gradient(X, total, A @ B.T, B, beta) + l1 + l2 * A
    scale = (total * (X * (A @ B.T) ** (beta - 2) + (A @ B.T) ** (beta - 1))) @ B + 1e-12
    free = lower < A
    assert np.all(np.abs(slope[free]) <= (1e-5 if beta < 1 else 1e-7) * scale[free])
    assert np.all(slope[~free] >= -1e-7 * scale[~free])


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_least_squares_on_observed_entries_is_that_of_every_row_by_itself(dtype):
    rng = np.random.default_rng(1)
    X, A, B = rng.normal(1, 1, (DIM, OTHER)), rng.uniform(size=(DIM, RANK)), rng.uniform(size=(OTHER, RANK))
    listed = rng.uniform(size=X.shape) < 0.6
    X, A, B = (M.astype(dtype) for M in (X, A, B))
    rows = rows_of(X, listed, unlisted=0.0)._replace(weights=np.zeros(0, dtype))
    box = Box(dtype(0), np.zeros((1, RANK), dtype), np.full((1, RANK), np.inf, dtype))
    (new,), (_, loss) = of.newton(rows, A, Others(B), box, 0.0, EntryLoss(2.0), (20, 0.0, True), np.arange(DIM))
    total = 0.0
    for x, own, w in zip(X, listed, new, strict=True):
        expected, norm = nnls(B[own].astype(float), x[own].astype(float))
        total += norm**2 / 2
        assert np.allclose(w, expected, atol=1e-8 if dtype == np.float64 else 1e-4)
    assert loss == pytest.approx(total, rel=1e-8 if dtype == np.float64 else 1e-4)


def test_what_counts_nothing_is_not_missed_by_the_model():
    X, A, B = np.ones((1, 6)), np.ones((1, 1)), np.array([[1.0], [0], [1], [0], [1], [1]])
    weights = np.array([[1.0, 0, 1, 1, 1, 1]])
    for listed in (None, np.ones((1, 6), bool)):
        assert of.losses(rows_of(X, listed, weights), A, Others(B), EntryLoss(1.0))[1][1] == 1


def test_a_row_of_zeros_is_given_mass_where_its_weights_are():
    rows, _, _, A, B = setting("some, weighted, missing", 1.0)
    found = []
    for start in (np.zeros_like(A), A):
        for kernel, inner in ((of.newton_kl, (500, 0.0)), (of.newton, (60, 0.0, True))):
            beta = () if kernel is of.newton_kl else (EntryLoss(1.0),)
            (new,), (_, loss) = kernel(rows, start, Others(B), box_of(), 0.01, *beta, inner, np.arange(DIM))
            found.append(loss + 0.005 * np.square(new).sum())
    assert np.allclose(found, found[0], rtol=1e-7)


# -- L1 ----------------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("signed", [False, True])
def test_a_weight_of_an_entry_is_its_number_of_copies(signed):
    """Under L1, in medians and smoothed."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        n, counts = 12, rng.integers(0, 4, size=12)
        x, B = rng.normal(size=(1, n)), rng.uniform(-1 if signed else 0.1, 1, (n, 3))
        a, box = rng.uniform(size=(1, 3)), Box(0.1, np.full((1, 3), -np.inf if signed else 0.0), np.full((1, 3), 2.0))
        copies = rows_of(np.repeat(x, counts, axis=1), None), np.repeat(B, counts, axis=0)
        weights = counts[None].astype(float)
        for given in (
            (rows_of(x, None, weights), B),
            (rows_of(x, np.ones((1, n), bool), weights), B),
            (rows_of(x, counts[None] > 0, weights, unlisted=0.0), B),
        ):
            for sweeps in (1, 7):
                rule = box, 0.05, False, sweeps, np.arange(1)
                (one, left), (loss,) = of.weighted_median(given[0], a, Others(given[1]), *rule)
                (other, expected), (total,) = of.weighted_median(copies[0], a, Others(copies[1]), *rule)
                assert np.allclose(one, other, atol=1e-10)
                assert np.array_equal(left, expected)
                assert loss == pytest.approx(total, abs=1e-10)
            one, other = (
                of.smooth_l1(rows, a, Others(other), box, 0.05, False, np.full(1, 0.1))[0][0]
                for rows, other in (given, copies)
            )
            assert np.allclose(one, other, atol=1e-10)


@kinds
@pytest.mark.parametrize("binary", [False, True])
def test_medians_see_entries_that_are_not_listed_as_zeros_with_a_weight(kind, binary):
    rows, X, total, A, B = setting(kind, 1.0)
    if binary:
        A, B = np.round(A), np.round(B)
    box = box_of()._replace(upper=np.full((1, RANK), 1.0 if binary else np.inf))
    rule = box, 0.0, binary, 2, np.arange(DIM)
    (new, left), (loss,) = of.weighted_median(rows, A, Others(B), *rule)
    (other, expected), _ = of.weighted_median(rows_of(X, None, total), A, Others(B), *rule)
    assert loss == pytest.approx(np.sum(total * np.abs(X - new @ B.T)), rel=1e-10)
    assert np.allclose(new, other, atol=1e-10)
    assert np.array_equal(left, expected)


@pytest.mark.parametrize("together", [False, True])
def test_smoothed_differences_leave_missing_entries_out(together):
    for kind in ("some, missing", "some, weighted, missing"):
        rows, X, total, A, B = setting(kind, 1.0)
        rule = box_of(), 0.1, together, np.full(DIM, 0.2)
        ((new,), ()), ((other,), ()) = (
            of.smooth_l1(given, A, Others(B), *rule) for given in (rows, rows_of(X, None, total))
        )
        assert np.allclose(new, other, atol=1e-10)


# -- sums of X ---------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_stored_numbers(dtype):
    X = np.random.default_rng(5).normal(size=(DIM, OTHER)).astype(dtype)
    X[:, 3] = X[2] = 0
    rows = rows_of(X, None)._replace(weights=np.zeros(0, dtype))
    for beta in (0, 1, 2, 1.5):
        expected = np.where(X != 0, np.abs(np.where(X != 0, X, 1.0)).astype(float) ** beta, 0.0).sum(axis=1)
        (sums,), () = of.power_sums(rows, beta)
        assert np.allclose(sums, expected, rtol=1e-12)
    values = X.ravel()
    for given in (values, np.abs(values), -np.abs(values)):
        *exact, absolute, squares = of.statistics(given)
        assert exact == [given[given != 0].min(), given.max(), np.count_nonzero(given)]
        assert absolute == pytest.approx(np.abs(given.astype(float)).sum(), rel=1e-12)
        assert squares == pytest.approx(np.square(given.astype(float)).sum(), rel=1e-12)


@pytest.mark.parametrize("listed", [None, "some"])
def test_residuals_are_those_of_the_listed_entries(listed):
    rng = np.random.default_rng(6)
    X, A, B = (rng.normal(size=shape) for shape in ((DIM, OTHER), (DIM, RANK), (OTHER, RANK)))
    chosen = rng.uniform(size=X.shape) < 0.5 if listed else np.ones(X.shape, bool)
    found = of.residuals(rows_of(X, chosen if listed else None), A, Others(B))
    assert np.allclose(found, (X - A @ B.T)[chosen], atol=1e-12)
