"""Some of complete data, as data of their own: rows along every mode, or a share of every count."""

from __future__ import annotations

from functools import reduce

import numpy as np

from .base import Data
from .dense import Dense
from .hiding import AllBut, Among, Countable, Grid


def part(data: Data, grid: Grid) -> Data:
    """The entries in some rows along every mode."""
    return reduce(lambda some, mode: some.select(mode, grid.kept[mode]), range(len(data.shape)), data)


def stored(data: Data, grid: Grid) -> Countable:
    """The entries in these rows that are stored: all of an array, and the listed ones of sparse data."""
    if data.sparse:
        return Among(grid.own_shape, grid.into(data.places()))
    return AllBut(grid.own_shape, np.empty(0, np.int64))


def thinned(data: Data, rng: np.random.Generator) -> tuple[Data, Data]:
    """Counts in two halves: each of what was counted goes to either by the toss of a coin, however X is stored."""
    if isinstance(data, Dense):
        first = tossed(data.array, rng)
        return Dense.of(first), Dense.of(data.array - first)
    (values,) = data.listed()
    first = tossed(values, rng)
    return data.with_values(first).compressed(), data.with_values(values - first).compressed()


def tossed(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`Binomial(counts, 1/2)`; zeros take no random number."""
    return rng.binomial(counts.astype(np.int64), 0.5).astype(counts.dtype)
