"""The shape of components along their items: rising, with one peak, smooth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    entries: Elementwise = FREE
    columnwise = True

    def __post_init__(self):
        object.__setattr__(self, "weight", checked_weight("Smooth", self.weight))

    @property
    def nonnegative(self):
        return self.entries.nonnegative

    @property
    def magnitude(self):
        return self.entries.magnitude

    @classmethod
    def together(cls, entries: Elementwise, parts: list[Structure]) -> Structure | None:
        """Weights are added; a number for a lower bound is no obstacle."""
        bounded = np.ndim(entries.lower) == 0 and np.all(entries.upper == np.inf) and not entries.binary
        if all(isinstance(part, cls) for part in parts) and bounded and entries.l1 == entries.l2 == 0:
            return parts[0].altered(weight=sum(part.weight for part in parts), entries=entries)
        return None

    def bind(self, shape, transposed, name):
        return self.altered(entries=self.entries.bind(shape, transposed, name))

    def rescaled(self, exponent, objective_exponent):
        return self.altered(
            weight=min(times_power(self.weight, 2 * exponent - objective_exponent), LARGEST_WEIGHT),
            entries=self.entries.rescaled(exponent, objective_exponent),
        )

    def value(self, A):
        return self.weight / 2 * float(np.square(np.diff(A, axis=0), dtype=np.float64).sum())

    def prox(self, A, step):
        """`(1 + step weight D'D) B = A` with D the differences, a tridiagonal system, within the bound."""
        V = np.ascontiguousarray(A.T, dtype=np.float64)
        best = kernels.of(V).smooth(V, step * self.weight, float(self.entries.lower))
        return np.ascontiguousarray(best.T, dtype=A.dtype)

    def __repr__(self):
        return " & ".join([*([] if self.entries.free else [repr(self.entries)]), f"Smooth({self.weight:g})"])
