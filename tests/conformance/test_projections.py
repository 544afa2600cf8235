"""Every projection against an oracle that shares no code with it.

The nearest point is found by going through all supports, blocks or assignments, with the few values that each allows,
or by a general optimiser; and every set has its own test of membership here. A new structure is tested by one line in
`CASES` (or, where its projection is an approximation, in `COMPOSITES`).
"""

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pytest
from scipy.linalg import polar
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from partwise import structures as s

SIZE = 5  # entries of a vector that is small enough to go through all supports
MANY = 180  # vectors of a case, each compared on its own
FACTORS = 39  # of a case whose vectors depend on each other, of each kind of inputs three
TIED = (5, 3)  # of a factor whose components depend on each other
NEAR = 1e-9  # of a squared distance, the square of the vector being 1
STEP = 0.7
SHAPES = {"item": (MANY, SIZE), "component": (SIZE, MANY), "all": TIED}
LAST_PLACE = 64  # units in the last place by which a sum of a few numbers may be off


@dataclass(frozen=True)
class Case:
    """`off(A)`: how far each vector is outside the set; `best(A, step)`: the least `|B - A|^2 / 2 + step g(B)` of each;
    `cost(A)`: g of each. What a vector is, `per` says: an item, a component, all of the factor."""

    structure: s.Structure
    off: Callable
    best: Callable | None = None
    per: str = "item"
    cost: Callable | None = None

    @property
    def shape(self):
        return SHAPES[self.per]

    @property
    def bound(self):
        return self.structure.bind(self.shape, False, "W")

    def objective(self, B, A, step):
        """`|B - A|^2 / 2 + step g(B)` of each vector."""
        value = np.square(turned(B, self.per) - turned(A, self.per)).sum(axis=1) / 2
        return value + step * self.cost(B) if self.cost else value

    def scale(self, A):
        """Of the squares of each vector."""
        return 1 + np.square(turned(A, self.per)).sum(axis=1)


def turned(A, per):
    """The vectors of a tall factor as rows, in double precision."""
    A = np.asarray(A, dtype=np.float64)
    return {"item": A, "component": A.T, "all": A.reshape(1, -1)}[per]


def inputs(shape, seed=0):
    """Rows with everything that is awkward: ties, zeros, nothing positive, all equal, whole numbers, large offsets."""
    rng = np.random.default_rng(seed)
    kinds = (
        lambda: rng.normal(size=shape[1]),
        lambda: rng.normal(size=shape[1], scale=0.2) + 0.3,
        lambda: rng.integers(-2, 3, size=shape[1]),
        lambda: rng.integers(0, 2, size=shape[1]),
        lambda: rng.integers(-1, 2, size=shape[1]) / 2,
        lambda: np.zeros(shape[1]),
        lambda: np.full(shape[1], rng.integers(-2, 3) / 3),
        lambda: -rng.uniform(size=shape[1]),
        lambda: -rng.integers(0, 3, size=shape[1]),
        lambda: 1e-3 * rng.normal(size=shape[1]),
        lambda: 50 * rng.normal(size=shape[1]),
        lambda: 1e4 + rng.normal(size=shape[1]),
        lambda: 10.0 ** rng.uniform(-8, 8, size=shape[1]) * rng.integers(-1, 2, size=shape[1]),
    )
    return np.array([kinds[i % len(kinds)]() for i in range(shape[0])], dtype=np.float64)


def samples(case, seed=0):
    """One factor of many vectors, or many factors that are one vector each."""
    if case.per == "all":
        count = FACTORS if case.best else FACTORS // 3  # turns of projections take their time
        return [row.reshape(TIED) for row in inputs((count, TIED[0] * TIED[1]), seed)] + [inputs(TIED, seed)]
    A = inputs((MANY, SIZE), seed)
    return [A if case.per == "item" else np.ascontiguousarray(A.T)]


# -- values that a vector may have on a support: the best of them, and how far others are outside ------


@dataclass(frozen=True, eq=False)
class Entries:
    """`l1 |x| + l2 / 2 x^2` for each entry x between bounds (numbers, or one for each entry), or at one of them."""

    low: float | np.ndarray = -np.inf
    high: float | np.ndarray = np.inf
    l1: float = 0.0
    l2: float = 0.0
    binary: bool = False

    def fit(self, V, mask, step):
        """At a bound, at 0, or where one branch of the parabola is least."""
        low, high = (np.broadcast_to(b, V.shape) for b in (self.low, self.high))
        branches = [(V - side * step * self.l1) / (1 + step * self.l2) for side in (1, -1)]
        points = [low, high] if self.binary else [low, high, np.zeros_like(V), *branches]
        with np.errstate(invalid="ignore"):
            values = [
                np.where(np.isfinite(x) & (low <= x) & (x <= high), self.entry_cost(x, V, step), np.inf) for x in points
            ]
        zero = np.where((low <= 0) & (high >= 0), V**2 / 2, np.inf)
        return np.where(mask, np.min(values, axis=0), zero).sum(axis=1)

    def entry_cost(self, x, V, step):
        return (x - V) ** 2 / 2 + step * (self.l1 * np.abs(x) + self.l2 / 2 * x**2)

    def cost(self, V):
        return (self.l1 * np.abs(V) + self.l2 / 2 * V**2).sum(axis=1)

    def off(self, V):
        if self.binary:
            return np.minimum(np.abs(V - self.low), np.abs(V - self.high)).max(axis=1)
        return np.maximum(np.maximum(self.low - V, V - self.high), 0).max(axis=1)


@dataclass(frozen=True, eq=False)
class Equal(Entries):
    """k entries of the same value, or none."""

    k: int = 1

    def fit(self, V, mask, step):
        zero = np.square(V).sum(axis=1) / 2
        if mask.sum() != self.k:
            return zero
        mean = V[:, mask].mean(axis=1)
        points = [np.full_like(mean, b) for b in (self.low, self.high) if np.isfinite(b)]
        if not self.binary:
            points += [(mean - side * step * self.l1) / (1 + step * self.l2) for side in (1, -1)]
        values = [zero]
        for t in points:
            value = np.square(V - mask * t[:, None]).sum(axis=1) / 2
            value += self.k * step * (self.l1 * np.abs(t) + self.l2 / 2 * t**2)
            values.append(np.where((t >= self.low) & (t <= self.high), value, np.inf))
        return np.min(values, axis=0)

    def off(self, V):
        by_size = np.take_along_axis(V, np.argsort(-np.abs(V), axis=1), axis=1)
        spread = np.ptp(by_size[:, : self.k], axis=1)
        others = np.abs(by_size[:, self.k :]).max(axis=1, initial=0)
        return np.max([spread, others, super().off(V)], axis=0)


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of a list of vectors: with as many nonzeros of a given value as `k` says, nothing else being possible."""

    k: int
    values: tuple[float, ...]

    def fit(self, V, mask, step):
        if mask.sum() != self.k:
            return np.full(len(V), np.inf)
        return np.min([np.square(V - value * mask).sum(axis=1) / 2 for value in self.values], axis=0)

    def off(self, V):
        """From the k largest entries at one of the values, and zeros."""
        places = np.argsort(np.argsort(-np.abs(V), axis=1, kind="stable"), axis=1) < self.k
        return np.min([np.abs(V - value * places).max(axis=1) for value in self.values], axis=0)


@dataclass(frozen=True, eq=False)
class Unit:
    """`|x| = 1`; the largest `<x, v>` says how near."""

    nonnegative: bool = False

    def fit(self, V, mask, step):
        if not mask.any():
            return np.full(len(V), np.inf)
        part = V[:, mask]
        along = np.linalg.norm(part, axis=1)
        if self.nonnegative:
            along = np.linalg.norm(np.maximum(part, 0), axis=1)
            along = np.where(along > 0, along, part.max(axis=1))
        return (np.square(V).sum(axis=1) + 1) / 2 - along

    def off(self, V):
        negative = np.maximum(-V, 0).max(axis=1) if self.nonnegative else 0.0
        return np.maximum(np.abs(np.linalg.norm(V, axis=1) - 1), negative)


@dataclass(frozen=True, eq=False)
class Sum:
    """`sum x = 1` between bounds: some entries at the lower, some at the upper, the others shifted by one number."""

    low: float | np.ndarray = 0.0
    high: float | np.ndarray = np.inf

    def fit(self, V, mask, step):
        low, high = (np.where(mask, b, 0.0) for b in np.broadcast_arrays(self.low, self.high, V)[:2])
        best = np.full(len(V), np.inf)
        places = [("low", "free", "high") if inside else ("low",) for inside in mask]
        if np.isinf(self.high).all():
            places = [states[:2] for states in places]
        with np.errstate(invalid="ignore"):
            for states in itertools.product(*places):
                at = np.array(states)
                x = np.where(at == "high", high, low)
                free = at == "free"
                if free.any():
                    missing = 1 - x[:, ~free].sum(axis=1) - V[:, free].sum(axis=1)
                    x[:, free] = V[:, free] + missing[:, None] / free.sum()
                met = (np.abs(x.sum(axis=1) - 1) < 1e-9) & np.all((x >= low - 1e-11) & (x <= high + 1e-11), axis=1)
                best = np.minimum(best, np.where(met, np.square(x - V).sum(axis=1) / 2, np.inf))
        return best

    def off(self, V):
        outside = np.maximum(np.maximum(self.low - V, V - self.high), 0).max(axis=1)
        return np.maximum(outside, np.abs(V.sum(axis=1) - 1))


@dataclass(frozen=True, eq=False)
class Ratio:
    """`|x|_1 = ratio |x|_2`, x >= 0, of Hoyer's sparsity; on every support a direction is best among all signs."""

    sparsity: float

    def ratio(self, n):
        return np.sqrt(n) - self.sparsity * (np.sqrt(n) - 1)

    def fit(self, V, mask, step):
        r, along = self.ratio(V.shape[1]), np.zeros(len(V))
        for support in itertools.product(*((False, True) if inside else (False,) for inside in mask)):
            part = V[:, np.array(support)]
            n = part.shape[1]
            if n < r**2 - 1e-9:
                continue
            around = part - part.mean(axis=1, keepdims=True)
            around -= around.mean(axis=1, keepdims=True)  # again, for what rounding left of a large offset
            spread = np.linalg.norm(around, axis=1, keepdims=True)
            flat = spread[:, 0] <= 1e-13 * np.abs(part).max(axis=1)
            along = np.where(flat, np.maximum(along, r * part.mean(axis=1)), along)
            for side in (1, -1):
                u = r / n + side * np.sqrt(max(1 - r**2 / n, 0)) * around / np.where(spread > 0, spread, 1)
                met = ~flat & np.all(u >= -1e-12, axis=1)
                along = np.where(met, np.maximum(along, (u * part).sum(axis=1)), along)
        return (np.square(V).sum(axis=1) - along**2) / 2

    def off(self, V):
        ratio = np.abs(V.sum(axis=1) / self.ratio(V.shape[1]) - np.linalg.norm(V, axis=1))
        return np.maximum(ratio, np.maximum(-V, 0).max(axis=1))


