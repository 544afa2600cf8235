"""Least squares in each row of a factor, within bounds, to the end: an active-set method.

    min_w  1/2 |c - R w|^2 + l1 sum_k w_k,   low <= w <= high,

with `B = Q R`, R (rank, rank), and `c = Q' x`: its condition number is that of B, where the normal equations have the
square of it. Entries between their bounds are free, and so are those at a bound that would gain by leaving it; the step
to the best values of all of these is taken as far as the bounds allow. The rows of `columns` are the columns of R.
"""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import bounds_of, compiled, helper, update_of
from .team import mapped, over

MOST, MORE = 10, 3  # steps on a row: at most so many, and so many more for each part
ROUNDING = 2.0**-48  # of its terms: a slope that is 0
DEPENDENT = 2.0**-50  # of its length: what is left of a column that lies in the span of others


class System(NamedTuple):
    """R by its columns, their lengths, the penalty, and the size of the terms of `c - R w`."""

    columns: np.ndarray
    lengths: np.ndarray
    l1: float
    size: float


@helper
def _length(v):
    total = 0.0
    for j in range(v.size):
        total += v[j] * v[j]
    return np.sqrt(total)


@helper
def _rest(columns, lengths, c, w, rest):
    """`rest = c - R w`; returns the size of its terms."""
    size = _length(c)
    for j in range(c.size):
        rest[j] = c[j]
    for k in range(w.size):
        if w[k] != 0:
            column, own = columns[k], w[k]
            size += abs(own) * lengths[k]
            for j in range(rest.size):
                rest[j] -= own * column[j]
    return size


@helper
def _slopes(columns, rest, l1, g):
    """`g = l1 - R' rest`."""
    for k in range(g.size):
        column, slope = columns[k], 0.0
        for j in range(rest.size):
            slope += column[j] * rest[j]
        g[k] = l1 - slope


@helper
def _free(system, w, low, high, g, barred, leave, free):
    """A list of the entries that may move: those between their bounds and, after them, those that would gain by leaving
    one: all (`leave` 2), the one with the steepest slope (1) or none (0). Returns how many they are, and how many of
    the former."""
    lengths = system.lengths
    n_free, steepest = 0, 0.0
    for k in range(w.size):
        if low[k] < w[k] < high[k] and lengths[k] > 0:
            free[n_free] = k
            n_free += 1
    between = n_free
    for k in range(w.size if leave > 0 else 0):
        slope = (-g[k] if w[k] <= low[k] else g[k]) if lengths[k] > 0 and not low[k] < w[k] < high[k] else 0.0
        if slope > ROUNDING * (system.size * lengths[k] + system.l1) and low[k] < high[k] and not barred[k]:
            if leave == 2 or n_free == between:
                n_free += 1
                free[n_free - 1], steepest = k, slope / lengths[k]
            elif slope > steepest * lengths[k]:
                free[between], steepest = k, slope / lengths[k]
    return n_free, between


@helper
def _solve(T, n, free, less, p):
    """The first n free entries of p from `T p = T[:, n] - T[:, less]`, the others 0. With `less` -1 the latter is not
    subtracted and entry n is -1, so that `T p = 0`, turned so that the sum of p falls; returns whether it does."""
    total, terms = 0.0, 0.0
    for k in range(p.size):
        p[k] = 0
    for a in range(n - 1, -1, -1):
        value = T[a, n] - (T[a, less] if less >= 0 else 0.0)
        for b in range(a + 1, n):
            value -= T[a, b] * p[free[b]]
        p[free[a]] = value / T[a, a] if T[a, a] > 0 else 0.0
        total += p[free[a]]
        terms += abs(p[free[a]])
    if less < 0:
        p[free[n]], total = -1.0, total - 1
        for a in range(n + 1):
            p[free[a]] *= -1.0 if total > 0 else 1.0
    return abs(total) > ROUNDING * (terms + 1)


@helper
def _direction(system, rest, free, n_free, Q, T, p):
    """The minimiser p of `1/2 |rest - R p|^2 + l1 sum_k p_k` over the free entries, by modified Gram-Schmidt with rest
    as a last column, which is as accurate as reflections (Bjorck 1967). A column in the span of those before it stays
    put; where l1 > 0 makes that worth it, p is a direction with `R p = 0` instead. Returns whether it is."""
    columns, lengths, l1, _ = system
    d, spanned = Q[n_free], np.int64(-1)
    for j in range(rest.size):
        d[j] = rest[j]
        for a in range(n_free):
            Q[a, j] = columns[free[a], j]
    for a in range(n_free):
        q = Q[a]
        norm = _length(q)
        T[a, a] = norm if norm > DEPENDENT * lengths[free[a]] else 0.0
        spanned = a if T[a, a] == 0 else spanned
        for j in range(q.size):
            q[j] = q[j] / norm if T[a, a] > 0 else 0.0
        for b in range(a + 1, n_free + 1):
            other, product = Q[b], 0.0
            for j in range(q.size):
                product += q[j] * other[j]
            for j in range(q.size):
                other[j] -= product * q[j]
            T[a, b] = product
    for a in range(n_free):  # `T' u = l1`, and T's last column less u
        u = l1
        for b in range(a):
            u -= T[b, a] * T[b, n_free + 1]
        T[a, n_free + 1] = u / T[a, a] if T[a, a] > 0 else 0.0
    if spanned >= 0 and l1 > 0 and _solve(T, spanned, free, np.int64(-1), p):
        return True
    _solve(T, n_free, free, n_free + 1, p)
    return False


