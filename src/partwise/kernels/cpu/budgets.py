"""Sparsity budgets of groups of columns: each column with its own norm, and one sum for all columns of a group.

The nearest such columns to those of V are `c (v - mu)_+ / |(v - mu)_+|` with one mu for a group, and their sum falls as
mu grows. A column whose largest entry is not above mu has that one alone, and where several are equally large its sum
jumps from that of all of them to that of one: it may be anything between.
"""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import compiled
from .projections import _direction
from .team import mapped, over, per_task

ROUNDS = 2000  # of a loop that a handful end
DOUBLINGS = 64  # of a distance: beyond, only a flat column has so large a sum
STRIDE, SAMPLE = 16, 256  # every so many rows, where that leaves at least so many of them
SAFETY = 1.02  # of their sum, against chance
PRECISE = 1e-13  # of a sum, relative
FLAT = 1e-12  # a sum so near to the largest possible is that of flat columns
EPS, TINY = 2.0**-52, 1e-100  # what two multipliers differ by at least, relative to the entries, and absolute
HUGE = 1e100
OFFSET = 4  # entries this far from 0, relative to their range, are shifted
LAST_PLACE = 1e-15  # of a sum, relative
SMALL = 1e-6  # a step of the multiplier, relative to what is above it, which loses no digits


class Groups(NamedTuple):
    """Of columns: those of group g are `members[ends[g] : ends[g + 1]]`, `owner` is the group of each; the norm of each
    column and the sum of each group."""

    ends: np.ndarray
    members: np.ndarray
    owner: np.ndarray
    lengths: np.ndarray
    budgets: np.ndarray


class Bracket(NamedTuple):
    """Of each group: multipliers at which its sum is too large and too small, what they differ by at least, and how
    often the search got no further."""

    low: np.ndarray
    high: np.ndarray
    finest: np.ndarray
    stuck: np.ndarray


@mapped
def _extent(V, reference, found, number, start, stop):
    """Of each column: its largest and its smallest entry, how many there are, -inf is none, the sum of their distances
    from a reference and that of the squares."""
    largest, smallest = np.full(V.shape[1], -np.inf), np.full(V.shape[1], np.inf)
    count, first, second = np.zeros(V.shape[1]), np.zeros(V.shape[1]), np.zeros(V.shape[1])
    for i in range(start, stop):
        row = V[i]
        for k in range(row.size):
            there = row[k] > -np.inf
            value = row[k] - reference[k] if there else 0.0
            largest[k] = max(largest[k], row[k])
            smallest[k] = min(smallest[k], row[k] if there else np.inf)
            count[k] += 1.0 if there else 0.0
            first[k] += value
            second[k] += value * value
    for k in range(V.shape[1]):
        found[number, 0, k], found[number, 1, k] = largest[k], smallest[k]
        found[number, 2, k], found[number, 3, k], found[number, 4, k] = count[k], first[k], second[k]


@mapped
def _excess(V, mu, found, number, start, stop):
    """Of each column, over its entries above mu: how many, the sum of `v - mu`, and that of the squares."""
    count, first, second = np.zeros(mu.size), np.zeros(mu.size), np.zeros(mu.size)
    for i in range(start, stop):
        row = V[i]
        for k in range(mu.size):
            above = max(row[k] - mu[k], 0.0)
            count[k] += 1.0 if above > 0 else 0.0
            first[k] += above
            second[k] += above * above
    for k in range(mu.size):
        found[number, 0, k], found[number, 1, k], found[number, 2, k] = count[k], first[k], second[k]


@compiled
def _column_sum(mu, k, sums, lengths):
    """The sum of `c (v - mu) / |v - mu|`, and its derivative, over those entries of a column that `sums` counted above
    its own reference. For larger mu some of them are negative, so it is no more than that of the positive ones alone;
    and it is c at least, which is that of the largest one alone."""
    shift = mu - sums[0, k]
    above = sums[2, k] - sums[1, k] * shift
    square = sums[3, k] - shift * (sums[2, k] + above)
    if above <= 0 or square <= 0 or square >= above * above:  # rounding may do what mathematics does not
        return lengths[k], 0.0
    norm = np.sqrt(square)
    return lengths[k] * above / norm, -lengths[k] * (sums[1, k] - above * above / square) / norm


@compiled
def _group_sum(mu, group, sums, lengths):
    total, slope = 0.0, 0.0
    for k in group:
        value, its_slope = _column_sum(mu, k, sums, lengths)
        total += value
        slope += its_slope
    return total, slope


@compiled
def _root(low, high, finest, group, sums, lengths, budget):
    """Where the sum over the entries counted is the budget, from where it is larger; by Newton's method within a
    bracket."""
    mu = low
    for turn in range(ROUNDS):
        total, slope = _group_sum(mu, group, sums, lengths)
        if abs(total - budget) <= PRECISE / 10 * budget:
            return mu
        if total > budget:
            low = mu
        else:
            high = mu
        if high - low <= finest:
            break
        mu += (budget - total) / slope if slope < 0 else 0.0
        if turn % 4 == 3 or not low < mu < high:  # Newton's steps may be tiny
            mu = low / 2 + high / 2
    return low


