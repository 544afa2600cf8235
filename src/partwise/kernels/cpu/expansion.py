"""A beta-divergence or the Huber loss around a point: its slope and curvature in one factor, and its value."""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import aligned, compiled
from .divergences import split
from .panels import counts_by_itself, panel_of, tasks
from .rows import (
    base_of,
    excess,
    is_weighted,
    linear_term,
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


def expansion(X, A, others, loss):
    """`minus` and `plus`, both (dim, rank) and >= 0, whose difference `plus - minus` is the gradient of the loss in A,
    and its second derivatives entry by entry, of the convex part, (dim, rank)."""
    out, whole = Expansion(np.empty_like(A), np.empty_like(A), np.empty_like(A)), counts_by_itself(X, loss.beta)
    B = others.B
    if loss.beta == 1:
        out.plus[:] = others.sums()
    panel = panel_of(X, B, whole)
    squares = panel._replace(B=panel.B * panel.B, H=panel.H * panel.H)
    threads.map_chunks(
        lambda i, j: _expand(X, A, panel, squares, loss, out, i, j),
        tasks(X, B, whole, np.arange(A.shape[0]), 4 * A.shape[1]),
    )
    return tuple(out), ()


@compiled
def _losses(X, A, panel, loss, start, stop):
    rank, base = A.shape[1], base_of(X)
    panel, row, _ = room_for(X, panel, rank, longest(X, start, stop))
    w, used, total, missed = np.empty(rank, A.dtype), no_parts(rank, A), 0.0, 0
    for i in range(start, stop):
        read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        total += loss_of(row, loss, base)
        missed += unreached(row)
    return total, missed


def losses(X, A, others, loss):
    """The loss, and how many positive entries of X have a model of 0."""
    B, whole = others.B, counts_by_itself(X, loss.beta)
    panel = panel_of(X, B, whole)
    total, missed = zip(
        *threads.map_chunks(
            lambda i, j: _losses(X, A, panel, loss, i, j),
            tasks(X, B, whole, np.arange(A.shape[0]), A.shape[1]),
        ),
        strict=True,
    )
    return (), (sum(total) + (linear_term(X, A, others) if loss.beta == 1 else 0.0), sum(missed))