@dataclass(frozen=True, eq=False)
class SizedRatio(Ratio):
    """The same with norm 1, or sum 1: the largest `<x, v>` is nearest."""

    by_sum: bool = False

    def norm(self, n):
        return 1 / self.ratio(n) if self.by_sum else 1.0

    def fit(self, V, mask, step):
        shift = 1 + np.abs(V).max(axis=1, keepdims=True)  # adds the same to all `<x, v>`, and makes them positive
        part = mask * (V + shift)
        r = self.ratio(V.shape[1])
        along = (
            np.sqrt(np.maximum(np.square(part).sum(axis=1) - 2 * super().fit(part, mask, step), 0)) - r * shift[:, 0]
        )
        norm = self.norm(V.shape[1])
        return (np.square(V).sum(axis=1) + norm**2) / 2 - norm * along

    def off(self, V):
        return np.maximum(super().off(V), np.abs(np.linalg.norm(V, axis=1) - self.norm(V.shape[1])))


@dataclass(frozen=True, eq=False)
class Rising:
    """Of all ways to cut a vector into blocks with one value each, clipped, the best that rises."""

    low: float = -np.inf
    high: float = np.inf
    decreasing: bool = False

    def fit(self, V, mask, step):
        return self.rising(-V if self.decreasing else V)

    def rising(self, V):
        low, high = (-self.high, -self.low) if self.decreasing else (self.low, self.high)
        n, best = V.shape[1], np.full(len(V), np.inf)
        for cuts in itertools.product((False, True), repeat=max(n - 1, 0)):
            block = np.cumsum([0, *cuts])[:n]
            means = np.stack([V[:, block == b].mean(axis=1) for b in range(block.max(initial=-1) + 1)] or [V[:, 0]])
            x = np.clip(means, low, high)[block].T
            met = np.all(np.diff(x, axis=1) >= 0, axis=1)
            best = np.minimum(best, np.where(met, np.square(x - V).sum(axis=1) / 2, np.inf))
        return best

    def off(self, V):
        falls = np.maximum(np.diff(V, axis=1) if self.decreasing else -np.diff(V, axis=1), 0)
        return np.maximum(falls.max(axis=1, initial=0), Entries(self.low, self.high).off(V))


class OnePeak(Rising):
    """A rise and a fall, cut at every place."""

    def fit(self, V, mask, step):
        n, zero = V.shape[1], np.zeros(len(V))
        splits = range(n + 1)
        return np.min(
            [
                (self.rising(V[:, :k]) if k else zero) + (self.rising(V[:, k:][:, ::-1]) if k < n else zero)
                for k in splits
            ],
            axis=0,
        )

    def off(self, V):
        change, n = np.diff(V, axis=1), V.shape[1]
        before = np.arange(n - 1) < np.arange(n)[:, None]  # the changes before each peak
        wrong = np.maximum(np.where(before, -change[:, None], change[:, None]), 0).max(axis=2, initial=0).min(axis=1)
        return np.maximum(wrong, Entries(self.low, self.high).off(V))


@dataclass(frozen=True, eq=False)
class Smoothness:
    weight: float

    def fit(self, V, mask, step):
        """By a dense system."""
        D = np.diff(np.eye(V.shape[1]), axis=0)
        B = np.linalg.solve(np.eye(V.shape[1]) + step * self.weight * D.T @ D, V.T).T
        return np.square(B - V).sum(axis=1) / 2 + step * self.cost(B)

    def cost(self, V):
        return self.weight / 2 * np.square(V[:, 1:] - V[:, :-1]).sum(axis=1)

    def off(self, V):
        return np.zeros(len(V))


def supports(n, limits):
    """All supports with at most so many nonzeros among given places, None for all of them."""
    if not limits:
        return [np.ones(n, dtype=bool)]
    limits = [(range(n) if places is None else places, count) for places, count in limits]
    masks = (np.array(mask) for mask in itertools.product((False, True), repeat=n))
    return [mask for mask in masks if all(mask[list(places)].sum() <= count for places, count in limits)]


def vectors(structure, rule, *limits, per="item"):
    """A case of vectors, each on its own: its values follow a rule, and groups of places have limits."""
    if isinstance(rule, Equal):
        limits = (*limits, (None, rule.k))

    def off(A):
        V, worst = turned(A, per), [rule.off(turned(A, per))]
        for places, count in limits:
            sizes = np.sort(np.abs(V if places is None else V[:, list(places)]), axis=1)[:, ::-1]
            worst.append(sizes[:, count:].max(axis=1, initial=0))
        return np.max(worst, axis=0)

    def best(A, step):
        V = turned(A, per)
        return np.min([rule.fit(V, mask, step) for mask in supports(V.shape[1], limits)], axis=0)

    cost = getattr(rule, "cost", None)
    return Case(structure, off, best, per, cost and (lambda A: cost(turned(A, per))))


# -- structures that tie components to each other ------------------------------------------------------


def apart_off(component):
    """The largest inner product with this component, the lengths being 1 or shorter."""

    def off(A):
        others = np.delete(A, component, axis=1)
        return np.abs(A[:, component] @ others).max(initial=0, keepdims=True) / max(np.abs(A).max(), 1)

    return off


def apart_best(component, nonzeros=None):
    """Nonnegative: whatever items go to this component, the others go to the other components."""

    def best(A, step):
        own, others = A[:, component], np.delete(A, component, axis=1)
        values = []
        for mine in map(np.array, itertools.product((False, True), repeat=len(A))):
            if nonzeros is None or mine.sum() <= nonzeros:
                kept = np.square(np.maximum(own[mine], 0)).sum() + np.square(np.maximum(others[~mine], 0)).sum()
                values.append((np.square(A).sum() - kept) / 2)
        return np.array([min(values)])

    return best


def direction_best(component):
    """Signed: along a direction u of the component `(u'own)^2 - |others' u|^2` is gained, an eigenvalue at most."""

    def best(A, step):
        own, others = A[:, [component]], np.delete(A, component, axis=1)
        most = np.linalg.eigvalsh(own @ own.T - others @ others.T)[-1]
        return np.array([np.square(own).sum() - max(most, 0)]) / 2

    return best


def nonnegative_off(A):
    return np.maximum(-A, 0).max(initial=0, keepdims=True).reshape(1)


def nonzeros_off(component, count):
    return lambda A: np.sort(np.abs(A[:, component]))[::-1][count:].max(initial=0, keepdims=True)


def orthonormal_off(A):
    return np.abs(A.T @ A - np.eye(A.shape[1])).max(keepdims=True).reshape(1)


def orthonormal_best(A, step):
    """`|A|^2 + |B|^2 - 2 <A, B>`, and the largest `<A, B>` is the sum of the singular values."""
    return np.array([np.square(A).sum() + A.shape[1] - 2 * np.linalg.svd(A, compute_uv=False).sum()]) / 2


def worst(*offs):
    """All of them for the whole factor."""
    return lambda A: np.array([max(np.max(off(A)) for off in offs)])


def budgeted(structure, sparsity, groups=None, weights=None, most=None):
    """A case of `GroupSparsity`, with at most so many nonzeros in a component; one sparsity for each group."""

    def parts(A):
        """Of each group: its components, their norms, what they add up to."""
        n, rank = A.shape
        for members, its_sparsity in zip(groups or [range(rank)], sparsity, strict=True):
            norms = np.ones(len(members)) if weights is None else np.array(weights)[list(members)]
            yield A[:, list(members)], norms, norms.sum() * (np.sqrt(n) - its_sparsity * (np.sqrt(n) - 1))

    def off(A):
        outside = [nonnegative_off(A)[0], np.sort(np.abs(A), axis=0)[::-1][most or len(A) :].max(initial=0)]
        for part, norms, total in parts(A):
            outside += [np.abs(np.linalg.norm(part, axis=0) / norms - 1).max(), abs(part.sum() / total - 1)]
        return np.array([max(outside)])

    def best(A, step):
        along = sum(budget_bound(*part, most or len(A)) for part in parts(A))
        return np.array([np.square(A).sum() + sum(np.square(norms).sum() for _, norms, _ in parts(A))]) / 2 - along

    return Case(structure, off, best, "all")


def budget_bound(part, norms, total, most):
    """No `<B, part>` is larger. Whatever mu is, `<B, part> = mu total + sum_k <b_k, a_k - mu>`, and each of these is at
    most what the best vector of its norm has, on the best support: so the least of these bounds over mu is one, and a
    point of the set that reaches it is nearest. They are convex in mu; for flat components the least is at -inf."""
    places = np.array(list(itertools.combinations(range(len(part)), most)))
    if total >= norms.sum() * np.sqrt(most) * (1 - 1e-12):
        return np.sqrt(most) * norms @ part[places].mean(axis=1).max(axis=0)

    def bounds(mu):
        V = part[places] - mu[:, None, None, None]
        along = np.sqrt(np.square(np.maximum(V, 0)).sum(axis=2)).max(axis=1)
        return mu * total + np.where(along > 0, along, V.max(axis=(1, 2))) @ norms

    low, high = part.min() - 100 * np.ptp(part), part.max()
    for _ in range(6):
        mu = np.linspace(low, high, 201)
        place = np.argmin(bounds(mu))
        low, high = mu[max(place - 1, 0)], mu[min(place + 1, 200)]
    return bounds(mu).min()


