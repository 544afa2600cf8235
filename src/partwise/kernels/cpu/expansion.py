"""A beta-divergence or the Huber loss around a point: its slope and curvature in one factor, and its value."""

from functools import partial
from typing import NamedTuple

import numpy as np

from .. import threads
from ..records import CURVATURE
from .base import aligned, compiled
from .divergences import divergence, split
from .panels import counts_by_itself, panel_of, tasks
from .rows import (
    base_of,
    excess,
    is_weighted,
    linear_term,
    linear_terms,
    longest,
    loss_of,
    no_parts,
    read_row,
    room_for,
    sums_of,
    take_parts,
    unreached,
    weigh,
)
from .simd import FLOOR
from .team import mapped, over, per_task

IN_CACHE = 1 << 19  # numbers in the arrays that are made of a block of X
ENTRY = 20  # multiplications that take as long as the loss of an entry and its derivatives, of one product
NARROW = 12  # parts up to which row by row, by vectors, is faster than by BLAS


class Expansion(NamedTuple):
    """Results of `expansion`, or of `losses`; empty: not wanted."""

    minus: np.ndarray
    plus: np.ndarray
    curvature: np.ndarray
    losses: np.ndarray  # by row

    @classmethod
    def room(cls, A, wanted):
        curvature, losses = A.shape if wanted.curvature else (0, 0), len(A) if wanted.losses else 0
        return cls(np.empty_like(A), np.empty_like(A), np.empty(curvature, A.dtype), np.empty(losses))


@mapped
def _expand(X, A, panel, squares, loss, out, unreachable, number, start, stop):
    """Where losses are wanted, finds how many positive entries have a model of 0."""
    rank, base, apart, missed = A.shape[1], A.dtype.type(base_of(X)), loss.beta == 1 and is_weighted(X), 0
    panel, row, length = room_for(X, panel, rank, longest(X, start, stop))
    sums, w, used = aligned(panel.width, A.dtype), aligned(rank, A.dtype), no_parts(rank, A.dtype)
    a, b, q, x, y = aligned(length, A.dtype), aligned(length, A.dtype), aligned(length, A.dtype), row.x, row.y
    minus, plus, curvature, losses = out.minus, out.plus, out.curvature, out.losses
    for i in range(start, stop):
        n, length = read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        if losses.size:
            losses[i] = loss_of(row, loss, base_of(X))
            missed += unreached(row)
        if minus.size == 0:
            continue
        split(x, y, n, length, loss, a, b, q)
        weigh(row, a)
        weigh(row, b)
        weigh(row, q)
        if apart:
            excess(row, base, b)
        sums_of(a, row, panel, sums)
        for k in range(rank):
            minus[i, k] = sums[k]
        if loss.beta != 1 or apart:
            sums_of(b, row, panel, sums)
            for k in range(rank):
                plus[i, k] = sums[k] + (base * plus[i, k] if apart else 0)
        if curvature.size:
            sums_of(q, row, squares, sums)
            for k in range(rank):
                curvature[i, k] = sums[k]
    unreachable[number] = missed


@compiled
def _split_rows(x, scale, y, loss, a, b, q, losses):
    """Of a block of entries, row by row, as far as there is room; of what has room for one row only the last row is
    kept. Where losses are wanted, returns how many positive entries have a model of 0."""
    height, width = y.shape
    scaled, missed = aligned(width, y.dtype), 0
    for i in range(height):
        for j in range(width):
            scaled[j] = x[i * width + j] * scale
        if losses.size:
            losses[i] = divergence(scaled, y[i], width, loss)
            for j in range(width):
                missed += y[i, j] <= FLOOR * scaled[j] and scaled[j] > 0
        if a.size:
            split(scaled, y[i], width, width, loss, a[i], b[i % len(b)], q[i % len(q)])
    return missed


def in_blocks(X, rank):
    """Whether rows of X are worked on in blocks, with products by BLAS: all entries are listed and count alike, and
    products take longer than to call BLAS for them, and to hand on Python's lock."""
    return X.full and not X.weights.size and rank > NARROW


def block_tasks(A, B):
    """Boundaries of tasks with enough rows each for products to be efficient; of an even number of them, since of two
    threads one would wait for the last."""
    count = threads.pieces(len(A) * len(B) * (A.shape[1] + ENTRY), threads.BLAS_WORK)
    return threads.in_chunks(len(A), count + count % 2 if count > 1 else 1)


