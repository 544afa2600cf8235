"""Projections of vectors, the rows of an array, each on its own."""

import numpy as np

from .. import threads
from .base import compiled
from .team import mapped, over

ROUNDS = 200  # of a search for a multiplier that a few settle
LARGE = 1e3
PASSES = 64  # of such searches, each of which adds the digits that the one before could not hold
EQUAL = 1e-150  # a difference of two numbers whose square vanishes
BLOCK = 128  # numbers that are added one after another, before such sums are
FEW = 64  # values of which it is quicker to compare all with all than to rearrange them


def over_rows(kernel, V, *arguments):
    """`kernel(V, *arguments, out, start, stop)` over the rows of V in parallel."""
    out = np.empty_like(V)
    boundaries = threads.split_evenly(V.shape[0], V.shape[1] * 8, threads.CHUNK_WORK)
    over(kernel, boundaries, V, *arguments, out)
    return out


@compiled
def _kth_largest_of_few(values, n, k):
    """The smallest value that fewer than k exceed."""
    limit = np.inf
    for p in range(n):
        value, larger = values[p], 0
        for q in range(n):
            larger += values[q] > value
        if larger < k:
            limit = min(limit, value)
    return limit


@compiled
def _kth_largest(values, n, k):
    """The k-th largest of the first n values, which may be rearranged (Hoare's selection)."""
    if n <= FEW:
        return _kth_largest_of_few(values, n, k)
    left, right, place = 0, n - 1, k - 1
    while left < right:
        middle = (left + right) // 2
        a, b, c = values[left], values[middle], values[right]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            right = j
        elif place >= i:
            left = i
        else:
            break
    return values[place]


@mapped
def _keep_largest(scores, ends, members, counts, keep, number, start, stop):
    room = np.empty(scores.shape[1], scores.dtype)
    for i in range(start, stop):
        score, kept = scores[i], keep[i]
        kept[:] = True
        for g in range(counts.size):
            n = 0
            for p in range(ends[g], ends[g + 1]):
                if kept[members[p]]:
                    room[n] = score[members[p]]
                    n += 1
            if n <= counts[g]:
                continue
            limit = _kth_largest(room, n, counts[g])
            spare = -counts[g]
            for p in range(n):
                spare += room[p] >= limit
            for p in range(ends[g], ends[g + 1]):
                j = members[p]
                kept[j] = kept[j] and score[j] >= limit
            for p in range(ends[g + 1] - 1, ends[g] - 1, -1):
                if spare == 0:
                    break
                j = members[p]
                if kept[j] and score[j] == limit:  # of those at the limit the first ones stay
                    kept[j] = False
                    spare -= 1


def keep_largest(scores, groups, counts):
    """Which entries of each row stay if of every group, a list of places, only so many do, those with the largest
    scores, and at least one; a group sees what the groups before it left."""
    ends = np.cumsum([0, *map(len, groups)])
    members = np.concatenate([np.asarray(group, dtype=np.int64) for group in groups])
    keep = np.empty(scores.shape, dtype=np.bool_)
    arguments = scores, ends, members, np.asarray(counts, dtype=np.int64), keep
    boundaries = threads.split_evenly(scores.shape[0], scores.shape[1] * 8, threads.CHUNK_WORK)
    over(_keep_largest, boundaries, *arguments)
    return keep


@compiled
def _bracket(v, low, high, total):
    """Between which two numbers the multiplier lies: where the sum is too large, and where all are at their lower
    bound."""
    left, right, reach = np.inf, -np.inf, -np.inf
    for j in range(v.size):
        left = min(left, v[j] - high[j])
        right = max(right, v[j] - low[j])
        if high[j] == np.inf:
            reach = max(reach, v[j] - low[j] - total)  # there this entry alone is large enough
    return (reach if reach > -np.inf else left), right


@compiled
def _mass(v, low, high, mu):
    """The sum of `v - mu` within bounds, and how many entries are at none."""
    mass, free = 0.0, 0
    for j in range(v.size):
        y = v[j] - mu
        if y <= low[j]:
            mass += low[j]
        elif y >= high[j]:
            mass += high[j]
        else:
            mass += y
            free += 1
    return mass, free


@compiled
def _kink(v, low, high, left, right):
    """A number between these two at which an entry leaves one of its bounds, one in the midst of them; else the middle:
    halves of a huge bracket would take long."""
    inside = 0
    for j in range(v.size):
        inside += (left < v[j] - low[j] < right) + (left < v[j] - high[j] < right)
    place = (inside + 1) // 2
    for j in range(v.size):
        for kink in (v[j] - low[j], v[j] - high[j]):
            place -= left < kink < right
            if place == 0 and left < kink < right:
                return kink
    return left / 2 + right / 2


@compiled
def _multiplier(v, low, high, total):
    """The mu for which `v - mu` within bounds adds up to `total`, by Newton's method within a bracket."""
    left, right = _bracket(v, low, high, total)
    mu = left
    for turn in range(ROUNDS):
        mass, free = _mass(v, low, high, mu)
        if mass >= total:
            left = mu
        else:
            right = mu
        if mass == total:
            break
        following = mu + (mass - total) / free if free else left
        if free and following == mu:
            break
        # Newton's steps may go back and forth, or be many: to an end of the bracket never, at times into its midst
        if turn % 4 == 3 or not (left < following < right):
            following = _kink(v, low, high, left, right)
        if following == mu:
            break
        mu = following
    return mu


