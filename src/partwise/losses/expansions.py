"""A loss as a function of one factor: the whole of it, or around a point. With the ridge of the factor's structure."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from ..kernels.records import Box, Chosen, PerRow

MOSTLY = 0.55  # share of the weight there would be if all entries counted most
WILD = 1e3  # times |X|^2, where entries count


class Smooth:
    """What expansions by slopes share."""

    exact = False  # it is the loss everywhere, not only around a point

    def slopes(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at A, (dim, rank), and second derivatives entry by entry, (dim, rank) or one row for all."""
        raise NotImplementedError

    def steepest(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for entries that move together: no second derivative in any direction exceeds the given ones."""
        return self.slopes(A)

    def slopes_for(self, structure, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.slopes(A) if structure.elementwise is not None else self.steepest(A)

    def stationarity(self, structure, A: np.ndarray, size: float) -> float:
        """`sqrt(2 gain) / size` of the component that can gain most; NaN where slopes are not numbers."""
        return relative_gain(self.gains(structure, A), size)

    def gains(self, structure, A: np.ndarray) -> np.ndarray:
        """`Structure.gains` at A; NaN where slopes are not numbers."""
        slopes = self.slopes_for(structure, A)
        return np.where(defined(*slopes).all(), structure.gains(A, *slopes), np.nan)

    def row_stationarity(self, structure, A: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The same of each row, (dim,)."""
        slopes = self.slopes_for(structure, A)
        return np.sqrt(2 * np.where(defined(*slopes), structure.row_gains(A, *slopes), np.nan)) / sizes


class _Quadratic(NamedTuple):
    gram: np.ndarray  # (rank, rank)
    cross: np.ndarray  # (dim, rank)


class Quadratic(Smooth, _Quadratic):
    """Least squares: `1/2 tr(A gram A') - tr(A' cross) + constant`."""

    exact = True

    def split(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`minus` and `plus`: the gradient at A is `plus - minus`; both >= 0 where the data and the factors are."""
        return self.cross, kernels.of(A).times(A, self.gram)

    def slopes(self, A):
        return kernels.of(A).gradient(A, self.gram, self.cross), np.diag(self.gram)[None]

    def steepest(self, A):
        return self.slopes(A)[0], np.full((1, A.shape[1]), curvature_of(self.gram))

    def gains(self, structure, A):
        entries = structure.elementwise
        if entries is None or entries.binary:
            return super().gains(structure, A)
        gains, size = kernels.of(A).quadratic_gains(A, self.gram, self.cross, entries.box(A))
        return gains if math.isfinite(size) else super().gains(structure, A)

    def around(self, A: np.ndarray, unit: float = 1.0) -> Quadratic:
        """A quadratic that touches the loss at A and is nowhere below it, for rows that share a Gram matrix."""
        return self

    def square(self, A: np.ndarray) -> float:
        """`tr(A gram A')`, the square of the model as far as it counts, with the ridge."""
        return float(np.vdot(self.gram, gram_of(A).astype(np.float64, copy=False)))


class Majoriser(Quadratic):
    """A quadratic that touches the loss at a point and lies above it elsewhere: what lowers it lowers the loss."""

    exact = False


class Reweighted(Majoriser):
    """The same, with second derivatives entry by entry, (dim, rank), of the best parabola above the loss in each."""

    def __new__(cls, gram, cross, curvature):
        self = super().__new__(cls, gram, cross)
        self.curvature = curvature
        return self

    def slopes(self, A):
        return super().slopes(A)[0], self.curvature

    def gains(self, structure, A):
        return Smooth.gains(self, structure, A)


class OwnGrams(Smooth):
    """Least squares where entries count differently, so that each row has a Gram matrix of its own:

        1/2 sum_i a_i' (most gram + ridge + sum_j e_ij h_j h_j') a_i - tr(A' cross) + constant,

    e_ij being what entry (i, j) counts more than `most`, and h_j the row of the others that goes with it."""

    exact = True

    def __init__(self, data, factors: Sequence[np.ndarray], mode: int, ridge: float):
        self.others = gram_of_others(factors, mode)
        self.norm2 = data.norm2
        self.wild = self.is_wild(factors[mode])
        self.most, self.beyond = data.plainly if self.wild else data.beyond
        self.largest, self.factors, self.mode, self.ridge = data.largest, list(factors), mode, ridge
        most = data.largest or 1.0  # nothing counts in some blocks of X
        self.shares = data.row_weights(mode) * (data.shape[mode] / (most * math.prod(data.shape)))
        self.gram = with_ridge(self.others * self.others.dtype.type(self.most), ridge)
        self.cross = data.cross(factors, mode)

    def is_wild(self, A: np.ndarray) -> bool:
        """Whether the model is huge where nothing holds it back: sums over all entries say nothing of the few that
        count."""
        return float(np.vdot(self.others, gram_of(A))) > WILD * self.norm2

    @property
    def mostly_known(self) -> bool:
        """Whether most entries count as much as any, in every row: a majoriser then measured faster than the loss."""
        seen = self.shares[self.shares > 0]
        return not self.wild and bool(seen.mean() >= MOSTLY and seen.min() >= MOSTLY / 2)

    def at(self, A: np.ndarray) -> list[np.ndarray]:
        return [A if mode == self.mode else B for mode, B in enumerate(self.factors)]

    def own_slopes(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at A without the cross product, and second derivatives entry by entry."""
        of = kernels.of(A)
        (slope, curvature), _ = self.beyond.map(of.own_slopes, self.at(A), self.mode)
        return of.difference(of.times(A, self.gram), of.scaled(slope, -1.0)), curvature + np.diag(self.gram)

    def split(self, A):
        """`minus` and `plus`, as `Quadratic` has them."""
        return self.cross, np.maximum(self.own_slopes(A)[0], 0)

    def slopes(self, A):
        slope, curvature = self.own_slopes(A)
        return kernels.of(A).difference(slope, self.cross), np.maximum(curvature, 0)

    def steepest(self, A):
        most = self.largest * curvature_of(self.others) + self.ridge
        return self.slopes(A)[0], np.full((1, A.shape[1]), most)

    def around(self, A, unit=1.0):
        gram = with_ridge(self.others * self.others.dtype.type(self.largest), self.ridge)
        slope, _ = self.own_slopes(A)
        return Majoriser(gram, self.cross + A.dtype.type(unit) * (A @ gram - slope))

    def square(self, A):
        _, (squares,) = self.beyond.map(kernels.of(A).own_slopes, self.at(A), self.mode)
        return self.square_with(A, squares)

    def square_with(self, A: np.ndarray, squares: float) -> float:
        """The same, given the sum of `e y^2`."""
        return float(np.vdot(self.gram, gram_of(A).astype(np.float64))) + squares

    def descend(self, A: np.ndarray, box: Box, inner: tuple, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Coordinate descent in the given rows (`kernels.own_grams`), what each component could have gained, and the
        sum of `e y^2` in these rows after it."""
        rule = PerRow(self.cross), self.gram, box, inner, Chosen(rows)
        (factor,), (gains, squares) = self.beyond.map(kernels.of(A).own_grams, self.at(A), self.mode, *rule)
        return factor, gains, squares

    def grams(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Of each of these rows the number and the Gram matrix, without the ridge."""
        shared = self.others * self.others.dtype.type(self.most)
        for X in self.beyond.rows(self.mode):
            B = self.beyond.others(self.factors, self.mode, X).B
            for i in rows[(rows >= X.first) & (rows < X.first + X.n_rows)]:
                here = slice(X.indptr[i - X.first], X.indptr[i - X.first + 1])
                H = B if X.full else B[X.indices[here]]
                yield int(i), shared + (H.T * X.values[here].astype(H.dtype)) @ H

    def solved(self, A: np.ndarray, cross: np.ndarray, gram: np.ndarray, inner: tuple) -> np.ndarray:
        """Without bounds, with another cross product and another part that the Gram matrices share; from A."""
        other = copy.copy(self)
        other.cross, other.gram = cross, gram
        ends = (np.full((1, A.shape[1]), end, A.dtype) for end in (-np.inf, np.inf))
        return other.descend(A, Box(A.dtype.type(0), *ends), (*inner, False, False, 1, False), np.arange(len(A)))[0]

    def in_order(self, order: np.ndarray) -> OwnGrams:
        """The same with the components in another order."""
        other = copy.copy(self)
        *other.factors, other.cross = (kernels.of(F).columns(F, order) for F in (*self.factors, self.cross))
        other.gram, other.others = (G[np.ix_(order, order)] for G in (self.gram, self.others))
        return other


class RowQuadratics(Smooth):
    """Quadratics in the rows of a factor, whose Gram matrices are added up over blocks of X:

        1/2 sum_i a_i' (gram + own_i) a_i - tr(A' cross) + constant,

    own_i packed as `kernels.hessians` has it; `most`: a Gram matrix that no row's exceeds."""

    def __init__(self, gram: np.ndarray, own: np.ndarray, cross: np.ndarray, most: np.ndarray):
        self.gram, self.own, self.cross, self.most = gram, own, cross, most

    def slopes(self, A):
        return kernels.of(A).given_slopes(A, self.own, self.gram, self.cross)

    def steepest(self, A):
        return self.slopes(A)[0], np.full((1, A.shape[1]), curvature_of(self.most))

    def around(self, A: np.ndarray, unit: float = 1.0) -> Majoriser:
        return Majoriser(self.most, A @ self.most - A.dtype.type(unit) * self.slopes(A)[0])

    def descend(self, A: np.ndarray, box: Box, inner: tuple) -> np.ndarray:
        """Coordinate descent in all rows."""
        return kernels.of(A).given_grams(A, self.own, self.gram, self.cross, box, inner, np.arange(len(A)))


class _Tangent(NamedTuple):
    minus: np.ndarray  # the gradient is `plus - minus`, both (dim, rank) and >= 0
    plus: np.ndarray
    curvature: np.ndarray  # second derivatives entry by entry, of the convex part, (dim, rank)


class Tangent(Smooth, _Tangent):
    """A loss around one point, by its slopes and curvatures."""

    def split(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`minus` and `plus`."""
        return self.minus, self.plus

    def slopes(self, A):
        return kernels.of(A).difference(self.plus, self.minus), self.curvature


class SecondOrder(Tangent):
    """The same with all second derivatives of each row: `own`, packed as `kernels.hessians` has them, and the ridge."""

    own: np.ndarray
    ridge: float

    def __new__(cls, minus, plus, own, ridge):
        rank = minus.shape[1]
        diagonal = own[:, np.cumsum(np.arange(1, rank + 1)) - 1]
        self = super().__new__(cls, minus, plus, diagonal + own.dtype.type(ridge))
        self.own, self.ridge = own, ridge
        return self

    def newton_step(self, A: np.ndarray, box: Box, inner: tuple) -> np.ndarray:
        """To the minimum of the expansion, by coordinate descent within the box, and no further along the way of a row
        than it falls: of a step that changes the model little, that makes the loss fall. L1 penalties are linear here,
        of factors >= 0."""
        none = np.zeros_like(self.own[:1, :1])
        gram, cross = with_ridge(np.zeros((A.shape[1],) * 2, A.dtype), self.ridge), np.zeros_like(A)
        product = kernels.of(A).given_slopes(A, self.own, gram, cross)[0]
        model = RowQuadratics(gram, self.own, product - (self.plus - self.minus) - box.l1, none)
        new = model.descend(A, box._replace(l1=A.dtype.type(0)), inner)
        way = new - A
        first, last = (np.einsum("ij,ij->i", way, model.slopes(B)[0]) for B in (A, new))
        share = np.divide(first, first - last, out=np.ones_like(first), where=last > 0)
        return np.clip(A + share[:, None] * way, box.lower, box.upper)


class Several(NamedTuple):
    """Arrays that are added one by one."""

    arrays: tuple

    def __add__(self, other):
        return Several(tuple(a + b for a, b in zip(self.arrays, other.arrays, strict=True)))


class L1Expansion(NamedTuple):
    """The L1 loss around one point, where slopes say little: how many entries of each row are not at their best value,
    the others held, (dim,), and the loss."""

    n_suboptimal: np.ndarray
    loss: float

    @property
    def exact(self) -> bool:
        return False

    def stationarity(self, structure, A: np.ndarray, size: float) -> float:
        """The share of entries that are not at their best value."""
        return float(self.n_suboptimal.sum()) / A.size

    def row_stationarity(self, structure, A: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The same of each row, (dim,)."""
        return self.n_suboptimal / A.shape[1]


Expansion = Any  # one of these: each is asked only for what it has


def gram_of(A: np.ndarray) -> np.ndarray:
    return kernels.of(A).gram(A)


def gram_of_others(factors: Sequence[np.ndarray], mode: int) -> np.ndarray:
    """The Gram matrix of the Khatri-Rao product of all factors but one: that of their own, entry by entry."""
    return reduce(np.multiply, [gram_of(B) for other, B in enumerate(factors) if other != mode])


def with_ridge(gram: np.ndarray, ridge: float) -> np.ndarray:
    """The Gram matrix with `ridge / 2 |A|^2` in the objective."""
    return gram + gram.dtype.type(ridge) * np.eye(len(gram), dtype=gram.dtype) if ridge else gram


def normal_equations(data, factors: Sequence[np.ndarray], mode: int, ridge: float = 0.0) -> Quadratic | OwnGrams:
    """Least squares in one factor."""
    if not data.complete:
        return OwnGrams(data, factors, mode, ridge)
    return Quadratic(with_ridge(gram_of_others(factors, mode), ridge), data.cross(factors, mode))


def curvature_of(gram: np.ndarray) -> float:
    """The largest second derivative of `1/2 tr(A gram A')` in any direction."""
    return max(float(np.linalg.eigvalsh(gram.astype(np.float64))[-1]), 0.0)


def relative_gain(gains: np.ndarray, size: float) -> float:
    """`sqrt(2 gain) / size` of the component that can gain most."""
    root = math.sqrt(2 * largest(gains))
    return root / size if size > 0 else math.inf if root > 0 else root


def ratio(a: float | np.ndarray, b: float | np.ndarray) -> np.ndarray:
    """`a / b` for a, b >= 0, with 0 / 0 = 0 and a / 0 infinite."""
    a = np.asarray(a, dtype=np.float64)
    return np.divide(a, b, out=np.where(a > 0, np.inf, a), where=np.asarray(b) > 0)


def largest(measures) -> float:
    """The largest of some measures, at least 0; NaN if any is, since then nothing is known."""
    return float(np.maximum.reduce(measures, axis=None, initial=0.0))


def defined(G: np.ndarray, d: np.ndarray) -> np.ndarray:
    """In which rows slopes and second derivatives are numbers, (dim,) or one for all: elsewhere a gain says nothing."""
    return kernels.of(G).finite_rows(G) & kernels.of(d).finite_rows(d)
