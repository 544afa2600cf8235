"""Sums and extremes of whole arrays, in double precision."""

import math

import numpy as np

from .. import threads
from .base import compiled


@compiled
def _inner(A, B, start, stop):
    total = 0.0
    for i in range(start, stop):
        for k in range(A.shape[1]):
            total += np.float64(A[i, k]) * np.float64(B[i, k])
    return total


def inner(A, B):
    """`sum A B`."""
    return sum(threads.map_chunks(lambda i, j: _inner(A, B, i, j), threads.split_evenly(*A.shape, threads.LIGHT_WORK)))


@compiled
def _sum_abs(A, start, stop):
    total = 0.0
    for i in range(start, stop):
        for k in range(A.shape[1]):
            total += abs(np.float64(A[i, k]))
    return total


def sum_abs(A):
    """`sum |A|`."""
    return sum(threads.map_chunks(lambda i, j: _sum_abs(A, i, j), threads.split_evenly(*A.shape, threads.LIGHT_WORK)))


def extremes(values):
    """Smallest and largest of numbers in a row, by NumPy, whose loops use vectors for that."""
    parts = threads.map_chunks(lambda i, j: (values[i:j].min(), values[i:j].max()), pieces_of(values))
    lowest, highest = zip(*parts, strict=True)
    return float(min(lowest)), float(max(highest))


@compiled
def _unit_sums(values, unit, highest):
    first, second, nonzeros, count = 0.0, 0.0, 0, 0
    for p in range(values.size):
        value = np.float64(values[p]) / unit
        first += abs(value)
        second += value * value
        nonzeros += values[p] != 0
        count += values[p] == highest
    return first, second, nonzeros, count


def unit_sums(values, unit, highest):
    """`sum |v / unit|`, `sum (v / unit)^2`, how many are not 0, and how many are `highest`, of numbers in a row."""
    parts = threads.map_chunks(lambda i, j: _unit_sums(values[i:j], unit, highest), pieces_of(values))
    return tuple(sum(numbers) for numbers in zip(*parts, strict=True))


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


def gram(A):
    """`A' A`, in A's type, by BLAS."""
    dim, rank = A.shape
    boundaries = threads.split_evenly(dim, rank**2)
    return threads.added(threads.map_chunks(lambda i, j: A[i:j].T @ A[i:j], boundaries))


@compiled
def _power_sums(X, beta, out, start, stop):
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
    threads.map_chunks(lambda i, j: _power_sums(X, float(beta), out, i, j), boundaries)
    return (out,), ()
