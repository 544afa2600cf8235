"""Greedy coordinate descent on each row."""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import best, bounds_of, curvature, gain, helper, note, update_of
from .simd import VECTOR
from .team import mapped, over, per_task


class Row(NamedTuple):
    """A row of the factor, its slope and bounds; the best value of each entry, and what that gains."""

    a: np.ndarray
    g: np.ndarray
    low: np.ndarray
    high: np.ndarray
    target: np.ndarray
    gains: np.ndarray


class Curves(NamedTuple):
    """Second derivatives, and what `curvature` makes of them."""

    d: np.ndarray
    inverse: np.ndarray
    threshold: np.ndarray


@helper
def _gains(row, curves, l1):
    """Best value of each coordinate of a row and the decrease it brings; returns the largest decrease."""
    a, g, lo, hi, target, gains = row
    d, inverse, threshold = curves
    largest = a.dtype.type(0)
    for k in range(a.size):
        x = best(a[k], g[k], inverse[k], threshold[k], lo[k], hi[k])
        target[k] = x
        gains[k] = gain(a[k], x, g[k], d[k], l1)
    for k in range(a.size):
        largest = max(largest, gains[k])
    return largest


@helper
def _gradient(a, padded, cross, g):
    for k in range(cross.size):
        g[k] = -cross[k]
    for k in range(cross.size):
        line = padded[k]
        for j in range(g.size):
            g[j] += a[k] * line[j]


@mapped
def _gcd(update, cross, gram, eps, largest, budget, found, number, start, stop):
    """Finds the largest gain of an entry at the start, and the sum of the gains in each column.
    `eps * largest` ends a row, `eps` times the row's own largest gain where `largest` is 0."""
    A, rank, kind, l1 = update.A, update.A.shape[1], update.A.dtype, update.box.l1
    lanes = VECTOR // A.itemsize
    width = -(-rank // lanes) * lanes  # rows are padded to whole vectors
    d, inverse, threshold = np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind)
    for k in range(rank):
        d[k] = gram[k, k]
    curvature(gram, l1, inverse, threshold)
    padded = np.zeros((rank, width), kind)
    padded[:, :rank] = gram
    a, g, lo, hi = np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind)
    target, gains = np.zeros(width, kind), np.zeros(width, kind)
    row, curves = Row(a, g, lo, hi, target, gains), Curves(d, inverse, threshold)
    top, sums = kind.type(0), np.zeros(rank)
    for t in range(start, stop):
        i = update.rows[t]
        a[:rank] = A[i]
        _gradient(a, padded, cross[i], g)
        lo[:rank], hi[:rank] = bounds_of(update.box, i)
        largest_here = _gains(row, curves, l1)
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
            largest_here = _gains(row, curves, l1)
        update.out[i] = a[:rank]
    note(sums, top, found[number])


def gcd(A, cross, gram, box, rows, inner, shared):
    """Greedy coordinate descent on each row (Hsieh and Dhillon 2011): `inner = (updates, eps)`, take the best
    coordinate at most `updates` times, until it gains at most `eps` times the largest gain at the start, over
    all rows (`shared`) or of the row itself. Also returns `gain_columns` at the start."""
    updates, eps = inner
    kind, update = A.dtype.type, update_of(A, box, rows)
    boundaries = threads.split_evenly(rows.size, A.shape[1] ** 2)

    def sweep(largest, budget):
        found = per_task(boundaries, A.shape[1] + 1)
        over(_gcd, boundaries, update, cross, gram, kind(eps), largest, budget, found)
        return kind(found[:, -1].max()), found[:, :-1].sum(axis=0)

    if not shared:
        return update.out, sweep(kind(0), updates)[1]
    largest, gains = sweep(kind(0), 0)
    if largest > 0:
        sweep(largest, updates)
    return update.out, gains
