"""What is known of the entries of X as a whole, from one pass over them, or two where their unit is extreme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .rows import BLOCK
from .units import exponent_of, unit_of

SAFE_EXPONENT = 200  # of a number whose square is one
CANCELLATION = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}


class Summary(NamedTuple):
    """Of the entries as they are stored; sums are in a unit in which squares are safe."""

    lowest: float
    highest: float
    n_nonzeros: int
    one_value: bool  # all nonzeros are `highest`
    unit: float  # the power of two nearest to the largest absolute value
    absolute: float  # `sum |x / unit|`
    squares: float  # `sum (x / unit)^2`

    @property
    def moderate(self) -> bool:
        """Whether squares of entries are numbers as they are."""
        return is_moderate(self.unit)

    @property
    def finite(self) -> bool:
        """Whether all entries are."""
        return math.isfinite(self.lowest) and math.isfinite(self.highest)


class Summarised:
    """What data are as a whole, in their unit."""

    shape: tuple[int, ...]
    scale: float

    @cached_property
    def summary(self: Any) -> Summary:
        """What is known of the entries as they are stored, whatever the scale."""
        return summarised(self.listed(), math.prod(self.shape), self.kernels)

    @property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest entry."""
        return self.summary.lowest / self.scale, self.summary.highest / self.scale

    @property
    def level(self) -> float | None:
        """The value that all nonzero entries have, if it is one."""
        return self.summary.highest / self.scale if self.summary.one_value else None

    @property
    def n_nonzeros(self) -> int:
        """How many entries are not 0. What solvers settle by the cost of a product follows this, whatever the
        storage."""
        return self.summary.n_nonzeros

    @property
    def density(self) -> float:
        """The share of entries that are not 0."""
        return self.n_nonzeros / max(math.prod(self.shape), 1)

    @property
    def mean(self) -> float:
        """Mean of the absolute values of the entries."""
        return self.summary.absolute * (self.summary.unit / self.scale) / self.total_weight

    @property
    def total_weight(self) -> float:
        """What all entries count together."""
        return math.prod(self.shape)

    @property
    def norm2(self) -> float:
        """`|X|^2`."""
        unit = self.summary.unit / self.scale
        return self.summary.squares * unit * unit

    @cached_property
    def cancellation(self: Any) -> float:
        """The share of `|X|^2` below which a difference of numbers near it says too little."""
        return CANCELLATION[self.dtype]

    @property
    def norm(self) -> float:
        """`|X|`."""
        return math.sqrt(self.norm2)


class Statistics(NamedTuple):
    """What a kernel tells of some entries; one that is not finite is among the extremes."""

    least: float  # of those that are not 0; 0 where all are
    highest: float
    n_nonzeros: int
    absolute: float  # `sum |x|`
    squares: float  # `sum x^2`


def summarised(listed: Iterable[np.ndarray], size: int, kernels: ModuleType) -> Summary:
    """The summary of `size` entries, of which those that are not listed are 0."""
    pieces = [values for values in listed if values.size]
    found = [Statistics(*kernels.statistics(values)) for values in pieces]
    nonzero = [seen for seen in found if seen.n_nonzeros]
    n_nonzeros = sum(seen.n_nonzeros for seen in nonzero)
    ends = [end for seen in nonzero for end in (seen.least, seen.highest)] + [0.0] * (n_nonzeros < size)
    lowest, highest = float(np.min(ends)), float(np.max(ends))  # NaN where one is
    one_value = all(seen.least == highest for seen in nonzero)
    largest = max(-lowest, highest)
    unit = divisor = unit_of(largest) if math.isfinite(largest) else 1.0
    if not is_moderate(unit):
        found, divisor = [Statistics(*kernels.statistics(values)) for values in in_unit(pieces, unit)], 1.0
    absolute, squares = sum(seen.absolute for seen in found), sum(seen.squares for seen in found)
    return Summary(lowest, highest, n_nonzeros, one_value, unit, absolute / divisor, squares / divisor**2)


def in_unit(pieces: Iterable[np.ndarray], unit: float) -> Iterator[np.ndarray]:
    """Numbers divided by a unit whose inverse may be no number, some at a time."""
    for values in pieces:
        for start in range(0, values.size, BLOCK):
            yield np.ldexp(values[start : start + BLOCK], -exponent_of(unit))


def is_moderate(unit: float) -> bool:
    """Whether squares of entries of this size are numbers as they are."""
    return abs(exponent_of(unit)) < SAFE_EXPONENT
