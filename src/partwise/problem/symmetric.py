"""Symmetric factorization: `X ~ A A'` with A >= 0, for similarities and networks.

    minimise  1/2 |X - A A'|^2,    or    1/2 sum_{i != j} (x_ij - (A A')_ij)^2

where the diagonal of X says nothing. A is both factors of `Problem`, the same array twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from .. import kernels
from ..data import Data, as_data
from ..data.rows import blocks, sparse_matrix
from ..data.validation import OFF_DIAGONAL
from ..errors import IncompatibleError
from ..losses import Loss
from ..losses.beta import cancels
from ..losses.expansions import Expansion, Quadratic, gram_of
from ..structures import NonNegative, Structure
from .parts import diagonal_weight
from .pose import pose
from .problem import Factors, Measured, Problem

ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}  # of the largest entry: asymmetry that is no fault


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    diagonal: float = 1.0  # the weight of entries on the diagonal of X, 1 or 0; where it is 0, `data` has zeros there

    @property
    def symmetric(self) -> bool | str:  # type: ignore[override]  # not of the class here
        return True if self.diagonal else OFF_DIAGONAL

    @cached_property
    def modes(self) -> list[int]:
        return [0]

    @cached_property
    def separable(self) -> bool:
        """Rows of A meet each other in `A A'`."""
        return False

    @cached_property
    def own(self) -> np.ndarray:
        """The diagonal of X."""
        return diagonal_of(self.data)

    def tied(self, factors: Factors) -> Factors:
        """A twice, from the first."""
        return factors[0], factors[0]

    def model_norm2(self, A: np.ndarray) -> float:
        """`|A A'|^2`, or `sum_{i != j} (a_i' a_j)^2` where the diagonal does not count.

        The latter is the difference of `|A'A|^2` and `sum_i |a_i|^4`, which cancel where a few rows are far longer than
        the others: products with those rows are summed one by one. Among rows of which none has more than
        `1 / (2 rank)` of the sum of squares, what is subtracted is at most half of what it is subtracted from."""
        if self.diagonal:
            return float(np.square(gram_of(A).astype(np.float64)).sum())
        A = A.astype(np.float64, copy=False)
        norms2 = np.einsum("ik,ik->i", A, A)
        order = np.argsort(norms2)
        total = np.cumsum(norms2[order])
        rest = order[: np.max(np.flatnonzero(norms2[order] * 2 * self.rank <= total), initial=-1) + 1]
        long = np.setdiff1d(order, rest)
        across = np.square(A[long] @ A.T)
        across[np.arange(long.size), long] = 0
        pairs = 2 * across.sum() - across[:, long].sum()
        return float(np.square(gram_of(A[rest])).sum() - np.square(norms2[rest]).sum() + pairs)

    def fit(self, factors: Factors, mode: int = 0, known: Expansion | None = None) -> float:
        A, (_, cross) = factors[0], known or self.normal_equations(factors, 0)
        value = 0.5 * (self.data.norm2 - 2 * kernels.of(A).inner(A, cross) + self.model_norm2(A))
        return self.direct_fit(factors) if cancels(self.data, value) else max(value, 0.0)

    def direct_fit(self, factors: Factors) -> float:
        A, total = factors[0].astype(np.float64, copy=False), 0.0
        for rows, entries, _ in blocks(self.data):
            difference = entries - A[rows] @ A.T
            if not self.diagonal:
                np.fill_diagonal(difference[:, rows.start :], 0)
            total += float(np.vdot(difference, difference))
        return 0.5 * total

    def gradient(self, factors: Factors, mode: int = 0) -> np.ndarray:
        """`2 (A A' - X) A`, the diagonal of `A A' - X` taken as 0 where it does not count."""
        A = factors[0]
        G = super().gradient(factors, 0)
        if not self.diagonal:
            G = G - np.einsum("ik,ik->i", A, A)[:, None] * A
        return 2 * G

    def measure(self, factors: Factors) -> Measured:
        """The loss, and the stationarity: `sqrt(2 gain) / |X|` of the component that can gain most, as for any problem;
        `gain` is by how much the objective falls if each entry goes to its own best value, all else held, exactly."""
        A = factors[0]
        known = Quadratic(gram_of(A), self.data.cross(factors, 0))
        gains = kernels.of(A).symmetric_gains(A, known.cross, known.gram, self.own, self.diagonal)
        return Measured(self.fit(factors, 0, known), self.relative_gain(gains))

    def to_user(self, factors: Factors) -> Factors:
        return self.tied(super().to_user(factors))

    def from_user(self, factors: Factors) -> Factors:
        return self.tied(super().from_user(factors))


def pose_as(symmetric: bool | str, data: Data, loss: Loss, stated: Sequence[Structure], rank: int) -> Problem:
    """`X ~ W H`, or `X ~ A A'` for one of the `SYMMETRIES`: checks what that demands of X, too."""
    if not symmetric:
        return pose(data, loss, stated, rank)
    if not loss.quadratic:
        raise IncompatibleError(f"symmetric={symmetric!r} goes with least squares, loss='frobenius', not with {loss}.")
    if any(type(structure) is not NonNegative for structure in stated):
        raise IncompatibleError(
            f"symmetric={symmetric!r} goes with a nonnegative factor and no other structure, got {stated[0]}."
        )
    if sum(1 for _ in data.rows(0)) > 1:
        raise IncompatibleError(f"symmetric={symmetric!r} needs X in one piece, and its rows lie in several.")
    check_symmetric(data, "X", symmetric)
    if symmetric == OFF_DIAGONAL:
        data = without_diagonal(data)
    check_nonnegative(data)
    plain = pose(data, loss, stated, rank)
    return SymmetricProblem(plain.data, plain.loss, plain.structures, plain.rank, diagonal=diagonal_weight(symmetric))


def check_nonnegative(data: Data) -> None:
    lowest, _ = data.extremes
    if lowest < 0:
        raise ValueError(
            f"Negative values in data passed to partwise: X goes down to {lowest:g}, which A A' with A >= 0 cannot "
            "reproduce. Clip or shift X."
        )


def check_symmetric(data: Data, name: str, symmetric: bool | str = True) -> None:
    """`name`: as the user knows the matrix."""
    if data.shape[0] != data.shape[1]:
        raise ValueError(f"symmetric={symmetric!r} needs a square {name}, got one of shape {data.shape}.")
    largest = max(map(abs, data.extremes))
    asymmetry = asymmetry_of(data)
    if asymmetry > ROUNDING[data.dtype] * largest:
        raise ValueError(
            f"{name} is not symmetric: entries differ from those across the diagonal by up to {asymmetry:.3g}, "
            f"where the largest is {largest:.3g}. Pass ({name} + {name}.T) / 2 for its symmetric part, or leave "
            "symmetric=False."
        )


def diagonal_of(data: Data) -> np.ndarray:
    """Of a square X, in double precision."""
    n = data.shape[0]
    if data.sparse:
        return np.concatenate([sparse_matrix(X, n).diagonal(X.first)[: X.n_rows] for X in data.double().rows(0)])
    return np.concatenate([X.values[X.first :: n + 1] * np.float64(X.scale) for X in data.double().rows(data.natural)])


def without_diagonal(data: Data) -> Data:
    """A square X whose diagonal counts nothing: with zeros there, which no sum sees."""
    if not diagonal_of(data).any():
        return data
    if data.sparse:
        indptr, indices, values = data.arrays
        kept = indices != np.repeat(np.arange(data.shape[0]), np.diff(indptr))
        ends = np.concatenate([[0], np.cumsum(kept)])[indptr]
        return as_data(sparse.csr_array((values[kept], indices[kept], ends), shape=data.shape)).scaled(data.scale)
    array = data.arrays[0].copy(order="K")
    np.fill_diagonal(array, 0)
    return as_data(array).scaled(data.scale)


def asymmetry_of(data: Data) -> float:
    """The largest of `|x_ij - x_ji|` of a square X."""
    if data.sparse:
        n = data.shape[0]
        pairs = zip(data.double().rows(0), data.double().rows(1), strict=True)
        return max(float(abs(sparse_matrix(X, n) - sparse_matrix(Y, n)).max()) for X, Y in pairs)
    turned = data.double()
    return max(float(np.abs(entries - turned.take(1, rows)).max()) for rows, entries, _ in blocks(data))
