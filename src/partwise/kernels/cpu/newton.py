"""Newton's method on the rows of one factor, for any beta-divergence and the Huber loss."""

from typing import Any, NamedTuple

import numpy as np

from ...losses.beta import safe_share
from ..records import EntryLoss
from .base import DOUBLE, INT, aligned, bounds_of, compiled, helper, maker, note, update_of
from .divergences import SMALL, SMALL_SINGLE, split
from .least_squares import solve_row
from .panels import counts_by_itself, panel_of, tasks
from .rows import (
    base_of,
    excess,
    is_weighted,
    join_parts,
    linear_term,
    longest_of,
    loss_of,
    no_parts,
    read_row,
    rescue,
    room_for,
    rule_for,
    sums_of,
    take_parts,
    unreached,
    weigh,
)
from .simd import FLOOR, TILE, combine, tile
from .team import mapped, over, per_task

INNER = 10  # sweeps over the quadratic model, until one gains less than `ENOUGH` of the first
ENOUGH = 1e-2
RIDGE = 2.0**-40  # of a second derivative, added to it: a direction with less curvature is left to the next steps
DAMPED = 4  # steps on a row that is so far from its optimum that they have to be held back

_safe_share = helper(safe_share)


class Inner(NamedTuple):
    """The problem, but for the box, and when to stop: `newton`."""

    l2: Any
    loss: EntryLoss
    steps: int
    eps: float


class Model(NamedTuple):
    """The quadratic model `slope' d + d' Q d / 2` of a row in the weights it uses, bounds of these, a step d, and the
    slope g at its end."""

    Q: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    d: np.ndarray
    g: np.ndarray


class Tiles(NamedTuple):
    """Room for `_curvatures`: rows times second derivatives, their products, and where the others are."""

    U: np.ndarray
    block: np.ndarray
    places: np.ndarray


@maker
def room_for_model(rank, dtype):
    low, high, slope = aligned(rank, dtype), aligned(rank, dtype), aligned(rank, dtype)
    return Model(np.empty((rank, rank), dtype), slope, low, high, aligned(rank, dtype), aligned(rank, dtype))


@helper
def _curvatures(second, row, panel, used, room, Q):
    """`Q[a, b] = sum_j second_j H[a, j] H[b, j]`, tile by tile."""
    H, stride, places, n_parts = panel.H, panel.stride, used.places, used.number[0]
    U, block, here, length = room.U, room.block, room.places, row.extent[2]
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


@helper
def _minimise(model, used):
    """Coordinate descent for the model with `low <= c + d <= high`, then to the minimum along d, if that is nearer.
    Returns what was gained."""
    Q, start, low, high, d, g = model
    c, n_parts, most, total = used.c, used.number[0], 0.0, 0.0
    for a in range(n_parts):
        d[a], g[a] = 0, start[a]
    for _ in range(INNER):
        gained = 0.0
        for a in range(n_parts):
            q, slope = Q[a, a], g[a]
            target = d[a] - slope / q if q > 0 else (low[a] - c[a] if slope > 0 and low[a] > -np.inf else d[a])
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
def _minimise_exactly(model, used):
    """The same to the end, from d: with `Q = L L'` it is `1/2 |L^-1 (Q c - start) - L' (c + d)|^2`."""
    Q, start, low, high, d, _ = model
    c, n = used.c, used.number[0]
    L, b, w, lo, hi = np.zeros((n, n)), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for a in range(n):
        w[a], b[a], lo[a], hi[a] = c[a] + d[a], -start[a], low[a], high[a]
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
    solve_row(L, b, 0.0, lo, hi, w)
    gained = 0.0
    for a in range(n):
        d[a] = w[a] - c[a]
    for a in range(n):
        slope = np.float64(start[a])
        for k in range(n):
            slope += Q[a, k] * np.float64(d[k]) / 2
        gained -= slope * d[a]
    return gained


