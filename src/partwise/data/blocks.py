"""X in blocks of rows that are loaded when they are worked on: larger than memory, or spread over machines.

Each block is data of its own, dense, sparse or with missing entries, for as long as it is in memory. Nothing here keeps
more of X than the blocks at work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
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
    stored_sparse: bool
    sparse: bool  # some zeros are not listed
    complete: bool
    n_observed: int
    weight: float  # of all its entries together
    least: float  # weight of an entry, of those that count
    largest: float


class Said(NamedTuple):
    """What is said of the entries, besides what the blocks hold."""

    missing: str | None = "nan"  # as the user says it
    beside: tuple[str, ...] = ()  # what comes with each block of X: "mask", "weights"
    unit: float = 1.0  # weights in the blocks are divided by it
    weights: tuple[np.ndarray | None, ...] = ()  # of rows and columns, None for 1; empty: none
    factors: tuple[np.ndarray | None, ...] = ()  # that rows and columns are multiplied by, in the same way

    def within(self, start: int, stop: int) -> Said:
        """The same for some rows."""
        return self._replace(
            weights=cut(self.weights, slice(start, stop)), factors=cut(self.factors, slice(start, stop))
        )


def cut(vectors: tuple, rows: slice) -> tuple:
    """One vector for each mode, the first of them for some rows."""
    return tuple(v if v is None or mode else v[rows] for mode, v in enumerate(vectors))


@dataclass(frozen=True, eq=False)
class Blocks(Data):
    place: Place
    said: Said
    facts: tuple[Facts, ...] = ()  # of each block
    known: dict = field(default_factory=dict)  # what was added up over the blocks, whatever the unit or the type

    in_blocks = True

    @classmethod
    def of(cls, place: Place, missing: str | None = "nan", beside: tuple[str, ...] = ()) -> Blocks:
        """Data in these blocks, once every one was looked at; `beside`: what comes with each block of X."""
        kind = place.dtype if place.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        data = cls((sum(place.heights), place.width), kind, 1.0, place, Said(missing, beside))
        if beside:
            _, (largest,) = place.run(CheckBeside(place.width), data.known_of_blocks(), ())
            data = data.variant(said=data.said._replace(unit=max(largest) or 1.0))
        return data.looked_at()

    def looked_at(self) -> Blocks:
        """With what is known of each block."""
        data = self.variant(facts=(), known={})
        data.__dict__.pop("summary", None)
        _, (facts,) = self.place.run(FirstLook(data.on_block(None)), data.known_of_blocks(), ())
        check_alike(self.place, facts)
        return data.variant(facts=facts)

    def weighted_along(self, vectors: Sequence[np.ndarray | None]) -> Blocks:
        """The same where entries of rows and columns count as much as the vectors say, None for 1."""
        return self.variant(said=self.said._replace(weights=tuple(vectors))).looked_at()

    def multiplied(self, vectors):
        return self.variant(said=self.said._replace(factors=tuple(vectors))).looked_at()

    # -- work on blocks --------------------------------------------------------------------------------

    def known_of_blocks(self) -> list[Known]:
        starts, facts = self.place.starts, self.facts or (None,) * len(self.place.heights)
        pairs = list(pairwise(starts))
        return [Known(n, *pairs[n], fact, self.said.within(*pairs[n])) for n, fact in enumerate(facts)]

    def on_block(self, work: Any) -> OnBlock:
        return OnBlock(work, self.shape[1], self.scale, self.dtype)

    def each(self, work, *tall):
        return self.place.run(self.on_block(work), self.known_of_blocks(), tall)

    def among_rows(self, rows, work, *tall):
        chosen = np.zeros((self.shape[0], 1), bool)
        chosen[rows] = True
        _, (found,) = self.each(AmongRows(work), chosen, *tall)
        return tuple(map(np.concatenate, zip(*found, strict=True)))

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
            "X is read in blocks of rows, and this needs all of it at once: pass X in memory, or a sample of its rows"
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

    def where_negative(self):
        first = next((n for n, fact in enumerate(self.facts) if fact.summary.lowest < 0), None)
        return "" if first is None else f" The first of them are in {self.place.named(first)}."

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
    def weighted(self) -> bool:
        """Whether entries that are observed count differently."""
        return self.largest > min((fact.least for fact in self.facts if fact.n_observed), default=self.largest)

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
    """A block: its number, its rows, what the first look found, and what is said of its entries."""

    number: int
    start: int
    stop: int
    facts: Facts | None
    said: Said

    def name(self, what: str = "X") -> str:
        return f"block {self.number} of {what} (rows {self.start} to {self.stop - 1})"

    def checked(self, block: Any, width: int) -> tuple:
        """X, a mask and weights as they came, once their shape is that announced."""
        shape, several = (self.stop - self.start, width), block if isinstance(block, tuple) else (block,)
        for what, one in zip(("X", *self.said.beside), several, strict=True):
            if np.shape(one) != shape:
                raise BlockError(f"{self.name(what)} has shape {np.shape(one)}, and {shape} was announced")
        return several

    def counts(self, beside: Sequence[Any]) -> list:
        """What mask and weights say of each entry, the weights in their unit; nothing where all count alike."""
        found = [
            one.astype(bool) if what == "mask" else one.astype(np.float64) / self.said.unit
            for what, one in zip(self.said.beside, beside, strict=True)
        ]
        return [one for one in found if issparse(one) or not np.all(one == 1)]


@dataclass(frozen=True, eq=False)
class OnBlock:
    """Work on blocks as data, in the unit and the type of the whole."""

    work: Callable
    width: int
    scale: float
    dtype: np.dtype

    def __call__(self, known: Known, block: Any, *rows: np.ndarray) -> tuple[tuple, tuple]:
        return self.work(self.data(known, block).variant(scale=self.scale, dtype=self.dtype), *rows)

    def data(self, known: Known, block: Any) -> Data:
        from . import as_data  # noqa: PLC0415  # that package imports this module
        from .observed import with_missing  # noqa: PLC0415  # built on this package
        from .validation import Checked  # noqa: PLC0415
        from .weighted import weighted_by  # noqa: PLC0415

        if known.facts is None:
            data = self.checked(known, block)
        else:
            X, *beside = block if isinstance(block, tuple) else (block,)
            whole = known.facts.complete
            X, missing = floating(X), known.said.missing
            data = as_data(X) if whole else with_missing(Checked(X), missing, known.counts(beside))
        if known.said.weights:
            data = weighted_by(data, known.said.weights)
        if known.said.factors:
            data = data.multiplied(known.said.factors)
        if known.facts is not None:
            data.__dict__["summary"] = known.facts.summary
        return data

    def checked(self, known: Known, block: Any) -> Data:
        """Data of a block that is seen for the first time."""
        from .observed import with_missing  # noqa: PLC0415
        from .validation import checked  # noqa: PLC0415

        (X, *beside), missing = known.checked(block, self.width), known.said.missing
        try:
            X = checked(X, known.name(), missing="nan" if beside else missing)  # which they may cover
            return with_missing(X, missing, known.counts(beside))
        except ValueError as error:
            raise BlockError(str(error).replace("X contains", f"{known.name()} contains")) from error


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What is to be known of a block."""

    work: OnBlock

    def __call__(self, known: Known, block: Any) -> tuple[tuple, tuple]:
        data, X = self.work.data(known, block), block[0] if isinstance(block, tuple) else block
        seen = data.n_observed, data.total_weight, least_weight(data), data.largest
        return (), ((Facts(data.summary, issparse(X), data.sparse, data.complete, *seen),),)


