"""The search of `ADMM`: the two copies of each factor, and the rules for penalties and superfluous components."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import lapack

from .. import kernels
from ..data.units import comparable
from ..losses.beta import cancels
from ..losses.expansions import OwnGrams, gram_of, gram_of_others, with_ridge
from ..problem import Factors, Problem, Quadratic
from ..structures import Structure
from .base import feasible
from .block import State as Descent

GROW, SHRINK = 2.0, 5.0  # what penalties are multiplied and divided by (mu and nu)
NEAR = 5e-4  # relative differences below this are none (epsilon)
RANGE = (1e-5, 1e3)  # penalties stay between these, in units of the rank
SWEEPS = 10, 1e-3  # over rows with their own Gram matrices, at most, and the share of the first gain that is enough
FEW, SAMPLE = 8, 64  # entries for each nonzero, in so many rows, from where on the loss is added up entry by entry
PARALLEL = 0.9  # cosine of two components, one of which is not needed


@dataclass
class Split:
    """The two copies of a factor, in the units of the search. Arrays are replaced, never written to."""

    free: np.ndarray
    held: np.ndarray
    dual: np.ndarray
    penalty: float
    gap: float = 0.0  # |A - U|
    known: tuple[np.ndarray, np.ndarray] | None = None  # a free copy and its Gram matrix

    transient: ClassVar[tuple[str, ...]] = ("known",)

    def valid(self, problem: Problem) -> bool:
        return 0 < self.penalty < math.inf

    @property
    def gram(self) -> np.ndarray:
        """Of the free copy, computed once."""
        if self.known is None or self.known[0] is not self.free:
            self.known = self.free, gram_of(self.free)
        return self.known[1]

    def move(self, known: Quadratic | OwnGrams, structure: Structure, unit: float) -> None:
        """The free copy to its best place, the held copy to the nearest point of its set, and the dual after them. In
        the units of the search X is divided by `unit`, the objective and penalties in the structure by its square."""
        of, system = kernels.of(self.free), with_ridge(known.gram, self.penalty)
        given = self.held, self.dual, known.cross, self.penalty, 1 / unit
        if isinstance(known, OwnGrams):
            self.free = known.solved(self.free, of.admm_rhs(*given), system, SWEEPS)
            target = of.admm_target(self.free, self.dual, self.penalty)
        else:  # an inverse is quicker to apply than a factor, and as good in an iteration that corrects itself
            self.free, target = of.admm_free(*given, inverse(system))
        held = structure.prox(target, 1 / (self.penalty * unit**2))
        self.held = held.copy() if np.may_share_memory(held, target) else held  # the dual is written over the target
        self.gap = of.admm_dual(target, self.free, self.held, self.penalty)
        self.dual = target


class Progress(NamedTuple):
    """Errors of the free and of the held copies, and the gaps between them; sums of several iterations, too."""

    free: float
    held: float
    gaps: tuple[float, ...]  # one for each factor

    @classmethod
    def filled(cls, value: float, order: int) -> Progress:
        """The same for everything, of so many factors."""
        return cls(value, value, (value,) * order)

    def plus(self, other: Progress) -> Progress:
        gaps = tuple(a + b for a, b in zip(self.gaps, other.gaps, strict=True))
        return Progress(self.free + other.free, self.held + other.held, gaps)


@dataclass
class Search:
    """Where a run is."""

    factors: Factors  # the best feasible ones so far, in the units of the problem
    objective: float
    splits: tuple[Split, ...]
    unit: float  # X is divided by this in the search
    window: Progress  # of the present window
    before: Progress  # of the last one
    n_iter: int
    gained: tuple[int, float]  # when the best error last fell by a relative `WORTH`, and to what
    fresh: tuple[int, float]  # when the present one last fell by 1%, or a component was replaced
    replaced: int  # components, so far
    tried: float  # the best error when descent was last tried
    over: bool  # the search; what follows is descent
    descent: Descent
    products: tuple[list, tuple] | None = None  # what `crosses` last found, and for which copies

    transient: ClassVar[tuple[str, ...]] = ("unit", "products")

    def valid(self, problem: Problem) -> bool:
        with np.errstate(all="ignore"):
            sizes = [problem.fit([getattr(split, name) for split in self.splits]) for name in ("free", "held", "dual")]
        return feasible(self.factors, problem) and all(map(math.isfinite, sizes))

    def held_factors(self, problem: Problem) -> Factors:
        """The held copies as factors of the problem."""
        scales = scales_of(problem, self.unit)
        copies = zip((split.held for split in self.splits), scales, strict=True)
        return tuple(U if scale == 1 else U * U.dtype.type(scale) for U, scale in copies)

    def normal_equations(self, problem: Problem, mode: int) -> Quadratic | OwnGrams:
        """Least squares in one free copy, the others held."""
        free = [split.free for split in self.splits]
        if not problem.data.complete:
            return problem.normal_equations(free, mode)
        gram = reduce(np.multiply, (split.gram for other, split in enumerate(self.splits) if other != mode))
        shared = mode == problem.modes[-1] and self.share(problem)  # with the look at the held copies before
        return Quadratic(gram, self.crosses(problem)[0] if shared else problem.data.cross(free, mode))

    def share(self, problem: Problem) -> bool:
        """Whether free and held copies share a product with X in the last mode to solve for: where they are the same in
        the others, or where X is large enough for one pass over it to cost less than two."""
        sizes = [2 * split.free.size for mode, split in enumerate(self.splits) if mode != problem.modes[-1]]
        return len(problem.modes) == 1 or (len(sizes) == 1 and sizes[0] <= problem.data.n_nonzeros / 2)

    def crosses(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """That product, of the free and of the held copies, computed once."""
        last, data = problem.modes[-1], problem.data
        copies = [A for mode, split in enumerate(self.splits) if mode != last for A in (split.free, split.held)]
        if self.products is None or any(a is not b for a, b in zip(copies, self.products[0], strict=True)):
            factors = [split.free for split in self.splits]
            if len(problem.modes) == 1:
                found = (data.cross(factors, last),) * 2
            else:
                factors[1 - last] = np.hstack(copies)
                both = np.hsplit(data.cross(factors, last), 2)
                found = np.ascontiguousarray(both[0]), np.ascontiguousarray(both[1])
            self.products = copies, found
        return self.products[1]

    def free_error(self, problem: Problem, mode: int, known: Quadratic | OwnGrams) -> float:
        """`|X - [[A]]|` of the free copies in the units of the search, from the normal equations of one of them."""
        split = self.splits[mode]
        square = known.square(split.free) if isinstance(known, OwnGrams) else inner_of(known.gram, split.gram)
        return math.sqrt(2 * max(self.fit_of(problem, split.free, known.cross, square), 0.0)) / self.unit

    def held_fit(self, problem: Problem) -> float:
        """The loss of the held copies."""
        last, factors, data = problem.modes[-1], [split.held for split in self.splits], problem.data
        A = factors[data.natural]
        some = A[:: max(1, len(A) // SAMPLE)]
        if data.complete and not data.sparse and len(factors) == 2 and FEW * np.count_nonzero(some) <= some.size:
            _, (fit,) = data.map(kernels.of(A).few_nonzeros_fit, factors, data.natural, self.unit)
            return fit
        if data.complete:
            square = inner_of(gram_of_others(factors, last), gram_of(factors[last]))
            cross = self.crosses(problem)[1] if self.share(problem) else data.cross(factors, last)
            fit = self.fit_of(problem, factors[last], cross, square)
            if not cancels(data, fit):
                return max(fit, 0.0)
        return problem.fit(self.held_factors(problem), last)

    def fit_of(self, problem: Problem, A: np.ndarray, cross: np.ndarray, square: float) -> float:
        """`1/2 |X - unit Y|^2` of a model whose square is known, A and the cross product those of one mode."""
        linear = kernels.of(A).inner(A, cross)
        return 0.5 * (problem.data.norm2 - 2 * self.unit * linear + self.unit**2 * square)

    def keep_better(self, problem: Problem, factors: Factors, fit: float) -> None:
        objective = fit + problem.penalty(factors)
        if objective < self.objective:
            self.factors, self.objective = factors, objective

    def adapt(self, problem: Problem, enough: float) -> None:
        """Algorithm 2 of the paper, on sums over windows: penalties grow for copies that do not come together, and
        shrink where the data are not heard."""
        now, before = self.window, self.before
        further = [gap >= last for gap, last in zip(now.gaps, before.gaps, strict=True)]
        if now.held < (1 - enough) * before.held:  # (10)
            return
        if abs(now.held - now.free) <= NEAR * now.free:  # (11)
            change = [1 / SHRINK] * len(further)
        elif any(further[mode] for mode in problem.modes):  # (12)
            change = [GROW if grows else 1.0 for grows in further]
        else:  # (13)
            change = [1 / SHRINK if now.free >= (1 - NEAR) * before.free else GROW] * len(further)
        least, most = (problem.rank * end for end in RANGE)
        for split, factor in zip(self.splits, change, strict=True):
            split.penalty = min(max(split.penalty * factor, least), most)

    def reinitialise(self, problem: Problem) -> None:
        """The less used of two nearly parallel components, or the least used of all, becomes the sample that is fitted
        worst: a row of a matrix is a column of its other factor; of a tensor, the sums of its slice along each mode."""
        factors, data = self.held_factors(problem), problem.data
        W, *others = factors
        lengths = np.prod([np.linalg.norm(B, axis=0) for B in others], axis=0)
        used = lengths * np.linalg.norm(W, axis=0)
        least = np.finfo(W.dtype).tiny
        cosines = np.triu(np.abs(gram_of_others(factors, 0)) / np.maximum(np.outer(lengths, lengths), least), 1)
        pair = np.unravel_index(np.argmax(cosines), cosines.shape)
        k = min((int(i) for i in pair) if cosines[pair] > PARALLEL else range(problem.rank), key=used.__getitem__)
        minus, plus = problem.normal_equations(factors, 0).split(W)
        left = data.row_sums(0, 2.0) + np.einsum("ij,ij->i", W, plus - 2 * minus)
        worst = int(np.argmax(comparable(left, W.dtype)))
        slice_of = [np.eye(len(W), 1, -worst, dtype=W.dtype), *(np.ones((len(B), 1), W.dtype) for B in others)]
        first, *rest = self.splits
        for mode, split in enumerate(rest, start=1):
            sample = data.cross(slice_of, mode)[:, 0]
            size = float(np.median(np.linalg.norm(split.free, axis=0)))
            sample = sample * (size / (float(np.linalg.norm(sample)) or 1.0))
            split.free, split.dual = with_column(split.free, k, sample), with_column(split.dual, k, 0)
            split.held = problem.structures[mode].prox(with_column(split.held, k, sample), 0.0)
        first.free, first.held, first.dual = (with_column(A, k, 0) for A in (first.free, first.held, first.dual))


def unit_of(problem: Problem) -> float:
    """What X is divided by, so that its norm is the rank, where a factor can take up the scale."""
    cones = any(problem.structures[mode].cone for mode in problem.modes)
    return problem.data.norm / problem.rank if cones and problem.data.norm > 0 else 1.0


def scales_of(problem: Problem, unit: float) -> list[float]:
    """A factor of the search times its scale is a factor of the problem."""
    cone = next((mode for mode in problem.modes if problem.structures[mode].cone), None)
    return [unit if mode == cone else 1.0 for mode in range(len(problem.structures))]


def scattered(problem: Problem, mode: int, rng: np.random.RandomState) -> np.ndarray:
    """A random free copy of norm `rank`, of no structure: positive where the set is, else of both signs."""
    shape = problem.data.shape[mode], problem.rank
    A = rng.uniform(size=shape) if problem.structures[mode].nonnegative else rng.standard_normal(shape)
    return (A * (problem.rank / np.linalg.norm(A))).astype(problem.data.dtype)


def inner_of(one: np.ndarray, other: np.ndarray) -> float:
    """Of two small matrices, added up in double precision."""
    return float(np.vdot(one, other.astype(np.float64)))


def inverse(system: np.ndarray) -> np.ndarray:
    """Of a positive definite matrix, computed in double precision."""
    root, fault = lapack.dpotrf(system.astype(np.float64))
    if fault:
        raise np.linalg.LinAlgError("the normal equations of a free copy are not positive definite")
    upper, _ = lapack.dpotri(root)  # 0 below the diagonal
    found = upper + upper.T
    found.flat[:: len(found) + 1] /= 2
    return np.ascontiguousarray(found, dtype=system.dtype)


def with_column(A: np.ndarray, k: int, column) -> np.ndarray:
    A = A.copy()
    A[:, k] = column
    return A
