"""Products of an array with a narrow matrix.

BLAS is made for matrices that are large both ways: with 10 to 50 columns it spends as long on rearranging X as on
multiplying. Here X is read where it lies. Where its rows lie in one piece, sums of a tile of the result stay in vector
registers; where its columns do, some rows of B stay there, and multiples of them are added to the result.
"""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import aligned, helper
from .padding import padded, room_for, size_padded
from .simd import HEIGHTS, VECTOR, WAY, column_tile, row_tile
from .team import mapped, over

MOST = 32  # tasks
HIGHEST = max(HEIGHTS)  # rows of a tile
GROUP = len(HEIGHTS)  # vectors of a row of B at a time
DEEP = 192  # rows of X at a time
ROOM = DEEP + HIGHEST  # the same in whole tiles
SUMMED = 4 * DEEP  # numbers that are added up in one chain
CACHED = 1 << 18  # bytes of B, or of sums: a part of the second-level cache
LEAST_ROWS, LEAST_COLUMNS = 32, 64  # of X that are worth a task of their own
SHORT = 64  # columns of X, below which BLAS is faster; of X in the other memory order half as many
MANY_ROWS, STRETCH = 256, 512  # rows that cost far more than to add up results; columns that are read as fast as more
# of BLAS: rows of a product that are worth a piece of their own; columns for each row, from where on it is cut there
PIECE, WIDE = 128, 20
FLAT = 2  # columns of X for each of B, up to where BLAS takes less than to turn it


class Operands(NamedTuple):
    """X, whose rows lie in one piece each, and B in whole vectors."""

    X: int  # its address
    like: np.ndarray  # of its type, empty: an array that may not be written to would be a type of its own
    n_rows: int
    apart: int  # numbers from one row to the next
    B: np.ndarray
    width: int  # numbers in a row of B


class Pieces(NamedTuple):
    """Where the rows and the columns of X are cut: every task has one piece of each."""

    rows: np.ndarray
    columns: np.ndarray


@helper
def _row_tile(count, X, like, apart, n, B, place, width, out, at):
    if count == 1:
        row_tile(1, X, like, apart, n, B, place, width, out, at)
    elif count == 2:
        row_tile(2, X, like, apart, n, B, place, width, out, at)
    elif count == 3:
        row_tile(3, X, like, apart, n, B, place, width, out, at)
    else:
        row_tile(GROUP, X, like, apart, n, B, place, width, out, at)


@helper
def _column_tile(count, X, like, apart, n, B, place, width, out, at):
    if count == 1:
        column_tile(1, X, like, apart, n, B, place, width, out, at)
    elif count == 2:
        column_tile(2, X, like, apart, n, B, place, width, out, at)
    elif count == 3:
        column_tile(3, X, like, apart, n, B, place, width, out, at)
    else:
        column_tile(GROUP, X, like, apart, n, B, place, width, out, at)


@helper
def _piece(ends, number):
    """The piece of this number, from the first again after the last."""
    place = number % (ends.size - 1)
    return ends[place], ends[place + 1]


@helper
def _move(sums, totals):
    """Add sums to totals and begin anew: in single precision a long chain of additions loses digits."""
    for p in range(sums.size):
        totals[p] += sums[p]
        sums[p] = 0


