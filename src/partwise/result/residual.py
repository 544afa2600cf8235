"""Where a model fails: the loss of X by row, column or slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..data import Data
from ..data.observed import Observed, observed
from ..data.units import exponent_of
from ..losses.base import Loss, models
from ..problem.parts import diagonal_weight

if TYPE_CHECKING:
    from .result import Result

MOST = 2_000_000  # entries that are looked at one by one
NEARLY = 0.5  # of the rows: all may as well be


@dataclass(frozen=True, eq=False)
class Residual:
    """X and its model in some rows, evenly chosen where X is large, and what each row, column or slice loses."""

    rows: np.ndarray  # their numbers along the first mode
    data: np.ndarray  # NaN where an entry does not count
    model: np.ndarray
    losses: tuple[np.ndarray, ...]  # along each mode, over these rows, up to a factor that all share
    sizes: tuple[np.ndarray, ...]  # what the null model would lose there
    n_rows: int  # of X

    @property
    def sampled(self) -> bool:
        return self.n_rows > len(self.rows)

    def shares(self, mode: int) -> np.ndarray:
        """Of the loss, along a mode."""
        total = self.losses[mode].sum()
        return self.losses[mode] / total if total > 0 else self.losses[mode]

    def excess(self, mode: int) -> np.ndarray:
        """By how much the share of the loss is above that of the null model: what is badly explained, not what is
        large."""
        return self.shares(mode) - self.sizes[mode] / (self.sizes[mode].sum() or 1.0)

    def explained(self, mode: int) -> np.ndarray:
        """`1 - loss / (the loss of the null model)`, along a mode; NaN where the null model loses nothing."""
        losses, sizes = self.losses[mode], self.sizes[mode]
        return 1 - np.divide(losses, sizes, out=np.full(len(losses), np.nan), where=sizes > 0)


def data_of(result: Result, X, missing: str | None = "nan", mask=None, weights=None) -> Observed:
    """The data of a result, as the user gives them again."""
    given = observed(X, missing, mask, weights)
    if given.data.shape != result.shape:
        raise ValueError(f"X has shape {given.data.shape}, but this result is of one of shape {result.shape}")
    return given


def residual_of(result: Result, given: Observed) -> Residual:
    """Of the data of a result."""
    rows = chosen_rows(given.data.shape)
    data, model, counts = given.data.among_rows(rows, Entries(result.factors[1:], result.loss), result.factors[0])
    for axis, vector in enumerate(given.vectors):
        if vector is not None:
            own = vector[rows] if axis == 0 else vector
            counts = counts * np.expand_dims(own, [m for m in range(data.ndim) if m != axis])
    if not diagonal_weight(result.symmetric):
        counts[np.arange(len(rows)), rows] = 0
    unit = exponent_of(float(np.abs(data[counts > 0]).max(initial=0)))  # squares are numbers
    x, y, loss = np.ldexp(data, -unit), np.ldexp(model, -unit), result.loss.in_units(unit)
    null = np.full(data.shape, loss.null(mean_of(x, counts)))
    losses, sizes = (summed(loss, x, Y, counts) for Y in (y, null))
    return Residual(rows, np.where(counts > 0, data, np.nan), model, losses, sizes, n_rows=result.shape[0])


def chosen_rows(shape: tuple[int, ...]) -> np.ndarray:
    """All rows, or as many as have `MOST` entries, evenly spread."""
    most = max(1, MOST * shape[0] // math.prod(shape))
    return np.arange(shape[0]) if most >= NEARLY * shape[0] else np.linspace(0, shape[0] - 1, most).round().astype(int)


@dataclass(frozen=True, eq=False)
class Entries:
    """Of some rows of X, with their rows of the first factor: the entries, the model and what each counts, as arrays of
    the shape of X."""

    others: Sequence[np.ndarray]  # the other factors
    loss: Loss

    def __call__(self, data: Data, A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        factors = A, *self.others
        held = self.loss.held(data, all((F >= 0).all() for F in factors))
        found = [(b.entries, Y, np.broadcast_to(b.weights, Y.shape)) for b, Y, _ in models(held, factors, 0)]
        x, y, counts = (np.concatenate(blocks).reshape(data.shape) for blocks in zip(*found, strict=True))
        return x, y, counts.astype(np.float64)


def mean_of(data: np.ndarray, counts: np.ndarray) -> float:
    total = counts.sum()
    return float((np.abs(np.where(counts > 0, data, 0)) * counts).sum() / total) if total > 0 else 0.0


def summed(loss: Loss, X: np.ndarray, Y: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """The loss by row, by column, ..., of each mode."""
    lost, seen = np.zeros(X.shape), counts > 0
    lost[seen] = counts[seen] * loss.entrywise(X[seen], Y[seen])
    return tuple(lost.sum(axis=tuple(other for other in range(X.ndim) if other != mode)) for mode in range(X.ndim))
