"""The shape of components along their items: rising, with one peak, smooth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy.linalg import cho_solve_banded

from .. import kernels
from ..units import times_power
from .base import Structure
from .elementwise import FREE, LARGEST_WEIGHT, Elementwise, checked_weight


@dataclass(frozen=True, eq=False, repr=False)
class Monotone(Structure):
    """Each component rises (or falls) from item to item: isotonic regression, by pooling adjacent violators."""

    decreasing: bool = False
    entries: Elementwise = FREE
    columnwise = True

    @property
    def nonnegative(self):
        return self.entries.nonnegative

    @property
    def scale_free(self):
        return self.entries.scale_free

    @property
    def magnitude(self):
        return self.entries.magnitude

    @classmethod
    def together(cls, entries: Elementwise, parts: list[Structure]) -> Structure | None:
        """With two numbers for bounds the nearest point is the one without, clipped."""
        numbers = np.ndim(entries.lower) == np.ndim(entries.upper) == 0
        unpenalised = entries.l1 == entries.l2 == 0 and not entries.binary
        if len(parts) == 1 and isinstance(parts[0], cls) and numbers and unpenalised:
            return parts[0].altered(entries=entries)
        return None

    def bind(self, shape, transposed, name):
        return self.altered(entries=self.entries.bind(shape, transposed, name))

    def rescaled(self, exponent, objective_exponent):
        return self.altered(entries=self.entries.rescaled(exponent, objective_exponent))

    def value(self, A):
        return 0.0

    def prox(self, A, step):
        V = np.ascontiguousarray((A[::-1] if self.decreasing else A).T, dtype=np.float64)
        best = self.fitted(V).T
        return np.ascontiguousarray(best[::-1] if self.decreasing else best, dtype=A.dtype)

    def fitted(self, V: np.ndarray) -> np.ndarray:
        """The nearest vectors, as rows."""
        return kernels.of(V).rising(V, float(self.entries.lower), float(self.entries.upper))

    def __repr__(self):
        terms = [] if self.entries.free else [repr(self.entries)]
        return " & ".join([*terms, f"Monotone({'decreasing=True' if self.decreasing else ''})"])


class Unimodal(Monotone):
    """Each component rises to a peak and falls after it, wherever the peak is best (Stout 2008)."""

    convex = False

    def __init__(self):
        super().__init__()

    def fitted(self, V):
        return kernels.of(V).one_peak(V, float(self.entries.lower), float(self.entries.upper))

    def __repr__(self):
        return super().__repr__().replace("Monotone", "Unimodal")


@dataclass(frozen=True, eq=False, repr=False)
class Smooth(Structure):
    """The penalty `weight / 2 * sum of squared differences` between neighbouring items of each component."""

    weight: float
    columnwise = True

    def __post_init__(self):
        object.__setattr__(self, "weight", checked_weight("Smooth", self.weight))

    def bind(self, shape, transposed, name):
        return self

    def rescaled(self, exponent, objective_exponent):
        return Smooth(min(times_power(self.weight, 2 * exponent - objective_exponent), LARGEST_WEIGHT))

    def value(self, A):
        return self.weight / 2 * float(np.square(np.diff(A, axis=0), dtype=np.float64).sum())

    def prox(self, A, step):
        """`(1 + step weight D'D) B = A` with D the differences, a tridiagonal system."""
        weight = step * self.weight
        if weight == 0 or len(A) == 1:
            return A.copy()
        factor = root_of_smoothing(len(A), weight)
        return np.ascontiguousarray(cho_solve_banded((factor, True), A), dtype=A.dtype)

    def __repr__(self):
        return f"Smooth({self.weight:g})"


def root_of_smoothing(n: int, weight: float) -> np.ndarray:
    """The Cholesky factor of `1 + weight D'D`, its diagonal and the one below. The pivots are `weight + e`, the last
    one e alone, with `e = 1 + weight e' / (weight + e')` from the e' before: nothing cancels, however large the weight.
    """
    excess = np.fromiter(accumulate(range(n - 1), lambda e, _: 1 + e / (1 + e / weight), initial=1.0), float, n)
    factor = np.zeros((2, n))
    factor[0] = np.sqrt(excess + weight)
    factor[0, -1] = math.sqrt(excess[-1])
    factor[1, :-1] = -weight / factor[0, :-1]
    return factor
