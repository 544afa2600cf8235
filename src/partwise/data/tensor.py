"""A sparse tensor as users give it: the places of its nonzeros, and their values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..checks import is_positive_int
from ..errors import NotAMatrixError

LARGEST = int(np.iinfo(np.int64).max) - 1  # place of an entry: one more is a size


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """A tensor by its nonzeros: entry `coords[p]` is `values[p]`, all others are 0.

    Parameters
    ----------
    coords : array-like of int, (n_entries, order)
        Where entries are, counted from 0: one line an entry, one column a mode.
    values : array-like of shape (n_entries,)
        What they are. Entries at the same place are added up.
    shape : tuple of int, optional
        The size of each mode. None: the smallest that holds all entries.

    Examples
    --------
    >>> import partwise as pw
    >>> T = pw.SparseTensor([[0, 0, 1], [2, 1, 0]], [3.0, 5.0], shape=(3, 2, 2))
    >>> T.nnz, float(T.toarray()[2, 1, 0])
    (2, 5.0)
    """

    coords: np.ndarray
    values: np.ndarray
    shape: tuple[int, ...] = None  # type: ignore[assignment]  # it is known once the tensor is made

    def __post_init__(self):
        coords, values = as_array(self.coords, "coords"), as_array(self.values, "values")
        shape = None if self.shape is None else checked_shape(self.shape)
        if coords.size == 0 and shape is not None:
            coords = np.zeros((0, len(shape)), np.int64)
        check_coords(coords, values, shape)
        coords = coords.astype(np.int64, copy=False)  # small types have no room for -1, or for a size
        top = coords.max(axis=0, initial=-1) + 1
        shape = tuple(top.tolist()) if shape is None else shape
        if coords.size and (coords.min() < 0 or np.any(top > shape)):
            raise ValueError(
                f"coords go from {coords.min(axis=0).tolist()} to {(top - 1).tolist()}, and a tensor of shape {shape} "
                f"has entries from 0 to {[size - 1 for size in shape]}: places are counted from 0"
            )
        for name, value in (("coords", coords), ("values", values), ("shape", shape)):
            object.__setattr__(self, name, value)

    @property
    def ndim(self) -> int:
        """The number of modes."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """How many entries are stored."""
        return len(self.values)

    @property
    def dtype(self) -> np.dtype:
        """The type of its values."""
        return self.values.dtype

    def toarray(self) -> np.ndarray:
        """The same tensor as a NumPy array, zeros and all.

        Examples
        --------
        >>> import partwise as pw
        >>> pw.SparseTensor([[0, 1], [1, 0]], [3.0, 5.0]).toarray()
        array([[0., 3.],
               [5., 0.]])
        """
        array = np.zeros(self.shape, self.dtype)
        np.add.at(array, tuple(self.coords.T), self.values)
        return array

    def __repr__(self):
        share = self.nnz / max(math.prod(self.shape), 1)
        return (
            f"<SparseTensor {' x '.join(map(str, self.shape))}, {self.nnz} entries ({share:.3g} of all), {self.dtype}>"
        )


def as_array(given, name: str) -> np.ndarray:
    try:
        return np.asarray(given)
    except Exception as error:  # lists of different lengths, or what other libraries raise
        raise NotAMatrixError(f"the {name} of a SparseTensor must be an array; these give none ({error})") from error


def check_coords(coords: np.ndarray, values: np.ndarray, shape: tuple[int, ...] | None) -> None:
    if coords.ndim != 2 or coords.dtype.kind not in "iu" or values.ndim != 1 or len(values) != len(coords):
        turned = coords.ndim == 2 and coords.shape[1] == values.size
        raise NotAMatrixError(
            "a SparseTensor takes coords, whole numbers of shape (n_entries, order), and as many values; got coords of "
            f"shape {coords.shape} and type {coords.dtype}, values of shape {values.shape}"
            + (": pass coords.T" if turned else "")
        )
    if values.dtype.kind not in "biufO":
        raise NotAMatrixError(f"the values of a SparseTensor must be real numbers, got an array of {values.dtype}")
    order = coords.shape[1]
    if shape is not None and len(shape) != order:
        raise ValueError(f"the shape of a SparseTensor must be {order} whole numbers, as coords say; got {shape}")
    if order < 2:
        raise NotAMatrixError(f"a SparseTensor has two modes or more; got coords of shape {coords.shape}, of {order}")
    if coords.size and coords.max() > LARGEST:
        raise ValueError(f"coords go up to {coords.max()}, and places in a SparseTensor are at most {LARGEST}")


def checked_shape(shape) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else ()
    if not sizes or not all(map(is_positive_int, sizes)):
        raise ValueError(f"the shape of a SparseTensor must be whole numbers >= 1, one for each mode; got {shape!r}")
    return tuple(map(int, sizes))
