"""Powers of two, in which nothing is rounded, and numbers in which rounding is not seen."""

import math

import numpy as np

LEAST, MOST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
MAX_EXPONENT = 1023  # the largest power of two that is a number
EXTREME = 300  # of a number whose square is about to vanish, or too large
FURTHEST = 2200  # a power of two that takes the smallest number beyond the largest


def exponent_of(value: float) -> int:
    """The power of two nearest to a magnitude; 0 for 0."""
    return round(math.log2(value)) if value > 0 else 0


def unit_of(value: float) -> float:
    """The power of two nearest to a magnitude that is a number."""
    return 2.0 ** min(exponent_of(value), MAX_EXPONENT)


def times_power(value: float, exponent: float) -> float:
    """`value * 2**exponent`, infinite or 0 where that is no number; in steps, each of which is one."""
    quarter, rest = divmod(min(max(exponent, -FURTHEST), FURTHEST), 4)
    for step in (quarter, quarter, quarter, quarter + rest):
        value *= 2.0**step
    return value


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
