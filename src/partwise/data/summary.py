"""What is known of the entries of X as a whole, from two passes over them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .units import exponent_of, unit_of

SAFE_EXPONENT = 200  # of a number whose square is one


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
        return abs(exponent_of(self.unit)) < SAFE_EXPONENT


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

    @property
    def norm(self) -> float:
        """`|X|`."""
        return math.sqrt(self.norm2)


def summarised(listed: Iterable[np.ndarray], size: int, kernels: ModuleType) -> Summary:
    """The summary of `size` entries, of which those that are not listed are 0."""
    pieces = [values for values in listed if values.size]
    ends = [kernels.extremes(values) for values in pieces]
    if sum(values.size for values in pieces) < size:
        ends.append((0.0, 0.0))
    lowest, highest = min(end[0] for end in ends), max(end[1] for end in ends)
    unit = unit_of(max(-lowest, highest))
    sums = [kernels.unit_sums(values, unit, highest) for values in pieces]
    every = (sum(column) for column in zip(*sums, strict=True)) if sums else (0.0, 0.0, 0, 0)
    absolute, squares, n_nonzeros, n_highest = every
    one_value = n_nonzeros == (n_highest if highest else 0)
    return Summary(lowest, highest, n_nonzeros, one_value, unit, float(absolute), float(squares))
