"""X whose entries count differently: what is missing counts nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import IncompatibleError
from .base import Data
from .rows import BLOCK
from .summary import Summary
from .units import unit_of

FEW = 0.5  # share of entries that count less than most: from where on these are not listed apart


@dataclass(frozen=True, eq=False)
class Weighted(Data):
    """The loss of an entry counts `unlisted`, and where it is listed as much more as `excess` says."""

    entries: Data  # 0 where one counts nothing
    excess: Data  # in the same places
    unlisted: float = 0.0
    known: dict = field(default_factory=dict)  # what is known of the weights, whatever the unit or the type

    complete = False

    @property
    def sparse(self):
        return self.entries.sparse and self.unlisted != 0

    @property
    def natural(self):
        return self.entries.natural

    @property
    def stored(self):
        return self.entries.stored

    @property
    def arrays(self):
        return *self.entries.arrays, *self.excess.arrays, np.array(self.unlisted)

    def columns(self, mode):
        return self.entries.columns(mode)

    def listed(self):
        return self.entries.listed()

    @cached_property
    def own(self) -> Data:
        """The entries in this unit and type."""
        return self.entries.variant(scale=self.scale, dtype=self.dtype)

    # -- rows and products -----------------------------------------------------------------------------

    def rows(self, mode):
        for X, E in zip(self.own.rows(mode), self.excess.rows(mode), strict=True):
            yield X._replace(weights=self.in_full(E.values), unlisted=self.unlisted)

    def in_full(self, excess: np.ndarray) -> np.ndarray:
        """Weights of listed entries, in the type that is computed with."""
        excess = excess.astype(self.dtype, copy=False)
        return excess + self.dtype.type(self.unlisted) if self.unlisted else excess

    def others(self, factors, mode, rows):
        return self.own.others(factors, mode, rows)

    def cross(self, factors, mode):
        """The product with entries times their weights."""
        return self.counted.cross(factors, mode)

    @cached_property
    def counted(self) -> Data:
        """Entries times their weights, as data in which all count alike."""
        if "counted" not in self.known:
            values, weights = self.listed_pair()
            plain = np.all((weights == 0) | (weights == 1))
            self.known["counted"] = self.entries if plain else self.entries.with_values(values * weights)
        return self.known["counted"].variant(scale=self.scale, dtype=self.dtype)

    def listed_pair(self) -> tuple[np.ndarray, np.ndarray]:
        """The listed entries as they are stored, and their weights."""
        (values,), (excess,) = self.entries.listed(), self.excess.listed()
        return values, excess + excess.dtype.type(self.unlisted)

    @cached_property
    def beyond(self) -> tuple[float, Data]:
        """What most entries count, and data that list how much more, or less, others do, as `excess` does."""
        if "beyond" not in self.known:
            self.known["beyond"] = self.unlisted, self.excess
            if self.unlisted:
                self.known["beyond"] = self.unlisted, self.excess.compressed().with_unlisted(0.0)
            elif not self.entries.sparse and self.stored == np.float64:  # in float32 too much would cancel
                (excess,) = self.excess.listed()
                if np.count_nonzero(excess != 1) < FEW * excess.size:
                    self.known["beyond"] = 1.0, self.excess.with_values(excess - 1).compressed().with_unlisted(0.0)
        most, data = self.known["beyond"]
        return most, data.variant(dtype=self.dtype)

    def exactly(self):
        return self if self.unlisted else replace(self, known={**self.known, "beyond": (0.0, self.excess)})

    @property
    def plainly(self):
        return self.beyond if self.unlisted else (0.0, self.excess.variant(dtype=self.dtype))

    @cached_property
    def largest(self) -> float:
        """The largest weight."""
        if "largest" not in self.known:
            excess = max((float(values.max()) for values in self.excess.listed() if values.size), default=0.0)
            self.known["largest"] = max(excess, 0.0) + self.unlisted
        return self.known["largest"]

    # -- as a whole ------------------------------------------------------------------------------------

    @cached_property
    def summary(self):
        pairs = list(self.pieces())
        seen = [values[weights > 0] for values, weights in pairs]
        ends = [end for values in seen if values.size for end in (values.min(), values.max())]
        ends += [0.0] if self.counts_zeros else []
        lowest, highest = (float(min(ends)), float(max(ends))) if ends else (0.0, 0.0)
        unit = unit_of(max(-lowest, highest))
        absolute = squares = 0.0
        for values, weights in pairs:
            size = np.abs(values.astype(np.float64)) / unit
            absolute += float(weights @ size)
            squares += float(weights @ np.square(size))
        n_nonzeros = sum(int(np.count_nonzero(values)) for values in seen)
        n_highest = sum(int(np.count_nonzero(values == highest)) for values in seen)
        one_value = n_nonzeros == (n_highest if highest else 0)
        return Summary(lowest, highest, n_nonzeros, one_value, unit, absolute, squares)

    def pieces(self):
        """Listed entries and their weights, in double precision, some at a time."""
        for values, excess in zip(self.entries.listed(), self.excess.listed(), strict=True):
            for start in range(0, values.size, BLOCK):
                here = slice(start, start + BLOCK)
                weights = excess[here] + excess.dtype.type(self.unlisted)  # so that what counts nothing is 0
                yield values[here], weights.astype(np.float64)

    @property
    def n_listed(self) -> int:
        return sum(values.size for values in self.entries.listed())

    @property
    def counts_zeros(self) -> bool:
        """Whether there are entries that are not listed and yet count."""
        return self.unlisted > 0 and self.n_listed < math.prod(self.shape)

    @cached_property
    def n_observed(self):
        listed = sum(int(np.count_nonzero(weights > 0)) for _, weights in self.pieces())
        return listed + (math.prod(self.shape) - self.n_listed if self.unlisted else 0)

    # -- the same with other weights -------------------------------------------------------------------

    def with_unlisted(self, weight):
        raise IncompatibleError(
            "a weight of zeros, zero_weight, is one more way to say what entries count: leave it out, and state all of "
            "it in weights"
        )

    def every_entry(self):
        """Where kernels cannot skip what is not listed, as in a sparse tensor."""
        entries = self.entries.every_entry()
        if entries is self.entries or not self.unlisted:
            return self
        return replace(self, entries=entries, excess=self.excess.every_entry(), known={})

    def along(self, vectors):
        return self.entries.along(vectors)

    def select(self, mode, index):
        entries, excess = self.entries.select(mode, index), self.excess.select(mode, index)
        return replace(self, shape=entries.shape, entries=entries, excess=excess, known={})

    def with_values(self, values):
        return replace(self, entries=self.entries.with_values(values), known={})


def observed_sums(data: Data, factors: Sequence[np.ndarray], mode: int) -> tuple[np.ndarray, np.ndarray | float]:
    """What the observed entries of each row of X unfolded along `mode` add up to, `|x|` by their weights, and what the
    other factors, all >= 0, do in the same places."""
    others = [B for other, B in enumerate(factors) if other != mode]
    everywhere = float(np.prod([B.sum(axis=0, dtype=np.float64) for B in others], axis=0).sum())
    if not isinstance(data, Weighted):
        return data.row_sums(mode, 1.0), everywhere
    cast = [np.ascontiguousarray(B, data.dtype) for B in factors]
    totals = data.excess.variant(dtype=data.dtype).cross(cast, mode).sum(axis=1, dtype=np.float64)
    return data.row_sums(mode, 1.0), totals + data.unlisted * everywhere


def weighted_by(data: Any, vectors: Sequence[np.ndarray | None]) -> Data:
    """Data whose entries count as much more as the vectors say, one for each mode, None for 1."""
    if data.in_blocks:
        return data.weighted_along(vectors)
    if data.sparse:
        raise IncompatibleError(
            "weights of rows or columns (sample_weight) cannot be joined to zeros of a sparse X here, since these "
            "would have to be listed: pass X as an array, or weights as a sparse matrix of the entries that count"
        )
    inner = data.entries if isinstance(data, Weighted) else data
    weights = next(data.excess.listed()) if isinstance(data, Weighted) else data.dtype.type(1)
    excess = inner.with_values((weights * inner.along(vectors)).astype(inner.stored))
    return Weighted(data.shape, data.dtype, data.scale, inner, excess)
