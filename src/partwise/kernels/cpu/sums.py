"""Sums and extremes of whole arrays, in double precision."""

import numpy as np

from .. import threads
from .base import compiled

GRAM_WORK = 25_000_000  # multiplications: in smaller pieces BLAS loses more than the threads gain


@compiled
def _inner(A, B, start, stop):
    total = 0.0
    for i in range(start, stop):
        for k in range(A.shape[1]):
            total += np.float64(A[i, k]) * np.float64(B[i, k])
    return total


def inner(A, B):
    """`sum A B`."""
    return sum(threads.run(lambda i, j: _inner(A, B, i, j), threads.even(*A.shape, threads.LIGHT_WORK)))


@compiled
def _sum_abs(A, start, stop):
    total = 0.0
    for i in range(start, stop):
        for k in range(A.shape[1]):
            total += abs(np.float64(A[i, k]))
    return total


def sum_abs(A):
    """`sum |A|`."""
    return sum(threads.run(lambda i, j: _sum_abs(A, i, j), threads.even(*A.shape, threads.LIGHT_WORK)))


@compiled
def _sum_squares(values, scale):
    total = 0.0
    for p in range(values.size):
        value = np.float64(values[p]) * scale
        total += value * value
    return total


def sum_squares(values, scale):
    """`sum (values scale)^2` of numbers in a row."""
    boundaries = threads.even(values.size, 1, threads.LIGHT_WORK)
    return sum(threads.run(lambda i, j: _sum_squares(values[i:j], scale), boundaries))


def extremes(values):
    """Smallest and largest of numbers in a row."""
    boundaries = threads.even(values.size, 1, threads.LIGHT_WORK)
    least, most = zip(*threads.run(lambda i, j: (values[i:j].min(), values[i:j].max()), boundaries))
    return float(min(least)), float(max(most))


def gram(A):
    """`A' A`, in A's type, by BLAS."""
    dim, rank = A.shape
    pieces = threads.run(lambda i, j: A[i:j].T @ A[i:j], threads.even(dim, rank**2, GRAM_WORK))
    return pieces[0] if len(pieces) == 1 else np.sum(pieces, axis=0)


@compiled
def _power_sums(indptr, values, scale, beta, out, start, stop):
    for i in range(start, stop):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            value = np.float64(values[p] * scale)
            if value > 0:
                total += value**beta
        out[i] = total


def power_sums(indptr, values, scale, beta):
    """`sum (value scale)^beta` over the positive values of each row, (dim,)."""
    out = np.empty(indptr.size - 1)
    work = np.diff(indptr) + np.int64(1)
    threads.run(
        lambda i, j: _power_sums(indptr, values, scale, float(beta), out, i, j),
        threads.balanced(work, threads.LIGHT_WORK),
    )
    return out
