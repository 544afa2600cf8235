"""X as a NumPy array in either memory order, possibly a read-only memory map."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from .. import kernels
from .base import Data
from .sparse import Sparse
from .units import exponent_of

SAFE_EXPONENT = 200  # entries within 2**+-this have squares that are numbers, and no copy is needed


@dataclass(frozen=True, eq=False)
class Dense(Data):
    array: np.ndarray

    @classmethod
    def of(cls, X):
        # BLAS takes either order as it is and would copy anything else at every product
        X = np.asarray(X)
        array = X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)
        return cls(array.shape, array.dtype, 1.0, array)

    @property
    def matrix(self):
        return self.array

    @cached_property
    def values(self):
        return self.array.ravel(order="K")  # a view: the array is contiguous one way or the other

    @property
    def parts(self):
        return (self.array,)

    def unfolded(self, mode):
        array = self.array.T if mode else self.array
        if not array.flags.c_contiguous:
            array = self.turned
        return np.arange(array.shape[0] + 1) * array.shape[1], None, array.ravel()

    @cached_property
    def turned(self):
        """A copy of X in the other memory order, made when first needed."""
        return np.ascontiguousarray(self.array if self.array.flags.f_contiguous else self.array.T)

    @cached_property
    def n_nonzeros(self):
        return int(np.count_nonzero(self.values))

    def row_counts(self, mode):
        return np.count_nonzero(self.array, axis=1 - mode)

    def product(self, B, scale, mode):
        return kernels.of(self.array).dense_product(self.array if mode == 0 else self.array.T, B, scale)

    def compressed(self):
        array = self.array if self.array.flags.c_contiguous else self.array.T
        values, indices, indptr = kernels.of(array).compress(array)
        matrix = sparse.csr_array((values, indices, indptr), shape=array.shape)
        return Sparse.of(matrix if array is self.array else matrix.T).scaled(self.scale)

    def block(self, rows):
        return np.divide(self.array[rows], self.scale, dtype=np.float64)

    def gram(self, mode):
        # one pass over X, in blocks across the other dimension
        turned = replace(self, array=self.array.T if mode == 0 else self.array)
        turned = replace(turned, shape=turned.array.shape)
        return sum((block.T @ block for _, block in turned.blocks()), np.zeros((self.shape[mode],) * 2))

    def row(self, mode, i):
        before, after = self.inverse_scale
        return np.take(self.array, i, axis=mode) * before * after

    @cached_property
    def diagonal(self):
        return np.divide(self.array.diagonal(), self.scale, dtype=np.float64)

    def without_diagonal(self):
        if not self.array.diagonal().any():
            return self
        array = self.array.copy(order="K")
        np.fill_diagonal(array, 0)
        return replace(self, array=array)

    @cached_property
    def asymmetry(self):
        return max(float(np.abs(block - self.turned_block(rows)).max()) for rows, block in self.blocks())

    def turned_block(self, rows):
        """The same of X'."""
        return np.divide(self.array.T[rows], self.scale, dtype=np.float64)

    def row_norms2(self, mode):
        if abs(exponent_of(max(map(abs, self.extremes)) * self.scale)) < SAFE_EXPONENT:
            squares = np.einsum("ij,ij->" + "ij"[mode], self.array, self.array, dtype=np.float64)
            return squares / self.scale**2
        total = np.zeros(self.shape[mode])
        for rows, block in self.blocks():
            squares = np.einsum("ij,ij->i" if mode == 0 else "ij,ij->j", block, block)
            if mode == 0:
                total[rows] = squares
            else:
                total += squares
        return total

    @cached_property
    def extremes(self):
        least, most = kernels.of(self.array).extremes(self.values)
        return least / self.scale, most / self.scale

    @cached_property
    def mean(self):
        return sum(float(np.abs(block).sum()) for _, block in self.blocks()) / self.array.size
