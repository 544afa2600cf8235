"""Singular values of X through products with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from .base import Data
from .validation import checked_random_state

OVERSAMPLES = 10  # singular vectors sought beyond those that are wanted
PASSES = 5  # over data in blocks, for the directions
ROUNDING = 1e-6  # of the largest singular value


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
    for _ in range(n_iter):
        for mode in (long, 1 - long):
            Q = linalg.lu(times(Q, mode), permute_l=True, overwrite_a=True, check_finite=False)[0]
    # in LAPACK's order, and back in that of products: no array of the longer side is there twice for long
    Q = linalg.qr(np.asfortranarray(times(Q, long)), mode="economic", overwrite_a=True, check_finite=False)[0]
    Q = np.ascontiguousarray(Q)
    U, s, Vt = linalg.svd(times(Q, 1 - long).T, full_matrices=False, lapack_driver="gesdd", check_finite=False)
    sides = Q @ U[:, :rank], Vt[:rank].T
    U, V = sides[long], sides[1 - long]
    signs = np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(rank)])  # the largest entries of U become positive
    U *= signs
    V *= signs
    return U, s[:rank], V


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
