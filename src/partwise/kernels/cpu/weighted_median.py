"""Weighted medians: the rows of one factor under the L1 loss, one entry at a time.

With all else held, the objective in one weight a of a row is

    sum_j |r_j - (a - a_0) h_j| + cost |a| + l2 / 2 a^2,

r the residual at its present value a_0, over the listed entries of X, both times the weight of an entry; entries that
are not listed are zeros, and with factors >= 0 all they do is to add to the cost (Vandaele, Moutier and Gillis 2022).
It is convex, and between the breakpoints `a_0 + r_j / h_j` its slope does not jump: the best value is a weighted
median.
"""

from typing import Any, NamedTuple

import numpy as np

from .base import DOUBLE, aligned, bounds_of, helper, update_of
from .panels import panel_of, tasks
from .rows import gather_panel, gather_sums, longest_of, no_parts, read_row, room_for, weigh
from .selection import select
from .simd import combine
from .team import mapped, over, per_task

NOTHING = 2.0**-27  # of the sum of a row of X: a weight that could gain less is at its best value
ROUGH, ROUGH_SINGLE = 2.0**-40, 2.0**-18  # a residual below this share of its terms is rounding


class Rule(NamedTuple):
    """What is done to a row: `weighted_median`."""

    l2: float
    unlisted: float
    binary: bool
    sweeps: int


class Magnitudes(NamedTuple):
    """|B|, and the sums of its columns."""

    B: np.ndarray
    sums: np.ndarray


class Sizes(NamedTuple):
    """Of each component: `sum_j |h_j|` over the listed entries of a row, the same with their weights, and its cost."""

    listed: np.ndarray
    masses: np.ndarray
    costs: np.ndarray


class Left(NamedTuple):
    """A row of X, what its model leaves of it, the signs of that, and room for breakpoints and their weights."""

    x: np.ndarray
    r: np.ndarray
    z: np.ndarray
    t: np.ndarray
    h: np.ndarray
    n: int
    length: int
    rough: float


class Weight(NamedTuple):
    """One weight of a row, and what holds of it; its component is at `H[place:]`."""

    value: Any
    place: int
    mass: float
    cost: float
    l2: float
    low: Any
    high: Any


@helper
def _pulls(left, H, place):
    """`sum z h`, z the signs of the residual, and `sum |h|` over entries with none."""
    pull, still, one = H.dtype.type(0), H.dtype.type(0), H.dtype.type(1)
    row, signs = H[place : place + left.length], left.z[: left.length]
    for j in range(row.size):
        pull += signs[j] * row[j]
        still += (one - abs(signs[j])) * abs(row[j])
    return np.float64(pull), np.float64(still)


@helper
def _shift(left, H, place, step):
    """`r -= step h`, and its signs."""
    zero, one, rough, n = H.dtype.type(0), H.dtype.type(1), H.dtype.type(left.rough), left.length
    row, entries, rest, signs = H[place : place + n], left.x[:n], left.r[:n], left.z[:n]
    for j in range(row.size):
        r = rest[j] - step * row[j]
        least = rough * (abs(entries[j]) + abs(entries[j] - r))
        rest[j] = r
        signs[j] = one if r > least else (-one if r < -least else zero)


@helper
def _breakpoints(side, left, H, place):
    """List `|r_j / h_j|` and `|h_j|` of the entries that pull to one side; returns how many they are."""
    found, n, t, h = 0, left.n, left.t, left.h
    row, rest, signs = H[place : place + n], left.r[:n], left.z[:n]
    for j in range(row.size):
        # written in any case, and over the next time if it does not count: no branch that goes either way
        t[found], h[found] = abs(rest[j] / row[j]), abs(row[j])
        found += side * signs[j] * row[j] > 0
    return found


