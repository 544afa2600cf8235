"""The contract of stored data.

`scale` is a power of two: the entries that everything sees are those that are stored, divided by it, so that huge and
tiny units are safe. It is applied to products, not to a copy of X, but in the most extreme units.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from .. import kernels
from ..errors import IncompatibleError
from ..kernels.records import Others, Rows
from .rows import BLOCK, sparse_matrix
from .summary import Summarised

KEPT = ("summary", "turned", "total_weight", "_row_weights")  # what is known of data in any unit or type


@dataclass(frozen=True, eq=False)
class Data(Summarised, ABC):
    """X, by its `rows` alone; the rest follows from these, and is overridden where there is a faster way."""

    shape: tuple[int, ...]
    dtype: np.dtype  # what is computed with
    scale: float

    array_type: ClassVar[type] = np.ndarray  # of the tall arrays that go with it
    complete = True  # every entry counts, and as much as any other
    natural = 0  # the mode whose rows are at hand, where any will do
    sparse = False  # some zeros are not listed
    most_in_single = 0  # nonzeros, up to where a copy in single precision is worth its memory
    in_blocks = False  # rows are loaded some at a time, and only `each` gets to see them
    unlisted = 1.0  # what an entry counts that is not listed

    @abstractmethod
    def rows(self, mode: int) -> Iterator[Rows]:
        """X unfolded along `mode`, in blocks of rows, in order."""

    def cross(self, factors: Sequence[np.ndarray], mode: int) -> np.ndarray:
        """X unfolded along `mode` times the Khatri-Rao product of the other factors: (dim, rank), in C order. The
        factor of `mode` is not read."""
        return self.map(self.kernels.product, factors, mode)[0][0]

    def others(self, factors: Sequence[np.ndarray], mode: int, rows: Rows) -> Others:
        """What columns of these rows are multiplied by: the Khatri-Rao product of the other factors, (columns, rank);
        the other factor itself, where there is one."""
        apart = [factors[other] for other in self.columns(mode)]
        if len(apart) == 1:
            return Others(apart[0], apart)
        return self.__dict__.setdefault("_others", Recent()).get(mode, apart, lambda own: Others(khatri_rao(own), own))

    def columns(self, mode: int) -> Sequence[int]:
        """The modes that columns of X unfolded along `mode` go through, the last one fastest."""
        return [other for other in range(len(self.shape)) if other != mode]

    def map(self, kernel: Callable, factors: Sequence[np.ndarray], mode: int, *arguments: Any) -> tuple[tuple, tuple]:
        """Call a row kernel on every block, with its rows of the factor, the others, and its share of the arguments
        that go with rows (`Box`, `PerRow`, `Chosen`). What it returns by row is put together, sums are added up in
        order, so that they are the same bits wherever the blocks are."""
        found = []
        for X in self.rows(mode):
            start, stop = X.first, X.first + X.n_rows
            own = (a.within(start, stop) if hasattr(a, "within") else a for a in arguments)
            found.append(kernel(X, factors[mode][start:stop], self.others(factors, mode, X), *own))
        if len(found) == 1:
            return found[0]
        by_row, sums = zip(*found, strict=True)
        whole = tuple(map(self.kernels.concatenate, zip(*by_row, strict=True)))
        return whole, tuple(map(sum, zip(*sums, strict=True)))

    def each(self, work: Callable[..., tuple[tuple, tuple]], *tall: Any) -> tuple[tuple, tuple]:
        """`work(data, *rows)` on every block of rows while it is in memory, `rows` those of the tall arrays; what it
        returns by row is put together, sums are added up. Data in memory are one block."""
        return work(self, *tall)

    def among_rows(self, rows: np.ndarray, work: Callable[..., tuple], *tall: Any) -> tuple[np.ndarray, ...]:
        """`work(data, *tall)` on some rows, in order: arrays by row, put together."""
        return work(self.select(0, rows), *(A[rows] for A in tall))

    def spread(self, A: np.ndarray, mode: int) -> Any:
        """A tall array of NumPy's where the factor of a mode lives."""
        return self.kernels.asarray(A)

    def listed(self) -> Iterator[np.ndarray]:
        """The listed entries in any order, as they are stored, in pieces."""
        return (X.values for X in self.rows(0))

    def take(self, mode: int, index: slice | np.ndarray) -> np.ndarray:
        """Some rows of a matrix, or of its transpose, dense, in the type that is computed with."""
        wanted = np.arange(self.shape[mode])[index]
        out = np.zeros((wanted.size, math.prod(self.shape) // self.shape[mode]), self.dtype)
        for X in self.rows(mode):
            for place in np.flatnonzero((wanted >= X.first) & (wanted < X.first + X.n_rows)):
                row = wanted[place] - X.first
                entries = slice(X.indptr[row], X.indptr[row + 1])
                out[place, slice(None) if X.full else X.indices[entries]] = X.values[entries] * X.scale
        return out

    def row_sums(self, mode: int, power: float) -> np.ndarray:
        """`sum |x|^power` over the nonzeros of each row of X unfolded along `mode`, in double precision."""
        known = self.__dict__.setdefault("_row_sums", {})
        if (mode, power) not in known:
            known[mode, power] = self.summed_rows(mode, power)
        return known[mode, power]

    def summed_rows(self, mode: int, power: float) -> np.ndarray:
        """The same, computed."""
        return np.concatenate([self.kernels.power_sums(X, power)[0][0] for X in self.rows(mode)])

    @property
    def stored(self) -> np.dtype:
        """The type of the numbers that are stored."""
        return self.dtype

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays that are stored: together they are X."""
        return tuple(array for X in self.rows(0) for array in (X.indptr, X.indices, X.values))

    @property
    def n_observed(self) -> int:
        """How many entries count."""
        return math.prod(self.shape)

    def where_negative(self) -> str:
        """A sentence on where entries below 0 are, of data that are hard to look through."""
        return ""

    def unobserved(self, mode: int) -> np.ndarray:
        """Which rows of X unfolded along `mode` have no entry that counts, (dim,)."""
        return np.zeros(self.shape[mode], bool) if self.complete else self.row_weights(mode) == 0

    def with_values(self, values: np.ndarray) -> Self:
        """Data with other numbers in the places that are listed here, in the order of `listed`, in one piece."""
        raise NotImplementedError

    @cached_property
    def total_weight(self):
        return super().total_weight if self.complete else float(self.row_weights(self.natural).sum())

    def row_weights(self, mode: int) -> np.ndarray:
        """What the entries of each row of X unfolded along `mode` count together, (dim,)."""
        known = self.__dict__.setdefault("_row_weights", {})
        if mode not in known:
            width = math.prod(self.shape) // max(self.shape[mode], 1)
            known[mode] = np.concatenate([weights_of(X, width) for X in self.rows(mode)])
        return known[mode]

    def observed_squares(self, mode: int) -> tuple[np.ndarray, np.ndarray]:
        """The sum of the squares of observed entries in each row of X unfolded along `mode`, and their number, (dim,):
        whatever their weights."""
        width = math.prod(self.shape) // max(self.shape[mode], 1)
        plain = [
            X._replace(weights=(X.weights > 0).astype(X.weights.dtype), unlisted=float(X.unlisted > 0))
            for X in self.rows(mode)
        ]
        squares = [self.kernels.power_sums(X, 2.0)[0][0] for X in plain]
        return np.concatenate(squares), np.concatenate([weights_of(X, width) for X in plain])

    @cached_property
    def beyond(self) -> tuple[float, Data]:
        """What most entries count, and data that list how much more, or less, others do."""
        if self.complete and len(self.shape) == 2:
            from .sparse import Sparse  # noqa: PLC0415  # built on this module

            return 1.0, Sparse.of(csr_array(self.shape, dtype=self.dtype))
        return self.unlisted, Excess(self.shape, self.dtype, 1.0, self)

    def exactly(self) -> Data:
        """The same data with `beyond` as `plainly` has it."""
        return self

    @property
    def plainly(self) -> tuple[float, Data]:
        """The same, of sums over observed entries alone where that can be had: nothing cancels in them."""
        return self.beyond

    @cached_property
    def largest(self) -> float:
        """The largest weight of an entry."""
        listed = (float(X.weights.max(initial=0)) if X.weights.size else 1.0 for X in self.rows(self.natural))
        return max(self.unlisted, *listed)

    def listed_pair(self) -> tuple[np.ndarray, np.ndarray]:
        """The listed entries as they are stored, in one piece, and their weights."""
        (values,) = self.listed()
        return values, np.ones(len(values))

    def places(self) -> np.ndarray:
        """Where the listed entries of sparse data are, counted through X as an array, in the order of `listed`."""
        raise NotImplementedError

    def select(self, mode: int, index: np.ndarray) -> Data:
        """The data of some rows along a mode, in the order of the index, which may name one several times."""
        raise NotImplementedError

    def along(self, vectors: Sequence[np.ndarray | None]) -> np.ndarray:
        """The product of the entries of vectors, one for each mode, None for ones, at every place that is listed."""
        raise NotImplementedError

    def multiplied(self, vectors: Sequence[np.ndarray | None]) -> Data:
        """The same data with entries times those of vectors, one for each mode, None for ones."""
        (values,) = self.listed()
        return self.with_values((values * self.along(vectors)).astype(values.dtype))

    def with_unlisted(self, weight: float) -> Data:
        """The same data where an entry that is not listed counts `weight` times as much as it did."""
        raise IncompatibleError("a weight of zeros, zero_weight, is for sparse matrices: pass X as one")

    def compressed(self) -> Data:
        """The same data by their nonzeros alone, where they can be held so."""
        return self

    def every_entry(self) -> Data:
        """The same data for kernels that look at every entry, whether it is listed or not."""
        return self

    def slabs(self, mode: int) -> Iterator[Any]:
        """X unfolded along `mode`, turned, some columns at a time: (columns, dim), in double precision, as arrays or
        sparse matrices."""
        data, dim, (other,) = self.double(), self.shape[mode], self.columns(mode)
        if self.sparse:
            yield from (sparse_matrix(X, dim) for X in data.rows(other))
            return
        step = max(1, BLOCK // dim)
        for start in range(0, self.shape[other], step):
            yield data.take(other, slice(start, start + step))

    # -- the same data in another unit or type ---------------------------------------------------------

    def scaled(self, scale: float) -> Self:
        """The same stored entries, divided by `scale` as well."""
        return self.variant(scale=self.scale * scale)

    def double(self) -> Self:
        """The same data, computed with in double precision; numbers are converted where they are read."""
        return self if self.dtype == np.float64 else self.variant(dtype=np.dtype(np.float64))

    def single(self) -> Self:
        """A copy in single precision, with what is known of the whole in double, where differences
        have to do: what they do not tell is for double precision."""
        (values,) = self.listed()
        data = self.with_values(values.astype(np.float32)).scaled(self.scale)
        data.__dict__.update(summary=self.summary, cancellation=0.0)
        return data

    def variant(self, **changes: Any) -> Self:
        """Another view of the same stored arrays, with what is known of them whatever the view."""
        data = replace(self, **changes)
        data.__dict__.update({name: self.__dict__[name] for name in KEPT if name in self.__dict__})
        return data

    @cached_property
    def inverse_scale(self) -> tuple:
        """Two numbers of the type that is computed with whose product is `1 / scale`: one before a product, one after.
        The second is 1 but in units so extreme that `1 / scale` has no room in the type."""
        kind, exponent = self.dtype.type, -math.log2(self.scale)
        if abs(exponent) < np.finfo(self.dtype).maxexp // 2:
            return kind(2.0**exponent), kind(1)
        half = round(exponent / 2)
        return kind(2.0**half), kind(2.0 ** (exponent - half))

    # -- where the work is done ------------------------------------------------------------------------

    @property
    def kernels(self) -> ModuleType:
        """For the arrays that go with this data."""
        return kernels.for_type(self.array_type)

    def working(self) -> AbstractContextManager:
        """A context for work on this data: our threads have the cores, and call BLAS one piece at a time."""
        return self.kernels.alone()


@dataclass(frozen=True, eq=False)
class Excess(Data):
    """What the listed entries of data count beyond those that are not."""

    source: Data

    def rows(self, mode):
        for X in self.source.rows(mode):
            weights = X.weights if X.weights.size else np.ones(X.values.size, self.dtype)
            excess = weights - self.dtype.type(self.source.unlisted)
            yield X._replace(values=excess, scale=self.dtype.type(1), weights=weights[:0], unlisted=0.0)

    def others(self, factors, mode, rows):
        return self.source.others(factors, mode, rows)


def weights_of(X: Rows, width: int) -> np.ndarray:
    """What entries of each of these rows count together; sums of nonnegative numbers, so that 0 is 0."""
    lengths = np.diff(X.indptr)
    rows = np.repeat(np.arange(X.n_rows), lengths)
    listed = np.bincount(rows, X.weights, X.n_rows) if X.weights.size else lengths
    return listed + X.unlisted * (width - lengths)


class Recent:
    """What was last computed of some arrays. Copies of them are compared, so that arrays may be written to."""

    def __init__(self):
        self.key: Any = None
        self.arrays: list[np.ndarray] = []
        self.value: Any = None

    def get(self, key: Any, arrays: Sequence[np.ndarray], compute: Callable[[list[np.ndarray]], Any]) -> Any:
        if key != self.key or not all(map(np.array_equal, self.arrays, arrays)):
            self.key, self.arrays = None, [A.copy() for A in arrays]
            self.value = compute(self.arrays)
            self.key = key
        return self.value


def khatri_rao(factors: Sequence[np.ndarray]) -> np.ndarray:
    """`(prod of dims, rank)`: column k is the Kronecker product of the columns k; the last factor varies fastest."""
    return reduce(lambda A, B: (A[:, None, :] * B[None, :, :]).reshape(-1, A.shape[1]), factors)
