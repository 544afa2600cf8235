"""Rows of a factor whose second derivatives are sums over blocks of X: `hessians` and `row_grams` make the terms, and
`given_grams` solves for the rows once all are added up, where `newton` and `own_grams` do both in a row at a time.

Of a symmetric matrix the lower triangle is kept, packed, row after row: rank (rank + 1) / 2 numbers.
"""

from functools import partial
from itertools import pairwise

import numpy as np

from .. import threads
from ..records import EntryLoss
from .base import INT, aligned, best_for, bounds_of, gain, helper, update_of
from .divergences import split
from .expansion import IN_CACHE, _split_rows, in_blocks
from .newton import Tiles, _curvatures
from .own_grams import NOTHING
from .panels import counts_by_itself, panel_of, tasks
from .rows import gather_panel, longest_of, no_parts, read_row, room_for, take_parts, weigh
from .simd import TILE
from .team import mapped, over

NONE = np.empty(0)  # no losses are wanted


@helper
def _every_part(w, row, panel, used):
    """List all components, those of weight 0 too; the model is not computed."""
    for k in range(w.size):
        used.parts[k], used.places[k], used.c[k] = k, k * panel.stride, w[k]
    used.number[0] = w.size
    if not panel.whole:
        gather_panel(row, panel, used, 0)


@mapped
def _hessians(X, A, panel, loss, rows, out, number, start, stop):
    rank = A.shape[1]
    panel, row, length = room_for(X, panel, rank, longest_of(X, rows, start, stop))
    tiles = Tiles(aligned(TILE * panel.stride, A.dtype), aligned(TILE * TILE, A.dtype), aligned(np.int64(TILE), INT))
    w, used, Q = aligned(rank, A.dtype), no_parts(rank, A.dtype), np.empty((rank, rank), A.dtype)
    minus, plus, second = aligned(length, A.dtype), aligned(length, A.dtype), aligned(length, A.dtype)
    for t in range(start, stop):
        i = rows[t]
        n, length = read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        if n == 0:
            out[t] = 0
            continue
        take_parts(w, row, panel, used)
        split(row.x, row.y, n, length, loss, minus, plus, second)
        weigh(row, second)
        _every_part(w, row, panel, used)
        _curvatures(second, row, panel, used, tiles, Q)
        place = 0
        for k in range(rank):
            for m in range(k + 1):
                out[t, place] = Q[k, m]
                place += 1


