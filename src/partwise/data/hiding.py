"""Entries of X that may be hidden, and X without some of them, however it is stored.

An entry is known by its place, counted through X as an array, the last mode fastest.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from .base import Data
from .dense import Dense
from .observed import Observed, found, is_among, listing, merged, of_weighted_array
from .weighted import Weighted


@dataclass(frozen=True)
class Countable(ABC):
    """The entries that count, in order."""

    shape: tuple[int, ...]
    listed: np.ndarray  # places, in order

    @property
    @abstractmethod
    def n(self) -> int:
        """How many there are."""

    @abstractmethod
    def at(self, numbers: np.ndarray) -> np.ndarray:
        """The places of entries by their number among those that count."""

    @abstractmethod
    def tally(self, cuts: Sequence[np.ndarray]) -> np.ndarray:
        """How many there are in each cell of a grid; `cuts` are where runs along each mode begin, and the end."""

    @abstractmethod
    def within(self, cuts: Sequence[np.ndarray], cells: np.ndarray) -> np.ndarray:
        """The places of those in some of the cells, these counted as entries are."""

    def by_row(self, mode: int) -> np.ndarray:
        """How many there are in each row along a mode, (dim,)."""
        return self.tally([np.arange(d + 1) if m == mode else np.array([0, d]) for m, d in enumerate(self.shape)])

    def cells_of(self, cuts: Sequence[np.ndarray]) -> np.ndarray:
        """Which cell each listed place is in."""
        indices = np.unravel_index(self.listed, self.shape)
        runs = [np.searchsorted(c, i, side="right") - 1 for c, i in zip(cuts, indices, strict=True)]
        return np.ravel_multi_index(runs, [len(c) - 1 for c in cuts])

    def listed_tally(self, cuts: Sequence[np.ndarray]) -> np.ndarray:
        return np.bincount(self.cells_of(cuts), minlength=math.prod(len(c) - 1 for c in cuts))


class Among(Countable):
    """Those listed, and no other."""

    @property
    def n(self):
        return len(self.listed)

    def at(self, numbers):
        return self.listed[numbers]

    def tally(self, cuts):
        return self.listed_tally(cuts)

    def within(self, cuts, cells):
        return self.listed[np.isin(self.cells_of(cuts), cells)]


class AllBut(Countable):
    """All but those listed."""

    @property
    def n(self):
        return math.prod(self.shape) - len(self.listed)

    def at(self, numbers):
        before = self.listed - np.arange(len(self.listed))  # how many that count come before each listed one
        return numbers + np.searchsorted(before, numbers, side="right")

    def tally(self, cuts):
        return reduce(np.multiply.outer, map(np.diff, cuts)).ravel() - self.listed_tally(cuts)

    def within(self, cuts, cells):
        runs = np.unravel_index(cells, [len(c) - 1 for c in cuts])
        ranges = ([c[r : r + 2] for c, r in zip(cuts, cell, strict=True)] for cell in zip(*runs, strict=True))
        places = np.sort(np.concatenate([self.cell(ends) for ends in ranges]), kind="stable")
        return places[~is_among(self.listed, places)]

    def cell(self, ranges: Sequence[np.ndarray]) -> np.ndarray:
        """All places in one cell."""
        indices = np.meshgrid(*(np.arange(*ends) for ends in ranges), indexing="ij", sparse=True)
        steps = [math.prod(self.shape[m + 1 :]) for m in range(len(self.shape))]
        return np.ravel(sum(i * step for i, step in zip(indices, steps, strict=True)))


@dataclass(frozen=True)
class Grid:
    """The rows along each mode that count, in the numbering of X."""

    shape: tuple[int, ...]  # of X
    kept: tuple[np.ndarray, ...]  # (n_kept,) for each mode

    @classmethod
    def of(cls, given: Observed) -> Grid:
        vectors = given.vectors or (None,) * len(given.data.shape)
        pairs = zip(vectors, given.data.shape, strict=True)
        return cls(given.data.shape, tuple(np.arange(d) if v is None else np.flatnonzero(v) for v, d in pairs))

    @property
    def own_shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.kept))

    def into(self, places: np.ndarray) -> np.ndarray:
        """Places in X as places in an array of these rows alone, others left out."""
        if self.own_shape == self.shape:
            return places
        indices = np.unravel_index(places, self.shape)
        inside = np.all([np.isin(i, k) for i, k in zip(indices, self.kept, strict=True)], axis=0)
        return np.ravel_multi_index(
            [np.searchsorted(k, i[inside]) for i, k in zip(indices, self.kept, strict=True)], self.own_shape
        )

    def out_of(self, places: np.ndarray) -> np.ndarray:
        """The same back."""
        if self.own_shape == self.shape:
            return places
        indices = np.unravel_index(places, self.own_shape)
        return np.ravel_multi_index([k[i] for i, k in zip(indices, self.kept, strict=True)], self.shape)


def countable(data: Data, grid: Grid) -> Countable:
    """The entries of X that count, in an array of the rows that do."""
    if not isinstance(data, Weighted):
        return AllBut(grid.own_shape, np.empty(0, np.int64))
    if isinstance(data.excess, Dense):
        return AllBut(grid.own_shape, grid.into(np.flatnonzero(data.excess.array == 0)))
    places, _, weights = listed(data)
    if data.unlisted:
        return AllBut(grid.own_shape, grid.into(places[weights == 0]))
    return Among(grid.own_shape, grid.into(places[weights > 0]))


def listed(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of the listed entries of sparse data, in order, what is stored there, and their weights."""
    inner = data.entries if isinstance(data, Weighted) else data
    return inner.places(), *data.listed_pair()


def dense_weights(data: Data) -> np.ndarray:
    """What the entries of an array count."""
    if isinstance(data, Weighted) and isinstance(data.excess, Dense):
        return data.excess.array
    return np.broadcast_to(data.dtype.type(1), data.shape)


def entries_at(given: Observed, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is stored at some places, in order, and what it counts, both in double precision."""
    data, vectors, _ = given
    indices = np.unravel_index(places, data.shape)
    inner = data.entries if isinstance(data, Weighted) else data
    if isinstance(inner, Dense):
        values, weights = inner.array[indices], dense_weights(data)[indices]
    else:
        known, stored, counts = listed(data)
        values, weights = found(places, known, stored), found(places, known, counts, data.unlisted)
    weights = weights.astype(np.float64)
    for vector, index in zip(vectors, indices, strict=False):
        weights = weights if vector is None else weights * vector[index]
    return values.astype(np.float64), weights


def without(data: Data, places: np.ndarray) -> Data:
    """The same data where the entries at some places, in order, are missing."""
    inner, unlisted = (data.entries if isinstance(data, Weighted) else data), data.unlisted
    if isinstance(inner, Dense):
        weights = np.empty_like(inner.array)
        weights[:] = dense_weights(data)
        weights[np.unravel_index(places, data.shape)] = 0
        return of_weighted_array(inner.array, weights)
    known, values, weights = listed(data)
    every = merged(known, places) if unlisted else known
    values, weights = found(every, known, values), found(every, known, weights, unlisted)
    weights[np.searchsorted(every, places)] = 0
    kept = slice(None) if unlisted else weights > 0
    return listing(data.shape, every[kept], values[kept], weights[kept], unlisted)
