"""Symmetric factorization `X ~ A A'`: one entry of A at a time, each to its exact best value.

With the other rows held, `1/2 |X - A A'|^2` in row i of A, here a, is

    a' G a - 2 c' a + 1/2 (|a|^2 - x_ii)^2 + constant,    G = sum_{j != i} a_j a_j',    c = sum_{j != i} x_ij a_j,

without the third term where the diagonal of X does not count. In one entry z = a_k that is `2 F(z) + constant`,

    F(z) = z^4 / 4 + p z^2 / 2 + q z,    p = G_kk + |a|^2 - a_k^2 - x_ii,    q = sum_{l != k} G_kl a_l - c_k,

or `F(z) = G_kk z^2 / 2 + q z` (Vandaele, Gillis, Lei, Zhong and Dhillon 2016, IEEE Trans. Signal Processing 64(21)).
Rows of A may be float32; what is summed over rows and what decides about an entry is in double precision.
"""

from typing import NamedTuple

import numpy as np

from .. import threads
from .base import aligned, compiled, helper
from .gram import gram
from .padding import padded
from .products import TILE, gather_vectors
from .simd import VECTOR
from .team import mapped, over, per_task

ROUNDS = 60  # of Newton's method: it needs 2 to 7
CLOSE = 2.0**-27  # a step by this share of the root is the last: the next would be by its square
ALONE = 2.0**-10  # of a diagonal entry of `A'A`: where the other rows have less, subtracting a row leaves rounding
FARTHEST = 2.0**60  # an entry beyond which products in single precision end: it stays where it is


class Room(NamedTuple):
    """For one row: it and `G a` in double precision, c and G of the formula, and the gains of all rows so far."""

    a: np.ndarray
    h: np.ndarray
    c: np.ndarray
    G: np.ndarray
    gains: np.ndarray


@compiled
def room_of(gram):
    rank = gram.shape[0]
    return Room(np.empty(rank), np.empty(rank), np.empty(rank), np.empty_like(gram), np.zeros(rank))


@compiled
def lowest_of_quartic(p, q, near):
    """The z >= 0 at which `F(z) = z^4 / 4 + p z^2 / 2 + q z` is lowest; `near` may be close to it.

    It is 0 unless `F(z) / z` is negative somewhere, and that is convex: its minimum is at `z^2 = -2 p / 3`. Otherwise
    it is the largest root of `F'`, which is convex for z > 0, so that Newton's method comes down to it from above.
    """
    if q >= 0 and (p >= 0 or q >= -p / 3 * np.sqrt(-2 * p / 3)):
        return 0.0
    bend, z = 3 * near * near + p, 0.0
    if bend > 0:
        z = near - ((near * near + p) * near + q) / bend  # a step from below leads above, too
    if not 0 < z <= 2 * near:
        root = max(-q, 0.0) ** (1 / 3)
        z = min(root, -q / p) if p > 0 else root + np.sqrt(-p)  # above the largest root
    for _ in range(ROUNDS):
        step = ((z * z + p) * z + q) / (3 * z * z + p)
        z -= step
        if abs(step) <= CLOSE * z:
            break
    return z


@helper
def lowest(quartic, p, q, near):
    """The same with the first term times `quartic`; where that is 0 and there is no curvature either, `near`."""
    if quartic > 0:
        return lowest_of_quartic(p / quartic, q / quartic, near)
    return max(-q / p, 0.0) if p > 0 and -q < FARTHEST * p else near


@helper
def gain_of(a, z, quartic, p, q):
    """`2 F(a) - 2 F(z)`, without the cancellation of large terms."""
    s, fourth = z - a, quartic * a
    return -2 * s * ((fourth * a + p) * a + q + s * ((3 * fourth * a + p) / 2 + s * (fourth + quartic * s / 4)))


@helper
def stands_alone(row, gram):
    """Whether some column has little but this row: subtracting it from `A'A` would leave rounding. There are at most as
    many such rows as columns."""
    alone = False
    for k in range(gram.shape[0]):
        alone |= np.float64(row[k]) ** 2 > (1 - ALONE) * gram[k, k]
    return alone


@helper
def sum_others(A, i, G):
    """`G = sum_{j != i} a_j a_j'`."""
    G[:] = 0
    for j in range(A.shape[0]):
        for k in range(G.shape[0]):
            if j != i and A[j, k] != 0:
                line, own = G[k], np.float64(A[j, k])
                for m in range(G.shape[0]):
                    line[m] += own * np.float64(A[j, m])


@helper
def begin_row(row, gram, inside, a, h):
    """The row in double precision in a, and `G a` in h; `inside` 1: the Gram matrix given has the row in it, 0: it does
    not. Returns |a|^2."""
    norm2 = 0.0
    for k in range(a.size):
        a[k], h[k] = row[k], 0.0
    for k in range(a.size):
        norm2 += a[k] * a[k]
    for k in range(a.size):
        if a[k] != 0:
            line = gram[k]
            for j in range(h.size):
                h[j] += a[k] * line[j]
    for k in range(a.size):
        h[k] -= inside * norm2 * a[k]
    return norm2