@helper
def _add_rows(operands, i, height, j, n, sums):
    """What n columns from j on add to rows i and following of `X B`: tiles, one after the other. The last one begins
    where X has all of its rows."""
    X, like, n_rows, apart, B, width = operands
    lanes = VECTOR // B.itemsize
    for first in range(0, width, GROUP * lanes):
        count = min(GROUP, (width - first) // lanes)
        for k in range(0, height, HEIGHTS[count - 1]):
            address = X + (min(i + k, n_rows - HEIGHTS[count - 1]) * apart + j) * like.itemsize
            at = first * ROOM + k * count * lanes
            _row_tile(count, address, like, apart, n, B, j * width + first, width, sums, at)


@helper
def _store_rows(operands, i, height, sums, out):
    """Rows i and following out of their tiles."""
    lanes = VECTOR // sums.itemsize
    for first in range(0, operands.width, GROUP * lanes):
        count = min(GROUP, (operands.width - first) // lanes)
        tile, last = HEIGHTS[count - 1], min(first + count * lanes, out.shape[1])
        for k in range(height):
            late = max(0, i + k // tile * tile + tile - operands.n_rows)
            at = first * ROOM + (k + late) * count * lanes
            for m in range(first, last):
                out[i + k, m] = sums[at + m - first]


@mapped
def _by_rows(operands, pieces, parts, number, start, stop):
    """`X B`: of each piece of columns a part of the sums."""
    width, piece = operands.width, number // (pieces.rows.size - 1)
    (top, bottom), (left, right) = _piece(pieces.rows, number), _piece(pieces.columns, piece)
    step = max(min(CACHED // (width * operands.B.itemsize), SUMMED), 1)
    sums, totals = aligned(ROOM * width, operands.B.dtype), aligned(ROOM * width, operands.B.dtype)
    for i in range(top, bottom, DEEP):
        height = min(DEEP, bottom - i)
        totals[:] = 0
        for j in range(left, right, step):
            _add_rows(operands, i, height, j, min(step, right - j), sums)
            _move(sums, totals)
        _store_rows(operands, i, height, totals, parts[piece])


@helper
def _add_columns(operands, i, last, j, n, sums, some):
    """What rows i to last of X add to n rows from j on of `X' B`."""
    X, like, n_rows, apart, B, width = operands
    lanes = VECTOR // B.itemsize
    for first in range(0, width, GROUP * lanes):
        count = min(GROUP, (width - first) // lanes)
        tile = HEIGHTS[count - 1]
        rest = i + (last - i) // tile * tile
        for k in range(i, rest, tile):
            address = X + (k * apart + j) * like.itemsize
            _column_tile(count, address, like, apart, n, B, k * width + first, width, sums, first)
        if rest < last:  # a tile with some rows of B, and zeros for others
            row = min(rest, n_rows - tile)
            some[:] = 0
            for m in range(rest * width, last * width):
                some[m - row * width] = B[m]
            address = X + (row * apart + j) * like.itemsize
            _column_tile(count, address, like, apart, n, some, first, width, sums, first)


@mapped
def _by_columns(operands, pieces, parts, number, start, stop):
    """`X' B`: of each piece of rows a part of the sums."""
    B, width, piece = operands.B, operands.width, number // (pieces.columns.size - 1)
    (left, right), (top, bottom) = _piece(pieces.columns, number), _piece(pieces.rows, piece)
    step = max(CACHED // (width * B.itemsize), 1)
    size = min(step, right - left) * width
    sums, totals, some = aligned(size, B.dtype), aligned(size, B.dtype), aligned(HIGHEST * width, B.dtype)
    part = parts[piece]
    for j in range(left, right, step):
        n = min(step, right - j)
        totals[:] = 0
        for first in range(top, bottom, SUMMED):
            last = min(first + SUMMED, bottom)
            for i in range(first, last, DEEP):
                _add_columns(operands, i, min(i + DEEP, last), j, n, sums, some)
            _move(sums, totals)
        for k in range(n):
            for m in range(part.shape[1]):
                part[j + k, m] = totals[k * width + m]


def dense_product(X, B, scale):
    """`X @ B * scale` in C order and in the type of B, in the same pieces for any number of threads."""
    if X.shape[1] != len(B):
        raise ValueError(f"a product of {X.shape[0]} x {X.shape[1]} and {len(B)} x {B.shape[1]} numbers")
    n_tasks, by_rows = threads.pieces(X.size * B.shape[1], threads.TILE_WORK), X.strides[1] == X.itemsize
    stored = X if by_rows else X.T
    short = stored.shape[1] < (SHORT if by_rows else SHORT // 2)
    if n_tasks == 1 or short or not suits(stored, B):
        return blas_product(X, B if scale == 1 else B * B.dtype.type(scale))
    pieces = cut(stored.shape, by_rows, min(n_tasks, MOST))
    n_rows, n_columns = (ends.size - 1 for ends in pieces)
    parts = np.empty((n_columns if by_rows else n_rows, len(X), B.shape[1]), B.dtype)
    with room_for(size_padded(B)) as room:
        wide = padded(np.ascontiguousarray(B), B.dtype.type(scale), room)
        about = np.empty(0, X.dtype), len(stored), stored.strides[0] // X.itemsize
        operands = Operands(X.ctypes.data, *about, wide.ravel(), wide.shape[1])
        over(_by_rows if by_rows else _by_columns, range(n_rows * n_columns + 1), operands, pieces, parts)
    return parts[0] if len(parts) == 1 else parts.sum(axis=0)


def suits(stored, B):
    """Whether the kernels take this X, whose rows are to lie in one piece each."""
    whole = stored.strides[1] == stored.itemsize and stored.strides[0] > 0 and stored.strides[0] % stored.itemsize == 0
    return WAY == "llvm" and whole and len(stored) >= HIGHEST and stored.dtype in (np.float32, B.dtype)


def cut(shape, by_rows, n_tasks):
    """Pieces of rows and columns of X for about so many tasks. Of those whose results are added up there are few, or
    they are long; columns are read in long stretches, where there are enough rows to share out."""
    n_rows, n_columns = shape
    if by_rows:
        count = fewer(n_tasks, n_rows // LEAST_ROWS)
        return Pieces(ends(n_rows, count), ends(n_columns, n_tasks // count))
    wide = fewer(n_tasks, -(-n_columns // STRETCH))
    count = max(1, min(n_tasks // wide, n_rows // MANY_ROWS))
    return Pieces(ends(n_rows, count), ends(n_columns, max(wide, fewer(n_tasks // count, n_columns // LEAST_COLUMNS))))


def fewer(n_tasks, most):
    """The largest power of two that is neither above."""
    return 1 << (max(1, min(n_tasks, most)).bit_length() - 1)


def ends(n, count):
    return np.array(threads.in_chunks(n, count), np.int64)


def blas_product(X, B):
    """`X @ B` by BLAS: pieces of rows, or, where there are too few of them, of columns."""
    rows, columns = X.shape
    # every piece of rows packs B anew, which takes as long as many rows
    most = 2 * -(-rows // (2 * PIECE))
    if columns > WIDE * rows and most < threads.pieces(X.size * B.shape[1], threads.BLAS_WORK):
        work = threads.split_evenly(columns, rows * B.shape[1], threads.BLAS_WORK, MOST)
        return np.ascontiguousarray(threads.added(threads.map_chunks(lambda i, j: multiply(X[:, i:j], B[i:j]), work)))
    out = np.empty((rows, B.shape[1]), B.dtype)
    work = threads.split_evenly(rows, columns * B.shape[1], threads.BLAS_WORK, most)
    threads.map_chunks(lambda i, j: multiply(X[i:j], B, out[i:j]), work)
    return out


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
