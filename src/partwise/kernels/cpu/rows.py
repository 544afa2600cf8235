"""What the kernels of beta-divergences and of L1 share: one row of X against its model, entry by entry.

The row of a factor is `w`, and the other factor is turned, `H[k]` being the entries of component k that go with those
of the row: all of them, or for KL and L1, where zeros of X cost nothing, those of its nonzeros, gathered. All are
padded with zeros to whole vectors. The model is `y = sum_k w_k H[k]`; for a divergence its slope and curvature in
`w_k` are

    g_k = s_k + sum_j d'(x_j, y_j) H[k, j],    q_kl = sum_j d''(x_j, y_j) H[k, j] H[l, j],

with d' and d'' the derivatives of the divergence in y. For KL `s` holds the sums of the other factor and d' = -x / y.
d'' is that of the convex part where a divergence is not convex (beta < 1, beta > 2): what is left out lies below its
tangent, so a step that lowers the rest lowers the whole.
"""

import math

import numpy as np

from ...losses.beta import NEAR
from .. import threads
from .base import aligned, compiled, padded_to
from .products import gather_vectors
from .simd import FLOOR, HUGE, LINE, TINY, VECTOR, bits_of, combine, dots, number_of

LN2 = math.log(2)
SMALL, SMALL_SINGLE = TINY[8], TINY[4]  # numbers that compiled code knows by name
LARGE, LARGE_SINGLE = HUGE[8], HUGE[4]


@compiled
def logarithm(x):
    """The natural logarithm of a positive number of double precision, in code that works on vectors.

    `log(2^e m) = e log 2 + 2 artanh((m - 1) / (m + 1))`, m between 1/sqrt 2 and sqrt 2, by its series.
    """
    bits = bits_of(x)
    exponent = np.float64((bits >> 52) - 1023)
    m = number_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    above = m > 1.4142135623730951
    m = 0.5 * m if above else m
    exponent = exponent + 1.0 if above else exponent
    f = (m - 1) / (m + 1)
    s = f * f
    series = 1 / 17 + s * (1 / 19 + s * (1 / 21))
    series = 1 / 9 + s * (1 / 11 + s * (1 / 13 + s * (1 / 15 + s * series)))
    series = 1 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * series)))
    return exponent * LN2 + 2 * f * series


@compiled
def stride_of(n, itemsize):
    """The distance of rows of n numbers: whole cache lines, an odd number of them, so that columns do not collide."""
    lines = -(-n * itemsize // LINE)
    return (lines + 1 - lines % 2) * LINE // itemsize


@compiled
def _turn(B, H, stride, start, stop):
    for j in range(start, stop):
        for k in range(B.shape[1]):
            H[k * stride + j] = B[j, k]


def turned(B):
    """The rows of B', padded with zeros, one after the other, and their distance."""
    dim, rank = B.shape
    stride = stride_of(dim, B.itemsize)
    H = np.zeros(rank * stride, B.dtype)
    threads.run(lambda i, j: _turn(B, H, stride, i, j), threads.even(dim, rank, threads.LIGHT_WORK))
    return H, stride


def tasks(rows_of_X, B, beta, rows, work):
    """Boundaries of tasks of about the same size: rows with all their entries, `work` for each, and something more."""
    lengths = np.diff(rows_of_X[0])[rows] if beta == 1 else np.full(rows.size, B.shape[0])
    return threads.balanced((lengths + 16) * np.int64(work))


def panel_of(rows_of_X, B, beta):
    """What a task gets of the other factor: H and the distance of its rows where every entry of a row of X matters;
    where only nonzeros do, nothing yet (distance 0), since each task gathers its own."""
    whole = rows_of_X[1] is None or beta != 1
    return turned(B) if whole else (np.zeros(0, B.dtype), 0)


@compiled
def room_for(indptr, A, B, H, stride, rows, start, stop):
    """H with room for the longest of the given rows, the distance of its rows, whether it is whole, and the length of
    such a row, padded."""
    if stride > 0:
        return H, stride, True, padded_to(B.shape[0], A.itemsize)
    longest = 0
    for t in range(start, stop):
        longest = max(longest, indptr[rows[t] + 1] - indptr[rows[t]])
    own = stride_of(longest, A.itemsize)
    return aligned(A.shape[1] * own, A), own, False, padded_to(longest, A.itemsize)


@compiled
def read_row(indptr, indices, values, scale, i, whole, dim, x):
    """Where row i of X begins, its length, and that with padding; its entries go to x, in their unit, then zeros."""
    first = np.int64(indptr[i])
    n = np.int64(indptr[i + 1]) - first
    if indices is not None and whole:
        length = padded_to(dim, x.itemsize)
        for j in range(length):
            x[j] = 0
        for p in range(first, first + n):
            x[indices[p]] = values[p] * scale
        return first, np.int64(dim), length
    length, row = padded_to(n, x.itemsize), values[first : first + n]
    for j in range(row.size):
        x[j] = row[j] * scale
    for j in range(n, length):
        x[j] = 0
    return first, n, length


@compiled
def gather_panel(indices, first, n, B, parts, begun, n_parts, H, stride, length):
    """`H[a]` for the parts `begun <= a < n_parts` of a list of components: their entries at the nonzeros of a row."""
    flat, width, here = B.reshape(B.size), B.shape[1], indices[first : first + n]
    for j in range(here.size):
        # unsigned numbers need no check for being negative
        line = np.uint64(here[j]) * np.uint64(width)
        for a in range(begun, n_parts):
            H[np.uint64(a * stride + j)] = flat[line + np.uint64(parts[a])]
    for a in range(begun, n_parts):
        for j in range(n, length):
            H[a * stride + j] = 0


@compiled
def take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y):
    """List the components that a row uses, with their weights and their places in H; the model goes to y. Returns how
    many they are."""
    n_parts = 0
    for k in range(w.size):
        if w[k] != 0:
            parts[n_parts], places[n_parts], c[n_parts] = k, (k if whole else n_parts) * stride, w[k]
            n_parts += 1
    if indices is not None and not whole:
        gather_panel(indices, first, n, B, parts, 0, n_parts, H, stride, length)
    combine(c, places, n_parts, H, length, y)
    return n_parts


