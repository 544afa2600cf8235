"""Numba kernels for NumPy arrays.

The functions without a leading underscore are what solvers, data and structures call; they split the rows
over threads. The compiled bodies are module-level functions of arrays and scalars, cached on disk.

Common arguments of the block updates, for one factor `A` (dim, rank) with the others held:
`G` the gradient of the smooth part at A, kept current; `gram` (rank, rank), symmetric, ridge included;
`l1` the weight of |A|; `lower`, `upper` bounds, (dim, rank) or one row for all; `rows` the rows to update.
"""

import numpy as np
from numba import njit

from . import threads

LANES = 64  # rows that one cyclic update carries along, so that its inner loops fill vector registers
PAD = 8  # greedy rows are padded to whole vectors
SUM_ROWS = 4096  # rows per partial sum: fixed, so that sums do not depend on the number of threads

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz", "reassoc", "nnan"})


alone = threads.blas.on_one_thread  # a context in which kernels have the cores to themselves


# -- sparse products ------------------------------------------------------------------------------------------


@compiled
def _sparse_product(indptr, indices, values, B, out, start, stop):
    for i in range(start, stop):
        row = out[i]
        row[:] = 0
        first, last = indptr[i], indptr[i + 1]
        # four at a time: the row is read and written once for four of its entries
        for p in range(first, last - 3, 4):
            a, b, c, d = values[p], values[p + 1], values[p + 2], values[p + 3]
            u, v, w, z = B[indices[p]], B[indices[p + 1]], B[indices[p + 2]], B[indices[p + 3]]
            for k in range(row.size):
                row[k] += a * u[k] + b * v[k] + c * w[k] + d * z[k]
        for p in range(last - (last - first) % 4, last):
            value, source = values[p], B[indices[p]]
            for k in range(row.size):
                row[k] += value * source[k]