def block_hessians(X, A, B, loss, rows, out, start, stop):
    """`_hessians` for data `in_blocks`, by BLAS: products of as much of B as stays in the cache."""
    (width, rank), slices = B.shape, threads.in_chunks(len(B), -(-B.size // IN_CACHE))
    lower, (first, other, second) = np.tril_indices(rank), (np.empty((1, width), A.dtype) for _ in range(3))
    for t in range(start, stop):
        i, total = rows[t], np.zeros((rank, rank), A.dtype)
        x, y = X.values[i * width : (i + 1) * width], A[i : i + 1] @ B.T
        _split_rows(x, X.scale, y, loss, first, other, second, NONE)
        roots = np.sqrt(second[0])[:, None]
        for low, high in pairwise(slices):
            weighted = B[low:high] * roots[low:high]
            total += weighted.T @ weighted
        out[t] = total[lower]


def hessians(X, A, others, loss, rows=None):
    """`sum_j d''(x_j, y_j) h_j h_j'` of each row, or of some, by its weights and of the convex part, packed."""
    B, rank, whole = others.B, A.shape[1], counts_by_itself(X, loss.beta)
    chosen = np.arange(len(A)) if rows is None else rows
    boundaries = tasks(X, B, whole, chosen, rank * (rank + 16) // 4)
    out = np.empty((chosen.size, rank * (rank + 1) // 2), A.dtype)
    if rows is not None and in_blocks(X, rank):  # a few rows are not worth compiling a kernel
        with np.errstate(over="ignore", invalid="ignore"):  # where the model is near 0 under entries of X
            threads.map_chunks(partial(block_hessians, X, A, B, loss, chosen, out), boundaries)
    else:
        over(_hessians, boundaries, X, A, panel_of(X, B, whole), loss, chosen, out)
    return (out,), ()


def row_grams(X, A, others):
    """`sum_j e_j h_j h_j'` of each row, packed, for X that lists numbers e and nothing else counts."""
    weights = X.values.astype(A.dtype, copy=False)
    return hessians(X._replace(weights=weights, unlisted=0.0), A, others, EntryLoss(2.0))


@helper
def _unpack(gram, packed, Q):
    """`Q = gram + packed`; where nothing of a row counts, rounding leaves no less than nothing on the diagonal."""
    place = 0
    for k in range(len(gram)):
        for m in range(k + 1):
            Q[k, m] = Q[m, k] = packed[place] + gram[k, m]
            place += 1
        Q[k, k] = max(Q[k, k], NOTHING * np.finfo(gram.dtype).eps * gram[k, k])


@helper
def _slope_at(Q, cross, w, g):
    """`g = Q w - cross`."""
    for k in range(w.size):
        g[k] = -cross[k]
    for k in range(w.size):
        line = Q[k]
        for m in range(w.size):
            g[m] += w[k] * line[m]


@helper
def _sweep(Q, g, w, l1, low, high):
    """Every weight once to its best value; returns what that gains."""
    gained = 0.0
    for k in range(w.size):
        x = w.dtype.type(best_for(w[k], g[k], Q[k, k], l1, low[k], high[k]))
        s = x - w[k]
        if s != 0:
            gained += np.float64(gain(w[k], x, g[k], Q[k, k], l1))
            w[k] = x
            line = Q[k]
            for m in range(w.size):
                g[m] += s * line[m]
    return gained


@mapped
def _given_grams(update, packed, gram, cross, sweeps, eps, number, start, stop):
    A, rank, l1 = update.A, update.A.shape[1], update.box.l1
    Q, g = np.empty((rank, rank), A.dtype), aligned(rank, A.dtype)
    for t in range(start, stop):
        i, first = update.rows[t], 0.0
        low, high = bounds_of(update.box, i)
        w = update.out[i]
        for k in range(rank):
            w[k] = A[i, k]
        _unpack(gram, packed[i], Q)
        _slope_at(Q, cross[i], w, g)
        for sweep in range(sweeps):
            gained = _sweep(Q, g, w, l1, low, high)
            first = gained if sweep == 0 else first
            if gained <= eps * first:
                break


def given_grams(A, packed, gram, cross, box, inner, rows):
    """Cyclic coordinate descent on each row, whose Gram matrix is `gram` and its own, packed: `inner = (sweeps, eps)`,
    at most so many, fewer once one gains at most `eps` of the first."""
    (sweeps, eps), update, rank = inner, update_of(A, box, rows), A.shape[1]
    eps = A.dtype.type(eps)
    boundaries = threads.split_evenly(rows.size, rank**2 * min(sweeps, 8))
    over(_given_grams, boundaries, update, packed, gram, cross, sweeps, eps)
    return update.out


@mapped
def _given_slopes(A, packed, gram, cross, slope, curvature, number, start, stop):
    rank = A.shape[1]
    Q = np.empty((rank, rank), A.dtype)
    for i in range(start, stop):
        _unpack(gram, packed[i], Q)
        _slope_at(Q, cross[i], A[i], slope[i])
        for k in range(rank):
            curvature[i, k] = Q[k, k]


def given_slopes(A, packed, gram, cross):
    """The gradient at A, and second derivatives entry by entry, both (dim, rank)."""
    slope, curvature = np.empty_like(A), np.empty_like(A)
    over(_given_slopes, threads.split_evenly(len(A), A.shape[1] ** 2), A, packed, gram, cross, slope, curvature)
    return slope, curvature
