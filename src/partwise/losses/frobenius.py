"""Least squares."""

from dataclasses import dataclass

import numpy as np

from .base import Loss


@dataclass(frozen=True)
class Frobenius(Loss):
    """`1/2 |X - Y|^2`, the sum of squared differences, halved."""

    quadratic = True
    degree = 2.0

    def value(self, X, Y):
        difference = np.subtract(X, Y, dtype=np.float64).ravel()
        return 0.5 * float(difference @ difference)

    def gradient(self, X, Y):
        return Y - X
