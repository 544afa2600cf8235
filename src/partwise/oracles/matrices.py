"""What an oracle looks at: a matrix or a tensor P of which it knows products, and, within limits, the entries.

P is minus the gradient: for least squares `X - [[A]]`, what is left of X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Protocol

import numpy as np

from ..data import Data
from ..data.base import khatri_rao
from ..data.remainder import remainder
from ..data.rows import BLOCK, blocks
from ..data.units import comparable
from ..problem import Factors
from ..problem.symmetric import diagonal_of

ENTRIES = 5_000_000  # of the array that a certificate needs, at most


class Target(Protocol):
    settled: float  # growth of a value in a step of the power method at which it has arrived

    @property
    def sees_all(self) -> bool:
        """Whether `largest` looks at every entry."""
        ...

    @property
    def rounding(self) -> float:
        """How far off its entries are, in the Frobenius norm, at most."""
        ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def contract(self, vectors: Sequence[np.ndarray], mode: int) -> np.ndarray:
        """P contracted with column k of the vectors of all other modes, for every k: (dim, count). Of a matrix: `P V`,
        or `P' U` for mode 1."""
        ...

    def heaviest(self, count: int) -> tuple[np.ndarray, ...]:
        """Vectors (dim, count), or as many as there are, of the rows or slices whose positive parts have the largest
        norms: the positive parts of rows, and the place of the largest entry of a slice. Those of mode 0 are not
        read."""
        ...

    def largest(self) -> tuple[tuple[int, ...], float]:
        """Where the largest entry is, and it."""
        ...


@dataclass(frozen=True, eq=False)
class Array:
    """A matrix P entry by entry, in double precision."""

    entries: np.ndarray
    rounding: float = 0.0  # how far off the entries are, in the Frobenius norm, at most

    sees_all = True
    settled = 1e-14  # bounds meet a point only where it is precise

    @property
    def shape(self):
        return self.entries.shape

    @property
    def dtype(self):
        return self.entries.dtype

    def times(self, V, mode=0):
        return (self.entries.T if mode else self.entries) @ V

    def contract(self, vectors, mode):
        return self.times(vectors[1 - mode], mode)

    def heaviest(self, count):
        left = np.maximum(self.entries, 0)
        weights = comparable(np.einsum("ij,ij->i", left, left), left.dtype)
        return (left[np.argsort(-weights, kind="stable")[:count]].T,) * 2

    def largest(self):
        i, j = np.unravel_index(np.argmax(self.entries), self.shape)
        return (int(i), int(j)), float(self.entries[i, j])


@dataclass(frozen=True, eq=False)
class Residual:
    """`X - [[A]]`, never formed: products with it are products with X, so a sparse X stays sparse."""

    data: Data
    factors: Factors  # (dim, rank)
    diagonal: bool = True  # False: the diagonal of P is 0, whatever X has there

    settled = 1e-9  # steps are dear, and nothing is proved

    @property
    def sees_all(self):
        return self.small or not self.data.sparse

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    def contract(self, vectors, mode):
        vectors = [V.astype(self.dtype, copy=False) for V in vectors]
        others = [other for other in range(len(vectors)) if other != mode]
        model = reduce(np.multiply, (self.factors[other].T @ vectors[other] for other in others))
        product = self.data.cross(vectors, mode) - self.factors[mode] @ model
        return product if self.diagonal else product - self.own_diagonal[:, None] * vectors[others[0]]

    @cached_property
    def own_diagonal(self) -> np.ndarray:
        A, B = self.factors
        return (diagonal_of(self.data) - np.einsum("ij,ij->i", A, B)).astype(self.dtype)

    def heaviest(self, count):
        """By the listed entries of X: where none is, P is not positive."""
        if len(self.shape) > 2:
            weights, places = self.slices()
            best = places[np.argsort(-comparable(weights, self.dtype), kind="stable")[:count]]
            return tuple(one_hot(best[:, mode], dim, self.dtype) for mode, dim in enumerate(self.shape))
        heaviest = np.argsort(-comparable(self.row_weights(), self.dtype), kind="stable")[:count]
        A, B = self.factors
        rows = (row - B @ A[i] for i, row in zip(heaviest, self.data.take(0, heaviest), strict=True))
        return (np.maximum(np.column_stack(list(rows)), 0),) * 2

    @property
    def axes(self) -> tuple[int, ...]:
        """The mode whose slices are looked at, the rows of a matrix and of a tensor what lies together in memory, and
        then the modes within a slice, the last one fastest."""
        slicing = 0 if len(self.shape) == 2 else self.data.natural
        return slicing, *self.data.columns(slicing)

    def slices(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the slices of a tensor, the sums of squares of their positive entries, and the place of the largest one,
        (n_slices, order); of any, where none is listed."""
        if not self.data.sparse:
            pairs = [(np.square(np.maximum(B, 0)).sum(axis=1), np.argmax(B, axis=1)) for B in self.blocks()]
            weights, columns = map(np.concatenate, zip(*pairs, strict=True))
            return weights, self.places(np.arange(len(columns)), columns)
        coords, left = self.listed()
        own, n_slices = coords[:, self.axes[0]], self.shape[self.axes[0]]
        peaks, places = np.full(n_slices, -np.inf), np.zeros((n_slices, len(self.shape)), int)
        np.maximum.at(peaks, own, left)
        largest = np.flatnonzero(left == peaks[own])
        places[own[largest]] = coords[largest]
        return np.bincount(own, np.square(np.maximum(left, 0)), minlength=n_slices), places

    def places(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Of entries by slice and where they are in it, (count, order)."""
        found = np.empty((len(rows), len(self.shape)), int)
        found[:, self.axes[0]] = rows
        found[:, self.axes[1:]] = np.column_stack(np.unravel_index(columns, [self.shape[m] for m in self.axes[1:]]))
        return found

    def listed(self) -> tuple[np.ndarray, np.ndarray]:
        """Places (nnz, order) where a sparse tensor has an entry, the first one if there is none, and P there."""
        coords, values = self.data.arrays
        if not len(values):
            coords, values = np.zeros((1, len(self.shape)), int), np.zeros(1)
        left = values / np.float64(self.data.scale)
        step = max(1, BLOCK // self.parts[0].shape[1])
        for here in (slice(start, start + step) for start in range(0, len(left), step)):
            rows = (A[coords[here, mode]] for mode, A in enumerate(self.parts))
            left[here] -= reduce(np.multiply, rows).sum(axis=1)
        return coords, left

    def row_weights(self) -> np.ndarray:
        """Sums of squares of the positive entries of the rows of a matrix."""
        if not self.data.sparse:
            return np.concatenate([np.square(np.maximum(block, 0)).sum(axis=1) for block in self.blocks()])
        return remainder(self.data, self.parts, [0]).row_sums(0, 2.0)

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """The factors, with one part of zeros where there is none: kernels and Khatri-Rao products need one."""
        return tuple(A if A.shape[1] else np.zeros((len(A), 1), A.dtype) for A in self.factors)

    def largest(self):
        if self.data.sparse and not self.small:
            return self.largest_listed()
        best, first = (0, 0, -np.inf), 0
        for block in self.blocks():
            i, j = np.unravel_index(np.argmax(block), block.shape)
            if block[i, j] > best[2]:
                best = first + int(i), int(j), float(block[i, j])
            first += len(block)
        return tuple(self.places(*np.array([best[:2]]).T)[0].tolist()), best[2]

    def largest_listed(self) -> tuple[tuple[int, ...], float]:
        """Of the row whose listed entries leave most, or of all listed entries of a tensor: where none is positive no
        entry is, and another will do."""
        if len(self.shape) > 2:
            coords, left = self.listed()
            k = int(np.argmax(left))
            return tuple(coords[k].tolist()), float(left[k])
        i = int(np.argmax(self.row_weights()))
        row = self.data.take(0, slice(i, i + 1))[0] - self.factors[1] @ self.factors[0][i]
        j = int(np.argmax(row))
        return (i, j), float(row[j])

    def blocks(self) -> Iterator[np.ndarray]:
        """Some slices of P at a time, as rows, in double precision."""
        A, *others = (self.parts[mode].astype(np.float64) for mode in self.axes)
        B = khatri_rao(others)
        for rows, entries, _ in blocks(self.data.every_entry(), self.axes[0]):
            left = entries - A[rows] @ B.T
            if not self.diagonal:
                left[np.arange(len(left)), np.arange(rows.start, rows.stop)] = 0.0
            yield left

    @property
    def rounding(self):
        """Of entries in double precision: each is a sum of `rank + 1` terms, rounded as often, and the products of more
        than two factors are rounded once more for each of these."""
        factors = [A.astype(np.float64) for A in self.factors]
        size = self.data.norm + float(reduce(np.multiply, map(np.linalg.norm, factors)))
        often = factors[0].shape[1] + len(factors) - 1
        return float(np.finfo(np.float64).eps) * often * size if factors[0].any() else 0.0

    def double(self) -> Residual:
        """The same, computed with in double precision."""
        return replace(self, data=self.data.double(), factors=[A.astype(np.float64, copy=False) for A in self.factors])

    @property
    def small(self) -> bool:
        """Whether an array of its shape may be made."""
        return math.prod(self.shape) <= ENTRIES

    def entries(self) -> np.ndarray:
        """P entry by entry, in double precision."""
        P = np.concatenate(list(self.blocks())).reshape([self.shape[mode] for mode in self.axes])
        return P.transpose(np.argsort(self.axes))

    def array(self, symmetric: bool) -> Array:
        """A matrix entry by entry."""
        P = self.entries()
        if symmetric:
            P = (P + P.T) / 2  # X is, but for rounding, which bounds would see in one triangle
        return Array(P, self.rounding)


def one_hot(index: np.ndarray, dim: int, dtype: np.dtype) -> np.ndarray:
    """Columns that are 1 in one place, (dim, count)."""
    return (np.arange(dim)[:, None] == index).astype(dtype)
