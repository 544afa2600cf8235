"""The two rank-one problems, each with its points and its bounds.

`Pair`: max u' P v; `Single`: max u' P u for symmetric P; over nonnegative unit vectors. Points may be those of tensors,
with one vector for each mode; bounds are for matrices. Both know a closed-form dual from the conditions of Karush, Kuhn
and Tucker: at a stationary point with value p, `a = p u - P v >= 0` and `b = p v - P' u >= 0` vanish on the supports,
so `N = P + a v' + u b' >= P` has (u, v) for a singular pair with value p. Where no other singular value exceeds it,
`|N|_2 = p` proves that nothing is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, svd

from . import doubly_nonnegative, nuclear
from .bounds import complementary, largest_eigenvalue, largest_singular_value
from .matrices import Array, Target
from .power import PAIRS, Vectors, ascend, climb, leading


class Point(NamedTuple):
    vectors: tuple[np.ndarray, ...]  # one for each mode
    value: float

    @classmethod
    def near(cls, P: Target, vectors: Vectors, shift: float | None) -> Point:
        """After one step of the power method from the first column."""
        found, values = ascend(P, vectors, shift)
        return cls(tuple(V[:, 0] for V in found), float(values[0]))


# told a bound, and maybe where a better point may lie; whether to stop
Enough = Callable[..., bool]


@dataclass(frozen=True)
class Pair:
    """`max u' P v` of any P with a positive entry."""

    shift: float | None = None

    @classmethod
    def of(cls, P: Target, rng: np.random.RandomState) -> Pair:
        return cls()

    def on_support(self, P: Array, point: Point) -> np.ndarray:
        """The leading right singular vector of P where u and v are positive; 0 elsewhere."""
        rows, columns = (x > 0 for x in point.vectors)
        v = np.zeros_like(point.vectors[1])
        v[columns] = svd(P.entries[np.ix_(rows, columns)], full_matrices=False, check_finite=False)[2][0]
        return v if v.sum() > 0 else -v

    def closed_form(self, P: Array, point: Point, enough: Enough) -> float:
        return largest_singular_value(dual(P, point))

    def nuclear(self, P: Array, point: Point, enough: Enough) -> float:
        return nuclear.norm_bound(P.entries, point.vectors, point.value, slack(P, point), enough)

    def doubly_nonnegative(self, P: Array, point: Point, enough: Enough) -> float:
        z, missing = (np.concatenate(pair) / np.sqrt(2) for pair in (point.vectors, slack(P, point)))

        def tell(bound, direction):
            return enough(bound, direction[P.shape[0] :])

        return doubly_nonnegative.eigenvalue_bound(self.square(P), z, missing, point.value, tell)

    @staticmethod
    def square(P: Array) -> np.ndarray:
        """B with `z' B z = u' P v` for `z = (u, v) / sqrt 2`. Its largest value is that of P where that is positive."""
        return embedded(P.entries)

    def bounds(self, shape: tuple[int, ...]) -> list[tuple[str, Callable[[Array, Point, Enough], float]]]:
        """Those that may be computed at this size, cheapest first."""
        smaller = min(shape) <= nuclear.SIDE
        stages: list = [("closed form", self.closed_form), ("nuclear", self.nuclear)] if smaller else []
        if sum(shape) <= doubly_nonnegative.SIDE:
            stages.append(("doubly nonnegative", self.doubly_nonnegative))
        return stages


@dataclass(frozen=True)
class Single:
    """`max u' P u` of a symmetric P; `shift` makes P positive semidefinite, and steps on a tensor monotone."""

    shift: float

    @classmethod
    def of(cls, P: Target, rng: np.random.RandomState) -> Single:
        if isinstance(P, Array):
            lowest = np.linalg.eigvalsh(P.entries)[0]
            return cls(max(-float(lowest), 0.0))
        vectors = leading(P, min(PAIRS, P.shape[0]), rng)
        if len(vectors) > 2:
            largest = np.linalg.norm(P.contract(vectors, 0), axis=0).max()  # about max |P(u, ..., u)|, of any signs
            return cls(1.1 * (len(vectors) - 1) * float(largest))
        found = np.linalg.eigvalsh(vectors[1].T @ P.contract(vectors, 0))
        # an eigenvalue that was not found is at most as large as the smallest that was
        return cls(1.1 * max(-float(found.min()), float(np.abs(found).min())))

    def on_support(self, P: Array, point: Point) -> np.ndarray:
        columns = point.vectors[0] > 0
        v = np.zeros_like(point.vectors[1])
        v[columns] = eigh(P.entries[np.ix_(columns, columns)], check_finite=False)[1][:, -1]
        return v if v.sum() > 0 else -v

    def closed_form(self, P: Array, point: Point, enough: Enough) -> float:
        return largest_eigenvalue(dual(P, point))

    def doubly_nonnegative(self, P: Array, point: Point, enough: Enough) -> float:
        u, scale = point.vectors[0], max(abs(point.value), float(np.linalg.norm(P.entries)) / len(P.entries))
        return doubly_nonnegative.eigenvalue_bound(P.entries, u, slack(P, point)[0], scale, enough)

    @staticmethod
    def square(P: Array) -> np.ndarray:
        return P.entries

    def bounds(self, shape: tuple[int, ...]) -> list[tuple[str, Callable[[Array, Point, Enough], float]]]:
        if shape[0] > doubly_nonnegative.SIDE:
            return []
        return [("closed form", self.closed_form), ("doubly nonnegative", self.doubly_nonnegative)]


def slack(P: Array, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """`p u - P v` and `p v - P' u`, which are at least 0 at a stationary point, and 0 on the supports."""
    (u, v), value = point
    return tuple(np.maximum(value * x - P.times(y, mode), 0) * (x == 0) for x, y, mode in ((u, v, 0), (v, u, 1)))


def dual(P: Array, point: Point) -> np.ndarray:
    """The closed form: `N = P + a v' + u b'`."""
    return P.entries + complementary(np.zeros(P.shape), point.vectors, slack(P, point))


def embedded(P: np.ndarray) -> np.ndarray:
    """`[[0, P], [P', 0]]`."""
    m, n = P.shape
    B = np.zeros((m + n, m + n))
    B[:m, m:], B[m:, :m] = P, P.T
    return B


def settle(P: Target, form: Pair | Single, vectors: Vectors) -> Point:
    """The best point nearby: where the entries of P are known, the power method is finished by one decomposition."""
    point = Point.near(P, vectors, form.shift)
    if isinstance(P, Array):
        v = form.on_support(P, point)[:, None]
        other = Point.near(P, climb(P, (v, v), form.shift), form.shift)
        if other.value >= point.value:
            return other
    return point
