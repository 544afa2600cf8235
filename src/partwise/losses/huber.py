"""The Huber loss: Huber (1964), Annals of Mathematical Statistics 35(1); its scale by the median absolute residual,
Huber and Ronchetti (2009), Robust Statistics, chapters 6 and 7."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..checks import is_number
from ..data.base import Data
from ..data.rows import BLOCK, blocks_of
from ..data.units import in_units
from ..kernels.records import EntryLoss, Rows
from .base import Factors, Loss, majorised
from .expansions import Reweighted, with_ridge

EFFICIENT = 1.345  # standard deviations: of Gaussian errors alone as precise as least squares to 5%
NORMAL = 1.4826  # the median of |r| times this is the standard deviation of Gaussian errors
LEAST = 1e-3  # of the median nonzero entry of X: an estimate is not below it, where X is met exactly, say
FIRST = 0.3  # of that median: before there is a model. Fits with less are as robust, with more they may follow errors
SAMPLE = 1 << 18  # residuals that an estimate is made of, about, at most


@dataclass(frozen=True)
class Huber(Loss):
    """`1/2 r^2` for residuals `|r| <= delta`, `delta |r| - delta^2 / 2` beyond: least squares for what is noise, and as
    L1 for what is an error, so that a few gross ones are nearly left alone.

    `delta`, in the units of X; None: 1.345 standard deviations of the noise, by 1.4826 times the median of `|r|` in
    fits made before the run, over observed entries, each by its weight, without the smallest ones, as many as there
    are parameters (Hill and Holland 1977). Where more than half of the entries are 0, as in most sparse X, residuals of
    zeros say little of the noise, and only those of nonzero entries count. It is at least a thousandth of the median
    nonzero entry. The result has the loss with the delta that was found.

    Parameters
    ----------
    delta : float, optional
        Where a residual begins to count by its size, in the units of X; None: estimated.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 2, noise=0.05, outliers=0.05, random_state=0).X
    >>> pw.factorize(X, 2, loss=pw.losses.Huber(0.1), random_state=0).loss
    Huber(delta=0.1)
    >>> estimated = pw.factorize(X, 2, loss="huber", random_state=0).loss
    >>> bool(0 < estimated.delta < 1)
    True
    """

    delta: float | None = None
    kernels = ("expansion", "losses")
    updates = frozenset({"gcd", "hals", "newton", "palm"})
    degree = 2.0
    says = "Huber's loss: least squares for noise, absolute differences for gross errors"
    start = "random"  # singular vectors follow gross errors, and fits from there do not get away from these

    def __post_init__(self):
        if self.delta is None:
            return
        if not is_number(self.delta) or not 0 < self.delta < math.inf:
            raise ValueError(
                f"delta must be a number > 0 in the units of X, such as huber(0.5), or None to estimate it; "
                f"got {self.delta!r}"
            )
        object.__setattr__(self, "delta", float(self.delta))

    @property
    def scale(self):
        return self.delta

    @property
    def known(self) -> float:
        if self.delta is None:
            raise ValueError(f"{self} has no value before its delta is estimated: factorize does, or state it")
        return self.delta

    @property
    def of_entry(self):
        return EntryLoss(2.0, self.known)

    def in_units(self, exponent):
        return self if self.delta is None else Huber(in_units(self.delta, exponent))

    def value(self, X, Y, weights=1.0):
        return float(np.sum(weights * self.entrywise(X, Y)))

    def entrywise(self, X, Y):
        size = np.abs(np.asarray(X, dtype=np.float64) - np.asarray(Y, dtype=np.float64))
        within = np.minimum(size, self.known)
        return within * (size - within / 2)

    def gradient(self, X, Y):
        return np.clip(Y - X, -self.known, self.known)

    def direct_fit(self, data, factors):
        data, factors = data.every_entry().double(), [kernels.of(A).astype(A, np.float64) for A in factors]
        return data.map(kernels.of(factors[0]).losses, factors, data.natural, self.of_entry)[1][0]

    def expand(self, data, factors, mode, structure):
        """A quadratic above the loss, and for each entry of the factor the best parabola above it: residuals beyond
        delta weigh `delta / |r|` there, so that what is left to gain is told right for a small delta, too."""
        A = factors[mode]
        (minus, plus, curvature), _ = data.map(kernels.of(A).expansion, factors, mode, self.of_entry)
        slope, ridge = kernels.of(A).difference(plus, minus), structure.ridge
        gram, cross = majorised(data, factors, mode, slope, self.curvature)
        return Reweighted(with_ridge(gram, ridge), cross, kernels.of(A).plus_number(curvature, ridge))

    def size(self, data):
        """`sqrt(2 loss)` of a model of 0."""
        return math.sqrt(2 * self.of_constant(data, 0.0))

    def row_sizes(self, data, mode):
        return np.sqrt(2 * np.concatenate([self.row_losses(X) for X in data.rows(mode)]))

    def row_losses(self, X: Rows) -> np.ndarray:
        """The loss of a model of 0 for each of these rows."""
        size = np.abs(X.values * np.float64(X.scale))
        within = np.minimum(size, self.known)
        losses = within * (size - within / 2) * (X.weights if X.weights.size else 1.0)
        return np.bincount(np.repeat(np.arange(X.n_rows), np.diff(X.indptr)), losses, X.n_rows)

    def estimated(self, data, factors, n_parameters):
        n_nonzeros, counted = np.sum([counts(X, width_of(data)) for X in data.rows(data.natural)], axis=0)
        found = [(np.zeros(0),) * 3, *residuals(data, factors, counted, n_nonzeros < counted / 2)]
        x, r, weights = (np.concatenate([piece[i] for piece in found]) for i in range(3))
        typical = quantile(np.abs(x[x != 0]), weights[x != 0], 0.5)
        if not n_parameters:
            return Huber(FIRST * typical or 1.0)
        exact = min(n_parameters / counted, 0.5)  # share of entries that a fit may meet whatever they are
        deviation = NORMAL * quantile(np.abs(r), weights, (1 + exact) / 2)
        return Huber(max(EFFICIENT * deviation, LEAST * typical) or 1.0)


# -- the residuals that an estimate is made of ---------------------------------------------------------


def width_of(data: Data) -> int:
    return math.prod(data.shape) // data.shape[data.natural]


def counts(X: Rows, width: int) -> tuple[int, int]:
    """How many entries count and are not 0, and how many count."""
    seen = X.weights > 0 if X.weights.size else np.ones(1, bool)
    n_listed = np.count_nonzero(seen) if X.weights.size else X.values.size
    n_others = X.n_rows * width - X.values.size if X.unlisted > 0 else 0
    return int(np.count_nonzero(seen & (X.values != 0))), int(n_listed + n_others)


def residuals(data: Data, factors: Factors, counted: int, nonzero: bool) -> Iterator[tuple[np.ndarray, ...]]:
    """Entries that count, their residuals and weights, in pieces; of many entries some. `nonzero`: these alone."""
    data, factors = data.double(), [kernels.of(A).to_numpy(A).astype(np.float64) for A in factors]
    A, step = factors[data.natural], max(1, -(-counted // SAMPLE))
    for X in data.rows(data.natural):
        B = data.others(factors, data.natural, X).B
        all_of_them = X.full or (X.unlisted > 0 and not nonzero)
        for x, y, weights in (whole_rows if all_of_them else listed_entries)(X, A, B, step):
            wanted = (weights > 0) & ((x != 0) | (not nonzero))
            yield x[wanted], x[wanted] - y[wanted], weights[wanted]


def whole_rows(X: Rows, A: np.ndarray, B: np.ndarray, step: int) -> Iterator[tuple[np.ndarray, ...]]:
    """All entries of every so many rows, with their model and weights."""
    for block in blocks_of(X, len(B)):
        weights = np.broadcast_to(block.weights, block.entries.shape)
        yield block.entries[::step].ravel(), (A[block.rows][::step] @ B.T).ravel(), weights[::step].ravel()


def listed_entries(X: Rows, A: np.ndarray, B: np.ndarray, step: int) -> Iterator[tuple[np.ndarray, ...]]:
    """The same of every so many listed entries."""
    rows = np.repeat(np.arange(X.first, X.first + X.n_rows), np.diff(X.indptr))
    at_once = step * max(1, BLOCK // A.shape[1])
    for start in range(0, X.values.size, at_once):
        here = slice(start, start + at_once, step)
        x = X.values[here] * np.float64(X.scale)
        weights = X.weights[here] if X.weights.size else np.ones_like(x)
        yield x, np.sum(A[rows[here]] * B[X.indices[here]], axis=1), weights


def quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """The least value up to which there is this share of the weight; 0 of none."""
    if not values.size:
        return 0.0
    if np.all(weights == weights[0]):
        place = max(math.ceil(share * values.size) - 1, 0)
        return float(np.partition(values, place)[place])
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order[min(np.searchsorted(sums, share * sums[-1]), values.size - 1)]])
