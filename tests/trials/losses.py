"""A loss that the core does not know."""

from dataclasses import dataclass

import numpy as np

from partwise.losses import Loss


@dataclass(frozen=True)
class Huber(Loss):
    """Half the square of small differences, and `delta |x - y| - delta^2 / 2` of others."""

    delta: float
    degree = 2.0

    def in_units(self, exponent):
        return Huber(self.delta * 2.0**-exponent)

    def value(self, X, Y, weights=1.0):
        size = np.abs(X - Y)
        return float(np.sum(weights * np.where(size <= self.delta, size**2 / 2, self.delta * (size - self.delta / 2))))

    def gradient(self, X, Y):
        return np.clip(Y - X, -self.delta, self.delta)
