"""Selection in linear time, expected, where values have weights."""

import numpy as np

from .base import compiled, helper

ROUNDS = 64  # of a selection with pivots from what is left


@helper
def _pivot(t, begin, end, halve):
    """The median of three values, or, to halve their range, the middle of it."""
    a, b, c = t[begin], t[(begin + end) // 2], t[end - 1]
    if halve:
        for place in range(begin, end):
            a, c = min(a, t[place]), max(c, t[place])
        b = a + (c - a) / 2
    return max(min(a, b), min(max(a, b), c))


@helper
def _partition(t, h, begin, end, pivot):
    """Rearrange t and h so that what is below the pivot comes first and what is above it last; returns the ends of both
    stretches, and the weights below it and at it."""
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
    return lower, upper, less, equal


@compiled
def select(t, h, n, need, l2, rounds=ROUNDS):
    """The smallest s with `2 sum_{t_j <= s} h_j + l2 s >= need`, for t, h >= 0 and need > 0: in linear time, expected.

    t and h are rearranged; after `rounds` partitions, bad luck with the pivots, each halves the range of what is left.
    Where rounding leaves no such s it is the largest t.
    """
    begin, end, below, least, most, turn = np.int64(0), n, 0.0, 0.0, np.inf, 0
    while begin < end:
        pivot = _pivot(t, begin, end, turn >= rounds)
        lower, upper, less, equal = _partition(t, h, begin, end, pivot)
        turn += 1
        if 2 * (below + less) + l2 * pivot >= need:
            end, most = lower, pivot
        elif 2 * (below + less + equal) + l2 * pivot >= need:
            return np.float64(pivot)
        else:
            begin, below, least = upper, below + less + equal, np.float64(pivot)
    between = (need - 2 * below) / l2 if l2 > 0 else np.inf
    between = max(min(between, most), least)
    return between if between < np.inf else least
