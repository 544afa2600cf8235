"""A beta-divergence around a point: its slope and curvature in one factor, and its value."""

import numpy as np

from .. import threads
from .base import aligned, compiled
from .products import padded
from .rows import FLOOR, TINIEST, divergence, read_row, room_for, sums_of, take_parts, unreached


@compiled
def _split(x, y, n, length, beta, minus, plus, second):
    """`d' = plus - minus`, both >= 0, and `d''` of the convex part; for KL plus is left to the sums of the factor."""
    floor, tiny = x.dtype.type(FLOOR), x.dtype.type(TINIEST)
    for j in range(n, length):
        minus[j] = plus[j] = second[j] = 0
    if beta == 1:
        for j in range(n):
            inverse = 1 / max(y[j], floor * x[j] + tiny)
            minus[j] = x[j] * inverse
            second[j] = minus[j] * inverse
    elif beta == 0:
        for j in range(n):
            inverse = 1 / max(y[j], floor * x[j] + tiny)
            plus[j] = inverse
            minus[j] = x[j] * inverse * inverse
            second[j] = 2 * minus[j] * inverse
    else:
        convex, own = max(beta - 1, 0.0), max(2 - beta, 0.0)
        for j in range(n):
            b = np.float64(max(y[j], floor * x[j] + tiny))
            power = b ** (beta - 2)
            plus[j] = power * b
            minus[j] = power * x[j]
            second[j] = power * (convex + own * x[j] / b)


@compiled
def _expand(indptr, indices, values, scale, A, B, squares, beta, rows, minus, plus, curvature, start, stop):
    rank = A.shape[1]
    H, stride, whole, length = room_for(indptr, indices, A, B, beta, rows, start, stop)
    H2 = H * H if whole else H
    x, y, a, b, q = aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A)
    w, c, sums = np.empty(rank, A.dtype), np.empty(rank, A.dtype), aligned(B.shape[1], A)
    parts, places = np.empty(rank, np.int64), np.empty(rank, np.int64)
    for i in range(start, stop):
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        _split(x, y, n, length, beta, a, b, q)
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
    wide = padded(B, kind(1))
    squares = wide * wide
    threads.run(
        lambda i, j: _expand(
            *rows_of_X, kind(scale), A, wide, squares, float(beta), rows, minus, plus, curvature, i, j
        ),
        _tasks(rows_of_X, A, B, beta, 4),
    )
    return minus, plus, curvature


@compiled
def _losses(indptr, indices, values, scale, A, B, beta, rows, start, stop):
    rank = A.shape[1]
    H, stride, whole, length = room_for(indptr, indices, A, B, beta, rows, start, stop)
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
    kind, rows, wide = A.dtype.type, np.arange(A.shape[0]), padded(B, A.dtype.type(1))
    total, missed = zip(
        *threads.run(
            lambda i, j: _losses(*rows_of_X, kind(scale), A, wide, float(beta), rows, i, j),
            _tasks(rows_of_X, A, B, beta, 1),
        )
    )
    return sum(total), sum(missed)


def _tasks(rows_of_X, A, B, beta, per_entry):
    """Boundaries of tasks with about as many products of one entry and one component."""
    lengths = np.diff(rows_of_X[0]) if beta == 1 else np.full(A.shape[0], B.shape[0])
    return threads.balanced((lengths + 16) * np.int64(per_entry * A.shape[1]))