@compiled
def _begin(groups, peaks, floors, sums):
    """Multipliers of each group at which its sum is too large, -inf where only flat columns have it, and too small; and
    what multipliers differ by at least."""
    ends, members, _, lengths, budgets = groups
    low, high = np.full(budgets.size, np.inf), np.full(budgets.size, -np.inf)
    finest = np.empty(budgets.size)
    for g in range(budgets.size):
        group = members[ends[g] : ends[g + 1]]
        most = 0.0
        for k in group:
            low[g], high[g] = min(low[g], floors[k]), max(high[g], peaks[k])
            most += lengths[k] * np.sqrt(sums[1, k])
        finest[g] = max(EPS * max(abs(low[g]), abs(high[g])), TINY)
        width = max(high[g] - low[g], 1e-3 * abs(low[g]), TINY)
        if budgets[g] >= most * (1 - FLAT):
            low[g] = -np.inf
            continue
        for turn in range(DOUBLINGS):
            low[g] -= width * 2.0**turn
            if _group_sum(low[g], group, sums, lengths)[0] >= budgets[g]:
                break
    return Bracket(low, high, finest, np.zeros(budgets.size))


@compiled
def _candidates(bracket, groups, below):
    """The next multiplier to look at: that for the entries above the lower one, which is never too large but for
    rounding; in the middle of the bracket where it was; and where it is no further, a little more."""
    low, high, finest, stuck = bracket
    ends, members, _, lengths, budgets = groups
    mu = low.copy()
    for g in range(budgets.size):
        if high[g] - low[g] <= finest[g] or low[g] == -np.inf:
            continue
        middle = low[g] / 2 + high[g] / 2
        if stuck[g] > 0:
            mu[g] = min(low[g] + 4.0 ** stuck[g] * finest[g], middle)
            continue
        mu[g] = _root(low[g], high[g], finest[g], members[ends[g] : ends[g + 1]], below, lengths, budgets[g])
        if stuck[g] < 0 or not low[g] < mu[g] < high[g]:
            mu[g] = middle
    return mu


@compiled
def _narrow(bracket, mu, groups, below, sums):
    """The brackets, with what was found at mu; `below` are the sums at their lower ends. Whether all are done."""
    low, high, finest, stuck = bracket
    ends, members, _, lengths, budgets = groups
    done = True
    for g in range(budgets.size):
        group = members[ends[g] : ends[g + 1]]
        if low[g] == -np.inf or high[g] - low[g] <= finest[g]:
            continue
        total = _group_sum(mu[g], group, sums, lengths)[0]
        met = abs(total - budgets[g]) <= PRECISE * budgets[g]
        if met or total < budgets[g]:
            high[g], stuck[g] = mu[g], -1
        if met or total > budgets[g]:
            stuck[g] = max(stuck[g], 0) + 1 if mu[g] - low[g] <= 4.0 ** (stuck[g] + 1) * finest[g] else 0
            low[g] = mu[g]
            for k in group:
                below[:, k] = sums[:, k]
        done = done and high[g] - low[g] <= finest[g]
    return done


@compiled
def _finish(low, high, groups, below):
    """Of each column a last step of Newton's method for its multiplier, its sum before that and the derivative, and
    whether it jumps in the bracket; all that do by the same part of their jumps, so that sums add up to the budgets."""
    ends, members, _, lengths, budgets = groups
    steps, shares, slopes = np.zeros(lengths.size), np.zeros(lengths.size), np.zeros(lengths.size)
    jumps = np.zeros(lengths.size, np.bool_)
    for g in range(budgets.size):
        group = members[ends[g] : ends[g + 1]]
        most, slope = _group_sum(low[g], group, below, lengths)
        least = _group_sum(high[g], group, below, lengths)[0]
        part = (budgets[g] - least) / (most - least) if most > least else 1.0
        step = (budgets[g] - most) / slope if high[g] == low[g] and slope < 0 else 0.0
        for k in group:
            if abs(step) * below[1, k] > SMALL * below[2, k]:
                step = 0.0
        for k in group:
            upper, slopes[k] = _column_sum(low[g], k, below, lengths)
            lower = _column_sum(high[g], k, below, lengths)[0]
            shares[k] = lower + part * (upper - lower)
            jumps[k] = upper - lower > PRECISE * budgets[g]
            steps[k] = step
    return steps, shares, slopes, jumps


@mapped
def _scaled_excess(V, mu, scale, out, number, start, stop):
    for i in range(start, stop):
        row, x = V[i], out[i]
        for k in range(mu.size):
            x[k] = max(row[k] - mu[k], 0.0) * scale[k]


@compiled
def _column(v, share, length):
    """The nearest v >= 0 of this norm and sum: of a column that jumps."""
    x = np.zeros(v.size)
    _direction(v, v > -np.inf, share / length, np.empty(v.size), x)
    return x * length


