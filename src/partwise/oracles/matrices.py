"""What an oracle looks at: a matrix P of which it knows products, and, within limits, the entries.

P is minus the gradient: for least squares `X - A B'`, what is left of X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..data import Data
from ..data.remainder import remainder
from ..data.rows import blocks
from ..data.units import comparable
from ..problem import Factors
from ..problem.symmetric import diagonal_of

ENTRIES = 5_000_000  # of the array that a certificate needs, at most


class Matrix(Protocol):
    settled: float  # growth of a value in a step of the power method at which it has arrived

    @property
    def rounding(self) -> float:
        """How far off its entries are, in the Frobenius norm, at most."""
        ...

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def times(self, V: np.ndarray, mode: int = 0) -> np.ndarray:
        """`P V`, or `P' V` for mode 1."""
        ...

    def heaviest_rows(self, count: int) -> np.ndarray:
        """The positive parts of the rows that have most of it, as columns (n, count)."""
        ...

    def largest(self) -> tuple[int, int, float]:
        """Where the largest entry is, and it."""
        ...


@dataclass(frozen=True, eq=False)
class Array:
    """P entry by entry, in double precision."""

    entries: np.ndarray
    rounding: float = 0.0  # how far off the entries are, in the Frobenius norm, at most

    settled = 1e-14  # bounds meet a point only where it is precise

    @property
    def shape(self):
        return self.entries.shape

    @property
    def dtype(self):
        return self.entries.dtype

    def times(self, V, mode=0):
        return (self.entries.T if mode else self.entries) @ V

    def heaviest_rows(self, count):
        left = np.maximum(self.entries, 0)
        weights = comparable(np.einsum("ij,ij->i", left, left), left.dtype)
        return left[np.argsort(-weights, kind="stable")[:count]].T

    def largest(self):
        i, j = np.unravel_index(np.argmax(self.entries), self.shape)
        return int(i), int(j), float(self.entries[i, j])


@dataclass(frozen=True, eq=False)
class Residual:
    """`X - A B'`, never formed: products with it are products with X, so a sparse X stays sparse."""

    data: Data
    factors: Factors  # (dim, rank)
    diagonal: bool = True  # False: the diagonal of P is 0, whatever X has there

    settled = 1e-9  # steps are dear, and nothing is proved

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    def times(self, V, mode=0):
        A, B = reversed(self.factors) if mode else self.factors
        V = V.astype(self.dtype, copy=False)
        product = self.data.cross((V, V), mode) - A @ (B.T @ V)  # the factor of the mode itself is not read
        return product if self.diagonal else product - self.own_diagonal[:, None] * V

    @cached_property
    def own_diagonal(self) -> np.ndarray:
        A, B = self.factors
        return (diagonal_of(self.data) - np.einsum("ij,ij->i", A, B)).astype(self.dtype)

    def heaviest_rows(self, count):
        """By the listed entries of X: where none is, P is not positive."""
        A, B = self.factors
        heaviest = np.argsort(-comparable(self.row_weights(), self.dtype), kind="stable")[:count]
        return np.maximum(
            np.column_stack([row - B @ A[i] for i, row in zip(heaviest, self.data.take(0, heaviest), strict=True)]), 0
        )

    def row_weights(self) -> np.ndarray:
        """Sums of squares of the positive entries."""
        if not self.data.sparse:
            return np.concatenate([np.square(np.maximum(block, 0)).sum(axis=1) for block in self.blocks()])
        parts = (A if A.shape[1] else np.zeros((len(A), 1), A.dtype) for A in self.factors)  # the kernel needs one
        return remainder(self.data, tuple(parts), [0]).row_sums(0, 2.0)

    def largest(self):
        if self.data.sparse and not self.small:
            return self.largest_listed()
        best, first = (0, 0, -np.inf), 0
        for block in self.blocks():
            i, j = np.unravel_index(np.argmax(block), block.shape)
            if block[i, j] > best[2]:
                best = first + int(i), int(j), float(block[i, j])
            first += len(block)
        return best

    def largest_listed(self) -> tuple[int, int, float]:
        """Of the row whose listed entries leave most: where none is positive no entry is, and another will do."""
        i = int(np.argmax(self.row_weights()))
        row = self.data.take(0, slice(i, i + 1))[0] - self.factors[1] @ self.factors[0][i]
        j = int(np.argmax(row))
        return i, j, float(row[j])

    def blocks(self) -> Iterator[np.ndarray]:
        """Some rows at a time, in double precision."""
        A, B = (factor.astype(np.float64) for factor in self.factors)
        for rows, entries, _ in blocks(self.data):
            left = entries - A[rows] @ B.T
            if not self.diagonal:
                left[np.arange(len(left)), np.arange(rows.start, rows.stop)] = 0.0
            yield left

    @property
    def rounding(self):
        """Of entries in double precision: each is a sum of `rank + 1` terms, rounded as often."""
        A, B = (factor.astype(np.float64) for factor in self.factors)
        size = self.data.norm + float(np.linalg.norm(A) * np.linalg.norm(B))
        return float(np.finfo(np.float64).eps) * (A.shape[1] + 1) * size if A.any() else 0.0

    @property
    def small(self) -> bool:
        """Whether an array of its shape may be made."""
        return math.prod(self.shape) <= ENTRIES

    def array(self, symmetric: bool) -> Array:
        """P entry by entry."""
        P = np.concatenate(list(self.blocks()))
        if symmetric:
            P = (P + P.T) / 2  # X is, but for rounding, which bounds would see in one triangle
        return Array(P, self.rounding)
