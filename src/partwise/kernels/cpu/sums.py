"""Sums and extremes of whole arrays, in double precision."""

import math

import numpy as np

from .. import threads
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


def extremes(values):
    """Smallest and largest of numbers in a row, by NumPy, whose loops use vectors for that."""
    parts = threads.map_chunks(lambda i, j: (values[i:j].min(), values[i:j].max()), pieces_of(values))
    lowest, highest = zip(*parts, strict=True)
    return float(min(lowest)), float(max(highest))


@mapped
def _unit_sums(values, unit, highest, found, number, start, stop):
    first, second, nonzeros, count = 0.0, 0.0, 0, 0
    for p in range(start, stop):
        value = np.float64(values[p]) / unit
        first += abs(value)
        second += value * value
        nonzeros += values[p] != 0
        count += values[p] == highest
    found[number, 0], found[number, 1], found[number, 2], found[number, 3] = first, second, nonzeros, count


def unit_sums(values, unit, highest):
    """`sum |v / unit|`, `sum (v / unit)^2`, how many are not 0, and how many are `highest`, of numbers in a row."""
    boundaries = pieces_of(values)
    found = per_task(boundaries, 4)
    over(_unit_sums, boundaries, values, unit, highest, found)
    first, second, nonzeros, count = (float(sum(column)) for column in found.T)
    return first, second, int(nonzeros), int(count)


def all_finite(values):
    """True where all are finite; False where one is not, or their sum is too large: in one pass, without memory."""

    def task(start, stop):
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite, or no number, makes any sum so
            return float(values[start:stop].sum())

    # rows of an array, since a view of it by entries may be a copy
    chunks = threads.split_evenly(len(values), values.size // max(len(values), 1), threads.LIGHT_WORK)
    return math.isfinite(sum(threads.map_chunks(task, chunks)))


def pieces_of(values):
    return threads.split_evenly(values.size, 1, threads.LIGHT_WORK)


@mapped
def _power_sums(X, beta, out, number, start, stop):
    weighted = X.weights.size > 0
    for i in range(start, stop):
        total = 0.0
        for p in range(X.indptr[i], X.indptr[i + 1]):
            value, weight = abs(np.float64(X.values[p] * X.scale)), np.float64(X.weights[p]) if weighted else 1.0
            if beta == 2:
                total += weight * (value * value)
            elif value > 0:
                total += weight * value**beta
        out[i] = total


def power_sums(X, beta):
    """`sum |x|^beta` over the nonzero entries of each row, each by its weight, (dim,)."""
    out = np.empty(X.n_rows)
    boundaries = threads.split_rows(X.indptr, 1, least=threads.LIGHT_WORK)
    over(_power_sums, boundaries, X, float(beta), out)
    return (out,), ()
