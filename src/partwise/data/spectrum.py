"""Singular values of X through products with it."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip

from .base import Data

OVERSAMPLES = 10  # singular vectors sought beyond those that are wanted


def svd(data: Data, rank: int, rng, n_iter: int | None = None, n_oversamples: int = OVERSAMPLES) -> tuple:
    """The leading singular triplets `U (m, rank), s, V (n, rank)` of a matrix: Halko, Martinsson and Tropp (2011), SIAM
    Review 53(2), with the defaults, the random numbers and the signs of scikit-learn's `randomized_svd`."""
    if n_iter is None:
        n_iter = 7 if rank < 0.1 * min(data.shape) else 4
    long = int(data.shape[0] < data.shape[1])  # the mode of the longer side

    def times(Q, mode):
        Q = np.ascontiguousarray(Q)
        return data.cross((Q, Q), mode)

    Q = check_random_state(rng).normal(size=(data.shape[1 - long], rank + n_oversamples)).astype(data.dtype, copy=False)
    for _ in range(n_iter):
        for mode in (long, 1 - long):
            Q = linalg.lu(times(Q, mode), permute_l=True, overwrite_a=True, check_finite=False)[0]
    # in LAPACK's order, and back in that of products: no array of the longer side is there twice for long
    Q = linalg.qr(np.asfortranarray(times(Q, long)), mode="economic", overwrite_a=True, check_finite=False)[0]
    Q = np.ascontiguousarray(Q)
    U, s, Vt = linalg.svd(times(Q, 1 - long).T, full_matrices=False, lapack_driver="gesdd", check_finite=False)
    U, Vt = svd_flip(Q @ U[:, :rank], Vt[:rank], u_based_decision=long == 0)
    sides = U, Vt.T
    return sides[long], s[:rank], sides[1 - long]


def gram(data: Data, mode: int) -> np.ndarray:
    """X unfolded along `mode` times its transpose, (dim, dim), in double precision, in one pass over X."""
    total = np.zeros((data.shape[mode],) * 2)
    for slab in data.slabs(mode):
        product = slab.T @ slab
        total += product.toarray() if issparse(product) else product
    return total
