"""The other factor as kernels that go row by row through X want it, and arrays to work in."""

from typing import NamedTuple

import numpy as np

from .. import threads
from .padding import padded
from .simd import LINE
from .team import mapped, over

ROW = 16  # entries that cost as much as what a row costs besides


class Panel(NamedTuple):
    """The other factor: B, its `dim` rows padded to `width` numbers, whole vectors; and H, its columns one after the
    other, `stride` apart: `whole`, or what of them goes with the listed entries of a row, gathered for each row."""

    B: np.ndarray
    dim: int
    width: int
    H: np.ndarray
    stride: int
    whole: bool


def stride_of(n, itemsize):
    """The distance of rows of n numbers: whole cache lines, an odd number of them, so that columns do not collide."""
    lines = -(-n * itemsize // LINE)
    return (lines + 1 - lines % 2) * LINE // itemsize


@mapped
def _turn(B, H, stride, number, start, stop):
    for j in range(start, stop):
        for k in range(B.shape[1]):
            H[k * stride + j] = B[j, k]


def turned(B):
    """The rows of B', padded with zeros, one after the other, and their distance."""
    dim, rank = B.shape
    stride = stride_of(dim, B.itemsize)
    H = np.zeros(rank * stride, B.dtype)
    over(_turn, threads.split_evenly(dim, rank, threads.LIGHT_WORK), B, H, stride)
    return H, stride


def counts_by_itself(X, beta):
    """Whether every entry of a row of X is looked at: those that are not listed may cost nothing, or the same as
    others in the same place, as under KL and L1."""
    return X.full or (X.unlisted != 0 and beta != 1)


def panel_of(X, B, whole):
    """What tasks get of the other factor; where it is not whole, each gathers its own columns."""
    H, stride = turned(B) if whole else (np.zeros(0, B.dtype), 0)
    wide = padded(B, B.dtype.type(1))
    return Panel(wide.ravel(), *wide.shape, H, stride, whole)


def tasks(X, B, whole, rows, work):
    """Boundaries of tasks of about the same size: rows with all their entries, `work` for each, and something more."""
    if whole and not X.full:
        return threads.split_evenly(rows.size, (B.shape[0] + ROW) * work)
    if rows.size == X.n_rows:
        return threads.split_rows(X.indptr, ROW, work)
    return threads.split_by_work((np.diff(X.indptr)[rows] + ROW) * np.int64(work))