def sparse_product(rows, B):
    """`S @ B` for a sparse S given by its rows `(indptr, indices, values)`, tasks balanced by nonzeros."""
    indptr, indices, values = rows
    B = np.ascontiguousarray(B)
    out = np.empty((indptr.size - 1, B.shape[1]), dtype=B.dtype)
    # a row costs a little even when empty
    work = indptr + np.arange(indptr.size)
    n_chunks = max(1, min(8 * threads.count(), int(work[-1]) * B.shape[1] // threads.CHUNK_WORK))
    boundaries = np.searchsorted(work, np.linspace(0, work[-1], n_chunks + 1))
    threads.run(lambda i, j: _sparse_product(indptr, indices, values, B, out, i, j), boundaries)
    return out


# -- one coordinate, and how far it is from its best value ------------------------------------------------


@compiled
def _best(a, g, inverse, threshold, lower, upper):
    """The minimiser in [lower, upper] of `g (x - a) + d/2 (x - a)^2 + l1 |x|`, with 1/d and l1/d given."""
    u = a - inverse * g
    x = u - min(max(u, -threshold), threshold)
    return min(max(x, lower), upper)


@compiled
def _curvature(d, l1):
    """`1 / d` and `l1 / d` of each coordinate; where d = 0 only the penalty acts."""
    inverse, threshold = np.zeros_like(d), np.zeros_like(d)
    for k in range(d.size):
        if d[k] > 0:
            inverse[k] = 1 / d[k]
            threshold[k] = l1 * inverse[k]
        elif l1 > 0:
            threshold[k] = np.inf
    return inverse, threshold


@compiled
def _gain(a, x, g, d, l1):
    """By how much `g (x - a) + d/2 (x - a)^2 + l1 |x|` at x is below its value at a."""
    s = x - a
    return -s * (g + d * s / 2) - l1 * (abs(x) - abs(a))


@compiled
def _gain_columns(A, G, d, l1, lower, upper, start, stop):
    inverse, threshold = _curvature(d, l1)
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    sums = np.zeros(A.shape[1])
    for i in range(start, stop):
        low, high = lower[i * lower_step], upper[i * upper_step]
        for k in range(sums.size):
            a, g = np.float64(A[i, k]), np.float64(G[i, k])  # squares of float32 may underflow
            x = _best(a, g, inverse[k], threshold[k], low[k], high[k])
            sums[k] += max(_gain(a, x, g, d[k], l1), 0)
    return sums


def gain_columns(A, G, d, box):
    """By how much the objective falls if each entry of a column goes to its best value, the others held: (rank,),
    with `d` (rank,) the second derivatives."""
    boundaries = np.append(np.arange(0, A.shape[0], SUM_ROWS), A.shape[0])
    return np.sum(threads.run(lambda i, j: _gain_columns(A, G, d, *box, i, j), boundaries), axis=0)


@compiled
def _gain_rows(A, G, d, l1, lower, upper, out, start, stop):
    inverse, threshold = _curvature(d, l1)
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for i in range(start, stop):
        low, high = lower[i * lower_step], upper[i * upper_step]
        out[i] = 0
        for k in range(d.size):
            a, g = np.float64(A[i, k]), np.float64(G[i, k])
            x = _best(a, g, inverse[k], threshold[k], low[k], high[k])
            out[i] = max(out[i], _gain(a, x, g, d[k], l1))


def gain_rows(A, G, d, box):
    """The largest such gain of one entry in each row, (dim,)."""
    out = np.empty(A.shape[0])
    threads.run(lambda i, j: _gain_rows(A, G, d, *box, out, i, j), threads.even(*A.shape))
    return out


# -- block updates ---------------------------------------------------------------------------------------


@compiled
def _hals_coordinate(k, a, g, lo, hi, curvature, l1, live, step, gain):
    """Coordinate k of every lane to its best value; `step` is how far it went. Returns the distance, summed."""
    inverse, threshold, d = curvature
    moved = a.dtype.type(0)
    for b in range(step.size):
        old, slope = a[k, b], g[k, b]
        x = _best(old, slope, inverse, threshold, lo[k, b], hi[k, b])
        x = x if live[b] > 0 else old
        a[k, b] = x
        step[b] = x - old
        gain[b] += _gain(old, x, slope, d, l1)
    for b in range(step.size):
        moved += abs(step[b])
    return moved


@compiled
def _hals_sweep(a, g, lo, hi, gram, l1, order, inverse, threshold, live, step, gain):
    for k in order:
        curvature = inverse[k], threshold[k], gram[k, k]
        if _hals_coordinate(k, a, g, lo, hi, curvature, l1, live, step, gain) > 0:
            # trip counts are left to run time: the compiler would unroll a constant one instead of using vectors
            for j in range(g.shape[0]):
                weight = gram[k, j]
                for b in range(step.size):
                    g[j, b] += step[b] * weight


@compiled
def _hals(A, G, gram, l1, lower, upper, order, sweeps, eps, rows, start, stop):
    rank, kind = A.shape[1], A.dtype
    inverse, threshold = _curvature(np.diag(gram), l1)
    a, g = np.zeros((rank, LANES), kind), np.zeros((rank, LANES), kind)
    lo, hi = np.zeros((rank, LANES), kind), np.zeros((rank, LANES), kind)
    step, live, gain, first = (
        np.zeros(LANES, kind),
        np.zeros(LANES, kind),
        np.zeros(LANES, kind),
        np.zeros(LANES, kind),
    )
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for block in range(start, stop, LANES):
        size = min(LANES, stop - block)
        live[:] = 0
        live[:size] = 1
        for b in range(size):
            i = rows[block + b]
            for k in range(rank):
                a[k, b], g[k, b] = A[i, k], G[i, k]
                lo[k, b], hi[k, b] = lower[i * lower_step, k], upper[i * upper_step, k]
        for sweep in range(sweeps):
            gain[:] = 0
            _hals_sweep(a, g, lo, hi, gram, l1, order, inverse, threshold, live, step, gain)
            if sweep == 0:
                first[:] = gain
            alive = 0
            for b in range(size):
                live[b] = live[b] if gain[b] > eps * first[b] else kind.type(0)
                alive += live[b] > 0
            if alive == 0:
                break
        for b in range(size):
            i = rows[block + b]
            for k in range(rank):
                A[i, k], G[i, k] = a[k, b], g[k, b]


def hals(A, G, gram, box, order, inner, rows):
    """Cyclic coordinate descent on each row: `inner = (sweeps, eps)`, at most `sweeps` over the components in
    `order`, fewer once a sweep of the row gains at most `eps` times what its first one did."""
    l1, lower, upper = box
    sweeps, eps = inner
    boundaries = threads.even(rows.size, A.shape[1] ** 2 * min(sweeps, 8))
    boundaries[1:-1] -= boundaries[1:-1] % LANES
    threads.run(
        lambda i, j: _hals(A, G, gram, l1, lower, upper, order, sweeps, A.dtype.type(eps), rows, i, j),
        boundaries,
    )


@compiled
def _gains(a, g, d, inverse, threshold, lo, hi, l1, target, gain):
    """Best value of each coordinate of a row and the decrease it brings; returns the largest decrease."""
    best = a.dtype.type(0)
    for k in range(a.size):
        x = _best(a[k], g[k], inverse[k], threshold[k], lo[k], hi[k])
        target[k] = x
        gain[k] = _gain(a[k], x, g[k], d[k], l1)
    for k in range(a.size):
        best = max(best, gain[k])
    return best


@compiled
def _gcd(A, G, gram, l1, lower, upper, eps, largest, budget, rows, start, stop):
    """With budget 0: only the largest gain over the rows. `eps * max(largest, the row's own)` ends a row
    (`largest` is 0 when rows stand for themselves)."""
    rank = A.shape[1]
    width = (rank + PAD - 1) // PAD * PAD
    kind = A.dtype
    inverse, threshold = np.zeros(width, kind), np.zeros(width, kind)
    inverse[:rank], threshold[:rank] = _curvature(np.diag(gram), l1)
    padded = np.zeros((rank, width), kind)
    padded[:, :rank] = gram
    d = np.zeros(width, kind)
    a, g, lo, hi = np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind), np.zeros(width, kind)
    target, gain = np.zeros(width, kind), np.zeros(width, kind)
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for k in range(rank):
        d[k] = gram[k, k]
    top = kind.type(0)
    for t in range(start, stop):
        i = rows[t]
        a[:rank], g[:rank] = A[i], G[i]
        lo[:rank], hi[:rank] = lower[i * lower_step], upper[i * upper_step]
        best = _gains(a, g, d, inverse, threshold, lo, hi, l1, target, gain)
        top = max(top, best)
        limit = eps * largest if largest > 0 else eps * best
        for _ in range(budget):
            if best <= limit:
                break
            k = 0
            while k < rank - 1 and gain[k] != best:
                k += 1
            s = target[k] - a[k]
            a[k] = target[k]
            line = padded[k]
            for j in range(width):
                g[j] += s * line[j]
            best = _gains(a, g, d, inverse, threshold, lo, hi, l1, target, gain)
        A[i], G[i] = a[:rank], g[:rank]
    return top


def gcd(A, G, gram, box, rows, inner, shared):
    """Greedy coordinate descent on each row (Hsieh and Dhillon 2011): `inner = (updates, eps)`, take the best
    coordinate at most `updates` times, until it gains at most `eps` times the largest gain at the start, over
    all rows (`shared`) or of the row itself."""
    l1, lower, upper = box
    updates, eps = inner
    kind = A.dtype.type
    boundaries = threads.even(rows.size, A.shape[1] ** 2)

    def sweep(largest, budget):
        return threads.run(
            lambda i, j: _gcd(A, G, gram, l1, lower, upper, kind(eps), largest, budget, rows, i, j),
            boundaries,
        )

    largest = kind(max(sweep(kind(0), 0))) if shared else kind(0)
    if largest > 0 or not shared:
        sweep(largest, updates)


@compiled
def _mu(A, product, cross, l1, lower, upper, rows, start, stop):
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for t in range(start, stop):
        i = rows[t]
        for k in range(A.shape[1]):
            denominator = product[i, k] + l1
            x = A[i, k] * cross[i, k] / denominator if denominator > 0 else A[i, k]
            A[i, k] = min(max(x, lower[i * lower_step, k]), upper[i * upper_step, k])


def mu(A, product, cross, box, rows):
    """One multiplicative update of each row (Lee and Seung 2001); `product` is `A @ gram`."""
    l1, lower, upper = box
    boundaries = threads.even(rows.size, A.shape[1])
    threads.run(lambda i, j: _mu(A, product, cross, l1, lower, upper, rows, i, j), boundaries)


# -- extrapolation ---------------------------------------------------------------------------------------


@compiled
def _extrapolate(new, old, beta, lower, upper, out, start, stop):
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for i in range(start, stop):
        for k in range(new.shape[1]):
            x = new[i, k] + beta * (new[i, k] - old[i, k])
            out[i, k] = min(max(x, lower[i * lower_step, k]), upper[i * upper_step, k])


def extrapolate(new, old, beta, box):
    """`clip(new + beta (new - old), lower, upper)`."""
    _, lower, upper = box
    out = np.empty_like(new)
    beta = new.dtype.type(beta)
    threads.run(lambda i, j: _extrapolate(new, old, beta, lower, upper, out, i, j), threads.even(*new.shape))
    return out
