"""Symmetric factorization: `X ~ [[A, ..., A]]` with A >= 0, `A A'` for a matrix: similarities, networks, moments.

    minimise  1/2 |X - [[A, ..., A]]|^2,    or    1/2 sum_{i != j} (x_ij - (A A')_ij)^2

where the diagonal of a matrix X says nothing. A is every factor of `Problem`, the same array throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy import sparse

from .. import kernels
from ..data import Data, as_data
from ..data.rows import BLOCK, blocks, sparse_matrix
from ..data.validation import OFF_DIAGONAL
from ..errors import IncompatibleError
from ..losses import Loss
from ..losses.beta import cancels
from ..losses.expansions import Expansion, Quadratic, gram_of
from ..structures import NonNegative, Structure
from .parts import diagonal_weight
from .pose import pose
from .problem import NOTHING, Factors, Measured, Problem

ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}  # of the largest entry: asymmetry that is no fault


@dataclass(frozen=True, eq=False)
class SymmetricProblem(Problem):
    diagonal: float = 1.0  # the weight of entries on the diagonal of X, 1 or 0; where it is 0, `data` has zeros there

    @property
    def order(self) -> int:
        return len(self.structures)

    @property
    def symmetric(self) -> bool | str:  # type: ignore[override]  # not of the class here
        return True if self.diagonal else OFF_DIAGONAL

    @cached_property
    def modes(self) -> list[int]:
        return [0]

    @cached_property
    def separable(self) -> bool:
        """Rows of A meet each other in the model."""
        return False

    @cached_property
    def own(self) -> np.ndarray:
        """The diagonal of a matrix X."""
        return diagonal_of(self.data)

    def normal_equations(self, factors: Factors, mode: int) -> Quadratic:
        known = super().normal_equations(factors, mode)
        assert isinstance(known, Quadratic)  # all entries count
        return known

    def tied(self, factors: Factors) -> Factors:
        """A once for each mode, from the first."""
        return (factors[0],) * self.order

    def model_norm2(self, A: np.ndarray) -> float:
        """`|[[A, ..., A]]|^2`, the sum of the entries of A'A to the order, or, where the diagonal of a matrix does not
        count, `sum_{i != j} (a_i' a_j)^2`.

        The latter is the difference of `|A'A|^2` and `sum_i |a_i|^4`, which cancel where a few rows are far longer than
        the others: products with those rows are summed one by one. Among rows of which none has more than
        `1 / (2 rank)` of the sum of squares, what is subtracted is at most half of what it is subtracted from."""
        if self.diagonal:
            return float((gram_of(A).astype(np.float64) ** self.order).sum())
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
        if self.order > 2:
            return super().direct_fit(factors)
        A, total = factors[0].astype(np.float64, copy=False), 0.0
        for rows, entries, _ in blocks(self.data):
            difference = entries - A[rows] @ A.T
            if not self.diagonal:
                np.fill_diagonal(difference[:, rows.start :], 0)
            total += float(np.vdot(difference, difference))
        return 0.5 * total

    def gradient(self, factors: Factors, mode: int = 0) -> np.ndarray:
        """`2 (A A' - X) A` for a matrix, the diagonal of `A A' - X` taken as 0 where it does not count; for any order
        as often what it is with the other factors held."""
        A = factors[0]
        G = super().gradient(factors, 0)
        if not self.diagonal:
            G = G - np.einsum("ik,ik->i", A, A)[:, None] * A
        return self.order * G

    def measure(self, factors: Factors, known: Mapping[int, Expansion] = NOTHING) -> Measured:
        return self.measured(factors, self.normal_equations(factors, 0))

    def measured(self, factors: Factors, known: Quadratic) -> Measured:
        """The loss, and the stationarity: `sqrt(2 gain) / |X|` of the component that can gain most, as for any problem.

        `gain` is by how much the objective falls if each entry goes to its own best value, all else held: exactly for a
        matrix, where one entry has a polynomial of degree 4, else by the model of Gauss and Newton (`curvature`).
        """
        A = factors[0]
        if self.order == 2:
            gains = kernels.of(A).symmetric_gains(A, known.cross, known.gram, self.own, self.diagonal)
        else:
            gradient, _ = known.slopes(A)
            gains = self.structures[0].gains(A, self.order * gradient, self.curvature(A))
        return Measured(self.fit(factors, 0, known), self.relative_gain(gains))

    def curvature(self, A: np.ndarray) -> np.ndarray:
        """Second derivatives entry by entry without the part that vanishes where X is met, so that none is negative:
        `d g_k^(d - 1) + d (d - 1) a_ik^2 g_k^(d - 2)`, d the order and `g_k = |a_k|^2`."""
        d, norms2 = self.order, np.diag(gram_of(A))
        return d * (norms2 ** (d - 1) + (d - 1) * np.square(A) * norms2 ** (d - 2))

    def to_user(self, factors: Factors) -> Factors:
        return self.tied(super().to_user(factors))

    def from_user(self, factors: Factors) -> Factors:
        return self.tied(super().from_user(factors))


def pose_as(symmetric: bool | str, data: Data, loss: Loss, stated: Sequence[Structure], rank: int) -> Problem:
    """`X ~ [[A_1, ..., A_d]]`, or `X ~ [[A, ..., A]]` for one of the `SYMMETRIES`: checks X for it, too."""
    if not symmetric:
        return pose(data, loss, stated, rank)
    if symmetric == OFF_DIAGONAL and len(data.shape) > 2:
        raise IncompatibleError(
            f"symmetric={symmetric!r} is for matrices, got a tensor of order {len(data.shape)}: use symmetric=True."
        )
    if not data.complete:
        raise IncompatibleError(
            f"symmetric={symmetric!r} needs X without missing entries, in which all count alike: fill them in, or use "
            "symmetric=False."
        )
    if not loss.quadratic:
        raise IncompatibleError(f"symmetric={symmetric!r} goes with least squares, loss='frobenius', not with {loss}.")
    if other := next((structure for structure in stated if type(structure) is not NonNegative), None):
        raise IncompatibleError(
            f"symmetric={symmetric!r} goes with a nonnegative factor and no other structure, got {other}."
        )
    if len(data.shape) == 2 and sum(1 for _ in data.rows(0)) > 1:
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
        model = "A A'" if len(data.shape) == 2 else "[[A, ..., A]]"
        raise ValueError(
            f"Negative values in data passed to partwise: X goes down to {lowest:g}, which {model} with A >= 0 cannot "
            "reproduce. Clip or shift X."
        )


def check_symmetric(data: Data, name: str, symmetric: bool | str = True) -> None:
    """`name`: as the user knows X."""
    matrix = len(data.shape) == 2
    if len(set(data.shape)) > 1:
        what = f"a square {name}" if matrix else f"{name} with modes of one size"
        raise ValueError(f"symmetric={symmetric!r} needs {what}, got one of shape {data.shape}.")
    largest = max(map(abs, data.extremes))
    asymmetry = asymmetry_of(data)
    if asymmetry > ROUNDING[data.dtype] * largest:
        across = "across the diagonal" if matrix else "with two neighbouring indices swapped"
        part = f"({name} + {name}.T) / 2" if matrix else f"the mean of {name} over all orders of its modes"
        raise ValueError(
            f"{name} is not symmetric: entries differ from those {across} by up to {asymmetry:.3g}, where the largest "
            f"is {largest:.3g}. Pass {part} for its symmetric part, or leave symmetric=False."
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
    """The largest difference of entries of X that two neighbouring indices swapped make each other: `|x_ij - x_ji|`."""
    if len(data.shape) > 2:
        return (coordinate_asymmetry if data.sparse else array_asymmetry)(*data.arrays) / data.scale
    if data.sparse:
        n = data.shape[0]
        pairs = zip(data.double().rows(0), data.double().rows(1), strict=True)
        return max(float(abs(sparse_matrix(X, n) - sparse_matrix(Y, n)).max()) for X, Y in pairs)
    turned = data.double()
    return max(float(np.abs(entries - turned.take(1, rows)).max()) for rows, entries, _ in blocks(data))


def array_asymmetry(array: np.ndarray) -> float:
    """The same of a tensor, some slices at a time."""
    found, step = [0.0], max(1, BLOCK * len(array) // max(array.size, 1))
    for mode, start in product(range(array.ndim - 1), range(0, len(array), step)):
        here, there = (X[start : start + step].astype(np.float64) for X in (array, array.swapaxes(mode, mode + 1)))
        found.append(float(np.abs(here - there).max()))
    return max(found)


def coordinate_asymmetry(coords: np.ndarray, values: np.ndarray) -> float:
    """The same of the listed entries of a tensor: coordinates (nnz, order), none twice, and values."""
    found = [0.0]
    for mode in range(coords.shape[1] - 1):
        swapped = coords.copy()
        swapped[:, [mode, mode + 1]] = coords[:, [mode + 1, mode]]
        both, signed = np.concatenate([coords, swapped]), np.concatenate([values, -values]).astype(np.float64)
        order = np.lexsort(both.T)
        both, signed = both[order], signed[order]
        firsts = np.flatnonzero(np.append(True, np.any(both[1:] != both[:-1], axis=1))[: len(both)])
        found.append(float(np.abs(np.add.reduceat(signed, firsts)).max()) if len(both) else 0.0)
    return max(found)
