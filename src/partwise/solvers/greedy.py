"""Greedy factorization: one part at a time, each with a bound on what any part could have gained.

Huang and Zhang (2015), Greedy algorithm for large scale nonnegative matrix/tensor decomposition. With P = X - [[A]],
what the parts so far leave, the next is made of the nonnegative unit vectors, one for each mode, with the largest
`<P, x_1 o ... o x_d>`, for a matrix `u' P v`: with that weight it lowers the loss by half of the square, and no part
lowers it by more than a bound on this product says. Then come weights, and alternating rounds over all parts so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..checks import AT_LEAST_0, POSITIVE_INT, one_of
from ..data.names import matrix_only
from ..data.units import root
from ..errors import warn
from ..init.empty import Empty
from ..oracles.chain import GAP, Atom, next_atom
from ..problem import Factors, Problem
from ..problem.parts import part_products
from .base import Solver, Step, feasible, require, shallow_copy
from .block import complete_only
from .hals import HALS
from .symmetric_cd import SymmetricCD
from .symmetric_gn import SymmetricGN
from .weights import mixed, weighted

NOTHING = {np.dtype(np.float64): 1e-14, np.dtype(np.float32): 1e-6}  # of |X|: a value at which only rounding is left
POINT = 1e-12  # the share of a part off the diagonal below which it is a single entry on it

MOST = 2  # times the rank: steps up, where new parts make others superfluous
POLISH = ("each", "end", None)
WEIGHTS = {"diagonal": weighted, "full": mixed}


@dataclass(frozen=True, eq=False)
class PathStep:
    """One rank on the path of a greedy run, in the user's units."""

    rank: int
    objective: float  # with so many parts, after weights and the rounds at this rank, before a polish at the end
    relative_error: float
    gain: float  # by how much the new part alone, the others held, lowered the loss; of one taken away: all in all
    bound: float  # no part could have lowered it by more; infinite where that was not certified, NaN for one taken away
    status: str  # "closed", "open", "not certified" or "pruned"
    factors: Factors | None  # tall, where the solver was told to keep them

    def valid(self, problem: Problem) -> bool:
        return self.of(problem.data.shape)

    def of(self, shape: tuple[int, ...]) -> bool:
        """Whether it can be about X of this shape."""
        numbers = self.objective, self.relative_error, self.gain
        fits = self.factors is None or [A.shape for A in self.factors] == [(dim, self.rank) for dim in shape]
        return fits and self.rank >= 0 and not any(map(math.isnan, numbers))

    @property
    def W(self) -> np.ndarray:
        return self.pair[0]

    @property
    def H(self) -> np.ndarray:
        return self.pair[1].T

    @property
    def pair(self) -> Factors:
        """The factors of a matrix."""
        if why := matrix_only("a pair of W and H", len(self.kept)):
            raise ValueError(f"{why}: take .kept, one factor for each of them")
        return self.kept

    @property
    def kept(self) -> Factors:
        """The factors, if they were kept."""
        if self.factors is None:
            raise ValueError("the factors of this rank were not kept: use solver=pw.solvers.Greedy(keep=True)")
        return self.factors

    def __str__(self):
        bound = "" if self.status in ("pruned", "not certified") else f", at most {self.bound:.6g} by any part"
        return (
            f"rank {self.rank}: relative error {self.relative_error:.6g}, gained {self.gain:.6g}{bound} ({self.status})"
        )


@dataclass
class GreedyState:
    """Where a run is. Parts fill the columns of the factors from the left."""

    factors: Factors
    fit: float  # the loss there
    count: int  # of parts
    path: tuple[PathStep, ...]
    full: bool  # no more parts are wanted, or none is left
    inner: Any  # the state of the alternating rounds at the end; None before
    tied: bool  # all factors are one
    rng: np.random.RandomState
    tol: float

    transient: ClassVar[tuple[str, ...]] = ("tied", "rng", "tol")

    def valid(self, problem: Problem) -> bool:
        empty = self.count <= problem.rank and not any(A[:, self.count :].any() for A in self.factors)
        return empty and feasible(self.factors, problem)


