"""A kind of array that is not NumPy's, and its kernels: those of NumPy on what is inside."""

from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.data import Data, Dense
from partwise.kernels import cpu
from partwise.kernels.records import Others


class Elsewhere:
    """An array that no function of NumPy's may touch, as if it lay on another device."""

    __array_ufunc__ = None

    def __init__(self, inside):
        self.inside = inside

    shape = property(lambda self: self.inside.shape)
    dtype = property(lambda self: self.inside.dtype)
    size = property(lambda self: self.inside.size)

    def __len__(self):
        return len(self.inside)

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return Elsewhere(self.inside[rows])

    def __array__(self, *_, **__):
        raise TypeError("this array is not for NumPy")

    def __array_function__(self, *_):
        raise TypeError("this array is not for NumPy")


@dataclass(frozen=True, eq=False)
class ElsewhereData(Data):
    """A dense matrix of such arrays."""

    inside: Dense

    array_type = Elsewhere

    @classmethod
    def of(cls, X):
        return cls(X.shape, X.dtype, 1.0, Dense.of(X))

    def cross(self, factors, mode):
        inside = self.inside.scaled(self.scale)
        return Elsewhere(inside.cross([getattr(A, "inside", None) for A in factors], mode))

    def rows(self, mode):
        for X in self.inside.scaled(self.scale).rows(mode):
            yield X._replace(values=Elsewhere(X.values))

    def others(self, factors, mode, rows):
        return Others(factors[1 - mode])


def opened(value):
    """With the arrays inside."""
    if isinstance(value, Elsewhere):
        return value.inside
    if isinstance(value, tuple | list):
        opened_items = map(opened, value)
        return type(value)(*opened_items) if hasattr(value, "_make") else type(value)(opened_items)
    return value


def closed(value):
    """Tall arrays as those of this kind; numbers by row or column stay NumPy's."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return Elsewhere(value)
    return tuple(map(closed, value)) if isinstance(value, tuple) else value


def __getattr__(name):
    """A kernel of NumPy's for these arrays."""
    if name == "numpy":
        raise AttributeError(name)
    kernel = getattr(cpu, name)
    if name in ("gram", "alone", "to_numpy"):  # small, or none at all
        return lambda *arguments: kernel(*map(opened, arguments))
    return lambda *arguments: closed(kernel(*map(opened, arguments)))


kernels.MODULES[Elsewhere] = __name__
