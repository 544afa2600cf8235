"""X as a sparse matrix, held by rows, and by columns too unless it has few: both products then run in parallel."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array, get_index_dtype

from ..kernels.records import Rows
from .base import Data
from .rows import BLOCK, in_unit

NARROW_FROM = 1 << 24  # nonzeros, from where on memory is worth kernels compiled for two types


@dataclass(frozen=True, eq=False)
class Sparse(Data):
    matrix: csr_array  # canonical
    unlisted: float = 1.0  # what an entry that is not stored counts

    sparse = True
    most_in_single = NARROW_FROM

    @classmethod
    def of(cls, X, keep_zeros=False):
        X = canonical(X.tocsr(), keep_zeros)
        return cls(X.shape, X.dtype, 1.0, X)

    @property
    def complete(self):
        return self.unlisted == 1

    @property
    def stored(self):
        return self.matrix.dtype

    @property
    def arrays(self):
        return self.matrix.indptr, self.matrix.indices, self.matrix.data

    def listed(self):
        yield self.matrix.data

    def places(self):
        rows = np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self.matrix.indptr))
        return rows * self.shape[1] + self.matrix.indices

    @cached_property
    def turned(self) -> csc_array:
        """A second copy of X, by columns, made when first needed: its numbers in single precision where X is large and
        they are the same in it, as counts are."""
        X = self.matrix
        parts = self.kernels.transpose(X.indptr, X.indices, X.data, X.shape[1], narrow_type(X.data))
        return csc_array(parts, shape=X.shape, copy=False)

    def rows(self, mode):
        known = self.__dict__.setdefault("_rows", {})
        if mode not in known:
            X = self.turned if mode else self.matrix
            values, scale = in_unit(X.data, self.inverse_scale)
            none = np.empty(0, self.dtype)
            known[mode] = Rows(0, X.indptr.astype(np.int64), X.indices, values, scale, False, none, self.unlisted)
        yield known[mode]

    def cross(self, factors, mode):
        B = factors[1 - mode].astype(self.dtype, copy=False)
        if mode == 1 and self.kernels.is_narrow(self.shape[1], B.shape[1], B.itemsize):
            return self.kernels.transposed_product(next(self.rows(0)), B, self.shape[1])
        return self.kernels.sparse_product(next(self.rows(mode)), B)

    def with_unlisted(self, weight):
        return self.variant(unlisted=weight * self.unlisted)

    def with_values(self, values):
        matrix = csr_array((values, self.matrix.indices, self.matrix.indptr), shape=self.shape, copy=False)
        return Sparse(self.shape, values.dtype, 1.0, matrix, self.unlisted)

    def select(self, mode, index):
        chosen = Sparse.of(self.matrix[:, index] if mode else self.matrix[index], keep_zeros=True)
        return chosen.variant(scale=self.scale, dtype=self.dtype, unlisted=self.unlisted)

    def along(self, vectors):
        rows, columns = (np.ones(dim) if v is None else v for v, dim in zip(vectors, self.shape, strict=True))
        return np.repeat(rows, np.diff(self.matrix.indptr)) * columns[self.matrix.indices]

    def compressed(self):
        return (
            self if np.all(self.matrix.data) else Sparse.of(self.matrix).scaled(self.scale).with_unlisted(self.unlisted)
        )

    def take(self, mode, index):
        before, after = self.inverse_scale
        X = self.turned.T if mode else self.matrix
        return X[index].toarray().astype(self.dtype) * before * after


def narrow_type(values: np.ndarray) -> np.dtype:
    """float32 for many numbers that are all the same in it, else the type that they have."""
    if values.dtype != np.float64 or values.size < NARROW_FROM:
        return values.dtype
    blocks = (values[start : start + BLOCK] for start in range(0, values.size, BLOCK))
    with np.errstate(over="ignore"):
        same = all(np.array_equal(block.astype(np.float32), block) for block in blocks)
    return np.dtype(np.float32) if same else values.dtype


def canonical(X, keep_zeros=False):
    """X with sorted indices, no duplicates and no zeros unless they are to be kept, 32-bit indices where they fit; the
    caller's X is not touched."""
    if not X.has_canonical_format or (not keep_zeros and not np.all(X.data)):
        X = X.copy()
        X.sum_duplicates()
        if not keep_zeros:
            X.eliminate_zeros()
    index = get_index_dtype(maxval=max(*X.shape, X.nnz))
    # kernels read whole stretches of memory, and SciPy allows arrays with gaps
    parts = (
        np.ascontiguousarray(part)
        for part in (X.data, X.indices.astype(index, copy=False), X.indptr.astype(index, copy=False))
    )
    return csr_array(tuple(parts), shape=X.shape, copy=False)
