"""The L1 loss with its kinks rounded off: the rows of one factor, one entry at a time.

Differences below delta count by their square, `r^2 / (2 delta)`, others as before, `|r| - delta / 2` (Huber). At any
point that lies below a parabola of weight `1 / max(|r|, delta)`, the minimum of which is the next point.
"""

import numpy as np

from .. import threads
from .base import aligned, compiled
from .products import padded
from .rows import gather_sums, join_parts, panel_of, read_row, room_for, sums_of, take_parts, tasks


@compiled
def _sums(z, v, y, H, place, length):
    """`sum z h`, `sum v h^2`, `sum y h` and `sum h^2`."""
    zero = H.dtype.type(0)
    zh, vhh, yh, hh = zero, zero, zero, zero
    row, zs, vs, ys = H[place : place + length], z[:length], v[:length], y[:length]
    for j in range(row.size):
        h = row[j]
        zh += zs[j] * h
        vhh += vs[j] * h * h
        yh += ys[j] * h
        hh += h * h
    return zh, vhh, yh, hh


@compiled
def _shift(y, z, v, H, place, step, length):
    """`y += step h`, and what that does to `z = v r`."""
    row, ys, zs, vs = H[place : place + length], y[:length], z[:length], v[:length]
    for j in range(row.size):
        ys[j] += step * row[j]
        zs[j] -= step * vs[j] * row[j]


@compiled
def _toll(linear, square, delta):
    """What the zeros of X that are not listed pull a weight down by: by the model, or by its square."""
    return max(min(linear, square / delta), 0)


@compiled
def _smooth_l1(
    indptr, indices, values, scale, A, B, H, stride, sums, gram, zero_weight, deltas, l1, lower, upper, l2, out,
    start, stop,
):  # fmt: skip
    rank, kind, rows = A.shape[1], A.dtype.type, np.arange(A.shape[0])
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, y, z, v = aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A)
    ones, w, c = np.ones(length, A.dtype), np.empty(rank, A.dtype), np.empty(rank, A.dtype)
    masses, pulls, covered = aligned(B.shape[1], A), aligned(B.shape[1], A), aligned(B.shape[1], A)
    parts, places, around = np.empty(rank, np.int64), np.empty(rank, np.int64), np.zeros(rank, A.dtype)
    masses[:rank] = sums
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for i in range(start, stop):
        low, high, delta = lower[i * lower_step], upper[i * upper_step], deltas[i]
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        n_parts = take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        for j in range(length):
            r = x[j] - y[j]
            v[j] = 1 / max(abs(r), delta)
            z[j] = v[j] * r
        # weights at 0 that are not pulled up are left alone
        sums_of(z, indices, first, n, length, whole, B, H, stride, pulls)
        if indices is not None:
            gather_sums(ones, indices, first, n, B, masses)
            gather_sums(y, indices, first, n, B, covered)
            around[:] = 0
            for p in range(n_parts):
                around += c[p] * gram[parts[p]]
        for k in range(rank):
            pulls[k] -= zero_weight * _toll(sums[k] - masses[k], around[k] - covered[k], delta)
            pulls[k] = l1 - pulls[k] if low[k] >= 0 else -1
        n_parts = join_parts(w, pulls, high, indices, first, n, length, whole, B, H, stride, parts, places, c, n_parts)
        for p in range(n_parts):
            k, place, a = parts[p], places[p], c[p]
            zh, q, yh, hh = _sums(z, v, y, H, place, length)
            g, q = zh - l1 - l2 * a, q + l2
            linear, square = sums[k] - masses[k], around[k] - yh
            g -= zero_weight * _toll(linear, square, delta)
            q += zero_weight * max(gram[k, k] - hh, 0) / delta if square < linear * delta else 0
            new = kind(min(max(a + g / q, low[k]), high[k])) if q > 0 else a
            if new != a:
                step, c[p], w[k] = new - a, new, new
                _shift(y, z, v, H, place, step, length)
                for other in range(rank):
                    around[other] += step * gram[k, other]
        for k in range(rank):
            out[i, k] = w[k]


def smooth_l1(rows_of_X, scale, A, B, box, l2, zero_weight, deltas):
    """One sweep over each row, every weight to the minimum of its parabola, `deltas` given for each row. Zeros of X
    that are not listed count by the square of the model or by the model, whichever pulls less."""
    kind, out = A.dtype.type, np.empty_like(A)
    sums, gram = B.sum(axis=0, dtype=np.float64).astype(kind), (B.T @ B).astype(kind)
    panel, wide = panel_of(rows_of_X, B, 1), padded(B, kind(1))
    l1, lower, upper = box
    threads.run(
        lambda i, j: _smooth_l1(
            *(*rows_of_X, kind(scale), A, wide, *panel, sums, gram, kind(zero_weight), deltas.astype(kind)),
            *(kind(l1), lower, upper, kind(l2), out, i, j),
        ),
        tasks(rows_of_X, B, 1, np.arange(A.shape[0]), 4 * A.shape[1]),
    )
    return out
