"""Supports for several structures at once: few enough nonzeros for some, enough for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from scipy import sparse

LARGE = 5000  # entries, above which integer programs take too long
SEARCH = {"node_limit": 1000}  # programs that need more are not worth it
Limit = tuple[int, list[int], int]  # see `Structure.limits`


@dataclass
class Mask:
    """Chosen places, how many items and components have, and how many they need."""

    chosen: np.ndarray
    counts: tuple[np.ndarray, np.ndarray]
    needed: tuple[np.ndarray, np.ndarray]

    def change(self, place: tuple[int, int], value: bool) -> None:
        self.chosen[place] = value
        for count, vector in zip(self.counts, place, strict=True):
            count[vector] += 1 if value else -1

    def lacks(self, side: int) -> np.ndarray:
        return self.counts[side] < self.needed[side]

    def spares(self, side: int) -> np.ndarray:
        return self.counts[side] > self.needed[side]


def exchanged_places(
    chosen: np.ndarray, scores: np.ndarray, limits: Sequence[Limit], needed: tuple
) -> np.ndarray | None:
    """The mask with more places for items and components that have fewer than `needed`: free ones, or those of others
    that have more than they need, in the order of what is gained. None where these are not enough."""
    least = np.broadcast_to(needed[0], len(chosen)), np.broadcast_to(needed[1], chosen.shape[1])
    mask = Mask(chosen.copy(), (chosen.sum(axis=1), chosen.sum(axis=0)), least)
    for side in (0, 1):  # items, components
        last = np.min(scores, axis=side, keepdims=True, where=chosen, initial=np.inf)  # it may have to give way
        gains = scores - np.where(np.isinf(last), 0, last)
        for vector in np.flatnonzero(mask.lacks(side)).tolist():
            gain = gains[:, vector] if side else gains[vector]
            for other in np.argsort(-gain, kind="stable").tolist():
                if mask.counts[side][vector] >= least[side][vector] or gain[other] == -np.inf:
                    break
                exchange(mask, (other, vector) if side else (vector, other), scores, limits)
    return None if mask.lacks(0).any() or mask.lacks(1).any() else mask.chosen


def exchange(mask: Mask, place: tuple[int, int], scores: np.ndarray, limits: Sequence[Limit]) -> None:
    """Choose a place; where a limit is reached, for the lowest score that it covers and can be given up, if any."""
    item, k = place
    row, column = mask.chosen[item], mask.counts[1][k]
    reached = [
        (axis, some)
        for axis, some, count in limits
        if k in some and (np.count_nonzero(row[some]) if axis else column) >= count
    ]
    if mask.chosen[place] or len({axis for axis, _ in reached}) > 1:
        return
    if reached:
        axis = reached[0][0]
        spare = row & mask.spares(1) if axis else mask.chosen[:, k] & mask.spares(0)
        for _, some in reached if axis else []:
            spare &= np.isin(np.arange(len(spare)), some)
        if not spare.any():
            return
        worst = int(np.argmin(np.where(spare, scores[item] if axis else scores[:, k], np.inf)))
        mask.change((item, worst) if axis else (worst, k), False)
    mask.change(place, True)


def best_places(scores: np.ndarray, limits: Sequence[Limit], needed: tuple) -> np.ndarray | None:
    """The mask z with the largest `sum z scores`, at most as many nonzeros as the limits say, and at least `needed` in
    each item and in each component; 0 where a score is -inf. None where there is no such mask.

    An integer program, and in most cases no harder than a linear one: limits on items and on components make a network.
    """
    if scores.size > LARGE:
        return None
    index = np.arange(scores.size).reshape(scores.shape)
    sums = [(index[:, some] if axis else index[:, some].T, 1.0, np.array(count)) for axis, some, count in limits]
    sums += [(rows, -1.0, -np.asarray(least)) for rows, least in zip((index, index.T), needed, strict=True)]
    rows = sparse.vstack([sign * sums_over(places, scores.size) for places, sign, _ in sums])
    most = np.concatenate([np.broadcast_to(bound, len(places)) for places, _, bound in sums])
    return solved(scores, scipy.optimize.LinearConstraint(rows, ub=most))


def regular_places(scores: np.ndarray, axis: int, k: int) -> np.ndarray | None:
    """The mask z with the largest `sum z scores` where each vector along an axis has k places or none, and each of
    those across the same number, not 0: where equal nonzeros have equal sums in both directions."""
    if scores.size > LARGE:
        return None
    index = np.arange(scores.size).reshape(scores.shape)
    along, across = (index, index.T) if axis else (index.T, index)
    taken = sparse.hstack(
        [sums_over(along, scores.size), -k * sparse.eye_array(len(along)), sparse.csr_array((len(along), 1))]
    )
    alike = sparse.hstack(
        [sums_over(across, scores.size), sparse.csr_array((len(across), len(along))), -np.ones((len(across), 1))]
    )
    return solved(scores, scipy.optimize.LinearConstraint(sparse.vstack([taken, alike]), 0, 0), len(along))


def sums_over(places: np.ndarray, size: int) -> sparse.csr_array:
    """The matrix that adds up the numbers in these places, one sum for each row."""
    ends = np.arange(len(places) + 1) * places.shape[1]
    return sparse.csr_array((np.ones(places.size), places.ravel(), ends), (len(places), size))


def solved(scores: np.ndarray, constraint: scipy.optimize.LinearConstraint, n_taken: int = 0) -> np.ndarray | None:
    """Beside the mask there may be variables that say which of so many vectors are taken, and one for how often."""
    free = np.isfinite(scores).ravel()
    gains = np.where(free, scores.ravel(), 0) / max(np.max(scores), np.finfo(float).tiny)
    more = n_taken + (n_taken > 0)
    lower, upper = np.zeros(free.size + more), np.concatenate([free, np.ones(n_taken), np.full(more - n_taken, np.inf)])
    lower[free.size + n_taken :] = 1
    answer = scipy.optimize.milp(
        -np.pad(gains, (0, more)),
        integrality=1,
        bounds=scipy.optimize.Bounds(lower, upper),
        constraints=constraint,
        options=SEARCH,
    )
    return None if answer.x is None else answer.x[: free.size].reshape(scores.shape) > 0.5
