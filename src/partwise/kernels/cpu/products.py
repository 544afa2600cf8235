"""Products of X with a narrow matrix."""

import numpy as np

from .. import threads
from .base import aligned, helper, padded_to
from .dense import dense_product
from .simd import VECTOR, gather, scatter
from .team import mapped, over

TILE = 4  # vectors of a row of B that are summed at once; wider rows take several passes
MODERATE = 2.0**32  # the scale by which sums may be multiplied
FEW = 2 * threads.ROUND  # products of tasks that are added up
NARROW = 1 << 18  # bytes: a part of the second-level cache


@helper
def gather_vectors(count, values, indices, span, B, offset, stride, width, out):
    """`out = sum_p values[p] B[offset + stride indices[p]:]`, p in `range(*span)`, of 1 to 4 vectors, `width` entries:
    their number has to be a literal, since it says how many registers the loop uses."""
    first, last = span
    if count == 1:
        gather(1, values, indices, first, last, B, offset, stride, width, out)
    elif count == 2:
        gather(2, values, indices, first, last, B, offset, stride, width, out)
    elif count == 3:
        gather(3, values, indices, first, last, B, offset, stride, width, out)
    else:
        gather(4, values, indices, first, last, B, offset, stride, width, out)


@helper
def _scatter_rows(X, B, rank, offset, width, stride, out, start, stop):
    """What the given rows of S add to these columns of `S' B`, whose rows are `stride` apart."""
    indptr, indices, values, count = X.indptr, X.indices, X.values, vectors_of(width, B.itemsize)
    for i in range(start, stop):
        first, last, place = indptr[i], indptr[i + 1], i * rank + offset
        if count == 1:
            scatter(1, values, indices, first, last, B, place, width, offset, stride, out)
        elif count == 2:
            scatter(2, values, indices, first, last, B, place, width, offset, stride, out)
        elif count == 3:
            scatter(3, values, indices, first, last, B, place, width, offset, stride, out)
        else:
            scatter(4, values, indices, first, last, B, place, width, offset, stride, out)


@helper
def vectors_of(n, itemsize):
    """How many vectors it takes to hold n numbers."""
    lanes = VECTOR // itemsize
    return (n + lanes - 1) // lanes


@mapped
def _sparse_product(X, B, scale, out, number, start, stop):
    """`width` columns at a time. B is read where it lies: to fill up its rows to whole vectors takes up to half of the
    time of a product on two cores, and more on many, whose caches all hold what would be written."""
    indptr, indices, values, rank = X.indptr, X.indices, X.values, out.shape[1]
    most = TILE * VECTOR // B.itemsize
    sums = aligned(most, B.dtype)
    for offset in range(0, rank, most):
        width = min(most, rank - offset)
        count = vectors_of(width, B.itemsize)
        for i in range(start, stop):
            gather_vectors(count, values, indices, (indptr[i], indptr[i + 1]), B, offset, rank, width, sums)
            for k in range(width):
                out[i, offset + k] = scale * sums[k]


@mapped
def _transposed_product(X, B, scale, rank, stride, parts, number, start, stop):
    part, most = parts[number], TILE * VECTOR // B.itemsize
    out = aligned(part.size, B.dtype)
    for offset in range(0, rank, most):
        _scatter_rows(X, B, rank, offset, min(most, rank - offset), stride, out, start, stop)
    for p in range(part.size):
        part[p] = scale * out[p]


def balanced(X, rank, most=threads.MOST_TASKS):
    """Boundaries of tasks with about as many nonzeros each; a row costs a little even when empty."""
    return threads.split_rows(X.indptr, 1, rank, most=most)


def flat(B, scale):
    """The numbers of B, one row after the other, and what is left to multiply sums by: all of the scale, unless sums
    could be too large, or too small, without it."""
    if 1 / MODERATE <= scale <= MODERATE:
        return B.ravel(), B.dtype.type(scale)
    return (B * B.dtype.type(scale)).ravel(), B.dtype.type(1)


def sparse_product(X, B):
    """`S @ B * X.scale` for a sparse S given by its rows."""
    out = np.empty((X.indptr.size - 1, B.shape[1]), dtype=B.dtype)
    over(_sparse_product, balanced(X, B.shape[1]), X, *flat(B, X.scale), out)
    return out


def transposed_product(X, B, dim):
    """`S' @ B * X.scale` for a sparse S of `dim` columns, given by its rows: so few columns that every task can have a
    product of its own in its cache, see `is_narrow`."""
    rank = B.shape[1]
    boundaries = balanced(X, rank, FEW)  # more take longer to add up than they save
    stride = padded_to(rank, B.itemsize)
    parts = np.empty((len(boundaries) - 1, dim * stride), B.dtype)
    over(_transposed_product, boundaries, X, *flat(B, X.scale), rank, stride, parts)
    return np.ascontiguousarray(parts.sum(axis=0).reshape(dim, stride)[:, :rank])


def is_narrow(dim, rank, itemsize):
    """Whether a product with `dim` rows is small enough to be summed in the cache of a core."""
    return dim * padded_to(rank, itemsize) * itemsize <= NARROW


def product(X, A, others):
    """Rows of X times the others, as a row kernel; A is not read."""
    if X.full:
        return (dense_product(X.values.reshape(X.n_rows, -1), others.B, X.scale),), ()
    return (sparse_product(X, others.B),), ()
