"""Bounds for tensors through matrices.

Group the modes of P into two sets and flatten P into a matrix M, rows for one set and columns for the other. The
Kronecker product of nonnegative unit vectors is one, so `<P, x_1 o ... o x_d> = u' M v` with a u and a v of that kind:
what bounds the matrix problem bounds that of the tensor, for every grouping. They agree where the best u and v are
Kronecker products, as they are for parts that do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from itertools import combinations

import numpy as np

from .forms import Pair
from .matrices import Array, Residual
from .power import climb

Modes = tuple[int, ...]


def groupings(shape: tuple[int, ...]) -> Iterator[tuple[Modes, Modes]]:
    """The modes of rows and of columns, of all ways to flatten a tensor into a matrix whose size allows a bound."""
    order = len(shape)
    for count in range(1, order // 2 + 1):
        for rows in combinations(range(order), count):
            columns = tuple(mode for mode in range(order) if mode not in rows)
            if 2 * count == order and 0 not in rows:
                continue  # the transpose of one that was there
            if Pair().bounds(tuple(math.prod(shape[mode] for mode in group) for group in (rows, columns))):
                yield rows, columns


def flattened(P: Residual, entries: np.ndarray, rows: Modes, columns: Modes) -> Array:
    """P as a matrix, from its entries."""
    matrix = entries.transpose(*rows, *columns)
    return Array(matrix.reshape(math.prod(P.shape[mode] for mode in rows), -1), P.rounding)


def reach(flat: Array, vectors: tuple[np.ndarray, ...], columns: Modes) -> float:
    """What the power method finds in a flattening from the vectors of a tensor: no bound of it is below."""
    v = reduce(np.kron, (vectors[mode] for mode in columns))[:, None].astype(np.float64)
    u, v = climb(flat, (v, v), None)
    return float(u[:, 0] @ flat.times(v[:, 0]))
