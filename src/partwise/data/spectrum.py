"""Singular values of X through products with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from .. import kernels
from .base import Data
from .validation import checked_random_state

OVERSAMPLES = 10  # singular vectors sought beyond those that are wanted
SKEW = 0.1  # how far from orthonormal columns may be after once: pivots do not tell how near to dependent they were
PASSES = 5  # over data in blocks, for the directions
ROUNDING = 1e-6  # of the largest singular value
NEAR = 2.0**-8  # of the largest pivot: columns nearer to dependent than this lose digits in their Gram matrix
APART = 2.0**-6  # the same after one product or two, from where on columns are not looked at after each


def svd(data: Data, rank: int, rng, n_iter: int | None = None, n_oversamples: int = OVERSAMPLES) -> tuple:
    """The leading singular triplets `U (m, rank), s, V (n, rank)` of a matrix: Halko, Martinsson and Tropp (2011), SIAM
    Review 53(2), with the defaults, the random numbers and the signs of scikit-learn's `randomized_svd`."""
    if data.in_blocks:
        return svd_in_blocks(data, rank, rng)
    if n_iter is None:
        n_iter = 7 if rank < 0.1 * min(data.shape) else 4
    long = int(data.shape[0] < data.shape[1])  # the mode of the longer side

    def times(Q, mode):
        Q = np.ascontiguousarray(Q)
        return data.cross((Q, Q), mode)

    Q = (
        checked_random_state(rng)
        .normal(size=(data.shape[1 - long], rank + n_oversamples))
        .astype(data.dtype, copy=False)
    )
    spread = 0.0
    for _ in range(n_iter):
        for mode in (long, 1 - long):
            Q = times(Q, mode)
            if mode == 1 - long or spread < APART:  # else two products leave columns apart
                Q, spread = conditioned(Q)
    Q, _ = orthonormal(times(Q, long))
    P, R = orthonormal(times(Q, 1 - long))
    U, s, Vt = linalg.svd(R.T, check_finite=False)
    of = data.kernels
    sides = of.times(Q, U[:, :rank].astype(Q.dtype)), of.times(P, Vt[:rank].T.astype(P.dtype))
    U, V = sides[long], sides[1 - long]
    signs = np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(rank)])  # the largest entries of U become positive
    U *= signs
    V *= signs
    return U, s[:rank], V


def conditioned(Y: np.ndarray) -> tuple[np.ndarray, float]:
    """Columns with the same span that are far from dependent, and how far they were from it: the least pivot over the
    largest, 0 where they were near."""
    R = root_of_gram(Y)
    if R is None:
        return linalg.lu(Y, permute_l=True, check_finite=False)[0], 0.0
    pivots = np.diag(R)
    return divided(Y, R), float(pivots.min() / pivots.max())


def orthonormal(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`Y = Q R`. What rounding in the Gram matrix leaves, a second time puts right: Yamamoto, Nakatsukasa, Yanagisawa
    and Fukaya (2015), Electronic Transactions on Numerical Analysis 44."""
    first = root_of_gram(Y)
    if first is None:
        return orthonormal_by_reflections(Y)
    Q = divided(Y, first)
    second = root_of_gram(Q)
    if second is None or np.abs(second - np.eye(len(second))).max() > SKEW:
        return orthonormal_by_reflections(Y)
    return divided(Q, second), second @ first


def orthonormal_by_reflections(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    Q, R = linalg.qr(np.asfortranarray(Y), mode="economic", check_finite=False)
    return np.ascontiguousarray(Q), R


def root_of_gram(Y: np.ndarray) -> np.ndarray | None:
    """R with `R' R = Y' Y`, by Cholesky; None where columns are too near to dependent for that."""
    try:
        R = linalg.cholesky(kernels.of(Y).gram(Y).astype(np.float64), check_finite=False)
    except linalg.LinAlgError:
        return None
    pivots = np.diag(R)
    return R if len(Y) >= len(R) and pivots.min() > NEAR * pivots.max() else None


def divided(Y: np.ndarray, R: np.ndarray) -> np.ndarray:
    """`Y / R`, R upper triangular."""
    inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
    return kernels.of(Y).times(Y, inverse.astype(Y.dtype))


@dataclass(frozen=True, eq=False)
class NormalProduct:
    """`X' X Q`, a block of rows at a time."""

    Q: np.ndarray

    def __call__(self, data: Data) -> tuple[tuple, tuple]:
        Y = data.cross((self.Q, self.Q), 0)
        return (), (data.cross((Y, Y), 1).astype(np.float64),)


def svd_in_blocks(data: Data, rank: int, rng) -> tuple:
    """The same for data in blocks of rows, by subspace iteration with `X' X`: nothing tall is kept but U, and each
    iteration is one pass."""
    width = min(rank + OVERSAMPLES, data.shape[1])
    Q = linalg.qr(checked_random_state(rng).normal(size=(data.shape[1], width)), mode="economic")[0]
    for _ in range(PASSES):
        Z = data.each(NormalProduct(Q.astype(data.dtype)))[1][0]
        basis, Q = Q, linalg.qr(Z, mode="economic")[0]
    squares, E = linalg.eigh(basis.T @ Z)
    squares, E = np.maximum(squares[::-1][:rank], 0), E[:, ::-1][:, :rank]
    V, s = (basis @ E).astype(data.dtype), np.sqrt(squares)
    inverse = np.divide(1, s, out=np.zeros_like(s), where=s > ROUNDING * s[0])
    return data.cross((V, V), 0) * inverse.astype(data.dtype), s.astype(data.dtype), V


def gram(data: Data, mode: int) -> np.ndarray:
    """X unfolded along `mode` times its transpose, (dim, dim), in double precision, in one pass over X."""
    if data.in_blocks:
        return data.each(column_gram)[1][0]
    total = np.zeros((data.shape[mode],) * 2)
    for slab in data.slabs(mode):
        product = slab.T @ slab
        total += product.toarray() if issparse(product) else product
    return total


def column_gram(data: Data) -> tuple[tuple, tuple]:
    """`X' X` of some rows."""
    return (), (gram(data, 1),)
