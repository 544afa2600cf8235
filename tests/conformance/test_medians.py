"""Weighted medians against brute force over all breakpoints."""

import numpy as np
import pytest
from scipy import sparse

from partwise import kernels
from partwise.data import as_data
from partwise.kernels import threads
from partwise.kernels.cpu.selection import select
from partwise.kernels.records import Others
from partwise.losses import L1

from ..covering import PAIRS

median = kernels.of(np.zeros(1)).weighted_median


def sorted_answer(t, h, need, l2):
    """The smallest s with `2 sum_{t <= s} h + l2 s >= need`, by sorting."""
    order = np.argsort(t)
    below, last = 0.0, 0.0
    for value, mass in zip(t[order], h[order], strict=True):
        if l2 > 0 and 2 * below + l2 * value >= need:
            return max((need - 2 * below) / l2, last)
        below, last = below + mass, value
        if 2 * below + l2 * value >= need:
            return value
    return (need - 2 * below) / l2 if l2 > 0 else last


@PAIRS
@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("rounds", [64, 2, 0], ids=["partitions", "then a sort", "a sort"])
@pytest.mark.parametrize("values", ["spread", "ties", "rising", "equal"])
def test_selection_is_that_of_a_sort(l2, values, rounds):
    rng = np.random.default_rng(0)
    for _ in range(1000):
        n = rng.integers(1, 40)
        t = {
            "spread": lambda n=n: rng.uniform(size=n),
            "ties": lambda n=n: rng.integers(0, 4, size=n).astype(float),
            "rising": lambda n=n: np.arange(n) / n,
            "equal": lambda n=n: np.full(n, 0.3),
        }[values]()
        h = rng.integers(1, 9, size=n).astype(float)
        need = float(rng.integers(1, 2 * int(h.sum()) + 1)) if rng.uniform() < 0.5 else rng.uniform(0, 2 * h.sum())
        assert select(t.copy(), h.copy(), n, need, l2, rounds) == pytest.approx(
            sorted_answer(t, h, need, l2), rel=1e-12
        )


def value_of(a, x, h, cost, l2):
    return np.abs(x - np.multiply.outer(a, h)).sum(axis=-1) + cost * np.abs(a) + l2 / 2 * np.square(a)


def brute_force(x, h, cost, l2, low, high):
    """The least value over [low, high]: at a breakpoint, a bound, or where the slope is 0 between two of them."""
    points = np.unique([0.0, *(x[h != 0] / h[h != 0])])
    candidates = [end for end in (low, high) if np.isfinite(end)] + list(points)
    if l2 > 0:
        for middle in [points[0] - 1, *(points[1:] + points[:-1]) / 2, points[-1] + 1]:
            slope = -(np.sign(x - middle * h) * h).sum() + cost * np.sign(middle)
            candidates.append(-slope / l2)
    return value_of(np.clip(candidates, low, high), x, h, cost, l2).min()


def settings():
    """Rows with ties, zeros among the weights, negative numbers, bounds and penalties."""
    rng = np.random.default_rng(1)
    for case in range(3000):
        n, signed, whole = rng.integers(1, 12), case % 3 == 0, case % 2 == 0
        x = rng.integers(-3, 8, size=n).astype(float) if whole else rng.normal(size=n)
        h = rng.integers(0, 4, size=n).astype(float) if whole else rng.uniform(size=n) * (rng.uniform(size=n) < 0.7)
        h *= rng.choice([-1, 1], size=n) if signed else 1
        l1, l2 = rng.choice([0.0, 1.0, 2.5]), rng.choice([0.0, 0.0, 0.4])
        low, high = (-np.inf, np.inf) if signed else (0.0, np.inf)
        if rng.uniform() < 0.3:
            low, high = sorted(rng.integers(-1 if signed else 0, 4, size=2) / 2)
        start = np.clip(rng.choice([0.0, 1.0, rng.uniform(-2, 2)]), low, high)
        yield x, h, l1, l2, low, high, start


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_an_update_is_the_best_of_all_breakpoints(part):
    for x, h, l1, l2, low, high, start in list(settings())[part::5]:
        box = l1, np.full((1, 1), low), np.full((1, 1), high)
        rows = next(as_data(x[None]).rows(0))
        (new, _), (loss,) = median(rows, np.full((1, 1), start), Others(h[:, None]), box, l2, False, 1, np.arange(1))
        a = new[0, 0]
        assert low <= a <= high
        best = brute_force(x, h, l1, l2, low, high)
        assert value_of(a, x, h, l1, l2) == pytest.approx(best, abs=1e-12)
        assert loss == pytest.approx(np.abs(x - a * h).sum(), abs=1e-12)
        (_, n_suboptimal), _ = median(rows, new, Others(h[:, None]), box, l2, False, 0, np.arange(1))
        assert n_suboptimal[0] == 0


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("zero_weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pieces", [1, 5])
def test_zeros_need_not_be_listed(zero_weight, binary, dtype, pieces, monkeypatch):
    """A sweep over sparse rows is the plain algorithm on all entries, with weights."""
    monkeypatch.setattr(threads, "pieces", lambda *_: pieces)
    rng = np.random.default_rng(2)
    X = (rng.integers(1, 5, size=(20, 30)) * (rng.uniform(size=(20, 30)) < 0.4)).astype(dtype)
    X[3] = X[:, 5] = 0
    draw = (lambda n: rng.integers(0, 2, size=(n, 4))) if binary else (lambda n: rng.uniform(size=(n, 4)))
    A, B = (draw(n).astype(dtype) for n in X.shape)
    top = 1.0 if binary else np.inf
    box = dtype(0.0), np.zeros((1, 4), dtype), np.full((1, 4), top, dtype)
    rows = next(as_data(sparse.csr_array(X)).rows(0))._replace(unlisted=zero_weight)
    (new, n_suboptimal), (loss,) = median(rows, A, Others(B), box, 0.0, binary, 1, np.arange(20))
    weights = np.where(X == 0, zero_weight, 1.0)
    expected, moved = A.astype(float), np.zeros(20, int)
    for i in range(20):
        for k in range(4):
            others = X[i] - np.delete(expected[i], k) @ np.delete(B, k, axis=1).T.astype(float)
            y, h = others * weights[i], B[:, k] * weights[i]
            best = (
                brute_force(y, h, 0.0, 0.0, 0.0, top)
                if not binary
                else min(value_of(0.0, y, h, 0, 0), value_of(1.0, y, h, 0, 0))
            )
            moved[i] += value_of(expected[i, k], y, h, 0.0, 0.0) > best + 1e-5
            expected[i, k] = new[i, k]
            assert value_of(expected[i, k], y, h, 0.0, 0.0) == pytest.approx(best, abs=1e-5)
    assert np.array_equal(moved, n_suboptimal)
    assert loss == pytest.approx(L1(zero_weight).value(X, new @ B.T), rel=1e-5)
    assert moved.sum() > 0
    if binary:
        assert set(np.unique(new)) <= {0, 1}


def test_only_the_rows_asked_for_move():
    rng = np.random.default_rng(3)
    X, A, B = rng.uniform(size=(6, 9)), rng.uniform(size=(6, 2)), rng.uniform(size=(9, 2))
    box = 0.0, np.zeros((1, 2)), np.full((1, 2), np.inf)
    (new, _), _ = median(next(as_data(X).rows(0)), A, Others(B), box, 0.0, False, 1, np.array([1, 4]))
    assert np.array_equal(new[[0, 2, 3, 5]], A[[0, 2, 3, 5]])
    assert (new[[1, 4]] != A[[1, 4]]).any()