def pieces(structure, parts):
    """A case of `Columns`: `parts` gives the case of every group of components."""

    def each(function, A, *arguments):
        return np.array([sum(getattr(case, function)(A[:, columns], *arguments).sum() for columns, case in parts)])

    return Case(
        structure,
        worst(*(lambda A, columns=columns, case=case: case.off(A[:, columns]) for columns, case in parts)),
        lambda A, step: each("best", A, step),
        "all",
    )


# -- the table: name -> (structure, predicate, oracle) -------------------------------------------------

RNG = np.random.default_rng(3)
LOW, HIGH = np.sort(RNG.integers(-3, 4, size=(2, MANY, SIZE)) / 2, axis=0)
LOW = np.minimum(LOW, 0)
HIGH = np.maximum(HIGH, 0)
HELD = np.where(RNG.uniform(size=(MANY, SIZE)) < 0.4, RNG.integers(0, 2, size=(MANY, SIZE)) / 4, np.nan)
HELD[:, -1] = np.nan
HELD_LOW, HELD_HIGH = np.nan_to_num(HELD, nan=-np.inf), np.nan_to_num(HELD, nan=np.inf)
ONE_HELD = np.where(np.arange(SIZE) == RNG.integers(0, SIZE, size=(MANY, 1)), 0.7, np.nan)
PAIRS = (((0, 1), 1), ((2, 3, 4), 2))
APART = (((4, 0), 1), ((2, 1), 1))
N, P = s.NonNegative(), s.Pattern([2, 3], [1, 2])
RATIO_OF_TWO = (np.sqrt(SIZE) - np.sqrt(2)) / (np.sqrt(SIZE) - 1)  # the sparsity of two equal nonzeros


def both(name, make, *arguments):
    """The case per item and per component."""
    return {f"{name} per {per}": make(per, *arguments) for per in ("item", "component")}


CASES = {
    "free": vectors(s.Free(), Entries()),
    "nonnegative": vectors(N, Entries(0)),
    "box": vectors(s.Box(-0.3, 0.8), Entries(-0.3, 0.8)),
    "box arrays": vectors(s.Box(LOW, HIGH), Entries(LOW, HIGH)),
    "fixed partly": vectors(s.Fixed(HELD), Entries(HELD_LOW, HELD_HIGH)),
    "binary": vectors(s.Binary(), Entries(0, 1, binary=True)),
    "binary & elastic": vectors(s.Binary() & s.Elastic(0.3, 0.4), Entries(0, 1, 0.3, 0.4, binary=True)),
    "elastic": vectors(s.Elastic(0.3, 0.5), Entries(l1=0.3, l2=0.5)),
    "box & elastic": vectors(s.Box(0.1, 0.8) & s.Elastic(0.3, 0.5), Entries(0.1, 0.8, 0.3, 0.5)),
    # how many nonzeros
    **both("sparse", lambda per: vectors(s.Sparse(2, per=per), Entries(), (None, 2), per=per)),
    **both("nonnegative & sparse", lambda per: vectors(N & s.Sparse(2, per=per), Entries(0), (None, 2), per=per)),
    **both(
        "box & sparse", lambda per: vectors(s.Box(-0.4, 1) & s.Sparse(2, per), Entries(-0.4, 1), (None, 2), per=per)
    ),
    **both(
        "elastic & sparse",
        lambda per: vectors(s.Elastic(0.3, 0.5) & s.Sparse(3, per), Entries(l1=0.3, l2=0.5), (None, 3), per=per),
    ),
    "l1 & sparse & nonnegative": vectors(s.L1(0.2) & s.Sparse(2) & N, Entries(0, l1=0.2), (None, 2)),
    "box arrays & sparse": vectors(s.Box(LOW, HIGH) & s.Sparse(2), Entries(LOW, HIGH), (None, 2)),
    "held entries & sparse": vectors(
        s.Fixed(ONE_HELD) & s.Sparse(2),
        Entries(np.nan_to_num(ONE_HELD, nan=-np.inf), np.nan_to_num(ONE_HELD, nan=np.inf)),
        (None, 2),
    ),
    "binary & sparse": vectors(s.Binary() & s.Sparse(2), Entries(0, 1, binary=True), (None, 2)),
    "binary & l1 & sparse": vectors(
        s.Binary() & s.L1(0.3) & s.Sparse(2), Entries(0, 1, l1=0.3, binary=True), (None, 2)
    ),
    "sparse & sparser": vectors(s.Sparse(4) & s.Sparse(1), Entries(), (None, 1)),
    "pattern": vectors(P, Entries(), *PAIRS),
    "pattern of lists": vectors(s.Pattern([[4, 0], [2, 1]]), Entries(), *APART),
    "pattern of labels": vectors(s.Pattern(labels=list("aabbb"), nonzeros=[1, 2]), Entries(), *PAIRS),
    "pattern & nonnegative": vectors(P & N, Entries(0), *PAIRS),
    "pattern & box arrays": vectors(P & s.Box(LOW, HIGH), Entries(LOW, HIGH), *PAIRS),
    "pattern & elastic": vectors(P & s.Elastic(0.2, 0.1), Entries(l1=0.2, l2=0.1), *PAIRS),
    "pattern & sparse": vectors(P & s.Sparse(2), Entries(), *PAIRS, (None, 2)),
    "pattern of lists & sparse & nonnegative": vectors(
        s.Pattern([[4, 0], [2, 1]]) & s.Sparse(2) & N, Entries(0), *APART, (None, 2)
    ),
    "pattern & binary & sparse": vectors(P & s.Binary() & s.Sparse(2), Entries(0, 1, binary=True), *PAIRS, (None, 2)),
    # equal nonzeros
    **both("equal nonzeros", lambda per: vectors(s.EqualNonzeros(2, per), Equal(k=2), per=per)),
    **both("nonnegative & equal nonzeros", lambda per: vectors(N & s.EqualNonzeros(3, per), Equal(0, k=3), per=per)),
    "equal nonzeros & box": vectors(s.EqualNonzeros(2) & s.Box(-1, 0.4), Equal(-1, 0.4, k=2)),
    "equal nonzeros & nonpositive": vectors(s.EqualNonzeros(2) & s.Box(upper=0), Equal(high=0, k=2)),
    "equal nonzeros & elastic": vectors(s.EqualNonzeros(2) & s.Elastic(0.3, 0.2), Equal(l1=0.3, l2=0.2, k=2)),
    "equal nonzeros & l1 & box": vectors(s.EqualNonzeros(2) & s.L1(0.3) & s.Box(-1, 0.4), Equal(-1, 0.4, 0.3, k=2)),
    "equal nonzeros & binary": vectors(s.EqualNonzeros(2) & s.Binary(), Equal(0, 1, binary=True, k=2)),
    "equal nonzeros & binary & l1": vectors(
        s.EqualNonzeros(2) & s.Binary() & s.L1(0.2), Equal(0, 1, 0.2, binary=True, k=2)
    ),
    "equal nonzeros & pattern": vectors(s.EqualNonzeros(2) & P, Equal(k=2), *PAIRS),
    "equal nonzeros & pattern & nonnegative": vectors(N & P & s.EqualNonzeros(3), Equal(0, k=3), *PAIRS),
    "equal nonzeros & sparse": vectors(s.EqualNonzeros(2) & s.Sparse(3), Equal(k=2), (None, 3)),
    # norms
    **both("unit norm", lambda per: vectors(s.UnitNorm(per), Unit(), per=per)),
    **both("nonnegative & unit norm", lambda per: vectors(N & s.UnitNorm(per), Unit(True), per=per)),
    **both("unit norm & sparse", lambda per: vectors(s.UnitNorm(per) & s.Sparse(2, per), Unit(), (None, 2), per=per)),
    **both(
        "nonnegative & unit norm & sparse",
        lambda per: vectors(N & s.UnitNorm(per) & s.Sparse(2, per), Unit(True), (None, 2), per=per),
    ),
    "unit norm & pattern": vectors(s.UnitNorm("item") & P, Unit(), *PAIRS),
    "unit norm & pattern & sparse & nonnegative": vectors(
        s.UnitNorm("item") & P & s.Sparse(2) & N, Unit(True), *PAIRS, (None, 2)
    ),
    **both("simplex", lambda per: vectors(s.Simplex(per), Sum(), per=per)),
    **both("simplex & nonnegative", lambda per: vectors(s.Simplex(per) & N, Sum(), per=per)),
    **both("simplex & upper bound", lambda per: vectors(s.Simplex(per) & s.Box(-1, 0.4), Sum(0, 0.4), per=per)),
    **both("simplex & box", lambda per: vectors(s.Simplex(per) & s.Box(0.1, 0.5), Sum(0.1, 0.5), per=per)),
    "simplex & box that leaves a point": vectors(s.Simplex() & s.Box(upper=1 / SIZE), Sum(0, 1 / SIZE)),
    "simplex & box arrays": vectors(
        s.Simplex() & s.Box(LOW / 9 + 0.1, HIGH + 0.3), Sum(np.maximum(LOW / 9 + 0.1, 0), HIGH + 0.3)
    ),
    "simplex & held entries": vectors(s.Simplex() & s.Fixed(HELD), Sum(np.maximum(HELD_LOW, 0), HELD_HIGH)),
    **both("simplex & sparse", lambda per: vectors(s.Simplex(per) & s.Sparse(2, per), Sum(), (None, 2), per=per)),
    "simplex & pattern": vectors(s.Simplex() & P, Sum(), *PAIRS),
    "simplex & pattern & sparse": vectors(s.Simplex() & P & s.Sparse(2), Sum(), *PAIRS, (None, 2)),
    "simplex & sparse & upper bound": vectors(s.Simplex() & s.Sparse(3) & s.Box(0, 0.4), Sum(0, 0.4), (None, 3)),
    **both("hoyer", lambda per: vectors(s.Hoyer(0.5, per), Ratio(0.5), per=per)),
    **both("hoyer, hardly", lambda per: vectors(s.Hoyer(0.05, per), Ratio(0.05), per=per)),
    **both("hoyer, much", lambda per: vectors(s.Hoyer(0.9, per), Ratio(0.9), per=per)),
    "hoyer, flat": vectors(s.Hoyer(0, "item"), Ratio(0)),
    "hoyer, one nonzero": vectors(s.Hoyer(1, "item"), Ratio(1)),
    "hoyer & nonnegative": vectors(s.Hoyer(0.4) & N, Ratio(0.4), per="component"),
    **both("hoyer & sparse", lambda per: vectors(s.Hoyer(0.6, per) & s.Sparse(3, per), Ratio(0.6), (None, 3), per=per)),
    "hoyer & pattern": vectors(s.Hoyer(0.6, "item") & P, Ratio(0.6), *PAIRS),
    "hoyer & pattern & sparse": vectors(s.Hoyer(0.8, "item") & P & s.Sparse(2), Ratio(0.8), *PAIRS, (None, 2)),
    # values that two structures fix together
    **both("binary & unit norm", lambda per: vectors(s.Binary() & s.UnitNorm(per), OneOf(1, (1,)), (None, 1), per=per)),
    **both(
        "binary & unit norm & sparse",
        lambda per: vectors(s.Binary() & s.UnitNorm(per) & s.Sparse(2, per), OneOf(1, (1,)), (None, 1), per=per),
    ),
    "binary & unit norm & pattern": vectors(s.Binary() & s.UnitNorm("item") & P, OneOf(1, (1,)), (None, 1)),
    **both(
        "unit norm & simplex", lambda per: vectors(s.UnitNorm(per) & s.Simplex(per), OneOf(1, (1,)), (None, 1), per=per)
    ),
    **both(
        "equal nonzeros & unit norm",
        lambda per: vectors(
            s.EqualNonzeros(3, per) & s.UnitNorm(per), OneOf(3, (3**-0.5, -(3**-0.5))), (None, 3), per=per
        ),
    ),
    "equal nonzeros & unit norm & nonnegative & pattern": vectors(
        s.EqualNonzeros(2) & s.UnitNorm("item") & N & P, OneOf(2, (2**-0.5,)), *PAIRS, (None, 2)
    ),
    "equal nonzeros & simplex": vectors(s.EqualNonzeros(2) & s.Simplex(), OneOf(2, (0.5,)), (None, 2)),
    **both("hoyer & unit norm", lambda per: vectors(s.Hoyer(0.5, per) & s.UnitNorm(per), SizedRatio(0.5), per=per)),
    "hoyer & simplex & sparse": vectors(
        s.Hoyer(0.6, "item") & s.Simplex() & s.Sparse(3), SizedRatio(0.6, by_sum=True), (None, 3)
    ),
    # shapes
    "monotone": vectors(s.Monotone(), Rising(), per="component"),
    "monotone, falling": vectors(s.Monotone(decreasing=True), Rising(decreasing=True), per="component"),
    "monotone & nonnegative": vectors(s.Monotone() & N, Rising(0), per="component"),
    "monotone & box": vectors(s.Monotone(True) & s.Box(-0.2, 0.5), Rising(-0.2, 0.5, True), per="component"),
    "unimodal": vectors(s.Unimodal(), OnePeak(), per="component"),
    "unimodal & nonnegative": vectors(s.Unimodal() & N, OnePeak(0), per="component"),
    "unimodal & box": vectors(s.Unimodal() & s.Box(-0.2, 0.5), OnePeak(-0.2, 0.5), per="component"),
    "smooth": vectors(s.Smooth(0.8), Smoothness(0.8), per="component"),
    "smooth, much": vectors(s.Smooth(1e5), Smoothness(1e5), per="component"),
    # components that depend on each other
    "orthogonal": Case(s.Orthogonal(), orthonormal_off, orthonormal_best, "all"),
    "orthogonal to": Case(s.OrthogonalTo(1), apart_off(1), direction_best(1), "all"),
    "nonnegative & orthogonal to": Case(
        s.OrthogonalTo(2) & N, worst(apart_off(2), nonnegative_off), apart_best(2), "all"
    ),
    "nonnegative & orthogonal to & nonzeros": Case(
        N & s.OrthogonalTo(0, nonzeros=2),
        worst(apart_off(0), nonnegative_off, nonzeros_off(0, 2)),
        apart_best(0, 2),
        "all",
    ),
    "columns": pieces(
        s.Columns({1: s.Sparse(2, per="component"), (2,): N & s.UnitNorm()}),
        [
            ([0], vectors(s.Free(), Entries())),
            ([1], vectors(None, Entries(), (None, 2), per="component")),
            ([2], vectors(None, Unit(True), per="component")),
        ],
    ),
    "columns & nonnegative": pieces(
        s.Columns({(0, 2): s.Sparse(2, per="component"), 1: s.Monotone()}) & N,
        [
            ([0, 2], vectors(None, Entries(0), (None, 2), per="component")),
            ([1], vectors(None, Rising(0), per="component")),
        ],
    ),
    "columns & sparse & nonnegative": pieces(
        N & s.Sparse(3, per="component") & s.Columns({0: s.UnitNorm(), 2: s.Sparse(1, per="component")}),
        [
            ([0], vectors(None, Unit(True), (None, 3), per="component")),
            ([1], vectors(None, Entries(0), (None, 3), per="component")),
            ([2], vectors(None, Entries(0), (None, 1), per="component")),
        ],
    ),
    # groups of components that share a sum
    **{
        f"sparsity {value:g} of all": budgeted(s.GroupSparsity(sparsity=value), [value])
        for value in (0, 0.05, 0.5, 0.7, 1)
    },
    "sparsities of groups": budgeted(s.GroupSparsity([1, 2], [0.8, 0.4]), [0.8, 0.4], [[0], [1, 2]]),
    "sparsities of groups at both ends": budgeted(s.GroupSparsity([1, 2], [0, 1]), [0, 1], [[0], [1, 2]]),
    "sparsity of labels": budgeted(s.GroupSparsity(labels=list("aba"), sparsity=0.6), [0.6, 0.6], [[0, 2], [1]]),
    "sparsities of groups of one": budgeted(
        s.GroupSparsity([1, 1, 1], [0.2, 0.5, 0.9]), [0.2, 0.5, 0.9], [[0], [1], [2]]
    ),
    "sparsities of groups & weights": budgeted(
        s.GroupSparsity([[2, 0], [1]], [0.3, 0.7], weights=[2, 1, 0.1]), [0.3, 0.7], [[2, 0], [1]], [2, 1, 0.1]
    ),
    "nonnegative & sparsity": budgeted(N & s.GroupSparsity(sparsity=0.4), [0.4]),
    "sparsity & sparse": budgeted(s.GroupSparsity(sparsity=0.6) & s.Sparse(3, "component"), [0.6], most=3),
    "sparsity & as sparse as can be": budgeted(
        s.GroupSparsity(sparsity=RATIO_OF_TWO) & s.Sparse(2, "component"), [RATIO_OF_TWO], most=2
    ),
    "sparsities of groups & sparse & weights": budgeted(
        s.Sparse(2, "component") & s.GroupSparsity([1, 2], [0.9, 0.8], weights=[1, 2, 3]),
        [0.9, 0.8],
        [[0], [1, 2]],
        [1, 2, 3],
        most=2,
    ),
}


