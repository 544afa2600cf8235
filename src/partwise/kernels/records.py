"""What kernels take in one piece, so that arrays which belong together travel together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from . import of


class Rows(NamedTuple):
    """Some rows of X unfolded along a mode: the only form in which entries leave `data/`.

    Entry p of row i, `indptr[i] <= p < indptr[i + 1]`, is `values[p] * scale`, in column `indices[p]`, and its loss
    counts `weights[p]` times. Entries that are not listed are 0, and count `unlisted` times each.
    """

    first: int  # the number of the first of these rows in X
    indptr: np.ndarray  # int64
    indices: np.ndarray  # of rows of what `Data.others` gives; empty where all entries are listed
    values: np.ndarray
    scale: Any  # a number of the type that is computed with
    full: bool  # every entry of every row is listed, in order
    weights: np.ndarray  # in the type of `scale`; empty: all 1
    unlisted: float  # 1: they are zeros; 0: they are missing; between: zeros that may be false

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1


class Others(NamedTuple):
    """What columns of rows of X are multiplied by. Entries of X point to rows of B, of which there may be fewer than X
    has columns; sums over all columns come from the factors whose Khatri-Rao product the whole is."""

    B: np.ndarray
    factors: Sequence[np.ndarray] = ()  # empty: B is the whole

    @property
    def all_factors(self) -> Sequence[np.ndarray]:
        return self.factors or (self.B,)

    def sums(self) -> np.ndarray:
        """Of the columns of the whole: products of those of its factors. In double precision, as what follows."""
        return reduce(np.multiply, (of(F).column_sums(F) for F in self.all_factors))

    def sizes(self) -> np.ndarray:
        """The same of absolute values."""
        return reduce(np.multiply, (np.abs(F).sum(axis=0, dtype=np.float64) for F in self.all_factors))

    def gram(self) -> np.ndarray:
        """The Gram matrix of the whole, in the type of B: that of its factors, entry by entry."""
        return reduce(np.multiply, (F.T @ F for F in self.all_factors))


class EntryLoss(NamedTuple):
    """The loss of an entry that row kernels minimise: a beta-divergence, or for beta = 2 and a finite delta Huber's,
    `1/2 r^2` where `|r| <= delta`, `delta |r| - delta^2 / 2` beyond."""

    beta: float
    delta: float = math.inf


class Wanted(NamedTuple):
    """What `expansion` gives beside the gradient, each at a price: second derivatives, one more product with X; and the
    loss of each row, a logarithm for each entry."""

    curvature: bool = True
    losses: bool = False


CURVATURE = Wanted()


class Box(NamedTuple):
    """What holds of the entries of a factor: the weight of `|a|`, and bounds, (dim, rank) or one row for all."""

    l1: Any
    lower: np.ndarray
    upper: np.ndarray

    def within(self, start: int, stop: int) -> Box:
        """The same for some rows of the factor."""
        return self.of_rows(slice(start, stop))

    def of_rows(self, rows: slice | np.ndarray) -> Box:
        return Box(self.l1, *(b if len(b) == 1 else b[rows] for b in (self.lower, self.upper)))


class RowScales(NamedTuple):
    """What the best multiple of a row depends on under KL: the sum of its entries of X, (dim,), those of the columns of
    the others, (rank,), and the ridge."""

    totals: np.ndarray
    sums: np.ndarray
    ridge: float


class PerRow(NamedTuple):
    """A number for each row."""

    numbers: np.ndarray

    def within(self, start: int, stop: int) -> np.ndarray:
        return self.numbers[start:stop]


class Chosen(NamedTuple):
    """The rows to work on, in order."""

    rows: np.ndarray

    def within(self, start: int, stop: int) -> np.ndarray:
        first, last = np.searchsorted(self.rows, (start, stop))
        return self.rows[first:last] - start if start else self.rows[first:last]
