"""The scale of a loss that has one, from fits made before the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import kernels
from ..init import Given, Init
from ..problem import Problem
from ..solvers import Solver
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
        left = None if clock.limit is None else max(clock.limit - clock(), 1e-9)
        limits = Limits(max_iter=ITERATIONS, time_limit=left)
        found, _ = solve(problem, [Given(problem.to_user(factors))], solver, rng, Control(limits))
        factors, before = found.factors, problem.loss.scale
        n_parameters = sum(np.count_nonzero(kernels.of(A).to_numpy(A)) for A in map(factors.__getitem__, problem.modes))
        problem = replace(problem, loss=problem.loss.estimated(problem.data, factors, n_parameters))
        if abs(problem.loss.scale - before) <= ENOUGH * before or found.status == "interrupted" or clock.over():
            break
    return problem
