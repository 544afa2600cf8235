"""A step beyond the last one."""

import numpy as np

from .. import threads
from .team import mapped, over

FOLD = 32  # rows at a time: loops over the few entries of one are not worth vectors


@mapped
def _extrapolate(new, old, beta, bounds, step, rank, out, number, start, stop):
    lower, upper = bounds
    for i in range(start, stop, FOLD):
        first, last = i * rank, min(i + FOLD, stop) * rank
        at = step * first
        here, before, there = new[first:last], old[first:last], out[first:last]
        low, high = lower[at : at + here.size], upper[at : at + here.size]
        for p in range(here.size):
            there[p] = min(max(here[p] + beta * (here[p] - before[p]), low[p]), high[p])


def extrapolate(new, old, beta, box):
    """`clip(new + beta (new - old), lower, upper)`."""
    _, lower, upper = box
    alike, (dim, rank), out = lower.shape[0] == upper.shape[0] == 1, new.shape, np.empty(new.shape, new.dtype)
    count = min(FOLD, dim) if alike else dim
    bounds = tuple((b if b.shape[0] == count else b.repeat(count, axis=0)).ravel() for b in (lower, upper))
    flat, boundaries = (A.ravel() for A in (new, old)), threads.split_evenly(dim, rank, threads.LIGHT_WORK)
    over(_extrapolate, boundaries, *flat, new.dtype.type(beta), bounds, int(not alike), rank, out.ravel())
    return out
