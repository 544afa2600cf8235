"""A beta-divergence around a point: its slope and curvature in one factor, and its value."""

import numpy as np

from .. import threads
from .base import aligned, compiled
from .products import padded
from .rows import divergence, panel_of, read_row, room_for, split, sums_of, take_parts, tasks, unreached


@compiled
def _expand(
    indptr, indices, values, scale, A, B, squares, H, stride, H2, beta, rows, minus, plus, curvature, start, stop
):
    rank = A.shape[1]
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, y, a, b, q = aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A)
    w, c, sums = np.empty(rank, A.dtype), np.empty(rank, A.dtype), aligned(B.shape[1], A)
    parts, places = np.empty(rank, np.int64), np.empty(rank, np.int64)
    for i in range(start, stop):
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        split(x, y, n, length, beta, a, b, q)
        sums_of(a, indices, first, n, length, whole, B, H, stride, sums)
        for k in range(rank):
            minus[i, k] = sums[k]
        if beta != 1:
            sums_of(b, indices, first, n, length, whole, B, H, stride, sums)
            for k in range(rank):
                plus[i, k] = sums[k]
        sums_of(q, indices, first, n, length, whole, squares, H2, stride, sums)
        for k in range(rank):
            curvature[i, k] = sums[k]


def expansion(rows_of_X, scale, A, B, beta):
    """`minus` and `plus`, both (dim, rank) and >= 0, whose difference `plus - minus` is the gradient of the loss in A,
    and its second derivatives entry by entry, of the convex part, (dim, rank)."""
    kind, rows = A.dtype.type, np.arange(A.shape[0])
    minus, plus, curvature = np.empty_like(A), np.empty_like(A), np.empty_like(A)
    if beta == 1:
        plus[:] = B.sum(axis=0, dtype=np.float64)
    (H, stride), wide = panel_of(rows_of_X, B, beta), padded(B, kind(1))
    factor = wide, wide * wide, H, stride, H * H
    threads.run(
        lambda i, j: _expand(*rows_of_X, kind(scale), A, *factor, float(beta), rows, minus, plus, curvature, i, j),
        tasks(rows_of_X, B, beta, rows, 4 * A.shape[1]),
    )
    return minus, plus, curvature


@compiled
def _losses(indptr, indices, values, scale, A, B, H, stride, beta, rows, start, stop):
    rank = A.shape[1]
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, y, w, c = aligned(length, A), aligned(length, A), np.empty(rank, A.dtype), np.empty(rank, A.dtype)
    parts, places = np.empty(rank, np.int64), np.empty(rank, np.int64)
    loss, missed = 0.0, 0
    for i in range(start, stop):
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        loss += divergence(x, y, n, beta)
        missed += unreached(x, y, n)
    return loss, missed


def losses(rows_of_X, scale, A, B, beta):
    """The loss, for KL but for `sum Y`, and how many positive entries of X have a model of 0."""
    kind, rows = A.dtype.type, np.arange(A.shape[0])
    panel, wide = panel_of(rows_of_X, B, beta), padded(B, kind(1))
    total, missed = zip(
        *threads.run(
            lambda i, j: _losses(*rows_of_X, kind(scale), A, wide, *panel, float(beta), rows, i, j),
            tasks(rows_of_X, B, beta, rows, A.shape[1]),
        )
    )
    return sum(total), sum(missed)
