"""A beta-divergence or the Huber loss around a point: its slope and curvature in one factor, and its value."""

from functools import partial
from typing import NamedTuple

import numpy as np

from .. import threads
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

IN_CACHE = 1 << 15  # entries of a block of X, of which a handful of arrays are made


class Expansion(NamedTuple):
    """Results of `expansion`."""

    minus: np.ndarray
    plus: np.ndarray
    curvature: np.ndarray


@compiled
def _expand(X, A, panel, squares, loss, out, start, stop):
    rank, base, apart = A.shape[1], A.dtype.type(base_of(X)), loss.beta == 1 and is_weighted(X)
    panel, row, length = room_for(X, panel, rank, longest(X, start, stop))
    sums, w, used = aligned(panel.width, A), np.empty(rank, A.dtype), no_parts(rank, A)
    a, b, q, x, y = aligned(length, A), aligned(length, A), aligned(length, A), row.x, row.y
    minus, plus, curvature = out.minus, out.plus, out.curvature
    for i in range(start, stop):
        n, length = read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
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
        sums_of(q, row, squares, sums)
        for k in range(rank):
            curvature[i, k] = sums[k]


@compiled
def _split(x, scale, y, loss, scaled, a, b, q):
    """Of a block of entries."""
    for j in range(y.size):
        scaled[j] = x[j] * scale
    split(scaled, y, y.size, y.size, loss, a, b, q)


def blocks_of(X, width, start, stop, count):
    """Rows `start` to `stop` of X, all of whose entries are listed, a few at a time, so that what is made of them stays
    in the cache: the rows, their entries, and `count` arrays for as many numbers, the same ones for all blocks, since
    memory that is new takes longer to get than to fill."""
    height = max(1, IN_CACHE // width)
    room = np.empty((count, min(height, stop - start) * width), X.scale.dtype)
    for first in range(start, stop, height):
        rows = slice(first, min(first + height, stop))
        x = X.values[rows.start * width : rows.stop * width]
        yield rows, x, room[:, : x.size]


def expand_blocks(X, A, B, squares, loss, out, start, stop):
    """`_expand` where all entries are listed and count alike: products by BLAS."""
    width = len(B)
    for rows, x, (y, scaled, a, b, q) in blocks_of(X, width, start, stop, 5):
        np.matmul(A[rows], B.T, out=y.reshape(-1, width))
        _split(x, X.scale, y, loss, scaled, a, b, q)
        np.matmul(a.reshape(-1, width), B, out=out.minus[rows])
        if loss.beta != 1:
            np.matmul(b.reshape(-1, width), B, out=out.plus[rows])
        np.matmul(q.reshape(-1, width), squares, out=out.curvature[rows])


def expansion(X, A, others, loss):
    """`minus` and `plus`, both (dim, rank) and >= 0, whose difference `plus - minus` is the gradient of the loss in A,
    and its second derivatives entry by entry, of the convex part, (dim, rank)."""
    out, whole = Expansion(np.empty_like(A), np.empty_like(A), np.empty_like(A)), counts_by_itself(X, loss.beta)
    B = others.B
    if loss.beta == 1:
        out.plus[:] = others.sums()
    if X.full and not X.weights.size:
        work = tasks(X, B, whole, np.arange(A.shape[0]), 4 * A.shape[1])
        threads.map_chunks(partial(expand_blocks, X, A, B, B * B, loss, out), work)
        return tuple(out), ()
    panel = panel_of(X, B, whole)
    squares = panel._replace(B=panel.B * panel.B, H=panel.H * panel.H)
    threads.map_chunks(
        lambda i, j: _expand(X, A, panel, squares, loss, out, i, j),
        tasks(X, B, whole, np.arange(A.shape[0]), 4 * A.shape[1]),
    )
    return tuple(out), ()


@compiled
def _losses(X, A, panel, loss, out, start, stop):
    rank, base = A.shape[1], base_of(X)
    panel, row, _ = room_for(X, panel, rank, longest(X, start, stop))
    w, used, missed = np.empty(rank, A.dtype), no_parts(rank, A), 0
    for i in range(start, stop):
        read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        out[i] = loss_of(row, loss, base)
        missed += unreached(row)
    return missed


@compiled
def _block_losses(x, scale, y, scaled, loss, out):
    """The divergences of rows of a block, and how many positive entries of it have a model of 0."""
    width, missed = y.size // out.size, 0
    for j in range(y.size):
        scaled[j] = x[j] * scale
    for j in range(y.size):
        missed += y[j] <= FLOOR * scaled[j] and scaled[j] > 0
    for i in range(out.size):
        out[i] = divergence(scaled[i * width :], y[i * width :], width, loss)
    return missed


def block_losses(X, A, B, loss, out, start, stop):
    """`_losses` where all entries are listed and count alike: products by BLAS."""
    missed = 0
    for rows, x, (y, scaled) in blocks_of(X, len(B), start, stop, 2):
        np.matmul(A[rows], B.T, out=y.reshape(-1, len(B)))
        missed += _block_losses(x, X.scale, y, scaled, loss, out[rows])
    return missed


def losses(X, A, others, loss):
    """The loss of each row, in double precision; their sum, and how many positive entries of X have a model of 0."""
    B, whole, out = others.B, counts_by_itself(X, loss.beta), np.empty(len(A))
    if X.full and not X.weights.size:
        one = partial(block_losses, X, A, B, loss, out)
    else:
        one = partial(_losses, X, A, panel_of(X, B, whole), loss, out)
    missed = threads.map_chunks(one, tasks(X, B, whole, np.arange(A.shape[0]), A.shape[1]))
    total = float(out.sum())
    if loss.beta == 1:
        total += linear_term(X, A, others)
        out += linear_terms(X, A, others)
    return (out,), (total, sum(missed))
