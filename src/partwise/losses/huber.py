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
from .base import Factors, Loss

EFFICIENT = 1.345  # standard deviations: of Gaussian errors alone as precise as least squares to 5%
NORMAL = 1.4826  # the median of |r| times this is the standard deviation of Gaussian errors
LEAST = 1e-3  # of the median nonzero entry of X: an estimate is not below it, where X is met exactly, say
SAMPLE = 1 << 22  # residuals that an estimate is made of, about, at most


@dataclass(frozen=True)
class Huber(Loss):
    """`1/2 r^2` for residuals `|r| <= delta`, `delta |r| - delta^2 / 2` beyond: least squares for what is noise, and as
    L1 for what is an error, so that a few gross ones are nearly left alone.

    `delta`, in the units of X; None: 1.345 standard deviations of the noise, by 1.4826 times the median of `|r|` in fits
    that are made before (each observed entry by its weight, zeros of a sparse X too). Where more than half of the
    entries are 0, most residuals say nothing of the noise, and only those of nonzero entries count. It is at least a
    thousandth of the median nonzero entry. The result has the loss with the delta that was found.
    """

    delta: float | None = None
    kernels = ("expansion", "losses")
    updates = frozenset({"gcd", "hals", "newton", "palm"})
    degree = 2.0
    explains = "|X|^2"

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
        size = np.abs(np.asarray(X, dtype=np.float64) - np.asarray(Y, dtype=np.float64))
        within = np.minimum(size, self.known)
        return float(np.sum(weights * (within * (size - within / 2))))

    def gradient(self, X, Y):
        return np.clip(Y - X, -self.known, self.known)

    def direct_fit(self, data, factors):
        data, factors = data.every_entry().double(), [kernels.of(A).astype(A, np.float64) for A in factors]
        return data.map(kernels.of(factors[0]).losses, factors, data.natural, self.of_entry)[1][0]

    def slope(self, data, factors, mode):
        A = factors[mode]
        (minus, plus, _), _ = data.map(kernels.of(A).expansion, factors, mode, self.of_entry)
        return kernels.of(A).difference(plus, minus)

    def estimated(self, data, factors):
        nonzero, counted = np.sum([counts(X, width_of(data)) for X in data.rows(data.natural)], axis=0)
        found = list(residuals(data, factors, counted, nonzero < counted / 2))
        x, r, weights = (np.concatenate([piece[i] for piece in found]) for i in range(3))
        least = LEAST * weighted_median(np.abs(x[x != 0]), weights[x != 0])
        return Huber(max(EFFICIENT * NORMAL * weighted_median(np.abs(r), weights), least) or 1.0)


# -- the residuals that an estimate is made of ---------------------------------------------------------


def width_of(data: Data) -> int:
    return math.prod(data.shape) // data.shape[data.natural]


def counts(X: Rows, width: int) -> tuple[float, float]:
    """The weights of nonzero entries, and those of all, added up."""
    nonzero = X.weights[X.values != 0].sum(dtype=np.float64) if X.weights.size else np.count_nonzero(X.values)
    listed = X.weights.sum(dtype=np.float64) if X.weights.size else X.values.size
    return nonzero, listed + X.unlisted * (X.n_rows * width - X.values.size)


def residuals(data: Data, factors: Factors, counted: float, nonzero: bool) -> Iterator[tuple[np.ndarray, ...]]:
    """Entries that count, their residuals and weights, in pieces; of many entries some. `nonzero`: these alone."""
    data, factors = data.double(), [kernels.of(A).to_numpy(A).astype(np.float64) for A in factors]
    A, step = factors[data.natural], max(1, int(counted / SAMPLE))
    for X in data.rows(data.natural):
        B = data.others(factors, data.natural, X).B
        spread = X.full or (X.unlisted > 0 and not nonzero)
        for x, y, weights in spread_out(X, A, B, step) if spread else listed(X, A, B, step):
            wanted = (weights > 0) & ((x != 0) | (not nonzero))
            yield x[wanted], x[wanted] - y[wanted], weights[wanted]


def spread_out(X: Rows, A: np.ndarray, B: np.ndarray, step: int) -> Iterator[tuple[np.ndarray, ...]]:
    """All entries of every so many rows, with their model and weights."""
    for block in blocks_of(X, len(B)):
        x = block.entries[::step]
        weights = np.broadcast_to(block.weights, block.entries.shape)[::step]
        yield x.ravel(), (A[block.rows][::step] @ B.T).ravel(), weights.ravel()


def listed(X: Rows, A: np.ndarray, B: np.ndarray, step: int) -> Iterator[tuple[np.ndarray, ...]]:
    """The same of every so many listed entries."""
    rows = np.repeat(np.arange(X.first, X.first + X.n_rows), np.diff(X.indptr))
    at_once = step * max(1, BLOCK // A.shape[1])
    for start in range(0, X.values.size, at_once):
        here = slice(start, start + at_once, step)
        x = X.values[here] * np.float64(X.scale)
        yield x, np.sum(A[rows[here]] * B[X.indices[here]], axis=1), X.weights[here] if X.weights.size else np.ones_like(x)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The least value up to which there is half of the weight; 0 of none."""
    if not values.size:
        return 0.0
    order = np.argsort(values)
    sums = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(sums, sums[-1] / 2)]])
