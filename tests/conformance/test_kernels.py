"""Compiled updates against the same algorithms written out with NumPy."""

import numpy as np
import pytest

from partwise import kernels

RNG = np.random.default_rng(5)
DIM, RANK = 200, 6


def setting(l1=0.0, lower=0.0, upper=np.inf, dtype=np.float64):
    B = RNG.uniform(size=(30, RANK))
    gram = (B.T @ B).astype(dtype)
    A = np.clip(RNG.uniform(size=(DIM, RANK)), lower, upper).astype(dtype)
    cross = (A @ gram + 3 * RNG.normal(size=A.shape)).astype(dtype)
    box = dtype(l1), np.full((1, RANK), lower, dtype), np.full((1, RANK), upper, dtype)
    return A, A @ gram - cross, gram, cross, box


def best(a, g, d, l1, lower, upper):
    u = a - g / d
    return np.clip(np.sign(u) * np.maximum(np.abs(u) - l1 / d, 0), lower, upper)


BOXES = [
    {},
    {"l1": 0.5},
    {"upper": 0.6},
    {"lower": -np.inf, "l1": 0.7},
    {"lower": 0.2, "upper": 0.9, "l1": 0.1},
]
cases = pytest.mark.parametrize("box", BOXES, ids=str)


@cases
def test_hals_is_cyclic_coordinate_descent(box):
    A, G, gram, cross, full = setting(**box)
    expected = A.copy()
    for _ in range(3):
        for k in [2, 0, 1, 5, 4, 3]:
            g = expected @ gram[k] - cross[:, k]
            expected[:, k] = best(expected[:, k], g, gram[k, k], full[0], full[1][0, k], full[2][0, k])
    kernels.of(A).hals(A, cross, gram, full, np.array([2, 0, 1, 5, 4, 3]), (3, 0.0), np.arange(DIM))
    assert np.allclose(A, expected, atol=1e-12)
    assert np.allclose(G, A @ gram - cross, atol=1e-10)


@cases
def test_gcd_takes_the_best_coordinate_of_each_row(box):
    A, G, gram, cross, full = setting(**box)
    l1, lower, upper = full
    expected, d = A.copy(), np.diag(gram)

    def candidates(a, i):
        g = a @ gram - cross[i]
        x = best(a, g, d, l1, lower[0], upper[0])
        s = x - a
        return x, -s * (g + d * s / 2) - l1 * (np.abs(x) - np.abs(a))

    limit = 1e-3 * max(candidates(expected[i], i)[1].max() for i in range(DIM))
    for i in range(DIM):
        for _ in range(500):
            x, gain = candidates(expected[i], i)
            if gain.max() <= limit:
                break
            expected[i, gain.argmax()] = x[gain.argmax()]
    kernels.of(A).gcd(A, cross, gram, full, np.arange(DIM), (500, 1e-3), shared=True)
    assert np.allclose(A, expected, atol=1e-10)
    assert np.allclose(G, A @ gram - cross, atol=1e-9)


def test_gcd_budget_is_kept():
    A, G, gram, _, full = setting()
    before = A.copy()
    kernels.of(A).gcd(A, cross, gram, full, np.arange(DIM), (2, 0.0), shared=True)
    assert (before != A).sum(axis=1).max() <= 2


def test_mu_is_the_multiplicative_update():
    A, _, gram, cross, full = setting(l1=0.3)
    cross = np.abs(cross)
    expected = A * cross / (A @ gram + 0.3)
    kernels.of(A).mu(A, A @ gram, cross, full, np.arange(DIM))
    assert np.allclose(A, expected)


@pytest.mark.parametrize("name", ["hals", "gcd", "mu"])
def test_only_the_rows_asked_for_move(name):
    A, G, gram, cross, full = setting()
    before, rows = A.copy(), np.array([3, 50, 199])
    call = {
        "hals": lambda k: k.hals(A, cross, gram, full, np.arange(RANK), (2, 0.0), rows),
        "gcd": lambda k: k.gcd(A, cross, gram, full, rows, (50, 1e-3), shared=False),
        "mu": lambda k: k.mu(A, A @ gram, np.abs(cross), full, rows),
    }
    call[name](kernels.of(A))
    assert set(np.flatnonzero((before != A).any(axis=1))) == set(rows)


def test_a_dead_partner_leaves_only_the_penalty():
    """gram[k, k] = 0: without a penalty the entry stays, with one it goes to the bound nearest to 0."""
    for l1, expected in ((0.0, None), (0.5, 0.2)):
        A, G, gram, _, full = setting(l1=l1, lower=0.2)
        gram[2, :] = gram[:, 2] = 0
        G[:, 2] = 0
        before = A[:, 2].copy()
        kernels.of(A).hals(A, cross, gram, full, np.arange(RANK), (1, 0.0), np.arange(DIM))
        assert np.array_equal(A[:, 2], before if expected is None else np.full(DIM, expected))


def test_bounds_are_met_exactly_in_float32():
    A, G, gram, _, full = setting(upper=0.3, dtype=np.float32)
    kernels.of(A).hals(A, cross, gram, full, np.arange(RANK), (5, 0.0), np.arange(DIM))
    assert A.max() <= np.float32(0.3)
    assert A.dtype == np.float32


def test_unknown_arrays_are_named():
    with pytest.raises(TypeError, match="no kernels for arrays of type list"):
        kernels.of([1.0])
