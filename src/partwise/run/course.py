"""A solver on its way: in single precision as far as that goes, where the solver asks for it, then in double precision.

An iteration in single precision moves half as many bytes, and takes little more than half the time. Whether a run has
converged is judged by the problem as posed all the same, in double precision but for a product that the last step
knows, where that tells enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..init import Init
from ..problem import Expansion, Factors, Measured, Problem, largest
from ..solvers import Solver, Step

NOISE = 2.0**-26  # of `size^2`: by how much rounding can hide that the objective falls
EXACT = 2.0**-16  # of `size^2`: in least squares so small an objective is lost in the rounding of a difference
# a stationarity that a product with X in single precision changes by at most half a percent: on six data sets, from the
# starts of runs to their ends, it changed by up to 2.4e-8
ROUGH = 2.0**-16


@dataclass
class Course:
    """A solver, its state, and the problem that it works on: the one posed, or the same in single precision."""

    problem: Problem  # as posed
    working: Problem
    solver: Solver
    state: Any
    latest: tuple[Factors, Factors] = ((), ())  # the last ones `taken`, as they were and as posed

    @property
    def in_single(self) -> bool:
        return self.working is not self.problem

    def step(self) -> Step:
        return self.solver.step(self.working, self.state)

    def is_spent(self, objectives: Sequence[float], done: bool) -> bool:
        """Whether single precision has done what it can: its solver is done, or rounding is too near to what steps
        gain, or to what is left. Of the last two steps, since one may be undone because it went too far; objectives are
        the user's."""
        if done or not self.in_single:
            return self.in_single
        size, user, now = self.problem.size**2, self.problem.user_objective, objectives[-1]
        gained = objectives[-3] - now if len(objectives) > 2 else np.inf
        return gained <= user(NOISE * size) or (self.problem.quadratic and now <= user(EXACT * size))

    def lowest(self, objective: float) -> float:
        """What an objective may be but for rounding; in the user's units."""
        slack = NOISE * self.problem.size**2 if self.in_single else 0.0
        return self.problem.user_objective(objective - slack)

    def widen(self) -> None:
        """Go on in double precision, without the copy of X."""
        self.state = self.solver.widened(self.problem, self.state)
        self.working = self.problem
        self.problem.__dict__.pop("in_single", None)

    def taken(self, factors: Factors) -> Factors:
        """Factors of the state, or others, as those of the problem posed: once, since new memory takes long to come."""
        if self.latest[0] is not factors:
            self.latest = factors, self.problem.taken(factors)
        return self.latest[1]

    def measure(self, factors: Factors) -> Measured:
        """The loss and the stationarity of factors, those of the state or others, by the problem as posed. In single
        precision the last step knows some of the products with X that stationarity takes."""
        problem, known = self.problem, self.solver.known(self.working, self.state, factors)
        posed = self.taken(factors)
        if not (self.in_single and known):
            return problem.precise(posed, known)
        exact = {mode: problem.expansion(posed, mode) for mode in problem.modes if mode not in known}
        if exact:
            found, rough = measured_by(problem, posed, exact), stationarities(self.working, factors, known)
            highest = largest([found.stationarity, *rough])
            if highest >= ROUGH:
                return found._replace(stationarity=highest)
        return problem.measure(posed, exact)

    def look(self, factors: Factors) -> Measured | None:
        """The loss and the stationarity of a start, the latter as far as the solver knows it anyway: a step does not
        tell more of the factors it ends with either. None where it knows nothing."""
        known = self.solver.known(self.working, self.state, factors)
        return measured_by(self.working, factors, known) if known else None


def measured_by(problem: Problem, factors: Factors, expansions: dict[int, Expansion]) -> Measured:
    """The loss by the first of some expansions around factors, the stationarity by all of them."""
    fit = problem.fit(factors, *next(iter(expansions.items())))
    return Measured(fit, largest(stationarities(problem, factors, expansions)))


def stationarities(problem: Problem, factors: Factors, expansions: dict[int, Expansion]) -> list[float]:
    """Of each mode that is known."""
    return [problem.stationarity_of(factors, mode, expansion) for mode, expansion in expansions.items()]


def starting_on(problem: Problem, solver: Solver, start: Init) -> Problem:
    """The problem that a solver begins with. Factors that are given may be better than single precision can tell."""
    return problem.in_single if solver.begins_in_single(problem) and not start.given else problem


def working_on(problem: Problem, solver: Solver, factors: Factors) -> Problem:
    """The problem that a solver with these factors works on: one that began in single precision may have left it."""
    as_posed = all(A.dtype == problem.data.dtype for A in factors)
    return problem if as_posed or not solver.begins_in_single(problem) else problem.in_single
