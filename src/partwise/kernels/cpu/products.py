"""Products of X with a narrow matrix."""

import numpy as np

from .. import threads
from .base import aligned, helper, padded_to
from .dense import dense_product
from .padding import padded, room_for, size_padded
from .simd import VECTOR, gather, scatter
from .team import mapped, over

TILE = 4  # vectors of a row of B that are summed at once; wider rows take several passes
NARROW = 1 << 18  # bytes: a part of the second-level cache


@helper
def gather_vectors(count, values, indices, span, B, offset, stride, out):
    """`out = sum_p values[p] B[offset + stride indices[p]:]`, p in `range(*span)`, of 1 to 4 vectors: their number has
    to be a literal, since it says how many registers the loop uses."""
    first, last = span
    if count == 1:
        gather(1, values, indices, first, last, B, offset, stride, out)
    elif count == 2:
        gather(2, values, indices, first, last, B, offset, stride, out)
    elif count == 3:
        gather(3, values, indices, first, last, B, offset, stride, out)
    else:
        gather(4, values, indices, first, last, B, offset, stride, out)


@helper
def _gather_rows(X, B, stride, offset, count, sums, out, start, stop):
    """Columns `offset` and following, `count` vectors of them, of the given rows of the product; the rows of B are
    `stride` apart."""
    indptr, indices, values = X.indptr, X.indices, X.values
    width = min(count * VECTOR // B.itemsize, out.shape[1] - offset)
    for i in range(start, stop):
        gather_vectors(count, values, indices, (indptr[i], indptr[i + 1]), B, offset, stride, sums)
        for k in range(width):
            out[i, offset + k] = sums[k]


@helper
def _scatter_rows(X, B, stride, offset, count, out, start, stop):
    """What the given rows of S add to these columns of `S' B`."""
    indptr, indices, values = X.indptr, X.indices, X.values
    for i in range(start, stop):
        first, last, place = indptr[i], indptr[i + 1], i * stride + offset
        if count == 1:
            scatter(1, values, indices, first, last, B, place, offset, stride, out)
        elif count == 2:
            scatter(2, values, indices, first, last, B, place, offset, stride, out)
        elif count == 3:
            scatter(3, values, indices, first, last, B, place, offset, stride, out)
        else:
            scatter(4, values, indices, first, last, B, place, offset, stride, out)


@mapped
def _sparse_product(X, B, stride, out, number, start, stop):
    lanes = VECTOR // B.itemsize
    sums = aligned(TILE * lanes, B.dtype)
    for first in range(0, stride // lanes, TILE):
        count = min(TILE, stride // lanes - first)
        _gather_rows(X, B, stride, first * lanes, count, sums, out, start, stop)


@mapped
def _transposed_product(X, B, stride, parts, number, start, stop):
    part = parts[number]
    lanes, out = VECTOR // B.itemsize, aligned(part.size, B.dtype)
    for first in range(0, stride // lanes, TILE):
        count = min(TILE, stride // lanes - first)
        _scatter_rows(X, B, stride, first * lanes, count, out, start, stop)
    for p in range(part.size):
        part[p] = out[p]


def balanced(X, rank):
    """Boundaries of tasks with about as many nonzeros each; a row costs a little even when empty."""
    return threads.split_rows(X.indptr, 1, rank)


def sparse_product(X, B):
    """`S @ B * X.scale` for a sparse S given by its rows."""
    out = np.empty((X.indptr.size - 1, B.shape[1]), dtype=B.dtype)
    with room_for(size_padded(B)) as room:
        wide = padded(B, B.dtype.type(X.scale), room)
        over(_sparse_product, balanced(X, B.shape[1]), X, wide.ravel(), wide.shape[1], out)
    return out


def transposed_product(X, B, dim):
    """`S' @ B * X.scale` for a sparse S of `dim` columns, given by its rows: so few columns that every task can have a
    product of its own in its cache, see `is_narrow`."""
    boundaries = balanced(X, B.shape[1])
    with room_for(size_padded(B)) as room:
        wide = padded(B, B.dtype.type(X.scale), room)
        stride = wide.shape[1]
        parts = np.empty((len(boundaries) - 1, dim * stride), B.dtype)
        over(_transposed_product, boundaries, X, wide.ravel(), stride, parts)
    return np.ascontiguousarray(parts.sum(axis=0).reshape(dim, stride)[:, : B.shape[1]])


def is_narrow(dim, rank, itemsize):
    """Whether a product with `dim` rows is small enough to be summed in the cache of a core."""
    return dim * padded_to(rank, itemsize) * itemsize <= NARROW


def product(X, A, others):
    """Rows of X times the others, as a row kernel; A is not read."""
    if X.full:
        return (dense_product(X.values.reshape(X.n_rows, -1), others.B, X.scale),), ()
    return (sparse_product(X, others.B),), ()
