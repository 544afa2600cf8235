"""Absolute differences: Vandaele, Moutier and Gillis (2022); with a weight on the zeros, Seraghiti, Dubrulle, Vandaele
and Gillis (2026)."""

import math
from dataclasses import dataclass

import numpy as np

from ..checks import is_between
from .base import Loss


@dataclass(frozen=True)
class L1(Loss):
    """`sum |x - y|`: large errors do not count more than their size, so a few gross ones are left alone.

    `zero_weight`, between 0 and 1, is what an error under a zero of X counts: with 0 zeros are missing entries.
    """

    zero_weight: float = 1.0
    degree = 1.0
    root = 1.0
    start = "smooth-l1"
    explains = "the sum of |X|"

    def __post_init__(self):
        if not is_between(self.zero_weight, 0, 1):
            raise ValueError(f"zero_weight must be a number between 0 and 1, got {self.zero_weight!r}")
        object.__setattr__(self, "zero_weight", float(self.zero_weight))

    def sparse_below(self, nonnegative):
        if self.zero_weight != 1:
            return math.inf
        return 1 / 3 if nonnegative else 0.0  # a zero is no more than a cost where the model is nonnegative

    def refuses(self, lowest, nonnegative):
        if self.zero_weight != 1 and not nonnegative:
            return f"{self} needs nonnegative factors: add structures.NonNegative(), 'nonnegative & ...', to both"
        return None

    def value(self, X, Y):
        X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
        return float(np.sum(np.abs(X - Y) * np.where(X == 0, self.zero_weight, 1.0)))

    def gradient(self, X, Y):
        return np.sign(Y - X) * np.where(X == 0, self.zero_weight, 1.0).astype(np.asarray(Y).dtype)
