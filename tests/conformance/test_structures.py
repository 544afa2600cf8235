"""Every structure: its prox is optimal, its set is met, its gains are what a search finds."""

import dataclasses
import inspect

import numpy as np
import pytest

from partwise import registry
from partwise.structures import Box, Structure

from ..covering import EACH, PAIRS
from .tables import RANK, SHAPE, STRUCTURES, TIED

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


@EACH
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


@pytest.mark.slow
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


def numbers(structure):
    """`(field, number or array)` of a structure and of those it is made of: bounds, sizes, weights."""
    for field in dataclasses.fields(structure):
        for value in flat(getattr(structure, field.name)):
            if isinstance(value, Structure):
                yield from numbers(value)
            elif isinstance(value, float | np.ndarray) and field.name not in ("sparsity", "budget", "weights"):
                yield field.name, np.asarray(value, dtype=np.float64)


def flat(value):
    return [item for part in value for item in flat(part)] if isinstance(value, tuple) else [value]


@PAIRS
@pytest.mark.parametrize("stated", (STRUCTURES | TIED).values(), ids=STRUCTURES | TIED)
@pytest.mark.parametrize("exponent", [-1000, 0, 1000])
@pytest.mark.parametrize("objective_exponent", [-6000.0, 0.0, 6000.0])
def test_extreme_units_leave_bounds_what_they_are(stated, exponent, objective_exponent):
    """Zero, finite or infinite; and bounds and sizes are what they were, back in the units of before."""
    structure = bound(stated)
    scaled = structure.rescaled(exponent, objective_exponent)
    back = scaled.rescaled(-exponent, -objective_exponent)
    for (name, before), (_, after), (_, again) in zip(*map(numbers, (structure, scaled, back)), strict=True):
        assert not np.isnan(after).any()
        assert np.array_equal(np.isinf(before), np.isinf(after))
        if name not in ("l1", "l2", "weight"):
            assert np.array_equal(before == 0, after == 0)
            assert np.array_equal(before, again)
    assert len(repr(scaled)) < 150


@pytest.mark.parametrize(
    "stated", [Box(1e-300, 1e300), Box(1e-300, 1e300) & TIED["monotone"]], ids=["alone", "combined"]
)
def test_bounds_that_would_be_no_numbers_are_cut_off(stated):
    for exponent in (-1000, 1000):
        scaled = bound(stated).rescaled(exponent, 0.0)
        entries = getattr(scaled, "entries", scaled)
        assert 0 < entries.lower < entries.upper < np.inf


PARAMETERS = {
    "orthogonal_to": ["component", "nonzeros", "method"],
    "orthogonal": [],
    "monotone": ["decreasing"],
    "unimodal": [],
    "smooth": ["weight"],
    "sparse": ["k", "per"],
    "equal_nonzeros": ["k", "per"],
    "hoyer": ["s", "per"],
    "unit_norm": ["per"],
    "simplex": ["per"],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_constructors_take_what_a_user_may_say(name):
    """And nothing that only combinations use, so that a message may list the parameters."""
    assert list(inspect.signature(registry.STRUCTURES[name]).parameters) == PARAMETERS[name]


@pytest.mark.slow
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
