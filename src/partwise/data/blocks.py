"""X in blocks of rows that are loaded when they are worked on: larger than memory, or spread over machines.

Each block is data of its own, dense, sparse or with missing entries, for as long as it is in memory. Nothing here keeps
more of X than the blocks at work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..errors import IncompatibleError
from ..kernels.records import Others
from ..losses.expansions import Several
from .base import Data
from .places import BlockError, Place
from .summary import Summary
from .units import unit_of


class Facts(NamedTuple):
    """What is known of a block from the first look at it."""

    summary: Summary
    sparse: bool
    complete: bool
    n_observed: int
    weight: float  # of all its entries together
    largest: float  # weight of an entry


@dataclass(frozen=True, eq=False)
class Blocks(Data):
    place: Place
    missing: str | None = "nan"  # as the user says it
    facts: tuple[Facts, ...] = ()  # of each block
    known: dict = field(default_factory=dict)  # what was added up over the blocks, whatever the unit or the type

    in_blocks = True

    @classmethod
    def of(cls, place: Place, missing: str | None = "nan") -> Blocks:
        """Data in these blocks, once every one was looked at."""
        kind = place.dtype if place.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        data = cls((sum(place.heights), place.width), kind, 1.0, place, missing)
        _, (facts,) = data.each(first_look)
        check_alike(place, facts)
        return data.variant(facts=facts)

    # -- work on blocks --------------------------------------------------------------------------------

    def each(self, work, *tall):
        starts, facts = self.place.starts, self.facts or (None,) * len(self.place.heights)
        known = [Known(n, starts[n], starts[n + 1], fact) for n, fact in enumerate(facts)]
        return self.place.run(OnBlock(work, self.shape[1], self.missing, self.scale, self.dtype), known, tall)

    @property
    def array_type(self):  # type: ignore[override]
        return self.place.array_type

    def spread(self, A, mode):
        return self.place.spread(A) if mode == 0 else np.ascontiguousarray(A)

    def map(self, kernel, factors, mode, *arguments):
        """Along columns, what a kernel returns by row is a sum over the blocks: that holds of `expansion`, `product`
        and `power_sums`, which add up over entries."""
        W, H = factors
        if mode == 0:
            return self.each(OnRows(kernel, H, arguments), W)
        _, (sums, more) = self.each(OnColumns(kernel, H, arguments), W)
        return sums.arrays, more.arrays

    def cross(self, factors, mode):
        W, H = factors
        if mode == 0:
            return self.each(RowProduct(H))[0][0]
        return self.each(column_product, W)[1][0].astype(self.dtype)

    def others(self, factors, mode, rows):
        return Others(factors[1 - mode])

    def rows(self, *_, **__):
        raise IncompatibleError(
            "X is read in blocks of rows, and this needs all of it at once: pass X in memory, or name another solver, "
            "another initialisation, or a number of parts"
        )

    select = places = with_values = along = listed_pair = rows  # type: ignore[assignment]

    # -- as a whole ------------------------------------------------------------------------------------

    @property
    def stored(self):
        kind = self.place.dtype
        return kind if kind in (np.float32, np.float64) else np.dtype(np.float64)

    @property
    def sparse(self):
        return any(fact.sparse for fact in self.facts)

    @property
    def complete(self):
        return all(fact.complete for fact in self.facts)

    @cached_property
    def summary(self):
        return joined([fact.summary for fact in self.facts])

    @property
    def n_observed(self):
        return sum(fact.n_observed for fact in self.facts)

    @property
    def total_weight(self):
        return sum(fact.weight for fact in self.facts)

    @property
    def largest(self):
        return max(fact.largest for fact in self.facts)

    @property
    def arrays(self):
        """What stands for the entries, which are not all looked at again: sums over each block, to the last bit."""
        numbers = [(f.summary.lowest, f.summary.highest, f.summary.absolute, f.summary.squares) for f in self.facts]
        return np.array(self.place.heights), np.array([f.summary.n_nonzeros for f in self.facts]), np.array(numbers)

    def summed_rows(self, mode, power):
        key = "sums", mode, power
        if key not in self.known:
            rows, (columns,) = self.double().scaled(1 / self.scale).each(PowerSums(mode, power))
            self.known[key] = np.asarray(rows[0]) if mode == 0 else columns
        return self.known[key] / self.scale**power

    def row_weights(self, mode):
        if ("weights", mode) not in self.known:
            rows, (columns,) = self.each(RowWeights(mode))
            self.known["weights", mode] = np.asarray(rows[0]) if mode == 0 else columns
        return self.known["weights", mode]

    def observed_squares(self, mode):
        rows, columns = self.each(ObservedSquares(mode))
        return tuple(map(np.asarray, rows)) if mode == 0 else columns


class Known(NamedTuple):
    """A block: its number, its rows, and what the first look found."""

    number: int
    start: int
    stop: int
    facts: Facts | None

    @property
    def name(self) -> str:
        return f"block {self.number} of X (rows {self.start} to {self.stop - 1})"


@dataclass(frozen=True, eq=False)
class OnBlock:
    """Work on blocks as data, in the unit and the type of the whole."""

    work: Callable
    width: int
    missing: str | None
    scale: float
    dtype: np.dtype

    def __call__(self, known: Known, block: Any, *rows: np.ndarray) -> tuple[tuple, tuple]:
        return self.work(self.data(known, block).variant(scale=self.scale, dtype=self.dtype), *rows)

    def data(self, known: Known, block: Any) -> Data:
        from . import as_data  # noqa: PLC0415  # that package imports this module

        if known.facts is None:
            return self.checked(known, block)
        block = floating(block)
        data = as_data(block) if known.facts.complete else with_missing(block, self.missing)
        data.__dict__["summary"] = known.facts.summary
        return data

    def checked(self, known: Known, block: Any) -> Data:
        """Data of a block that is seen for the first time."""
        from .validation import checked_data  # noqa: PLC0415

        shape = known.stop - known.start, self.width
        if np.shape(block) != shape:
            raise BlockError(f"{known.name} has shape {np.shape(block)}, and {shape} was announced")
        try:
            return with_missing(checked_data(block, known.name, missing=self.missing), self.missing)
        except ValueError as error:
            raise BlockError(str(error)) from error


def with_missing(block: Any, missing: str | None) -> Data:
    """Data of an array or a sparse matrix of which some entries may be missing."""
    from .observed import of_array, of_listed  # noqa: PLC0415  # built on this package

    return (of_listed if issparse(block) else of_array)(block, missing, [])


def floating(block: Any) -> Any:
    """In a type that is computed with."""
    return block.astype(block.dtype if block.dtype in (np.float32, np.float64) else np.float64, copy=False)


# -- what is done on a block, which can be sent to other processes ---------------------------------------
# `makes`: how many arrays it makes by row, none where that is not said


def first_look(data: Data) -> tuple[tuple, tuple]:
    about = Facts(data.summary, data.sparse, data.complete, data.n_observed, data.total_weight, data.largest)
    return (), ((about,),)


@dataclass(frozen=True, eq=False)
class OnRows:
    kernel: Callable
    H: np.ndarray
    arguments: tuple

    def __call__(self, data, W):
        return data.map(self.kernel, (W, self.H), 0, *self.arguments)


@dataclass(frozen=True, eq=False)
class OnColumns:
    kernel: Callable
    H: np.ndarray
    arguments: tuple

    def __call__(self, data, W):
        by_row, sums = data.map(self.kernel, (W, self.H), 1, *self.arguments)
        return (), (Several(tuple(by_row)), Several(tuple(sums)))


@dataclass(frozen=True, eq=False)
class RowProduct:
    H: np.ndarray

    @property
    def makes(self) -> int:
        return 1

    def __call__(self, data):
        return (data.cross((self.H, self.H), 0),), ()


def column_product(data, W):
    return (), (data.cross((W, W), 1).astype(np.float64),)


@dataclass(frozen=True, eq=False)
class PowerSums:
    mode: int
    power: float

    @property
    def makes(self) -> int:
        return int(self.mode == 0)

    def __call__(self, data):
        sums = data.row_sums(self.mode, self.power)
        return ((sums,), (0.0,)) if self.mode == 0 else ((), (sums,))


@dataclass(frozen=True, eq=False)
class RowWeights:
    mode: int

    @property
    def makes(self) -> int:
        return int(self.mode == 0)

    def __call__(self, data):
        weights = data.row_weights(self.mode)
        return ((weights,), (0.0,)) if self.mode == 0 else ((), (weights,))


@dataclass(frozen=True, eq=False)
class ObservedSquares:
    mode: int

    @property
    def makes(self) -> int:
        return 2 * (self.mode == 0)

    def __call__(self, data):
        found = data.observed_squares(self.mode)
        return (found, ()) if self.mode == 0 else ((), found)


# -- all blocks together ---------------------------------------------------------------------------------


def joined(parts: list[Summary]) -> Summary:
    """The summary of all blocks; units are powers of two, so nothing is rounded but in the sums."""
    lowest, highest = min(p.lowest for p in parts), max(p.highest for p in parts)
    unit, nonzero = unit_of(max(-lowest, highest)), [p for p in parts if p.n_nonzeros]
    one_value = all(p.one_value and p.highest == highest for p in nonzero)
    absolute = math.fsum(p.absolute * (p.unit / unit) for p in parts)
    squares = math.fsum(p.squares * (p.unit / unit) ** 2 for p in parts)
    return Summary(lowest, highest, sum(p.n_nonzeros for p in parts), one_value, unit, absolute, squares)


def check_alike(place: Place, facts: tuple[Facts, ...]) -> None:
    """Whether all blocks are of one kind."""
    odd = next((number for number, fact in enumerate(facts) if fact.sparse != facts[0].sparse), None)
    if odd is not None:
        kinds = ("dense", "sparse")
        raise BlockError(
            f"{place.named(odd)} is {kinds[facts[odd].sparse]}, and block 0 is {kinds[facts[0].sparse]}: make all "
            "blocks of one kind"
        )
