"""Powers of two, in which nothing is rounded, and numbers in which rounding is not seen."""

import math

import numpy as np

from .. import kernels
from ..kernels import threads

LEAST, MOST = float(np.finfo(np.float64).smallest_subnormal), float(np.finfo(np.float64).max)
LARGEST = 1023  # exponent of a unit that is a number, and whose entries are
TOP = 24  # a unit is at least this far below the largest number of its type, so that entries may be above 1
FAR = 1 << 14  # an exponent beyond all numbers
EXTREME = 300  # of a number whose square is about to vanish, or too large


def exponent_of(value: float) -> int:
    """The power of two nearest to a magnitude; 0 for 0."""
    return round(math.log2(value)) if value > 0 else 0


def unit_of(value: float) -> float:
    """The power of two nearest to a magnitude that is a number."""
    return 2.0 ** min(exponent_of(value), LARGEST)


def times_power(value: float, exponent: float) -> float:
    """`value * 2**exponent`, infinite or 0 where that is no number."""
    whole = math.floor(exponent)
    value *= 2.0 ** (exponent - whole)
    try:
        return math.ldexp(value, whole)
    except OverflowError:
        return math.copysign(math.inf, value)


def root(values, degree):
    """`values^(1 / degree)`, both numbers or arrays, in double precision but for square roots."""
    # a power of 1/2 may differ from a square root in the last bit
    return np.sqrt(values) if np.all(np.equal(degree, 2)) else np.power(values, np.divide(1, degree))


def shared_units(size: float, magnitudes, dtype) -> tuple[int, ...]:
    """Exponents of the units of factors whose product is about `size`: as equal as the magnitudes allow, the least and
    the most that entries of each factor are known to reach.

    Their sum is that of `size`, so that X is near 1 in these units whatever the bounds.
    """
    whole, order = min(exponent_of(size), LARGEST - 1), len(magnitudes)
    equal = np.full(order, round(whole / order))
    low = np.array([exponent_of(least) if least > 0 else -FAR for least, _ in magnitudes])
    high = np.array([exponent_of(most) if 0 < most < math.inf else FAR for _, most in magnitudes])
    exact = np.append(equal[1:], whole - equal[1:].sum())
    if np.all((low <= exact) & (exact <= high)):
        return tuple(equal.tolist())
    return within(np.finfo(dtype).maxexp - TOP, np.diff(np.rint(np.cumsum(levelled(whole, low, high))), prepend=0))


def levelled(total: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers that add up to `total`: the same level for all, but for those whose bounds are in the way. Where no such
    numbers are within their bounds, all are beyond them by the same."""
    levels = np.unique(np.concatenate([low, high]))
    values = np.clip(np.interp(total, np.clip(levels[:, None], low, high).sum(axis=1), levels), low, high)
    return values + (total - values.sum()) / len(values)


def within(limit: int, exponents: np.ndarray) -> tuple[int, ...]:
    """Exponents of the same sum, none beyond a limit."""
    found, left = [], int(exponents.sum())
    for rest, exponent in zip(reversed(range(len(exponents))), exponents, strict=True):
        most = rest * limit  # that the others can take
        found.append(int(min(max(exponent, -limit, left - most), limit, left + most)))
        left -= found[-1]
    return tuple(found)


def in_units(bounds, exponent: int | np.ndarray):
    """`bounds / 2**exponent`, numbers or arrays; what is 0, finite or infinite remains so."""
    if np.ndim(bounds) == 0 and (bounds == 0 or math.isinf(bounds)):
        return float(bounds)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(bounds, -exponent)
        lost = (np.isinf(scaled) & ~np.isinf(bounds)) | ((scaled == 0) & (np.not_equal(bounds, 0)))
    if np.any(lost):
        scaled = np.where(lost, np.copysign(np.clip(np.abs(scaled), LEAST, MOST), bounds), scaled)
    return scaled if np.ndim(bounds) else float(scaled)


def moderate(A: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A with vectors along an axis divided by powers of two, where their squares would be too large or vanish, and the
    exponents."""
    exponents = np.frexp(np.max(np.abs(A), axis=axis, keepdims=True, initial=0))[1]
    exponents = np.where(np.abs(exponents) > EXTREME, exponents, 0)
    return (np.ldexp(A, -exponents) if exponents.any() else A), exponents


def column_norms(A: np.ndarray) -> np.ndarray:
    """`|A[:, k]|` in double precision, also where squares are no numbers."""
    squares, of = column_squares(A), kernels.of(A)
    norms = np.sqrt(squares)
    odd = np.flatnonzero(~((squares > 2.0**-EXTREME) & (squares < 2.0**EXTREME)))
    if odd.size:
        B = of.astype(of.columns(A, odd), np.float64)
        exponents = np.clip(np.frexp(np.max(np.abs(of.column_extremes(B)), axis=0))[1], -LARGEST, LARGEST)
        norms[odd] = np.ldexp(np.sqrt(column_squares(of.scaled(B, 2.0**-exponents))), exponents)
    return norms


def column_squares(A: np.ndarray) -> np.ndarray:
    """`|A[:, k]|^2` in double precision."""
    chunks = threads.split_evenly(len(A), A.shape[1], threads.NUMPY_WORK)
    squares = threads.map_chunks(lambda i, j: np.einsum("ij,ij->j", A[i:j], A[i:j], dtype=np.float64), chunks)
    return np.asarray(threads.added(squares))


def unit_columns(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns divided by their norms, and the norms as `value * 2**exponent`, in double precision, whatever the units;
    columns of zeros as they are."""
    moderated, exponents = moderate(np.asarray(A, dtype=np.float64), axis=0)
    norms = column_norms(moderated)
    return moderated / np.where(norms > 0, norms, 1), norms, exponents[0]


def product_of_norms(factors, unit: int = 0) -> np.ndarray:
    """The product over factors of the norms of their columns, divided by `2**unit`, (rank,); infinite or 0 only where
    that is no number itself."""
    _, norms, exponents = zip(*map(unit_columns, factors), strict=True)
    values, powers = np.frexp(norms)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(np.prod(values, axis=0), np.sum(powers, axis=0) + np.sum(exponents, axis=0) - unit)


def comparable(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Nonnegative values in steps of `sqrt(eps)` of the largest, eps that of a type: those that differ by the rounding
    of sums, which depends on the storage of X, are equal, and the first of them is picked in any case."""
    largest = float(values.max(initial=0))
    return np.rint(values / (largest * math.sqrt(np.finfo(kind).eps))) if largest > 0 else np.zeros_like(values)
