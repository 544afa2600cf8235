"""The best rank-one part of a symmetric tensor: `max <P, u o ... o u>` over nonnegative unit vectors.

For even order d the value is a quadratic form in the monomials of degree d / 2 of u, each times the root of how often
it occurs among the products of d / 2 entries, so that they make a unit vector y(u): `<P, u^d> = y' B y`. For odd order
the monomials of the two degrees next to d / 2 make one together. Of `Z = y y'` it is known that it is positive
semidefinite, has trace 1, and that entries which are the same product of entries of u agree and are nonnegative. The
best Z of this kind bounds the value: Lasserre (2001), SIAM J. Optimization 11(3), the first relaxation; with signs,
Huang and Zhang (2015).

Its dual: `<P, u^d> <= lambda_max(B + S)` for any symmetric S whose entries, those for the same product summed with
their weights, are nonnegative. The point is that of the shifted power method: Kolda and Mayo (2011), SIAM J. Matrix
Analysis 32(4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, permutations

import numpy as np

from ..run import interrupts
from . import doubly_nonnegative
from .bounds import EPS, largest_eigenvalue
from .power import unit

SLICES, VECTORS = 4, 2  # contractions to a matrix, and leading eigenvectors of each of them, that are starts
DRAWN = 8  # sparse random vectors that are starts, too
CLIMB = ((10, 8), (30, 2), (2000, 1))  # steps, and how many of the best go on after them
SETTLED = 1e-14  # growth of a value in a step at which it has arrived
ROUNDING = 1e-13  # of |P|: a difference that is none


def best_symmetric(
    P: np.ndarray, rng: np.random.RandomState, gap: float, rounding: float = 0.0
) -> tuple[np.ndarray, float, float, str, str]:
    """A nonnegative unit vector with a large `<P, u o ... o u>`, the value, a bound on all of them, how far it is
    certified ("closed": to `gap`, relative to the value; "open"; "not certified": too large) and by what.

    `rounding`: how far off P is, in the Frobenius norm, at most.
    """
    P, n = symmetrised(P), P.shape[0]
    if not P.any():
        return np.eye(n)[0], 0.0, rounding, "closed" if rounding == 0 else "open", "entries"
    certified = side_of(n, P.ndim) <= doubly_nonnegative.SIDE
    moments = Moments.of(n, P.ndim) if certified else None
    search = Ascent(P, moments, gap, rounding)
    search.climb(starts(P, rng))
    bound = search.bound() if certified else np.inf
    status = "not certified" if not certified else "closed" if search.meets(bound) else "open"
    return search.u, search.value, bound, status, "moments" if certified else "none"


class Ascent:
    """A point from below, until a bound from above meets it."""

    def __init__(self, P: np.ndarray, moments: Moments | None, gap: float, rounding: float):
        self.P, self.moments, self.gap, self.rounding = P, moments, gap, rounding
        self.B = moments.form(P) if moments else None
        self.shift = shift_of(P, self.B)
        self.u, self.value = np.eye(P.shape[0])[0], float(P[(0,) * P.ndim])

    def meets(self, bound: float) -> bool:
        return bound - self.value <= self.gap * abs(self.value) + ROUNDING * float(np.linalg.norm(self.P))

    def climb(self, V: np.ndarray) -> None:
        """The best point that the columns of V lead to, if it is better than the one known."""
        V, _ = unit(V)
        V = V[:, V.any(axis=0)]
        for steps, few in CLIMB:
            V, values = self.ascend(V, steps)
            V = V[:, np.argsort(-values, kind="stable")[:few]]
        if values.max(initial=-np.inf) > self.value:
            self.u, self.value = V[:, 0], float(values.max())

    def ascend(self, V: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps `u = [P u^(d - 1) + c u]_+ / |.|` from every column, and the values there. With c so large that
        `<P, u^d> + c |u|^d` is convex they never lower it."""
        slopes = contract(self.P, V, self.P.ndim - 1)
        values = np.einsum("ik,ik->k", V, slopes)
        for _ in range(steps):
            interrupts.check()
            new, norms = unit(slopes + self.shift * V)
            V, before = np.where(norms > 0, new, V), values
            slopes = contract(self.P, V, self.P.ndim - 1)
            values = np.einsum("ik,ik->k", V, slopes)
            if np.all(values - before <= SETTLED * np.abs(values)):
                break
        return V, values

    def bound(self) -> float:
        """That of the relaxation; where it points to there may be a better point."""
        assert self.moments is not None and self.B is not None
        z = self.moments.of_vector(self.u)
        cone = Consistent(self.moments, z, self.value * z - self.B @ z)
        scale = max(abs(self.value), float(np.linalg.norm(self.B)) / len(z))
        return doubly_nonnegative.relaxation_bound(self.B, z, cone, scale, self.enough) + self.rounding

    def enough(self, bound: float, direction: np.ndarray) -> bool:
        if not self.meets(bound + self.rounding):
            assert self.moments is not None
            there, values = self.ascend(unit(self.moments.vectors(direction))[0], 1)
            if values.max() > self.value:
                self.climb(there)
        return self.meets(bound + self.rounding)


