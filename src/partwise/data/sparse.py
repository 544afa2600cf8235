"""X as a sparse matrix, held by rows, and by columns too unless it has few: both products then run in parallel."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from .. import kernels
from .base import Data, Rows


@dataclass(frozen=True, eq=False)
class Sparse(Data):
    rows: Rows

    @classmethod
    def of(cls, X):
        X = canonical(X.tocsr())
        return cls(X.shape, X.dtype, 1.0, (X.indptr, X.indices, X.data))

    @cached_property
    def matrix(self):
        indptr, indices, values = self.rows
        return sparse.csr_array((values, indices, indptr), shape=self.shape, copy=False)

    @cached_property
    def columns(self) -> Rows:
        """The rows of X', a second copy of X, made when first needed."""
        X = self.matrix.tocsc()
        return X.indptr, X.indices, X.data

    def unfolded(self, mode: int) -> Rows:
        return self.columns if mode else self.rows

    @property
    def values(self):
        return self.rows[2]

    @property
    def parts(self):
        return self.rows

    @property
    def n_nonzeros(self):
        return self.values.size

    def row_counts(self, mode):
        return np.diff(self.unfolded(mode)[0])

    def product(self, B, scale, mode):
        kernel = kernels.of(B)
        if mode == 1 and kernel.is_narrow(self.shape[1], B.shape[1], B.itemsize):
            return kernel.transposed_product(self.rows, B, scale, self.shape[1])
        return kernel.sparse_product(self.unfolded(mode), B, scale)

    def compressed(self):
        return self

    def block(self, rows):
        return self.matrix[rows].toarray().astype(np.float64) / self.scale

    def gram(self, mode):
        indptr, indices, values = self.rows
        scaled = np.divide(
            values, self.scale, dtype=np.float64
        )  # SciPy would multiply by 1 / scale: too large at times
        M = sparse.csr_array((scaled, indices, indptr), shape=self.shape, copy=False)
        return (M @ M.T if mode == 0 else M.T @ M).toarray()

    def row(self, mode, i):
        indptr, indices, values = self.unfolded(mode)
        row = np.zeros(self.shape[1 - mode], dtype=self.dtype)
        entries = slice(indptr[i], indptr[i + 1])
        before, after = self.inverse_scale
        row[indices[entries]] = values[entries] * before * after
        return row

    @cached_property
    def diagonal(self):
        return self.matrix.diagonal().astype(np.float64) / self.scale

    def without_diagonal(self):
        indptr, indices, values = self.rows
        owners = np.repeat(np.arange(self.shape[0]), np.diff(indptr))
        kept = indices != owners
        ends = np.concatenate([[0], np.cumsum(kept)])[indptr].astype(indptr.dtype)
        return self if kept.all() else replace(self, rows=(ends, indices[kept], values[kept]))

    @cached_property
    def asymmetry(self):
        difference = self.matrix - self.matrix.T
        return float(np.abs(difference.data).max(initial=0)) / self.scale

    def row_norms2(self, mode):
        indptr, indices, values = self.unfolded(mode)
        squares = np.square(values.astype(np.float64) / self.scale)
        shape = self.shape[mode], self.shape[1 - mode]
        return sparse.csr_array((squares, indices, indptr), shape=shape, copy=False).sum(axis=1)

    @cached_property
    def extremes(self):
        full = self.values.size == self.shape[0] * self.shape[1]
        ends = [] if full else [0.0]
        if self.values.size:
            ends += [end / self.scale for end in kernels.of(self.values).extremes(self.values)]
        return min(ends), max(ends)

    @cached_property
    def mean(self):
        return float(np.abs(self.values.astype(np.float64) / self.scale).sum()) / (self.shape[0] * self.shape[1])


def canonical(X):
    """X with sorted indices, no duplicates or zeros, 32-bit indices where they fit; the caller's X is not touched."""
    if not X.has_canonical_format or np.count_nonzero(X.data) < X.nnz:
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    index = sparse.get_index_dtype(maxval=max(*X.shape, X.nnz))
    # kernels read whole stretches of memory, and SciPy allows arrays with gaps
    parts = (
        np.ascontiguousarray(part)
        for part in (X.data, X.indices.astype(index, copy=False), X.indptr.astype(index, copy=False))
    )
    return sparse.csr_array(tuple(parts), shape=X.shape, copy=False)