@helper
def _change(columns, g, s, image):
    """By how much the objective rises with a step s, and `|R s|^2`."""
    slope, square = 0.0, 0.0
    for j in range(image.size):
        image[j] = 0
    for k in range(s.size):
        if s[k] != 0:
            column, own = columns[k], s[k]
            slope += own * g[k]
            for j in range(image.size):
                image[j] += own * column[j]
    for j in range(image.size):
        square += image[j] * image[j]
    return slope + square / 2, square


@helper
def _to_first_bound(w, low, high, p, most, s):
    """The step along p to the first bound that is in the way, `most` of p at most; returns what share of p it is."""
    share, first = most, -1
    for k in range(w.size):
        room = high[k] - w[k] if p[k] > 0 else low[k] - w[k]
        if p[k] != 0 and room / p[k] < share:
            share, first = room / p[k], k
    for k in range(w.size):
        s[k] = share * p[k]
    if first >= 0:
        s[first] = high[first] - w[first] if p[first] > 0 else low[first] - w[first]
    return share


@compiled
def solve_row(columns, c, l1, low, high, w):
    """Move w to the minimum. At first all entries that would gain move at once, and those that would pass a bound stop
    there; once that no longer lowers the objective, one at a time, which is finite (Lawson and Hanson 1974; Stark and
    Parker 1995)."""
    rank = w.size
    rest, image, g, p, s = np.empty(c.size), np.empty(c.size), np.empty(rank), np.empty(rank), np.empty(rank)
    lengths, free, barred = np.empty(rank), np.empty(rank, np.int64), np.zeros(rank, np.bool_)
    Q, T = np.empty((rank + 1, c.size)), np.empty((rank, rank + 2))
    careful, solved = False, False
    for k in range(rank):
        lengths[k] = _length(columns[k])
    for _ in range(MOST + MORE * w.size):
        size = _rest(columns, lengths, c, w, rest)
        _slopes(columns, rest, l1, g)
        leave = (1 if solved else 0) if careful else 2
        system = System(columns, lengths, l1, size)
        n_free, between = _free(system, w, low, high, g, barred, leave, free)
        if n_free == between and (solved or n_free == 0) and leave > 0:
            break
        flat = _direction(system, rest, free, n_free, Q, T, p)
        share, newest = 1.0, free[n_free - 1] if n_free > between else -1
        if careful or flat:
            share = _to_first_bound(w, low, high, p, np.inf if flat else 1.0, s)
        else:
            for k in range(w.size):
                s[k] = min(max(w[k] + p[k], low[k]), high[k]) - w[k]
                share = share if low[k] <= w[k] + p[k] <= high[k] else 0.0
        change, square = _change(columns, g, s, image)
        falls = change < 0
        if falls:
            for k in range(w.size):
                w[k] = min(max(w[k] + s[k], low[k]), high[k])
            if square > (ROUNDING * size) ** 2:
                for k in range(w.size):
                    barred[k] = False
        elif careful and newest >= 0:
            barred[newest] = True  # by rounding it gains, and does not
        solved = share == 1 and (falls or careful)
        careful = careful or not falls


@mapped
def _least_squares(columns, C, update, number, start, stop):
    A, rank = update.A, update.A.shape[1]
    w, low, high = np.empty(rank), np.empty(rank), np.empty(rank)
    for t in range(start, stop):
        i = update.rows[t]
        lower, upper = bounds_of(update.box, i)
        for k in range(rank):
            low[k], high[k] = lower[k], upper[k]
            w[k] = min(max(np.float64(A[i, k]), low[k]), high[k])
        solve_row(columns, C[i], update.box.l1, low, high, w)
        for k in range(rank):
            update.out[i, k] = w[k]


def least_squares(columns, C, A, box, rows):
    """A with the given rows at their minimum; the rows of C are `Q' x`. Where l1 > 0 the lower bounds must be >= 0."""
    l1, lower, upper = box
    update = update_of(A, (float(l1), lower, upper), rows)
    over(_least_squares, threads.split_evenly(rows.size, 4 * A.shape[1] ** 3), columns, C, update)
    return update.out