@helper
def _reach(row, u, beta):
    """The step along u, relative to y, at which the curvature may grow: down, or up for beta > 2. Of KL there is none
    under zeros of X."""
    most, sign, everywhere, x, y = 0.0, (-1.0 if beta <= 2 else 1.0), beta != 1, row.x, row.y
    for j in range(row.extent[1]):
        most = max(most, sign * u[j] / max(y[j], SMALL_SINGLE) if everywhere or x[j] > 0 else 0.0)
    return most


@helper
def _slope_along(row, u, by, beta, minus, plus):
    """The slope at `y + u` along u, of the convex part and the tangent of the rest; KL without its linear term. `by`
    is u times the weights of entries."""
    total, x, y, n = 0.0, row.x, row.y, row.extent[1]
    tiny = SMALL_SINGLE if x.itemsize == 4 else SMALL
    if beta == 1:
        for j in range(n):
            total -= x[j] * by[j] / max(y[j] + u[j], FLOOR * x[j] + tiny)
    elif beta == 0:
        for j in range(n):
            inverse = 1 / max(y[j] + u[j], FLOOR * x[j] + tiny)
            total += by[j] * (plus[j] - x[j] * inverse * inverse)
    else:
        for j in range(n):
            b = np.float64(max(y[j] + u[j], FLOOR * x[j] + tiny))
            up = b ** (beta - 1) if beta >= 1 else np.float64(plus[j])
            down = x[j] * b ** (beta - 2) if beta < 2 else np.float64(minus[j])
            total += by[j] * (up - down)
    return total


@helper
def _is_safe(row, u, by, linear, beta, minus, plus):
    """Whether a step by u cannot raise the objective: it is quadratic, the model changes little or, by convexity, the
    slope along u is still downhill at its end."""
    if beta == 2 or _reach(row, u, beta) <= _safe_share(beta):
        return True
    return linear + _slope_along(row, u, by, beta, minus, plus) <= 0


@helper
def _hold_back(model, used, row, u, beta):
    """A step that is safe: the minimum of the quadratic model with weights that fall by no more than the model may, or
    for beta > 2, where the curvature grows as the model does, a part of the way."""
    share = row.y.dtype.type(_safe_share(beta))
    if beta <= 2:
        for a in range(used.number[0]):
            model.low[a] = max(model.low[a], (1 - share) * used.c[a])
        _minimise(model, used)
    else:
        part = row.y.dtype.type(share / _reach(row, u, beta))
        for a in range(used.number[0]):
            model.d[a] *= part


@helper
def _complete(model, used, slope, l2, low, high, gains):
    """The quadratic model of a row from its curvature; what each weight could gain alone is added to `gains`."""
    Q, start, lo, hi = model.Q, model.slope, model.low, model.high
    for a in range(used.number[0]):
        k, own = used.parts[a], used.c[a]
        Q[a, a] += l2
        start[a], lo[a], hi[a] = slope[k], low[k], high[k]
        q = np.float64(Q[a, a])
        target = own - start[a] / q if q > 0 else np.float64(lo[a] if start[a] > 0 and lo[a] > -np.inf else own)
        move = min(max(target, lo[a]), hi[a]) - own
        gains[k] += max(-move * (start[a] + q * move / 2), 0.0)


@helper
def _slope_of_rest(d, used, rule):
    """The slope at `c + d` along d of what is not the divergence."""
    total = 0.0
    for a in range(used.number[0]):
        total += d[a] * (rule.constant[used.parts[a]] + rule.l2 * (used.c[a] + d[a]))
    return total


@helper
def _take_step(d, used, low, high, w):
    """`c + d`, within the bounds, is the new c."""
    for a in range(used.number[0]):
        k = used.parts[a]
        used.c[a] = min(max(used.c[a] + d[a], low[k]), high[k])
        w[k] = used.c[a]


