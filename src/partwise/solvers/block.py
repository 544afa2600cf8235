"""Block descent: update one factor at a time.

What `hals`, `palm`, `gcd`, `mu`, `newton`, `newton_kl` and `weighted_median` share: the alternation, what is known of
the loss in each factor and when that goes stale, extrapolation between the blocks, and the measures of progress, all of
which come from work that the updates need anyway.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import kernels
from ..kernels.records import Box, Chosen
from ..losses.beta import cancels
from ..losses.expansions import OwnGrams
from ..problem import Expansion, Factors, Problem, largest
from ..structures import Structure
from .base import Solver, Step, feasible
from .exact_rows import dependent, least_squares_rows

LARGE = 1 << 17  # nonzeros: with fewer, single precision gains nothing
FAR = 50  # the largest powers of two of units, bounds and penalties whose squares fit in single precision
ALONE = 20  # rounds over a row that has its own Gram matrix, where the other factors are held


@dataclass
class Momentum:
    """How far to extrapolate, and how that adapts (Ang and Gillis 2019, section 3.4)."""

    beta: float = 0.5  # the present step beyond the new point, in units of the last step
    ceiling: float = 1.0  # beta does not grow beyond this
    growth: float = 1.05
    ceiling_growth: float = 1.01
    shrink: float = 1.5
    limit: float = 1.0  # the ceiling does not grow beyond this
    rest: int = 1  # steps to come without extrapolation: the first ones, and one after a failure, so that it succeeds
    brief: bool = False  # whether updates are kept short while it rests

    transient: ClassVar[tuple[str, ...]] = ("growth", "ceiling_growth", "shrink", "brief")

    def valid(self, problem: Problem) -> bool:
        return all(0 <= number <= 1 for number in (self.beta, self.ceiling, self.limit))

    @property
    def current(self) -> float:
        return 0.0 if self.rest else self.beta

    def succeed(self) -> None:
        if self.rest:
            self.rest -= 1
            return
        self.beta = min(self.ceiling, self.growth * self.beta)
        self.ceiling = min(self.limit, self.ceiling_growth * self.ceiling)

    def fail(self) -> None:
        self.ceiling = self.beta
        self.beta /= self.shrink
        self.rest = 1


@dataclass
class State:
    """Where a run is. Arrays are replaced, never written to: several names may stand for one."""

    factors: Factors  # the best so far
    points: list[np.ndarray]  # where the next update starts: the factors, extrapolated, within their bounds
    origins: list[np.ndarray]  # the last update of each factor, before extrapolation
    expansions: list[Expansion | None]  # of the objective in each factor, None when stale
    boxes: list[Any]  # (l1, lower, upper) of each mode, as kernels take them; the structure where that is not all
    momentum: Momentum | None  # None: no extrapolation
    rng: np.random.RandomState
    tol: float
    objective: float  # at the factors
    stationarity: list[float]  # the latest estimate of each mode, from before its last update

    transient: ClassVar[tuple[str, ...]] = ("expansions", "boxes", "rng", "tol")

    def valid(self, problem: Problem) -> bool:
        return all(feasible(factors, problem) for factors in (self.factors, self.points, self.origins))

    @property
    def beta(self) -> float:
        return self.momentum.current if self.momentum else 0.0

    @property
    def brief(self) -> bool:
        return self.momentum is not None and self.momentum.brief and self.momentum.rest > 0


class Update(NamedTuple):
    """What an update of one factor found."""

    factor: np.ndarray
    stationarity: float  # of this mode, before the update or on the way, maybe an estimate
    fit: float | None = None  # the loss with the new factor, where it is known without further work


class BlockDescent(Solver):
    """What alternating solvers share: one factor after the other, with extrapolation where a field `extrapolate` is
    True. Subclasses give `update` and say which problems they support.

    Examples
    --------
    >>> import partwise as pw
    >>> isinstance(pw.solvers.HALS(), pw.solvers.BlockDescent)
    True
    """

    extrapolate: bool
    states: ClassVar[tuple[type, ...]] = (State, Momentum)

    @abstractmethod
    def update(self, problem: Problem, mode: int, state: State, rows: np.ndarray) -> Update:
        """`state.points[mode]` with the given rows improved, from `state.expansions[mode]`."""

    def supports(self, problem):
        for mode in problem.modes:
            entries = problem.structures[mode].elementwise
            if entries is None:
                name = type(self).__name__
                return f"{name} needs structures that act entry by entry, got {problem.structures[mode]}"
            if entries.binary:
                what = "cannot hold entries at one of two values: Binary() goes with the losses 'frobenius' and 'l1'"
                return f"{type(self).__name__} {what}"
        return None

    def expand(self, problem: Problem, mode: int, state: State) -> Expansion | None:
        """What `update` needs to know of the objective in this factor; kept until another factor changes."""
        return problem.expansion(state.points, mode)

    def beyond(self, new: np.ndarray, old: np.ndarray, beta: float, box: tuple | Structure) -> np.ndarray:
        """A point beyond the last step of a factor, within its bounds, or its structure."""
        if isinstance(box, Structure):
            return box.nearest(new + new.dtype.type(beta) * (new - old), 0.0)
        return kernels.of(new).extrapolate(new, old, beta, box)

    def init(self, problem, factors, tol, rng):
        return State(
            factors=tuple(factors),
            points=list(factors),
            origins=list(factors),
            expansions=[None] * len(factors),
            boxes=[
                s.elementwise.box(A) if s.elementwise else s for s, A in zip(problem.structures, factors, strict=True)
            ],
            momentum=self.momentum() if len(problem.modes) > 1 else None,
            rng=rng,
            tol=tol,
            objective=np.inf,  # so that the first step, which does not extrapolate, is taken
            stationarity=[0.0] * len(factors),
        )

    def widened(self, problem, state):
        fresh = self.init(problem, problem.taken(state.factors), state.tol, state.rng)
        changed = {name: getattr(fresh, name) for name in ("factors", *state.transient)}
        points, origins = (list(problem.taken(factors)) for factors in (state.points, state.origins))
        objective = problem.objective(fresh.factors)  # the one known is off by rounding, and would undo steps
        return replace(state, points=points, origins=origins, objective=objective, **changed)

    def known(self, problem, state, factors):
        """Least squares is known in the first factor at the start, in the last one after a step that was accepted, and
        throughout where the others are held. What a solver expands in a way of its own may be something else."""
        own = type(self).expand is not BlockDescent.expand
        if own or not problem.quadratic or not problem.modes:
            return {}
        first = problem.modes[0]
        if state.objective == np.inf and state.expansions[first] is None:
            state.expansions[first] = self.expand(problem, first, state)
        same = [point is A for point, A in zip(state.points, factors, strict=True)]
        return {
            mode: expansion
            for mode, expansion in enumerate(state.expansions)
            if expansion is not None and all(same[:mode] + same[mode + 1 :])
        }

    def step(self, problem, state):
        modes = problem.modes
        if not modes:
            return Step(state.factors, problem.objective(state.factors), 0.0)
        last, known = modes[-1], state.stationarity[:]
        for mode in modes[:-1]:
            self.descend(problem, mode, state)
            self.advance(state, mode)
        # the points are feasible, all extrapolated, the last one where the solver looks ahead: together they are the
        # candidate
        objective = self.reached(problem, state, self.descend(problem, last, state)) + problem.penalty(state.points)
        if objective <= state.objective or state.beta == 0:
            self.accept(problem, state, objective)
        else:
            retreat(state)
            state.stationarity[:] = known  # what was seen on the way speaks of points that are given up
        return Step(state.factors, state.objective, largest(state.stationarity))

    def momentum(self) -> Momentum | None:
        return Momentum() if self.extrapolate else None

    def looks_ahead(self, problem: Problem, state: State) -> bool:
        """Whether a step is judged where the next one begins, all factors extrapolated: the loss there may come with
        what the next update needs."""
        return False

    def reached(self, problem: Problem, state: State, update: Update) -> float:
        """The loss of the candidate, after the update of the last factor."""
        last = problem.modes[-1]
        return problem.fit(state.points, last, state.expansions[last]) if update.fit is None else update.fit

    def descend(self, problem: Problem, mode: int, state: State) -> Update:
        """Update one factor; what is known of the objective in the others is then stale."""
        A = state.points[mode]
        rows = np.arange(A.shape[0])
        if problem.separable:
            # rows that are done stay as they are, whatever the others still need
            lasting = state.expansions[mode] if problem.quadratic else None
            expansion = lasting or problem.expansion(state.points, mode)
            left = problem.row_stationarity(state.points, mode, expansion)
            if state.objective < np.inf:  # in the first step all move: at W = 0 the measure may see nothing to gain
                rows = np.flatnonzero(~(left <= max(state.tol, np.finfo(A.dtype).eps)))
            state.expansions[mode] = expansion
        elif state.expansions[mode] is None:
            state.expansions[mode] = self.expand(problem, mode, state)
        update = self.update(problem, mode, state, rows)
        state.points[mode] = update.factor
        if problem.separable and problem.quadratic:
            state.points[mode] = least_squares_rows(problem, state.points, mode, expansion, rows)
        if problem.separable:
            state.stationarity[mode] = largest(left)
        else:
            state.stationarity[mode] = update.stationarity
        for other, known in enumerate(state.expansions):
            if other != mode or (known is not None and not known.exact):  # least squares is known everywhere
                state.expansions[other] = None
        return update

    def advance(self, state: State, mode: int) -> None:
        """Extrapolate a factor that was just updated."""
        new, old = state.points[mode], state.origins[mode]
        state.origins[mode] = new
        if state.beta > 0:
            state.points[mode] = self.beyond(new, old, state.beta, state.boxes[mode])

    def accept(self, problem: Problem, state: State, objective: float) -> None:
        state.factors, state.objective = tuple(state.points), objective
        if not self.looks_ahead(problem, state):
            self.advance(state, problem.modes[-1])
        if state.momentum:
            state.momentum.succeed()


class RowDescent(BlockDescent):
    """Solvers whose updates look at the rows of X themselves; subclasses give `descend_rows`."""

    @abstractmethod
    def row_kernel(self, problem: Problem, mode: int, state: State) -> tuple:
        """The row kernel to use, and what it takes beside rows, factors, box and ridge."""

    def expand(self, problem, mode, state):
        return None

    def update(self, problem, mode, state, rows):
        kernel, *own = self.row_kernel(problem, mode, state)
        rule = state.boxes[mode], problem.structures[mode].ridge, *own, Chosen(rows)
        (factor,), (gains, fit) = problem.data.map(kernel, state.points, mode, *rule)
        return Update(factor, problem.relative_gain(gains), fit if rows.size == len(factor) else None)


def retreat(state: State) -> None:
    """The candidate was worse: start again from the factors, without extrapolation for one step."""
    state.points[:] = state.origins[:] = state.factors
    state.expansions[:] = [None] * len(state.factors)
    if state.momentum and state.momentum.current > 0:  # else it was not to blame
        state.momentum.fail()


def least_squares_only(solver: Solver, problem: Problem) -> str | None:
    """The sentence of solvers that work on the normal equations."""
    if not problem.loss.quadratic:
        return f"{type(solver).__name__} minimises least squares only, got the loss {problem.loss}"
    return None


def complete_only(solver: Solver, problem: Problem) -> str | None:
    """The sentence of solvers for which all entries are observed, and count alike."""
    if why := least_squares_only(solver, problem):
        return why
    if problem.data.complete:
        return None
    name = type(solver).__name__
    return f"{name} needs data without missing entries, in which all count alike: leave the solver out, or fill them in"


def pays_in_single(problem: Problem) -> bool:
    """Whether an alternation on this problem takes much less time in single precision than in double."""
    data = problem.data
    large = data.dtype == np.float64 and LARGE <= data.n_nonzeros <= data.most_in_single
    if not large or len(problem.modes) < 2 or abs(sum(problem.exponents)) > FAR:
        return False
    return all(map(is_moderate, problem.structures))


def in_full(problem: Problem) -> bool:
    """Whether all entries of X are visited, and count alike: single precision saves nothing where a few are fetched."""
    few = problem.data.density < problem.loss.sparse_below(nonnegative=True)
    return problem.data.complete and not few and not problem.loss.needs_double


def is_moderate(structure: Structure) -> bool:
    """Whether bounds and penalties fit in single precision, with what is computed of them."""
    entries = structure.elementwise
    if entries is None:
        return False
    sizes = map(np.abs, (entries.l1, entries.l2, entries.lower, entries.upper))
    return all(np.max(size, where=np.isfinite(size), initial=0.0) <= 2.0**FAR for size in sizes)


class Sweeps(NamedTuple):
    """How rows are brought down by coordinate descent (`kernels.own_grams`), and the order of the components."""

    sweeps: int
    eps: float
    greedy: bool
    order: np.ndarray


def own_rows(problem: Problem, mode: int, state: State, rows: np.ndarray, inner: Sweeps) -> Update:
    """The update of rows that have their own Gram matrices."""
    *sweeps, order = inner
    known, (l1, *bounds), of = state.expansions[mode], state.boxes[mode], kernels.of(state.points[mode])
    assert isinstance(known, OwnGrams)
    A, known = of.columns(state.points[mode], order), known.in_order(order)
    box = Box(l1, *(of.columns(bound, order) for bound in bounds))
    structure = problem.structures[mode].elementwise
    assert structure is not None
    signed = box.l1 > 0 and not structure.nonnegative  # penalties there are not linear
    exact = problem.separable and not signed and not structure.binary and dependent(known.others)
    rounds = ALONE if problem.separable else 1
    factor, gains, squares = known.descend(A, box, (*sweeps, structure.binary, rounds, exact), rows)
    told = of.columns(factor, np.argsort(order)), problem.relative_gain(gains)
    if rows.size < len(factor) or mode != problem.modes[-1]:
        return Update(*told)
    model = known.square_with(factor, squares) - known.ridge * of.inner(factor, factor)
    fit = 0.5 * (problem.data.norm2 - 2 * of.inner(factor, known.cross) + model)
    return Update(*told, None if cancels(problem.data, fit) else max(fit, 0.0))


def quadratic_only(solver: Solver, kernel: str, problem: Problem) -> str | None:
    """The sentence of solvers that lower a quadratic: the loss itself, or one that lies above it."""
    if problem.loss.quadratic or kernel not in problem.loss.updates:
        return least_squares_only(solver, problem)
    return None
