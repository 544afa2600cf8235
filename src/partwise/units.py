"""Powers of two, in which nothing is rounded."""

import math


def exponent_of(value: float) -> int:
    """The power of two nearest to a magnitude; 0 for 0."""
    return round(math.log2(value)) if value > 0 else 0


def unit_of(value: float) -> float:
    """The power of two nearest to a magnitude that is a number."""
    return 2.0 ** min(exponent_of(value), 1023)


def times_power(value: float, exponent: float) -> float:
    """`value * 2**exponent`, infinite or 0 where that is no number; in steps, each of which is one."""
    quarter, rest = divmod(exponent, 4)
    for step in (quarter, quarter, quarter, quarter + rest):
        value *= 2.0**step
    return value
