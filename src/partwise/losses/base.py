"""The contract of a loss: a divergence d(x, y) of entries, summed over all that count, each by its weight."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..data.base import Data
from ..data.rows import BLOCK, Block, blocks_of
from ..kernels import threads
from ..kernels.records import Rows
from .expansions import Expansion, Majoriser, gram_of_others, with_ridge

Factors = Sequence[np.ndarray]


class Loss(ABC):
    """A loss is a frozen dataclass; its parameters are its fields.

    What is here does for any loss with second derivatives of at most `curvature`, given its `value` and `gradient`:
    `expand` majorises it by a quadratic, which solvers for least squares bring down.

    Examples
    --------
    >>> import partwise as pw
    >>> isinstance(pw.losses.KL(), pw.losses.Loss)
    True
    >>> pw.factorize([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], 1, loss=pw.losses.KL()).loss
    KL()
    """

    quadratic = False  # gram and cross say all about complete data
    smooth = True  # it has slopes that say where to go
    curvature = 1.0  # no second derivative of d(x, y) in y exceeds it
    kernels: tuple[str, ...] = ("numpy",)  # that it calls; "numpy": functions of NumPy themselves
    updates: frozenset[str] = frozenset({"hals", "gcd", "palm"})  # kernels and solvers that lower it
    degree: float  # d(c x, c y) = c**degree d(x, y): how the objective follows the units of X
    homogeneous = False  # that holds of this loss as it is, and the degree is not 0
    error_power = 0.5  # errors are told as `(loss / p)^p`: a norm for least squares, the sum itself for L1
    start: str | None = None  # the initialisation that suits it best, where that is not for all to say
    needs_double = False  # float32 has no room for its derivatives: float32 data are computed with in double precision
    scale: float | None = 1.0  # of residuals, where it has one; None: to be estimated
    infinite_at_zero = False  # d(x, 0) is, for x > 0
    additive = False  # what blocks of rows say of H adds up: see `share` of the divergences
    explains = "the loss of 0"  # what `Result.explained` is a share of, in words
    says = ""  # what it is, and what it is for, in a few words

    @abstractmethod
    def value(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
        """Sum of d(x, y) over the entries, each by its weight, in double precision."""

    @abstractmethod
    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Derivative of `value` in each entry of Y; 0 where it has none."""

    def entrywise(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """d(x, y) of each entry, in double precision."""
        return np.vectorize(self.value, otypes=[np.float64])(X, Y)

    def null(self, mean: float) -> float:
        """The null model, a constant, whose loss a fit is compared with, given the mean of `|X|`: 0, so that its
        loss is the size of X, or the best constant where 0 would not do."""
        return 0.0

    def in_units(self, exponent: int) -> Loss:
        """The same loss of data that are divided by `2**exponent`, up to the power of that which `degree` says."""
        return self

    def sparse_below(self, nonnegative: bool) -> float:
        """Data with a smaller share of nonzeros are held by these alone, however they came; `nonnegative`: the factors
        are. See docs/speed.md for what was measured."""
        return 0.0

    def held(self, data: Data, nonnegative: bool) -> Data:
        """The data as this loss reads them fastest, with what it has to say of weights."""
        limit = self.sparse_below(nonnegative)
        if limit:
            return data.compressed() if data.density < limit else data
        return data.every_entry()

    def refuses(self, lowest: float, nonnegative: bool) -> str | None:
        """None, or why it cannot take data whose lowest entry is this, or factors that may be negative."""
        return None

    # -- the loss of a model ---------------------------------------------------------------------------

    def fit(self, data: Data, factors: Factors, mode: int = 0, known: Expansion | None = None, ridge=0.0) -> float:
        """The loss of `[[factors]]`. `known`: an expansion in this mode, with this ridge, which may save a product."""
        return self.direct_fit(data, factors)

    def direct_fit(self, data: Data, factors: Factors) -> float:
        """The loss entry by entry, in double precision."""
        found = models(data, factors, data.natural)
        return sum(self.of_those_that_count(block.entries, Y, block.weights) for block, Y, _ in found)

    def of_those_that_count(self, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | float) -> float:
        """`value`, where it need not be a number for entries that count nothing."""
        if np.ndim(weights) and not np.all(weights):
            seen = np.asarray(weights) > 0
            X, Y, weights = X[seen], Y[seen], np.asarray(weights)[seen]
        return self.value(X, Y, weights)

    def expand(self, data: Data, factors: Factors, mode: int, structure) -> Expansion:
        """The loss as a function of one factor, with the ridge of its structure: here its tangent plus
        `L / 2 tr(D gram D')`, D the way from the present factor and L the largest second derivative."""
        found = [(b.weights * self.gradient(b.entries, Y)) @ B for b, Y, B in models(data, factors, mode)]
        slope = kernels.of(factors[mode]).asarray(np.concatenate(found), factors[mode].dtype)
        gram, cross = majorised(data, factors, mode, slope, self.curvature)
        return Majoriser(with_ridge(gram, structure.ridge), cross)

    def estimated(self, data: Data, factors: Factors, n_parameters: int) -> Loss:
        """The same loss with its scale, from the residuals of a model with so many parameters; 0: not fitted yet."""
        return self

    def of_constant(self, data: Data, constant: float) -> float:
        """The loss of a model that is the same everywhere, in double precision."""
        return data.each(OfConstant(self, constant))[1][0]

    def of_constant_rows(self, X: Rows, constant: float) -> float:
        """Of the listed entries."""

        def part(start: int, stop: int) -> float:
            entries = X.values[start:stop].astype(np.float64) * np.float64(X.scale)
            weights = X.weights[start:stop] if X.weights.size else 1.0
            return self.of_those_that_count(entries, np.full_like(entries, constant), weights)

        size = X.values.size
        return sum(threads.map_chunks(part, [*range(0, size, BLOCK), size])) if size else 0.0

    def size(self, data: Data) -> float:
        """What errors are measured against: `|X|`."""
        return data.norm

    def row_sizes(self, data: Data, mode: int) -> np.ndarray:
        """`size` of each row of X unfolded along `mode`, (dim,)."""
        return np.sqrt(data.row_sums(mode, 2.0))

    def unreached(self, data: Data, factors: Factors) -> int:
        """How many positive entries of X have a model of 0, where the loss would be infinite."""
        return 0


@dataclass(frozen=True, eq=False)
class OfConstant:
    """The loss of a constant on some rows of X."""

    loss: Loss
    constant: float

    def __call__(self, data: Data) -> tuple[tuple, tuple]:
        total, width = 0.0, math.prod(data.shape) // data.shape[data.natural]
        for X in data.rows(data.natural):
            total += self.loss.of_constant_rows(X, self.constant)
            rest = (X.n_rows * width - X.values.size) * X.unlisted
            total += rest * self.loss.value(np.zeros(1), np.full(1, self.constant), 1.0) if rest else 0.0
        return (), (total,)


def majorised(data: Data, factors: Factors, mode: int, slope: np.ndarray, curvature: float) -> tuple:
    """Gram matrix and cross product of the quadratic above a loss with this slope in one factor, whose second
    derivatives in the model are at most `curvature`."""
    A = factors[mode]
    gram = A.dtype.type(data.largest * curvature) * gram_of_others(factors, mode)
    return gram, kernels.of(A).difference(kernels.of(A).times(A, gram), slope)


def models(data: Data, factors: Factors, mode: int) -> Iterator[tuple[Block, np.ndarray, np.ndarray]]:
    """Some rows of X unfolded along `mode`, their model, and the others of it, in double precision."""
    data, factors = data.every_entry().double(), [kernels.of(A).astype(A, np.float64) for A in factors]
    for X in data.rows(mode):
        B = data.others(factors, mode, X).B
        for block in blocks_of(X, len(B)):
            yield block, factors[mode][block.rows] @ B.T, B
