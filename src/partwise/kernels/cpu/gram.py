"""Gram matrices of tall arrays."""

import numpy as np

from .. import threads
from .base import aligned, helper, padded_to
from .simd import HIGH, VECTOR, WIDE, outer
from .team import mapped, over

ROWS = 1024  # whose products are summed in the type of A, before they are added up in double precision

_padded_to = helper(padded_to)


@helper
def _add_products(A, rank, first, last, tile, part):
    """Add `sum_i A[i, k] A[i, l]` over some rows to `part[k, l]`, l >= k: `HIGH` numbers k and up to `WIDE` vectors of
    l at a time."""
    lanes, end = VECTOR // A.itemsize, _padded_to(rank, A.itemsize)
    for left in range(0, end, WIDE * lanes):
        width = min(WIDE * lanes, end - left)
        for top in range(0, min(left + width, rank), HIGH):
            if width == lanes:
                outer(1, A, first, last, rank, top, left, tile)
            elif width == 2 * lanes:
                outer(2, A, first, last, rank, top, left, tile)
            else:
                outer(3, A, first, last, rank, top, left, tile)
            for k in range(top, min(top + HIGH, rank)):
                for m in range(max(k, left), min(left + width, rank)):
                    part[k, m] += tile[(k - top) * width + m - left]


@mapped
def _gram(A, rank, parts, number, start, stop):
    part, lanes = parts[number], VECTOR // A.itemsize
    most = _padded_to(rank, A.itemsize) + HIGH  # numbers from the beginning of a row on that tiles read
    tile, row = aligned(HIGH * WIDE * lanes, A.dtype), aligned(most, A.dtype)
    safe = min(stop, (A.size - most) // rank + 1)  # after these rows the array ends too soon
    for first in range(start, safe, ROWS):
        _add_products(A, rank, first, min(first + ROWS, safe), tile, part)
    for i in range(max(start, safe), stop):
        for k in range(rank):
            row[k] = A[i * rank + k]
        _add_products(row, rank, 0, 1, tile, part)


def gram(A):
    """`A' A`, in A's type."""
    dim, rank = A.shape
    boundaries = threads.split_evenly(dim, rank**2, most=threads.ROUND)  # more take longer to add up than they save
    if len(boundaries) == 2:
        return A.T @ A
    parts = np.zeros((len(boundaries) - 1, rank, rank))
    over(_gram, boundaries, np.ascontiguousarray(A).ravel(), rank, parts)
    upper = parts.sum(axis=0)
    upper.flat[:: rank + 1] /= 2
    return (upper + upper.T).astype(A.dtype)
