"""Newton's method on the rows of one factor, for any beta-divergence."""

import numpy as np

from .. import threads
from .base import aligned, compiled, result_for
from .products import padded
from .rows import (
    divergence,
    join_parts,
    read_row,
    revive,
    room_for,
    slopes,
    sums_of,
    take_parts,
    unreached,
)
from .simd import TILE, combine, tile

INNER = 10  # sweeps over the quadratic model, until one gains less than `ENOUGH` of the first
ENOUGH = 1e-2
DAMPED = 4  # steps on a row that is so far from its optimum that they had to be cut short
TRIALS = 3  # of halves of a step, before it is cut to a length that is safe


@compiled
def _curvatures(second, H, places, n_parts, length, U, stride, block, Q):
    """`Q[a, b] = sum_j second_j H[a, j] H[b, j]`, tile by tile."""
    here = np.empty(TILE, np.int64)
    for first in range(0, n_parts, TILE):
        for a in range(TILE):
            part = min(first + a, n_parts - 1)
            h, u = H[places[part] : places[part] + length], U[a * stride : a * stride + length]
            for j in range(length):
                u[j] = second[j] * h[j]
        for other in range(0, first + 1, TILE):
            for b in range(TILE):
                here[b] = places[min(other + b, n_parts - 1)]
            tile(U, 0, H, here, stride, length, block)
            for a in range(first, min(first + TILE, n_parts)):
                for b in range(other, min(other + TILE, n_parts)):
                    Q[a, b] = Q[b, a] = block[(a - first) * TILE + b - other]


@compiled
def _minimise(c, g, Q, low, high, n_parts, d):
    """Coordinate descent for `g'd + d'Q d / 2` with `low <= c + d <= high`; g becomes the slope at the end."""
    most = 0.0
    for a in range(n_parts):
        d[a] = 0
    for _ in range(INNER):
        gained = 0.0
        for a in range(n_parts):
            q, slope = Q[a, a], g[a]
            target = d[a] - slope / q if q > 0 else (low[a] - c[a] if slope > 0 else d[a])
            target = min(max(target, low[a] - c[a]), high[a] - c[a])
            s = target - d[a]
            if s != 0:
                gained -= s * (slope + q * s / 2)
                d[a] = target
                line = Q[a]
                for b in range(n_parts):
                    g[b] += s * line[b]
        most = max(most, gained)
        if gained <= ENOUGH * most:
            break


@compiled
def _reach(y, u, n, beta):
    """The step along u, relative to y, at which the curvature may grow: down, or up for beta > 2."""
    most, sign = 0.0, (-1.0 if beta <= 2 else 1.0)
    for j in range(n):
        most = max(most, sign * u[j] / max(y[j], 1e-30))
    return most


@compiled
def _slope_along(x, y, u, t, n, beta, first):
    """The slope at `y + t u` along u, of the convex part and the tangent of the rest; KL without its linear term."""
    total = 0.0
    tiny = 1e-30
    if beta == 1:
        for j in range(n):
            total -= x[j] * u[j] / max(y[j] + t * u[j], tiny)
    elif beta == 0:
        for j in range(n):
            inverse = 1 / max(y[j] + t * u[j], tiny)
            before = x[j] / max(y[j], tiny) ** 2
            total += u[j] * (first[j] + before - x[j] * inverse * inverse)
    else:
        convex, own = (1.0 if beta >= 1 else 0.0), (1.0 if beta < 2 else 0.0)
        for j in range(n):
            a, b = np.float64(max(y[j], tiny)), np.float64(max(y[j] + t * u[j], tiny))
            change = convex * (b ** (beta - 1) - a ** (beta - 1)) - own * x[j] * (b ** (beta - 2) - a ** (beta - 2))
            total += u[j] * (first[j] + change)
    return total


@compiled
def _length_of_step(x, y, u, n, beta, linear, first):
    """How far to go along u, at most 1, so that the objective does not rise.

    Within a relative change of the model by `safe` the curvature stays below twice its average need: the step of the
    quadratic model gains. Beyond, by convexity, wherever the slope along u is still downhill.
    """
    # int (1 - t) (1 - t r)^(beta - 3) dt < 1 at r = 1/2 for beta >= 0, and (1 - r)^(beta - 3) <= 2 suffices for any
    safe = 0.5 if 0 <= beta <= 2 else (1 - 2.0 ** (1 / (beta - 3)) if beta < 0 else 2.0 ** (1 / (beta - 2)) - 1)
    reach = _reach(y, u, n, beta)
    t = 1.0
    for _ in range(TRIALS):
        if t * reach <= safe or linear + _slope_along(x, y, u, t, n, beta, first) <= 0:
            return t
        t /= 2
    return min(t, safe / reach)


