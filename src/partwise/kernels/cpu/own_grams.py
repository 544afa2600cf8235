"""Least squares in the rows of one factor where entries of X count differently: each row has a Gram matrix of its own,

    1/2 w' (gram + sum_j e_j h_j h_j') w - cross' w + l1 |w|_1,   low <= w <= high.

`gram` counts every entry as most do, and holds the ridge; `e_j`, the values of X here, is what some count beyond that,
and h_j the row of the others that goes with it. Time O(n rank^2) for a row with n such entries.
"""

from typing import Any, NamedTuple

import numpy as np

from .base import DOUBLE, INT, aligned, best_for, bounds_of, compiled, gain, helper, note, update_of
from .newton import Tiles, _curvatures, _minimise_exactly, room_for_model
from .panels import panel_of, tasks
from .rows import join_parts, longest, longest_of, no_parts, read_row, room_for, sums_of, take_parts
from .simd import TILE, combine
from .team import mapped, over, per_task

NOTHING = 4  # times the rounding of a number: what may be left of it


class Inner(NamedTuple):
    """How a row is brought down: at most so many sweeps, or updates if `greedy`, until one gains at most `eps` of the
    first; `binary`: weights are at one of their bounds; `steps`: how often parts that would gain are sought."""

    sweeps: int
    eps: Any
    greedy: bool
    binary: bool
    steps: int


@helper
def _target(own, g, q, l1, low, high, binary):
    """The best value of a weight, the others held."""
    if binary:
        other = high if own <= low else low
        return other if gain(own, other, g, q, l1) > 0 else own
    return best_for(own, g, q, l1, low, high)


@helper
def _weighted_model(row, out):
    """`e_j y_j` of each entry; returns `sum e_j y_j^2`, in double precision."""
    total, e, y = 0.0, row.x, row.y
    for j in range(row.extent[2]):
        out[j] = e[j] * y[j]
    for j in range(row.extent[1]):
        total += np.float64(e[j]) * np.float64(y[j]) * np.float64(y[j])
    return total


@helper
def _add_shared(gram, used, slope):
    """`slope += gram w`."""
    for a in range(used.number[0]):
        line, own = gram[used.parts[a]], used.c[a]
        for k in range(line.size):
            slope[k] += own * line[k]


@helper
def _complete(model, used, gram, slope, rule, low, high, gains):
    """The quadratic model of a row in the components it uses, from what its own entries add to the second derivatives;
    what each could gain alone is added to `gains`."""
    n, parts, (l1, binary) = used.number[0], used.parts, rule
    for a in range(n):
        line, k = gram[parts[a]], parts[a]
        for b in range(n):
            model.Q[a, b] += line[parts[b]]
        # where hardly any entry of a row counts, little is left of sums over all
        model.Q[a, a] = max(model.Q[a, a], NOTHING * np.finfo(gram.dtype).eps * line[k])
        model.g[a], model.low[a], model.high[a] = slope[k], low[k], high[k]
        q = np.float64(model.Q[a, a])
        own, g = np.float64(used.c[a]), np.float64(slope[k])
        gains[k] += max(gain(own, _target(own, g, q, l1, low[k], high[k], binary), g, q, l1), 0.0)


@helper
def _move(model, used, a, rule):
    """One weight to its best value; returns what that gains."""
    Q, g, c, (l1, binary) = model.Q, model.g, used.c, rule
    q = Q[a, a]
    x = c.dtype.type(_target(c[a], g[a], q, l1, model.low[a], model.high[a], binary))
    s = x - c[a]
    if s == 0:
        return 0.0
    gained = np.float64(gain(c[a], x, g[a], q, l1))
    c[a] = x
    line = Q[a]
    for b in range(used.number[0]):
        g[b] += s * line[b]
    return gained


@helper
def _sweep(model, used, rule):
    """Every weight once, in turn."""
    gained = 0.0
    for a in range(used.number[0]):
        gained += _move(model, used, a, rule)
    return gained


@helper
def _best_one(model, used, rule):
    """The one weight whose best value gains most."""
    most, best, (l1, binary) = 0.0, -1, rule
    for a in range(used.number[0]):
        own, g, q = used.c[a], model.g[a], model.Q[a, a]
        gained = gain(own, _target(own, g, q, l1, model.low[a], model.high[a], binary), g, q, l1)
        if gained > most:
            most, best = gained, a
    return _move(model, used, best, rule) if best >= 0 else 0.0


@helper
def _descend(model, used, inner, rule):
    """Coordinate descent; returns what was gained."""
    first, total = 0.0, 0.0
    for sweep in range(inner.sweeps):
        gained = _best_one(model, used, rule) if inner.greedy else _sweep(model, used, rule)
        total += gained
        first = gained if sweep == 0 else first
        if gained <= inner.eps * first:
            break
    return total


