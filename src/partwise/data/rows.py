"""Rows of X as kernels take them, and blocks of them as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..kernels.records import Rows

BLOCK = 1 << 19  # entries of an array made for a while


def in_unit(values: np.ndarray, inverse_scale: tuple) -> tuple[np.ndarray, Any]:
    """Stored numbers, and what they are to be multiplied by; a copy in extreme units alone."""
    before, after = inverse_scale
    return (values, before) if after == 1 else (values * before, after)


def full_rows(array: np.ndarray, inverse_scale: tuple) -> Rows:
    """Of an array in C order, (rows, columns)."""
    values, scale = in_unit(array.ravel(), inverse_scale)
    indptr, none = np.arange(array.shape[0] + 1) * array.shape[1], np.empty(0, scale.dtype)
    return Rows(0, indptr, np.empty(0, np.int32), values, scale, True, none, 1.0)


def sparse_matrix(X: Rows, width: int) -> sparse.csr_array:
    """Rows by their nonzeros, as SciPy has them, in double precision."""
    entries = X.values * np.float64(X.scale)
    if X.full:
        return sparse.csr_array(entries.reshape(X.n_rows, width))
    return sparse.csr_array((entries, X.indices, X.indptr), shape=(X.n_rows, width))


class Block(NamedTuple):
    """Some rows of X, dense, in double precision."""

    rows: slice
    entries: np.ndarray
    weights: np.ndarray | float  # what the loss of each of them counts


def blocks(data, mode: int = 0) -> Iterator[Block]:
    """X unfolded along `mode`, at most `BLOCK` entries at a time (or one row)."""
    data, width = data.double(), math.prod(data.shape) // data.shape[mode]
    if data.sparse or not data.complete or mode == data.natural:
        for X in data.rows(mode):
            yield from blocks_of(X, width)
        return
    height = max(1, BLOCK // max(1, width))
    for start in range(0, data.shape[mode], height):
        rows = slice(start, min(start + height, data.shape[mode]))
        yield Block(rows, data.take(mode, rows), 1.0)


def blocks_of(X: Rows, width: int) -> Iterator[Block]:
    """The same of these rows."""
    height = max(1, BLOCK // max(1, width))
    for start in range(0, X.n_rows, height):
        yield block(X, width, start, min(start + height, X.n_rows))


def block(X: Rows, width: int, start: int, stop: int) -> Block:
    """Rows `start` to `stop` of these."""
    rows = slice(X.first + start, X.first + stop)
    here = slice(X.indptr[start], X.indptr[stop])
    entries = X.values[here].astype(np.float64) * np.float64(X.scale)
    weights = X.weights[here].astype(np.float64)
    if X.full:
        shape = stop - start, width
        return Block(rows, entries.reshape(shape), weights.reshape(shape) if weights.size else 1.0)

    def spread(numbers):
        places = X.indices[here], X.indptr[start : stop + 1] - X.indptr[start]
        return sparse.csr_array((numbers, *places), shape=(stop - start, width)).toarray()

    if not weights.size and X.unlisted == 1:
        return Block(rows, spread(entries), 1.0)
    listed = weights if weights.size else np.ones_like(entries)
    return Block(rows, spread(entries), X.unlisted + spread(listed - X.unlisted))
