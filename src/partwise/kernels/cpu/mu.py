"""Multiplicative updates."""

from .. import threads
from .base import compiled, result_for


@compiled
def _mu(A, plus, minus, power, least, l1, lower, upper, rows, out, start, stop):
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for t in range(start, stop):
        i = rows[t]
        for k in range(A.shape[1]):
            denominator = plus[i, k] + l1
            ratio = minus[i, k] / denominator if denominator > 0 else A.dtype.type(1)
            if power != 1:
                ratio = A.dtype.type(ratio**power)
            x = A[i, k] * ratio
            x = x if x > least[k] else A.dtype.type(0)
            out[i, k] = min(max(x, lower[i * lower_step, k]), upper[i * upper_step, k])


def mu(A, plus, minus, power, least, box, rows):
    """`A (minus / (plus + l1))^power` (Lee and Seung 2001), within the bounds; `plus - minus` is the gradient. What is
    at most `least`, (rank,), becomes 0."""
    out = result_for(A, rows)
    boundaries = threads.even(rows.size, A.shape[1], threads.LIGHT_WORK)
    threads.run(lambda i, j: _mu(A, plus, minus, power, least, *box, rows, out, i, j), boundaries)
    return out
