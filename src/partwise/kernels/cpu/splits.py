"""The two copies of a factor in the method of alternating directions, in one pass over each array."""

import numpy as np

from .. import threads
from .base import compiled


@compiled
def _admm_rhs(held, dual, cross, penalty, scale, out, start, stop):
    for i in range(start, stop):
        for k in range(held.shape[1]):
            out[i, k] = penalty * held[i, k] - dual[i, k] + scale * cross[i, k]


def admm_rhs(held, dual, cross, penalty, scale):
    """`penalty U - P + scale cross`: the right-hand side for the free copy."""
    kind, out = held.dtype.type, np.empty_like(held)
    arguments = held, dual, cross, kind(penalty), kind(scale), out
    threads.map_chunks(lambda i, j: _admm_rhs(*arguments, i, j), threads.split_evenly(*held.shape, threads.LIGHT_WORK))
    return out


@compiled
def _admm_target(free, dual, inverse, out, start, stop):
    for i in range(start, stop):
        for k in range(free.shape[1]):
            out[i, k] = free[i, k] + inverse * dual[i, k]


def admm_target(free, dual, penalty):
    """`A + P / penalty`: what the held copy is to be near."""
    out = np.empty_like(free)
    inverse = free.dtype.type(1 / penalty)
    threads.map_chunks(
        lambda i, j: _admm_target(free, dual, inverse, out, i, j), threads.split_evenly(*free.shape, threads.LIGHT_WORK)
    )
    return out


@compiled
def _admm_dual(target, free, held, penalty, out, start, stop):
    gap, size = 0.0, 0.0
    for i in range(start, stop):
        for k in range(free.shape[1]):
            out[i, k] = penalty * (target[i, k] - held[i, k])
        for k in range(free.shape[1]):
            gap += np.float64(free[i, k] - held[i, k]) ** 2
            size += np.float64(held[i, k]) ** 2
    return gap, size


def admm_dual(target, free, held, penalty):
    """The new dual `penalty (target - U)`, and `|A - U|` and `|U|`."""
    kind, out = free.dtype.type, np.empty_like(free)
    boundaries = threads.split_evenly(*free.shape, threads.LIGHT_WORK)
    sums = threads.map_chunks(lambda i, j: _admm_dual(target, free, held, kind(penalty), out, i, j), boundaries)
    gap, size = np.sqrt(np.sum(sums, axis=0))
    return out, float(gap), float(size)
