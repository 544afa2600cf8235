"""The functions of `llvm.py` as plain loops, for processors and versions of Numba that it does not know.

Arguments and results are the same, but for rounding; lengths are whole vectors here too.
"""

import numpy as np

from ..cache import compiler
from .sizes import FLOOR, HIGH, HUGE, TILE, TINY, VECTOR, VECTORS

compiled = compiler("plain")

SMALL, SMALL_SINGLE = TINY[8], TINY[4]  # numbers that compiled code knows by name
LARGE, LARGE_SINGLE = HUGE[8], HUGE[4]


@compiled
def panel(weights, k, m, A, n, start, out):
    """`out = start[i] + sum_j weights[i, j] A[j]` for i = k, and after that for i = m; rows A[j] and start[i] of
    `VECTORS` vectors, j < n, as many as weights has columns."""
    width = VECTORS * VECTOR // A.itemsize
    one, other = out[:width], out[width : 2 * width]
    one[:] = start[k * width : (k + 1) * width]
    other[:] = start[m * width : (m + 1) * width]
    for j in range(0, n - 1, 2):  # two rows at once: sums are read and written half as often
        row, next_row = A[j * width : (j + 1) * width], A[(j + 1) * width : (j + 2) * width]
        w, next_w, other_w, other_next_w = weights[k, j], weights[k, j + 1], weights[m, j], weights[m, j + 1]
        for i in range(row.size):
            one[i] += w * row[i] + next_w * next_row[i]
            other[i] += other_w * row[i] + other_next_w * next_row[i]
    if n % 2:
        w, other_w, row = weights[k, n - 1], weights[m, n - 1], A[(n - 1) * width : n * width]
        for i in range(row.size):
            one[i] += w * row[i]
            other[i] += other_w * row[i]


@compiled
def gather(count, values, indices, first, last, B, offset, stride, width, out):
    """`out = sum_p values[p] B[offset + stride indices[p]:]`, first <= p < last, of `count` vectors: `width` entries,
    and zeros in the rest of the last vector, where B is not read."""
    out[: count * VECTOR // B.itemsize] = 0
    sums = out[:width]
    for p in range(first, last):
        place = offset + stride * indices[p]
        weight, row = values[p], B[place : place + sums.size]
        for k in range(sums.size):
            sums[k] += weight * row[k]


@compiled
def scatter(count, values, indices, first, last, B, place, width, offset, stride, out):
    """`out[offset + stride indices[p]:] += values[p] B[place:]`, first <= p < last, of `count` vectors; beyond `width`
    entries B is not read, and counts as zeros."""
    row = B[place : place + width]
    for p in range(first, last):
        start = offset + stride * indices[p]
        weight, sums = values[p], out[start : start + row.size]
        for k in range(row.size):
            sums[k] += weight * row[k]


@compiled
def multiplied(z, place, v, n, out, at):
    """`out[at:] = z[place:] v`, n entries, whole vectors."""
    row, new = z[place : place + n], out[at : at + n]
    for j in range(row.size):
        new[j] = row[j] * v[j]


@compiled
def moments(z, v, H, offset, n):
    """`sum z h` and `sum v h^2` over the first n entries, whole vectors, of z, v and `h = H[offset:]`."""
    first, second, h = z.dtype.type(0), z.dtype.type(0), H[offset : offset + n]
    for j in range(h.size):
        first += z[j] * h[j]
        second += v[j] * h[j] * h[j]
    return first, second


@compiled
def dots(count, z, H, place, stride, n, out, at):
    """`out[at + i] = sum z H[place + i stride:]` over n entries, whole vectors, for i < `count`."""
    for i in range(count):
        total, h = z.dtype.type(0), H[place + i * stride : place + i * stride + n]
        for j in range(h.size):
            total += z[j] * h[j]
        out[at + i] = total


@compiled
def combine(c, places, count, H, n, out):
    """`out = sum_a c[a] H[places[a]:]` over n entries, whole vectors, for a < count."""
    sums = out[:n]
    sums[:] = 0
    for a in range(count):
        weight, h = c[a], H[places[a] : places[a] + n]
        for j in range(h.size):
            sums[j] += weight * h[j]


@compiled
def above_floor(value, model, like):
    """The model, but at least `FLOOR value`, and not 0."""
    kind = like.dtype.type
    floor = kind(FLOOR) * value + kind(SMALL_SINGLE if like.itemsize == 4 else SMALL)
    return model if model > floor else floor


@compiled
def renew(x, y, H, offset, d, n, z, v):
    """`y += d h`, then `z = x / y` and `v = x / y^2` with y held above `FLOOR x`, for `h = H[offset:]`."""
    huge, one = x.dtype.type(LARGE_SINGLE if x.itemsize == 4 else LARGE), x.dtype.type(1)
    h = H[offset : offset + n]
    for j in range(h.size):
        y[j] += d * h[j]
        inverse = one / above_floor(x[j], y[j], x)
        z[j] = x[j] * inverse
        v[j] = min(z[j] * inverse, huge)


@compiled
def pull(x, y, H, offset, d, n):
    """`sum x h / (y + d h)`, the denominator held above `FLOOR x`, for `h = H[offset:]`."""
    total, h = x.dtype.type(0), H[offset : offset + n]
    for j in range(h.size):
        total += x[j] / above_floor(x[j], y[j] + d * h[j], x) * h[j]
    return total


@compiled
def tile(U, stride, H, places, n, out):
    """`out[a, b] = sum U[a stride:] H[places[b]:]` over n entries, whole vectors; a, b < `TILE`."""
    for a in range(TILE):
        u = U[a * stride : a * stride + n]
        for b in range(TILE):
            total, h = U.dtype.type(0), H[places[b] : places[b] + n]
            for j in range(u.size):
                total += u[j] * h[j]
            out[a * TILE + b] = total


@compiled
def outer(count, A, first, last, stride, top, left, out):
    """`out[a] = sum_i A[i stride + top + a] A[i stride + left:]`, first <= i < last, of `count` vectors; a < `HIGH`."""
    width = count * VECTOR // A.itemsize
    out[: HIGH * width] = 0
    for i in range(first, last):
        place = i * stride
        row = A[place + left : place + left + width]
        for a in range(HIGH):
            weight, sums = A[place + top + a], out[a * width : (a + 1) * width]
            for j in range(row.size):
                sums[j] += weight * row[j]


@compiled
def bits_of(x):
    """The bits of a number of double precision, as an integer."""
    return np.float64(x).view(np.int64)


@compiled
def number_of(bits):
    """The number of double precision with these bits."""
    return np.int64(bits).view(np.float64)
