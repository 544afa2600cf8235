"""Sums and extremes of whole arrays, in double precision."""

import math

import numpy as np

from .. import threads
from .divergences import exponential, logarithm
from .team import mapped, over, per_task


@mapped
def _inner(A, B, sums, number, start, stop):
    total, a, b = 0.0, A[start:stop], B[start:stop]
    for p in range(a.size):
        total += np.float64(a[p]) * np.float64(b[p])
    sums[number] = total


def inner(A, B):
    """`sum A B`."""
    boundaries = pieces_of(A)
    sums = per_task(boundaries)
    over(_inner, boundaries, A.ravel(), B.ravel(), sums)
    return float(sum(sums))


@mapped
def _sum_abs(A, sums, number, start, stop):
    total, a = 0.0, A[start:stop]
    for p in range(a.size):
        total += abs(np.float64(a[p]))
    sums[number] = total


def sum_abs(A):
    """`sum |A|`."""
    boundaries = pieces_of(A)
    sums = per_task(boundaries)
    over(_sum_abs, boundaries, A.ravel(), sums)
    return float(sum(sums))


INTEGERS = {kind().itemsize: (kind, kind(np.iinfo(kind).max)) for kind in (np.int32, np.int64)}  # and the largest


@mapped
def _statistics(values, bits, most, ends, sums, number, start, stop):
    # slices: where an index might count from the end, the loop is not vectorised
    values, bits = values[start:stop], bits[start:stop]
    least, highest, absolute, squares, nonzeros = most, ~most, 0.0, 0.0, 0
    for p in range(values.size):
        key = bits[p] ^ most if bits[p] < 0 else bits[p]
        is_zero = bits[p] & most == 0
        least = min(least, most if is_zero else key)
        highest = max(highest, key)
        nonzeros += 0 if is_zero else 1
        value = np.float64(values[p])
        absolute += abs(value)
        squares += value * value
    ends[number, 0], ends[number, 1] = least, highest
    sums[number, 0], sums[number, 1], sums[number, 2] = nonzeros, absolute, squares


def statistics(values):
    """Of numbers in a row, one at least, in one pass: the smallest that is not 0 (0 where all are), the largest, how
    many are not 0, `sum |v|` and `sum v^2`. What is not finite is one of the first two.

    These are found among the bits of the numbers, as integers in the same order, with infinity and NaN at the ends: it
    is faster than to compare floats, and compiled code may take it that no float is NaN."""
    boundaries, (kind, most) = pieces_of(values), INTEGERS[values.itemsize]
    ends, sums = np.empty((len(boundaries) - 1, 2), kind), per_task(boundaries, 3)
    over(_statistics, boundaries, values, values.view(kind), most, ends, sums)
    lowest, highest = ends.T.tolist()
    bits = [key ^ int(most) if key < 0 else key for key in (min(lowest), max(highest))]
    least, highest = np.array(bits, kind).view(values.dtype).tolist()
    n_nonzeros, absolute, squares = map(sum, sums.T.tolist())
    return least if n_nonzeros else 0.0, highest + 0.0, int(n_nonzeros), absolute, squares  # -0 + 0 is 0


def falls(indices):
    """How many of the numbers in a row are not above the one before."""
    boundaries = threads.split_evenly(len(indices[1:]), 1)
    return sum(threads.map_chunks(lambda i, j: np.count_nonzero(indices[i + 1 : j + 1] <= indices[i:j]), boundaries))


def all_finite(values):
    """True where all are finite; False where one is not, or their sum is too large: in one pass, without memory."""

    def task(start, stop):
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite, or no number, makes any sum so
            return float(values[start:stop].sum())

    # rows of an array, since a view of it by entries may be a copy
    chunks = threads.split_evenly(len(values), values.size // max(len(values), 1), threads.NUMPY_WORK)
    return math.isfinite(sum(threads.map_chunks(task, chunks)))


def pieces_of(values):
    return threads.split_evenly(values.size, 1, threads.LIGHT_WORK)


@mapped
def _power_sums(X, beta, out, number, start, stop):
    weights, weighted = X.weights, X.weights.size > 0
    for i in range(start, stop):
        first, last, total = X.indptr[i], X.indptr[i + 1], 0.0
        if beta == 1 or beta == 2:  # noqa: PLR1714  # a set would take long to compile
            for p in range(first, last):
                value, weight = abs(np.float64(X.values[p] * X.scale)), np.float64(weights[p]) if weighted else 1.0
                total += weight * (value if beta == 1 else value * value)
        else:
            for p in range(first, last):
                value, weight = abs(np.float64(X.values[p] * X.scale)), np.float64(weights[p]) if weighted else 1.0
                power, _ = exponential(beta * logarithm(value))
                total += weight * power if value > 0 else 0.0
        out[i] = total


def power_sums(X, beta):
    """`sum |x|^beta` over the nonzero entries of each row, each by its weight, (dim,)."""
    out = np.empty(X.n_rows)
    boundaries = threads.split_rows(X.indptr, 1, least=threads.LIGHT_WORK)
    over(_power_sums, boundaries, X, float(beta), out)
    return (out,), ()
