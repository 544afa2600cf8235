"""A step beyond the last one."""

import numpy as np

from .. import threads
from .base import compiled


@compiled
def _extrapolate(new, old, beta, lower, upper, out, start, stop):
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for i in range(start, stop):
        for k in range(new.shape[1]):
            x = new[i, k] + beta * (new[i, k] - old[i, k])
            out[i, k] = min(max(x, lower[i * lower_step, k]), upper[i * upper_step, k])


def extrapolate(new, old, beta, box):
    """`clip(new + beta (new - old), lower, upper)`."""
    _, lower, upper = box
    out = np.empty_like(new)
    beta = new.dtype.type(beta)
    threads.run(
        lambda i, j: _extrapolate(new, old, beta, lower, upper, out, i, j), threads.even(*new.shape, threads.LIGHT_WORK)
    )
    return out
