"""Cyclic coordinate descent on many rows at once.

Every row of a factor is a small quadratic problem with the same gram, so a vector register holds the same coordinate
of several rows (lanes), and a sweep over the components moves all of them in step, two at a time: the slopes of both
come from one reading of the lanes, and the second is put right for what the first one moves. A lane whose row has had
enough is given the next row at once: rows may need very different numbers of sweeps.
"""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from .. import threads
from .base import DOUBLE, aligned, best, curvature, helper, update_of
from .simd import VECTOR, VECTORS, panel
from .team import mapped, over, per_task

# The three functions below differ by type: bounds that are the same for all rows are not copied into lanes, where they
# would take half of the first-level cache and 20% of the speed.


def lane_bounds(bound, lanes):
    """Bounds of the rows in the lanes: (rank, lanes), or as they are, (rank,), where all rows have the same."""


@overload(lane_bounds)
def _(bound, lanes):
    if bound.ndim == 1:
        return lambda bound, lanes: bound
    return lambda bound, lanes: np.zeros((bound.shape[1], lanes), bound.dtype)


def load_bound(lane, bound, b, i):
    """Row i into lane b."""


@overload(load_bound)
def _(lane, bound, b, i):
    if bound.ndim == 1:
        return lambda lane, bound, b, i: None

    def load(lane, bound, b, i):
        for k in range(bound.shape[1]):
            lane[k, b] = bound[i, k]

    return load


def entry(bound, b):
    """The bound in lane b: one for all, or an array of them."""


@overload(entry)
def _(bound, b):
    return (lambda bound, b: bound[b]) if hasattr(bound, "ndim") else (lambda bound, b: bound)


class Lanes(NamedTuple):
    """Of each lane: the slopes in two coordinates, how far the sweep moved it, how far its first one did, whether this
    is its first."""

    g: np.ndarray
    moved: np.ndarray
    first: np.ndarray
    fresh: np.ndarray


@helper
def _pair(one, other, bounds, curves, between, lanes):
    """Two coordinates of every lane to their best values, first one, then the other; `between`: their entry of gram.
    Adds `d step^2` to `moved`; returns its sums over fresh lanes."""
    (low, high), (other_low, other_high) = bounds
    (d, inverse, threshold), (other_d, other_inverse, other_threshold) = curves
    g, other_g, moved, fresh = lanes.g[: one.size], lanes.g[one.size :], lanes.moved, lanes.fresh
    total, other_total = one.dtype.type(0), one.dtype.type(0)
    for b in range(one.size):
        x = best(one[b], g[b], inverse, threshold, entry(low, b), entry(high, b))
        step = x - one[b]
        one[b] = x
        slope = other_g[b] + between * step
        x = best(other[b], slope, other_inverse, other_threshold, entry(other_low, b), entry(other_high, b))
        other_step = x - other[b]
        other[b] = x
        change, other_change = d * step * step, other_d * other_step * other_step
        moved[b] += change + other_change
        total += fresh[b] * change
        other_total += fresh[b] * other_change
    return total, other_total


@mapped
def _hals(update, cross, gram, order, sweeps, eps, found, number, start, stop):
    A, rank, lower, upper = update.A, update.A.shape[1], update.box.lower, update.box.upper
    last = order.size - 1
    lanes = VECTORS * VECTOR // A.itemsize
    # one component more, where nothing acts: the last one's partner, where their number is odd
    d, inverse, threshold = aligned(rank + 1, A.dtype), aligned(rank + 1, A.dtype), aligned(rank + 1, A.dtype)
    for k in range(rank):
        d[k] = gram[k, k]
    curvature(gram, update.box.l1, inverse, threshold)
    lo, hi = lane_bounds(lower, lanes), lane_bounds(upper, lanes)
    a, minus_cross = aligned((rank + 1) * lanes, A.dtype), aligned(rank * lanes, A.dtype)  # a component after the other
    every = Lanes(
        aligned(2 * lanes, A.dtype), aligned(lanes, A.dtype), aligned(lanes, A.dtype), aligned(lanes, A.dtype)
    )
    g, moved, first, fresh = every
    row, age = np.full(lanes, -1), np.full(lanes, sweeps)
    changes = aligned(rank, DOUBLE)
    upcoming, busy = start, 0
    while True:
        for b in range(lanes):  # rows that are done leave, others take their place
            if age[b] < sweeps and moved[b] > eps * first[b]:
                continue
            if row[b] >= 0:
                busy -= 1
                done = update.out[row[b]]
                for k in range(rank):
                    done[k] = a[k * lanes + b]
                row[b] = -1
            if upcoming < stop:
                i = row[b] = update.rows[upcoming]
                upcoming += 1
                busy += 1
                age[b] = 0
                fresh[b] = 1
                present, target = A[i], cross[i]
                for k in range(rank):  # two loops: together they are slower
                    a[k * lanes + b] = present[k]
                for k in range(rank):
                    minus_cross[k * lanes + b] = -target[k]
                load_bound(lo, lower, b, i)
                load_bound(hi, upper, b, i)
        if busy == 0:
            break
        moved[:] = 0
        for p in range(0, order.size, 2):
            k, m = order[p], order[min(p + 1, last)]
            place = m if p < last else rank
            panel(gram, k, m, a, rank, minus_cross, g)
            one, other = a[k * lanes : (k + 1) * lanes], a[place * lanes : (place + 1) * lanes]
            bounds = (lo[k], hi[k]), (lo[m], hi[m])
            curves = (d[k], inverse[k], threshold[k]), (d[place], inverse[place], threshold[place])
            change, other_change = _pair(one, other, bounds, curves, gram[k, m], every)
            changes[k] += change
            changes[m] += other_change
        for b in range(lanes):
            if age[b] == 0:
                first[b] = moved[b]
                fresh[b] = 0
            age[b] += 1
    for k in range(rank):
        found[number, k] = changes[k]


def hals(A, cross, gram, box, order, inner, rows):
    """Cyclic coordinate descent on each row: `inner = (sweeps, eps)`, at most `sweeps` over the components in
    `order`, fewer once a sweep moves the row by at most `eps` of what its first one did, in `sum_k d_k step_k^2` with
    the second derivatives d = diag(gram) (Gillis and Glineur 2012, Neural Computation 24(4), have `|step|` of the whole
    factor there).

    Also returns half of that sum over the first sweeps, component by component: an estimate of `gain_columns`.
    """
    l1, lower, upper = box
    sweeps, eps = inner
    eps, update = A.dtype.type(eps), update_of(A, (l1, *alike(lower, upper, A.shape)), rows)
    boundaries = lane_tasks(A, rows.size, sweeps)
    changes = per_task(boundaries, A.shape[1])
    over(_hals, boundaries, update, cross, gram, order, sweeps, eps, changes)
    return update.out, changes.sum(axis=0) / 2


def alike(lower, upper, shape):
    """Bounds in one form: (rank,) where all rows have the same, else (dim, rank)."""
    if lower.shape[0] == upper.shape[0] == 1:
        return lower[0], upper[0]
    if lower.shape != upper.shape:
        return tuple(np.ascontiguousarray(np.broadcast_to(bound, shape)) for bound in (lower, upper))
    return lower, upper


def lane_tasks(A, n_rows, sweeps):
    """Boundaries of tasks with at least twice as many rows as there are lanes, which are best kept full."""
    work, lanes = A.shape[1] ** 2 * min(sweeps, 8), VECTORS * VECTOR // A.itemsize
    return threads.split_evenly(n_rows, work, max(threads.CHUNK_WORK, 2 * lanes * work))
