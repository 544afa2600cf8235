"""Kinds of data that are not a matrix in memory."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from partwise.data import Data, as_data
from partwise.data.base import khatri_rao
from partwise.data.rows import full_rows


@dataclass(frozen=True, eq=False)
class Tensor(Data):
    """A dense array of any order."""

    array: np.ndarray

    @classmethod
    def of(cls, array):
        return cls(array.shape, array.dtype, 1.0, array)

    def unfolded(self, mode):
        return np.ascontiguousarray(np.moveaxis(self.array, mode, 0)).reshape(self.shape[mode], -1)

    def cross(self, factors, mode):
        others = khatri_rao([A for other, A in enumerate(factors) if other != mode])
        return self.unfolded(mode) @ others / self.dtype.type(self.scale)

    def rows(self, mode):
        yield full_rows(self.unfolded(mode), self.inverse_scale)


@dataclass(frozen=True, eq=False)
class RowBlocks(Data):
    """A matrix whose rows lie in several places, dense and sparse; its columns are put together for a while."""

    children: tuple[Data, ...]

    @classmethod
    def of(cls, *arrays):
        shape = sum(array.shape[0] for array in arrays), arrays[0].shape[1]
        return cls(shape, arrays[0].dtype, 1.0, tuple(map(as_data, arrays)))

    @property
    def sparse(self):
        return any(child.sparse for child in self.children)

    @property
    def complete(self):
        return all(child.complete for child in self.children)

    @property
    def starts(self):
        return np.cumsum([0, *(child.shape[0] for child in self.children)])

    def cross(self, factors, mode):
        pieces = []
        for child, first in zip(self.scaled_children(), self.starts[:-1], strict=True):
            W = factors[0][first : first + child.shape[0]] if mode else factors[0]
            pieces.append(child.cross((W, factors[1]), mode))
        return sum(pieces) if mode else np.concatenate(pieces)

    def rows(self, mode):
        if mode == 1:
            whole = sparse.vstack([sparse.csr_array(child.take(0, slice(None))) for child in self.scaled_children()])
            yield next(as_data(whole).variant(dtype=self.dtype).rows(1))
            return
        for child, first in zip(self.scaled_children(), self.starts[:-1], strict=True):
            yield from (rows._replace(first=int(first)) for rows in child.rows(0))

    def scaled_children(self):
        return [child.scaled(self.scale).variant(dtype=self.dtype) for child in self.children]


def observed(X, mask):
    """A matrix of which only some entries are known."""
    return as_data(sparse.csr_array((X[mask], np.nonzero(mask)), shape=X.shape)).with_unlisted(0.0)
