"""Projections of vectors, the rows of an array, each on its own."""

import numpy as np

from .. import threads
from .base import compiled

ROUNDS = 200  # of a search for a multiplier that a few settle


def over_rows(kernel, V, *arguments):
    """`kernel(V, *arguments, out, start, stop)` over the rows of V in parallel."""
    out = np.empty_like(V)
    boundaries = threads.even(V.shape[0], V.shape[1] * 8, threads.CHUNK_WORK)
    threads.run(lambda i, j: kernel(V, *arguments, out, i, j), boundaries)
    return out


@compiled
def _kth_largest(values, n, k):
    """The k-th largest of the first n values, which are rearranged (Hoare's selection)."""
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


@compiled
def _keep_largest(scores, ends, members, counts, keep, start, stop):
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
            limit = np.inf if counts[g] == 0 else _kth_largest(room, n, counts[g])
            above = 0
            for p in range(n):
                above += room[p] > limit
            ties = counts[g] - above  # of those at the limit the first ones stay
            for p in range(ends[g], ends[g + 1]):
                j = members[p]
                if kept[j]:
                    level = counts[g] > 0 and score[j] == limit and ties > 0
                    ties -= level
                    kept[j] = level or (counts[g] > 0 and score[j] > limit)


def keep_largest(scores, groups, counts):
    """Which entries of each row stay if of every group, a list of places, only so many do, those with the largest
    scores; a group sees what the groups before it left."""
    ends = np.cumsum([0, *map(len, groups)])
    members = np.concatenate([np.asarray(group, dtype=np.int64) for group in groups])
    keep = np.empty(scores.shape, dtype=np.bool_)
    arguments = scores, ends, members, np.asarray(counts, dtype=np.int64), keep
    boundaries = threads.even(scores.shape[0], scores.shape[1] * 8, threads.CHUNK_WORK)
    threads.run(lambda i, j: _keep_largest(*arguments, i, j), boundaries)
    return keep


@compiled
def _with_sum(V, lower, upper, total, out, start, stop):
    low_step, high_step = min(lower.shape[0] - 1, 1), min(upper.shape[0] - 1, 1)
    for i in range(start, stop):
        v, low, high, x = V[i], lower[i * low_step], upper[i * high_step], out[i]
        # the multiplier lies between left, where the sum is too large, and right, where all are at their lower bound
        left, right, reach = np.inf, -np.inf, -np.inf
        for j in range(v.size):
            left = min(left, v[j] - high[j])
            right = max(right, v[j] - low[j])
            if high[j] == np.inf:
                reach = max(reach, v[j] - low[j] - total)  # there this entry alone is large enough
        left = reach if reach > -np.inf else left
        mu = left
        for _ in range(ROUNDS):
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
            if mass >= total:
                left = mu
            else:
                right = mu
            if mass == total:
                break
            following = mu + (mass - total) / free if free else (left + right) / 2
            if not (left <= following <= right):
                following = (left + right) / 2
            if following == mu:
                break
            mu = following
        for j in range(v.size):
            x[j] = min(max(v[j] - mu, low[j]), high[j])


def with_sum(V, lower, upper, total):
    """The nearest rows within bounds (arrays of V's shape, or of one row for all) that add up to `total`."""
    return over_rows(_with_sum, V, lower, upper, total)


@compiled
def _flat_tie(order_keep, ratio, x):
    """A vector of norm 1 and sum `ratio` on the first few of the marked places, where all directions are as good."""
    n = int(np.ceil(ratio * ratio - 1e-12))
    # one entry p and n - 1 entries q: p + (n - 1) q = ratio, p^2 + (n - 1) q^2 = 1
    q = 0.0
    if n > 1:
        q = (ratio - np.sqrt(max((n - ratio * ratio) / (n - 1), 0.0))) / n
    p = ratio - (n - 1) * q
    seen = 0
    for j in range(x.size):
        x[j] = 0
        if order_keep[j] and seen < n:
            x[j] = p if seen == 0 else q
            seen += 1


