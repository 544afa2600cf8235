"""Vectors of a shape, the rows of an array, each on its own: rising, with one peak, smooth."""

import numpy as np

from .base import compiled
from .projections import over_rows
from .team import mapped


@compiled
def _pool(v, lower, upper, blocks, errors):
    """The best nondecreasing fit to every beginning of v, within bounds (pool adjacent violators). That to the first
    j + 1 values ends in a block from `starts[j]` on with the value `levels[j]`, and before that it is the fit to the
    first `starts[j]`; `errors[j + 1]` is its squared error. Of a block, `means` and `spreads` are the mean and the
    squares around it, `lows` and `highs` its tightest bounds."""
    starts, levels, means, spreads, lows, highs = blocks
    errors[0] = 0
    for j in range(v.size):
        start, mean, spread, low, high = j, v[j], 0.0, lower[j], upper[j]
        level = min(max(mean, low), high)
        while start > 0 and levels[start - 1] >= level:
            last = start - 1
            before = int(starts[last])
            gap, share = mean - means[last], (j + 1 - start) / (j + 1 - before)
            spread += spreads[last] + gap * gap * (start - before) * share
            mean = means[last] + gap * share
            low, high = max(low, lows[last]), min(high, highs[last])
            level = min(max(mean, low), high)
            start = before
        starts[j], levels[j], means[j], spreads[j], lows[j], highs[j] = start, level, mean, spread, low, high
        errors[j + 1] = errors[start] + spread + (mean - level) * (mean - level) * (j + 1 - start)


@compiled
def _unfold(blocks, n, x):
    """The fit to the first n values."""
    while n > 0:
        start = int(blocks[0, n - 1])
        for place in range(start, n):
            x[place] = blocks[1, n - 1]
        n = start


@mapped
def _isotonic(V, lower, upper, out, number, start, stop):
    n, step = V.shape[1], min(lower.shape[0] - 1, 1)
    blocks, errors = np.empty((6, n)), np.empty(n + 1)
    for i in range(start, stop):
        _pool(V[i], lower[i * step], upper[i * step], blocks, errors)
        _unfold(blocks, n, out[i])


@mapped
def _unimodal(V, lower, upper, out, number, start, stop):
    n, step = V.shape[1], min(lower.shape[0] - 1, 1)
    rise, fall, up, down = np.empty((6, n)), np.empty((6, n)), np.empty(n + 1), np.empty(n + 1)
    for i in range(start, stop):
        v, low, high, x = V[i], lower[i * step], upper[i * step], out[i]
        _pool(v, low, high, rise, up)
        _pool(v[::-1], low[::-1], high[::-1], fall, down)
        top = 0
        for split in range(1, n + 1):
            if up[split] + down[n - split] < up[top] + down[n - top]:
                top = split
        _unfold(rise, top, x)
        _unfold(fall, n - top, x[::-1])


def isotonic(V, lower, upper):
    """The nearest nondecreasing rows within bounds, two arrays of V's shape, or of one row for all."""
    return over_rows(_isotonic, V, lower, upper)


def unimodal(V, lower, upper):
    """The nearest rows that rise and then fall, within bounds likewise: rise and fall split at the best place."""
    return over_rows(_unimodal, V, lower, upper)


@compiled
def _smoothed(v, zero, weight, excess, x):
    """`(1 + weight D'D) x = v`, D the differences, with x held at 0 where `zero`: elimination, in which pivots are
    `weight + excess` (the last one without the weight), so that nothing cancels."""
    n = v.size
    for j in range(n):
        if zero[j]:
            x[j] = 0
            continue
        excess[j], x[j] = 1.0, v[j]
        if j > 0 and zero[j - 1]:
            excess[j] += weight
        elif j > 0:
            share = weight / (weight + excess[j - 1])
            excess[j] += share * excess[j - 1]
            x[j] += share * x[j - 1]
    for j in range(n - 1, -1, -1):
        if not zero[j]:
            following, before = (x[j + 1], weight) if j < n - 1 else (0.0, 0.0)
            x[j] = (x[j] + before * following) / (before + excess[j])


@mapped
def _smooth(V, weight, lower, out, number, start, stop):
    """Entries that would be below the bound are held there, and let go where they pull upwards: the matrix has no
    positive entry beside its diagonal, so that this ends after a few rounds at the optimum."""
    n = V.shape[1]
    zero, excess, v = np.empty(n, np.bool_), np.empty(n), np.empty(n)
    for i in range(start, stop):
        x = out[i]
        shift = lower if lower > -np.inf else 0.0
        for j in range(n):
            v[j] = V[i, j] - shift
            zero[j] = False
        for _ in range(n + 1):
            _smoothed(v, zero, weight, excess, x)
            changed = False
            for j in range(n):
                if lower == -np.inf:
                    break
                if zero[j]:
                    slope = -v[j]  # of the objective at 0
                    if j > 0:
                        slope -= weight * x[j - 1]
                    if j < n - 1:
                        slope -= weight * x[j + 1]
                    if slope < 0:
                        zero[j] = False
                        changed = True
                elif x[j] < 0:
                    zero[j] = True
                    changed = True
            if not changed:
                break
        for j in range(n):
            x[j] += shift


def smooth(V, weight, lower):
    """`argmin weight/2 |D x|^2 + 1/2 |x - v|^2` over `x >= lower` (or -inf) for each row v, D its differences."""
    return over_rows(_smooth, V, weight, lower)
