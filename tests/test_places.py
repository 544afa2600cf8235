"""Where nonzeros may be: limits are kept, needs are met, and little is lost beside the best choice of all."""

import itertools

import numpy as np
import pytest

from partwise import structures as s
from partwise.structures.places import best_places, exchanged_places, regular_places

EVERY = [0, 1, 2]
# limits of a mask of 5 items and 3 components, and what items and components need
WANTED = {
    "one in an item": ([(1, EVERY, 1)], (0, 1)),
    "two in an item, much for the last": ([(1, EVERY, 2)], (0, np.array([1, 2, 4]))),
    "groups": ([(1, EVERY, 2), (1, [0, 1], 1)], (0, np.array([2, 2, 2]))),
    "two in a component": ([(0, EVERY, 2)], (1, 0)),
    "both": ([(1, EVERY, 1), (0, EVERY, 2)], (1, 1)),
    "apart from one": ([(1, [0, 1], 1), (1, [0, 2], 1)], (0, 2)),
}
MASKS = np.array(list(itertools.product((False, True), repeat=15))).reshape(-1, 5, 3)


def within(masks, limits, needed):
    """Which of these masks keep to the limits and to what is needed."""
    fits = np.all(masks.sum(axis=2) >= needed[0], axis=1) & np.all(masks.sum(axis=1) >= needed[1], axis=1)
    for axis, some, count in limits:
        fits &= np.all(masks[:, :, some].sum(axis=2 if axis else 1) <= count, axis=1)
    return fits


@pytest.mark.parametrize(("limits", "needed"), WANTED.values(), ids=WANTED)
def test_the_best_places_of_all(limits, needed):
    fitting = MASKS[within(MASKS, limits, needed)]
    for seed in range(4):
        scores = np.random.default_rng(seed).uniform(size=(5, 3)) + np.array([1, 0, 0])
        best = best_places(scores, limits, needed)
        assert within(best[None], limits, needed).all()
        assert scores[best].sum() == pytest.approx((scores * fitting).sum(axis=(1, 2)).max())


@pytest.mark.parametrize(("limits", "needed"), WANTED.values(), ids=WANTED)
def test_exchanges_keep_to_the_limits(limits, needed):
    """From a mask that keeps to them; most of the time they are enough."""
    start = MASKS[within(MASKS, limits, (0, 0))]
    found = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores, chosen = rng.uniform(size=(5, 3)), start[rng.integers(len(start))]
        mask = exchanged_places(chosen, scores, limits, needed)
        if mask is not None:
            found += 1
            assert within(mask[None], limits, needed).all()
    assert found > 15


def test_what_has_enough_stays():
    chosen = MASKS[-1]
    assert np.array_equal(exchanged_places(chosen, np.ones((5, 3)), [], (1, 2)), chosen)
    assert exchanged_places(chosen & False, np.ones((5, 3)), [(1, EVERY, 1)], (0, 2)) is None  # six of five
    assert best_places(np.ones((5, 3)), [(1, EVERY, 1)], (0, 2)) is None


def test_places_that_are_closed_stay_so():
    scores = np.where(np.eye(5, 3) > 0, -np.inf, 1.0)
    for mask in (
        exchanged_places(np.zeros((5, 3), dtype=bool), scores, [(1, EVERY, 1)], (0, 1)),
        best_places(scores, [(1, EVERY, 1)], (0, 1)),
        regular_places(scores, 1, 2),
    ):
        assert mask.any()
        assert not mask[np.eye(5, 3) > 0].any()


@pytest.mark.parametrize(("axis", "k"), [(1, 2), (0, 5), (0, 2)])
def test_regular_places(axis, k):
    mask = regular_places(np.random.default_rng(0).uniform(size=(5, 3) if axis else (5, 2)), axis, k)
    if (axis, k) == (0, 2):
        assert mask is None  # two components of two cannot have as many in each of five items
        return
    assert set(mask.sum(axis=axis)) <= {0, k}
    assert len(set(mask.sum(axis=1 - axis))) == 1


def test_many_items_take_little_time():
    """A component that no item would choose gets its share of 3000."""
    scores = np.random.default_rng(0).uniform(size=(3000, 10)) + (np.arange(10) == 0)
    structure = s.Sparse(1).bind(scores.shape, False, "W")
    mask = exchanged_places(structure.places(scores), scores, structure.limits(10), (0, 100))
    assert mask.sum(axis=0).min() >= 100
    assert mask.sum(axis=1).max() == 1
