"""Symmetric factorization: `X ~ A A'` with A >= 0, for similarities and networks.

    minimise  1/2 |X - A A'|^2,    or    1/2 sum_{i != j} (x_ij - (A A')_ij)^2

where the diagonal of X says nothing. A is both factors of `Problem`, the same array twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import kernels
from ..data import Data
from ..data.validation import OFF_DIAGONAL
from ..errors import IncompatibleError
from ..kernels import threads
from ..losses import Loss
from ..structures import NonNegative, Structure
from .problem import Factors, Measured, Problem, Quadratic, gram_of, pose

ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}  # of the largest entry: asymmetry that is no fault


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    diagonal: bool = True  # whether the diagonal of X counts; where it does not, that of `data` is 0

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

    def tied(self, factors: Factors) -> Factors:
        """A twice, from the first."""
        return factors[0], factors[0]

    def model_norm2(self, A: np.ndarray, mode: int, gram: np.ndarray) -> float:
        """`|A A'|^2`, or `sum_{i != j} (a_i' a_j)^2` where the diagonal does not count.

        The latter is the difference of `|A'A|^2` and `sum_i |a_i|^4`, which cancel where a few rows are far longer than
        the others: products with those rows are summed one by one. Among rows of which none has more than
        `1 / (2 rank)` of the sum of squares, what is subtracted is at most half of what it is subtracted from."""
        if self.diagonal:
            return super().model_norm2(A, mode, gram)
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

    def direct_fit(self, factors: Factors) -> float:
        if self.diagonal:
            return super().direct_fit(factors)
        A = factors[0].astype(np.float64, copy=False)

        def part(start: int, stop: int) -> float:
            difference = self.data.block(slice(start, stop)) - A[start:stop] @ A.T
            np.fill_diagonal(difference[:, start:], 0)
            return float(np.vdot(difference, difference))

        return 0.5 * sum(threads.run(part, [0, *(rows.stop for rows in self.data.row_blocks())]))

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
        gains = kernels.of(A).symmetric_gains(A, known.cross, known.gram, self.data.diagonal, self.diagonal)
        return Measured(self.fit(factors, 0, known), self.relative_gain(gains))

    def to_user(self, factors: Factors) -> Factors:
        return self.tied(super().to_user(factors[:1]))

    def from_user(self, factors: Factors) -> Factors:
        return self.tied(super().from_user(factors[:1]))


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
    check_symmetric(data, "X", symmetric)
    if symmetric == OFF_DIAGONAL:
        data = data.without_diagonal()
    check_nonnegative(data)
    plain = pose(data, loss, stated, rank)
    return SymmetricProblem(plain.data, plain.loss, plain.structures, plain.rank, diagonal=symmetric is True)


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
    if data.asymmetry > ROUNDING[data.dtype] * largest:
        raise ValueError(
            f"{name} is not symmetric: entries differ from those across the diagonal by up to {data.asymmetry:.3g}, "
            f"where the largest is {largest:.3g}. Pass ({name} + {name}.T) / 2 for its symmetric part, or leave "
            "symmetric=False."
        )
