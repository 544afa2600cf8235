"""What an oracle looks at: a matrix P of which it knows products, and, within limits, the entries.

P is minus the gradient: for least squares `X - A B'`, what is left of X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from .. import kernels
from ..data import Data
from ..problem import Factors

ENTRIES = 5_000_000  # of the array that a certificate needs, at most


class Matrix(Protocol):
    settled: float  # growth of a value in a step of the power method at which it has arrived

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
        return left[np.argsort(-np.einsum("ij,ij->i", left, left), kind="stable")[:count]].T


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
        A, B = self.factors[mode], self.factors[1 - mode]
        V = V.astype(self.dtype, copy=False)
        product = self.data.cross((V, V), mode) - A @ (B.T @ V)  # the factor of the mode itself is not read
        return product if self.diagonal else product - self.own_diagonal[:, None] * V

    @cached_property
    def own_diagonal(self) -> np.ndarray:
        A, B = self.factors
        return (self.data.diagonal - np.einsum("ij,ij->i", A, B)).astype(self.dtype)

    def heaviest_rows(self, count):
        """By the listed entries of X."""
        (indptr, indices, values), scale = self.data.entries(0)
        kernel, one = kernels.of(values), values.dtype.type(1)
        parts = (A if A.shape[1] else np.zeros((len(A), 1), A.dtype) for A in self.factors)  # the kernel needs one
        left = np.maximum(kernel.residuals((indptr, indices, values), scale, *parts), 0)
        heaviest = np.argsort(-kernel.power_sums(indptr, left, one, 2.0), kind="stable")[:count]
        V = np.zeros((self.shape[1], len(heaviest)), dtype=self.dtype)
        for column, i in enumerate(heaviest):
            entries = slice(indptr[i], indptr[i + 1])
            V[slice(None) if indices is None else indices[entries], column] = left[entries]
        return V

    @property
    def small(self) -> bool:
        """Whether an array of its shape may be made."""
        return math.prod(self.shape) <= ENTRIES

    def array(self) -> Array:
        """P entry by entry. Each is a sum of `rank + 1` terms, rounded as often."""
        A, B = (factor.astype(np.float64) for factor in self.factors)
        P = np.concatenate([block - A[rows] @ B.T for rows, block in self.data.blocks()])
        if not self.diagonal:
            np.fill_diagonal(P, 0.0)
        size = self.data.norm + float(np.linalg.norm(A) * np.linalg.norm(B))
        return Array(P, np.finfo(np.float64).eps * (A.shape[1] + 1) * size if A.any() else 0.0)
