"""The scale of a loss that has one, from fits made before the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..init import Given, Init
from ..problem import Problem
from ..solvers import Solver
from .limits import Clock, Limits
from .loop import Control, solve

ROUNDS, ITERATIONS = 12, 10  # of estimates, and of the solver between two
ENOUGH = 0.02  # relative change at which an estimate is left as it is


def with_scale(problem: Problem, start: Init, solver: Solver, clock: Clock) -> Problem:
    """The problem with a loss whose scale is known: it is estimated from the residuals of the start, then of a few
    iterations from there with that estimate, and so on, until it hardly changes. Nothing here depends on the random
    state of the run, so that a run which is resumed finds the same."""
    if problem.loss.scale is not None:
        return problem
    rng = np.random.RandomState(0)
    factors = start(problem, rng)
    problem = replace(problem, loss=problem.loss.estimated(problem.data, factors))
    for _ in range(ROUNDS):
        left = None if clock.limit is None else max(clock.limit - clock(), 1e-9)
        limits = Limits(max_iter=ITERATIONS, time_limit=left)
        found, _ = solve(problem, [Given(problem.to_user(factors))], solver, rng, Control(limits))
        factors, before = found.factors, problem.loss.scale
        problem = replace(problem, loss=problem.loss.estimated(problem.data, factors))
        if abs(problem.loss.scale - before) <= ENOUGH * before or found.status == "interrupted" or clock.over():
            break
    return problem