@compiled
def _model(slope, Q, parts, n_parts, l2, low, high, c, g, lo, hi, gains):
    """The quadratic model of a row in its own weights; what each could gain alone is added to `gains`."""
    for a in range(n_parts):
        k = parts[a]
        Q[a, a] += l2
        g[a], lo[a], hi[a] = slope[k], low[k], high[k]
        q = np.float64(Q[a, a])
        target = c[a] - g[a] / q if q > 0 else np.float64(lo[a] if g[a] > 0 else c[a])
        move = min(max(target, lo[a]), hi[a]) - c[a]
        gains[k] += max(-move * (g[a] + q * move / 2), 0.0)


@compiled
def _newton(indptr, indices, values, scale, A, B, sums, l1, lower, upper, l2, beta, steps, rows, out, start, stop):
    """Returns what each component could have gained, and the loss after the update, for KL but for `sum Y`."""
    rank, kind = A.shape[1], A.dtype.type
    H, stride, whole, length = room_for(indptr, indices, A, B, beta, rows, start, stop)
    x, y, u = aligned(length, A), aligned(length, A), aligned(length, A)
    first, second = aligned(length, A), aligned(length, A)
    U, block, Q = aligned(TILE * stride, A), aligned(TILE * TILE, A), np.empty((rank, rank), A.dtype)
    w, c, g, d = np.empty(rank, A.dtype), np.empty(rank, A.dtype), np.empty(rank, A.dtype), np.empty(rank, A.dtype)
    lo, hi, slope = np.empty(rank, A.dtype), np.empty(rank, A.dtype), aligned(B.shape[1], A)
    parts, places = np.empty(rank, np.int64), np.empty(rank, np.int64)
    costs = sums + l1 + l2
    constant = sums + l1 if beta == 1 else np.full(rank, l1)
    gains, further, loss = np.zeros(rank), np.zeros(rank), 0.0
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for t in range(start, stop):
        i = rows[t]
        low, high = lower[i * lower_step], upper[i * upper_step]
        begin, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        n_parts = take_parts(w, indices, begin, n, length, whole, B, H, stride, parts, places, c, y)
        if beta < 2 and unreached(x, y, n) and revive(w, x, y, n, beta, indices, begin, whole, B, costs, low, high):
            n_parts = take_parts(w, indices, begin, n, length, whole, B, H, stride, parts, places, c, y)
        for step in range(max(steps, DAMPED)):
            slopes(x, y, n, length, beta, first, second)
            sums_of(first, indices, begin, n, length, whole, B, H, stride, slope)
            for k in range(rank):
                slope[k] += constant[k] + l2 * w[k]
            n_parts = join_parts(
                w, slope, high, indices, begin, n, length, whole, B, H, stride, parts, places, c, n_parts
            )
            _curvatures(second, H, places, n_parts, length, U, stride, block, Q)
            _model(slope, Q, parts, n_parts, l2, low, high, c, g, lo, hi, gains if step == 0 else further)
            _minimise(c, g, Q, lo, hi, n_parts, d)
            combine(d, places, n_parts, H, length, u)
            linear = 0.0
            for a in range(n_parts):
                linear += d[a] * (constant[parts[a]] + l2 * (c[a] + d[a]))
            size = kind(_length_of_step(x, y, u, n, beta, linear, first))
            for a in range(n_parts):
                c[a] = min(max(c[a] + size * d[a], lo[a]), hi[a])
                w[parts[a]] = c[a]
            combine(c, places, n_parts, H, length, y)
            if size == 1 and step + 1 >= steps:
                break
        for k in range(rank):
            out[i, k] = w[k]
        loss += divergence(x, y, n, beta)
    return gains, loss


def newton(rows_of_X, scale, A, B, box, l2, beta, steps, rows):
    """`steps` of Newton's method on each row, within the bounds: the quadratic model of the row's loss is minimised by
    coordinate descent, and the step cut short where the objective would rise. Arguments and results as `newton_kl`."""
    kind, out, rank = A.dtype.type, result_for(A, rows), A.shape[1]
    sums = B.sum(axis=0, dtype=np.float64).astype(A.dtype)
    wide = padded(B, kind(1))
    lengths = np.diff(rows_of_X[0])[rows] if beta == 1 else np.full(rows.size, B.shape[0])
    work = (lengths + 32) * np.int64(rank * (rank + 16) // 4)
    gains, losses = zip(
        *threads.run(
            lambda i, j: _newton(
                *rows_of_X, kind(scale), A, wide, sums, *box, kind(l2), float(beta), steps, rows, out, i, j
            ),
            threads.balanced(work),
        )
    )
    return out, np.sum(gains, axis=0), sum(losses)