def as_whole(*cases):
    """Of several cases all tests of membership."""
    return worst(*(case.off for case in cases))


def rounded(A):
    return np.round(A)


# no closed form: a point of the set all the same
COMPOSITES = {
    "nonnegative & orthogonal": Case(N & s.Orthogonal(), worst(nonnegative_off, orthonormal_off), per="all"),
    "orthogonal to & nonzeros": Case(s.OrthogonalTo(1, nonzeros=2), worst(apart_off(1), nonzeros_off(1, 2)), per="all"),
    "nonnegative & orthogonal to, successive": Case(
        N & s.OrthogonalTo(1, nonzeros=2, method="successive"),
        worst(apart_off(1), nonnegative_off, nonzeros_off(1, 2)),
        per="all",
    ),
    "sparse items & sparse components": Case(
        s.Sparse(2) & s.Sparse(2, per="component"),
        as_whole(CASES["sparse per component"], vectors(None, Entries(), (None, 2))),
        per="all",
    ),
    "sparse items & unit components": Case(
        N & s.Sparse(2) & s.UnitNorm(),
        as_whole(CASES["nonnegative & unit norm per component"], CASES["nonnegative & sparse per item"]),
        per="all",
    ),
    "sparse items & simplex components": Case(
        s.Sparse(2) & s.Simplex("component"),
        as_whole(CASES["simplex per component"], vectors(None, Entries(), (None, 2))),
        per="all",
    ),
    "sparse items & hoyer components": Case(
        s.Sparse(2) & s.Hoyer(0.5),
        as_whole(CASES["hoyer per component"], vectors(None, Entries(), (None, 2))),
        per="all",
    ),
    "sparse items & sparsity": Case(
        s.Sparse(2) & s.GroupSparsity(sparsity=0.7),
        worst(budgeted(None, [0.7]).off, vectors(None, Entries(), (None, 2)).off),
        per="all",
    ),
    "sparse items & orthogonal": Case(
        s.Sparse(2) & s.Orthogonal(), worst(orthonormal_off, vectors(None, Entries(), (None, 2)).off), per="all"
    ),
    "sparse components & orthogonal": Case(
        s.Sparse(2, "component") & s.Orthogonal(), worst(orthonormal_off, CASES["sparse per component"].off), per="all"
    ),
    "sparse components & nonnegative & orthogonal": Case(
        N & s.Sparse(1, "component") & s.Orthogonal(),
        worst(orthonormal_off, CASES["nonnegative & sparse per component"].off),
        per="all",
    ),
    "sparse items & orthogonal to": Case(
        s.Sparse(2) & s.OrthogonalTo(1), worst(apart_off(1), vectors(None, Entries(), (None, 2)).off), per="all"
    ),
    "sparse items & unimodal": Case(
        s.Sparse(2) & s.Unimodal(), as_whole(CASES["unimodal"], vectors(None, Entries(), (None, 2))), per="all"
    ),
    "sparse components & unimodal & nonnegative": Case(
        s.Sparse(2, "component") & s.Unimodal() & N,
        as_whole(CASES["unimodal & nonnegative"], CASES["sparse per component"]),
        per="all",
    ),
    "sparse items & monotone": Case(
        s.Sparse(1) & s.Monotone(), as_whole(CASES["monotone"], vectors(None, Entries(), (None, 1))), per="all"
    ),
    "equal nonzeros of items & unit components": Case(
        s.EqualNonzeros(2) & s.UnitNorm(),
        as_whole(CASES["unit norm per component"], CASES["equal nonzeros per item"]),
        per="all",
    ),
    "simplex items & sparse components": Case(
        s.Simplex() & s.Sparse(2, "component"),
        as_whole(CASES["simplex per item"], CASES["sparse per component"]),
        per="all",
    ),
    "orthogonal to & hoyer": Case(
        s.OrthogonalTo(1) & s.Hoyer(0.9), worst(apart_off(1), vectors(None, Ratio(0.9), per="component").off), per="all"
    ),
    "monotone & unit norm": Case(
        s.Monotone() & s.UnitNorm(), as_whole(CASES["monotone"], CASES["unit norm per component"]), per="all"
    ),
    "unimodal & simplex": Case(
        s.Unimodal() & s.Simplex("component"),
        as_whole(CASES["unimodal"], CASES["simplex per component"]),
        per="all",
    ),
    "nonnegative & smooth": Case(N & s.Smooth(0.5), nonnegative_off, per="all"),
    "monotone & simplex items": Case(
        s.Monotone() & s.Simplex(), as_whole(vectors(None, Sum()), vectors(None, Rising(), per="component")), per="all"
    ),
    "monotone & upper bound & smooth": Case(
        s.Box(upper=0.5) & s.Monotone() & s.Smooth(0.3),
        as_whole(vectors(None, Rising(high=0.5), per="component")),
        per="all",
    ),
    "columns of composites": Case(
        s.Columns({(0, 2): s.Sparse(1) & s.Sparse(2, per="component")}) & N,
        lambda A: as_whole(vectors(None, Entries(0), (None, 1)), vectors(None, Entries(0), (None, 2), per="component"))(
            A[:, [0, 2]]
        ),
        per="all",
    ),
    "projection": Case(
        s.Projection(rounded), lambda A: np.abs(A - np.round(A)).max(keepdims=True).reshape(1), per="all"
    ),
}
EXACT = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
EVERY = pytest.mark.parametrize("case", {**CASES, **COMPOSITES}.values(), ids=[*CASES, *COMPOSITES])


