"""X as a NumPy array in either memory order, possibly a read-only memory map."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from .base import Data
from .rows import full_rows
from .sparse import Sparse


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
    def natural(self):
        return 0 if self.array.flags.c_contiguous else 1

    @property
    def stored(self):
        return self.array.dtype

    @property
    def arrays(self):
        return (self.array,)

    def listed(self):
        yield self.array.ravel(order="K")  # a view: the array is contiguous one way or the other

    def cross(self, factors, mode):
        before, after = self.inverse_scale
        B = factors[1 - mode].astype(self.dtype, copy=False)
        out = self.kernels.dense_product(self.array if mode == 0 else self.array.T, B, before)
        return out if after == 1 else out * after

    def rows(self, mode):
        known = self.__dict__.setdefault("_rows", {})
        if mode not in known:
            array = self.array.T if mode else self.array
            known[mode] = full_rows(array if array.flags.c_contiguous else self.turned, self.inverse_scale)
        yield known[mode]

    @cached_property
    def turned(self):
        """A copy of X in the other memory order, made when first needed."""
        return np.ascontiguousarray(self.array if self.array.flags.f_contiguous else self.array.T)

    def take(self, mode, index):
        before, after = self.inverse_scale
        array = self.array.T if mode else self.array
        return array[index].astype(self.dtype) * before * after

    def summed_rows(self, mode, power):
        if power != 2 or not self.summary.moderate:
            return super().summed_rows(mode, power)
        # in the order in which X is stored
        return np.einsum("ij,ij->" + "ij"[mode], self.array, self.array, dtype=np.float64) / self.scale**2

    def compressed(self):
        array = self.array if self.array.flags.c_contiguous else self.array.T
        values, indices, indptr = self.kernels.compress(array)
        matrix = sparse.csr_array((values, indices, indptr), shape=array.shape)
        return Sparse.of(matrix if array is self.array else matrix.T).scaled(self.scale)
