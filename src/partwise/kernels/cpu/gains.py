"""How far entries are from their best values: what stationarity is made of."""

import numpy as np

from .. import threads
from .base import best_for, compiled, gain


@compiled
def _gain_columns(A, G, d, l1, lower, upper, start, stop):
    lower_step, upper_step, d_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1), min(d.shape[0] - 1, 1)
    sums = np.zeros(A.shape[1])
    for i in range(start, stop):
        low, high, second = lower[i * lower_step], upper[i * upper_step], d[i * d_step]
        for k in range(sums.size):
            a, g = np.float64(A[i, k]), np.float64(G[i, k])  # squares of float32 may underflow
            q = np.float64(second[k])
            x = best_for(a, g, q, l1, low[k], high[k])
            sums[k] += max(gain(a, x, g, q, l1), 0)
    return sums


def gain_columns(A, G, d, box):
    """By how much the objective falls if each entry of a column goes to its best value, the others held: (rank,),
    with `d` the second derivatives, (dim, rank) or one row for all."""
    boundaries = threads.even(*A.shape, threads.LIGHT_WORK)
    return np.sum(threads.run(lambda i, j: _gain_columns(A, G, d, *box, i, j), boundaries), axis=0)


@compiled
def _gain_rows(A, G, d, l1, lower, upper, out, start, stop):
    lower_step, upper_step, d_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1), min(d.shape[0] - 1, 1)
    for i in range(start, stop):
        low, high, second = lower[i * lower_step], upper[i * upper_step], d[i * d_step]
        out[i] = 0
        for k in range(A.shape[1]):
            a, g = np.float64(A[i, k]), np.float64(G[i, k])
            q = np.float64(second[k])
            x = best_for(a, g, q, l1, low[k], high[k])
            out[i] = max(out[i], gain(a, x, g, q, l1))


def gain_rows(A, G, d, box):
    """The largest such gain of one entry in each row, (dim,)."""
    out = np.empty(A.shape[0])
    threads.run(lambda i, j: _gain_rows(A, G, d, *box, out, i, j), threads.even(*A.shape, threads.LIGHT_WORK))
    return out
