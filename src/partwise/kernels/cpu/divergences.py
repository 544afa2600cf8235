"""Beta-divergences of entries of X from their model, and the Huber loss: values and derivatives in the model, in loops
over vectors."""

import math

import numpy as np

from ...losses.beta import floor_of
from .base import helper
from .simd import FLOOR, HUGE, TINY, bits_of, number_of

_floor_of = helper(floor_of)
LN2 = math.log(2)
WHOLE = 1.5 * 2.0**52  # added to a number that is much smaller, leaves it rounded in the last bits
WHOLE_BITS = int(np.float64(WHOLE).view(np.int64))
LOWEST, HIGHEST = -708.0, 709.0  # powers of e that are numbers
TOGETHER = 512  # numbers between 1/sqrt 2 and sqrt 2 whose product is a number
ROOT_OF_HALF = 0x3FE6A09E667F3BCD  # the bits of 1/sqrt 2
CLOSE = 1e-6  # a mean divergence in which the rounding of such a product shows
SMALL, SMALL_SINGLE = TINY[8], TINY[4]  # numbers that compiled code knows by name
LARGE, LARGE_SINGLE = HUGE[8], HUGE[4]


@helper
def logarithm(x):
    """The natural logarithm of a positive number of double precision, in code that works on vectors.

    `log(2^e m) = e log 2 + 2 artanh((m - 1) / (m + 1))`, m between 1/sqrt 2 and sqrt 2, by its series.
    """
    bits = bits_of(x)
    exponent = np.float64((bits >> 52) - 1023)
    m = number_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    above = m > 1.4142135623730951
    m = 0.5 * m if above else m
    exponent = exponent + 1.0 if above else exponent
    f = (m - 1) / (m + 1)
    s = f * f
    series = 1 / 17 + s * (1 / 19 + s * (1 / 21))
    series = 1 / 9 + s * (1 / 11 + s * (1 / 13 + s * (1 / 15 + s * series)))
    series = 1 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * series)))
    return exponent * LN2 + 2 * f * series


@helper
def exponential(t):
    """`e^t` and `e^t - 1`, in code that works on vectors: `e^t = 2^n e^r`, |r| <= log(2) / 2, by its series; beyond the
    range of double precision held."""
    t = min(max(t, LOWEST), HIGHEST)
    n = bits_of(t * (1 / LN2) + WHOLE) - WHOLE_BITS
    r = t - np.float64(n) * LN2
    series = 1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800))
    series = 1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * series))
    series = 1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * series))
    series = r + r * r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * series)))
    scale = number_of((n + 1023) << 52)
    power = scale * series + scale
    return power, series if n == 0 else power - 1  # compiled code may add in another order, and lose small numbers


@helper
def itakura_saito(x, y, start, stop):
    """`sum r - log r - 1` of the ratios `r = x / y`, by the logarithm of their product: of numbers between 1/sqrt 2 and
    sqrt 2, and of powers of two. Near an exact fit nothing but rounding would be left of it: there one by one."""
    total, product, exponents, tiny = 0.0, 1.0, 0, SMALL
    for j in range(start, stop):
        a = np.float64(x[j])
        r = a / max(np.float64(y[j]), FLOOR * a + tiny)
        bits = bits_of(r + tiny)
        exponent = (bits - ROOT_OF_HALF) >> 52
        total += r - 1
        exponents += exponent
        product *= number_of(bits - (exponent << 52))
    total -= exponents * LN2 + logarithm(product)
    if total > CLOSE * (stop - start):
        return total
    total = 0.0
    for j in range(start, stop):  # no ratio is further from 1 than 0.04
        a = np.float64(x[j])
        d = a / max(np.float64(y[j]), FLOOR * a + tiny) - 1
        f = d / (d + 2)
        s = f * f  # log(1 + d) = 2 (f + f^3 / 3 + ...), and d - 2 f = f d: nothing cancels
        total += f * d - 2 * f * s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s / 9)))
    return total


