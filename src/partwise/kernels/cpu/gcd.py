"""Greedy coordinate descent on each row."""

import numpy as np

from .. import threads
from .base import best, compiled, curvature, gain, result_for
from .simd import VECTOR


@compiled
def _gains(a, g, d, inverse, threshold, lo, hi, l1, target, gains):
    """Best value of each coordinate of a row and the decrease it brings; returns the largest decrease."""
    largest = a.dtype.type(0)
    for k in range(a.size):
        x = best(a[k], g[k], inverse[k], threshold[k], lo[k], hi[k])
        target[k] = x
        gains[k] = gain(a[k], x, g[k], d[k], l1)
    for k in range(a.size):
        largest = max(largest, gains[k])
    return largest


@compiled
def _gradient(a, padded, cross, g):
    g[: cross.size] = -cross
    for k in range(cross.size):
        line = padded[k]
        for j in range(g.size):
            g[j] += a[k] * line[j]


@compiled
def _gcd(A, cross, gram, l1, lower, upper, eps, largest, budget, rows, out, start, stop):
    """Returns the largest gain of an entry at the start, and the sum of the gains in each column.
    `eps * largest` ends a row, `eps` times the row's own largest gain where `largest` is 0."""
    rank, kind = A.shape[1], A.dtype
    lanes = VECTOR // A.itemsize
    width = -(-rank // lanes) * lanes  # rows are padded to whole vectors
    d, inverse, threshold = np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind)
    d[:rank] = np.diag(gram)
    inverse[:rank], threshold[:rank] = curvature(d[:rank], l1)
    padded = np.zeros((rank, width), kind)
    padded[:, :rank] = gram
    a, g, lo, hi = np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind)
    target, gains = np.zeros(width, kind), np.zeros(width, kind)
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    top, sums = kind.type(0), np.zeros(rank)
    for t in range(start, stop):
        i = rows[t]
        a[:rank] = A[i]
        _gradient(a, padded, cross[i], g)
        lo[:rank], hi[:rank] = lower[i * lower_step], upper[i * upper_step]
        largest_here = _gains(a, g, d, inverse, threshold, lo, hi, l1, target, gains)
        top = max(top, largest_here)
        sums += gains[:rank]
        limit = eps * largest if largest > 0 else eps * largest_here
        for _ in range(budget):
            if largest_here <= limit:
                break
            k = 0
            while k < rank - 1 and gains[k] != largest_here:
                k += 1
            s = target[k] - a[k]
            a[k] = target[k]
            line = padded[k]
            for j in range(width):
                g[j] += s * line[j]
            largest_here = _gains(a, g, d, inverse, threshold, lo, hi, l1, target, gains)
        out[i] = a[:rank]
    return top, sums


def gcd(A, cross, gram, box, rows, inner, shared):
    """Greedy coordinate descent on each row (Hsieh and Dhillon 2011): `inner = (updates, eps)`, take the best
    coordinate at most `updates` times, until it gains at most `eps` times the largest gain at the start, over
    all rows (`shared`) or of the row itself. Also returns `gain_columns` at the start."""
    l1, lower, upper = box
    updates, eps = inner
    kind, out = A.dtype.type, result_for(A, rows)
    boundaries = threads.even(rows.size, A.shape[1] ** 2)

    def sweep(largest, budget):
        tops, sums = zip(
            *threads.run(
                lambda i, j: _gcd(A, cross, gram, l1, lower, upper, kind(eps), largest, budget, rows, out, i, j),
                boundaries,
            )
        )
        return kind(max(tops)), np.sum(sums, axis=0)

    if not shared:
        return out, sweep(kind(0), updates)[1]
    largest, gains = sweep(kind(0), 0)
    if largest > 0:
        sweep(largest, updates)
    return out, gains
