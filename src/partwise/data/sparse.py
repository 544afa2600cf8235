"""X as a sparse matrix, held by rows and by columns: both products then gather, in parallel, without races."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from .. import kernels
from .base import Data

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, values


@dataclass(frozen=True, eq=False)
class Sparse(Data):
    unfoldings: tuple[Rows, Rows]

    @classmethod
    def of(cls, X):
        by_row = canonical(X.tocsr())
        by_column = by_row.tocsc()
        unfoldings = tuple((M.indptr, M.indices, M.data) for M in (by_row, by_column))
        return cls(by_row.shape, by_row.dtype, 1.0, unfoldings)

    @cached_property
    def matrix(self):
        indptr, indices, values = self.unfoldings[0]
        return sparse.csr_array((values, indices, indptr), shape=self.shape, copy=False)

    @property
    def values(self):
        return self.unfoldings[0][2]

    @property
    def product_cost(self):
        return self.values.size

    def product(self, B, scale, mode):
        return kernels.of(B).sparse_product(self.unfoldings[mode], B, scale)

    def double(self):
        unfoldings = tuple((i, j, values.astype(np.float64)) for i, j, values in self.unfoldings)
        return replace(self, unfoldings=unfoldings, dtype=np.dtype(np.float64))

    def blocks(self):
        for rows in self.row_blocks():
            yield rows, self.matrix[rows].toarray().astype(np.float64) / self.scale

    def gram(self, mode):
        M = (self.matrix if mode == 0 else self.matrix.T).astype(np.float64)
        M = sparse.csr_array(M / self.scale)
        return (M @ M.T).toarray()

    def row(self, mode, i):
        indptr, indices, values = self.unfoldings[mode]
        row = np.zeros(self.shape[1 - mode], dtype=self.dtype)
        entries = slice(indptr[i], indptr[i + 1])
        before, after = self.inverse_scale
        row[indices[entries]] = values[entries] * before * after
        return row

    def row_norms2(self, mode):
        indptr, indices, values = self.unfoldings[mode]
        squares = np.square(values.astype(np.float64) / self.scale)
        shape = self.shape[mode], self.shape[1 - mode]
        return sparse.csr_array((squares, indices, indptr), shape=shape, copy=False).sum(axis=1)

    @cached_property
    def extremes(self):
        values = self.values
        full = values.size == self.shape[0] * self.shape[1]
        ends = [] if full else [0.0]
        if values.size:
            ends += [float(values.min()) / self.scale, float(values.max()) / self.scale]
        return min(ends), max(ends)

    @cached_property
    def mean(self):
        return float(np.abs(self.values.astype(np.float64) / self.scale).sum()) / (self.shape[0] * self.shape[1])


def canonical(X):
    """X with sorted indices, no duplicates and 32-bit indices where they fit; the caller's X is not touched."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    index = np.int32 if max(*X.shape, X.nnz) < np.iinfo(np.int32).max else np.int64
    parts = X.data, X.indices.astype(index, copy=False), X.indptr.astype(index, copy=False)
    return sparse.csr_array(parts, shape=X.shape, copy=False)