def tolerance(B, case, eps=1e-12):
    """Of each vector: `eps` times its largest entry or 1."""
    return eps * np.maximum(np.abs(turned(B, case.per)).max(axis=1), 1)


# -- the nearest point ---------------------------------------------------------------------------------


@EXACT
def test_nearest_point_is_that_of_an_oracle(case):
    structure = case.bound
    assert structure.exact
    for step in (0.0, STEP) if case.cost else (0.0,):
        for A in samples(case):
            B = structure.prox(A, step)
            assert np.all(case.off(B) <= tolerance(B, case))
            found, least = case.objective(B, A, step), case.best(A, step)
            assert np.all(found <= least + NEAR * case.scale(A))
            assert np.all(found >= least - NEAR * case.scale(A))  # or the oracle is wrong


@pytest.mark.slow
@EXACT
def test_nearest_point_beats_feasible_neighbours(case):
    structure, rng = case.bound, np.random.default_rng(1)
    step = STEP if case.cost else 0.0
    for A in samples(case, seed=1)[:2]:
        B = structure.prox(A, step)
        best = case.objective(B, A, step)
        for trial in range(60):
            neighbour = structure.settle(B + rng.normal(scale=(1e-3, 0.1, 1.0)[trial % 3], size=A.shape))
            assert np.all(case.off(neighbour) <= tolerance(neighbour, case))
            assert np.all(best <= case.objective(neighbour, A, step) + NEAR * case.scale(A))


# of each structure a vector and the nearest one, which can be seen at a glance
SEEN = {
    "two values of norm 1": (s.Binary() & s.Sparse(1) & s.UnitNorm("item"), [-1, 0.5, 0], [0, 1, 0]),
    "two values of norm 1, all negative": (
        s.Binary() & s.Pattern([2, 1]) & s.UnitNorm("item"),
        [-3, -1, -2],
        [0, 1, 0],
    ),
    "a huge sum": (s.Simplex(), [1e20, 1e20, -1e20], [0.5, 0.5, 0]),
    "a sum of huge numbers": (s.Simplex(), [1e200, 3e200, 2e200], [0, 1, 0]),
    "a sum far from its bounds": (s.Simplex() & s.Box(upper=0.4), [-3e15, 0, -3e15], [0.3, 0.4, 0.3]),
    "huge numbers within bounds": (s.Simplex() & s.Box(upper=0.4), [1e150, 9e150, -3e150], [0.4, 0.4, 0.2]),
    "tiny equal numbers": (s.EqualNonzeros(2), [1e-170, -2e-170, -4e-170], [0, -3e-170, -3e-170]),
    "huge equal numbers": (s.EqualNonzeros(2), [1e200, 2e200, 4e200], [0, 3e200, 3e200]),
    "tiny numbers and a penalty": (s.Sparse(1) & s.L2(1), [1e-170, 4e-170, 3e-170], [0, 2e-170, 0]),
    "huge numbers of one ratio": (s.Hoyer(1, "item"), [1e200, 3e200, 2e200], [0, 3e200, 0]),
    "tiny numbers of one ratio": (s.Hoyer(0, "item"), [1e-170, 2e-170, 3e-170], [2e-170, 2e-170, 2e-170]),
}


@pytest.mark.parametrize(("stated", "given", "nearest"), SEEN.values(), ids=SEEN)
def test_nearest_points_that_can_be_seen(stated, given, nearest):
    structure = stated.bind((1, 3), False, "W")
    assert structure.exact
    found = structure.prox(np.array([given], dtype=np.float64), 1.0 if structure.value(np.ones((1, 3))) else 0.0)
    assert np.allclose(found, nearest, rtol=1e-12, atol=0)
    assert np.array_equal(found != 0, np.array([nearest]) != 0)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_orthogonal_component_is_never_further_than_none(dtype):
    """Or than the component as it is, and the others made orthogonal to it, whatever the scales."""
    rng, structure = np.random.default_rng(0), s.OrthogonalTo(1).bind((4, 3), False, "W")
    for trial in range(300):
        scales = 10.0 ** rng.uniform(-8, 8, size=((1, 3), (4, 1), (4, 3))[trial % 3])
        A = (rng.normal(size=(4, 3)) * scales).astype(dtype)
        B = structure.prox(A, 0.0)
        own, others = A[:, 1].astype(np.float64), np.delete(A, 1, axis=1).astype(np.float64)
        distance, eps = np.linalg.norm(B.astype(np.float64) - A), 16 * np.finfo(dtype).eps
        assert distance <= np.linalg.norm(own) * (1 + eps)
        assert distance <= np.linalg.norm(own @ others) / np.linalg.norm(own) + eps * np.linalg.norm(A)
        assert structure.violation(B) == 0


