"""Products of X with a narrow matrix."""

from contextlib import contextmanager

import numpy as np

from .. import threads
from .base import aligned, helper, padded_to
from .blas_tasks import enter_columns, enter_rows, over_blas
from .simd import LINE, VECTOR, gather, scatter
from .team import mapped, over

TILE = 4  # vectors of a row of B that are summed at once; wider rows take several passes
PIECE = 128  # rows of a dense product that are worth a piece of their own
WIDE, MOST_SUMS = 20, 32  # columns for each row, from where on pieces of columns are multiplied and added up; of these
NARROW = 1 << 18  # bytes: a part of the second-level cache
KEPT = 1 << 24  # bytes of memory that is used again
_rooms: list[np.ndarray] = []  # memory that nobody uses now
FLAT = 2  # columns of X for each of B, up to where the product costs less than to turn it


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


@mapped
def _pad(B, scale, out, number, start, stop):
    for i in range(start, stop):
        for k in range(B.shape[1]):
            out[i, k] = B[i, k] * scale
        out[i, B.shape[1] :] = 0


def padded(B, scale, room=None):
    """`B * scale`, rows filled up with zeros to whole vectors, in memory of its own unless there is room for it."""
    width, size = padded_to(B.shape[1], B.itemsize), size_padded(B)
    out = (fresh(size) if room is None else room)[:size].view(B.dtype).reshape(B.shape[0], width)
    over(_pad, threads.split_evenly(*B.shape, threads.LIGHT_WORK), B, scale, out)
    return out


def size_padded(B):
    """In bytes."""
    return B.shape[0] * padded_to(B.shape[1], B.itemsize) * B.itemsize


def fresh(size):
    """So many bytes, from the beginning of a cache line; as `aligned`, but not zeroed."""
    space = np.empty(size + LINE, np.uint8)
    skip = (-space.ctypes.data) % LINE
    return space[skip : skip + size]


@contextmanager
def room_for(size):
    """A context with so many bytes, or more. Fresh memory takes the system as long as a kernel needs to fill it, so
    what was used last is used again, unless it is large."""
    try:
        room = _rooms.pop()
    except IndexError:
        room = fresh(size)
    room = room if room.size >= size else fresh(size)
    try:
        yield room
    finally:
        if room.size <= KEPT:
            _rooms.append(room)


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


def dense_product(X, B, scale):
    """`X @ B * scale` in C order and in the type of B, by BLAS, in the same pieces for any number of threads: of rows
    of X, or, where it has too few of them, of columns."""
    B = B if scale == 1 else B * B.dtype.type(scale)
    rows, columns = X.shape
    # every piece of rows packs B anew, which takes as long as many rows
    most = 2 * -(-rows // (2 * PIECE))
    if columns > WIDE * rows and most < threads.pieces(rows * columns * B.shape[1], threads.BLAS_WORK):
        work = threads.split_evenly(columns, rows * B.shape[1], threads.BLAS_WORK, MOST_SUMS)
        if len(work) > 2 and is_plain(X, B):
            parts = np.empty((len(work) - 1, rows, B.shape[1]), B.dtype)
            over_blas(enter_columns, work, X, np.ascontiguousarray(B), parts)
            return parts.sum(axis=0)
        return np.ascontiguousarray(threads.added(threads.map_chunks(lambda i, j: multiply(X[:, i:j], B[i:j]), work)))
    out = np.empty((rows, B.shape[1]), B.dtype)
    work = threads.split_evenly(rows, columns * B.shape[1], threads.BLAS_WORK, most)
    if len(work) > 2 and is_plain(X, B):
        over_blas(enter_rows, work, X, np.ascontiguousarray(B), out)
    else:
        threads.map_chunks(lambda i, j: multiply(X[i:j], B, out[i:j]), work)
    return out


def is_plain(X, B):
    """Whether BLAS can take X as it is, and does well with it: see `multiply`."""
    (short, width), (long, _) = sorted(zip(X.strides, X.shape, strict=True))
    apart = long % X.itemsize == 0 and (long >= width * short or 1 in X.shape)
    fits = short == X.itemsize and apart and max(X.shape) < 1 << 31
    return fits and X.dtype == B.dtype == np.float32


def multiply(X, B, out=None):
    """`X @ B`, in the type of B."""
    X = X if X.dtype == B.dtype else X.astype(B.dtype)
    if X.strides[1] == X.itemsize and (B.dtype != np.float64 or X.shape[1] <= FLAT * B.shape[1]):
        return np.matmul(X, B, out=out)
    # OpenBLAS is up to twice as fast on this shape in double precision, and where X is stored by columns
    product = (B.T @ X.T).T
    if out is not None:
        out[:] = product
    return product


def product(X, A, others):
    """Rows of X times the others, as a row kernel; A is not read."""
    if X.full:
        return (dense_product(X.values.reshape(X.n_rows, -1), others.B, X.scale),), ()
    return (sparse_product(X, others.B),), ()
