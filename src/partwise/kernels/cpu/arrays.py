"""What is done with tall arrays, (dim, rank), beside the updates: so that nothing above this folder asks what kind of
array they are."""

import numpy as np

from .. import threads
from .dense import dense_product
from .sums import all_finite

FOLD = 32  # rows
HEAD = 256  # rows, of which some are not 0 in most columns


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
    G = times(A, M)
    G -= C
    return G


def filled(shape, dtype, fill):
    """A new array by tasks: `fill(start, stop, rows)` writes to its rows from `start` to `stop`. New memory takes
    longer to come than to be written to, and comes to several threads at once."""
    out = np.empty(shape, dtype)
    boundaries = threads.split_evenly(*shape, threads.NUMPY_WORK)
    threads.map_chunks(lambda start, stop: fill(start, stop, out[start:stop]), boundaries)
    return out


def difference(A, B):
    return A - B


def plus_scaled(A, factor, B):
    """`A + factor B`."""
    return A + A.dtype.type(factor) * B


def plus_number(A, number):
    """`A + number`."""
    return A + A.dtype.type(number)


def ldexp(A, exponent, dtype, most=np.inf):
    """`A 2^exponent` in a type, a new array; what is larger than `most` becomes that, and what is too small 0."""
    wide = np.promote_types(A.dtype, dtype)
    limits = np.finfo(wide)

    def fill(start, stop, rows):
        with np.errstate(over="ignore", under="ignore"):
            if limits.minexp <= exponent < limits.maxexp:  # the same numbers in a fourth of the time
                np.multiply(A[start:stop], 2.0**exponent, out=rows, dtype=wide, casting="same_kind")
            else:
                rows[:] = np.ldexp(A[start:stop].astype(wide, copy=False), exponent)
        if most < np.inf:
            np.clip(rows, -most, most, out=rows)

    return filled(A.shape, dtype, fill)


def columns(A, chosen, scales=None):
    """Some columns, by numbers of columns that there are, times a number for each where these are given."""
    chosen = np.asarray(chosen, np.intp)

    def fill(start, stop, rows):
        np.take(A[start:stop], chosen, axis=1, out=rows, mode="clip")  # otherwise by a copy
        if scales is not None:
            rows *= np.asarray(scales, A.dtype)

    return filled((A.shape[0], chosen.size), A.dtype, fill)


def column_sums(A):
    """In double precision, (rank,)."""
    chunks = threads.split_evenly(*A.shape, threads.NUMPY_WORK)
    return threads.added(threads.map_chunks(lambda i, j: np.add.reduce(A[i:j], 0, np.float64), chunks))


def column_extremes(A):
    """Smallest and largest entry of each column, (rank,) each."""
    chunks = threads.split_evenly(*A.shape, threads.NUMPY_WORK)
    found = threads.map_chunks(lambda i, j: (folded(np.min, A[i:j]), folded(np.max, A[i:j])), chunks)
    lowest, highest = zip(*found, strict=True)
    return np.min(lowest, axis=0), np.max(highest, axis=0)


def nonzero_columns(A):
    """Which columns are not 0 throughout, (rank,)."""
    found = A[:HEAD].any(axis=0)
    return found if found.all() else np.any(column_extremes(A), axis=0)


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