def test_extreme_matrices_are_no_obstacle():
    rng = np.random.default_rng(0)
    for scale in (1e200, 1e-200):
        A = rng.normal(size=TIED)
        for stated in (
            s.Orthogonal(),
            s.OrthogonalTo(1),
            N & s.OrthogonalTo(1, nonzeros=2),
            s.Unimodal(),
            s.Monotone(),
        ):
            structure = stated.bind(TIED, False, "W")
            size = 1 if isinstance(stated, s.Orthogonal) else scale
            assert np.allclose(structure.prox(scale * A, 0.0) / size, structure.prox(A, 0.0), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("stated", [case.structure for case in COMPOSITES.values()], ids=COMPOSITES)
def test_composites_of_extreme_matrices_are_numbers(stated):
    rng, structure = np.random.default_rng(0), stated.bind(TIED, False, "W")
    for scale, dtype in ((1e200, np.float64), (1e-200, np.float64), (1e30, np.float32)):
        assert np.all(np.isfinite(structure.settle((scale * rng.normal(size=TIED)).astype(dtype))))


# -- zeros are exact -----------------------------------------------------------------------------------

DUST = 1e-30
LIMITED = {
    "items": s.Sparse(2),
    "components": s.Sparse(3, "component"),
    "groups": s.Pattern([1, 2], 1),
    "equal": s.EqualNonzeros(2),
    "simplex": s.Simplex() & s.Sparse(2),
    "norm": s.UnitNorm() & s.Sparse(3, "component"),
    "budget": s.GroupSparsity(sparsity=0.7) & s.Sparse(3, "component"),
    "orthogonal": s.OrthogonalTo(1, nonzeros=2),
    "columns": s.Columns({1: s.Sparse(2, "component")}),
    "in turns": s.Sparse(2) & s.Simplex("component"),
}


@pytest.mark.parametrize("stated", LIMITED.values(), ids=LIMITED)
def test_dust_is_not_zero(stated):
    """One nonzero more than allowed is a violation, however small it is."""
    structure = stated.bind(TIED, False, "W")
    A = structure.settle(np.random.default_rng(0).uniform(0.1, 1, size=TIED))
    assert structure.violation(A) == 0
    dusty = np.where(A == 0, DUST, A)
    assert structure.violation(dusty) == DUST
    assert structure.violation(structure.settle(dusty)) == 0


# -- combinations at random ----------------------------------------------------------------------------


def random_entries(rng, shape):
    """Bounds and penalties of vectors: structures, and what the oracle has to know of them."""
    held = np.where(rng.uniform(size=shape) < 0.25, rng.integers(0, 2, size=shape) / 2, np.nan)
    low, high = np.sort(rng.integers(-3, 4, size=(2, *shape)) / 2, axis=0)
    kinds = [
        ([], {}),
        ([N], {"low": 0.0}),
        ([s.Box(-0.5, 0.25)], {"low": -0.5, "high": 0.25}),
        ([s.Box(upper=0)], {"high": 0.0}),
        ([s.Box(low, high)], {"low": low, "high": high}),
        ([s.Fixed(held)], {"low": np.nan_to_num(held, nan=-np.inf), "high": np.nan_to_num(held, nan=np.inf)}),
        ([s.Binary()], {"low": 0.0, "high": 1.0, "binary": True}),
    ]
    parts, known = kinds[rng.integers(len(kinds))]
    if rng.uniform() < 0.3:
        parts, known = [*parts, s.Elastic(0.3, 0.4)], {**known, "l1": 0.3, "l2": 0.4}
    return parts, known


def random_case(rng, n, size):
    """Some combination of items: entries, one rule for their values or none, and how many nonzeros."""
    parts, known = random_entries(rng, (n, size))
    k, limits = int(rng.integers(1, size + 1)), []
    single = OneOf(1, (1,)) if "binary" in known else None
    low, high = known.get("low", -np.inf), known.get("high", np.inf)
    rules = [
        ([], Entries(**known)),
        ([s.EqualNonzeros(k)], Equal(**known, k=k)),
        ([s.UnitNorm("item")], single or Unit(bool(np.all(low == 0)))),
        ([s.Simplex()], single or Sum(np.maximum(low, 0), high)),
        ([s.Hoyer(0.5, "item")], Ratio(0.5)),
    ]
    core, rule = rules[rng.integers(len(rules))]
    parts = [*parts, *core]
    if rng.uniform() < 0.5:
        parts, limits = [*parts, s.Sparse(most := int(rng.integers(1, size + 1)))], [(None, most)]
    if rng.uniform() < 0.4:
        order = rng.permutation(size).tolist()
        parts, limits = [*parts, s.Pattern([order[:2], order[2:]])], [*limits, (order[:2], 1), (order[2:], 1)]
    return parts, rule, limits + ([(None, 1)] if rule is single else [])


def test_combinations_at_random_are_nearest_where_they_say_so():
    rng, size, n, exact = np.random.default_rng(1), 4, 8, 0
    for _ in range(250):
        parts, rule, limits = random_case(rng, n, size)
        try:
            structure = reduce(and_, parts, s.Free()).bind((n, size), False, "W")
        except ValueError:  # nothing satisfies it
            continue
        if structure.exact:
            exact += 1
            check_nearest(
                structure, vectors(structure, rule, *limits), inputs((n, size), rng.integers(1 << 30)), limits
            )
    assert exact > 100


def check_nearest(structure, case, A, limits):
    for step in (0.0, STEP) if case.cost else (0.0,):
        B = structure.prox(A, step)
        assert np.all(case.off(B) <= tolerance(B, case)), structure
        assert structure.violation(B) == 0, structure
        for places, count in limits:
            assert np.count_nonzero(B if places is None else B[:, places], axis=1).max() <= count, structure
        excess = case.objective(B, A, step) - case.best(A, step)
        assert np.all(excess <= NEAR * case.scale(A)), structure


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0, np.inf), (-0.3, 0.6)], ids=str)
def test_isotonic_regression_of_scikit_learn(bounds):
    """The fit to a rise, and to both sides of every peak."""
    low, high = (None if np.isinf(b) else b for b in bounds)
    regression = IsotonicRegression(y_min=low, y_max=high)
    box = s.Free() if np.isinf(bounds).all() else s.Box(low, high)
    A = np.ascontiguousarray(inputs((36, 7), seed=4).T)
    places = np.arange(7)
    fits = np.stack([regression.fit_transform(places, a) for a in A.T], axis=1)
    assert np.allclose((s.Monotone() & box).bind(A.shape, False, "W").prox(A, 0.0), fits, atol=1e-9)
    peaked = (s.Unimodal() & box).bind(A.shape, False, "W").prox(A, 0.0)
    for a, b in zip(A.T, peaked.T, strict=True):
        splits = [
            [*(regression.fit_transform(places[:k], a[:k]) if k else []),
             *(regression.fit_transform(places[k:], a[k:][::-1])[::-1] if k < 7 else [])]
            for k in range(8)
        ]  # fmt: skip
        assert np.square(b - a).sum() == pytest.approx(np.square(np.array(splits) - a).sum(axis=1).min(), abs=1e-9)


@pytest.mark.slow_cases("hoyer & sparse")
@pytest.mark.parametrize(
    "name",
    [
        "simplex per item",
        "simplex & box per item",
        "simplex & sparse per item",
        "hoyer per item",
        "hoyer & sparse per item",
    ],
)
def test_a_general_optimiser_finds_nothing_nearer(name):
    case = CASES[name]
    rule = {"simplex": Sum(0.1, 0.5) if "box" in name else Sum(), "hoyer": Ratio(0.6 if "sparse" in name else 0.5)}[
        name.split()[0]
    ]
    most = (2 if "simplex" in name else 3) if "sparse" in name else SIZE
    A = inputs((MANY, SIZE), seed=2)
    A[np.abs(A).max(axis=1) > 10] /= 1e4
    B = case.bound.prox(A, 0.0)
    for a, b in list(zip(A, B, strict=True))[:14]:
        found = min(general_optimum(rule, a, support) for support in itertools.combinations(range(SIZE), most))
        assert np.square(b - a).sum() <= found + 1e-7