@helper
def descend_row(row, gram, inside, x, quartic, moving, room):
    """Each entry of a row in turn to its best value, where `moving`; what that gains is added to `room.gains`.

    gram and inside as in `begin_row`, and x is the entry of X on the diagonal. Returns whether anything moved.
    """
    gains, a, h, c = room.gains, room.a, room.h, room.c
    norm2, moved = begin_row(row, gram, inside, a, h), False
    for k in range(a.size):
        own, line = a[k], gram[k]
        within = inside * own
        rest = line[k] - within * own
        p, q = rest + quartic * (norm2 - own * own - x), h[k] - c[k] - rest * own
        z = np.float64(row.dtype.type(lowest(quartic, p, q, own)))
        gain = gain_of(own, z, quartic, p, q)
        if gain > 0:
            gains[k] += gain
            if moving:
                moved, row[k], s = True, z, z - own
                norm2 += s * (own + z)
                for j in range(h.size):
                    h[j] += s * (line[j] - within * a[j])
    return moved


@helper
def _product(values, indices, wide, out):
    """`sum_p values[p] wide[indices[p]]`."""
    stride, flat, lanes = wide.shape[1], wide.reshape(wide.size), VECTOR // wide.itemsize
    for offset in range(0, stride, TILE * lanes):
        some = min(TILE * lanes, stride - offset)
        gather_vectors(some // lanes, values, indices, (0, values.size), flat, offset, stride, some, out[offset:])


@compiled
def _sweep(X, order, wide, gram, own, quartic):
    """One sweep over the rows of `wide`, in place, and over `gram`; returns the gains of each column."""
    rank, room = gram.shape[0], room_of(gram)
    a, c, G, sums, scale = room.a, room.c, room.G, aligned(wide.shape[1], wide.dtype), np.float64(X.scale)
    for i in range(wide.shape[0]):
        row = wide[i]
        for k in range(rank):
            a[k] = row[k]
        row[:] = 0  # the product is with the other rows
        first, last = X.indptr[i], X.indptr[i + 1]
        _product(X.values[first:last], order if X.full else X.indices[first:last], wide, sums)
        for k in range(rank):
            row[k], c[k] = a[k], np.float64(sums[k]) * scale
        if stands_alone(row, gram):
            sum_others(wide, i, G)
            descend_row(row, G, 0.0, own[i], quartic, True, room)
            for k in range(rank):
                for j in range(rank):
                    gram[k, j] = G[k, j] + np.float64(row[k]) * np.float64(row[j])
        elif descend_row(row, gram, 1.0, own[i], quartic, True, room):
            for k in range(rank):
                now, line = np.float64(row[k]), gram[k]
                for j in range(rank):
                    line[j] += now * np.float64(row[j]) - a[k] * a[j]
    return room.gains


def symmetric_cd(X, A, own, diagonal, sweeps):
    """A after so many sweeps over its entries, row by row, and what each column gained in the last of them, (rank,).

    `own` is the diagonal of X, `diagonal` the weight of its loss; where that is 0, it must be 0 in X."""
    wide, gains = padded(A, A.dtype.type(1)), np.zeros(A.shape[1])
    order = np.arange(A.shape[0], dtype=X.indices.dtype)
    for _ in range(sweeps):
        # within a sweep it is kept up to date, and rounding adds up
        whole = gram(wide[:, : A.shape[1]].astype(np.float64, order="C"))
        gains = _sweep(X, order, wide, whole, own, float(diagonal))
    return np.ascontiguousarray(wide[:, : A.shape[1]]), gains


@mapped
def _symmetric_gains(A, cross, gram, own, quartic, gains, number, start, stop):
    rank, room = gram.shape[0], room_of(gram)
    for i in range(start, stop):
        for k in range(rank):
            room.c[k] = np.float64(cross[i, k]) - own[i] * np.float64(A[i, k])
        if stands_alone(A[i], gram):
            sum_others(A, i, room.G)
            descend_row(A[i], room.G, 0.0, own[i], quartic, False, room)
        else:
            descend_row(A[i], gram, 1.0, own[i], quartic, False, room)
    for k in range(rank):
        gains[number, k] = room.gains[k]


def symmetric_gains(A, cross, gram, own, diagonal):
    """By how much the objective falls if each entry of a column goes to its best value, the others held: (rank,).
    `cross` is `X A`, `gram` is `A' A`."""
    gram, diagonal = gram.astype(np.float64), float(diagonal)
    boundaries = threads.split_evenly(A.shape[0], A.shape[1] ** 2)
    gains = per_task(boundaries, A.shape[1])
    over(_symmetric_gains, boundaries, A, cross, gram, own, diagonal, gains)
    return gains.sum(axis=0)
