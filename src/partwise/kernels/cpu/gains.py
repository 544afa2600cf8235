"""How far entries are from their best values: what stationarity is made of."""

import numpy as np

from .. import threads
from ..records import Box
from .base import DOUBLE, aligned, best, best_for, bounds_of, curvature, gain, note
from .team import mapped, over, per_task, run

BLOCK = 1 << 15  # entries of a product at a time, in memory that is used again


@mapped
def _gain_columns(A, G, d, box, gains, number, start, stop):
    sums, l1 = aligned(A.shape[1], DOUBLE), box.l1
    for i in range(start, stop):
        (low, high), second = bounds_of(box, i), d[min(i, d.shape[0] - 1)]
        for k in range(sums.size):
            a, g = np.float64(A[i, k]), np.float64(G[i, k])  # squares of float32 may underflow
            q = np.float64(second[k])
            x = best_for(a, g, q, l1, low[k], high[k])
            sums[k] += max(gain(a, x, g, q, l1), 0)
    for k in range(sums.size):
        gains[number, k] = sums[k]


def gain_columns(A, G, d, box):
    """By how much the objective falls if each entry of a column goes to its best value, the others held: (rank,),
    with `d` the second derivatives, (dim, rank) or one row for all."""
    boundaries, box = threads.split_evenly(*A.shape, threads.LIGHT_WORK), Box(*box)
    gains = per_task(boundaries, A.shape[1])
    over(_gain_columns, boundaries, A, G, d, box, gains)
    return gains.sum(axis=0)


@mapped
def _quadratic_gains(A, product, cross, gram, box, found, number, start, stop):
    rank, l1, total = A.shape[1], np.float64(box.l1), 0.0
    d, inverse, threshold = aligned(rank, DOUBLE), aligned(rank, DOUBLE), aligned(rank, DOUBLE)
    sums = aligned(rank, DOUBLE)
    curvature(gram, l1, inverse, threshold)
    for k in range(rank):
        d[k] = gram[k, k]
    for i in range(start, stop):
        low, high = bounds_of(box, i)
        for k in range(rank):
            a, g = np.float64(A[i, k]), np.float64(product[i, k]) - np.float64(cross[i, k])
            if d[k] > 0:
                x = best(a, g, inverse[k], threshold[k], low[k], high[k])
            else:
                x = best_for(a, g, d[k], l1, low[k], high[k])
            sums[k] += max(gain(a, x, g, d[k], l1), 0.0)
            total += abs(g)
    note(sums, total, found[number])


def quadratic_gains(A, gram, cross, box):
    """The same for `1/2 tr(A gram A') - tr(A' cross)`, whose gradient is never an array of its own; and the sum of its
    absolute values, which is finite only where all of these are."""
    (dim, rank), box = A.shape, Box(*box)
    step = max(BLOCK // max(rank, 1), 1)

    def task(start, stop):
        blocks = [slice(first, min(first + step, stop)) for first in range(start, stop, step)]
        found = np.empty((len(blocks), rank + 1))
        for number, rows in enumerate(blocks):
            product, height = A[rows] @ gram, rows.stop - rows.start
            run(_quadratic_gains, 0, height, A[rows], product, cross[rows], gram, box.of_rows(rows), found[number:])
        return found.sum(axis=0)

    *gains, size = threads.added(threads.map_chunks(task, threads.split_evenly(dim, rank**2, threads.BLAS_WORK)))
    return np.array(gains), size


@mapped
def _gain_rows(A, G, d, box, out, number, start, stop):
    l1 = box.l1
    for i in range(start, stop):
        (low, high), second = bounds_of(box, i), d[min(i, d.shape[0] - 1)]
        out[i] = 0
        for k in range(A.shape[1]):
            a, g = np.float64(A[i, k]), np.float64(G[i, k])
            q = np.float64(second[k])
            x = best_for(a, g, q, l1, low[k], high[k])
            out[i] = max(out[i], gain(a, x, g, q, l1))


def gain_rows(A, G, d, box):
    """The largest such gain of one entry in each row, (dim,)."""
    out, box = np.empty(A.shape[0]), Box(*box)
    over(_gain_rows, threads.split_evenly(*A.shape, threads.LIGHT_WORK), A, G, d, box, out)
    return out
