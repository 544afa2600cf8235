"""The shape of components along their items: rising, with one peak, smooth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .. import kernels
from ..data.units import in_units, moderate, times_power
from .elementwise import FREE, LARGEST_WEIGHT, Elementwise, checked_weight
from .entries import WithEntrywise


@dataclass(frozen=True, eq=False, repr=False)
class Monotone(WithEntrywise):
    """Each component rises (or falls) from item to item: isotonic regression, by pooling adjacent violators.

    Parameters
    ----------
    decreasing : bool
        Whether components fall.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.outer([1.0, 2.0, 4.0, 5.0], [1.0, 2.0, 3.0]) + [0.1, 0.0, 0.2]
    >>> rising = pw.structures.NonNegative() & pw.structures.Monotone()
    >>> result = pw.factorize(X, 1, structure_W=rising, n_init=1, tol=0.01, random_state=0)
    >>> bool((np.diff(result.W, axis=0) >= 0).all())
    True
    """

    decreasing: bool = False
    entries: Elementwise = field(default=FREE, init=False)
    columnwise = True

    def takes(self, entries):
        """With two numbers for bounds the nearest point is the one without bounds, clipped."""
        return entries.uniform and entries.bounds_only

    def prox(self, A, step):
        return self.within(A, np.ones((len(A), 1), dtype=bool))

    def within(self, A, places):
        """The nearest one: a place that is held at 0 has these bounds."""
        order = slice(None, None, -1 if self.decreasing else 1)
        V, exponents = moderate(np.ascontiguousarray(A[order].T, dtype=np.float64), axis=1)
        lower, upper = (np.where(places[order].T, b, 0.0) for b in (self.entries.lower, self.entries.upper))
        if exponents.any():
            lower, upper = in_units(lower, exponents), in_units(upper, exponents)
        best = self.fitted(V, lower, upper)
        best = np.ldexp(best, exponents) if exponents.any() else best
        return np.ascontiguousarray(best.T[order], dtype=A.dtype)

    def fitted(self, V: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """The nearest vectors, as rows."""
        return kernels.of(V).isotonic(V, lower, upper)

    def own_terms(self):
        return [f"Monotone({'decreasing=True' if self.decreasing else ''})"]


class Unimodal(Monotone):
    """Each component rises to a peak and falls after it, wherever the peak is best (Stout 2008).

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_fluorescence(6, 2, random_state=0)
    >>> X = planted.X.sum(axis=2)[:, ::8]  # spectra with one peak for each analyte
    >>> peaks = pw.structures.NonNegative() & pw.structures.Unimodal()
    >>> H = pw.factorize(X, 2, structure_H=peaks, n_init=1, tol=0.01, random_state=0).H
    >>> rising = [np.diff(h)[: h.argmax()] for h in H]
    >>> bool(all((steps >= 0).all() for steps in rising))
    True
    """

    convex = False

    def __init__(self) -> None:
        super().__init__()

    def fitted(self, V, lower, upper):
        return kernels.of(V).unimodal(V, lower, upper)

    def own_terms(self):
        return ["Unimodal()"]


@dataclass(frozen=True, eq=False, repr=False)
class Smooth(WithEntrywise):
    """The penalty `weight / 2 * sum of squared differences` between neighbouring items of each component.

    Parameters
    ----------
    weight : float
        How much it counts, >= 0.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.outer(np.sin(np.arange(20) / 4) ** 2, np.ones(4)) + np.random.default_rng(0).uniform(size=(20, 4))
    >>> smooth = pw.structures.NonNegative() & pw.structures.Smooth(5.0)
    >>> held = pw.structures.Fixed(np.ones((1, 4)))
    >>> rough, even = (pw.factorize(X, 1, structure_W=W, structure_H=held).W for W in (None, smooth))
    >>> bool(np.abs(np.diff(even, axis=0)).sum() < np.abs(np.diff(rough, axis=0)).sum())
    True
    """

    weight: float
    entries: Elementwise = field(default=FREE, init=False)
    columnwise = True
    scale_free = False

    def __post_init__(self):
        object.__setattr__(self, "weight", checked_weight("Smooth", self.weight))

    def takes(self, entries):
        """A closed form allows one number for a lower bound."""
        return np.ndim(entries.lower) == 0 and np.all(entries.upper == np.inf) and entries.bounds_only

    @classmethod
    def together(cls, entries, parts):
        """Weights are added."""
        if len(parts) > 1 and all(isinstance(part, cls) for part in parts):
            parts = [parts[0].altered(weight=sum(part.weight for part in parts))]
        return super().together(entries, parts)

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

    def own_terms(self):
        return [f"Smooth({self.weight:g})"]
