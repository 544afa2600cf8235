"""What the kernels of beta-divergences share: one row of X against its model, entry by entry.

The row of a factor is `w`, and the other factor is turned, `H[k]` being the entries of component k that go with those
of the row: all of them, or for KL, where zeros of X cost nothing, those of its nonzeros, gathered. All are padded with
zeros to whole vectors. The model is `y = sum_k w_k H[k]`; its slope and curvature in `w_k` are

    g_k = s_k + sum_j d'(x_j, y_j) H[k, j],    q_kl = sum_j d''(x_j, y_j) H[k, j] H[l, j],

with d' and d'' the derivatives of the divergence in y. For KL `s` holds the sums of the other factor and d' = -x / y.
d'' is that of the convex part where a divergence is not convex (beta < 1, beta > 2): what is left out lies below its
tangent, so a step that lowers the rest lowers the whole.
"""

import math

import numpy as np

from .base import aligned, compiled
from .simd import FLOOR, LINE, TINY, VECTOR, bits_of, combine, dots, gather, number_of

LN2 = math.log(2)
TINIEST = TINY[4]
SMALL = TINY[8]


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
def padded_to(n, itemsize):
    """The room that n numbers take in whole vectors."""
    lanes = VECTOR // itemsize
    return -(-n // lanes) * lanes


@compiled
def stride_of(n, itemsize):
    """The distance of rows of n numbers: whole cache lines, an odd number of them, so that columns do not collide."""
    lines = -(-n * itemsize // LINE)
    return (lines + 1 - lines % 2) * LINE // itemsize


@compiled
def turned(B):
    """The rows of B', padded, one after the other, and their distance."""
    dim, rank = B.shape
    stride = stride_of(dim, B.itemsize)
    H = aligned(rank * stride, B)
    for j in range(dim):
        for k in range(rank):
            H[k * stride + j] = B[j, k]
    return H, stride


@compiled
def room_for(indptr, indices, A, B, beta, rows, start, stop):
    """H and the distance of its rows, with room for the longest of the given rows; whether H holds all of B, because
    every entry of a row matters; and the length of such a row, padded."""
    rank = A.shape[1]
    if indices is None or beta != 1:
        H, stride = turned(B[:, :rank])
        return H, stride, True, padded_to(B.shape[0], A.itemsize)
    longest = 0
    for t in range(start, stop):
        longest = max(longest, indptr[rows[t] + 1] - indptr[rows[t]])
    stride = stride_of(longest, A.itemsize)
    return aligned(rank * stride, A), stride, False, padded_to(longest, A.itemsize)


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
        # the number of vectors has to be a literal: it says how many registers the loop uses
        count, target = min(4, (width - offset) // lanes), out[offset:]
        if count == 1:
            gather(1, z, here, 0, n, flat, offset, width, target)
        elif count == 2:
            gather(2, z, here, 0, n, flat, offset, width, target)
        elif count == 3:
            gather(3, z, here, 0, n, flat, offset, width, target)
        else:
            gather(4, z, here, 0, n, flat, offset, width, target)


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
    `x_j` in all, each weight at its cost in mass and penalties, or for beta > 1 to a little of that, which surely gains.
    Returns whether any was given."""
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
    elif beta == 2:
        for j in range(n):
            e = np.float64(x[j]) - np.float64(y[j])
            total += e * e / 2
    else:
        for j in range(n):
            a = np.float64(x[j])
            b = max(np.float64(y[j]), FLOOR * a + tiny)
            part = a**beta / (beta * (beta - 1)) if a > 0 else 0.0
            total += part + b**beta / beta - a * b ** (beta - 1) / (beta - 1)
    return total


@compiled
def slopes(x, y, n, length, beta, first, second):
    """`first = d'`, but for the linear term of KL, and `second = d''` of the convex part, with y above its floor."""
    tiny, floor = x.dtype.type(TINIEST), x.dtype.type(FLOOR)
    for j in range(n, length):
        first[j] = second[j] = 0
    if beta == 1:
        for j in range(n):
            inverse = 1 / max(y[j], floor * x[j] + tiny)
            z = x[j] * inverse
            first[j] = -z
            second[j] = z * inverse
    elif beta == 0:
        for j in range(n):
            inverse = 1 / max(y[j], floor * x[j] + tiny)
            z = x[j] * inverse
            first[j] = (1 - z) * inverse
            second[j] = 2 * z * inverse * inverse
    else:
        convex, own = max(beta - 1, 0.0), max(2 - beta, 0.0)
        for j in range(n):
            b = np.float64(max(y[j], floor * x[j] + tiny))
            power = b ** (beta - 2)
            first[j] = power * (b - x[j])
            second[j] = power * (convex + own * x[j] / b)