def blocks_of(X, width, start, stop, count):
    """Rows `start` to `stop` of X, all of whose entries are listed, a few at a time, so that what is made of them stays
    in the cache: the rows, their entries, and `count` arrays for as many numbers, the same ones for all blocks, since
    memory that is new takes longer to get than to fill."""
    pieces = -(-(stop - start) * count * width // IN_CACHE)
    height = max(1, -(-(stop - start) // max(pieces, 1)))
    room = np.empty((count, min(height, stop - start), width), X.scale.dtype)
    for first in range(start, stop, height):
        rows = slice(first, min(first + height, stop))
        yield rows, X.values[rows.start * width : rows.stop * width], room[:, : rows.stop - first]


def expand_blocks(X, A, B, squares, loss, out, start, stop):
    """`_expand` for data `in_blocks`."""
    width, plus, curved = len(B), loss.beta != 1, out.curvature.size > 0
    unused = np.empty((2, width), A.dtype)  # two: loops look whether arrays are apart, and are slow where they are not
    for rows, x, (y, a, *more) in blocks_of(X, width, start, stop, 2 + plus + curved):
        b, q = more.pop(0) if plus else unused[:1], more.pop(0) if curved else unused[1:]
        np.matmul(A[rows], B.T, out=y)
        _split_rows(x, X.scale, y, loss, a, b, q, out.losses[rows])
        np.matmul(a, B, out=out.minus[rows])
        if plus:
            np.matmul(b, B, out=out.plus[rows])
        if curved:
            with np.errstate(over="ignore"):  # where the model is near 0 under entries of X
                np.matmul(q, squares, out=out.curvature[rows])
            np.minimum(out.curvature[rows], np.finfo(A.dtype).max, out=out.curvature[rows])


def expansion(X, A, others, loss, wanted=CURVATURE):
    """`minus` and `plus`, both (dim, rank) and >= 0, whose difference `plus - minus` is the gradient of the loss in A;
    and as far as they are wanted its second derivatives entry by entry, of the convex part, (dim, rank), and the loss
    of each row, in double precision."""
    out, B, whole = Expansion.room(A, wanted), others.B, counts_by_itself(X, loss.beta)
    if loss.beta == 1:
        out.plus[:] = others.sums()
    if in_blocks(X, A.shape[1]):
        squares = B * B if wanted.curvature else B
        threads.map_chunks(partial(expand_blocks, X, A, B, squares, loss, out), block_tasks(A, B))
    else:
        panel = panel_of(X, B, whole)
        squares = panel._replace(B=panel.B * panel.B, H=panel.H * panel.H)
        boundaries = tasks(X, B, whole, np.arange(A.shape[0]), 4 * A.shape[1])
        over(_expand, boundaries, X, A, panel, squares, loss, out, per_task(boundaries))
    if wanted.losses and loss.beta == 1:
        out.losses[:] += linear_terms(X, A, others)
    given = (True, True, *wanted)
    return tuple(array for array, is_wanted in zip(out, given, strict=True) if is_wanted), ()


def block_losses(X, A, B, loss, out, start, stop):
    """The losses of rows of data `in_blocks`; returns how many positive entries have a model of 0."""
    missed, none = 0, np.empty((0, len(B)), A.dtype)
    for rows, x, (y,) in blocks_of(X, len(B), start, stop, 1):
        np.matmul(A[rows], B.T, out=y)
        missed += _split_rows(x, X.scale, y, loss, none, none, none, out[rows])
    return missed


def losses(X, A, others, loss):
    """The loss of each row, in double precision; their sum, and how many positive entries of X have a model of 0."""
    B, whole, out = others.B, counts_by_itself(X, loss.beta), np.empty(len(A))
    if in_blocks(X, A.shape[1]):
        missed = sum(threads.map_chunks(partial(block_losses, X, A, B, loss, out), block_tasks(A, B)))
    else:
        none, panel = np.empty((0, 0), A.dtype), panel_of(X, B, whole)
        boundaries = tasks(X, B, whole, np.arange(A.shape[0]), A.shape[1])
        unreachable = per_task(boundaries)
        over(_expand, boundaries, X, A, panel, panel, loss, Expansion(none, none, none, out), unreachable)
        missed = int(sum(unreachable))
    total = float(out.sum())
    if loss.beta == 1:
        total += linear_term(X, A, others)
        out += linear_terms(X, A, others)
    return (out,), (total, missed)
