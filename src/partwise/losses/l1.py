"""Absolute differences: Vandaele, Moutier and Gillis (2022); with a weight on the zeros, Seraghiti, Dubrulle, Vandaele
and Gillis (2026)."""

import math
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..checks import is_between
from ..kernels.records import Box, Chosen
from .base import Loss
from .expansions import L1Expansion


@dataclass(frozen=True)
class L1(Loss):
    """`sum |x - y|`: large errors do not count more than their size, so a few gross ones are left alone.

    Parameters
    ----------
    zero_weight : float
        What an error under a zero of X counts, between 0 and 1; with 0 zeros are missing entries.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_parts(30, 20, 2, outliers=0.05, random_state=0)
    >>> losses = pw.losses.Frobenius(), pw.losses.L1()
    >>> squares, absolute = (pw.factorize(planted.X, 2, loss=loss, random_state=0) for loss in losses)
    >>> pw.metrics.factor_match(planted, absolute) > pw.metrics.factor_match(planted, squares)
    True
    """

    zero_weight: float = 1.0
    kernels = ("weighted_median",)
    smooth = False
    updates = frozenset({"weighted_median"})
    degree = 1.0
    homogeneous = True
    error_power = 1.0
    start = "smooth-l1"
    explains = "the sum of |X|"
    says = "absolute differences: gross errors in a few entries do not bend the parts"

    def __post_init__(self):
        if not is_between(self.zero_weight, 0, 1):
            raise ValueError(f"zero_weight must be a number between 0 and 1, got {self.zero_weight!r}")
        object.__setattr__(self, "zero_weight", float(self.zero_weight))

    def sparse_below(self, nonnegative):
        if self.zero_weight != 1:
            return math.inf
        return 1 / 3 if nonnegative else 0.0  # a zero is no more than a cost where the model is nonnegative

    def held(self, data, nonnegative):
        data = super().held(data, nonnegative)
        return data if self.zero_weight == 1 else data.with_unlisted(self.zero_weight)

    def refuses(self, lowest, nonnegative):
        if self.zero_weight != 1 and not nonnegative:
            return f"{self} needs nonnegative factors: add structures.NonNegative() to each, 'nonnegative & ...'"
        return None

    def value(self, X, Y, weights=None):
        return float(np.sum((self.weights(X) if weights is None else weights) * self.entrywise(X, Y)))

    def entrywise(self, X, Y):
        return np.abs(np.asarray(X, dtype=np.float64) - np.asarray(Y, dtype=np.float64))

    def gradient(self, X, Y):
        return np.sign(Y - X) * self.weights(X).astype(np.asarray(Y).dtype)

    def weights(self, X):
        """What entries count where nothing else is said of them."""
        return np.where(X == 0, self.zero_weight, 1.0)

    def fit(self, data, factors, mode=0, known=None, ridge=0.0):
        A = factors[mode]
        anything = Box(A.dtype.type(0), *(np.full((1, A.shape[1]), end, A.dtype) for end in (-np.inf, np.inf)))
        return (known or self.settled(data, factors, mode, (anything, 0.0, False))).loss

    def expand(self, data, factors, mode, structure):
        entries = structure.elementwise
        return self.settled(data, factors, mode, (entries.box(factors[mode]), entries.l2, entries.binary))

    def settled(self, data, factors, mode, rule):
        """Which entries are not at their best value, the others held: a round of medians in which nothing moves."""
        A = factors[mode]
        rest = *rule, 0, Chosen(np.arange(A.shape[0]))
        (_, n_suboptimal), (loss,) = data.map(kernels.of(A).weighted_median, factors, mode, *rest)
        return L1Expansion(n_suboptimal, loss)

    def size(self, data):
        """`sum |x|`."""
        return data.mean * data.total_weight
