"""Weights of rows and columns: a change of units, where that is all they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data import Data
from ..data.observed import Observed
from ..data.weighted import weighted_by
from ..losses import Loss
from ..structures import Elementwise, Structure
from .problem import Problem, RowUnits
from .symmetric import pose_as

LEAST = {np.dtype(np.float64): 2.0**-40, np.dtype(np.float32): 2.0**-20}  # unit of a row, the largest being 1


def pose_observed(
    symmetric: bool | str, given: Observed, loss: Loss, stated: Sequence[Structure], rank: int
) -> Problem:
    """A problem of data whose entries may be missing or count differently.

    Under a loss with `d(s x, s y) = s^degree d(x, y)`, entries that count `r_i c_j` are those of X with its rows and
    columns multiplied by `r_i^(1/degree)` and `c_j^(1/degree)`, and so are the factors: no entry has a weight of its
    own. Where a structure is in the way, or the loss knows no such rule, each has."""
    data, vectors, exponent = given
    problem = replace(pose_as(symmetric, data, loss, stated, rank), weight_exponent=exponent)
    if not vectors:
        return problem
    simple = loss.homogeneous and all(map(in_any_units, problem.structures, vectors))
    if data.in_blocks and vectors[0] is not None:  # bounds of rows of W are not cut into blocks
        simple &= problem.structures[0].scale_free
    if symmetric or not simple:
        weighted = pose_as(symmetric, weighted_by(data, vectors), loss, stated, rank)
        return replace(weighted, weight_exponent=exponent)
    least = LEAST[problem.data.stored]
    numbers = [None if vector is None else in_range(vector ** (1 / loss.degree), least) for vector in vectors]
    scaled = problem.data.multiplied(numbers)
    pairs = list(zip(problem.structures, numbers, strict=True))
    units = tuple(None if n is None else RowUnits(n, s) for s, n in pairs)
    structures = tuple(s if n is None else in_units(s, n, rank) for s, n in pairs)
    null_fit = null_fit_of(problem.data, loss, vectors)
    return replace(problem, data=scaled, structures=structures, row_units=units, null_fit=null_fit)


def null_fit_of(data: Data, loss: Loss, vectors: Sequence[np.ndarray | None]) -> float:
    """The loss of the null model where entries count as the vectors say."""
    rows = vectors[0]
    tall = () if rows is None else (rows[:, None],)
    _, (amount, total) = data.each(Amount(vectors), *tall)
    constant = loss.null(amount / total)
    return data.each(NullFit(loss, constant, vectors), *tall)[1][0] if constant else 0.0


@dataclass(frozen=True, eq=False)
class Amount:
    """The sum of `|x|` over some rows of X by what they count, and what these entries count together."""

    vectors: Sequence[np.ndarray | None]

    def __call__(self, data: Data, *rows: np.ndarray) -> tuple[tuple, tuple]:
        values, weights, rest = counted_along(data, own_vectors(self.vectors, rows))
        return (), (float(weights @ np.abs(values)), float(weights.sum()) + rest)


@dataclass(frozen=True, eq=False)
class NullFit:
    """The loss of a constant on some rows of X."""

    loss: Loss
    constant: float
    vectors: Sequence[np.ndarray | None]

    def __call__(self, data: Data, *rows: np.ndarray) -> tuple[tuple, tuple]:
        values, weights, rest = counted_along(data, own_vectors(self.vectors, rows))
        of_zero = self.loss.value(np.zeros(1), np.full(1, self.constant), 1.0) if rest else 0.0
        lost = self.loss.of_those_that_count(values, np.full_like(values, self.constant), weights)
        return (), (lost + rest * of_zero,)


def own_vectors(vectors: Sequence[np.ndarray | None], rows: Sequence[np.ndarray]) -> list[np.ndarray | None]:
    """What some rows count; those of the first mode in place of the whole vector."""
    return [rows[0][:, 0] if rows else None, *vectors[1:]]


def mean_of(given: Observed) -> float:
    """Mean of the absolute values of the entries, by what they count."""
    return weighted_mean(*counted_along(given.data, given.vectors)) if given.vectors else given.data.mean


def counted_along(data: Data, vectors: Sequence[np.ndarray | None]) -> tuple[np.ndarray, np.ndarray, float]:
    """The listed entries, what they count where entries count as the vectors say, and what all others do together."""
    values, weights = data.listed_pair()
    along = data.along(vectors)
    sums = [dim if v is None else float(v.sum()) for v, dim in zip(vectors, data.shape, strict=True)]
    return values, weights * along, data.unlisted * max(math.prod(sums) - float(along.sum()), 0.0)


def weighted_mean(values: np.ndarray, weights: np.ndarray, rest: float) -> float:
    """Mean of the absolute values; `rest` is what zeros count that are not among them."""
    return float(weights @ np.abs(values)) / (float(weights.sum()) + rest)


def in_range(numbers: np.ndarray, least: float) -> np.ndarray:
    """Units that can be divided by, 0 apart: so small a weight has no say in the other factors, and less would not
    either."""
    return np.where(numbers > 0, np.maximum(numbers, least), 0.0)


def in_any_units(structure: Structure, vector: np.ndarray | None) -> bool:
    """Whether rows of a factor may be multiplied by anything."""
    entries = structure.elementwise
    return vector is None or (entries is not None and entries.bounds_only)


def in_units(structure: Structure, numbers: np.ndarray, rank: int) -> Elementwise:
    """The same for rows times their units."""
    entries = structure.elementwise
    assert entries is not None

    def scaled(bound):
        if np.ndim(bound) == 0 and (bound == 0 or np.isinf(bound)):
            return bound
        bound = np.broadcast_to(bound, (len(numbers), rank))
        return np.where(np.isinf(bound), bound, np.where(np.isinf(bound), 0, bound) * numbers[:, None])

    return Elementwise(scaled(entries.lower), scaled(entries.upper))
