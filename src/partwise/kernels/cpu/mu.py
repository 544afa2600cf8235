"""Multiplicative updates."""

from .. import threads
from .base import compiled, result_for


@compiled
def _mu(A, product, cross, l1, lower, upper, rows, out, start, stop):
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for t in range(start, stop):
        i = rows[t]
        for k in range(A.shape[1]):
            denominator = product[i, k] + l1
            x = A[i, k] * cross[i, k] / denominator if denominator > 0 else A[i, k]
            out[i, k] = min(max(x, lower[i * lower_step, k]), upper[i * upper_step, k])


def mu(A, product, cross, box, rows):
    """One multiplicative update of each row (Lee and Seung 2001); `product` is `A @ gram`."""
    out = result_for(A, rows)
    boundaries = threads.even(rows.size, A.shape[1], threads.LIGHT_WORK)
    threads.run(lambda i, j: _mu(A, product, cross, *box, rows, out, i, j), boundaries)
    return out
