"""Orthogonal components: to one of them, or all to each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy

from ..checks import is_int
from ..data.units import in_units
from .base import beyond_rounding
from .elementwise import FREE, Elementwise
from .entries import WithEntrywise
from .vectors import checked_count, warn_if_idle

METHODS = ("exact", "successive")
SAFE_CONDITION = 1e-6  # of a Gram matrix, from where on its inverse root is accurate enough to be improved
REASSIGNMENTS = 20
TURNS = 10  # between orthonormal components and zeros outside some places
INDEPENDENT = 1e-8  # relative: less than this left of a component is rounding
BISECTIONS = 100


class CoupledColumns(WithEntrywise):
    """Structures that couple components to each other."""

    convex = False
    stage = 3


@dataclass(frozen=True, eq=False, repr=False)
class OrthogonalTo(CoupledColumns):
    """All other components are orthogonal to the one with this number, which has at most `nonzeros` nonzeros.

    With nonnegativity an item belongs to that component or to the others, never to both, and the nearest point has a
    closed form: an item goes to it if its squared positive entry there exceeds the sum of those in the others, and of
    these the `nonzeros` with the largest difference stay. Without nonnegativity (and without `nonzeros`) it is a matter
    of one eigenvector. `method="successive"` iterates with one round of projections instead, one after another (Xu, Yu
    and Zhang 2013, section 4.4.3), which favours items of that component; results get the exact one in the end.

    Parameters
    ----------
    component : int
        The number of the component, from 0.
    nonzeros : int, optional
        The most nonzeros in it.
    method : "exact" or "successive"
        The nearest point, or one round of simple projections on the way; results get the exact one in the end.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> apart = pw.structures.NonNegative() & pw.structures.OrthogonalTo(0, nonzeros=4)
    >>> H = pw.factorize(X, 3, structure_H=apart, n_init=1, tol=0.01, random_state=0).H
    >>> (H[0] @ H[1:].T).round(12), int((H[0] != 0).sum()) <= 4
    (array([0., 0.]), True)
    """

    component: int
    nonzeros: int | None = None
    method: str = "exact"
    entries: Elementwise = field(default=FREE, init=False)
    interchangeable = False

    def __post_init__(self):
        if not is_int(self.component) or self.component < 0:
            raise ValueError(f"OrthogonalTo takes the number of a component, from 0 on; got {self.component!r}")
        if self.nonzeros is not None:
            checked_count("the number of nonzeros", self.nonzeros)
        if self.method not in METHODS:
            raise ValueError(f"method must be 'exact' or 'successive', got {self.method!r}")

    @property
    def exact(self):
        return self.method == "exact" and self.closed

    @property
    def closed(self):
        """Whether the projection has a closed form."""
        return self.entries.nonnegative or self.nonzeros is None

    def bind(self, shape, transposed, name):
        if self.component >= shape[1]:
            raise ValueError(f"{self} names component {self.component}, but {name} has {shape[1]}, from 0 on")
        warn_if_idle(self.nonzeros, shape[0], self, name)
        return super().bind(shape, transposed, name)

    def prox(self, A, step):
        return self.settle(A) if self.exact else self.one_round(A)

    def nearest(self, A, step):
        return self.settle(A)

    def settle(self, A):
        if self.entries.nonnegative:
            return self.split_items(A)
        if self.violation(A) == 0:
            return A.copy()  # the direction of a point of the set may be ill-determined, and would move it
        return self.along_direction(A) if self.closed else self.one_round(A)

    def within(self, A, places):
        if self.entries.nonnegative:
            return super().within(A, places)
        return self.one_round(np.where(places, A, A.dtype.type(0)), places)

    def places(self, A):
        """Nonnegative: an item is in that component or in the others."""
        places = super().places(A)
        if self.entries.nonnegative:
            mine = self.split_items(A)[:, self.component] > 0
            return places & np.where(np.arange(A.shape[1]) == self.component, mine[:, None], ~mine[:, None])
        places[:, self.component] = self.largest(A[:, self.component])
        return places

    def largest(self, own):
        """Which entries of the component are among the `nonzeros` largest."""
        first = np.argsort(-np.abs(own), kind="stable")[: self.nonzeros]
        return np.isin(np.arange(len(own)), first)

    def limits(self, rank):
        few = [] if self.nonzeros is None else [(0, [self.component], self.nonzeros)]
        others = [k for k in range(rank) if k != self.component and self.entries.nonnegative]
        return few + [(1, [self.component, k], 1) for k in others]

    def split_items(self, A):
        best = np.maximum(A, 0)
        exponents = np.frexp(np.max(best, axis=1))[1]  # of each item: its squares could be no numbers
        squares = np.square(np.ldexp(best, -exponents[:, None]), dtype=np.float64)
        lead = 2 * squares[:, self.component] - squares.sum(axis=1)  # of the component over all others together
        mine = lead > 0
        if self.nonzeros is not None and mine.sum() > self.nonzeros:
            lead = np.ldexp(lead, 2 * (exponents - exponents[mine].max()))
            first = np.argsort(np.where(mine, -lead, np.inf), kind="stable")[: self.nonzeros]
            mine = np.zeros_like(mine)
            mine[first] = True
        column = np.where(mine, best[:, self.component], 0)
        best[mine] = 0
        best[:, self.component] = column
        return best

    def along_direction(self, A):
        """The nearest for the best direction of the component; for its own direction, or with zeros for it, where
        rounding makes these nearer."""
        V = unit_scale(A.astype(np.float64))
        own, others = V[:, self.component], np.delete(V, self.component, axis=1)
        nearest = []
        for u in (best_direction(own, others), direction_of(own), np.zeros(len(A))):
            along = u @ V
            B = V - np.outer(u, along)
            B[:, self.component] = u * along[self.component]
            nearest.append(B.astype(A.dtype))
        best = min(nearest, key=lambda B: np.sum((B - V) ** 2))
        return np.ldexp(best, exponent_of_largest(A))

    def violation(self, A):
        """Signed: by how much entries change if the component stays and the others are made orthogonal to it."""
        if self.entries.nonnegative:
            return super().violation(A)
        own = direction_of(A[:, self.component].astype(np.float64))
        along = np.max(np.abs(own @ np.delete(A, self.component, axis=1)), initial=0)
        return max(beyond_rounding(along * np.max(np.abs(own)), A), self.surplus(A))

    def one_round(self, A, places=np.True_):
        """The component as it is, in its largest entries, and the others made orthogonal to it, each in its places."""
        best = self.entries.prox(A, 0.0)
        own = np.where(self.largest(best[:, self.component]), best[:, self.component], 0)
        along = np.where(places, direction_of(own.astype(np.float64))[:, None], np.zeros(A.shape[1]))
        squares = np.square(along).sum(axis=0)
        for _ in range(1 if self.entries.nonnegative else 2):  # twice, for accuracy
            lengths = (along * best).sum(axis=0) / np.where(squares > 0, squares, 1)
            best = self.entries.prox((best - along * lengths).astype(A.dtype, copy=False), 0.0)
            best[:, self.component] = own
        return best

    def face(self, A):
        return self.entries.holding_zeros(A) if self.entries.nonnegative else None

    def own_terms(self):
        extra = "" if self.nonzeros is None else f", nonzeros={self.nonzeros}"
        return [f"OrthogonalTo({self.component}{extra}, method={self.method!r})"]


@dataclass(frozen=True, eq=False, repr=False)
class Orthogonal(CoupledColumns):
    """Orthonormal components, `A'A = 1`: the nearest are the orthogonal factor of the polar decomposition.

    With nonnegativity an item has at most one nonzero, so that components are groups of items. No closed form is known
    for these: each item goes where it adds most to the sum of the norms, until nothing changes (`exact` is False).

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> groups = pw.structures.NonNegative() & pw.structures.Orthogonal()
    >>> result = pw.factorize(X, 3, structure_H=groups, n_init=1, tol=0.01, random_state=0)
    >>> int((result.H != 0).sum(axis=0).max())  # every feature is in one part at most
    1
    """

    entries: Elementwise = field(default=FREE, init=False)
    size: float = field(default=1.0, init=False)  # the norm of a component, in the units of the problem
    stage = 4
    scale_free = False
    fixes_scale = True

    @property
    def exact(self):
        return not self.entries.nonnegative

    @property
    def magnitudes(self):
        return self.size, self.size

    def bind(self, shape, transposed, name):
        if shape[1] > shape[0]:
            raise ValueError(f"{shape[1]} orthonormal components do not fit into {name}, which has {shape[0]} items")
        return super().bind(shape, transposed, name)

    def rescaled(self, exponent, objective_exponent):
        return self.altered(size=in_units(self.size, exponent))

    def fewest(self, shape):
        return 0, 1

    def sums(self, shape):
        return {"squares": shape[1] * self.size**2}

    def limits(self, rank):
        return [(1, list(range(rank)), 1)] if self.entries.nonnegative else []

    def places(self, A):
        if not self.entries.nonnegative:
            return super().places(A)
        return np.arange(A.shape[1]) == np.argmax(self.groups_of_items(A), axis=1)[:, None]

    def prox(self, A, step):
        best = self.groups_of_items(A) if self.entries.nonnegative else polar(A.astype(np.float64))
        return (self.size * best).astype(A.dtype, copy=False)

    def within(self, A, places):
        """Signed: made orthonormal one component after the other, each in its places; groups of items, where that is
        impossible."""
        if self.entries.nonnegative:
            return (self.size * self.groups_of_items(A, places)).astype(A.dtype, copy=False)
        best = A.astype(np.float64)
        for _ in range(TURNS):
            best = polar(np.where(places, best, 0))
        found = orthonormal_in(best, places)
        if found is None:
            found = np.copysign(self.groups_of_items(np.abs(best), places), best)
        return (self.size * found).astype(A.dtype, copy=False)

    def groups_of_items(self, A, places=np.True_):
        """A maximises `sum_k |A_k restricted to its items|`: items are assigned again with `a^2 / norm` for a gain."""
        A = unit_scale(A.astype(np.float64))
        squares = np.square(np.where(places, np.maximum(A, 0), 0))
        rank = A.shape[1]
        items, norm = np.arange(len(A)), np.ones(rank)
        home = None
        for _ in range(REASSIGNMENTS):
            following = np.argmax(squares / norm, axis=1)
            if home is not None and np.array_equal(home, following):
                break
            home = following
            norm = np.sqrt(np.bincount(home, squares[items, home], minlength=rank))
            norm = np.where(norm > 0, norm, max(norm.max(), 1e-300))
        best = np.zeros(A.shape)
        best[items, home] = np.sqrt(squares[items, home])
        if not np.all(best.any(axis=0)):  # every component needs an item: those that cost least to give away
            gains = np.where(places, A, A - 4) - best.max(axis=1, keepdims=True)
            gains[items, home] = np.where(best.any(axis=1), 0, gains[items, home])
            components, chosen = scipy.optimize.linear_sum_assignment(gains.T, maximize=True)
            best[chosen] = 0
            values = np.sqrt(squares[chosen, components])
            empty = ~best.any(axis=0)[components] & (values == 0)
            best[chosen, components] = np.where(empty, 1.0, values)
        return best / np.linalg.norm(best, axis=0)

    def own_terms(self):
        return ["Orthogonal()"]


def exponent_of_largest(A: np.ndarray) -> int:
    return int(np.frexp(np.max(np.abs(A), initial=0))[1])


def unit_scale(A: np.ndarray) -> np.ndarray:
    """A over a power of two, its largest entry near 1: squares of it are numbers."""
    return np.ldexp(A, -exponent_of_largest(A))


def direction_of(a: np.ndarray) -> np.ndarray:
    """`a / |a|`, and 0 for 0."""
    a = unit_scale(a)
    return a / (np.linalg.norm(a) or 1.0)


def best_direction(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The u of norm 1 that maximises `(u'own)^2 - |others' u|^2 = t`, for t > 0: in proportion to
    `(others others' + t)^-1 own`, where t is such that its product with `own` is 1. Nothing cancels in these sums."""
    U, sizes, _ = np.linalg.svd(others, full_matrices=False)
    along = U.T @ own
    rest = own - U @ along
    rest -= U @ (U.T @ rest)
    squares, left, most = sizes**2, rest @ rest, own @ own
    if most == 0:
        return own
    low, high = max(left, 1e-40 * most), most
    for _ in range(BISECTIONS):
        t = math.sqrt(low * high)
        if np.sum(along**2 / (squares + t)) + left / t > 1:
            low = t
        else:
            high = t
    return direction_of(U @ (along / (squares + low)) + rest / low)


