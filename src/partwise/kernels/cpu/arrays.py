"""What is done with tall arrays, (dim, rank), beside the updates: so that nothing above this folder asks what kind of
array they are."""

import numpy as np

from .. import threads
from .dense import dense_product
from .sums import all_finite

FOLD = 32  # rows


def asarray(A, dtype=None):
    """An array of this kind from one of NumPy's, in C order."""
    return np.ascontiguousarray(A, dtype=dtype)


def to_numpy(A):
    """The same as an array of NumPy's."""
    return A


def astype(A, dtype):
    """In another type; the array itself where it has that already."""
    return A.astype(dtype, copy=False)


def times(A, M):
    """`A M`, M small."""
    return dense_product(A, M, 1)


def scaled(A, scales):
    """A with its columns multiplied by numbers, one for each or one for all."""
    return A * np.asarray(scales, A.dtype)


def gradient(A, M, C):
    """`A M - C`, M small."""
    out = np.empty_like(C)

    def task(start, stop):
        rows = out[start:stop]
        np.matmul(A[start:stop], M, out=rows)
        rows -= C[start:stop]

    threads.map_chunks(task, threads.split_evenly(*A.shape, threads.LIGHT_WORK))
    return out


def difference(A, B):
    return A - B


def plus_scaled(A, factor, B):
    """`A + factor B`."""
    return A + A.dtype.type(factor) * B


def plus_number(A, number):
    """`A + number`."""
    return A + A.dtype.type(number)


def ldexp(A, exponent):
    """`A 2^exponent`, infinite or 0 where there is no such number."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(A, exponent)


def clip(A, lower, upper):
    return np.clip(A, lower, upper)


def columns(A, chosen):
    """Some columns, by number."""
    return np.take(A, np.asarray(chosen, np.intp), axis=1)


def column_sums(A):
    """In double precision, (rank,)."""
    chunks = threads.split_evenly(*A.shape, threads.LIGHT_WORK)
    return threads.added(threads.map_chunks(lambda i, j: A[i:j].sum(axis=0, dtype=np.float64), chunks))


def column_extremes(A):
    """Smallest and largest entry of each column, (rank,) each."""
    return folded(np.min, A), folded(np.max, A)


def folded(extreme, A):
    """`extreme(A, axis=0)`, many rows as one first: NumPy takes as long for a short row as for a long one."""
    dim, rank = A.shape
    whole = dim - dim % FOLD
    if whole == 0:
        return extreme(A, axis=0)
    rows = extreme(A[:whole].reshape(-1, FOLD * rank), axis=0).reshape(FOLD, rank)
    return extreme(np.concatenate([rows, A[whole:]]), axis=0)


def finite_rows(A):
    """Which rows are numbers throughout, (dim,); one True where all are."""
    if all_finite(A):
        return np.ones(1, dtype=bool)
    finite = np.isfinite(A)
    return np.ones(1, dtype=bool) if finite.all() else finite.all(axis=1)


def equal(A, B):
    """Whether all entries are the same."""
    return np.array_equal(A, B)


def largest_by_rows(measure, A):
    """A measure of a tall array that is the largest of those of its rows."""
    return measure(A)


def concatenate(arrays):
    """Rows of several arrays, one after the other."""
    return np.concatenate(arrays)


def minimum(A, B):
    return np.minimum(A, B)


def lifted(A, pair, floor, box):
    """A with its zeros, where a pair of arrays has `a + l1 < b`, at a floor for each column, within the bounds."""
    a, b = pair
    return np.where((A == 0) & (a + box.l1 < b), np.clip(np.asarray(floor, A.dtype), box.lower, box.upper), A)