def tasks_of(V):
    return threads.split_evenly(*V.shape, threads.LIGHT_WORK)


def excess(V, mu):
    boundaries = tasks_of(V)
    found = per_task(boundaries, 3, mu.size)
    over(_excess, boundaries, V, mu, found)
    return np.array([mu, *found.sum(axis=0)])


def multipliers(V, groups, extents):
    """For each group the largest mu at which the sum is no less than its budget, -inf where only flat columns have it,
    and the next number where it jumps; and what `excess` finds at the former."""
    peaks, floors, below = extents
    bracket = _begin(groups, peaks, floors, below)
    guess = sampled(V, groups, bracket) if len(V) >= SAMPLE * STRIDE else None
    for _ in range(ROUNDS):
        mu = guess
        if guess is None:
            mu = _candidates(bracket, groups, below)
        sums = excess(V, np.where(np.isfinite(mu), mu, 0.0)[groups.owner])
        if _narrow(bracket, mu, groups, below, sums):
            break
        if guess is not None:  # if it was too large, that was chance and not rounding
            guess, bracket.stuck[:] = None, 0
    return bracket.low, bracket.high, below


def sampled(V, groups, bracket):
    """A first guess in the bracket, from every so many rows, on the safe side: where the sum is a little too large."""
    few = np.ascontiguousarray(V[::STRIDE])
    least = np.add.reduceat(groups.lengths[groups.members], groups.ends[:-1])
    wanted = groups._replace(budgets=np.maximum(SAFETY / STRIDE**0.5 * groups.budgets, least))
    guess = multipliers(few, wanted, extents_of(few))[0]
    return np.where((bracket.low < guess) & (guess < bracket.high), guess, bracket.low)


def extents_of(V):
    """The largest and the smallest entry of each column, and what `excess` would find if all entries counted."""
    reference = np.where(np.isfinite(V[0]), V[0], 0.0)
    boundaries = tasks_of(V)
    found = per_task(boundaries, 5, V.shape[1])
    over(_extent, boundaries, V, reference, found)
    return found[:, 0].max(axis=0), found[:, 1].min(axis=0), np.array([reference, *found[:, 2:].sum(axis=0)])


def with_budgets(V, groups, lengths, budgets):
    """The nearest factor whose columns are nonnegative, of norms `lengths`, and add up, those of each group together,
    to its budget; 0 where V is -inf."""
    extents = peaks, floors, _ = extents_of(V)
    ends = np.cumsum([0, *map(len, groups)])
    members = np.concatenate([np.asarray(group, dtype=np.int64) for group in groups])
    owner = np.empty_like(members)
    owner[members] = np.repeat(np.arange(len(groups)), np.diff(ends))
    top = np.array([max(peaks[list(group)]) for group in groups])[owner]
    bottom = np.array([min(floors[list(group)]) for group in groups])[owner]
    size = np.maximum(np.abs(top), np.abs(bottom))
    if np.any((size > HUGE) | ((size > 0) & (size < 1 / HUGE))):  # squares would be too large, or vanish
        shares = V / np.where(size > 0, size, 1).astype(V.dtype)
        shares[np.abs(shares) < 1 / HUGE] = 0  # or theirs would
        return with_budgets(shares, groups, lengths, budgets)
    if np.any(np.abs(top) > OFFSET * (top - bottom)):  # what is common to all entries of a group costs digits
        return with_budgets(V - top, groups, lengths, budgets).astype(V.dtype, copy=False)
    room = extents[2][1].copy()
    known = Groups(ends, members, owner, lengths, budgets)
    low, high, below = multipliers(V, known, extents)
    steps, shares, slopes, jumps = _finish(low, high, known, below)
    mu = below[0] + steps
    taken = mu - below[0]  # as rounded
    square = np.maximum(below[3] - taken * (2 * below[2] - below[1] * taken), 0.0)
    shares += slopes * taken
    left = budgets - np.add.reduceat(shares[members], ends[:-1])
    for g in np.flatnonzero((np.abs(left) > LAST_PLACE * budgets) & (low > -np.inf)):
        # no number for the multiplier is near enough: the column that gives way most easily makes up for it
        k = members[ends[g] : ends[g + 1]][np.argmin(slopes[members[ends[g] : ends[g + 1]]])]
        shares[k] += left[g]
        jumps[k] = True

    flat, alone = (low == -np.inf)[owner], (square == 0) | (lengths == 0)
    out = np.empty_like(V)
    over(_scaled_excess, tasks_of(V), V, mu, lengths / np.sqrt(np.where(alone, np.inf, square)), out)
    for k in np.flatnonzero(flat):
        out[:, k] = np.where(V[:, k] > -np.inf, lengths[k] / np.sqrt(room[k]), 0.0)
    for k in np.flatnonzero(alone & ~flat & ~jumps):
        out[np.argmax(V[:, k]), k] = lengths[k]
    for k in np.flatnonzero(jumps & ~flat):
        out[:, k] = _column(np.ascontiguousarray(V[:, k]), shares[k], lengths[k])
    return out
