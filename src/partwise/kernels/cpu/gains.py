"""How far entries are from their best values: what stationarity is made of."""

import numpy as np

from .. import threads
from ..records import Box
from .base import DOUBLE, aligned, best_for, bounds_of, gain
from .team import mapped, over, per_task


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
