"""A sparse matrix by its columns, from its rows. Places are numbers without a sign: those with one may count from the
end, and to look whether they do takes as long as all else."""

import numpy as np

from .. import threads
from .team import mapped, over

MOST_COUNTS = 16  # chunks of rows, each of which counts the entries of all columns


@mapped
def _count(indptr, indices, counts, number, start, stop):
    """Add the number of entries in each column of the given rows."""
    own = counts[number]
    for p in range(np.uint64(indptr[start]), np.uint64(indptr[stop])):
        own[np.uint64(indices[p])] += 1


@mapped
def _move(indptr, indices, values, places, rows, out, number, start, stop):
    """Put the entries of the given rows where their columns are, the next free places of which are given."""
    free = places[number]
    for i in range(start, stop):
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            column = np.uint64(indices[p])
            place = np.uint64(free[column])
            free[column] += 1
            rows[place] = i
            out[place] = values[p]


def transpose(indptr, indices, values, dim, dtype):
    """Values in another type, row numbers and ends of the `dim` columns of a matrix given by rows: a counting sort."""
    # each chunk counts all columns: no more numbers together than there are entries
    least = max(threads.CHUNK_WORK // 4, values.size // MOST_COUNTS, 2 * dim)
    chunks = sorted(set(threads.split_rows(indptr, 1, least=least)))
    counts = np.zeros((len(chunks) - 1, dim), indptr.dtype)
    over(_count, chunks, indptr, indices, counts)
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=0))]).astype(indptr.dtype)
    places = ends[:-1] + np.cumsum(counts, axis=0, dtype=indptr.dtype) - counts
    rows, out = np.empty(values.size, indices.dtype), np.empty(values.size, dtype)
    over(_move, chunks, indptr, indices, values, places, rows, out)
    return out, rows, ends
