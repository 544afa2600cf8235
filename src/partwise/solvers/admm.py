"""SeMF: structure-enforced factorization by alternating directions, for any structure one can project onto.

Xu, Yu and Zhang (2013), An alternating direction and projection algorithm for structure-enforced matrix factorization.
Each factor has a free copy A, which sees the data, and a held copy U in its set, which does not:

    A = argmin 1/2 |X - [[A]]|^2 + <P, A - U> + penalty/2 |A - U|^2
    U = prox(A + P / penalty)
    P = P + penalty (A - U)

Beyond the paper: results are the best held copies, improved by descent within the structure, never the free ones; X is
scaled to norm `rank` where a factor can take up the scale; the test for sufficient decrease has a tolerance of its own;
components that are not needed begin anew; starts go through several first penalties until one fits.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .. import kernels
from ..checks import POSITIVE_INT, Rule, is_number
from ..data.units import comparable
from ..problem import Factors, Problem, Quadratic, gram_of
from ..structures import Structure
from .base import Solver, Step, feasible, require
from .block import State as Descent
from .block import least_squares_only
from .palm import PALM

WINDOW = 5  # iterations over which progress is averaged before the penalties are looked at (q in the paper)
GROW, SHRINK = 2.0, 5.0  # what penalties are multiplied and divided by (mu and nu)
NEAR = 5e-4  # relative differences below this are none (epsilon)
RANGE = (1e-5, 1e3)  # penalties stay between these, in units of the rank
# the first penalties of several starts, in units of the rank: where items choose among nonnegative parts, and else
LADDERS = {True: (1.0, 3.0, 1.0, 3.0), False: (0.01, 1.0, 0.1, 0.01)}
WORTH = 1e-3  # the least relative gain that counts
STALE = (60, 0.01)  # in so many iterations the error has to fall by this share, or a component is replaced
PARALLEL = 0.9  # cosine of two components, one of which is not needed
EXACT = 1e-7  # relative error at which the search has found what there is
FINISH = PALM()
ENOUGH = Rule("a number between 0 and 1", lambda value: is_number(value) and 0 < value < 1)
PENALTY = Rule(
    "a number > 0, a pair of them",
    lambda value: all(
        is_number(v) and v > 0 for v in (value if isinstance(value, tuple) and len(value) == 2 else (value,))
    ),
)


@dataclass
class Split:
    """The two copies of a factor, in the units of the search. Arrays are replaced, never written to."""

    free: np.ndarray
    held: np.ndarray
    dual: np.ndarray
    penalty: float
    gap: float = 0.0  # |A - U|
    size: float = 0.0  # |U|

    def valid(self, problem: Problem) -> bool:
        return 0 < self.penalty < math.inf

    def pull(self, gram: np.ndarray, cross: np.ndarray, scale: float) -> None:
        """The free copy to its best place; `scale` brings `cross` to the units of the search."""
        right = kernels.of(cross).pulled(self.held, self.dual, cross, self.penalty, scale)
        system = gram + gram.dtype.type(self.penalty) * np.eye(len(gram), dtype=gram.dtype)
        # an inverse is quicker to apply than a factor, and as good in an iteration that corrects itself
        self.free = kernels.of(right).dense_product(right, inverse(system), 1)

    def project(self, structure: Structure, unit: float) -> None:
        """The held copy to the nearest point of its set, and the dual after it. In the units of the search the
        objective is divided by `unit^2`, and so are penalties in the structure."""
        of = kernels.of(self.free)
        target = of.aimed(self.free, self.dual, self.penalty)
        self.held = structure.prox(target, 1 / (self.penalty * unit**2))
        self.dual, self.gap, self.size = of.parted(target, self.free, self.held, self.penalty)


class Progress(NamedTuple):
    """Errors of the free and of the held copies, and the gaps between them; sums of several iterations, too."""

    free: float = 0.0
    held: float = 0.0
    gaps: tuple[float, ...] = (0.0, 0.0)

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
    over: bool  # the search; what follows is descent
    descent: Descent

    made_anew: ClassVar[tuple[str, ...]] = ("unit",)

    def valid(self, problem: Problem) -> bool:
        with np.errstate(all="ignore"):
            sizes = [problem.fit([getattr(split, name) for split in self.splits]) for name in ("free", "held", "dual")]
        return feasible(self.factors, problem) and all(map(math.isfinite, sizes))


@dataclass(frozen=True)
class ADMM(Solver):
    """A search with adaptive penalties, then descent (`PALM`) from the best feasible factors it saw.

    `penalty`: the first penalty of W and H, in units of the rank, for X of norm `rank`: a number, or a pair. None: what
    measured best, another one for each of several starts. `adapt=False` keeps it as it is. `enough`: penalties stay as
    they are while the error falls by this share from one window of five iterations to the next. `search`: the most
    iterations of the search; `patience`: those in which the best error must fall by 0.1%. `replacements`: how often a
    component that is not needed may begin anew.
    """

    penalty: float | tuple[float, float] | None = None
    adapt: bool = True
    enough: float = 0.05
    search: int = 800
    patience: int = 300
    replacements: int = 10
    start: int = field(default=0, repr=False, init=False)  # the number of this start
    informed: bool = field(default=True, repr=False, init=False)  # the factors to start from are worth something

    max_iter = 2000
    states = (Search, Split, Progress, *PALM.states)

    def __post_init__(self):
        require(self, penalty=PENALTY | None, enough=ENOUGH)
        require(self, search=POSITIVE_INT, patience=POSITIVE_INT, replacements=POSITIVE_INT | 0)

    def supports(self, problem):
        return least_squares_only(self, problem)

    def prefer(self, problem):
        reason = "projections onto the structures, by alternating directions with adaptive penalties"
        return (0.1 if problem.separable else 1.0), reason

    def starts(self, problem):
        return len(ladder(problem)) if len(problem.modes) > 1 and not all(s.convex for s in problem.structures) else 1

    def for_start(self, number, informed):
        other = copy.copy(self)
        object.__setattr__(other, "start", number)
        object.__setattr__(other, "informed", informed)
        return other

    # -- the state -------------------------------------------------------------------------------------

    def init(self, problem, factors, tol, rng):
        rungs = ladder(problem)
        penalty = rungs[self.start % len(rungs)] if self.penalty is None else self.penalty
        penalties = penalty if isinstance(penalty, tuple) else (penalty, penalty)
        unit = unit_of(problem)
        splits = [
            Split(A / A.dtype.type(scale), A / A.dtype.type(scale), np.zeros_like(A), problem.rank * first)
            for A, scale, first in zip(factors, scales_of(problem, unit), penalties, strict=True)
        ]
        for mode in problem.modes if not self.informed else []:
            splits[mode].free = scattered(problem, mode, rng)
            splits[mode].held = np.zeros_like(splits[mode].free)
        return Search(
            factors=tuple(factors),
            objective=problem.objective(factors),
            splits=tuple(splits),
            unit=unit,
            window=Progress(),
            before=Progress(math.inf, math.inf, (math.inf, math.inf)),
            n_iter=0,
            gained=(0, math.inf),
            fresh=(0, math.inf),
            replaced=0,
            over=not problem.modes,
            descent=FINISH.init(problem, factors, tol, rng),
        )

    def kept(self, state):
        kept = super().kept(state)
        kept.splits = tuple(replace(split) for split in state.splits)
        kept.descent = FINISH.kept(state.descent)
        return kept

    # -- steps -----------------------------------------------------------------------------------------

    def step(self, problem, state):
        if state.over:
            step = FINISH.step(problem, state.descent)
            state.factors, state.objective = step.factors, step.objective
            return step
        error = self.move(problem, state)
        self.judge(problem, state, error)
        return Step(state.factors, state.objective, math.inf)  # the search is not over

    def move(self, problem: Problem, state: Search) -> float:
        """One round over the copies; the error of the free ones."""
        for mode in reversed(problem.modes):  # H first: what a start says is which parts a sample has
            gram, cross = problem.normal_equations([split.free for split in state.splits], mode)
            state.splits[mode].pull(gram, cross, 1 / state.unit)
        error = free_error(problem, state.splits[mode].free, Quadratic(gram, cross), state.unit)
        for mode in problem.modes:
            state.splits[mode].project(problem.structures[mode], state.unit)
        return error

    def judge(self, problem: Problem, state: Search, error: float) -> None:
        """See how good the held copies are, and what follows from that."""
        state.n_iter += 1
        ends_window = state.n_iter % WINDOW == 0
        factors = held_factors(problem, state)
        fit = problem.fit(factors, problem.modes[-1])
        if all(structure.exact for structure in problem.structures):
            keep_better(problem, state, factors, fit)
        elif ends_window:  # what an approximation leaves may be outside the set
            settled = tuple(s.settle(A) for s, A in zip(problem.structures, factors, strict=True))
            keep_better(problem, state, settled, problem.fit(settled))
        held = math.sqrt(2 * fit) / state.unit
        state.window = state.window.plus(Progress(error, held, tuple(split.gap for split in state.splits)))
        if ends_window:
            if self.adapt:
                adapt(problem, state, self.enough)
            state.before, state.window = state.window, Progress()
        self.replace_if_stale(problem, state, held)
        self.end_if_over(problem, state)

    def replace_if_stale(self, problem: Problem, state: Search, held: float) -> None:
        """Begin a component anew where the error no longer falls."""
        if held < (1 - STALE[1]) * state.fresh[1]:
            state.fresh = state.n_iter, held
        elif state.n_iter - state.fresh[0] >= STALE[0] and self.may_replace(problem, state):
            begin_anew(problem, state)
            state.replaced += 1
            state.fresh = state.n_iter, math.inf

    def may_replace(self, problem: Problem, state: Search) -> bool:
        able = len(problem.modes) > 1 and all(structure.replaceable for structure in problem.structures)
        return able and state.replaced < self.replacements

    def end_if_over(self, problem: Problem, state: Search) -> None:
        best = math.sqrt(2 * max(state.objective, 0.0))
        if best < (1 - WORTH) * state.gained[1]:
            state.gained = state.n_iter, best
        since = max(state.gained[0], state.fresh[0] if self.may_replace(problem, state) else 0)
        exact = best <= max(EXACT, state.descent.tol) * problem.data.norm
        if exact or state.n_iter >= self.search or state.n_iter - since >= self.patience:
            state.over = True
            state.descent = FINISH.init(problem, state.factors, state.descent.tol, state.descent.rng)

    def close(self, problem, state):
        if state.over:
            return state.factors
        descent = FINISH.init(problem, state.factors, state.descent.tol, state.descent.rng)
        for _ in range(WINDOW):
            step = FINISH.step(problem, descent)
        return step.factors


def ladder(problem: Problem) -> tuple[float, ...]:
    chosen = any(structure.separable_rows and not structure.convex for structure in problem.structures)
    return LADDERS[chosen and all(structure.nonnegative for structure in problem.structures)]


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


def held_factors(problem: Problem, state: Search) -> Factors:
    """The held copies as factors of the problem."""
    scales = scales_of(problem, state.unit)
    copies = zip((split.held for split in state.splits), scales, strict=True)
    return tuple(U if scale == 1 else U * U.dtype.type(scale) for U, scale in copies)


def keep_better(problem: Problem, state: Search, factors: Factors, fit: float) -> None:
    objective = fit + problem.penalty(factors)
    if objective < state.objective:
        state.factors, state.objective = factors, objective


def free_error(problem: Problem, A: np.ndarray, known: Quadratic, unit: float) -> float:
    """`|X - [[A]]|` of the free copies in the units of the search, from the normal equations of one of them."""
    gram, cross = known
    model = float(np.vdot(gram, gram_of(A))) - 2 * kernels.of(A).inner(A, cross) / unit
    return math.sqrt(max(problem.data.norm2 / unit**2 + model, 0.0))


def adapt(problem: Problem, state: Search, enough: float) -> None:
    """Algorithm 2 of the paper, on sums over windows: penalties grow for copies that do not come together, and shrink
    where the data are not heard."""
    now, before = state.window, state.before
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
    for split, factor in zip(state.splits, change, strict=True):
        split.penalty = min(max(split.penalty * factor, least), most)


def begin_anew(problem: Problem, state: Search) -> None:
    """The less used of two nearly parallel components, or the least used of all, becomes the sample that is fitted
    worst."""
    W, H = held_factors(problem, state)
    lengths = np.linalg.norm(H, axis=0)
    used = lengths * np.linalg.norm(W, axis=0)
    cosines = np.triu(np.abs(gram_of(H)) / np.maximum(np.outer(lengths, lengths), np.finfo(H.dtype).tiny), 1)
    pair = np.unravel_index(np.argmax(cosines), cosines.shape)
    k = min((int(i) for i in pair) if cosines[pair] > PARALLEL else range(problem.rank), key=used.__getitem__)
    gram, cross = problem.normal_equations((W, H), 0)
    left = problem.data.row_norms2(0) + np.einsum("ij,ij->i", W, W @ gram - 2 * cross)
    sample = problem.data.row(0, int(np.argmax(comparable(left, W.dtype))))
    first, second = state.splits
    size = float(np.median(np.linalg.norm(second.free, axis=0)))
    sample = sample * (size / (float(np.linalg.norm(sample)) or 1.0))
    second.free, second.dual = with_column(second.free, k, sample), with_column(second.dual, k, 0)
    second.held = problem.structures[1].prox(with_column(second.held, k, sample), 0.0)
    first.free, first.held, first.dual = (with_column(A, k, 0) for A in (first.free, first.held, first.dual))


def inverse(system: np.ndarray) -> np.ndarray:
    """Of a positive definite matrix, computed in double precision."""
    root = cho_factor(system.astype(np.float64))
    return np.ascontiguousarray(cho_solve(root, np.eye(len(system))), dtype=system.dtype)


def with_column(A: np.ndarray, k: int, column) -> np.ndarray:
    A = A.copy()
    A[:, k] = column
    return A
