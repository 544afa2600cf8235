"""Newton coordinate descent for KL: the rows of one factor, one entry at a time."""

import numpy as np

from .. import threads
from .base import aligned, compiled, result_for
from .products import padded
from .rows import divergence, join_parts, panel_of, read_row, rescue, room_for, sums_of, take_parts, tasks, unreached
from .simd import combine, moments, pull, renew

KEPT = 2.0**-6  # of a model: where less may be left, it is summed anew, since its rounding is that of what it was
SAFE = 0.65  # of an entry: a Newton step down by at most this share of it cannot raise the objective


@compiled
def _sweep(c, parts, places, n_parts, slope, l2, low, high, x, y, z, v, H, length, kept, gains):
    """One Newton step on each weight of a row; what they could gain is added to `gains`, and returned in all, with what
    is `kept` of the model at least since it was summed. In a sweep it falls by no more than the weight that falls most.

    A weight goes nearer to its best value and stays on the same side of it, or it gains for sure. Its slope rises and
    is concave. Below the root neither Newton's point nor the multiplicative one overshoots. Above it Newton's does;
    up to `SAFE` of the weight it still gains (self-concordance: h / y <= 1 / weight); beyond, the chord between the
    two points meets 0 above the root, as does the multiplicative point.
    """
    gained, least = 0.0, 1.0
    for p in range(n_parts):
        k, place, a = parts[p], places[p], c[p]
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
            if l2 == 0 and slope[k] > 0:
                new = min(max(new, a * num / slope[k]), hi)
        elif -step > SAFE * a:
            there = slope[k] + l2 * new - pull(x, y, H, place, step, length)
            if there < 0:
                new -= step * (there / (there - g))
                if l2 == 0:
                    new = max(min(new, a * num / slope[k]), lo)
        if new != a:
            c[p] = new
            if new * kept < KEPT * a:
                combine(c, places, n_parts, H, length, y)
                kept, least, new = 1.0, 1.0, a
            elif new < least * a:
                least = new / a
            renew(x, y, H, place, new - a, length, z, v)
    return gained, kept * least


@compiled
def _newton_kl(
    indptr, indices, values, scale, A, B, H, stride, sums, l1, lower, upper, l2, sweeps, eps, rows, out, start, stop
):
    """Returns what each component could have gained, and `sum x log(x / y) - x` after the update."""
    rank = A.shape[1]
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, y, z, v = aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A)
    w, c, pulls = np.empty(rank, A.dtype), np.empty(rank, A.dtype), aligned(B.shape[1], A)
    parts, places, slope = np.empty(rank, np.int64), np.empty(rank, np.int64), sums + l1
    costs, gains, further, loss = slope + l2, np.zeros(rank), np.zeros(rank), 0.0
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for t in range(start, stop):
        i = rows[t]
        low, high = lower[i * lower_step], upper[i * upper_step]
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        n_parts = take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        if unreached(x, y, n):
            n_parts = rescue(
                *(w, A, i, n, first, length, indices, whole, B, H, stride, 1.0, slope, l2, costs),
                *(low, high, parts, places, c, n_parts, x, y),
            )
        renew(x, y, H, 0, A.dtype.type(0), length, z, v)
        # weights at 0 whose slope keeps them there are left alone until the next visit
        sums_of(z, indices, first, n, length, whole, B, H, stride, pulls)
        for k in range(rank):
            pulls[k] = slope[k] - pulls[k]
        n_parts = join_parts(w, pulls, high, indices, first, n, length, whole, B, H, stride, parts, places, c, n_parts)
        most, kept = _sweep(c, parts, places, n_parts, slope, l2, low, high, x, y, z, v, H, length, 1.0, gains)
        for _ in range(1, sweeps):
            gained, kept = _sweep(c, parts, places, n_parts, slope, l2, low, high, x, y, z, v, H, length, kept, further)
            most = max(most, gained)
            if gained <= eps * most:
                break
        for p in range(n_parts):
            w[parts[p]] = c[p]
        for k in range(rank):
            out[i, k] = w[k]
        combine(c, places, n_parts, H, length, y)
        loss += divergence(x, y, n, 1.0)
    return gains, loss


def newton_kl(rows_of_X, scale, A, B, box, l2, inner, rows):
    """Cyclic Newton steps on the entries of each row (Hsieh and Dhillon 2011, Algorithm 2): `inner = (sweeps, eps)`, at
    most so many, until one gains at most `eps` of the best one. X is given by the rows of its unfolding, `(indptr,
    indices or None where all entries are there, values)`, to be multiplied by `scale`; B is the other factor.

    Also returns `gain_columns` as found on the way, and the loss of these rows after the update, but for `sum Y`."""
    kind, out = A.dtype.type, result_for(A, rows)
    sums = B.sum(axis=0, dtype=np.float64).astype(A.dtype)
    panel, wide = panel_of(rows_of_X, B, 1), padded(B, kind(1))
    gains, losses = zip(
        *threads.run(
            lambda i, j: _newton_kl(
                *rows_of_X, kind(scale), A, wide, *panel, sums, *box, kind(l2), *inner, rows, out, i, j
            ),
            tasks(rows_of_X, B, 1, rows, 4 * A.shape[1]),
        )
    )
    return out, np.sum(gains, axis=0), sum(losses)
