"""The nonzeros of an array."""

import numpy as np
from scipy.sparse import get_index_dtype

from .. import threads
from .team import mapped, over


@mapped
def _compress(array, values, indices, indptr, number, start, stop):
    for i in range(start, stop):
        place, row = indptr[i], array[i]
        for j in range(row.size):
            if row[j] != 0:
                values[place], indices[place] = row[j], j
                place += 1


def compress(array):
    """`values, indices, indptr` of the nonzeros of an array in C order; no other array of their size is made."""
    boundaries = threads.split_evenly(*array.shape, threads.LIGHT_WORK)
    counts = threads.map_chunks(lambda i, j: np.count_nonzero(array[i:j], axis=1), boundaries)
    ends = np.cumsum(np.concatenate([[0], *counts]))
    index = get_index_dtype(maxval=max(*array.shape, ends[-1]))
    values, indices, indptr = np.empty(ends[-1], array.dtype), np.empty(ends[-1], index), ends.astype(index)
    over(_compress, boundaries, array, values, indices, indptr)
    return values, indices, indptr
