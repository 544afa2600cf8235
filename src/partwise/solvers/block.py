"""Block descent for least squares: update one factor at a time from `gram` and `cross`.

What `gcd`, `hals` and `mu` share: the alternation, the normal equations and when they go stale, extrapolation
between the blocks, and the measures of progress, all of which come from products that the updates need anyway.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import kernels
from ..problem import Factors, Problem
from .base import Solver, Step


@dataclass
class Momentum:
    """How far to extrapolate, and how that adapts (Ang and Gillis 2019, section 3.4)."""

    beta: float = 0.5  # the present step beyond the new point, in units of the last step
    ceiling: float = 1.0  # beta does not grow beyond this
    growth: float = 1.05
    ceiling_growth: float = 1.01
    shrink: float = 1.5
    resting: bool = True  # no extrapolation in the first step, and after a failure, so that it succeeds

    @property
    def current(self) -> float:
        return 0.0 if self.resting else self.beta

    def succeed(self) -> None:
        if not self.resting:
            self.beta = min(self.ceiling, self.growth * self.beta)
            self.ceiling = min(1.0, self.ceiling_growth * self.ceiling)
        self.resting = False

    def fail(self) -> None:
        self.ceiling = self.beta
        self.beta /= self.shrink
        self.resting = True


@dataclass
class State:
    """Where a run is. Arrays are replaced, never written to: several names may stand for one."""

    factors: Factors  # the best so far
    points: list[np.ndarray]  # where the next update starts: the factors, extrapolated, within their bounds
    origins: list[np.ndarray]  # the last update of each factor, before extrapolation
    equations: list[Any]  # pairs: gram and cross of each mode, None when stale
    boxes: list[tuple]  # (l1, lower, upper) of each mode, as kernels take them
    momentum: Momentum | None  # None: no extrapolation
    rng: np.random.RandomState
    tol: float
    objective: float  # at the factors
    stationarity: list[float]  # the latest estimate of each mode, from before its last update

    made_anew = ("equations", "boxes", "rng", "tol")

    @property
    def beta(self) -> float:
        return self.momentum.current if self.momentum else 0.0


class BlockDescent(Solver):
    """Subclasses give `update`; a field `extrapolate` turns extrapolation on."""

    extrapolate: bool
    states = (State, Momentum)

    @abstractmethod
    def update(self, problem: Problem, mode: int, state: State, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`state.points[mode]` with the given rows improved, by `state.equations[mode]`; and what each component could
        have gained before, as `Structure.gains` has it or an estimate of it, (rank,)."""

    def supports(self, problem):
        name = type(self).__name__
        if not problem.loss.quadratic:
            return f"{name} minimises least squares only, got the loss {problem.loss}"
        for mode in problem.modes:
            if problem.structures[mode].elementwise is None:
                return f"{name} needs structures that act entry by entry, got {problem.structures[mode]}"
        return None

    def init(self, problem, factors, tol, rng):
        return State(
            factors=tuple(factors),
            points=list(factors),
            origins=list(factors),
            equations=[None] * len(factors),
            boxes=[s.elementwise.box(A) for s, A in zip(problem.structures, factors)],
            momentum=Momentum() if self.extrapolate and len(problem.modes) > 1 else None,
            rng=rng,
            tol=tol,
            objective=np.inf,  # so that the first step, which does not extrapolate, is taken
            stationarity=[0.0] * len(factors),
        )

    def step(self, problem, state):
        modes = problem.modes
        if not modes:
            return Step(state.factors, problem.objective(state.factors), 0.0)
        last, known = modes[-1], state.stationarity[:]
        for mode in modes[:-1]:
            self.descend(problem, mode, state)
            advance(state, mode)
        self.descend(problem, last, state)
        # the points are feasible, all but the last extrapolated: together they are the candidate
        objective = problem.objective(state.points, (last, *state.equations[last]))
        if objective <= state.objective or state.beta == 0:
            accept(problem, state, objective)
        else:
            retreat(state)
            state.stationarity[:] = known  # what was seen on the way speaks of points that are given up
        return Step(state.factors, state.objective, max(state.stationarity))

    def descend(self, problem: Problem, mode: int, state: State) -> None:
        """Update one factor; the normal equations of the others are then stale."""
        if state.equations[mode] is None:
            state.equations[mode] = problem.normal_equations(state.points, mode)
        A = state.points[mode]
        rows = np.arange(A.shape[0])
        if problem.separable:
            # rows that are done stay as they are, whatever the others still need
            gram, cross = state.equations[mode]
            left = problem.row_stationarity(state.points, A @ gram - cross, mode)
            rows = np.flatnonzero(left > max(state.tol, np.finfo(A.dtype).eps))
            state.points[mode], _ = self.update(problem, mode, state, rows)
            state.stationarity[mode] = float(np.max(left, initial=0.0))
        else:
            state.points[mode], gains = self.update(problem, mode, state, rows)
            state.stationarity[mode] = problem.relative_gain(gains)
        for other in range(len(state.points)):
            if other != mode:
                state.equations[other] = None


def advance(state: State, mode: int) -> None:
    """Extrapolate a factor that was just updated."""
    new, old = state.points[mode], state.origins[mode]
    state.origins[mode] = new
    if state.beta > 0:
        state.points[mode] = kernels.of(new).extrapolate(new, old, state.beta, state.boxes[mode])


def accept(problem: Problem, state: State, objective: float) -> None:
    state.factors = tuple(state.points)
    state.objective = objective
    advance(state, problem.modes[-1])
    if state.momentum:
        state.momentum.succeed()


def retreat(state: State) -> None:
    """The candidate was worse: start again from the factors, without extrapolation for one step."""
    state.points[:] = state.origins[:] = state.factors
    state.equations[:] = [None] * len(state.factors)
    if state.momentum:
        state.momentum.fail()
