"""X as a NumPy array of any order, its axes in any order in memory, possibly a read-only memory map."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from .base import Data, Recent, khatri_rao
from .coordinates import Coordinates
from .rows import BLOCK, full_rows
from .sparse import Sparse
from .tensor import SparseTensor

LEAST_ROWS = 64  # of an unfolding that are copied at a time: what kernels prepare for them has to pay
MOST_ENTRIES = 1 << 21  # the same, unless those rows have more; an unfolding of no more is kept


@dataclass(frozen=True, eq=False)
class Dense(Data):
    """Products go through X as it lies in memory: no unfolding is copied. Its axes are cut into two halves; X times the
    factors of one half serves all modes of the other (Phan, Tichavsky and Cichocki 2013, IEEE Transactions on Signal
    Processing 61(19)), so that an iteration over all modes takes two products with X, whatever the order."""

    array: np.ndarray

    most_in_single = 1 << 28  # the copy takes a gigabyte

    @classmethod
    def of(cls, X):
        # products take such an array as it is
        X = np.asarray(X)
        array = X if X.transpose(axes_of(X)).flags.c_contiguous else np.ascontiguousarray(X)
        return cls(array.shape, array.dtype, 1.0, array)

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The modes as they lie in memory, the last one fastest."""
        return axes_of(self.array)

    @property
    def natural(self):
        return self.axes[0]

    def columns(self, mode):
        return [other for other in self.axes if other != mode]

    @property
    def stored(self):
        return self.array.dtype

    @property
    def arrays(self):
        return (self.array,)

    def listed(self):
        yield self.array.ravel(order="K")  # a view: the array is contiguous one way or the other

    def with_values(self, values):
        array = values.reshape([self.shape[axis] for axis in self.axes]).transpose(np.argsort(self.axes))
        return Dense(self.shape, values.dtype, 1.0, array)

    def select(self, mode, index):
        return Dense.of(self.array.take(index, axis=mode)).variant(scale=self.scale, dtype=self.dtype)

    def along(self, vectors):
        product = np.ones((1,) * len(self.shape))
        for axis in self.axes:
            if (vector := vectors[axis]) is not None:
                product = product * np.expand_dims(vector, [m for m in range(len(self.shape)) if m != axis])
        return np.broadcast_to(product, self.shape).transpose(self.axes).ravel()

    # -- products --------------------------------------------------------------------------------------

    def cross(self, factors, mode):
        _, after = self.inverse_scale
        own, rest = self.halves if mode in self.halves[0] else self.halves[::-1]
        product = self.half_product(factors, own, rest)
        if len(own) > 1:
            before, beyond = own[: own.index(mode)], own[own.index(mode) + 1 :]
            none = np.ones((1, product.shape[1]), self.dtype)
            ends = [self.joined([factors[m] for m in modes]) if modes else none for modes in (before, beyond)]
            shape = len(ends[0]), self.shape[mode], len(ends[1]), product.shape[1]
            product = self.kernels.contract(product.reshape(shape), *ends)
        return product if after == 1 else product * after

    @cached_property
    def halves(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The modes in two groups of neighbours in memory, the Khatri-Rao products of which are as small as can be."""
        sizes = [self.shape[axis] for axis in self.axes]
        cut = min(range(1, len(sizes)), key=lambda c: math.prod(sizes[:c]) + math.prod(sizes[c:]))
        return self.axes[:cut], self.axes[cut:]

    @cached_property
    def matrix(self) -> np.ndarray:
        """X with one half of its modes along the rows, the other along the columns, as it lies in memory."""
        return self.array.transpose(self.axes).reshape(math.prod(self.shape[m] for m in self.halves[0]), -1)

    def half_product(self, factors, own, rest):
        """X times the factors of one half, (columns of the other, rank). The last one that several modes can use is
        kept."""
        matrix, (before, _) = self.matrix if own == self.halves[0] else self.matrix.T, self.inverse_scale

        def product(given):
            return self.kernels.dense_product(matrix, self.joined(given), before)

        given = [factors[other] for other in rest]
        return product(given) if len(own) == 1 else self.__dict__.setdefault("_half", Recent()).get(own, given, product)

    def joined(self, factors):
        """The Khatri-Rao product of these factors, in the type that is computed with."""
        return khatri_rao([A.astype(self.dtype, copy=False) for A in factors])

    # -- rows ------------------------------------------------------------------------------------------

    def rows(self, mode):
        known = self.__dict__.setdefault("_rows", {})
        if mode in known:
            yield known[mode]
            return
        dim, width = self.shape[mode], math.prod(self.shape) // max(self.shape[mode], 1)
        array = self.array.transpose([mode, *self.columns(mode)])
        if mode == self.natural or len(self.shape) == 2:
            known[mode] = full_rows(
                (array if mode == self.natural else self.turned).reshape(dim, -1), self.inverse_scale
            )
            yield known[mode]
            return
        height = max(LEAST_ROWS, MOST_ENTRIES // max(width, 1))
        for start in range(0, dim, height):
            rows = full_rows(np.ascontiguousarray(array[start : start + height]).reshape(-1, width), self.inverse_scale)
            if height >= dim:
                known[mode] = rows
            yield rows._replace(first=start)

    @cached_property
    def turned(self):
        """A copy of a matrix in the other memory order, made when first needed."""
        return np.ascontiguousarray(self.array if self.natural else self.array.T)

    def take(self, mode, index):
        before, after = self.inverse_scale
        array = self.array.T if mode else self.array
        return array[index].astype(self.dtype) * before * after

    def slabs(self, mode):
        if len(self.shape) == 2:
            yield from super().slabs(mode)
            return
        before, after = self.inverse_scale
        along = self.columns(mode)[0]
        step = max(1, BLOCK * self.shape[along] // max(math.prod(self.shape), 1))
        array = np.moveaxis(self.array, (along, mode), (0, -1))
        for start in range(0, self.shape[along], step):
            yield array[start : start + step].astype(np.float64).reshape(-1, self.shape[mode]) * before * after

    def summed_rows(self, mode, power):
        if power != 2 or not self.summary.moderate:
            return super().summed_rows(mode, power)
        # in the order in which X is stored
        every = range(len(self.shape))
        return np.einsum(self.array, every, self.array, every, [mode], dtype=np.float64) / self.scale**2

    def compressed(self):
        if len(self.shape) > 2:
            coords = np.argwhere(self.array)
            return Coordinates.of(SparseTensor(coords, self.array[tuple(coords.T)], self.shape)).scaled(self.scale)
        array = self.array if self.natural == 0 else self.array.T
        values, indices, indptr = self.kernels.compress(array)
        matrix = sparse.csr_array((values, indices, indptr), shape=array.shape)
        return Sparse.of(matrix if array is self.array else matrix.T).scaled(self.scale)


def axes_of(array: np.ndarray) -> tuple[int, ...]:
    """The axes of an array, the one with the longest steps in memory first."""
    every = range(array.ndim)
    return tuple(every) if array.flags.c_contiguous else tuple(sorted(every, key=lambda axis: -array.strides[axis]))