def orthonormal_in(A: np.ndarray, places: np.ndarray) -> np.ndarray | None:
    """Orthonormal components near A, each 0 outside its places: one after another, from the one with the fewest. None
    where those before leave nothing of one."""
    best = np.zeros(A.shape)
    for k in np.argsort(places.sum(axis=0), kind="stable"):
        here = places[:, k]
        before = best[here][:, best[here].any(axis=0)]
        column = direction_of(A[here, k])
        for _ in range(2):  # twice, for accuracy
            rest = column - before @ np.linalg.lstsq(before, column)[0] if before.size else column
            if np.linalg.norm(rest) < INDEPENDENT:
                return None
            column = direction_of(rest)
        best[here, k] = column
    return best


def polar(A: np.ndarray) -> np.ndarray:
    """The orthogonal factor `A (A'A)^(-1/2)`: by the Gram matrix, twice, where that is accurate, else by the SVD."""
    A = unit_scale(A)
    for _ in range(2):
        values, vectors = np.linalg.eigh(A.T @ A)
        if values[0] <= SAFE_CONDITION * values[-1]:
            U, _, Vt = np.linalg.svd(A, full_matrices=False)
            A = U @ Vt
        else:
            A = A @ ((vectors / np.sqrt(values)) @ vectors.T)
    return A
