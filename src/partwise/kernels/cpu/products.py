"""Products of X with a narrow matrix."""

import numpy as np

from .. import threads
from .base import aligned, compiled
from .simd import LINE, VECTOR, gather

TILE = 4  # vectors of a row of B that are summed at once; wider rows take several passes


@compiled
def _gather_rows(rows, B, offset, count, out, start, stop):
    """Columns `offset` and following, `count` vectors of them, of the given rows of the product."""
    indptr, indices, values = rows
    stride, flat = B.shape[1], B.reshape(B.size)
    sums = aligned(TILE * VECTOR // B.itemsize, B)
    width = min(count * VECTOR // B.itemsize, out.shape[1] - offset)
    for i in range(start, stop):
        first, last = np.int64(indptr[i]), np.int64(indptr[i + 1])
        # the number of vectors has to be a literal: it says how many registers the loop uses
        if count == 1:
            gather(1, values, indices, first, last, flat, offset, stride, sums)
        elif count == 2:
            gather(2, values, indices, first, last, flat, offset, stride, sums)
        elif count == 3:
            gather(3, values, indices, first, last, flat, offset, stride, sums)
        else:
            gather(4, values, indices, first, last, flat, offset, stride, sums)
        for k in range(width):
            out[i, offset + k] = sums[k]


@compiled
def _sparse_product(rows, B, out, start, stop):
    lanes = VECTOR // B.itemsize
    for first in range(0, B.shape[1] // lanes, TILE):
        count = min(TILE, B.shape[1] // lanes - first)
        _gather_rows(rows, B, first * lanes, count, out, start, stop)


@compiled
def _pad(B, scale, out, start, stop):
    for i in range(start, stop):
        for k in range(B.shape[1]):
            out[i, k] = B[i, k] * scale
        out[i, B.shape[1] :] = 0


def padded(B, scale):
    """`B * scale`, rows filled up with zeros to whole vectors that start at cache lines."""
    lanes = VECTOR // B.itemsize
    width = -(-B.shape[1] // lanes) * lanes
    space = np.empty(B.shape[0] * width + LINE // B.itemsize, B.dtype)
    skip = (-space.ctypes.data) % LINE // B.itemsize
    out = space[skip : skip + B.shape[0] * width].reshape(B.shape[0], width)
    threads.run(lambda i, j: _pad(B, scale, out, i, j), threads.even(*B.shape, threads.LIGHT_WORK))
    return out


def sparse_product(rows, B, scale):
    """`S @ B * scale` for a sparse S given by its rows `(indptr, indices, values)`, tasks balanced by nonzeros."""
    indptr = rows[0]
    out = np.empty((indptr.size - 1, B.shape[1]), dtype=B.dtype)
    wide = padded(B, B.dtype.type(scale))
    # a row costs a little even when empty
    work = indptr + np.arange(indptr.size)
    pieces = threads.pieces(int(work[-1]) * B.shape[1])
    boundaries = np.searchsorted(work, np.linspace(0, work[-1], pieces + 1))
    threads.run(lambda i, j: _sparse_product(rows, wide, out, i, j), boundaries)
    return out


def dense_product(X, B, scale):
    """`X @ B * scale` in C order, by BLAS, in the same pieces for any number of threads."""
    B = B * B.dtype.type(scale)
    out = np.empty((X.shape[0], B.shape[1]), dtype=B.dtype)

    def piece(start, stop):
        if B.dtype == np.float64:
            # OpenBLAS is up to twice as fast on this shape in double precision
            out[start:stop] = (B.T @ X[start:stop].T).T
        else:
            np.matmul(X[start:stop], B, out=out[start:stop])

    threads.run(piece, threads.even(X.shape[0], X.shape[1] * B.shape[1], threads.BLAS_WORK))
    return out
