"""The contract of stored data.

`scale` is a power of two: the entries that everything sees are those of the stored array divided by it, so
that huge and tiny units are safe. It is applied to products, not to a copy of X, but in the most extreme units.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from .. import kernels
from ..kernels import threads
from ..losses import Loss

BLOCK = 1 << 19  # entries of a reconstruction held at a time

Rows = tuple[np.ndarray, np.ndarray | None, np.ndarray]  # indptr, indices (None: all entries are there), values


@dataclass(frozen=True, eq=False)
class Data(ABC):
    shape: tuple[int, int]
    dtype: np.dtype
    scale: float

    def scaled(self, scale: float) -> "Data":
        """The same stored array, its entries divided by `scale` as well; what is known of them carries over."""
        data = replace(self, scale=self.scale * scale)
        if "extremes" in self.__dict__:
            data.__dict__["extremes"] = tuple(end / scale for end in self.extremes)
        if "n_nonzeros" in self.__dict__:
            data.__dict__["n_nonzeros"] = self.n_nonzeros
        return data

    def cross(self, factors: Sequence[np.ndarray], mode: int) -> np.ndarray:
        """X unfolded along `mode` times the other factor: (dim, rank). The factor of `mode` is not read."""
        before, after = self.inverse_scale
        out = self.product(factors[1 - mode].astype(self.dtype, copy=False), before, mode)
        return out if after == 1 else out * after

    @abstractmethod
    def product(self, B: np.ndarray, scale, mode: int) -> np.ndarray:
        """The stored array, unfolded along `mode`, times `B * scale`, in C order."""

    @cached_property
    def inverse_scale(self) -> tuple:
        """Two numbers of X's type whose product is `1 / scale`: one before a product, one after it.

        The second is 1 but in units so extreme that `1 / scale` has no room in the type.
        """
        kind, exponent = self.dtype.type, -math.log2(self.scale)
        if abs(exponent) < np.finfo(self.dtype).maxexp // 2:
            return kind(2.0**exponent), kind(1)
        half = round(exponent / 2)
        return kind(2.0**half), kind(2.0 ** (exponent - half))

    def double(self) -> "Data":
        """The same data, computed with in double precision. They stay as they are stored: numbers are converted where
        they are read, and what is known of them was computed in double precision already."""
        if self.dtype == np.float64:
            return self
        data = replace(self, dtype=np.dtype(np.float64))
        known = {name: value for name, value in self.__dict__.items() if name not in data.__dict__}
        data.__dict__.update({name: value for name, value in known.items() if name != "inverse_scale"})
        return data

    @property
    def stored(self) -> np.dtype:
        """The type of the numbers that are stored."""
        return self.values.dtype

    @abstractmethod
    def compressed(self) -> "Data":
        """The same data by their nonzeros alone."""

    @abstractmethod
    def block(self, rows: slice) -> np.ndarray:
        """Some rows of X, dense, in double precision."""

    @abstractmethod
    def gram(self, mode: int) -> np.ndarray:
        """X unfolded along `mode` times its transpose, (dim, dim), in double precision."""

    @abstractmethod
    def row(self, mode: int, i: int) -> np.ndarray:
        """One row of X unfolded along `mode`, dense."""

    @cached_property
    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Of a square X, in double precision."""

    @abstractmethod
    def without_diagonal(self) -> "Data":
        """A square X with zeros on its diagonal."""

    @cached_property
    @abstractmethod
    def asymmetry(self) -> float:
        """The largest of `|x_ij - x_ji|` of a square X."""

    @abstractmethod
    def row_norms2(self, mode: int) -> np.ndarray:
        """Squared norm of each row of X unfolded along `mode`, in double precision."""

    @property
    @abstractmethod
    def matrix(self):
        """The stored array, not scaled: what library routines take."""

    @property
    @abstractmethod
    def values(self) -> np.ndarray:
        """The numbers that are stored, in a row, not scaled."""

    @property
    def level(self) -> float | None:
        """The value that all nonzero entries have, if it is one."""
        top = self.values.max(initial=0)
        return float(top) / self.scale if np.all((self.values == 0) | (self.values == top)) else None

    @property
    @abstractmethod
    def parts(self) -> tuple[np.ndarray, ...]:
        """The arrays that are stored: together they are X."""

    @cached_property
    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest entry."""

    @cached_property
    @abstractmethod
    def mean(self) -> float:
        """Mean of the absolute values of the entries."""

    @cached_property
    @abstractmethod
    def n_nonzeros(self) -> int:
        """How many entries are not 0. What solvers settle by the cost of a product follows this, whatever the
        storage."""

    @property
    def density(self) -> float:
        """The share of entries that are not 0."""
        return self.n_nonzeros / max(math.prod(self.shape), 1)

    @abstractmethod
    def row_counts(self, mode: int) -> np.ndarray:
        """How many entries of each row of X unfolded along `mode` are not 0."""

    @property
    def norm(self) -> float:
        """`|X|`."""
        return math.sqrt(self.norm2)

    def working(self) -> AbstractContextManager:
        """A context for work on this data: our threads have the cores, and call BLAS one piece at a time."""
        return kernels.of(self.values).alone()

    @cached_property
    def norm2(self) -> float:
        """`|X|^2`, in double precision."""
        before, after = self.inverse_scale
        values = self.values if after == 1 else self.values * before
        return kernels.of(values).sum_squares(values, before if after == 1 else after)

    def row_norms(self, mode: int) -> np.ndarray:
        """The norm of each row of X unfolded along `mode`, computed when first asked for."""
        known = self.__dict__.setdefault("_row_norms", {})
        if mode not in known:
            known[mode] = np.sqrt(self.row_norms2(mode))
        return known[mode]

    @abstractmethod
    def unfolded(self, mode: int) -> Rows:
        """The rows of X unfolded along `mode`, not scaled."""

    def entries(self, mode: int) -> tuple[Rows, Any]:
        """The rows of X unfolded along `mode`, and a number of X's type that their values are to be multiplied by."""
        indptr, indices, values = self.unfolded(mode)
        before, after = self.inverse_scale
        return ((indptr, indices, values), before) if after == 1 else ((indptr, indices, values * before), after)

    def power_sums(self, beta: float, mode: int) -> np.ndarray:
        """`sum x^beta` over the positive entries of each row of X unfolded along `mode`, in double precision."""
        known = self.__dict__.setdefault("_power_sums", {})
        if (beta, mode) not in known:
            (indptr, _, values), scale = self.entries(mode)
            known[beta, mode] = kernels.of(values).power_sums(indptr, values, scale, beta)
        return known[beta, mode]

    def expansion(self, beta: float, factors: Sequence[np.ndarray], mode: int) -> tuple:
        """`minus` and `plus`, whose difference is the gradient of the loss in one factor, and the second derivatives of
        its convex part, entry by entry: all (dim, rank) and >= 0."""
        A, B = factors[mode], factors[1 - mode]
        return kernels.of(A).expansion(*self.entries(mode), A, B, beta)

    def divergence(self, beta: float, factors: Sequence[np.ndarray]) -> tuple[float, int]:
        """The loss, and how many positive entries of X the model does not reach."""
        value, missed = kernels.of(factors[0]).losses(*self.entries(0), *factors, beta)
        return value + linear_part(beta, factors), missed

    def whole_loss(self, value: float, beta: float, factors: Sequence[np.ndarray], rows: np.ndarray) -> float | None:
        """The loss from what a kernel says of rows of the first of two factors; None where these are not all."""
        return value + linear_part(beta, factors) if rows.size == factors[0].shape[0] else None

    def loss(self, loss: Loss, factors: Sequence[np.ndarray]) -> float:
        """The loss entry by entry, block by block: exact where the normal equations cancel."""
        if not loss.quadratic and loss.beta is not None:
            return self.divergence(loss.beta, factors)[0]
        A, B = (np.asarray(factor, dtype=np.float64) for factor in factors)
        boundaries = [0, *(rows.stop for rows in self.row_blocks())]
        return sum(threads.run(lambda i, j: loss.value(self.block(slice(i, j)), A[i:j] @ B.T), boundaries))

    def constant_loss(self, loss: Loss, constant: float) -> float:
        """The loss of a model that is the same everywhere, in double precision; entries that are not stored are 0."""

        def part(start: int, stop: int) -> float:
            X = np.divide(self.values[start:stop], self.scale, dtype=np.float64)
            return loss.value(X, np.full_like(X, constant))

        size = self.values.size
        total = sum(threads.run(part, [*range(0, size, BLOCK), size])) if size else 0.0
        zeros = math.prod(self.shape) - size
        return total + (zeros * loss.value(np.zeros(1), np.full(1, constant)) if zeros else 0.0)

    def svd(self, rank: int, rng, **accuracy) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The leading singular triplets `U (m, rank), s, V (n, rank)`, by a randomized method; `accuracy` as in
        scikit-learn's `randomized_svd`."""
        before, after = self.inverse_scale
        # then X itself is scaled, a copy, or the products in there would overflow
        extreme = abs(math.log2(self.scale)) >= np.finfo(self.stored).maxexp // 2
        matrix = self.matrix * before * after if extreme else self.matrix
        U, s, Vt = randomized_svd(matrix, rank, random_state=rng, **accuracy)
        return U, s if extreme else s * before, Vt.T

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Dense blocks of rows of X, of at most `BLOCK` entries (or one row), in double precision."""
        for rows in self.row_blocks():
            yield rows, self.block(rows)

    def row_blocks(self) -> Iterator[slice]:
        """Slices of rows with at most `BLOCK` entries each."""
        height = max(1, BLOCK // max(1, self.shape[1]))
        for start in range(0, self.shape[0], height):
            yield slice(start, min(start + height, self.shape[0]))


def linear_part(beta: float, factors: Sequence[np.ndarray]) -> float:
    """`sum Y` for KL, where kernels leave it out, since sums of the factors give it."""
    if beta != 1:
        return 0.0
    return float(np.prod([A.sum(axis=0, dtype=np.float64) for A in factors], axis=0).sum())