@dataclass(frozen=True, eq=False)
class Moments:
    """The monomials that `<P, u^d>` is a quadratic form in, and which entries of `y y'` are the same product.

    A product of fewer entries than others has the number 1 for the missing ones, at index n."""

    n: int
    order: int
    index: np.ndarray  # (N, degree): the entries of u that each is the product of, in order
    weights: np.ndarray  # (N,): the root of how often it occurs, such that y(u) is a unit vector if u is
    label: np.ndarray  # (N, N): of the product, counted from 0
    places: np.ndarray  # (2 degree, products): the entries of u that each product is made of, in order
    norms2: np.ndarray  # of each product: the sum of squared weights of the entries of `y y'` that are it

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, n: int, order: int) -> Moments:
        found = [monomials(n, degree, order - order // 2) for degree in degrees(order)]
        index, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        weights = weights / math.sqrt(len(found))
        pairs = np.concatenate([np.repeat(index, len(index), axis=0), np.tile(index, (len(index), 1))], axis=1)
        shape = (n + 1,) * pairs.shape[1]
        known, label = np.unique(np.ravel_multi_index(tuple(np.sort(pairs, axis=1).T), shape), return_inverse=True)
        label, places = label.reshape(len(index), -1), np.array(np.unravel_index(known, shape))
        norms2 = np.bincount(label.ravel(), np.square(np.outer(weights, weights)).ravel())
        return cls(n, order, index, weights, label, places, norms2)

    def consistent(self, products: np.ndarray) -> np.ndarray:
        """The matrix with these products, times the weights of row and column."""
        return np.outer(self.weights, self.weights) * products[self.label]

    def products(self, Y: np.ndarray) -> np.ndarray:
        """Those of the nearest consistent matrix."""
        weighted = self.weights[:, None] * Y * self.weights
        return np.bincount(self.label.ravel(), weighted.ravel()) / self.norms2

    def form(self, P: np.ndarray) -> np.ndarray:
        """B with `y(u)' B y(u) = <P, u^d>`, of a symmetric P. For odd order it is `[[0, C], [C', 0]]`, and each half of
        y(u) has norm `1 / sqrt 2`: C counts twice, at half its weight squared."""
        of_order = np.count_nonzero(self.places < self.n, axis=0) == self.order
        products = np.zeros(len(self.norms2))
        products[of_order] = len(degrees(self.order)) * P[tuple(self.places[: self.order, of_order])]
        return self.consistent(products)

    def of_vector(self, u: np.ndarray) -> np.ndarray:
        """y(u)."""
        return self.weights * np.prod(np.append(u, 1.0)[self.index], axis=1)

    def vectors(self, y: np.ndarray) -> np.ndarray:
        """Vectors u of which y may be the monomials, (n, 2): both signs of the leading one of y as a tensor."""
        degree = self.index.shape[1]
        T = np.zeros((self.n + 1,) * degree)
        for order in permutations(range(degree)):
            T[tuple(self.index[:, order].T)] = y / self.weights
        u = np.linalg.svd(T.reshape(self.n + 1, -1), full_matrices=False)[0][:-1, 0]
        return np.column_stack([u, -u])


def degrees(order: int) -> list[int]:
    """Of the monomials: half the order, or the numbers next to it."""
    return sorted({order // 2, order - order // 2})


def side_of(n: int, order: int) -> int:
    """How many monomials there are."""
    return sum(math.comb(n + degree - 1, degree) for degree in degrees(order))


def monomials(n: int, degree: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Those of one degree, filled up with n, and the roots of how often they occur."""
    index = np.array(list(combinations_with_replacement(range(n), degree)))
    counts = (np.unique(row, return_counts=True)[1].tolist() for row in index)
    often = [math.factorial(degree) / math.prod(map(math.factorial, count)) for count in counts]
    return np.pad(index, ((0, 0), (0, width - degree)), constant_values=n), np.sqrt(often)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Z whose entries are products, and nonnegative: a `Cone`. Its dual: S whose `products` are nonnegative."""

    moments: Moments
    z: np.ndarray
    slack: np.ndarray  # `p z - B z`, orthogonal to z

    def project(self, Y):
        return self.moments.consistent(np.maximum(self.moments.products(Y), 0))

    def first_dual(self, B):
        """With z for an eigenvector of `B + S`, but for what it takes to be in the dual cone."""
        S = np.outer(self.slack, self.z)
        return self.in_dual(S + S.T)

    def in_dual(self, S: np.ndarray) -> np.ndarray:
        return S - self.moments.consistent(np.minimum(self.moments.products(S), 0))

    def bound(self, B, S):
        """Sums over one product have as many terms as it can be split in two; their rounding may leave a product that
        far below 0."""
        N, splits = B + self.in_dual(S), math.comb(2 * self.moments.index.shape[1], self.moments.index.shape[1])
        return largest_eigenvalue((N + N.T) / 2) + EPS * splits * float(np.linalg.norm(S) + np.linalg.norm(B))


def symmetrised(P: np.ndarray) -> np.ndarray:
    """The mean over all orders of the modes, mode after mode: `<P, u^d>` is the same."""
    P = P.astype(np.float64)
    for mode in range(1, P.ndim):
        P = (P + sum(P.swapaxes(earlier, mode) for earlier in range(mode))) / (mode + 1)
    return np.ascontiguousarray(P)


def contract(P: np.ndarray, V: np.ndarray, times: int) -> np.ndarray:
    """P with so many of its last modes contracted with each column of V, (rest, count)."""
    n, count = V.shape
    found = P.reshape(-1, n) @ V
    for _ in range(times - 1):
        found = np.einsum("ijk,jk->ik", found.reshape(-1, n, count), V)
    return found


def shift_of(P: np.ndarray, B: np.ndarray | None) -> float:
    """At least `(d - 1)` times what eigenvalues of `P u^(d - 2)`, of unit vectors u, are below 0: from those of P as a
    square matrix, where it is one, else from its norm as a matrix."""
    if B is not None and P.ndim % 2 == 0:
        return (P.ndim - 1) * max(-float(np.linalg.eigvalsh(B)[0]), 0.0)
    return (P.ndim - 1) * math.sqrt(max(float(np.linalg.eigvalsh(np.tensordot(P, P, P.ndim - 1))[-1]), 0.0))


def starts(P: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Leading eigenvectors of P contracted to a matrix with random vectors, of which those of parts in general position
    are made (Leurgans, Ross and Abel 1993), both signs; and sparse random vectors."""
    n = P.shape[0]
    found = []
    for g in rng.uniform(size=(SLICES, n)):
        M = P if P.ndim == 2 else contract(P, g[:, None], P.ndim - 2).reshape(n, n)
        V = np.linalg.eigh((M + M.T) / 2)[1]
        found += [V[:, -VECTORS:], -V[:, -VECTORS:]]
    drawn = rng.uniform(size=(n, DRAWN)) * (rng.uniform(size=(n, DRAWN)) < 0.2)
    return np.concatenate([*found, drawn], axis=1)