@helper
def power_divergence(x, y, n, beta):
    """`sum d(x, y)` for other betas, from the ratio r of entry and model: of the two forms in `losses/beta.py` the one
    that does not divide by almost nothing. Near an exact fit r - 1 has all its digits, and so has the sum."""
    total, tiny, low, floor = 0.0, SMALL, beta < 0.5, _floor_of(beta)
    power = beta if low else beta - 1
    for j in range(n):
        a = np.float64(x[j])
        b = max(np.float64(y[j]), floor * a + tiny)
        r = a / b
        _, less_one = exponential(power * logarithm(r if a > 0 else 1.0))
        less_one = (less_one if a > 0 else -1.0) / power
        size, _ = exponential(beta * logarithm(b))
        total += size * ((r - 1 - less_one) / (1 - beta) if low else (r * less_one - (r - 1)) / beta)
    return total


@helper
def divergence(x, y, n, loss):
    """`sum d(x, y)` over n entries, but for the linear term of KL, in double precision."""
    total, tiny, beta, delta = 0.0, SMALL, loss.beta, loss.delta
    if beta == 1:
        for j in range(n):
            a = np.float64(x[j])
            b = max(np.float64(y[j]), FLOOR * a + tiny)
            total += a * logarithm(a / b + tiny) - a
    elif beta == 0:
        for start in range(0, n, TOGETHER):
            total += itakura_saito(x, y, start, min(start + TOGETHER, n))
    elif delta < np.inf:
        for j in range(n):
            size = abs(np.float64(x[j]) - np.float64(y[j]))
            within = min(size, delta)
            total += within * (size - within / 2)
    elif beta == 2:
        for j in range(n):
            difference = np.float64(x[j]) - np.float64(y[j])
            total += difference * difference / 2
    else:
        total = power_divergence(x, y, n, beta)
    return total


@helper
def split(x, y, n, length, loss, minus, plus, second):
    """`d' = plus - minus`, both >= 0, and `d''` of the convex part, y above its floor unless beta is 2; KL without its
    linear term, plus = 0. Of Huber's loss `second` is the weight of the parabola that touches it and lies above it
    everywhere, `min(1, delta / |r|)` (Huber and Ronchetti 2009, Robust Statistics, section 7.8)."""
    beta = loss.beta
    single = x.itemsize == 4
    tiny, huge = x.dtype.type(SMALL_SINGLE if single else SMALL), x.dtype.type(LARGE_SINGLE if single else LARGE)
    floor, one, two = x.dtype.type(FLOOR), x.dtype.type(1), x.dtype.type(2)  # 1 / y of an integer has double precision
    for j in range(n, length):
        minus[j] = plus[j] = second[j] = 0
    if beta == 1:
        for j in range(n):
            inverse = one / max(y[j], floor * x[j] + tiny)
            minus[j] = x[j] * inverse
            plus[j] = 0
            second[j] = min(minus[j] * inverse, huge)
    elif beta == 0:
        for j in range(n):
            inverse = one / max(y[j], floor * x[j] + tiny)
            ratio = x[j] * inverse
            plus[j] = inverse
            minus[j] = ratio * inverse
            second[j] = min(two * min(minus[j], huge) * inverse, huge)
    elif loss.delta < np.inf:
        delta = x.dtype.type(min(max(loss.delta, np.float64(tiny)), np.float64(huge)))
        for j in range(n):
            slope = min(max(y[j] - x[j], -delta), delta)
            minus[j] = max(-slope, x.dtype.type(0))
            plus[j] = max(slope, x.dtype.type(0))
            second[j] = delta / max(abs(y[j] - x[j]), delta)
    elif beta == 2:
        for j in range(n):
            minus[j] = x[j]
            plus[j] = y[j]
            second[j] = 1
    else:
        convex, own = max(beta - 1, 0.0), max(2 - beta, 0.0)
        for j in range(n):
            b = np.float64(max(y[j], floor * x[j] + tiny))
            power, _ = exponential((beta - 2) * logarithm(b))
            plus[j] = min(power * b, np.float64(huge))
            minus[j] = min(power * x[j], np.float64(huge))
            second[j] = min(power * (convex + own * x[j] / b), np.float64(huge))
