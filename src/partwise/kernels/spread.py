"""For tall arrays of Dask's: what is done with them as a whole. Row kernels see the rows of one block, which are
NumPy's, and are those of `cpu`; reductions are Dask's, in an order that follows from the chunks alone."""

import numpy as np

from . import cpu
from .cpu.arrays import astype, difference, minimum, plus_number, plus_scaled, scaled  # noqa: F401

alone = cpu.alone


def __getattr__(name):
    """Row kernels, and NumPy itself, whose functions take arrays of Dask's."""
    return getattr(cpu, name)


def to_numpy(A):
    return np.asarray(A)


def times(A, M):
    return A @ M


def gradient(A, M, C):
    return A @ M - C


def ldexp(A, exponent, dtype, most=np.inf):
    return A.map_blocks(cpu.ldexp, exponent, dtype, most, dtype=dtype)


def columns(A, chosen, scales=None):
    found = A[:, list(chosen)]
    return found if scales is None else scaled(found, scales)


def column_sums(A):
    return np.asarray(A.sum(axis=0, dtype=np.float64))


def column_extremes(A):
    import dask  # noqa: PLC0415  # optional

    return dask.compute(A.min(axis=0), A.max(axis=0))


def nonzero_columns(A):
    return np.any(column_extremes(A), axis=0)


def finite_rows(A):
    return np.atleast_1d(np.asarray(np.isfinite(A).all()))


def equal(A, B):
    return A is B or (A.shape == B.shape and bool((A == B).all()))


def gram(A):
    return np.asarray(A.T @ A)


def inner(A, B):
    return float((A * B).sum(dtype=np.float64))


def sum_abs(A):
    return float(abs(A).sum(dtype=np.float64))


def largest_by_rows(measure, A):
    found = A.map_blocks(lambda rows: np.full((1, 1), measure(rows)), chunks=(1, 1), dtype=np.float64)
    return float(found.max())
