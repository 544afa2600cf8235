"""The contract of stored data.

`scale` is a power of two: the entries that everything sees are those of the stored array divided by it, so
that huge and tiny units are safe. It is applied to products, never to a copy of X.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.utils.extmath import randomized_svd

from ..losses import Loss

BLOCK = 1 << 19  # entries of a reconstruction held at a time


class LazyNorms(dict):
    def __init__(self, data: "Data"):
        self.data = data

    def __missing__(self, mode: int) -> np.ndarray:
        self[mode] = np.sqrt(self.data.row_norms2(mode))
        return self[mode]


@dataclass(frozen=True, eq=False)
class Data(ABC):
    shape: tuple[int, int]
    dtype: np.dtype
    scale: float

    def scaled(self, scale: float) -> "Data":
        """The same stored array, its entries divided by `scale` as well."""
        return replace(self, scale=self.scale * scale)

    @abstractmethod
    def cross(self, factors: tuple[np.ndarray, ...], mode: int) -> np.ndarray:
        """X unfolded along `mode` times the other factor: (dim, rank). The factor of `mode` is not read."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Dense blocks of rows of X, of at most `BLOCK` entries (or one row), in double precision."""

    @abstractmethod
    def gram(self, mode: int) -> np.ndarray:
        """X unfolded along `mode` times its transpose, (dim, dim), in double precision."""

    @abstractmethod
    def row(self, mode: int, i: int) -> np.ndarray:
        """One row of X unfolded along `mode`, dense."""

    @abstractmethod
    def row_norms2(self, mode: int) -> np.ndarray:
        """Squared norm of each row of X unfolded along `mode`, in double precision."""

    @property
    @abstractmethod
    def matrix(self):
        """The stored array, not scaled: what library routines take."""

    @cached_property
    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest entry."""

    @cached_property
    @abstractmethod
    def mean(self) -> float:
        """Mean of the absolute values of the entries."""

    @property
    @abstractmethod
    def product_cost(self) -> int:
        """Multiplications in `cross` per component."""

    @property
    def norm(self) -> float:
        """`|X|`."""
        return math.sqrt(self.norm2)

    @cached_property
    def norm2(self) -> float:
        """`|X|^2`, in double precision."""
        return float(np.square(self.row_norms[0]).sum())

    @cached_property
    def row_norms(self) -> "LazyNorms":
        """`row_norms[mode]`: the norm of each row of X unfolded along `mode`, computed when first asked for."""
        return LazyNorms(self)

    def loss(self, loss: Loss, factors: tuple[np.ndarray, ...]) -> float:
        """The loss entry by entry, block by block: exact where the normal equations cancel."""
        A, B = (np.asarray(factor, dtype=np.float64) for factor in factors)
        return sum(loss.value(block, A[rows] @ B.T) for rows, block in self.blocks())

    def svd(self, rank: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The leading singular triplets `U (m, rank), s, V (n, rank)`, by a randomized method."""
        U, s, Vt = randomized_svd(self.matrix, rank, random_state=rng)
        return U, s / self.dtype.type(self.scale), Vt.T

    def row_blocks(self) -> Iterator[slice]:
        """Slices of rows with at most `BLOCK` entries each."""
        height = max(1, BLOCK // max(1, self.shape[1]))
        for start in range(0, self.shape[0], height):
            yield slice(start, min(start + height, self.shape[0]))