@mapped
def _newton(X, update, panel, sums, inner, exact, found, number, start, stop):
    """Finds what each component could have gained, and the loss after the update. Where `exact` is None, the code
    that minimises models to the end, a third of all, is not compiled."""
    A, out, rows, box, rank = update.A, update.out, update.rows, update.box, update.A.shape[1]
    l1, l2, loss, beta = box.l1, inner.l2, inner.loss, inner.loss.beta
    panel, row, length = room_for(X, panel, rank, longest_of(X, rows, start, stop))
    tiles = Tiles(aligned(TILE * panel.stride, A.dtype), aligned(TILE * TILE, A.dtype), aligned(np.int64(TILE), INT))
    first, second, u = aligned(length, A.dtype), aligned(length, A.dtype), aligned(length, A.dtype)
    minus, plus, extra = aligned(length, A.dtype), aligned(length, A.dtype), aligned(length, A.dtype)
    slope, by = aligned(panel.width, A.dtype), aligned(length, A.dtype) if row.m.size > 0 else u
    rule, apart = rule_for(sums, l1, l2, loss, base_of(X)), beta == 1 and is_weighted(X)
    model, w, used = room_for_model(rank, A.dtype), aligned(rank, A.dtype), no_parts(rank, A.dtype)
    Q, d, x, y, H, places, c = model.Q, model.d, row.x, row.y, panel.H, used.places, used.c
    constant, gains, further, total = rule.constant, aligned(rank, DOUBLE), aligned(rank, DOUBLE), 0.0
    for t in range(start, stop):
        i, most = rows[t], 0.0
        low, high = bounds_of(box, i)
        n, length = read_row(X, i, panel, row)
        if apart:
            excess(row, rule.base, extra)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        if beta < 2 and unreached(row):
            rescue(w, A[i], row, panel, used, rule, low, high)
        for step in range(max(inner.steps, DAMPED)):
            split(x, y, n, length, loss, minus, plus, second)
            for j in range(length):
                first[j] = plus[j] - minus[j]
            weigh(row, first)
            weigh(row, second)
            for j in range(length if apart else 0):
                first[j] += extra[j]
            sums_of(first, row, panel, slope)
            for k in range(rank):
                slope[k] += constant[k] + l2 * w[k]
            n_parts = join_parts(w, slope, 0, low, high, row, panel, used)
            _curvatures(second, row, panel, used, tiles, Q)
            _complete(model, used, slope, l2, low, high, gains if step == 0 else further)
            gained = _minimise(model, used)
            if exact is not None:
                gained = max(gained, _minimise_exactly(model, used))
            combine(d, places, n_parts, H, length, u)
            linear = _slope_of_rest(d, used, rule)
            for j in range(n if apart else 0):
                linear += u[j] * extra[j]
            for j in range(length if row.m.size > 0 else 0):
                by[j] = u[j]
            weigh(row, by)
            safe = _is_safe(row, u, by, linear, beta, minus, plus)
            if not safe:
                _hold_back(model, used, row, u, beta)
            _take_step(d, used, low, high, w)
            combine(c, places, n_parts, H, length, y)
            most = max(most, gained)
            if (safe and step + 1 >= inner.steps) or gained <= inner.eps * most:
                break
        for k in range(rank):
            out[i, k] = w[k]
        total += loss_of(row, loss, rule.base)
    note(gains, total, found[number])


def newton(X, A, others, box, l2, loss, inner, rows):
    """Newton's method on each row, within the bounds: the quadratic model of the row's loss is minimised by coordinate
    descent, and the step held back where the objective could rise. `inner = (steps, eps, exact)`: at most so many
    steps, or until one gains at most `eps` of the best one, and whether the model is minimised to the end. Other
    arguments and results as `newton_kl`."""
    kind, update, rank = A.dtype.type, update_of(A, box, rows), A.shape[1]
    B, sums = others.B, others.sums().astype(A.dtype)
    (steps, eps, exact), whole = inner, counts_by_itself(X, loss.beta)
    panel, inner, exact = panel_of(X, B, whole), Inner(kind(l2), loss, steps, eps), exact or None
    boundaries = tasks(X, B, whole, rows, rank * (rank + 16) // 2)
    found = per_task(boundaries, rank + 1)
    over(_newton, boundaries, X, update, panel, sums, inner, exact, found)
    *gains, total = found.sum(axis=0)
    linear = linear_term(X, update.out, others, rows) if loss.beta == 1 else 0.0
    return (update.out,), (np.array(gains), float(total) + linear)
