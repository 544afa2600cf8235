"""Sparse codes: which few entries of a row to use, and with what values, for least squares in that row.

Each row minimises `1/2 x' gram x - c' x` over its support and the values on it. Orthogonal matching pursuit adds one
entry after another (Pati, Rezaiifar and Krishnaprasad 1993); exchanges then take one entry out and put the best one in,
as long as that gains.
"""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import compiled
from .team import mapped, over

EXCHANGES = 20  # rounds over the support of a row
RIDGE = 1e-13  # of the largest diagonal entry, so that parallel entries have no infinite values
WORTH = 1e-12  # relative gain for which an exchange is made


class Rule(NamedTuple):
    """What is allowed: `pursue`."""

    most: int
    labels: np.ndarray
    counts: np.ndarray
    nonnegative: bool


class Room(NamedTuple):
    """For one row: its `c`, values on a support, their Cholesky factor, and what the search needs besides."""

    c: np.ndarray
    x: np.ndarray
    root: np.ndarray
    work: np.ndarray
    trial: np.ndarray
    left: np.ndarray
    used: np.ndarray


@compiled
def _fit(c, gram, support, n, nonnegative, root, x):
    """The best values on a support of n entries, in `x[:n]`, and what they gain; with nonnegativity entries that would
    be negative leave the support. Returns the gain and the entries left. `root` gets the Cholesky factor."""
    while True:
        for i in range(n):
            for j in range(i + 1):
                total = gram[support[i], support[j]]
                if i == j:
                    total += RIDGE * gram[support[i], support[i]]
                for k in range(j):
                    total -= root[i, k] * root[j, k]
                root[i, j] = np.sqrt(max(total, 1e-300)) if i == j else total / root[j, j]
        for i in range(n):
            total = c[support[i]]
            for k in range(i):
                total -= root[i, k] * x[k]
            x[i] = total / root[i, i]
        for i in range(n - 1, -1, -1):
            total = x[i]
            for k in range(i + 1, n):
                total -= root[k, i] * x[k]
            x[i] = total / root[i, i]
        kept = 0
        for i in range(n):
            if not nonnegative or x[i] > 0:
                support[kept] = support[i]
                kept += 1
        if kept == n:
            gain = 0.0
            for i in range(n):
                gain += c[support[i]] * x[i] / 2
            return gain, n
        n = kept


@compiled
def _best_addition(gram, support, n, rule, room):
    """The entry that gains most if it joins the support, by the exact formula `r^2 / (2 s)`, with r the slope there and
    s the curvature that is left when the others follow; -1 where there is none."""
    best, gain, c, x, root, work, nonnegative = -1, 0.0, room.c, room.x, room.root, room.work, rule.nonnegative
    for j in range(c.size):
        if room.used[j] or room.left[rule.labels[j]] == 0:
            continue
        slope, left = c[j], gram[j, j] * (1 + RIDGE)
        for i in range(n):
            slope -= gram[j, support[i]] * x[i]
            total = gram[j, support[i]]
            for k in range(i):
                total -= root[i, k] * work[k]
            work[i] = total / root[i, i]
            left -= work[i] * work[i]
        if left <= 1e-10 * gram[j, j] or (nonnegative and slope <= 0):
            continue
        if slope * slope / left > gain:
            best, gain = j, slope * slope / left
    return best


@compiled
def _exchange(gram, support, n, rule, room):
    """Fill the support up, then exchange entries while that gains. Returns how many there are, with values in x."""
    most, labels, counts, nonnegative = rule
    c, x, root, _, trial, left, used = room
    gain, n = _fit(c, gram, support, n, nonnegative, root, x)
    for turn in range(EXCHANGES):
        before = gain
        for place in range(most):
            trial[:n] = support[:n]
            m = n
            if turn > 0 and place < n:  # the first turn fills up, later ones exchange
                trial[place] = trial[n - 1]
                m = n - 1
            elif n == most:
                break
            _, m = _fit(c, gram, trial, m, nonnegative, root, x)
            left[:] = counts
            used[:] = False
            for i in range(m):
                left[labels[trial[i]]] -= 1
                used[trial[i]] = True
            added = _best_addition(gram, trial, m, rule, room)
            if added < 0:
                continue
            trial[m] = added
            new, m = _fit(c, gram, trial, m + 1, nonnegative, root, x)
            if new > gain * (1 + WORTH):
                gain, n = new, m
                support[:n] = trial[:n]
        if n == 0 or (turn > 0 and gain <= before * (1 + WORTH)):
            break
    gain, n = _fit(c, gram, support, n, nonnegative, root, x)
    return gain, n


@compiled
def _next_first(c, gram, nonnegative, tried, attempt, support):
    """Of the entries not tried yet the one that gains most by itself, as `support[0]`. Returns 1, or 0 if none does."""
    if attempt == 0:
        tried[:] = False
    best, gain = -1, 0.0
    for j in range(c.size):
        if not tried[j] and gram[j, j] > 0 and (c[j] > 0 or not nonnegative) and c[j] * c[j] / gram[j, j] > gain:
            best, gain = j, c[j] * c[j] / gram[j, j]
    if best < 0:
        return 0
    tried[best] = True
    support[0] = best
    return 1


@mapped
def _pursue(A, gram, cross, rule, starts, out, number, start, stop):
    rank, most, nonnegative = gram.shape[0], rule.most, rule.nonnegative
    support, trial = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    root, x, work = np.empty((most + 1, most + 1)), np.empty(most + 1), np.empty(most + 1)
    left, used, tried = np.empty(rule.counts.size, np.int64), np.empty(rank, np.bool_), np.empty(rank, np.bool_)
    c, row = np.empty(rank), np.empty(rank)
    room = Room(c, x, root, work, trial, left, used)
    for i in range(start, stop):
        best = 0.0
        for k in range(rank):
            c[k] = cross[i, k]
            row[k] = A[i, k]
        for k in range(rank):  # what the present values gain: another support has to beat it
            total = 0.0
            for j in range(rank):
                total += gram[k, j] * row[j]
            best += row[k] * (c[k] - total / 2)
            out[i, k] = A[i, k]
        for attempt in range(starts + 1):
            n = 0
            if attempt < starts:  # one after the other of the entries that gain most by themselves comes first
                n = _next_first(c, gram, nonnegative, tried, attempt, support)
            else:  # the present support
                for k in range(rank):
                    if row[k] != 0 and n < most:
                        support[n] = k
                        n += 1
            if n == 0:
                continue
            gain, n = _exchange(gram, support, n, rule, room)
            if gain > best * (1 + WORTH):
                best = gain
                for k in range(rank):
                    out[i, k] = 0
                for j in range(n):
                    out[i, support[j]] = x[j]


def pursue(A, gram, cross, most, labels, counts, nonnegative, starts):
    """A with the support of every row chosen anew where that lowers `1/2 x' gram x - c' x`: at most `most` nonzeros,
    and `counts[g]` among the entries with label g. `starts`: how many entries are tried as the first one."""
    out = np.empty_like(A)
    labels, counts = (np.asarray(numbers, dtype=np.int64) for numbers in (labels, counts))
    arguments = A, gram.astype(np.float64), cross, Rule(most, labels, counts, nonnegative), starts, out
    work = gram.shape[0] * (most + 1) ** 3 * starts
    over(_pursue, threads.split_evenly(A.shape[0], work), *arguments)
    return out
