"""Powers of two, in which nothing is rounded, and numbers in which rounding is not seen."""

import math

import numpy as np

LEAST, MOST = float(np.finfo(np.float64).smallest_subnormal), float(np.finfo(np.float64).max)
LARGEST = 1023  # exponent of a unit that is a number, and whose entries are
TOP = 24  # a unit is at least this far below the largest number of its type, so that entries may be above 1
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


def power_scaled(A, exponent: int):
    """The same of arrays, in their own type."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(A, exponent)


def shared_units(size: float, magnitudes, dtype) -> tuple[int, int]:
    """Exponents of the units of two factors whose product is about `size`: as equal as the magnitudes allow, the least
    and the most that entries of each factor are known to reach.

    Their sum is that of `size`, so that X is near 1 in these units whatever the bounds.
    """
    whole = min(exponent_of(size), LARGEST - 1)
    half, limit = round(whole / 2), np.finfo(dtype).maxexp - TOP
    ends = [
        (exponent_of(least) if least > 0 else -math.inf, exponent_of(most) if 0 < most < math.inf else math.inf)
        for least, most in magnitudes
    ]
    low, high = max(ends[0][0], whole - ends[1][1]), min(ends[0][1], whole - ends[1][0])
    if low <= half <= high:
        return half, half
    own = min(max(half, low), high) if low <= high else round((low + high) / 2)
    own = int(min(max(own, -limit, whole - limit), limit, whole + limit))
    return own, whole - own


def in_units(bounds, exponent: int | np.ndarray):
    """`bounds / 2**exponent`, numbers or arrays; what is 0, finite or infinite remains so."""
    with np.errstate(over="ignore", under="ignore"):
        size = np.clip(np.ldexp(np.abs(bounds), -exponent), LEAST, MOST)
    scaled = np.where((bounds == 0) | np.isinf(bounds), bounds, np.copysign(size, bounds))
    return scaled if np.ndim(bounds) else float(scaled)


def moderate(A: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A with vectors along an axis divided by powers of two, where their squares would be too large or vanish, and the
    exponents."""
    exponents = np.frexp(np.max(np.abs(A), axis=axis, keepdims=True, initial=0))[1]
    exponents = np.where(np.abs(exponents) > EXTREME, exponents, 0)
    return (np.ldexp(A, -exponents) if exponents.any() else A), exponents


def comparable(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Nonnegative values in steps of `sqrt(eps)` of the largest, eps that of a type: those that differ by the rounding
    of sums, which depends on the storage of X, are equal, and the first of them is picked in any case."""
    largest = float(values.max(initial=0))
    return np.rint(values / (largest * math.sqrt(np.finfo(kind).eps))) if largest > 0 else np.zeros_like(values)
