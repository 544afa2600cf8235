"""X as a NumPy array in either memory order, possibly a read-only memory map."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .base import Data


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

    @property
    def product_cost(self):
        return self.array.size

    def cross(self, factors, mode):
        other = factors[1 - mode] * self.dtype.type(1 / self.scale)
        unfolded = self.array if mode == 0 else self.array.T
        if self.dtype == np.float64:
            # OpenBLAS is up to twice as fast on this shape in double precision
            return np.ascontiguousarray((other.T @ unfolded.T).T)
        return unfolded @ other

    def blocks(self):
        for rows in self.row_blocks():
            yield rows, self.array[rows].astype(np.float64) / self.scale

    def gram(self, mode):
        dim = self.shape[mode]
        total = np.zeros((dim, dim))
        for rows, block in self.blocks():
            if mode == 1:
                total += block.T @ block
            else:
                for others, other in self.blocks():
                    total[rows, others] = block @ other.T
        return total

    def row(self, mode, i):
        return np.take(self.array, i, axis=mode) / self.dtype.type(self.scale)

    def row_norms2(self, mode):
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
        return float(self.array.min()) / self.scale, float(self.array.max()) / self.scale

    @cached_property
    def mean(self):
        return sum(float(np.abs(block).sum()) for _, block in self.blocks()) / self.array.size
