"""Multiplicative updates."""

import numpy as np

from .. import threads
from .base import bounds_of, update_of
from .divergences import exponential, logarithm
from .team import mapped, over


@mapped
def _mu(update, plus, minus, power, least, number, start, stop):
    A, out, l1 = update.A, update.out, update.box.l1
    for t in range(start, stop):
        i = update.rows[t]
        low, high = bounds_of(update.box, i)
        for k in range(A.shape[1]):
            denominator = plus[i, k] + l1
            ratio = minus[i, k] / denominator if denominator > 0 else A.dtype.type(1)
            if power == 0.5:
                ratio = np.sqrt(ratio)
            elif power != 1:
                root, _ = exponential(power * logarithm(np.float64(ratio)))
                ratio = A.dtype.type(root) if ratio > 0 else ratio
            x = A[i, k] * ratio
            x = x if x > least[k] else A.dtype.type(0)
            out[i, k] = min(max(x, low[k]), high[k])


def mu(A, plus, minus, power, least, box, rows):
    """`A (minus / (plus + l1))^power` (Lee and Seung 2001), within the bounds; `plus - minus` is the gradient. What is
    at most `least`, (rank,), becomes 0."""
    update = update_of(A, box, rows)
    boundaries = threads.split_evenly(rows.size, A.shape[1], threads.LIGHT_WORK)
    over(_mu, boundaries, update, plus, minus, power, least)
    return update.out