@compiled
def _finish(model, used, l1):
    """To the minimum for these components; penalties here are linear, of weights >= 0. Returns what that gains."""
    n = used.number[0]
    for a in range(n):
        model.slope[a], model.d[a] = model.g[a] + l1, 0
    gained = _minimise_exactly(model, used)
    for a in range(n if gained > 0 else 0):
        used.c[a] = min(max(used.c[a] + model.d[a], model.low[a]), model.high[a])
    return max(gained, 0.0)


@mapped
def _own_grams(X, update, panel, gram, cross, inner, exact, found, number, start, stop):
    """Finds what each component could have gained, and `sum e_j y_j^2` after the update; `exact` as in `_newton`."""
    A, out, rows, box, rank = update.A, update.out, update.rows, update.box, update.A.shape[1]
    l1, rule = box.l1, (box.l1, inner.binary)
    panel, row, length = room_for(X, panel, rank, longest_of(X, rows, start, stop))
    tiles = Tiles(aligned(TILE * panel.stride, A.dtype), aligned(TILE * TILE, A.dtype), aligned(np.int64(TILE), INT))
    z, slope = aligned(length, A.dtype), aligned(panel.width, A.dtype)
    model, w, used = room_for_model(rank, A.dtype), aligned(rank, A.dtype), no_parts(rank, A.dtype)
    gains, further, squares = aligned(rank, DOUBLE), aligned(rank, DOUBLE), 0.0
    for t in range(start, stop):
        i, most = rows[t], 0.0
        low, high = bounds_of(box, i)
        n, length = read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        for step in range(inner.steps):
            _weighted_model(row, z)
            sums_of(z, row, panel, slope)
            for k in range(rank):
                slope[k] -= cross[i, k]
            _add_shared(gram, used, slope)
            n_parts = join_parts(w, slope, l1, low, high, row, panel, used)
            if n > 0:
                _curvatures(row.x, row, panel, used, tiles, model.Q)
            else:
                model.Q[:n_parts, :n_parts] = 0
            _complete(model, used, gram, slope, rule, low, high, gains if step == 0 else further)
            gained = _descend(model, used, inner, rule)
            if exact is not None:
                gained += _finish(model, used, l1)
            combine(used.c, used.places, n_parts, panel.H, length, row.y)
            most = max(most, gained)
            if gained <= inner.eps * most:
                break
        for k in range(rank):
            out[i, k] = w[k]
        for a in range(used.number[0]):
            out[i, used.parts[a]] = used.c[a]
        squares += _weighted_model(row, z)
    note(gains, squares, found[number])


def own_grams(X, A, others, cross, gram, box, inner, rows):
    """Coordinate descent on each row, `inner` as `Inner` has it and, `exact`, whether each goes to the minimum for the
    parts it has. Sums: what each component could have gained at the start, and `sum e_j y_j^2` of the rows after it."""
    kind, update, B = A.dtype.type, update_of(A, box, rows), others.B
    sweeps, eps, *rest, exact = inner
    panel, rank, inner, exact = panel_of(X, B, X.full), A.shape[1], Inner(sweeps, kind(eps), *rest), exact or None
    boundaries = tasks(X, B, X.full, rows, rank * (rank + 16) // 4)
    found = per_task(boundaries, rank + 1)
    over(_own_grams, boundaries, X, update, panel, gram, cross, inner, exact, found)
    *gains, squares = found.sum(axis=0)
    return (update.out,), (np.array(gains), float(squares))


@mapped
def _own_slopes(X, A, panel, squares, slope, curvature, totals, number, start, stop):
    rank = A.shape[1]
    panel, row, length = room_for(X, panel, rank, longest(X, start, stop))
    sums, w, used, z, total = (
        aligned(panel.width, A.dtype),
        aligned(rank, A.dtype),
        no_parts(rank, A.dtype),
        aligned(length, A.dtype),
        0.0,
    )
    for i in range(start, stop):
        read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        total += _weighted_model(row, z)
        sums_of(z, row, panel, sums)
        for k in range(rank):
            slope[i, k] = sums[k]
        sums_of(row.x, row, squares, sums)
        for k in range(rank):
            curvature[i, k] = sums[k]
    totals[number] = total


def own_slopes(X, A, others):
    """`sum_j e_j y_j h_j` and `sum_j e_j h_j^2` of each row, both (dim, rank); of all rows `sum e_j y_j^2`."""
    B, slope, curvature = others.B, np.empty_like(A), np.empty_like(A)
    panel = panel_of(X, B, X.full)
    squares = panel._replace(B=panel.B * panel.B, H=panel.H * panel.H)
    boundaries = tasks(X, B, X.full, np.arange(A.shape[0]), 4 * A.shape[1])
    totals = per_task(boundaries)
    over(_own_slopes, boundaries, X, A, panel, squares, slope, curvature, totals)
    return (slope, curvature), (float(sum(totals)),)
