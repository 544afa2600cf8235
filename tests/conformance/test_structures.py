"""Every structure: its prox is optimal, its set is met, its gains are what a search finds."""

import numpy as np
import pytest

from .tables import RANK, SHAPE, STRUCTURES

structures = pytest.mark.parametrize("stated", STRUCTURES.values(), ids=STRUCTURES)
TALL = (SHAPE[1], RANK)
POINTS = [
    *np.random.default_rng(1).normal(size=(5, *TALL)),
    np.zeros(TALL),
    np.full(TALL, 3.0),
    -np.ones(TALL),
]


def bound(stated):
    return stated.bind(TALL, transposed=True, name="H")


@structures
@pytest.mark.parametrize("step", [0.5, 2.0])
def test_prox_beats_feasible_neighbours(stated, step):
    structure, rng = bound(stated), np.random.default_rng(0)

    def value(B, A):
        return structure.value(B) + np.square(B - A).sum() / (2 * step)

    for A in POINTS:
        B = structure.prox(A, step)
        best = value(B, A)
        assert structure.violation(B) == 0
        for size in (1e-3, 0.1, 1.0):
            for E in rng.normal(scale=size, size=(20, *TALL)):
                neighbour = structure.prox(B + E, 0.0)  # feasible
                assert best <= value(neighbour, A) + 1e-12


@structures
def test_projection_is_idempotent_and_nearest(stated):
    structure, rng = bound(stated), np.random.default_rng(0)
    for A in POINTS:
        B = structure.prox(A, 0.0)
        assert structure.violation(B) == 0
        assert np.array_equal(structure.prox(B, 0.0), B)
        for E in rng.normal(size=(50, *TALL)):
            other = structure.prox(B + E, 0.0)
            assert np.linalg.norm(A - B) <= np.linalg.norm(A - other) + 1e-12


@structures
@pytest.mark.parametrize("height", [1, TALL[0]], ids=["one row for all", "each entry its own"])
def test_gains_agree_with_a_search(stated, height):
    """Column gains equal the best found by trying every entry on a fine grid."""
    structure, rng = bound(stated), np.random.default_rng(2)
    A = structure.prox(rng.normal(size=TALL), 0.0)
    G, d = rng.normal(size=TALL), rng.uniform(0.5, 2, size=(height, RANK))
    grid = np.linspace(-6, 6, 48001)  # the minimiser of each entry lies well within
    expected = np.zeros(RANK)
    _, lower, upper = structure.elementwise.box(A)
    lower, upper = (np.broadcast_to(b, TALL) for b in (lower, upper))
    for i, k in np.ndindex(TALL):
        low, high = lower[i, k], upper[i, k]
        x = np.array([low, high]) if structure.elementwise.binary else np.clip(grid, low, high)
        value = (
            G[i, k] * (x - A[i, k]) + d[i % height, k] / 2 * (x - A[i, k]) ** 2 + structure.elementwise.l1 * np.abs(x)
        )
        expected[k] += structure.elementwise.l1 * abs(A[i, k]) - value.min()
    assert structure.gains(A, G, d) == pytest.approx(expected, abs=1e-5)
    assert structure.elementwise.row_gains(A, G, d).max() <= expected.max() + 1e-5


@structures
def test_gains_vanish_only_at_the_best_point(stated):
    structure, rng = bound(stated), np.random.default_rng(3)
    A, G = structure.prox(rng.normal(size=TALL), 0.0), rng.normal(size=TALL)
    d = np.ones((1, RANK))
    best = structure.elementwise.prox(A - G, 1.0) if not structure.ridge else None
    if best is not None:
        assert structure.gains(best, G + (best - A), d) == pytest.approx(0, abs=1e-12)
    if not structure.fixed:
        assert structure.gains(A, G, d).max() > 1e-3


@structures
def test_value_counts_penalties_without_hidden_factors(stated):
    structure = bound(stated)
    A = POINTS[0]
    e = structure.elementwise
    assert structure.value(A) == pytest.approx(e.l1 * np.abs(A).sum() + e.l2 / 2 * np.square(A).sum())


@structures
def test_violation_is_the_largest_excess(stated):
    structure = bound(stated)
    A = structure.prox(POINTS[0], 0.0)
    _, lower, _ = structure.elementwise.box(A)
    lower = np.broadcast_to(lower, TALL)
    if np.isfinite(lower).any():
        i, k = np.argwhere(np.isfinite(lower))[0]
        A[i, k] = lower[i, k] - 0.25
        assert structure.violation(A) == pytest.approx(0.25)


@structures
def test_units_are_followed(stated):
    """g(A) / 2**4 is the rescaled structure's value of A / 2**2, and feasible sets match."""
    structure = bound(stated)
    scaled = structure.rescaled(2, 4)
    for A in POINTS:
        B = structure.prox(A, 0.0)
        assert scaled.value(B / 4) == pytest.approx(structure.value(B) / 16)
        assert scaled.violation(B / 4) == 0
        assert np.allclose(scaled.prox(A / 4, 0.0) * 4, B)


@structures
def test_float32_stays_float32(stated):
    A = POINTS[0].astype(np.float32)
    B = bound(stated).prox(A, 0.5)
    assert B.dtype == np.float32
    assert bound(stated).violation(B) == 0


@structures
def test_repr_is_a_sentence_fit_for_messages(stated):
    assert len(repr(stated)) < 120
    assert "array(" not in repr(stated)


def test_equal_to_none():
    """Penalties of weight 0 are no penalties."""
    from partwise import structures as s

    assert repr(s.Elastic(0, 0)) == repr(s.Free())
    assert (s.L1(0) & s.NonNegative()).bind(TALL, True, "H").scale_free
