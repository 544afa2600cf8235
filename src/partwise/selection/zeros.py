"""Zeros of sparse data, a few for all: those that are expected to be more are drawn more often, and count less."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..data.observed import is_among

BY_SUMS = 0.9  # of the draws: where large entries are expected; the others are drawn from all zeros alike
FEWEST = 20_000  # drawn, where there are so many


def drawn_zeros(
    shape: tuple[int, ...], sums: Sequence[np.ndarray], stored: np.ndarray, count: int, *, seed: int, most: float
) -> tuple[np.ndarray, np.ndarray]:
    """Places that are not stored, in order, and what each counts, so that all together stand for all zeros.

    Places are drawn `count` times, by a mixture p of the product of `sums` along each mode, over their total, and of
    equal chances. A place is among them with probability `1 - exp(-count p)`, at most `most`, and counts one over that
    (Horvitz and Thompson 1952), so that a sum over zeros is met on average. A model is near to the product of sums, and
    what it adds up to over zeros is then known to one part in the root of `count`.
    """
    rng, n_entries = np.random.default_rng(seed), math.prod(shape)
    if most == 1 and n_entries - len(stored) <= count:  # they stand for themselves
        every = np.setdiff1d(np.arange(n_entries), stored, assume_unique=True)
        return every, np.ones(len(every))
    shares = [np.maximum(s, 0) / max(float(np.maximum(s, 0).sum()), 1e-300) for s in sums]
    by_sums = round(BY_SUMS * count) if all(share.any() for share in shares) else 0
    indices = [np.searchsorted(np.cumsum(s), rng.uniform(size=by_sums) * s.sum(), side="right") for s in shares]
    inside = [np.minimum(index, dim - 1) for index, dim in zip(indices, shape, strict=True)]
    alike = rng.integers(n_entries, size=count - by_sums)
    places = np.unique(np.concatenate([np.ravel_multi_index(inside, shape), alike]))
    places = places[~is_among(stored, places)]
    chance = np.full(len(places), (count - by_sums) / n_entries)
    if by_sums:
        product = np.prod([s[i] for s, i in zip(shares, np.unravel_index(places, shape), strict=True)], axis=0)
        chance += by_sums * product
    among = -np.expm1(-chance)
    kept = rng.uniform(size=len(places)) * among <= most
    return places[kept], 1 / np.minimum(among[kept], most)