@helper
def _median(weight, left, H):
    """The best value of a weight between its bounds, or its present one where that is as good, and at most how much it
    gains."""
    a, place, mass, cost, l2, low, high = weight
    pull, still = _pulls(left, H, place)
    if a == 0:
        still += cost
    else:
        pull -= (cost if a > 0 else -cost) + l2 * a
    side = 1 if pull > 0 else -1
    need = side * pull - still
    if need <= left.rough * (mass + cost) or a == (high if side > 0 else low):
        return a, 0.0
    found = _breakpoints(side, left, H, place)
    if cost > 0 and a * side < 0:
        left.t[found], left.h[found] = abs(a), cost
        found += 1
    new = a + side * select(left.t, left.h, found, need, l2)
    new = min(max(new if abs(new) > left.rough * abs(a) else 0.0, low), high)
    return new, need * abs(new - a)


@helper
def _better_end(weight, left, H):
    """The better of two values, or the present one where both are as good, and how much it gains."""
    a, place, mass, cost, l2, low, high = weight
    other = low if a == high else high
    step, change = other - a, cost * (abs(other) - abs(a)) + l2 / 2 * (other * other - a * a)
    row, rest = H[place : place + left.length], left.r[: left.length]
    for j in range(row.size):
        change += abs(rest[j] - step * row[j]) - abs(rest[j])
    if change < -left.rough * (mass + cost) * abs(step):
        return other, -change
    return a, 0.0


@helper
def _measure(X, row, magnitudes, width, ones, sizes):
    """The sizes of the components in a row of X."""
    if not X.full:
        gather_sums(ones, row, magnitudes.B, width, sizes.listed)
    if row.m.size > 0:
        if not X.full:
            gather_sums(row.m, row, magnitudes.B, width, sizes.masses)
            return
        for k in range(width):
            sizes.masses[k] = 0
        for j in range(row.extent[1]):
            for k in range(width):
                sizes.masses[k] += row.m[j] * magnitudes.B[j * width + k]


@helper
def _take(w, sums, sizes, rule, box, bounds, panel, used):
    """List the weights of a row that are not 0 or might not stay so, and what every weight costs; returns how many are
    listed, and what the zeros of X that are not listed cost.

    A weight at 0 stays there, whatever the residual, if what it costs is as much as all that it covers.
    """
    n, paid = 0, 0.0
    low, high = bounds
    for k in range(w.size):
        away = rule.unlisted * max(np.float64(sums[k]) - np.float64(sizes.listed[k]), 0.0)
        sizes.costs[k] = away + box.l1
        paid += away * w[k]
        if w[k] != 0 or (sizes.masses[k] > sizes.costs[k] and low[k] < high[k]):
            used.parts[n], used.places[n], used.c[n] = k, (k if panel.whole else n) * panel.stride, w[k]
            n += 1
    used.number[0] = n
    return n, paid


@helper
def _gather(row, panel, used):
    """The columns of the panel that a row uses, entries times their weights."""
    gather_panel(row, panel, used, np.int64(0))
    if row.m.size > 0:
        for a in range(used.number[0]):
            h = panel.H[a * panel.stride : (a + 1) * panel.stride]
            for j in range(row.extent[1] if row.indices.size == 0 else 0):  # all are listed
                h[j] = panel.B[j * panel.width + used.parts[a]]
            weigh(row, h)


@helper
def _sweep(used, sizes, rule, bounds, left, H, nothing):
    """Every listed weight to its best value, where there are sweeps; returns how many were not there."""
    n_suboptimal = 0
    low, high = bounds
    for p in range(used.number[0]):
        k, a = used.parts[p], used.c[p]
        if low[k] == high[k]:
            continue
        mass = np.float64(sizes.masses[k])
        weight = Weight(a, used.places[p], mass, sizes.costs[k], rule.l2, low[k], high[k])
        if rule.binary:
            new, gain = _better_end(weight, left, H)
        else:
            new, gain = _median(weight, left, H)
        new = used.c.dtype.type(new)
        if new != a:
            n_suboptimal += gain > nothing
            if rule.sweeps > 0:
                used.c[p] = new
                _shift(left, H, weight.place, new - a)
    return n_suboptimal


