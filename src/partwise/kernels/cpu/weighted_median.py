"""Weighted medians: the rows of one factor under the L1 loss, one entry at a time.

With all else held, the objective in one weight a of a row is

    sum_j |r_j - (a - a_0) h_j| + cost |a| + l2 / 2 a^2,

r the residual at its present value a_0, over the listed entries of X; entries that are not listed are zeros, and with
factors >= 0 all they do is to add to the cost (Vandaele, Moutier and Gillis 2022). It is convex, and between the
breakpoints `a_0 + r_j / h_j` its slope does not jump: the best value is a weighted median.
"""

import numpy as np

from .. import threads
from .base import aligned, compiled, result_for
from .products import padded
from .rows import gather_panel, gather_sums, panel_of, read_row, room_for, tasks
from .simd import combine

ROUNDS = 64  # of a selection, before what is left is sorted
NOTHING = 2.0**-27  # of the sum of a row of X: a weight that could gain less is at its best value
ROUGH, ROUGH_SINGLE = 2.0**-40, 2.0**-18  # a residual below this share of its terms is rounding


@compiled
def _partition(t, h, begin, end):
    """Rearrange t and h so that what is below a pivot comes first and what is above it last; returns the pivot, the
    ends of both stretches, and the weights below it and at it."""
    a, b, c = t[begin], t[(begin + end) // 2], t[end - 1]
    pivot = max(min(a, b), min(max(a, b), c))
    lower, upper, place, less, equal = begin, end, begin, 0.0, 0.0
    while place < upper:
        value, mass = t[place], h[place]
        if value > pivot:
            upper -= 1
            t[place], h[place] = t[upper], h[upper]
            t[upper], h[upper] = value, mass
            continue
        if value < pivot:
            less += mass
            t[place], h[place] = t[lower], h[lower]
            t[lower], h[lower] = value, mass
            lower += 1
        else:
            equal += mass
        place += 1
    return pivot, lower, upper, less, equal


@compiled
def select(t, h, n, need, l2, rounds=ROUNDS):
    """The smallest s with `2 sum_{t_j <= s} h_j + l2 s >= need`, for t, h >= 0 and need > 0: in linear time, expected.

    t and h are rearranged; after `rounds` partitions what is left is sorted. Where rounding leaves no such s it is the
    largest t.
    """
    begin, end, below, least, most = 0, n, 0.0, 0.0, np.inf
    for turn in range(rounds + n):
        if begin == end:
            break
        if turn == rounds:  # bad luck with the pivots: in order, the next one is the first
            order = np.argsort(t[begin:end])
            t[begin:end], h[begin:end] = t[begin:end][order], h[begin:end][order]
        if turn < rounds:
            pivot, lower, upper, less, equal = _partition(t, h, begin, end)
        else:
            pivot, lower, upper, less, equal = t[begin], begin, begin + 1, 0.0, np.float64(h[begin])
        if 2 * (below + less) + l2 * pivot >= need:
            end, most = lower, pivot
        elif 2 * (below + less + equal) + l2 * pivot >= need:
            return np.float64(pivot)
        else:
            begin, below, least = upper, below + less + equal, np.float64(pivot)
    between = (need - 2 * below) / l2 if l2 > 0 else np.inf
    between = max(min(between, most), least)
    return between if between < np.inf else least


@compiled
def _pulls(z, H, place, length):
    """`sum z h`, z the signs of the residual, and `sum |h|` over entries with none."""
    pull, still, one = H.dtype.type(0), H.dtype.type(0), H.dtype.type(1)
    row, signs = H[place : place + length], z[:length]
    for j in range(row.size):
        pull += signs[j] * row[j]
        still += (one - abs(signs[j])) * abs(row[j])
    return np.float64(pull), np.float64(still)


@compiled
def _shift(x, r, z, H, place, step, length, rough):
    """`r -= step h`, and its signs."""
    zero, one, rough = r.dtype.type(0), r.dtype.type(1), r.dtype.type(rough)
    row, entries, rest, signs = H[place : place + length], x[:length], r[:length], z[:length]
    for j in range(row.size):
        left = rest[j] - step * row[j]
        least = rough * (abs(entries[j]) + abs(entries[j] - left))
        rest[j] = left
        signs[j] = one if left > least else (-one if left < -least else zero)


@compiled
def _breakpoints(side, r, z, H, place, n, t, h):
    """List `|r_j / h_j|` and `|h_j|` of the entries that pull to one side; returns how many they are."""
    found, row, rest, signs = 0, H[place : place + n], r[:n], z[:n]
    for j in range(row.size):
        # written in any case, and over the next time if it does not count: no branch that goes either way
        t[found], h[found] = abs(rest[j] / row[j]), abs(row[j])
        found += side * signs[j] * row[j] > 0
    return found


@compiled
def _median(a, mass, cost, l2, low, high, r, z, H, place, n, length, t, h, rough):
    """The best value of a weight between its bounds, or its present one where that is as good, and at most how much it
    gains. `mass` is `sum |h|`."""
    pull, still = _pulls(z, H, place, length)
    if a == 0:
        still += cost
    else:
        pull -= (cost if a > 0 else -cost) + l2 * a
    side = 1 if pull > 0 else -1
    need = side * pull - still
    if need <= rough * (mass + cost) or a == (high if side > 0 else low):
        return a, 0.0
    found = _breakpoints(side, r, z, H, place, n, t, h)
    if cost > 0 and a * side < 0:
        t[found], h[found] = abs(a), cost
        found += 1
    new = a + side * select(t, h, found, need, l2)
    new = min(max(new if abs(new) > rough * abs(a) else 0.0, low), high)
    return new, need * abs(new - a)


@compiled
def _better_end(a, mass, cost, l2, low, high, r, H, place, length, rough):
    """The better of two values, or the present one where both are as good, and how much it gains."""
    other = low if a == high else high
    step, change = other - a, cost * (abs(other) - abs(a)) + l2 / 2 * (other * other - a * a)
    row, rest = H[place : place + length], r[:length]
    for j in range(row.size):
        change += abs(rest[j] - step * row[j]) - abs(rest[j])
    if change < -rough * (mass + cost) * abs(step):
        return other, -change
    return a, 0.0


@compiled
def _take(A, i, sums, masses, zero_weight, l1, low, high, whole, stride, parts, places, c, costs):
    """List the weights of a row that are not 0 or might not stay so, and what every weight costs; returns how many are
    listed, and what the zeros of X that are not listed cost.

    A weight at 0 stays there, whatever the residual, if what it costs is as much as all that it covers.
    """
    n_parts, paid = 0, 0.0
    for k in range(A.shape[1]):
        away = 0.0 if whole else zero_weight * max(np.float64(sums[k]) - np.float64(masses[k]), 0.0)
        costs[k] = away + l1
        paid += away * A[i, k]
        if A[i, k] != 0 or (masses[k] > costs[k] and low[k] < high[k]):
            parts[n_parts], places[n_parts], c[n_parts] = k, (k if whole else n_parts) * stride, A[i, k]
            n_parts += 1
    return n_parts, paid


@compiled
def _sweep(
    c, parts, places, n_parts, masses, costs, l2, low, high, binary, moving, x, r, z, H, n, length, t, h, rough, nothing
):
    """Every listed weight to its best value where `moving`; returns how many were not there."""
    unsettled = 0
    for p in range(n_parts):
        k, place, a = parts[p], places[p], c[p]
        if low[k] == high[k]:
            continue
        rule = np.float64(masses[k]), costs[k], l2, low[k], high[k]
        if binary:
            new, gain = _better_end(a, *rule, r, H, place, length, rough)
        else:
            new, gain = _median(a, *rule, r, z, H, place, n, length, t, h, rough)
        new = c.dtype.type(new)
        if new != a:
            unsettled += gain > nothing
            if moving:
                c[p] = new
                _shift(x, r, z, H, place, new - a, length, rough)
    return unsettled


@compiled
def _weighted_median(
    indptr,
    indices,
    values,
    scale,
    A,
    B,
    H,
    stride,
    sums,
    zero_weight,
    l1,
    lower,
    upper,
    l2,
    binary,
    sweeps,
    rows,
    out,
    unsettled,
    start,
    stop,
):
    """Returns the loss after the update."""
    rank, rough = A.shape[1], (ROUGH_SINGLE if A.itemsize == 4 else ROUGH)
    H, stride, whole, length = room_for(indptr, A, B, H, stride, rows, start, stop)
    x, r, z, ones = aligned(length, A), aligned(length, A), aligned(length, A), np.ones(length, A.dtype)
    t, h, c, masses = (
        np.empty(length + 1, A.dtype),
        np.empty(length + 1, A.dtype),
        np.empty(rank, A.dtype),
        aligned(B.shape[1], A),
    )
    parts, places, costs, loss = np.empty(rank, np.int64), np.empty(rank, np.int64), np.empty(rank), 0.0
    lower_step, upper_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    masses[:rank] = sums
    for row in range(start, stop):
        i = rows[row]
        low, high = lower[i * lower_step], upper[i * upper_step]
        first, n, length = read_row(indptr, indices, values, scale, i, whole, B.shape[0], x)
        if indices is not None:
            gather_sums(ones, indices, first, n, B, masses)
        n_parts, paid = _take(A, i, sums, masses, zero_weight, l1, low, high, whole, stride, parts, places, c, costs)
        if indices is not None:
            gather_panel(indices, first, n, B, parts, 0, n_parts, H, stride, length)
        combine(c, places, n_parts, H, length, r)
        nothing = 0.0
        for j in range(length):
            r[j] = x[j] - r[j]
        for j in range(length):
            nothing += abs(x[j])
        _shift(x, r, z, H, 0, A.dtype.type(0), length, rough)
        for sweep in range(max(sweeps, 1)):
            left = _sweep(
                *(c, parts, places, n_parts, masses, costs, l2, low, high, binary, sweeps > 0),
                *(x, r, z, H, n, length, t, h, rough, NOTHING * nothing),
            )
            unsettled[i] = left if sweep == 0 else unsettled[i]
            if left == 0:
                break
        out[i] = A[i]
        for p in range(n_parts):
            paid += (costs[parts[p]] - l1) * (np.float64(c[p]) - out[i, parts[p]])
            out[i, parts[p]] = c[p]
        for j in range(n):
            paid += abs(r[j])
        loss += paid
    return loss


def weighted_median(rows_of_X, scale, A, B, box, l2, zero_weight, binary, sweeps, rows):
    """At most `sweeps` times over each row, every weight to its best value; binary: to the better of its two bounds.
    With 0 sweeps nothing moves. Entries of X that are not listed count `zero_weight`, and need factors >= 0.

    Also returns how many weights of each row were not at their best value, and the loss of these rows afterwards."""
    kind, out, unsettled = A.dtype.type, result_for(A, rows), np.zeros(A.shape[0], np.int64)
    sums = np.abs(B).sum(axis=0, dtype=np.float64).astype(A.dtype)
    panel, wide = panel_of(rows_of_X, B, 1), padded(B, kind(1))
    l1, lower, upper = box
    loss = threads.run(
        lambda i, j: _weighted_median(
            *(*rows_of_X, kind(scale), A, wide, *panel, sums, float(zero_weight)),
            *(float(l1), lower, upper, float(l2), binary, sweeps, rows, out, unsettled, i, j),
        ),
        tasks(rows_of_X, B, 1, rows, 4 * A.shape[1]),
    )
    return out, unsettled, sum(loss)


@compiled
def _residuals(indptr, indices, values, scale, A, B, out, start, stop):
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            j = p - indptr[i] if indices is None else indices[p]
            total = values[p] * scale
            for k in range(A.shape[1]):
                total -= A[i, k] * B[j, k]
            out[p] = total


def residuals(rows_of_X, scale, A, B):
    """`x - sum_k a_ik b_jk` at the listed entries of X."""
    out = np.empty(rows_of_X[2].size, A.dtype)
    threads.run(
        lambda i, j: _residuals(*rows_of_X, A.dtype.type(scale), A, B, out, i, j),
        tasks(rows_of_X, B, 1, np.arange(A.shape[0]), A.shape[1]),
    )
    return out
