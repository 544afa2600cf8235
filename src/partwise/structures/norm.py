"""Structures of the size of a vector: norm 1, sum 1, a given ratio of the two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from .. import kernels
from .elementwise import Elementwise
from .vectors import Vectors


@dataclass(frozen=True, eq=False, repr=False)
class UnitNorm(Vectors):
    """Each component (or item) has `|a| = 1`."""

    size: float = 1.0  # the norm, in the units of the problem
    core = True
    stage = 4
    scale_free = False
    convex = False

    def __init__(self, per: str = "component"):
        super().__init__(per=per)

    @property
    def magnitude(self):
        return self.size

    def takes(self, entries):
        return entries.plain

    def rescaled(self, exponent, objective_exponent):
        return self.altered(size=math.ldexp(self.size, -exponent))

    def values(self, A, step, mask):
        best = self.entries.prox(A, 0.0)
        best = best if mask is None else np.where(mask, best, best.dtype.type(0))
        largest = np.max(np.abs(best), axis=self.axis, keepdims=True)
        best = best / np.where(largest > 0, largest, 1)  # squares of tiny numbers would vanish
        norm = np.sqrt(np.sum(np.square(best, dtype=np.float64), axis=self.axis, keepdims=True))
        unit = (best * (self.size / np.where(norm > 0, norm, 1))).astype(A.dtype)
        if np.all(norm > 0):
            return unit
        # nothing to go by: of all units along an axis the one with the largest entry is nearest
        axis = np.argmax(A, axis=self.axis, keepdims=True)
        along = np.zeros_like(A)
        np.put_along_axis(along, axis, A.dtype.type(self.size), self.axis)
        return np.where(norm > 0, unit, along)

    def face(self, A):
        """Of the cone: a caller normalises, and hands the norm to the other factor."""
        return super().face(A) if self.per == "component" else None

    def own_terms(self):
        return [f"UnitNorm(per={self.per!r})"]


@dataclass(frozen=True, eq=False, repr=False)
class Simplex(Vectors):
    """Each item (or component) is nonnegative and adds up to 1."""

    size: float = 1.0  # the sum, in the units of the problem
    core = True
    stage = 4
    nonnegative = True
    scale_free = False

    def __init__(self, per: str = "item"):
        super().__init__(per=per)

    @property
    def magnitude(self):
        return self.size

    def takes(self, entries):
        bounds = entries.convex and entries.l1 == entries.l2 == 0
        return bounds and (not self.chosen or (np.ndim(entries.lower) == 0 and self.limits(entries) == (0, np.inf)))

    @staticmethod
    def limits(entries: Elementwise):
        """Bounds, nonnegativity included."""
        return np.maximum(entries.lower, 0), entries.upper

    def check(self, shape, name):
        super().check(shape, name)
        low, high = (np.broadcast_to(b, shape).sum(axis=self.axis) for b in self.limits(self.entries))
        if np.any(low > self.size) or np.any(high < self.size):
            raise ValueError(f"no value of {name} satisfies {self}: its bounds do not let each {self.per} add up to 1")

    def rescaled(self, exponent, objective_exponent):
        entries = self.entries.rescaled(exponent, objective_exponent)
        return self.altered(entries=entries, size=math.ldexp(self.size, -exponent))

    def scores(self, A, step):
        return A

    def values(self, A, step, mask):
        low, high = (np.broadcast_to(b, A.shape if np.ndim(b) else (1, A.shape[1])) for b in self.limits(self.entries))
        if mask is not None:
            high = np.where(mask, high, 0.0)
        if self.axis == 0:
            low, high = (np.broadcast_to(b, A.shape) for b in (low, high))
        V, low, high = (self.vectors(np.asarray(B, dtype=np.float64)) for B in (A, low, high))
        return self.turned(kernels.of(V).with_sum(V, low, high, self.size)).astype(A.dtype, copy=False)

    def face(self, A):
        return None

    def own_terms(self):
        return [f"Simplex(per={self.per!r})"]


@dataclass(frozen=True, eq=False, repr=False)
class Hoyer(Vectors):
    """Each component (or item) is nonnegative, of sparsity `s` in Hoyer's measure, and of any length:

        (sqrt(n) - |a|_1 / |a|_2) / (sqrt(n) - 1) = s,

    0 for a flat vector of n entries, 1 for a single nonzero (Hoyer 2004). The zero vector is allowed.
    The direction of the nearest one is in proportion to `(a - mu)_+` for one mu (Thom, Rohde and Palm 2015).
    """

    sparsity: float = 0.5
    core = True
    stage = 3
    nonnegative = True
    convex = False

    def __init__(self, s: float, per: str = "component"):
        super().__init__(per=per)
        if not isinstance(s, Real) or not 0 <= s <= 1:
            raise ValueError(f"Hoyer takes a sparsity between 0 (flat) and 1 (a single nonzero), got {s!r}")
        object.__setattr__(self, "sparsity", float(s))

    @property
    def scale_free(self):
        return self.per == "component"

    @property
    def cone(self):
        return True

    def takes(self, entries):
        return entries.plain

    def ratio(self, n: int) -> float:
        """`|a|_1 / |a|_2` of a vector of n entries."""
        return math.sqrt(n) - self.sparsity * (math.sqrt(n) - 1)

    def check(self, shape, name):
        n = shape[self.axis]
        fewest = math.ceil(self.ratio(n) ** 2 - 1e-9)
        if self.chosen and self.choice(np.ones(shape)).sum(axis=self.axis).min() < fewest:
            raise ValueError(
                f"no value of {name} satisfies {self}: a sparsity of {self.sparsity:g} takes at least {fewest} "
                f"nonzeros in each {self.per} of {n} entries"
            )

    def scores(self, A, step):
        return A

    def values(self, A, step, mask):
        V = self.vectors(A.astype(np.float64))
        keep = np.ones((1, V.shape[1]), dtype=np.bool_) if mask is None else self.vectors(mask)
        return self.turned(kernels.of(V).with_ratio(V, keep, self.ratio(V.shape[1]))).astype(A.dtype, copy=False)

    def face(self, A):
        return None

    def own_terms(self):
        return [f"Hoyer({self.sparsity:g}, per={self.per!r})"]