@dataclass(frozen=True)
class Greedy(Solver):
    """One part at a time until the rank is reached, the relative error is at most `target_error`, or no part lowers the
    loss.

    Parameters
    ----------
    polish : "each", "end" or None
        Alternating rounds over all parts after each new one and at the end until the run converges; at the end
        only; or the pure method.
    weights : "diagonal" or "full"
        One weight for each part, or, for matrices, one for every pair of a column of W and a row of H.
    rounds : int
        Alternating rounds after each part.
    prune : int, optional
        Take parts that matter least away again, one at a time, until so many are left.
    target_error : float
        No more parts once the relative error is at most this.
    certify : bool
        Whether to prove bounds, where the size of X allows.
    gap : float
        The share of a value to which a bound is proved.
    keep : bool
        Whether to keep the factors of every rank in `result.path`.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 8, solver=pw.solvers.Greedy(target_error=0.3))
    >>> result.rank, [step.rank for step in result.path]
    (2, [1, 2])
    """

    polish: str | None = "each"
    weights: str = "diagonal"
    rounds: int = 20
    prune: int | None = None
    target_error: float = 0.0
    certify: bool = True
    gap: float = GAP
    keep: bool = False

    kernels = ("numpy", *HALS.kernels, *SymmetricCD.kernels)
    symmetric = True
    draws = True
    default_init = Empty()
    rank_is_limit = True
    states = (GreedyState, PathStep)

    def __post_init__(self):
        require(
            self,
            polish=one_of(*POLISH),
            weights=one_of(*WEIGHTS),
            rounds=POSITIVE_INT,
            prune=POSITIVE_INT | None,
            target_error=AT_LEAST_0,
            gap=AT_LEAST_0,
        )

    @property
    def monotone(self):
        return self.prune is None

    def supports(self, problem):
        if why := complete_only(self, problem):
            return why
        for structure in problem.structures:
            entries = structure.elementwise
            if entries is None or not (entries.plain and entries.nonnegative):
                return f"Greedy finds nonnegative parts of no other structure, got {structure}"
        if self.prune is not None and self.prune > problem.rank:
            return f"Greedy cannot prune {problem.rank} parts to prune={self.prune}"
        if problem.symmetric and self.weights != "diagonal":
            return "Greedy has weights='full' for two factors, not where X ~ A A': use 'diagonal'"
        if self.weights == "full" and (why := matrix_only("weights='full' of Greedy", len(problem.structures))):
            return f"{why}: use 'diagonal'"
        return None

    def prefer(self, problem):
        return 0.1, "one part at a time, each with a bound on what any part could gain"

    def init(self, problem, factors, tol, rng):
        given = problem.nonzero_components(factors)
        count = given[0].shape[1]
        parts, full, tied = padded(problem, given), count == problem.rank, bool(problem.symmetric)
        return GreedyState(parts, problem.fit(parts), count, (), full, None, tied, rng, tol)

    def kept(self, state):
        kept = shallow_copy(state)
        if state.inner is not None:
            kept.inner = alternating(state).kept(state.inner)
        return kept

    def restore(self, problem, factors, tol, rng, kept):
        inner = getattr(kept, "inner", None)
        if inner is not None:
            kept.inner = None  # as in a fresh state: it has a problem of its own
        state = super().restore(problem, factors, tol, rng, kept)
        if inner is not None:
            narrow = replace(problem, rank=state.count)
            state.inner = alternating(state).restore(narrow, compact(state), tol, rng, inner)
        return state

    def details(self, problem, state):
        return {"path": state.path if self.keep else tuple(replace(step, factors=None) for step in state.path)}

    def step(self, problem, state):
        if not state.full:
            return self.grow(problem, state)
        if state.count == problem.rank and not state.path and state.inner is None:
            warn(
                f"the start has all {state.count} parts already, so none is found one at a time: leave out init, or "
                "give one with parts that are zero"
            )
        if self.prune is not None and state.count > self.prune:
            return self.shrink(problem, state)
        if self.polish is None or state.count == 0:
            narrow, parts = problem.without_zero_components(state.factors)
            return Step(state.factors, *narrow.measure(parts), done=True)
        # of as many parts in every round, zero or not: the state of the rounds is of that size
        inner, narrow, parts = alternating(state), replace(problem, rank=state.count), compact(state)
        if state.inner is None:
            state.inner = inner.init(narrow, parts, state.tol, state.rng)
        step = inner.step(narrow, state.inner)
        state.factors = padded(problem, step.factors)
        return step._replace(factors=state.factors)

    def grow(self, problem: Problem, state: GreedyState) -> Step:
        """One more part."""
        parts = compact(state)
        atom = next_atom(problem, parts, state.rng, self.gap, self.certify)
        if atom.value >= -NOTHING[problem.data.dtype] * problem.data.norm or curvature_of(problem, atom) <= POINT:
            return self.stay(state)
        size = root(-atom.value, len(parts))
        grown = [np.column_stack([A, (size * x).astype(A.dtype)]) for A, x in zip(parts, atom.vectors, strict=True)]
        return self.arrive(problem, state, problem.tied(tuple(grown)), atom)

    def stay(self, state: GreedyState) -> Step:
        """No part is left to find."""
        state.full = True
        return Step(state.factors, state.fit, np.inf)

    def shrink(self, problem: Problem, state: GreedyState) -> Step:
        """One part less: the one whose loss raises the objective least."""
        parts = compact(state)
        left = np.delete(np.arange(state.count), np.argmin(importance(problem, parts)))
        self.arrive(problem, state, problem.tied(tuple(np.ascontiguousarray(A[:, left]) for A in parts)), None)
        if state.count == self.prune:
            self.take_better(problem, state)
        return Step(state.factors, state.fit, np.inf)

    def take_better(self, problem: Problem, state: GreedyState) -> None:
        """The parts that were there on the way up, where they are better than as many on the way down."""
        *earlier, last = state.path
        way_up = (step for step in earlier if step.rank == last.rank and step.status != "pruned")
        best = min(way_up, key=lambda step: step.objective, default=last)
        if best.objective < last.objective:
            parts = problem.from_user(best.kept)
            gained = last.gain + last.objective - best.objective
            state.factors, state.fit = padded(problem, parts), replace(problem, rank=best.rank).fit(parts)
            state.path = (*earlier, replace(best, gain=gained, bound=np.nan, status="pruned"))

    def arrive(self, problem: Problem, state: GreedyState, parts: Factors, atom: Atom | None) -> Step:
        """At another number of parts: weights, polish, and a step of the path."""
        narrow = replace(problem, rank=parts[0].shape[1])
        parts = WEIGHTS[self.weights](narrow, parts)
        if self.polish == "each":
            inner = alternating(state)
            course = inner.init(narrow, parts, state.tol, state.rng)
            for _ in range(self.rounds):
                parts = inner.step(narrow, course).factors
        parts = problem.nonzero_components(parts)  # a new part can make another superfluous
        narrow = replace(problem, rank=parts[0].shape[1])
        before, fit = state.fit, narrow.fit(parts)
        if atom is not None and fit >= before:  # rounding has the last word
            return self.stay(state)
        state.factors, state.fit, state.count = padded(problem, parts), fit, narrow.rank
        state.path += (self.path_step(narrow, parts, (fit, before - fit), atom),)
        enough = narrow.relative(fit) <= self.target_error or len(state.path) >= MOST * problem.rank
        state.full = state.full or state.count == problem.rank or enough
        return Step(state.factors, fit, np.inf)

    def path_step(self, problem: Problem, parts: Factors, about: tuple[float, float], atom: Atom | None) -> PathStep:
        """What there is to tell of the parts so far, the last of which is the atom, or of one taken away;
        `about`: the loss, and by how much it fell."""
        (fit, gained), bound, status = about, np.nan, "pruned"
        if atom is not None:
            gained, bound = (x**2 / (2 * curvature_of(problem, atom)) for x in (atom.value, atom.bound))
            status = atom.status
        kept = problem.to_user(parts) if self.keep or problem.rank == self.prune else None
        objective, gained, bound = map(problem.user_objective, (fit, gained, bound))
        return PathStep(problem.rank, objective, problem.relative(fit), gained, bound, status, kept)


