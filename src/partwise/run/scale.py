"""The scale of a loss that has one, from fits made before the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import kernels
from ..init import Given, Init
from ..problem import Factors, Problem
from ..solvers import Solver
from . import interrupts
from .limits import Clock, Limits
from .loop import Control, solve

ROUNDS, ITERATIONS = 12, 10  # of estimates, and of the solver between two
ENOUGH = 0.02  # relative change at which an estimate is left as it is


def with_scale(problem: Problem, start: Init, solver: Solver, clock: Clock) -> Problem:
    """The problem with a loss whose scale is known: a guess from X, then an estimate from the residuals after a few
    iterations with that, and so on, until it hardly changes. The random state of the run is not used, so that a run
    which is resumed finds the same."""
    if problem.loss.scale is not None:
        return problem
    rng = np.random.RandomState(0)
    factors = start(problem, rng)
    problem = replace(problem, loss=problem.loss.estimated(problem.data, factors, 0))
    for _ in range(ROUNDS):
        left = None if clock.limit is None else max(clock.limit - clock.elapsed, 1e-9)
        limits = Limits(max_iter=ITERATIONS, time_limit=left)
        found, _ = solve(problem, [Given(tuple(problem.to_user(factors)))], solver, rng, Control(limits))
        factors, before = found.factors, problem.loss.scale
        problem = replace(problem, loss=problem.loss.estimated(problem.data, factors, n_nonzeros(problem, factors)))
        if found.status == "interrupted":
            interrupts.again()  # it was meant for the run
        if found.failure:
            raise found.failure
        if close(problem.loss.scale, before) or found.status == "interrupted" or clock.over():
            break
    return problem


def n_nonzeros(problem: Problem, factors: Factors) -> int:
    """In the factors to solve for: the parameters that are not at a bound of 0."""
    return sum(int(np.count_nonzero(kernels.of(A).to_numpy(A))) for A in (factors[mode] for mode in problem.modes))


def close(new: float | None, old: float | None) -> bool:
    return new is None or old is None or abs(new - old) <= ENOUGH * old
