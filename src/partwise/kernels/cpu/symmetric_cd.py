"""Symmetric factorization `X ~ A A'`: one entry of A at a time, each to its exact best value.

With the other rows held, `1/2 |X - A A'|^2` in row i of A, here a, is

    a' G a - 2 c' a + 1/2 (|a|^2 - x_ii)^2 + constant,    G = sum_{j != i} a_j a_j',    c = sum_{j != i} x_ij a_j,

without the third term where the diagonal of X does not count. In one entry z = a_k that is `2 F(z) + constant`,

    F(z) = z^4 / 4 + p z^2 / 2 + q z,    p = G_kk + |a|^2 - a_k^2 - x_ii,    q = sum_{l != k} G_kl a_l - c_k,

or `F(z) = G_kk z^2 / 2 + q z` (Vandaele, Gillis, Lei, Zhong and Dhillon 2016, IEEE Trans. Signal Processing 64(21)).
Rows of A may be float32; what is summed over rows and what decides about an entry is in double precision.
"""

import numpy as np

from .. import threads
from .base import aligned, compiled
from .products import TILE, gather_vectors, padded
from .simd import VECTOR
from .sums import gram

ROUNDS = 60  # of Newton's method: it needs 2 to 7
CLOSE = 2.0**-27  # a step by this share of the root is the last: the next would be by its square
ALONE = 2.0**-10  # of a diagonal entry of `A'A`: where the other rows have less, subtracting a row leaves rounding
FARTHEST = 2.0**60  # an entry beyond which products in single precision end: it stays where it is


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


@compiled
def lowest(quartic, p, q, near):
    """The same with or without (`quartic` 1 or 0) the first term; `near` where there is no curvature either."""
    if quartic > 0:
        return lowest_of_quartic(p, q, near)
    return max(-q / p, 0.0) if p > 0 and -q < FARTHEST * p else near


@compiled
def gain_of(a, z, quartic, p, q):
    """`2 F(a) - 2 F(z)`, without the cancellation of large terms."""
    s, fourth = z - a, quartic * a
    return -2 * s * ((fourth * a + p) * a + q + s * ((3 * fourth * a + p) / 2 + s * (fourth + quartic * s / 4)))


@compiled
def stands_alone(row, gram):
    """Whether some column has little but this row: subtracting it from `A'A` would leave rounding. There are at most as
    many such rows as columns."""
    alone = False
    for k in range(gram.shape[0]):
        alone |= np.float64(row[k]) ** 2 > (1 - ALONE) * gram[k, k]
    return alone


@compiled
def sum_others(A, i, G):
    """`G = sum_{j != i} a_j a_j'`."""
    G[:] = 0
    for j in range(A.shape[0]):
        for k in range(G.shape[0]):
            if j != i and A[j, k] != 0:
                line, own = G[k], np.float64(A[j, k])
                for m in range(G.shape[0]):
                    line[m] += own * np.float64(A[j, m])


@compiled
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


@compiled
def descend_row(row, gram, inside, c, x, quartic, moving, gains, a, h):
    """Each entry of a row in turn to its best value, where `moving`; what that gains is added to `gains`.

    gram and inside as in `begin_row`, a and h are room for what it writes, and x is the entry of X on the diagonal.
    Returns whether anything moved.
    """
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


@compiled
def _product(values, indices, first, last, wide, out):
    """`sum_p values[p] wide[indices[p]]`, first <= p < last."""
    stride, flat, lanes = wide.shape[1], wide.reshape(wide.size), VECTOR // wide.itemsize
    for tile in range(0, stride // lanes, TILE):
        count = min(TILE, stride // lanes - tile)
        gather_vectors(count, values, indices, first, last, flat, tile * lanes, stride, out[tile * lanes :])


@compiled
def _sweep(indptr, indices, values, scale, order, wide, gram, own, quartic):
    """One sweep over the rows of `wide`, in place, and over `gram`; returns the gains of each column."""
    rank = gram.shape[0]
    gains, a, h, c, G = np.zeros(rank), np.empty(rank), np.empty(rank), np.empty(rank), np.empty_like(gram)
    sums = aligned(wide.shape[1], wide)
    for i in range(wide.shape[0]):
        row = wide[i]
        for k in range(rank):
            a[k] = row[k]
        row[:] = 0  # the product is with the other rows
        first, last = np.int64(indptr[i]), np.int64(indptr[i + 1])
        if indices is None:
            _product(values[first:last], order, np.int64(0), last - first, wide, sums)
        else:
            _product(values, indices, first, last, wide, sums)
        for k in range(rank):
            row[k], c[k] = a[k], np.float64(sums[k]) * scale
        if stands_alone(row, gram):
            sum_others(wide, i, G)
            descend_row(row, G, 0.0, c, own[i], quartic, True, gains, a, h)
            for k in range(rank):
                for j in range(rank):
                    gram[k, j] = G[k, j] + np.float64(row[k]) * np.float64(row[j])
        elif descend_row(row, gram, 1.0, c, own[i], quartic, True, gains, a, h):
            for k in range(rank):
                now, line = np.float64(row[k]), gram[k]
                for j in range(rank):
                    line[j] += now * np.float64(row[j]) - a[k] * a[j]
    return gains


def symmetric_cd(rows_of_X, scale, A, own, diagonal, sweeps):
    """A after so many sweeps over its entries, row by row, and what each column gained in the last of them, (rank,).

    `own` is the diagonal of X, `diagonal` whether it counts; where it does not, it must be 0 in X."""
    wide, gains = padded(A, A.dtype.type(1)), np.zeros(A.shape[1])
    order, quartic = np.arange(A.shape[0], dtype=np.int32), 1.0 if diagonal else 0.0
    for _ in range(sweeps):
        # within a sweep it is kept up to date, and rounding adds up
        whole = gram(wide[:, : A.shape[1]].astype(np.float64, order="C"))
        gains = _sweep(*rows_of_X, float(scale), order, wide, whole, own, quartic)
    return np.ascontiguousarray(wide[:, : A.shape[1]]), gains


@compiled
def _symmetric_gains(A, cross, gram, own, quartic, start, stop):
    rank = gram.shape[0]
    gains, a, h, c, G = np.zeros(rank), np.empty(rank), np.empty(rank), np.empty(rank), np.empty_like(gram)
    for i in range(start, stop):
        for k in range(rank):
            c[k] = np.float64(cross[i, k]) - own[i] * np.float64(A[i, k])
        if stands_alone(A[i], gram):
            sum_others(A, i, G)
            descend_row(A[i], G, 0.0, c, own[i], quartic, False, gains, a, h)
        else:
            descend_row(A[i], gram, 1.0, c, own[i], quartic, False, gains, a, h)
    return gains


def symmetric_gains(A, cross, gram, own, diagonal):
    """By how much the objective falls if each entry of a column goes to its best value, the others held: (rank,).
    `cross` is `X A`, `gram` is `A' A`."""
    gram, quartic = gram.astype(np.float64), 1.0 if diagonal else 0.0
    parts = threads.run(
        lambda i, j: _symmetric_gains(A, cross, gram, own, quartic, i, j), threads.even(A.shape[0], A.shape[1] ** 2)
    )
    return np.sum(parts, axis=0)