def curvature_of(problem: Problem, atom: Atom) -> float:
    """The second derivative of the loss in the weight of a part: 1, but where a diagonal does not count."""
    return float(part_products(problem, [x[:, None] for x in atom.vectors])[0, 0])


def alternating(state: GreedyState) -> Solver:
    """The solver of the rounds over all parts."""
    if not state.tied:
        return HALS()
    return SymmetricCD() if len(state.factors) == 2 else SymmetricGN()


def compact(state: GreedyState) -> Factors:
    """The parts there are."""
    parts = tuple(np.ascontiguousarray(A[:, : state.count]) for A in state.factors)
    return parts[:1] * len(parts) if state.tied else parts


def padded(problem: Problem, parts: Factors) -> Factors:
    """Factors of the full rank, zeros where there is no part."""
    full = [np.zeros((len(A), problem.rank), dtype=problem.data.dtype) for A in parts]
    for A, part in zip(full, parts, strict=True):
        A[:, : part.shape[1]] = part
    return problem.tied(tuple(full))


def importance(problem: Problem, parts: Factors) -> np.ndarray:
    """By how much the loss rises without each part T: `<X - [[A]], T> + |T|^2 / 2`."""
    A, grams = parts[0].astype(np.float64), part_products(problem, parts)
    return np.einsum("ik,ik->k", A, problem.data.cross(parts, 0)) - grams.sum(axis=1) + np.diag(grams) / 2
