"""The L1 loss with its kinks rounded off: the rows of one factor, one entry at a time.

Differences below delta count by their square, `r^2 / (2 delta)`, others as before, `|r| - delta / 2` (Huber). At any
point that lies below a parabola of weight `1 / max(|r|, delta)`, the minimum of which is the next point. Zeros of X
under a nonnegative model are counted together, a row at a time, whether they are listed or not.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .base import aligned, bounds_of, helper, update_of
from .panels import panel_of, tasks
from .rows import join_parts, longest, no_parts, read_row, room_for, sums_of, take_parts, weigh
from .simd import moments
from .team import mapped, over


class Rule(NamedTuple):
    """What is minimised: `smooth_l1`; `zero` is what an entry counts that is one of the zeros counted together."""

    l2: Any
    zero: Any
    together: bool
    deltas: np.ndarray


class Totals(NamedTuple):
    """Of the other factor B: the sums of its columns, and `B'B`."""

    dim: int  # how many columns X has
    sums: np.ndarray
    gram: np.ndarray


@helper
def _shift(z, v, H, place, step, length):
    """`z += step v h`."""
    row, zs, vs = H[place : place + length], z[:length], v[:length]
    for j in range(row.size):
        zs[j] += step * vs[j] * row[j]


@helper
def _begin(row, apart, delta, together, z, v):
    """Weights v, weighted residuals `z = v r`, and `apart`, 1 for the entries that count one by one: all, or where
    zeros are counted `together` the nonzeros, and y is set to 0 elsewhere. Returns how many these are."""
    x, y = row.x, row.y
    one, zero, found = x.dtype.type(1), x.dtype.type(0), 0
    for j in range(row.extent[2]):
        apart[j] = zero if together and x[j] == 0 else one
        found += x[j] != 0
        y[j] *= apart[j]
        r = x[j] - y[j]
        v[j] = apart[j] / max(abs(r), delta)
        z[j] = v[j] * r
    weigh(row, v)
    weigh(row, z)
    return found if together else row.extent[1]


@helper
def _toll(linear, square, delta):
    """What the zeros of a row of X pull a weight down by: by the model, or by its square."""
    return max(min(linear, square / delta), 0)


@mapped
def _smooth_l1(X, update, panel, totals, rule, number, start, stop):
    A, rank, kind, l1, l2 = update.A, update.A.shape[1], update.A.dtype.type, update.box.l1, rule.l2
    dim, sums, gram = totals.dim, totals.sums, totals.gram
    panel, row, length = room_for(X, panel, rank, longest(X, start, stop))
    y, z, v, m = row.y, aligned(length, A.dtype), aligned(length, A.dtype), aligned(length, A.dtype)
    masses, pulls, covered = aligned(panel.width, A.dtype), aligned(panel.width, A.dtype), aligned(panel.width, A.dtype)
    w, used, around = aligned(rank, A.dtype), no_parts(rank, A.dtype), aligned(rank, A.dtype)
    H, parts, places, c, out, deltas = panel.H, used.parts, used.places, used.c, update.out, rule.deltas
    # zeros that are listed count as the others, unless these have another weight
    together = rule.together and X.weights.size == 0 and (X.full or X.unlisted == 1)
    for i in range(start, stop):
        (low, high), delta = bounds_of(update.box, i), deltas[i]
        _, length = read_row(X, i, panel, row)
        for k in range(rank):
            w[k] = A[i, k]
        take_parts(w, row, panel, used)
        zeros = _begin(row, m, delta, together, z, v) < dim and rule.together and rule.zero > 0
        # weights at 0 that are not pulled up are left alone
        sums_of(z, row, panel, pulls)
        if zeros:
            sums_of(m, row, panel, masses)
            sums_of(y, row, panel, covered)
            around[:] = 0
            for p in range(used.number[0]):
                around += c[p] * gram[parts[p]]
        for k in range(rank):
            if zeros:
                pulls[k] -= rule.zero * _toll(sums[k] - masses[k], around[k] - covered[k], delta)
            pulls[k] = l1 - pulls[k] if low[k] >= 0 else -1
        n_parts = join_parts(w, pulls, 0, low, high, row, panel, used)
        for p in range(n_parts):
            k, place, a = parts[p], places[p], c[p]
            zh, q = moments(z, v, H, place, length)
            g, q = zh - l1 - l2 * a, q + l2
            if zeros:
                yh, hh = moments(y, m, H, place, length)
                linear, square = sums[k] - masses[k], around[k] - yh
                g -= rule.zero * _toll(linear, square, delta)
                q += rule.zero * max(gram[k, k] - hh, 0) / delta if square < linear * delta else 0
            new = kind(min(max(a + g / q, low[k]), high[k])) if q > 0 else a
            if new != a:
                step, c[p], w[k] = new - a, new, new
                _shift(z, v, H, place, -step, length)
                if zeros:
                    _shift(y, m, H, place, step, length)
                    for other in range(rank):
                        around[other] += step * gram[k, other]
        for k in range(rank):
            out[i, k] = w[k]


def smooth_l1(X, A, others, box, l2, together, deltas):
    """One sweep over each row, every weight to the minimum of its parabola, `deltas` given for each row. `together`
    (nonnegative factors): the zeros of a row count by the square of the model or by the model, whichever pulls less."""
    kind, rows, (l1, lower, upper) = A.dtype.type, np.arange(A.shape[0]), box
    B, update = others.B, update_of(A, (kind(l1), lower, upper), rows)
    panel, dim = panel_of(X, B, X.full), min(math.prod(len(F) for F in others.all_factors), 1 << 62)
    totals = Totals(dim, others.sums().astype(kind), others.gram().astype(kind))
    rule = Rule(kind(l2), kind(1 if X.full else X.unlisted), together, deltas.astype(kind))
    over(_smooth_l1, tasks(X, B, X.full, rows, 4 * A.shape[1]), X, update, panel, totals, rule)
    return (update.out,), ()
