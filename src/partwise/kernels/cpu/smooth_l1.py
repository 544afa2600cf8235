"""The L1 loss with its kinks rounded off: the rows of one factor, one entry at a time.

Differences below delta count by their square, `r^2 / (2 delta)`, others as before, `|r| - delta / 2` (Huber). At any
point that lies below a parabola of weight `1 / max(|r|, delta)`, the minimum of which is the next point. Zeros of X
under a nonnegative model are counted together, a row at a time, whether they are listed or not.
"""

import numpy as np

from .. import threads
from .base import aligned, compiled
from .products import padded
from .rows import join_parts, panel_of, read_row, room_for, sums_of, take_parts, tasks
from .simd import moments


@compiled
def _shift(z, v, H, place, step, length):
    """`z += step v h`."""
    row, zs, vs = H[place : place + length], z[:length], v[:length]
    for j in range(row.size):
        zs[j] += step * vs[j] * row[j]


@compiled
def _begin(x, y, m, delta, together, z, v, length):
    """Weights v, weighted residuals `z = v r`, and m, 1 for the entries that count one by one: all, or where zeros are
    counted `together` the nonzeros, and y is set to 0 elsewhere. Returns how many these are."""
    one, zero, found = x.dtype.type(1), x.dtype.type(0), 0
    for j in range(length):
        m[j] = zero if together and x[j] == 0 else one
        found += x[j] != 0
        y[j] *= m[j]
        r = x[j] - y[j]
        v[j] = m[j] / max(abs(r), delta)
        z[j] = v[j] * r
    return found


@compiled
def _toll(linear, square, delta):
    """What the zeros of a row of X pull a weight down by: by the model, or by its square."""
    return max(min(linear, square / delta), 0)


@compiled
def _smooth_l1(
    indptr, indices, values, scale, A, B, H, stride, sums, gram, zero_weight, together, deltas, l1, lower, upper, l2,
    out, start, stop,
):  # fmt: skip
    rank, kind, rows = A.shape[1], A.dtype.type, np.arange(A.shape[0])
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, y, z, v = aligned(length, A), aligned(length, A), aligned(length, A), aligned(length, A)
    m, w, c = aligned(length, A), np.empty(rank, A.dtype), np.empty(rank, A.dtype)
    masses, pulls, covered = aligned(B.shape[1], A), aligned(B.shape[1], A), aligned(B.shape[1], A)
    parts, places, around = np.empty(rank, np.int64), np.empty(rank, np.int64), np.zeros(rank, A.dtype)
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for i in range(start, stop):
        low, high, delta = lower[i * lower_step], upper[i * upper_step], deltas[i]
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        for k in range(rank):
            w[k] = A[i, k]
        n_parts = take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        zeros = _begin(x, y, m, delta, together, z, v, length) < B.shape[0] and together
        # weights at 0 that are not pulled up are left alone
        sums_of(z, indices, first, n, length, whole, B, H, stride, pulls)
        if zeros:
            sums_of(m, indices, first, n, length, whole, B, H, stride, masses)
            sums_of(y, indices, first, n, length, whole, B, H, stride, covered)
            around[:] = 0
            for p in range(n_parts):
                around += c[p] * gram[parts[p]]
        for k in range(rank):
            if zeros:
                pulls[k] -= zero_weight * _toll(sums[k] - masses[k], around[k] - covered[k], delta)
            pulls[k] = l1 - pulls[k] if low[k] >= 0 else -1
        n_parts = join_parts(w, pulls, high, indices, first, n, length, whole, B, H, stride, parts, places, c, n_parts)
        for p in range(n_parts):
            k, place, a = parts[p], places[p], c[p]
            zh, q = moments(z, v, H, place, length)
            g, q = zh - l1 - l2 * a, q + l2
            if zeros:
                yh, hh = moments(y, m, H, place, length)
                linear, square = sums[k] - masses[k], around[k] - yh
                g -= zero_weight * _toll(linear, square, delta)
                q += zero_weight * max(gram[k, k] - hh, 0) / delta if square < linear * delta else 0
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


def smooth_l1(rows_of_X, scale, A, B, box, l2, zero_weight, together, deltas):
    """One sweep over each row, every weight to the minimum of its parabola, `deltas` given for each row. `together`
    (nonnegative factors): the zeros of a row count by the square of the model or by the model, whichever pulls less."""
    kind, out = A.dtype.type, np.empty_like(A)
    sums, gram = B.sum(axis=0, dtype=np.float64).astype(kind), (B.T @ B).astype(kind)
    panel, wide = panel_of(rows_of_X, B, 1), padded(B, kind(1))
    l1, lower, upper = box
    threads.run(
        lambda i, j: _smooth_l1(
            *(*rows_of_X, kind(scale), A, wide, *panel, sums, gram, kind(zero_weight), together, deltas.astype(kind)),
            *(kind(l1), lower, upper, kind(l2), out, i, j),
        ),
        tasks(rows_of_X, B, 1, np.arange(A.shape[0]), 4 * A.shape[1]),
    )
    return out
