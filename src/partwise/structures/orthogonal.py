"""Orthogonal components: to one of them, or all to each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from .base import ROUNDING, beyond_rounding
from .elementwise import FREE, Elementwise
from .entries import OverEntries
from .vectors import checked_count

METHODS = ("exact", "successive")
SAFE_CONDITION = 1e-6  # of a Gram matrix, from where on its inverse root is accurate enough to be improved
REASSIGNMENTS = 20


class Tied(OverEntries):
    """Structures that tie components to each other."""

    convex = False
    stage = 3


@dataclass(frozen=True, eq=False, repr=False)
class OrthogonalTo(Tied):
    """All other components are orthogonal to the one with this number, which has at most `nonzeros` nonzeros.

    With nonnegativity an item belongs to that component or to the others, never to both, and the nearest point has a
    closed form: an item goes to it if its squared positive entry there exceeds the sum of those in the others, and of
    these the `nonzeros` with the largest difference stay. Without nonnegativity (and without `nonzeros`) it is a matter
    of one eigenvector. `method="successive"` iterates with one round of projections instead, one after another (Xu, Yu
    and Zhang 2013, section 4.4.3), which favours items of that component; results get the exact one in the end.
    """

    component: int
    nonzeros: int | None = None
    method: str = "exact"
    entries: Elementwise = FREE
    interchangeable = False

    def __post_init__(self):
        if not isinstance(self.component, Integral) or self.component < 0:
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
        """Whether there is a closed form."""
        return self.entries.nonnegative or self.nonzeros is None

    def bind(self, shape, transposed, name):
        if self.component >= shape[1]:
            raise ValueError(f"{self} names component {self.component}, but {name} has {shape[1]}, from 0 on")
        return super().bind(shape, transposed, name)

    def prox(self, A, step):
        return self.settle(A) if self.exact else self.one_round(A)

    def nearest(self, A, step):
        return self.settle(A)

    def settle(self, A):
        if self.entries.nonnegative:
            return self.split_items(A)
        if self.violation(A) == 0:
            return A.copy()  # the eigenvector of a point of the set may be ill-determined, and would move it
        return self.along_eigenvector(A) if self.closed else self.one_round(A)

    def split_items(self, A):
        best = np.maximum(A, 0)
        squares = np.square(best, dtype=np.float64)
        own = squares[:, self.component]
        lead = 2 * own - squares.sum(axis=1)  # of the component over all others together
        mine = lead > 0
        if self.nonzeros is not None and mine.sum() > self.nonzeros:
            first = np.argsort(-lead, kind="stable")[: self.nonzeros]
            mine = np.zeros_like(mine)
            mine[first] = True
        column = np.where(mine, best[:, self.component], 0)
        best[mine] = 0
        best[:, self.component] = column
        return best

    def along_eigenvector(self, A):
        u = self.direction(A.astype(np.float64))
        along = A.T @ u
        best = A - np.outer(u, along)
        best[:, self.component] = u * along[self.component]
        return best.astype(A.dtype, copy=False)

    def direction(self, A):
        """The direction u of the component maximises `(u'a)^2 - sum of (u'b)^2` over the others b. Where that is no
        more than rounding: what the others leave of the component."""
        Q = polar(A) if len(A) >= A.shape[1] else np.eye(len(A))
        R = Q.T @ A
        own, others = R[:, self.component], np.delete(R, self.component, axis=1)
        values, vectors = np.linalg.eigh(2 * np.outer(own, own) - R @ R.T)
        small = ROUNDING * np.finfo(A.dtype).eps
        if values[-1] > small * np.max(np.abs(values)):
            return Q @ vectors[:, -1]
        rest = own - others @ np.linalg.lstsq(others, own)[0]
        length = np.linalg.norm(rest)
        return Q @ rest / length if length > small * np.linalg.norm(own) else np.zeros(len(A))

    def violation(self, A):
        """Signed: by how much entries change if the component stays and the others are made orthogonal to it."""
        if self.entries.nonnegative:
            return super().violation(A)
        own = A[:, self.component].astype(np.float64)
        beyond = np.sort(np.abs(own))[: max(len(own) - (self.nonzeros or len(own)), 0)]
        own /= np.max(np.abs(own), initial=1e-300)
        along = own @ np.delete(A, self.component, axis=1) / max(own @ own, 1)
        return beyond_rounding(max(np.max(beyond, initial=0), np.max(np.abs(along), initial=0)), A)

    def one_round(self, A):
        best = self.entries.prox(A, 0.0)
        own = best[:, self.component].copy()
        if self.nonzeros is not None and self.nonzeros < len(own):
            own[np.argsort(-np.abs(own), kind="stable")[self.nonzeros :]] = 0
        if norm2 := float(own @ own):
            best = self.entries.prox(best - np.outer(own, own @ best / A.dtype.type(norm2)), 0.0)
        best[:, self.component] = own
        return best

    def face(self, A):
        return self.entries.holding_zeros(A) if self.entries.nonnegative else None

    def own_terms(self):
        extra = "" if self.nonzeros is None else f", nonzeros={self.nonzeros}"
        return [f"OrthogonalTo({self.component}{extra}, method={self.method!r})"]


@dataclass(frozen=True, eq=False, repr=False)
class Orthogonal(Tied):
    """Orthonormal components, `A'A = 1`: the nearest are the orthogonal factor of the polar decomposition.

    With nonnegativity an item has at most one nonzero, so that components are groups of items. No closed form is known
    for these: each item goes where it adds most to the sum of the norms, until nothing changes (`exact` is False).
    """

    entries: Elementwise = FREE
    size: float = 1.0  # the norm of a component, in the units of the problem
    stage = 4
    scale_free = False

    @property
    def exact(self):
        return not self.entries.nonnegative

    @property
    def magnitude(self):
        return self.size

    def bind(self, shape, transposed, name):
        if shape[1] > shape[0]:
            raise ValueError(f"{shape[1]} orthonormal components do not fit into {name}, which has {shape[0]} items")
        return super().bind(shape, transposed, name)

    def rescaled(self, exponent, objective_exponent):
        return self.altered(size=math.ldexp(self.size, -exponent))

    def prox(self, A, step):
        best = self.groups_of_items(A) if self.entries.nonnegative else polar(A.astype(np.float64))
        return (self.size * best).astype(A.dtype, copy=False)

    def groups_of_items(self, A):
        """A maximises `sum_k |A_k restricted to its items|`: items are assigned again with `a^2 / norm` for a gain."""
        squares = np.square(np.maximum(A, 0), dtype=np.float64)
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
        for k in np.flatnonzero(~best.any(axis=0)):  # every component needs an item: the cheapest to give away
            shared = np.count_nonzero(best, axis=0)[home] > 1
            cost = np.where(shared, best[items, home] - A[:, k], np.inf)
            item = int(np.argmin(cost)) if np.isfinite(cost).any() else int(np.argmin(best.any(axis=1)))
            best[item] = 0
            best[item, k], home[item] = 1.0, k
        return best / np.linalg.norm(best, axis=0)

    def own_terms(self):
        return ["Orthogonal()"]


def polar(A: np.ndarray) -> np.ndarray:
    """The orthogonal factor `A (A'A)^(-1/2)`: by the Gram matrix, twice, where that is accurate, else by the SVD."""
    for _ in range(2):
        values, vectors = np.linalg.eigh(A.T @ A)
        if values[0] <= SAFE_CONDITION * values[-1]:
            U, _, Vt = np.linalg.svd(A, full_matrices=False)
            A = U @ Vt
        else:
            A = A @ ((vectors / np.sqrt(values)) @ vectors.T)
    return A
