"""The two copies of a factor in the method of alternating directions, in few passes over the arrays."""

import math

import numpy as np

from .. import threads
from .team import mapped, over, per_task, run


@mapped
def _admm_rhs(held, dual, cross, penalty, scale, out, number, start, stop):
    for i in range(start, stop):
        for k in range(held.shape[1]):
            out[i, k] = penalty * held[i, k] - dual[i, k] + scale * cross[i, k]


def admm_rhs(held, dual, cross, penalty, scale):
    """`penalty U - P + scale cross`: the right-hand side for the free copy."""
    kind, out = held.dtype.type, np.empty_like(held)
    arguments = held, dual, cross, kind(penalty), kind(scale)
    work = threads.split_evenly(*held.shape, threads.LIGHT_WORK)
    over(_admm_rhs, work, *arguments, out)
    return out


@mapped
def _admm_target(free, dual, inverse, out, number, start, stop):
    for i in range(start, stop):
        for k in range(free.shape[1]):
            out[i, k] = free[i, k] + inverse * dual[i, k]


def admm_target(free, dual, penalty):
    """`A + P / penalty`: what the held copy is to be near."""
    inverse, out = free.dtype.type(1 / penalty), np.empty_like(free)
    work = threads.split_evenly(*free.shape, threads.LIGHT_WORK)
    over(_admm_target, work, free, dual, inverse, out)
    return out


def admm_free(held, dual, cross, penalty, scale, inverse):
    """`A = (penalty U - P + scale cross) inverse`, the free copy where all rows have one system of equations, and
    `A + P / penalty`."""
    kind, free, target = held.dtype.type, np.empty_like(held), np.empty_like(held)
    arguments, share = (held, dual, cross, kind(penalty), kind(scale)), kind(1 / penalty)

    def solve(i, j):
        run(_admm_rhs, i, j, *arguments, target)
        np.matmul(target[i:j], inverse, out=free[i:j])
        run(_admm_target, i, j, free, dual, share, target)

    threads.map_chunks(solve, threads.split_evenly(len(held), held.shape[1] ** 2))
    return free, target


@mapped
def _admm_dual(target, free, held, penalty, gaps, number, start, stop):
    gap = 0.0
    for i in range(start, stop):
        for k in range(free.shape[1]):
            gap += np.float64(free[i, k] - held[i, k]) ** 2
        for k in range(free.shape[1]):
            target[i, k] = penalty * (target[i, k] - held[i, k])
    gaps[number] = gap


def admm_dual(target, free, held, penalty):
    """The new dual, `penalty (target - U)`, in the place of the target; returns `|A - U|`."""
    penalty, work = free.dtype.type(penalty), threads.split_evenly(*free.shape, threads.LIGHT_WORK)
    gaps = per_task(work)
    over(_admm_dual, work, target, free, held, penalty, gaps)
    return math.sqrt(sum(gaps))


@mapped
def _few_nonzeros_fit(X, A, B, unit, sums, number, start, stop):
    rest, total = np.empty(B.shape[1]), 0.0
    for i in range(start, stop):
        first = i * rest.size
        for j in range(rest.size):
            rest[j] = np.float64(X.values[first + j]) * X.scale
        for k in range(A.shape[1]):
            if A[i, k] != 0:
                weight = unit * A[i, k]
                for j in range(rest.size):
                    rest[j] -= weight * B[k, j]
        part = 0.0
        for j in range(rest.size):
            part += rest[j] * rest[j]
        total += part
    sums[number] = total


def few_nonzeros_fit(X, A, others, unit):
    """`1/2 |X - unit A B'|^2` of rows with all entries, as a row kernel, where A has few nonzeros: nothing cancels."""
    B = np.ascontiguousarray(others.B.T, dtype=np.float64)
    work = threads.split_evenly(len(A), X.values.size // max(len(A), 1))
    sums = per_task(work)
    over(_few_nonzeros_fit, work, X, A, B, float(unit), sums)
    return (), (0.5 * float(sum(sums)),)