def general_optimum(rule, a, support):
    """The squared distance to the nearest vector with this support that SLSQP finds."""
    a, inside = np.asarray(a), np.array(support)
    outside = np.square(np.delete(a, inside)).sum()
    low, high = (rule.low, rule.high) if isinstance(rule, Sum) else (0, np.inf)

    def excess(x):
        if isinstance(rule, Sum):
            return x.sum() - 1
        return x.sum() - rule.ratio(len(a)) * np.linalg.norm(x)

    best = np.inf if isinstance(rule, Sum) else np.square(a).sum()
    for start in (np.maximum(a[inside], 0) + 0.1, np.linspace(0.1, 0.5, len(inside))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            answer = minimize(
                lambda x: np.square(x - a[inside]).sum(),
                start,
                jac=lambda x: 2 * (x - a[inside]),
                bounds=[(low, high)] * len(inside),
                constraints={"type": "eq", "fun": excess},
                method="SLSQP",
                options={"ftol": 1e-13},
            )
        if abs(excess(answer.x)) < 1e-9:
            best = min(best, answer.fun + outside)
    return best


def test_orthonormal_components_are_the_polar_factor():
    structure, rng = s.Orthogonal().bind(TIED, False, "W"), np.random.default_rng(0)
    for A in rng.normal(size=(50, *TIED)) * np.array([1, 10, 1e-3]):
        B = structure.prox(A, 0.0)
        assert np.allclose(B, polar(A)[0], atol=1e-9)
        candidates = np.linalg.qr(rng.normal(size=(200, *TIED)))[0]
        assert np.square(B - A).sum() <= np.square(candidates - A).sum(axis=(1, 2)).min()


def test_smoothing_is_a_dense_linear_solve():
    A = np.random.default_rng(0).normal(size=(30, 4))
    D = np.diff(np.eye(30), axis=0)
    for weight in (0, 0.3, 1e3, 1e9):
        B = s.Smooth(weight).bind(A.shape, False, "W").prox(A, 0.5)
        assert np.allclose(B, np.linalg.solve(np.eye(30) + 0.5 * weight * D.T @ D, A), rtol=1e-6, atol=1e-7)
    stiff = s.Smooth(1e60).bind(A.shape, False, "W").prox(A, 0.5)
    assert np.allclose(stiff, A.mean(axis=0), atol=1e-9)


def test_columns_are_their_pieces():
    A = inputs((6, 5), seed=3)
    inner = {(0, 3): s.Simplex("component"), 2: s.Unimodal(), 4: s.Hoyer(0.4)}
    B = s.Columns(inner).bind(A.shape, False, "W").prox(A, 0.0)
    assert np.array_equal(B[:, 1], A[:, 1])
    for key, structure in inner.items():
        indices = [key] if isinstance(key, int) else list(key)
        alone = structure.bind((6, len(indices)), False, "W").prox(np.ascontiguousarray(A[:, indices]), 0.0)
        assert np.array_equal(B[:, indices], alone)


def test_groups_of_one_have_the_direction_that_hoyer_finds():
    """Of norm 1 and of a given sparsity: the classic constraint."""
    for sparsity in (0.1, 0.5, 0.9):
        A = np.random.default_rng(0).normal(size=(SIZE, MANY)) * np.array([1, 10, 1e-3] * (MANY // 3)) + 0.1
        B = s.GroupSparsity([1] * MANY, sparsity).bind(A.shape, False, "W").prox(A, 0.0)
        other = s.Hoyer(sparsity).bind(A.shape, False, "W").prox(A, 0.0)
        norm = np.linalg.norm(other, axis=0)
        assert np.count_nonzero(norm) > MANY / 2  # where nothing is near, there it has no direction
        assert np.allclose(B * norm, other, rtol=1e-9, atol=1e-12 * norm.max())
        assert np.allclose(B.sum(axis=0), np.sqrt(SIZE) - sparsity * (np.sqrt(SIZE) - 1), rtol=1e-12)


def test_groups_of_items_are_near_the_best_assignment():
    """Nonnegative and orthonormal: of all assignments of items to components, the one found is rarely much worse."""
    structure, rng = (N & s.Orthogonal()).bind(TIED, False, "W"), np.random.default_rng(0)
    ratios = []
    for A in rng.normal(size=(60, *TIED)) + 0.3:
        best = max(
            sum(largest_along(A[np.array(homes) == k, k]) for k in range(TIED[1]))
            for homes in itertools.product(range(TIED[1]), repeat=TIED[0])
            if len(set(homes)) == TIED[1]
        )
        along = (structure.prox(A, 0.0) * A).sum()
        assert along <= best + 1e-12
        ratios.append(along / best)
    assert np.mean(ratios) > 0.9


def largest_along(a):
    """The largest inner product with a nonnegative vector of norm 1."""
    return np.linalg.norm(np.maximum(a, 0)) if a.max() > 0 else a.max()


# -- what holds for every structure --------------------------------------------------------------------


@pytest.mark.slow
@EVERY
def test_settled_points_are_in_the_set_and_stay(case):
    structure = case.bound
    for A in samples(case):
        given = A.copy()
        B = structure.settle(A)
        assert np.array_equal(A, given)
        assert not np.shares_memory(A, B)
        assert B.shape == A.shape
        assert B.dtype == A.dtype
        assert B.flags.c_contiguous
        assert structure.violation(B) == 0
        assert np.all(case.off(B) <= tolerance(B, case))
        again = structure.settle(B)
        assert np.all(np.abs(turned(again - B, case.per)).max(axis=1) <= tolerance(B, case))


@EVERY
def test_prox_leaves_its_input_alone(case):
    structure = case.bound
    for A in samples(case)[:3]:
        given = A.copy()
        B = structure.prox(A, STEP)
        assert np.array_equal(A, given)
        assert not np.shares_memory(A, B)
        assert B.flags.c_contiguous


@EVERY
def test_what_is_outside_is_a_violation(case):
    structure, found = case.bound, 0
    for A in samples(case, seed=5):
        off = case.off(A).max()
        if off > 1e-3:
            assert structure.violation(A) > 1e-6
            found += 1
    assert found or case.structure.elementwise or isinstance(case.structure, s.Smooth)


@pytest.mark.slow
@EVERY
def test_single_precision(case):
    structure = case.bound
    for A in (A.astype(np.float32) for A in samples(case, seed=6)):
        B = structure.settle(A)
        assert B.dtype == np.float32
        assert structure.prox(A, STEP).dtype == np.float32
        assert np.all(case.off(B.astype(np.float64)) <= tolerance(B, case, LAST_PLACE * np.finfo(np.float32).eps))
        assert structure.violation(B) == 0


@pytest.mark.slow
@EVERY
def test_units_are_followed(case):
    """In other units the same point, with the same penalty."""
    structure, objective_e = case.bound, 2
    for e, A in itertools.product((-3, 5), samples(case, seed=7)[:6]):
        scaled = structure.rescaled(e, objective_e)
        for step in (0.0, STEP):
            B = structure.prox(A, step)
            same = scaled.prox(np.ldexp(A, -e), step * 2.0 ** (objective_e - 2 * e))
            assert np.allclose(np.ldexp(same, e), B, rtol=1e-9, atol=1e-9)
            assert scaled.value(same) == pytest.approx(structure.value(B) / 2**objective_e)
        assert np.allclose(np.ldexp(scaled.settle(np.ldexp(A, -e)), e), structure.settle(A), rtol=1e-9, atol=1e-9)


@pytest.mark.slow_cases(" & ")
@EVERY
@pytest.mark.filterwarnings("ignore:.*does not restrict W")
def test_degenerate_factors(case):
    """One item, one component, zeros, many of them: a point of the set, or an error that says why there is none."""
    for shape in ((1, 1), (1, 5), (5, 1), (3, 5), (700, 5)):
        try:
            structure = case.structure.bind(shape, False, "W")
        except ValueError as error:
            assert len(str(error)) > 30  # a sentence
            continue
        for A in (np.zeros(shape), -np.ones(shape), np.ones(shape), inputs(shape, seed=8)):
            B = structure.settle(A)
            assert B.shape == shape
            assert np.all(np.isfinite(B))
            if structure.exact:
                assert structure.violation(B) == 0
            # of several sets at once nobody knows whether they have a point in common, but whether this one is
            assert np.all(case.off(B) <= tolerance(B, case)) or structure.violation(B) > 0
            assert np.all(np.isfinite(structure.prox(A, STEP)))


@EXACT
def test_cones_know_no_units(case):
    """Where with A also t A is in the set, the nearest point to t A is t times the nearest to A."""
    structure = case.bound
    if not structure.cone:
        return
    for A in samples(case, seed=9)[:6]:
        B = structure.prox(A, 0.0)
        for t in (2.0**-60, 2.0**60):
            assert np.allclose(structure.prox(t * A, 0.0) / t, B, rtol=1e-9, atol=1e-9)


# -- no closed form, but convex: Dykstra's method ------------------------------------------------------


def nothing(B):
    return 0.0, np.zeros_like(B)


def bent(weight):
    """The penalty of `Smooth` and its gradient."""

    def penalty(B):
        change = np.diff(B, axis=0)
        return weight / 2 * np.square(change).sum(), -weight * np.diff(change, axis=0, prepend=0, append=0)

    return penalty


def linear(weight):
    return lambda B: (weight * B.sum(), np.full_like(B, weight))


# differences along items, sums of items, sums of components: one row each, of a factor as one vector
RISES = np.kron(np.diff(np.eye(TIED[0]), axis=0), np.eye(TIED[1]))
ITEM_SUMS = np.kron(np.eye(TIED[0]), np.ones((1, TIED[1])))
COMPONENT_SUMS = np.kron(np.ones((1, TIED[0])), np.eye(TIED[1]))
NO_ROWS = np.zeros((0, TIED[0] * TIED[1]))

# structure; penalty and its gradient, upper bound, rows whose products are >= 0, rows whose products are 1
CONVEX = {
    "nonnegative & smooth": (N & s.Smooth(0.8), bent(0.8), None, NO_ROWS, NO_ROWS),
    "smooth & nonnegative & box": (s.Smooth(3.0) & N & s.Box(upper=0.4), bent(3.0), 0.4, NO_ROWS, NO_ROWS),
    "monotone & simplex": (s.Monotone() & s.Simplex(per="item"), nothing, None, RISES, ITEM_SUMS),
    "smooth & simplex": (s.Smooth(0.6) & s.Simplex(), bent(0.6), None, NO_ROWS, ITEM_SUMS),
    "nonnegative & monotone & smooth": (N & s.Monotone() & s.Smooth(0.8), bent(0.8), None, RISES, NO_ROWS),
    "falling & simplex components & smooth": (
        s.Monotone(decreasing=True) & s.Simplex("component") & s.Smooth(0.3),
        bent(0.3),
        None,
        -RISES,
        COMPONENT_SUMS,
    ),
    "l1 & monotone": (s.L1(0.4) & N & s.Monotone(), linear(0.4), None, RISES, NO_ROWS),
    "box & simplex & monotone & smooth": (
        s.Box(upper=0.9) & s.Simplex() & s.Monotone() & s.Smooth(0.2),
        bent(0.2),
        0.9,
        RISES,
        ITEM_SUMS,
    ),
}


def quadratic_optimum(A, step, penalty, upper, rising, ones):
    """`argmin |B - A|^2 / 2 + step penalty(B)` over `0 <= B <= upper` and the constraints, by a general optimiser."""

    def objective(b):
        value, gradient = penalty(b.reshape(A.shape))
        return np.square(b - A.ravel()).sum() / 2 + step * value, b - A.ravel() + step * gradient.ravel()

    constraints = [
        {"type": "ineq", "fun": lambda b: rising @ b, "jac": lambda b: rising},
        {"type": "eq", "fun": lambda b: ones @ b - 1, "jac": lambda b: ones},
    ]
    answer = minimize(
        objective,
        np.full(A.size, 0.3),
        jac=True,
        bounds=[(0, upper)] * A.size,
        constraints=[c for c, rows in zip(constraints, (rising, ones), strict=True) if len(rows)],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return answer.x.reshape(A.shape)


@pytest.mark.parametrize("case", CONVEX.values(), ids=CONVEX)
def test_convex_combinations_are_nearest_too(case):
    stated, *oracle = case
    structure, rng = stated.bind(TIED, False, "W"), np.random.default_rng(2)
    assert structure.convex
    for A in [*rng.normal(size=(4, *TIED)), *(rng.integers(-2, 3, size=(2, *TIED)) * 1.0), 20 * rng.normal(size=TIED)]:
        B = structure.prox(A, STEP)
        C = quadratic_optimum(A, STEP, *oracle)
        assert np.allclose(B, C, atol=1e-6 * max(1, np.abs(A).max()))


# -- which combinations have a closed form -------------------------------------------------------------

SAYS = {
    "exact": [
        (N, s.Sparse(2)),
        (N, s.Sparse(2), s.UnitNorm("item")),
        (N, P, s.EqualNonzeros(2)),
        (N, P, s.Sparse(2), s.Simplex()),
        (s.L1(0.1), s.Box(-1, 1), s.Sparse(2, "component")),
        (s.Hoyer(0.5), s.Sparse(4, "component"), N),
        (s.Binary(), s.Sparse(2), P),
        (s.Simplex(), s.Box(LOW[:6] - 1, HIGH[:6] + 1)),
        (N, s.OrthogonalTo(1, nonzeros=3)),
        (N, s.Monotone(), s.Box(upper=2)),
        (N, s.Unimodal()),
        (N, s.Smooth(1.0), s.Smooth(2.0)),
        (N, s.Columns({1: s.Sparse(2, "component")})),
        (N, s.Sparse(3, "component"), s.Columns({0: s.UnitNorm()})),
        (s.L2(0.3), s.Free(), s.EqualNonzeros(2)),
        (s.Hoyer(0.5), s.UnitNorm()),
        (s.EqualNonzeros(2), s.UnitNorm("item"), s.Sparse(3)),
        (s.Simplex(), s.UnitNorm("item")),
        (s.UnitNorm(), s.UnitNorm(), N),
    ],
    "not exact": [
        (s.Sparse(2), s.UnitNorm()),
        (s.Sparse(2), s.Sparse(2, "component")),
        (N, s.Orthogonal()),
        (N, s.Orthogonal(), s.Sparse(2)),
        (s.OrthogonalTo(0), s.Sparse(2)),
        (s.Box(upper=1.0), s.Smooth(1.0)),
        (s.Monotone(), s.Unimodal()),
        (s.Monotone(), s.Simplex("component")),
        (s.Monotone(), s.L1(0.1)),
        (s.Hoyer(0.5), s.UnitNorm(), s.Simplex("component")),
        (s.EqualNonzeros(2), s.UnitNorm()),
        (s.EqualNonzeros(2), s.Hoyer(0.5, "item")),
        (s.Simplex(), s.UnitNorm("item"), s.Box(LOW[:6] - 1, HIGH[:6] + 1)),
        (s.Hoyer(0.5, "item"), s.L1(0.2)),
        (s.UnitNorm("item"), s.Box(upper=0.7)),
        (s.EqualNonzeros(2), s.Fixed(HELD[:6])),
        (s.Sparse(2), s.Columns({1: s.Sparse(2, "component")})),
        (N, s.Projection(rounded, name="whole numbers")),
        (N, s.OrthogonalTo(1, method="successive")),
    ],
}


@pytest.mark.parametrize(
    ("parts", "exact"),
    [pytest.param(parts, says == "exact", id=" & ".join(map(repr, parts))) for says in SAYS for parts in SAYS[says]],
)
def test_combinations_say_whether_they_are_exact_whatever_their_order(parts, exact):
    A, seen = np.random.default_rng(0).normal(size=(6, 5)), []
    for order in itertools.permutations(parts):
        stated = reduce(and_, order)
        assert stated.exact == exact
        bound = stated.bind(A.shape, False, "W")
        assert bound.exact == exact
        seen.append((repr(bound) if exact else type(bound), bound.prox(A, 0.3)))
    assert all(form == seen[0][0] for form, _ in seen)
    if exact or bound.convex:
        assert all(np.allclose(B, seen[0][1], atol=1e-7) for _, B in seen)
    nested = reduce(lambda right, left: left & right, parts)
    assert nested.exact == exact


# -- messages ------------------------------------------------------------------------------------------

TWO_HELD = np.array([[0.5, 0.7, np.nan, np.nan]] * 3)
IMPOSSIBLE = {
    "more equal nonzeros than entries": (lambda: s.EqualNonzeros(9), r"asks for 9 equal nonzeros .* at most 4 fit"),
    "more than a pattern leaves": (lambda: s.Pattern([2, 2]) & s.EqualNonzeros(3), "at most 2 fit"),
    "more than are allowed": (lambda: s.Sparse(1) & s.EqualNonzeros(2), "at most 1 fit"),
    "flat and sparse": (lambda: s.Hoyer(0.1, "item") & s.Sparse(2), "at least 4 nonzeros in each item"),
    "flat and sparse components": (lambda: s.Hoyer(0.1) & s.Sparse(2, "component"), "at least 3 nonzeros"),
    "a group beyond the rank": (lambda: s.Pattern([2, 3]), "component 4, but W has 4"),
    "a component beyond the rank": (lambda: s.OrthogonalTo(4), "component 4, but W has 4"),
    "a column beyond the rank": (lambda: s.Columns({5: N}), "component 5, but W has 4"),
    "two held where one may be": (lambda: s.Sparse(1) & s.Fixed(TWO_HELD), "more entries than allowed"),
    "two positive where one may be": (lambda: s.Pattern([2, 2]) & s.Box(lower=TWO_HELD), "more entries than allowed"),
    "too small for a sum": (lambda: s.Simplex() & s.Box(upper=0.1), "do not let each item add up to 1"),
    "too large for a sum": (lambda: s.Simplex("component") & s.Box(lower=0.4), "do not let each component add up"),
    "too few for a sum": (lambda: s.Simplex() & s.Sparse(2) & s.Box(upper=0.4), "do not let each item add up to 1"),
    "too small for the sum of a column": (
        lambda: s.Columns({1: s.Simplex("component")}) & s.Box(upper=0.1),
        "do not let each component add up to 1",
    ),
    "too small for a sum, among other things": (
        lambda: s.Simplex() & s.Box(upper=0.1) & s.Monotone(),
        "do not let each item add up to 1",
    ),
    "below 0 somewhere for a sum": (
        lambda: s.Simplex() & s.Box(upper=[[-1, 2, 2, 2]] * 3),
        "do not let each item add up",
    ),
    "no value for two values": (
        lambda: s.Binary() & s.EqualNonzeros(2) & s.UnitNorm("item"),
        "have to be 0.707107 each",
    ),
    "two sparsities": (lambda: s.Hoyer(0.3) & s.Hoyer(0.4), "speak of the same components. State one"),
    "sums of items and components": (
        lambda: s.Simplex() & s.Simplex("component"),
        "its entries add up to [34] by Simplex.* and to [34] by Simplex",
    ),
    "norms of items and components": (lambda: s.UnitNorm() & s.UnitNorm("item"), "its squares add up to"),
    "norms of items and a budget": (lambda: s.UnitNorm("item") & s.GroupSparsity(sparsity=0.3), "squares add up to 3"),
    "two budgets": (
        lambda: s.GroupSparsity(sparsity=0.3) & s.GroupSparsity([2, 2], 0.3),
        "speak of the same components.* takes all groups at once",
    ),
    "more nonzeros than the groups have": (lambda: s.Pattern([2, 2], nonzeros=3), "does not restrict groups of .2, 2."),
    "more nonzeros than a group has": (
        lambda: s.Pattern([1, 3], nonzeros=[2, 2]),
        "does not restrict groups of .1, 3.",
    ),
    "fewer nonzeros than components need": (
        lambda: s.Sparse(1) & s.UnitNorm(),
        "4 components need 4 nonzeros in all, and its 3 items may have 3",
    ),
    "fewer nonzeros than items need": (
        lambda: s.Sparse(1, "component") & s.Simplex() & s.Box(upper=0.7),
        "3 items need 6 nonzeros in all, and its 4 components may have 4",
    ),
    "no nonzeros": (lambda: s.Sparse(0), "whole number >= 1, got 0"),
    "half a nonzero": (lambda: s.Sparse(1.5), "whole number >= 1, got 1.5"),
    "true nonzeros": (lambda: s.EqualNonzeros(True), "whole number >= 1, got True"),
    "no such vectors": (lambda: s.Sparse(2, per="row"), "'item' or 'component', got 'row'"),
    "no such simplex": (lambda: s.Simplex(per="rows"), "'item' or 'component', got 'rows'"),
    "no such sparsity": (lambda: s.Hoyer(1.2), "between 0 .* and 1 .* got 1.2"),
    "no such method": (lambda: s.OrthogonalTo(0, method="quick"), "'exact' or 'successive', got 'quick'"),
    "no such component": (lambda: s.OrthogonalTo(-1), "number of a component"),
    "groups that overlap": (lambda: s.Pattern([[0, 1], [1, 2]]), "do not overlap"),
    "a group of nothing": (lambda: s.Pattern([[0, 1], []]), "do not overlap"),
    "no groups": (s.Pattern, "give either groups"),
    "groups and labels": (lambda: s.Pattern([2], labels=[0, 0]), "give either groups"),
    "no labels": (lambda: s.Pattern(labels=[]), "labels"),
    "numbers for other groups": (lambda: s.Pattern([2, 2], nonzeros=[1]), "1 numbers for 2 groups"),
    "more components than items": (s.Orthogonal, "4 orthonormal components do not fit"),
    "negative smoothness": (lambda: s.Smooth(-1), "finite number >= 0, got -1"),
    "columns twice": (lambda: s.Columns({0: N, (0, 1): N}), "each once"),
    "bounds that exclude each other": (lambda: s.Box(lower=1) & s.Box(upper=0) & s.Sparse(2), "exclude each other"),
}


@pytest.mark.parametrize(("make", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_requests_say_why(make, message):
    with pytest.raises(ValueError, match=message):
        make().bind((3, 4), False, "W")


IDLE = {
    "items": (s.Sparse(5), "does not restrict W: it allows 5 nonzeros in each item, which has 4 entries"),
    "components": (N & s.Sparse(4, "component"), "allows 4 nonzeros in each component, which has 3 entries"),
    "one component": (s.OrthogonalTo(1, nonzeros=4), "allows 4 nonzeros in each component, which has 3 entries"),
}


@pytest.mark.parametrize(("stated", "message"), IDLE.values(), ids=IDLE)
def test_numbers_that_restrict_nothing_get_a_warning(stated, message):
    with pytest.warns(UserWarning, match=message):
        stated.bind((3, 4), False, "W")


def test_numbers_that_restrict_little_get_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stated in (s.Sparse(4), s.Sparse(3, "component"), s.Pattern([1, 3], 2), s.OrthogonalTo(1, nonzeros=3)):
            stated.bind((3, 4), False, "W")


def test_columns_take_structures():
    with pytest.raises(TypeError, match="Columns takes"):
        s.Columns({0: "sparse"})


def test_a_combination_has_no_projection_before_it_is_bound():
    with pytest.raises(TypeError, match="bind it"):
        (N & s.Sparse(2)).prox(np.zeros((3, 4)), 0.0)


def wide(A):
    return np.zeros((2, 2))


def undefined(A):
    return np.full_like(A, np.nan)


def words(A):
    return np.full(A.shape, "a")


def shrunk(A):
    return 0.9 * A


@pytest.mark.parametrize(
    ("function", "message"),
    [(wide, "'wide' .* shape"), (undefined, "'undefined' .* finite"), (words, "'words' .* finite")],
)
@pytest.mark.parametrize("together", [lambda p: p, lambda p: N & p], ids=["alone", "combined"])
def test_a_projection_that_answers_nonsense_is_named(function, message, together):
    with pytest.raises(ValueError, match=message):
        together(s.Projection(function)).bind((3, 4), False, "W")
    with pytest.raises(ValueError, match="'mine'"):
        s.Projection(function, name="mine").bind((3, 4), True, "H")


def test_a_projection_that_is_not_idempotent_warns():
    with pytest.warns(UserWarning, match="'shrunk' of W is not idempotent"):
        s.Projection(shrunk).bind((3, 4), False, "W")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s.Projection(rounded).bind((3, 4), False, "W")
        s.Projection(lambda A: np.maximum(A, 0), nonnegative=True, cone=True).bind((3, 4), True, "H")


def test_a_projection_sees_the_factor_as_the_user_does():
    """H lies down, in the user's units, and whatever the function does to its argument stays there."""
    seen = []

    def first_feature(H):
        seen.append(H.copy())
        H[:, 1:] = 0
        return H

    structure = s.Projection(first_feature).bind((3, 2), True, "H").rescaled(4, 0)
    A = inputs((3, 2))
    given = A.copy()
    B = structure.prox(A, 0.0)
    assert np.array_equal(A, given)
    assert np.array_equal(seen[-1], 16 * given.T)
    assert np.array_equal(B, given * np.array([[1], [0], [0]]))
    with pytest.raises(TypeError, match="takes a function"):
        s.Projection("sparse")
