"""What the kernels share: how they are compiled, and one coordinate with its best value.

Common arguments of the block updates, for one factor `A` (dim, rank) with the others held:
`cross` and `gram` of the normal equations, ridge included, so that the gradient is `A gram - cross`;
`box` the weight of |A| and its bounds; `rows` the rows to update, each once; `X` the rows of data that go with those of
A. Updates return a new array. G stands for a gradient given as an array.

A loop that adds up writes to no array: compiled code looks whether arrays lie close together and then adds up in
another order, so that the last bits would depend on where they happen to lie.
"""

from typing import NamedTuple

import numpy as np

from ..records import Box
from .cache import compiler
from .linked import Compiler
from .simd import LINE, VECTOR, WAY

compiled, helper = compiler(WAY), compiler(WAY, inner=True)
maker = compiler(WAY, inner=True, _nrt=True)  # a helper that returns arrays
unrolled = compiler(WAY, pipeline_class=Compiler)  # with all effort: loops over a few lanes are unrolled
inlined = compiler(WAY, inner=True, forceinline=True)  # a helper in the innermost of many calls with many arrays


DOUBLE, INT = np.dtype(np.float64), np.dtype(np.int64)


class Update(NamedTuple):
    """Of a factor, from A to `out`, within the box: the rows `rows`."""

    A: np.ndarray
    out: np.ndarray
    rows: np.ndarray
    box: Box


@maker
def aligned(n, dtype):
    """Zeros, n of them, from the beginning of a cache line. Every other way to make an array, such as with another
    number of dimensions, takes a tenth of a second to compile; and this one is compiled anew for each n that is a
    literal, so write `np.int64(3)`."""
    space = np.zeros(n + LINE // 4, dtype)  # no number has less than four bytes
    skip = (-space.ctypes.data) % LINE // space.itemsize
    return space[skip : skip + n]


def padded_to(n, itemsize):
    """The room that n numbers take in whole vectors."""
    lanes = VECTOR // itemsize
    return -(-n // lanes) * lanes


@helper
def best(a, g, inverse, threshold, lower, upper):
    """The minimiser in [lower, upper] of `g (x - a) + d/2 (x - a)^2 + l1 |x|`, with 1/d and l1/d given."""
    u = a - inverse * g
    x = u - min(max(u, -threshold), threshold)
    return min(max(x, lower), upper)


@helper
def best_for(a, g, d, l1, lower, upper):
    """The same from d and l1; where d = 0 the slope decides, and an entry that no bound holds stays."""
    if d > 0:
        return best(a, g, 1 / d, l1 / d, lower, upper)
    x = a if abs(g) == l1 else (-np.inf if g > l1 else (np.inf if g < -l1 else 0.0))
    x = min(max(x, lower), upper)
    return x if abs(x) < np.inf else a


@helper
def gain(a, x, g, d, l1):
    """By how much `g (x - a) + d/2 (x - a)^2 + l1 |x|` at x is below its value at a."""
    s = x - a
    return -s * (g + d * s / 2) - l1 * (abs(x) - abs(a))


@helper
def curvature(gram, l1, inverse, threshold):
    """`1 / d` and `l1 / d` of each coordinate, d = diag(gram), into zeros; where d = 0 only the penalty acts."""
    for k in range(gram.shape[0]):
        d = gram[k, k]
        if d > 0:
            inverse[k] = 1 / d
            threshold[k] = l1 * inverse[k]
        elif l1 > 0:
            threshold[k] = np.inf


@helper
def note(gains, total, found):
    """What a task found: a number for each component, and one more."""
    for k in range(gains.size):
        found[k] = gains[k]
    found[gains.size] = total


@maker
def bounds_of(box, i):
    """Lower and upper bounds of row i."""
    return box.lower[min(i, box.lower.shape[0] - 1)], box.upper[min(i, box.upper.shape[0] - 1)]


def update_of(A, box, rows):
    """With an array for the result: rows that are not updated are in it already."""
    return Update(A, np.empty_like(A) if rows.size == A.shape[0] else A.copy(), rows, Box(*box))
