"""Structures that fix the size of vectors: norm 1, sum 1, a given ratio of the two."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..checks import is_between
from ..data.units import in_units, moderate
from .elementwise import Elementwise
from .vectors import SLACK, Vectors

TINY = 1e-100  # a norm whose square could underflow


@dataclass(frozen=True, eq=False, repr=False)
class FixedSize(Vectors):
    """Vectors of a given size, in the units of the problem."""

    size: float = 1.0
    stage = 4
    scale_free = False

    @property
    def magnitudes(self):
        return self.size, self.size

    @property
    def fixes_scale(self):
        return self.per == "component"

    def needed(self, shape):
        return 1

    def within(self, A, places):
        """A vector without any place may use all of them: it cannot be 0."""
        return super().within(A, places | ~places.any(axis=self.axis, keepdims=True))

    def norm_at(self, ratio: float) -> float:
        """The norm of a vector with this `|a|_1 / |a|_2`."""
        return self.size

    def rescaled(self, exponent, objective_exponent):
        return super().rescaled(exponent, objective_exponent).altered(size=in_units(self.size, exponent))


@dataclass(frozen=True, eq=False, repr=False)
class UnitNorm(FixedSize):
    """Each component (or item) has `|a| = 1`.

    Parameters
    ----------
    per : "item" or "component"
        Each sample of W, or feature of H, on its own; or each part.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> unit = pw.structures.NonNegative() & pw.structures.UnitNorm()
    >>> result = pw.factorize(X, 3, structure_H=unit, n_init=1, tol=0.01, random_state=0)
    >>> np.linalg.norm(result.H, axis=1).round(6)
    array([1., 1., 1.])
    """

    core = 1
    convex = False

    def __init__(self, per: str = "component") -> None:
        super().__init__(per=per)

    def takes(self, entries):
        return entries.plain or two_values(entries)

    def sums(self, shape):
        return {"squares": shape[1 - self.axis] * self.size**2}

    def scores(self, A, step):
        return A if self.entries.nonnegative else np.abs(A)

    def values(self, A, step, mask):
        if self.entries.binary:
            return one_hot(A, mask, self.axis, self.size)
        best = self.entries.prox(A, 0.0)
        best = best if mask is None else np.where(mask, best, best.dtype.type(0))
        norm = lengths(best, self.axis)
        if np.any((norm < TINY) | np.isinf(norm)):
            largest = np.max(np.abs(best), axis=self.axis, keepdims=True)
            best = best / np.where(largest > 0, largest, 1)  # or squares vanish, or are too large
            norm = lengths(best, self.axis)
        unit = best * (self.size / np.where(norm > 0, norm, 1)).astype(A.dtype)
        if np.all(norm > 0):
            return unit
        # nothing to go by: of all units along an axis the one with the largest entry is nearest; among equal ones each
        # component looks from another place on, so that they do not crowd into one item
        none = np.flatnonzero(norm == 0)
        n = A.shape[self.axis]
        places = (np.arange(n) + (none[:, None] if self.axis == 0 else 0 * none[:, None])) % n
        allowed = self.vectors(A if mask is None else np.where(mask, A, -np.inf))
        largest = np.argmax(np.take_along_axis(allowed[none], places, axis=1), axis=1)
        (unit if self.axis else unit.T)[none, places[np.arange(len(none)), largest]] = self.size
        return unit

    @property
    def without_norm(self):
        if self.per == "item" or self.entries.binary:
            return None
        return Vectors(self.per, self.most, self.groups, self.counts, self.entries) if self.chosen else self.entries

    def own_terms(self):
        return [*super().own_terms(), f"UnitNorm(per={self.per!r})"]


@dataclass(frozen=True, eq=False, repr=False)
class Simplex(FixedSize):
    """Each item (or component) is nonnegative and adds up to 1.

    Parameters
    ----------
    per : "item" or "component"
        Each sample of W, or feature of H, on its own; or each part.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> shares = pw.structures.Simplex()
    >>> result = pw.factorize(X, 3, structure_W=shares, n_init=1, tol=0.01, random_state=0)
    >>> result.W.sum(axis=1)[:4].round(6)
    array([1., 1., 1., 1.])
    """

    core = 2
    nonnegative = True

    def __init__(self, per: str = "item") -> None:
        super().__init__(per=per)

    def takes(self, entries):
        if self.sized:
            return entries.plain or two_values(entries)
        alike = entries.uniform and entries.lower <= 0
        return two_values(entries) or (entries.bounds_only and (alike or not self.chosen))

    def needed(self, shape):
        return max(1, math.ceil(self.size / np.max(self.entries.upper) * (1 - SLACK)))

    def norm_at(self, ratio):
        return self.size / ratio

    def sums(self, shape):
        return {"entries": shape[1 - self.axis] * self.size}

    def bounds(self):
        """Nonnegativity included."""
        return np.maximum(self.entries.lower, 0), self.entries.upper

    def check(self, shape, name):
        super().check(shape, name)
        low, high = (np.broadcast_to(b, shape) for b in self.bounds())
        crossed = bool(np.any(low > high))
        if self.chosen:
            high = np.where(self.choice(np.ones(shape)), high, 0.0)
        low, high = low.sum(axis=self.axis), high.sum(axis=self.axis)
        if crossed or np.any(low > self.size * (1 + SLACK)) or np.any(high < self.size * (1 - SLACK)):
            raise ValueError(f"no value of {name} satisfies {self}: its bounds do not let each {self.per} add up to 1")

    def scores(self, A, step):
        return A

    def values(self, A, step, mask):
        if self.entries.binary or self.sized:  # a sum and a norm of 1 have only single entries
            return one_hot(A, mask, self.axis, self.size)
        V = self.vectors(A.astype(np.float64, copy=False))
        low, high = (self.vectors(b) if np.ndim(b) else np.full((1, V.shape[1]), float(b)) for b in self.bounds())
        if mask is not None:
            high = np.where(self.vectors(mask), high, 0.0)
        return self.turned(kernels.of(V).project_simplex(V, low, high, self.size)).astype(A.dtype, copy=False)

    def own_terms(self):
        return [*super().own_terms(), f"Simplex(per={self.per!r})"]


@dataclass(frozen=True, eq=False, repr=False)
class Hoyer(Vectors):
    """Each component (or item) is nonnegative, of sparsity `s` in Hoyer's measure, and of any length::

        (sqrt(n) - |a|_1 / |a|_2) / (sqrt(n) - 1) = s,

    0 for a flat vector of n entries, 1 for a single nonzero (Hoyer 2004). The zero vector is allowed.
    The direction of the nearest one is in proportion to `(a - mu)_+` for one mu (Thom, Rohde and Palm 2015). With
    `UnitNorm` or `Simplex` over the same vectors the length is known as well.

    Parameters
    ----------
    s : float
        The sparsity, between 0 and 1.
    per : "item" or "component"
        Each sample of W, or feature of H, on its own; or each part.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, structure_H=pw.structures.Hoyer(0.6), n_init=1, tol=0.01, random_state=0)
    >>> pw.metrics.sparsity(result.H).round(6)
    array([0.6, 0.6, 0.6])
    """

    sparsity: float = 0.5
    core = 3
    stage = 3
    nonnegative = True
    convex = False

    def __init__(self, s: float, per: str = "component") -> None:
        super().__init__(per=per)
        if not is_between(s, 0, 1):
            raise ValueError(f"Hoyer takes a sparsity between 0 (flat) and 1 (a single nonzero), got {s!r}")
        object.__setattr__(self, "sparsity", float(s))

    @property
    def scale_free(self):
        return self.per == "component" and self.cone

    @property
    def cone(self):
        return self.sized is None

    def takes(self, entries):
        return entries.plain

    def ratio(self, n: int) -> float:
        """`|a|_1 / |a|_2` of a vector of n entries."""
        return math.sqrt(n) - self.sparsity * (math.sqrt(n) - 1)

    def check(self, shape, name):
        n, fewest = shape[self.axis], self.needed(shape)
        if self.chosen and self.choice(np.ones(shape)).sum(axis=self.axis).min() < fewest:
            raise ValueError(
                f"no value of {name} satisfies {self}: a sparsity of {self.sparsity:g} takes at least {fewest} "
                f"nonzeros in each {self.per} of {n} entries"
            )

    def needed(self, shape):
        return math.ceil(self.ratio(shape[self.axis]) ** 2 - 1e-9)

    def scores(self, A, step):
        return A

    def values(self, A, step, mask):
        V, exponents = moderate(self.vectors(A.astype(np.float64, copy=False)), axis=1)
        keep = np.ones((1, V.shape[1]), dtype=np.bool_) if mask is None else self.vectors(mask)
        ratio = self.ratio(V.shape[1])
        norm = self.sized.norm_at(ratio) if self.sized else 0.0
        best = kernels.of(V).project_hoyer(V, keep, ratio, norm)
        if exponents.any() and not self.sized:
            best = np.ldexp(best, exponents)
        best[np.broadcast_to(keep.sum(axis=1) < self.needed(A.shape), len(V))] = 0  # too few places
        return self.turned(best).astype(A.dtype, copy=False)

    def own_terms(self):
        return [*super().own_terms(), f"Hoyer({self.sparsity:g}, per={self.per!r})"]


def lengths(A: np.ndarray, axis: int) -> np.ndarray:
    """The norms along an axis, which is kept."""
    if axis:
        return np.sqrt(np.einsum("ij,ij->i", A, A, dtype=np.float64))[:, None]
    # a sum along rows that lie in one piece is by halves: that of a long column one by one is off by more
    with np.errstate(over="ignore"):
        return np.sqrt(np.sum(np.square(np.ascontiguousarray(A.T), dtype=np.float64), axis=1))[None]


def two_values(entries: Elementwise) -> bool:
    """Whether entries are 0 or 1, for all alike."""
    return entries.binary and entries.uniform and entries.lower == 0


def one_hot(A: np.ndarray, mask: np.ndarray | None, axis: int, size: float) -> np.ndarray:
    """The nearest vectors with a single entry `size`: where the largest one is."""
    place = np.argmax(A if mask is None else np.where(mask, A, -np.inf), axis=axis, keepdims=True)
    best = np.zeros_like(A)
    np.put_along_axis(best, place, A.dtype.type(size), axis)
    return best
