"""Newton steps of rows that have one Hessian, up to scales."""

import numpy as np

from .. import threads
from ..records import Box
from .base import Update, bounds_of, compiled
from .hals import _hals, alike, lane_tasks
from .team import mapped, over, run


@compiled
def _into_units(A, curvature, unit, scaled):
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            unit[i, k] = np.sqrt(curvature[i, k]) if curvature[i, k] > 0 else A.dtype.type(1)
            scaled[i, k] = A[i, k] * unit[i, k]


@compiled
def _subtract_slope(cross, slope, l1, unit):
    for i in range(cross.shape[0]):
        for k in range(cross.shape[1]):
            cross[i, k] -= (slope[i, k] + l1) / unit[i, k]


@compiled
def _out_of_units(scaled, unit, box, out):
    for i in range(out.shape[0]):
        low, high = bounds_of(box, i)
        for k in range(out.shape[1]):
            out[i, k] = min(max(scaled[i, k] / unit[i, k], low[k]), high[k])


def scale_free(bound):
    """Whether bounds are the same in any units."""
    return not np.any(np.isfinite(bound) & (bound != 0))


def step_rows(A, slope, curvature, gram, box, free, inner, out):
    """`shared_newton` for some rows, in arrays that stay in the cache; `free`: which bounds are `scale_free`."""
    unit, scaled, cross = np.empty_like(A), np.empty_like(A), np.empty_like(A)
    _into_units(A, curvature, unit, scaled)
    np.matmul(scaled, gram, out=cross)
    _subtract_slope(cross, slope, box.l1, unit)
    bounds = (bound if same else bound * unit for bound, same in zip((box.lower, box.upper), free, strict=True))
    update = Update(scaled, scaled, np.arange(len(A)), Box(A.dtype.type(0), *alike(*bounds, A.shape)))
    run(_hals, 0, len(A), update, cross, gram, np.arange(A.shape[1]), *inner, np.empty((1, A.shape[1])))
    _out_of_units(scaled, unit, box, out)


def shared_newton(A, slope, curvature, gram, box, inner):
    """Each row of A after a step towards the minimum, within the bounds, of its quadratic model with this slope and the
    Hessian `D^1/2 gram D^1/2`, D the diagonal of its second derivatives: in units of `D^1/2` all rows have the same,
    and coordinate descent sweeps over them together, `inner` as in `hals`. A weight of `|a|` is linear here, where
    factors that have one are nonnegative."""
    (sweeps, eps), out, free = inner, np.empty_like(A), (scale_free(box.lower), scale_free(box.upper))

    def task(start, stop):
        own = (array[start:stop] for array in (A, slope, curvature))
        step_rows(*own, gram, box.within(start, stop), free, (sweeps, A.dtype.type(eps)), out[start:stop])

    threads.map_chunks(task, lane_tasks(A, len(A), sweeps))
    return out


@mapped
def _rescaled(A, l1, scales, out, number, start, stop):
    totals, sums, ridge = scales
    for i in range(start, stop):
        linear, square = 0.0, 0.0
        for k in range(A.shape[1]):
            a = np.float64(A[i, k])
            linear += a * (sums[k] + l1)
            square += ridge * a * a
        below, t = linear + np.sqrt(linear * linear + 4 * square * totals[i]), 1.0
        if 0 < below < np.inf and 2 * totals[i] / below < np.inf:
            t = 2 * totals[i] / below
        for k in range(A.shape[1]):
            out[i, k] = A.dtype.type(t * np.float64(A[i, k]))  # which may be a number where t is none in this type


def rescaled(A, box, scales):
    """Each row of A at its best multiple t under KL, where `t (sums + l1)' a + t^2 ridge / 2 |a|^2 - total log t` is
    least; A itself where bounds could be in the way."""
    if not (scale_free(box.lower) and scale_free(box.upper)):
        return A
    out = np.empty_like(A)
    boundaries = threads.split_evenly(*A.shape, threads.LIGHT_WORK)
    over(_rescaled, boundaries, A, box.l1, scales, out)
    return out