@compiled
def _with_ratio(V, keep, ratio, out, start, stop):
    """The best direction u >= 0 of norm 1 and sum `ratio`, times the length of v along it."""
    for i in range(start, stop):
        v, x = V[i], out[i]
        active = keep[i * min(keep.shape[0] - 1, 1)].copy()
        largest, ties = -np.inf, 0
        for j in range(v.size):
            if active[j]:
                if v[j] > largest:
                    largest, ties = v[j], 0
                ties += v[j] == largest
        if ties > 0 and ratio * ratio <= ties * (1 + 1e-12):
            for j in range(v.size):
                active[j] = active[j] and v[j] == largest
            _flat_tie(active, ratio, x)
        else:
            # on the support u is in proportion to v - mu; entries below mu leave it, one round after another
            mu = -np.inf
            for _ in range(ROUNDS):
                n, s, t = 0, 0.0, 0.0
                for j in range(v.size):
                    if active[j]:
                        n += 1
                        s += v[j] - largest
                        t += (v[j] - largest) ** 2
                spread = max(t - s * s / n, 0.0)  # the squared norm of what is left of v without its mean
                if n <= ratio * ratio * (1 + 1e-12) or spread == 0:
                    mu = -np.inf
                    break
                mu = largest + s / n - ratio * np.sqrt(spread / (n - ratio * ratio) / n)
                dropped = 0
                for j in range(v.size):
                    if active[j] and v[j] <= mu:
                        active[j] = False
                        dropped += 1
                if dropped == 0:
                    break
            norm = 0.0
            for j in range(v.size):
                x[j] = (v[j] - mu if mu > -np.inf else 1.0) if active[j] else 0.0
                norm += x[j] * x[j]
            for j in range(v.size):
                x[j] /= np.sqrt(norm)
        length = 0.0
        for j in range(v.size):
            length += x[j] * v[j]
        for j in range(v.size):
            x[j] *= max(length, 0.0)


def with_ratio(V, keep, ratio):
    """The nearest nonnegative rows with `|x|_1 = ratio |x|_2`, nonzero only in places to `keep` (of V's shape, or one
    row for all)."""
    return over_rows(_with_ratio, V, keep, ratio)


@compiled
def _pool(v, lower, upper, means, sizes, errors):
    """The best nondecreasing fit to every beginning of v (pool adjacent violators, bounds by clipping): the squared
    error of the fit to the first n values in `errors[n]`; returns how many blocks the fit to all of v has."""
    blocks, error = 0, 0.0
    errors[0] = 0
    sums2, block_errors = np.empty(v.size), np.empty(v.size)
    for j in range(v.size):
        means[blocks], sizes[blocks], sums2[blocks] = v[j], 1, 0.0
        y = min(max(v[j], lower), upper)
        block_errors[blocks] = (v[j] - y) ** 2
        error += block_errors[blocks]
        blocks += 1
        while blocks > 1 and means[blocks - 2] >= means[blocks - 1]:
            a, b = blocks - 2, blocks - 1
            error -= block_errors[a] + block_errors[b]
            size = sizes[a] + sizes[b]
            gap = means[b] - means[a]
            sums2[a] += sums2[b] + gap * gap * sizes[a] * sizes[b] / size
            means[a] += gap * sizes[b] / size
            sizes[a] = size
            y = min(max(means[a], lower), upper)
            block_errors[a] = sums2[a] + size * (means[a] - y) ** 2
            error += block_errors[a]
            blocks -= 1
        errors[j + 1] = error
    return blocks


@compiled
def _unfold(means, sizes, blocks, lower, upper, x):
    place = 0
    for block in range(blocks):
        y = min(max(means[block], lower), upper)
        for _ in range(sizes[block]):
            x[place] = y
            place += 1


@compiled
def _rising(V, lower, upper, out, start, stop):
    n = V.shape[1]
    means, sizes, errors = np.empty(n), np.empty(n, np.int64), np.empty(n + 1)
    for i in range(start, stop):
        blocks = _pool(V[i], lower, upper, means, sizes, errors)
        _unfold(means, sizes, blocks, lower, upper, out[i])


@compiled
def _one_peak(V, lower, upper, out, start, stop):
    n = V.shape[1]
    means, sizes, up, down = np.empty(n), np.empty(n, np.int64), np.empty(n + 1), np.empty(n + 1)
    for i in range(start, stop):
        v, x = V[i], out[i]
        _pool(v, lower, upper, means, sizes, up)
        _pool(v[::-1], lower, upper, means, sizes, down)
        top = 0
        for split in range(1, n + 1):
            if up[split] + down[n - split] < up[top] + down[n - top]:
                top = split
        blocks = _pool(v[:top], lower, upper, means, sizes, up)
        _unfold(means, sizes, blocks, lower, upper, x[:top])
        blocks = _pool(v[top:][::-1], lower, upper, means, sizes, down)
        _unfold(means, sizes, blocks, lower, upper, x[top:][::-1])


def rising(V, lower, upper):
    """The nearest nondecreasing rows within bounds, two numbers."""
    return over_rows(_rising, V, lower, upper)


def one_peak(V, lower, upper):
    """The nearest rows that rise and then fall, within bounds, two numbers: rise and fall split at the best place."""
    return over_rows(_one_peak, V, lower, upper)