@dataclass(frozen=True, eq=False)
class CheckBeside:
    """Whether what comes with a block is a mask and weights; the largest of these."""

    width: int

    def __call__(self, known: Known, block: Any) -> tuple[tuple, tuple]:
        from .observed import check_mask, check_weights, values_of  # noqa: PLC0415

        checks, largest = {"mask": check_mask, "weights": check_weights}, 0.0
        _, *beside = known.checked(block, self.width)
        for what, one in zip(known.said.beside, beside, strict=True):
            values = values_of(one)
            try:
                checks[what](values, known.name(what))
            except ValueError as error:
                raise BlockError(str(error)) from error
            largest = float(values.max(initial=0)) if what == "weights" else largest
        return (), ((largest,),)


def floating(block: Any) -> Any:
    """In a type that is computed with."""
    return block.astype(block.dtype if block.dtype in (np.float32, np.float64) else np.float64, copy=False)


# -- what is done on a block, which can be sent to other processes ---------------------------------------
# `makes`: how many arrays it makes by row, none where that is not said


def least_weight(data: Any) -> float:
    """Of the entries that count."""
    if data.complete:
        return 1.0
    listed = [weights[weights > 0].min(initial=np.inf) for _, weights in data.pieces()]
    return float(min([*listed, *([data.unlisted] if data.counts_zeros else [])], default=np.inf))


@dataclass(frozen=True, eq=False)
class OnRows:
    kernel: Callable
    H: np.ndarray
    arguments: tuple

    def __call__(self, data, W):
        return data.map(self.kernel, (W, self.H), 0, *self.arguments)


@dataclass(frozen=True, eq=False)
class AmongRows:
    """Work on some of the rows, and those of tall arrays that go with them."""

    work: Callable[..., tuple]

    def __call__(self, data, chosen, *tall):
        rows = np.flatnonzero(chosen)
        own = (self.work(data.select(0, rows), *(A[rows] for A in tall)),) if rows.size else ()
        return (), (own,)


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
    kind = facts[0].stored_sparse
    odd = next((number for number, fact in enumerate(facts) if fact.stored_sparse != kind), None)
    if odd is not None:
        kinds = ("dense", "sparse")
        raise BlockError(
            f"{place.named(odd)} is {kinds[not kind]}, and block 0 is {kinds[kind]}: make all blocks of one kind"
        )