@mapped
def _project_simplex(V, lower, upper, total, out, number, start, stop):
    low_step, high_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    rest = np.empty(V.shape[1])
    for i in range(start, stop):
        low, high, x = lower[i * low_step], upper[i * high_step], out[i]
        rest[:] = V[i]
        for _ in range(PASSES):
            mu = _multiplier(rest, low, high, total)
            rest -= mu
            if abs(mu) <= LARGE * total:  # the last place of a larger one counts
                break
        mass, free = 0.0, 0
        for j in range(rest.size):
            x[j] = min(max(rest[j], low[j]), high[j])
        for j in range(rest.size):
            mass += x[j]
            free += low[j] < x[j] < high[j]
        if mass != total and free > 0:
            shift = (total - mass) / free  # what the multiplier is off by
            for j in range(rest.size):
                if low[j] < x[j] < high[j]:
                    x[j] = min(max(x[j] + shift, low[j]), high[j])


def project_simplex(V, lower, upper, total):
    """The nearest rows within bounds (arrays of V's shape, or of one row for all) that add up to `total`."""
    return over_rows(_project_simplex, V, lower, upper, total)


@compiled
def _flat_tie(v, active, largest, n, ratio, x):
    """A vector of norm 1 and sum `ratio` on the n places of the largest entry: all of them are equally good."""
    # one entry p and n - 1 entries q: p + (n - 1) q = ratio, p^2 + (n - 1) q^2 = 1
    gap = n - ratio * ratio
    gap = gap if gap > 1e-12 * n else 0.0  # its root would make much of rounding
    q = max(ratio - np.sqrt(gap / (n - 1)), 0.0) / n if n > 1 else 0.0
    following = ratio - (n - 1) * q
    for j in range(v.size):
        x[j] = 0
        if active[j] and v[j] >= largest - EQUAL:
            x[j], following = following, q


@compiled
def _moments(x):
    """The mean, and the sum of the squares around it; by blocks, which keeps rounding small."""
    total, spread = 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        block, part = x[start : start + BLOCK], 0.0
        for j in range(block.size):
            part += block[j]
        total += part
    mean = total / x.size
    for start in range(0, x.size, BLOCK):
        block, part = x[start : start + BLOCK], 0.0
        for j in range(block.size):
            part += (block[j] - mean) * (block[j] - mean)
        spread += part
    return mean, spread


@compiled
def _inner(x, v):
    """`<x, v>`, by blocks."""
    total = 0.0
    for start in range(0, x.size, BLOCK):
        y, w, part = x[start : start + BLOCK], v[start : start + BLOCK], 0.0
        for j in range(y.size):
            part += y[j] * w[j]
        total += part
    return total


@compiled
def _threshold(room, n, ratio):
    """The mu for which `(x - mu)_+` has the ratio of norms, x the first n entries. Those below mu are left out, one
    round after another: mu only grows as they are. And whether only a flat vector of those above mu has that ratio."""
    mu = -np.inf
    while True:
        mean, spread = _moments(room[:n])
        if n <= ratio * ratio * (1 + 1e-12) or spread == 0:
            return mu, True
        mu = mean - ratio * np.sqrt(spread / (n - ratio * ratio) / n)
        left = 0
        for j in range(n):
            value = room[j]
            room[left] = value
            left += value > mu
        if left == n:
            return mu, False
        n = left


@compiled
def _direction(v, active, ratio, room, x):
    """The x >= 0 of norm 1 and sum `ratio`, 0 where not `active`, with the largest `<x, v>`: `v - mu` up to its length
    where v > mu. Returns mu and that length, 0 where ties decide."""
    largest, ties = -np.inf, 0
    for j in range(v.size):
        largest = max(largest, v[j]) if active[j] else largest
    for j in range(v.size):
        ties += active[j] and v[j] >= largest - EQUAL
    if ratio * ratio <= ties * (1 + 1e-12):
        _flat_tie(v, active, largest, ties, ratio, x)
        return largest, 0.0
    n = 0
    for j in range(v.size):
        x[j] = v[j] - largest if active[j] else -np.inf  # so that what is common to all of v costs no digits
        room[n] = x[j]
        n += active[j]
    mu, flat = _threshold(room, n, ratio)
    for j in range(v.size):
        x[j] = (1.0 if flat else x[j] - mu) if x[j] > mu else 0.0
    norm = np.sqrt(_inner(x, x))
    for j in range(v.size):
        x[j] /= norm
    return mu + largest, 0.0 if flat else norm


@mapped
def _project_hoyer(V, keep, ratio, norm, out, number, start, stop):
    """The best direction, times the norm, or the length of v along it."""
    room = np.empty(V.shape[1])
    for i in range(start, stop):
        v, x = V[i], out[i]
        _direction(v, keep[i * min(keep.shape[0] - 1, 1)], ratio, room, x)
        length = norm if norm > 0 else max(_inner(x, v), 0.0)
        for j in range(v.size):
            x[j] *= length


def project_hoyer(V, keep, ratio, norm):
    """The nearest nonnegative rows with `|x|_1 = ratio |x|_2`, nonzero only in places to `keep` (of V's shape, or one
    row for all), and `|x|_2 = norm`, if that is not 0."""
    return over_rows(_project_hoyer, V, keep, ratio, norm)