@mapped
def _weighted_median(X, update, panel, magnitudes, rule, n_suboptimal, losses, number, start, stop):
    """Returns the loss after the update."""
    A, out, rank, loss = update.A, update.out, update.A.shape[1], 0.0
    panel, row, length = room_for(X, panel, rank, longest_of(X, update.rows, start, stop))
    x, r, z, t, h = row.x, row.y, aligned(length, A.dtype), aligned(length + 1, A.dtype), aligned(length + 1, A.dtype)
    ones, listed, used = aligned(length, A.dtype), aligned(panel.width, A.dtype), no_parts(rank, A.dtype)
    sizes = Sizes(listed, aligned(panel.width, A.dtype) if row.m.size > 0 else listed, aligned(rank, DOUBLE))
    for k in range(rank):
        listed[k] = magnitudes.sums[k]
    for j in range(length):
        ones[j] = 1
    for place in range(start, stop):
        i = update.rows[place]
        bounds = bounds_of(update.box, i)
        n, length = read_row(X, i, panel, row)
        weigh(row, x)
        left = Left(x, r, z, t, h, n, length, ROUGH_SINGLE if A.itemsize == 4 else ROUGH)
        _measure(X, row, magnitudes, panel.width, ones, sizes)
        n_parts, paid = _take(A[i], magnitudes.sums, sizes, rule, update.box, bounds, panel, used)
        if not panel.whole:
            _gather(row, panel, used)
        combine(used.c, used.places, n_parts, panel.H, length, r)
        nothing, terms = 0.0, 0.0
        for j in range(length):
            r[j] = x[j] - r[j]
        for j in range(length):
            nothing += abs(x[j])
        for p in range(n_parts):  # of both signs they may be far larger than what they add up to
            terms += abs(used.c[p]) * sizes.masses[used.parts[p]]
        nothing = max(nothing, terms / 8)
        _shift(left, panel.H, np.int64(0), A.dtype.type(0))
        for sweep in range(max(rule.sweeps, 1)):
            found = _sweep(used, sizes, rule, bounds, left, panel.H, NOTHING * nothing)
            n_suboptimal[i] = found if sweep == 0 else n_suboptimal[i]
            if found == 0:
                break
        for k in range(rank):
            out[i, k] = A[i, k]
        for p in range(n_parts):
            k = used.parts[p]
            paid += (sizes.costs[k] - update.box.l1) * (np.float64(used.c[p]) - out[i, k])
            out[i, k] = used.c[p]
        for j in range(n):
            paid += abs(r[j])
        loss += paid
    losses[number] = loss


def weighted_median(X, A, others, box, l2, binary, sweeps, rows):
    """At most `sweeps` times over each row, every weight to its best value; binary: to the better of its two bounds.
    With 0 sweeps nothing moves. Entries of X that are not listed, if they count, need factors >= 0.

    Also returns how many weights of each row were not at their best value, and the loss of these rows afterwards."""
    B, (l1, lower, upper) = others.B, box
    update, n_suboptimal = update_of(A, (float(l1), lower, upper), rows), np.zeros(A.shape[0], np.int64)
    whole, rule = X.full and X.weights.size == 0, Rule(float(l2), float(X.unlisted), binary, sweeps)
    panel, sums = panel_of(X, B, whole), others.sizes().astype(A.dtype)
    magnitudes = Magnitudes(panel.B if whole or B.min(initial=0) >= 0 else np.abs(panel.B), sums)
    boundaries = tasks(X, B, whole, rows, 16 * A.shape[1])
    losses = per_task(boundaries)
    over(_weighted_median, boundaries, X, update, panel, magnitudes, rule, n_suboptimal, losses)
    return (update.out, n_suboptimal), (float(sum(losses)),)


@mapped
def _residuals(X, A, B, out, number, start, stop):
    for i in range(start, stop):
        for p in range(X.indptr[i], X.indptr[i + 1]):
            j = p - X.indptr[i] if X.full else np.int64(X.indices[p])
            total = X.values[p] * X.scale
            for k in range(A.shape[1]):
                total -= A[i, k] * B[j, k]
            out[p] = total


def residuals(X, A, others):
    """`x - sum_k a_ik b_jk` at the listed entries of X."""
    B = others.B
    out = np.empty(X.values.size, A.dtype)
    over(_residuals, tasks(X, B, X.full, np.arange(A.shape[0]), A.shape[1]), X, A, B, out)
    return out