@compiled
def join_parts(w, slope, high, indices, first, n, length, whole, B, H, stride, parts, places, c, n_parts):
    """Add to the list the components at 0 whose slope is negative; returns how many are in it now."""
    begun = n_parts
    for k in range(w.size):
        if slope[k] < 0 and w[k] == 0 and high[k] > 0:
            listed = False
            for a in range(begun):
                listed |= parts[a] == k
            if not listed:
                parts[n_parts], places[n_parts], c[n_parts] = k, (k if whole else n_parts) * stride, 0
                n_parts += 1
    if indices is not None and not whole and n_parts > begun:
        gather_panel(indices, first, n, B, parts, begun, n_parts, H, stride, length)
    return n_parts


@compiled
def sums_of(z, indices, first, n, length, whole, B, H, stride, out):
    """`out[k] = sum_j z_j h_kj` for all components."""
    if indices is not None and not whole:
        gather_sums(z, indices, first, n, B, out)
    else:
        rank = H.size // stride
        for k in range(0, rank - rank % 4, 4):
            dots(4, z, H, k * stride, stride, length, out, k)
        for k in range(rank - rank % 4, rank):
            dots(1, z, H, k * stride, stride, length, out, k)


@compiled
def gather_sums(z, indices, first, n, B, out):
    """`out = sum_j z_j B[indices[first + j]]`, B in whole vectors."""
    width, flat, here = B.shape[1], B.reshape(B.size), indices[first : first + n]
    lanes = VECTOR // B.itemsize
    for offset in range(0, width, 4 * lanes):
        gather_vectors(min(4, (width - offset) // lanes), z, here, 0, n, flat, offset, width, out[offset:])


@compiled
def unreached(x, y, n):
    """How many positive entries have a model of 0."""
    found = 0
    for j in range(n):
        found += y[j] <= FLOOR * x[j] and x[j] > 0
    return found


@compiled
def revive(w, x, y, n, beta, indices, first, whole, B, costs, lower, upper):
    """Give mass to a row where its model is 0 under a positive entry that its free components could reach: for
    beta <= 1 nothing costs more, and beyond Newton's method leaves there slowly. It goes along `h_j`, and comes to
    `x_j` in all, each weight at its cost, or for beta > 1 to a little of that. Returns whether any was given."""
    share, changed = (1.0 if beta <= 1 else 2.0**-10), False
    for j in range(n):
        if x[j] > 0 and y[j] <= FLOOR * x[j]:
            line = B[j if indices is None or whole else indices[first + j]]
            total, own = 0.0, 0.0
            for k in range(w.size):
                if upper[k] > lower[k]:
                    total += np.float64(line[k]) * costs[k]
                    own += np.float64(line[k]) ** 2
            if own > FLOOR * total:
                for k in range(w.size):
                    if upper[k] > lower[k]:
                        w[k] = min(w[k] + share * line[k] * x[j] / total, upper[k])
                changed = True
    return changed


@compiled
def value_of(c, parts, n_parts, x, y, n, beta, constant, l2):
    """The objective of a row, in double precision; `constant` is the slope that does not depend on the model."""
    total = divergence(x, y, n, beta)
    for a in range(n_parts):
        weight = np.float64(c[a])
        total += weight * (constant[parts[a]] + l2 * weight / 2)
    return total


@compiled
def divergence(x, y, n, beta):
    """`sum d(x, y)` over n entries, but for the linear term of KL, in double precision."""
    total, tiny = 0.0, SMALL
    if beta == 1:
        for j in range(n):
            a = np.float64(x[j])
            b = max(np.float64(y[j]), FLOOR * a + tiny)
            total += a * logarithm(a / b + tiny) - a
    elif beta == 0:
        for j in range(n):
            a = np.float64(x[j])
            r = a / max(np.float64(y[j]), FLOOR * a + tiny)
            total += r - logarithm(r + tiny) - 1
    elif min(abs(beta), abs(beta - 1)) < NEAR:
        power = beta if abs(beta) < NEAR else beta - 1
        for j in range(n):
            a = np.float64(x[j])
            b = max(np.float64(y[j]), FLOOR * a + tiny)
            r = a / b
            less_one = (math.expm1(power * math.log(r)) if a > 0 else -1.0) / power
            total += b**beta * ((r - 1 - less_one) / (1 - beta) if power == beta else (r * less_one - (r - 1)) / beta)
    else:
        for j in range(n):
            a = np.float64(x[j])
            b = max(np.float64(y[j]), FLOOR * a + tiny)
            part = a**beta / (beta * (beta - 1)) if a > 0 else 0.0
            total += part + b**beta / beta - a * b ** (beta - 1) / (beta - 1)
    return total


@compiled
def split(x, y, n, length, beta, minus, plus, second):
    """`d' = plus - minus`, both >= 0, and `d''` of the convex part, with y above its floor; KL without its linear term,
    plus = 0."""
    single = x.itemsize == 4
    tiny, huge = x.dtype.type(SMALL_SINGLE if single else SMALL), x.dtype.type(LARGE_SINGLE if single else LARGE)
    floor = x.dtype.type(FLOOR)
    for j in range(n, length):
        minus[j] = plus[j] = second[j] = 0
    if beta == 1:
        for j in range(n):
            inverse = 1 / max(y[j], floor * x[j] + tiny)
            minus[j] = x[j] * inverse
            plus[j] = 0
            second[j] = min(minus[j] * inverse, huge)
    elif beta == 0:
        for j in range(n):
            inverse = 1 / max(y[j], floor * x[j] + tiny)
            ratio = x[j] * inverse
            plus[j] = inverse
            minus[j] = ratio * inverse
            second[j] = min(2 * min(minus[j], huge) * inverse, huge)
    else:
        convex, own = max(beta - 1, 0.0), max(2 - beta, 0.0)
        for j in range(n):
            b = np.float64(max(y[j], floor * x[j] + tiny))
            power = b ** (beta - 2)
            plus[j] = min(power * b, np.float64(huge))
            minus[j] = min(power * x[j], np.float64(huge))
            second[j] = min(power * (convex + own * x[j] / b), np.float64(huge))


@compiled
def rescue(
    w,
    A,
    i,
    n,
    first,
    length,
    indices,
    whole,
    B,
    H,
    stride,
    beta,
    constant,
    l2,
    costs,
    low,
    high,
    parts,
    places,
    c,
    n_parts,
    x,
    y,
):
    """Revive a row whose model is 0 under positive entries, unless its objective would rise. Returns how many parts it
    uses then."""
    before = value_of(c, parts, n_parts, x, y, n, beta, constant, l2)
    if revive(w, x, y, n, beta, indices, first, whole, B, costs, low, high):
        n_parts = take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
        if value_of(c, parts, n_parts, x, y, n, beta, constant, l2) > before:
            for k in range(w.size):
                w[k] = A[i, k]
            n_parts = take_parts(w, indices, first, n, length, whole, B, H, stride, parts, places, c, y)
    return n_parts
