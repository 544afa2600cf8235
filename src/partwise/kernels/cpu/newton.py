"""Newton's method on the rows of one factor, for any beta-divergence."""

import numpy as np

from .. import threads
from .base import aligned, compiled, result_for
from .least_squares import solve_row
from .products import padded
from .rows import (
    SMALL,
    SMALL_SINGLE,
    divergence,
    join_parts,
    panel_of,
    read_row,
    rescue,
    room_for,
    split,
    sums_of,
    take_parts,
    tasks,
    unreached,
)
from .simd import FLOOR, TILE, combine, tile

INNER = 10  # sweeps over the quadratic model, until one gains less than `ENOUGH` of the first
ENOUGH = 1e-2
RIDGE = 2.0**-40  # of a second derivative, added to it: a direction with less curvature is left to the next steps
DAMPED = 4  # steps on a row that is so far from its optimum that they have to be held back


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
            tile(U, stride, H, here, length, block)
            for a in range(first, min(first + TILE, n_parts)):
                for b in range(other, min(other + TILE, n_parts)):
                    Q[a, b] = Q[b, a] = block[(a - first) * TILE + b - other]


@compiled
def _minimise(c, start, Q, low, high, n_parts, g, d):
    """Coordinate descent for `start'd + d'Q d / 2` with `low <= c + d <= high`, then to the minimum along d, if that is
    nearer. Returns what was gained."""
    most, total = 0.0, 0.0
    for a in range(n_parts):
        d[a], g[a] = 0, start[a]
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
        total += gained
        if gained <= ENOUGH * most:
            break
    first, last = 0.0, 0.0  # slopes along d, at the beginning and at its end
    for a in range(n_parts):
        first += d[a] * start[a]
        last += d[a] * g[a]
    if last > 0:
        for a in range(n_parts):
            d[a] *= first / (first - last)
    return total


@compiled
def _minimise_exactly(c, start, Q, low, high, n, d):
    """The same to the end, from d: with `Q = L L'` it is `1/2 |L^-1 (Q c - start) - L' (c + d)|^2`."""
    L, b, w = np.zeros((n, n)), np.empty(n), np.empty(n)
    for a in range(n):
        w[a], b[a] = c[a] + d[a], -start[a]
        for k in range(n):
            b[a] += Q[a, k] * c[k]
        for k in range(a + 1):
            rest = Q[a, k] * (1 + RIDGE if k == a else 1.0)
            for m in range(k):
                rest -= L[a, m] * L[k, m]
            L[a, k] = rest / L[k, k] if k < a else np.sqrt(max(rest, RIDGE * Q[a, a]))
        for k in range(a):
            b[a] -= L[a, k] * b[k]
        b[a] /= L[a, a]
    solve_row(L, b, 0.0, low[:n].astype(np.float64), high[:n].astype(np.float64), w)
    gained = 0.0
    for a in range(n):
        d[a] = w[a] - c[a]
    for a in range(n):
        slope = np.float64(start[a])
        for k in range(n):
            slope += Q[a, k] * np.float64(d[k]) / 2
        gained -= slope * d[a]
    return gained


@compiled
def _reach(x, y, u, n, beta):
    """The step along u, relative to y, at which the curvature may grow: down, or up for beta > 2. Of KL there is none
    under zeros of X."""
    most, sign, everywhere = 0.0, (-1.0 if beta <= 2 else 1.0), beta != 1
    for j in range(n):
        most = max(most, sign * u[j] / max(y[j], SMALL_SINGLE) if everywhere or x[j] > 0 else 0.0)
    return most


@compiled
def _slope_along(x, y, u, n, beta, minus, plus):
    """The slope at `y + u` along u, of the convex part and the tangent of the rest; KL without its linear term."""
    total = 0.0
    tiny = SMALL_SINGLE if x.itemsize == 4 else SMALL
    if beta == 1:
        for j in range(n):
            total -= x[j] * u[j] / max(y[j] + u[j], FLOOR * x[j] + tiny)
    elif beta == 0:
        for j in range(n):
            inverse = 1 / max(y[j] + u[j], FLOOR * x[j] + tiny)
            total += u[j] * (plus[j] - x[j] * inverse * inverse)
    else:
        for j in range(n):
            b = np.float64(max(y[j] + u[j], FLOOR * x[j] + tiny))
            up = b ** (beta - 1) if beta >= 1 else np.float64(plus[j])
            down = x[j] * b ** (beta - 2) if beta < 2 else np.float64(minus[j])
            total += u[j] * (up - down)
    return total


@compiled
def safe_share(beta):
    """By how much of itself a model may change so that a step to the minimum of its quadratic model gains for sure:
    `int (1 - t) (1 - t r)^(beta - 3) dt < 1` at r = 0.45 for beta >= 0; for others the curvature may at most double."""
    if beta < 0:
        return 1 - 2.0 ** (1 / (beta - 3))
    return 0.45 if beta <= 2 else 2.0 ** (1 / (beta - 2)) - 1


@compiled
def _is_safe(x, y, u, n, beta, linear, minus, plus):
    """Whether a step by u cannot raise the objective: the model changes little or, by convexity, the slope along u is
    still downhill at its end."""
    return _reach(x, y, u, n, beta) <= safe_share(beta) or linear + _slope_along(x, y, u, n, beta, minus, plus) <= 0


