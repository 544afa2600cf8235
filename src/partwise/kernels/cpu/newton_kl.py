"""Newton coordinate descent for KL: the rows of one factor, one entry at a time."""

from typing import Any, NamedTuple

import numpy as np

from ..records import EntryLoss
from .base import DOUBLE, aligned, bounds_of, helper, note, update_of
from .panels import panel_of, tasks
from .rows import (
    Row,
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
from .simd import combine, moments, pull, renew
from .team import mapped, over, per_task

KL = EntryLoss(1.0)
KEPT = 2.0**-6  # of a model: where less may be left, it is summed anew, since its rounding is that of what it was
SAFE = 0.65  # of an entry: a Newton step down by at most this share of it cannot raise the objective


class Inner(NamedTuple):
    """The ridge, and when to stop: `newton_kl`."""

    l2: Any
    sweeps: int
    eps: float


class Ratios(NamedTuple):
    """`x / y` and `x / y^2` of the entries of a row."""

    z: np.ndarray
    v: np.ndarray


@helper
def _multiplicative(a, num, slope, l2):
    """Where `slope + l2 b = num a / b`: the root as if all of the model were this weight's, and not beyond the true
    one, since `y + (b - a) h` lies between y and `y b / a`."""
    if l2 == 0:
        return a * num / slope
    return 2 * num * a / (slope + np.sqrt(slope * slope + 4 * l2 * num * a))


@helper
def _sweep(row, panel, used, ratios, rule, bounds, kept, gains):
    """One Newton step on each weight of a row; what they could gain is added to `gains`, and returned in all, with what
    is `kept` of the model at least since it was summed. In a sweep it falls by no more than the weight that falls most.

    A weight goes nearer to its best value and stays on the same side of it, or it gains for sure. Its slope rises and
    is concave. Below the root neither Newton's point nor the multiplicative one overshoots, and from far below the
    second is the faster one. Above it Newton's does; up to `SAFE` of the weight it still gains (self-concordance:
    h / y <= 1 / weight); beyond, the chord between the
    two points meets 0 above the root, as does the multiplicative point.
    """
    gained, least = 0.0, 1.0
    x, y, H, length, z, v, slope, l2 = row.x, row.y, panel.H, row.extent[2], ratios.z, ratios.v, rule.constant, rule.l2
    (low, high), n_parts = bounds, used.number[0]
    for p in range(n_parts):
        k, place, a = used.parts[p], used.places[p], used.c[p]
        lo, hi = low[k], high[k]
        num, q = moments(z, v, H, place, length)
        g, q = slope[k] + l2 * a - num, q + l2
        if lo == hi or (a <= lo and g >= 0):
            continue
        new = min(max(a - g / q, lo), hi) if q > 0 else lo
        step = new - a
        gain = -step * (g + q * step / 2)
        gained += gain
        gains[k] += gain
        if g < 0:
            if slope[k] > 0:
                new = min(max(new, _multiplicative(a, num, slope[k], l2)), hi)
        elif -step > SAFE * a:
            there = slope[k] + l2 * new - pull(x, y, H, place, step, length)
            if there < 0:
                new -= step * (there / (there - g))
                new = max(min(new, _multiplicative(a, num, slope[k], l2)), lo)
        if new != a:
            used.c[p] = new
            if new * kept < KEPT * a:
                combine(used.c, used.places, n_parts, H, length, y)
                kept, least, new = 1.0, 1.0, a
            elif new < least * a:
                least = new / a
            renew(x, y, H, place, new - a, length, z, v)
    return gained, kept * least


@helper
def _linear_slopes(row, panel, sums, base, room, out):
    """The slopes of the linear term."""
    excess(row, base, room)
    sums_of(room, row, panel, out)
    for k in range(sums.size):
        out[k] += sums.dtype.type(base) * sums[k]


@mapped
def _newton_kl(X, update, panel, sums, inner, found, number, start, stop):
    """Finds what each component could have gained, and the loss after the update."""
    A, out, rows, box, rank, l2 = update.A, update.out, update.rows, update.box, update.A.shape[1], inner.l2
    panel, given, length = room_for(X, panel, rank, longest_of(X, rows, start, stop))
    row = Row(given.x, given.m[:0], given.y, given.indices, given.extent)  # where weights have multiplied x
    z, v, pulls = aligned(length, A.dtype), aligned(length, A.dtype), aligned(panel.width, A.dtype)
    x, y, H, w, used = row.x, row.y, panel.H, aligned(rank, A.dtype), no_parts(rank, A.dtype)
    apart, base, ratios, l1 = is_weighted(X), base_of(X), Ratios(z, v), box.l1
    rule = rule_for(sums, l1, l2, KL, 1.0)
    slope, costs, parts, places, c = rule.constant, rule.costs, used.parts, used.places, used.c
    gains, further, loss = aligned(rank, DOUBLE), aligned(rank, DOUBLE), 0.0
    for t in range(start, stop):
        i = rows[t]
        bounds = bounds_of(box, i)
        _, length = read_row(X, i, panel, given)
        if apart:
            _linear_slopes(given, panel, sums, base, z, pulls)
            weigh(given, x)
            for k in range(rank):
                slope[k], costs[k] = pulls[k] + l1, pulls[k] + l1 + l2
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        if unreached(row):
            rescue(w, A[i], row, panel, used, rule, *bounds)
        renew(x, y, H, 0, A.dtype.type(0), length, z, v)
        # weights at 0 whose slope keeps them there are left alone until the next visit
        sums_of(z, row, panel, pulls)
        for k in range(rank):
            pulls[k] = slope[k] - pulls[k]
        n_parts = join_parts(w, pulls, 0, *bounds, row, panel, used)
        most, kept = 0.0, 1.0
        for sweep in range(inner.sweeps):
            gained, kept = _sweep(row, panel, used, ratios, rule, bounds, kept, further if sweep else gains)
            most = max(most, gained)
            if sweep and gained <= inner.eps * most:
                break
        for p in range(n_parts):
            w[parts[p]] = c[p]
        for k in range(rank):
            out[i, k] = w[k]
        combine(c, places, n_parts, H, length, y)
        if apart:
            read_row(X, i, panel, given)
        loss += loss_of(given, KL, base)
    note(gains, loss, found[number])


def newton_kl(X, A, others, box, l2, inner, rows):
    """Cyclic Newton steps on the entries of each row (Hsieh and Dhillon 2011, Algorithm 2): `inner = (sweeps, eps)`, at
    most so many, until one gains at most `eps` of the best one.

    Also returns, as sums over rows, `gain_columns` as found on the way, and the loss after the update."""
    kind, update = A.dtype.type, update_of(A, box, rows)
    B, sums = others.B, others.sums().astype(A.dtype)
    panel, inner = panel_of(X, B, X.full), Inner(kind(l2), *inner)
    boundaries = tasks(X, B, X.full, rows, 16 * A.shape[1])
    found = per_task(boundaries, A.shape[1] + 1)
    over(_newton_kl, boundaries, X, update, panel, sums, inner, found)
    *gains, loss = found.sum(axis=0)
    return (update.out,), (np.array(gains), float(loss) + linear_term(X, update.out, others, rows))