@compiled
def _hold_back(c, start, Q, lo, hi, n_parts, beta, x, y, u, n, g, d):
    """A step that is safe: the minimum of the quadratic model with weights that fall by no more than the model may, or
    for beta > 2, where the curvature grows as the model does, a part of the way."""
    share = y.dtype.type(safe_share(beta))
    if beta <= 2:
        for a in range(n_parts):
            lo[a] = max(lo[a], (1 - share) * c[a])
        _minimise(c, start, Q, lo, hi, n_parts, g, d)
    else:
        part = y.dtype.type(share / _reach(x, y, u, n, beta))
        for a in range(n_parts):
            d[a] *= part


@compiled
def _model(slope, Q, parts, n_parts, l2, low, high, c, start, lo, hi, gains):
    """The quadratic model of a row in its own weights; what each could gain alone is added to `gains`."""
    for a in range(n_parts):
        k = parts[a]
        Q[a, a] += l2
        start[a], lo[a], hi[a] = slope[k], low[k], high[k]
        q = np.float64(Q[a, a])
        target = c[a] - start[a] / q if q > 0 else np.float64(lo[a] if start[a] > 0 else c[a])
        move = min(max(target, lo[a]), hi[a]) - c[a]
        gains[k] += max(-move * (start[a] + q * move / 2), 0.0)


@compiled
def _newton(
    indptr,
    indices,
    values,
    scale,
    A,
    B,
    H,
    stride,
    sums,
    l1,
    lower,
    upper,
    l2,
    beta,
    steps,
    eps,
    exact,
    rows,
    out,
    start,
    stop,
):
    """Returns what each component could have gained, and the loss after the update, for KL but for `sum Y`."""
    rank, kind = A.shape[1], A.dtype
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, y, u, first = aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A)
    minus, plus, second = aligned(length, A), aligned(length, A), aligned(length, A)
    U, block, Q = aligned(TILE * stride, A), aligned(TILE * TILE, A), np.empty((rank, rank), kind)
    w, c, g, g0, d = (
        np.empty(rank, kind),
        np.empty(rank, kind),
        np.empty(rank, kind),
        np.empty(rank, kind),
        np.empty(rank, kind),
    )
    lo, hi, slope = np.empty(rank, kind), np.empty(rank, kind), aligned(B.shape[1], A)
    parts, places = np.empty(rank, np.int64), np.empty(rank, np.int64)
    constant, costs = sums + l1 if beta == 1 else np.full(rank, l1), sums + l1 + l2
    gains, further, loss = np.zeros(rank), np.zeros(rank), 0.0
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for t in range(start, stop):
        i = rows[t]
        low, high = lower[i * lower_step], upper[i * upper_step]
        begin, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        n_parts = take_parts(w, indices, begin, n, length, whole, B, H, stride, parts, places, c, y)
        if beta < 2 and unreached(x, y, n):
            n_parts = rescue(
                *(w, A, i, n, begin, length, indices, whole, B, H, stride, beta, constant, l2, costs),
                *(low, high, parts, places, c, n_parts, x, y),
            )
        most = 0.0
        for step in range(max(steps, DAMPED)):
            split(x, y, n, length, beta, minus, plus, second)
            for j in range(length):
                first[j] = plus[j] - minus[j]
            sums_of(first, indices, begin, n, length, whole, B, H, stride, slope)
            for k in range(rank):
                slope[k] += constant[k] + l2 * w[k]
            n_parts = join_parts(
                w, slope, high, indices, begin, n, length, whole, B, H, stride, parts, places, c, n_parts
            )
            _curvatures(second, H, places, n_parts, length, U, stride, block, Q)
            _model(slope, Q, parts, n_parts, l2, low, high, c, g0, lo, hi, gains if step == 0 else further)
            gained = _minimise(c, g0, Q, lo, hi, n_parts, g, d)
            if exact:
                gained = max(gained, _minimise_exactly(c, g0, Q, lo, hi, n_parts, d))
            combine(d, places, n_parts, H, length, u)
            linear = 0.0
            for a in range(n_parts):
                linear += d[a] * (constant[parts[a]] + l2 * (c[a] + d[a]))
            safe = _is_safe(x, y, u, n, beta, linear, minus, plus)
            if not safe:
                _hold_back(c, g0, Q, lo, hi, n_parts, beta, x, y, u, n, g, d)
            for a in range(n_parts):
                c[a] = min(max(c[a] + d[a], low[parts[a]]), high[parts[a]])
                w[parts[a]] = c[a]
            combine(c, places, n_parts, H, length, y)
            most = max(most, gained)
            if (safe and step + 1 >= steps) or gained <= eps * most:
                break
        for k in range(rank):
            out[i, k] = w[k]
        loss += divergence(x, y, n, beta)
    return gains, loss


def newton(rows_of_X, scale, A, B, box, l2, beta, inner, rows):
    """Newton's method on each row, within the bounds: the quadratic model of the row's loss is minimised by coordinate
    descent, and the step held back where the objective could rise. `inner = (steps, eps, exact)`: at most so many
    steps, or until one gains at most `eps` of the best one, and whether the model is minimised to the end. Other
    arguments and results as `newton_kl`."""
    kind, out, rank = A.dtype.type, result_for(A, rows), A.shape[1]
    sums = B.sum(axis=0, dtype=np.float64).astype(A.dtype)
    panel, wide = panel_of(rows_of_X, B, beta), padded(B, kind(1))
    gains, losses = zip(
        *threads.run(
            lambda i, j: _newton(
                *rows_of_X, kind(scale), A, wide, *panel, sums, *box, kind(l2), float(beta), *inner, rows, out, i, j
            ),
            tasks(rows_of_X, B, beta, rows, rank * (rank + 16) // 4),
        )
    )
    return out, np.sum(gains, axis=0), sum(losses)
