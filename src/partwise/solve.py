"""The one loop. It owns time, stopping, history, callbacks and the starts; a solver only steps."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .init import Init
from .problem import Factors, Measured, Problem
from .solvers import Solver


class Record(NamedTuple):
    """One line of a history, in the user's units."""

    n_iter: int
    time: float  # seconds since the start of the run
    objective: float
    stationarity: float


Callback = Callable[[Record, Factors], object]


@dataclass(frozen=True)
class Limits:
    """When to stop: at whichever comes first."""

    max_iter: int | None = None  # None: the solver's own
    tol: float = 1e-4  # stationarity
    target: float | None = None  # objective
    time_limit: float | None = None  # seconds, starts included, all of them together

    def __post_init__(self):
        whole = self.max_iter is None or (isinstance(self.max_iter, Integral) and self.max_iter >= 1)
        allowed = {
            "max_iter": ("a whole number >= 1, or None", whole),
            "tol": ("a number >= 0", is_number(self.tol) and 0 <= self.tol < np.inf),
            "target": ("a number, or None", self.target is None or is_number(self.target)),
            "time_limit": (
                "a number of seconds > 0, or None",
                self.time_limit is None or (is_number(self.time_limit) and self.time_limit > 0),
            ),
        }
        for name, (sentence, holds) in allowed.items():
            if not holds:
                raise ValueError(f"{name} must be {sentence}; got {getattr(self, name)!r}")


def is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value  # noqa: PLR0124  # not NaN


@dataclass(frozen=True)
class Run:
    """One start carried through, in the units of the problem."""

    factors: Factors
    history: tuple[Record, ...]
    status: str  # "converged", "max_iter", "target", "time_limit" or "callback"
    fit: float  # the loss, in double precision


def solve(
    problem: Problem,
    starts: Sequence[Init],
    solver: Solver,
    limits: Limits,
    rng: np.random.RandomState,
    *,
    callbacks: Sequence[Callback] = (),
) -> tuple[Run, list[float]]:
    """Run every start and keep the best; also the final objectives of all. `problem` is a normalized one."""
    clock = Clock(limits.time_limit)
    best: Run | None = None
    objectives: list[float] = []
    for start in starts:
        if best is not None and clock.over():
            break
        run = run_once(problem, start(problem, rng), solver, limits, rng, callbacks, clock)
        objectives.append(run.history[-1].objective)
        if best is None or objectives[-1] < best.history[-1].objective:
            best = run
        if run.status in ("target", "callback"):
            break
    assert best is not None
    return best, objectives


def run_once(problem, factors, solver, limits, rng, callbacks, clock) -> Run:  # noqa: PLR0917
    """The loop over iterations."""
    max_iter = limits.max_iter or solver.max_iter
    watch = Watch(problem, limits, callbacks, clock)
    with problem.data.working():
        watch.record(0, factors, *watch.measure(factors))
        state = solver.init(problem, factors, limits.tol, rng)
        for n_iter in range(1, max_iter + 1):
            factors, objective, stationarity = solver.step(problem, state)
            if status := watch.record(n_iter, factors, objective, stationarity):
                return watch.finish(factors, status)
        return watch.finish(factors, "max_iter")


class Clock:
    """Seconds since it was made, and whether they are up."""

    def __init__(self, limit: float | None):
        self.limit, self.start = limit, time.perf_counter()

    def __call__(self) -> float:
        return time.perf_counter() - self.start

    def over(self) -> bool:
        return self.limit is not None and self() >= self.limit


class Watch:
    """Keeps the history of a run and decides when it is over."""

    def __init__(self, problem: Problem, limits: Limits, callbacks: Sequence[Callback], clock: Clock):
        self.problem, self.limits, self.callbacks, self.clock = problem, limits, callbacks, clock
        self.begin = clock()
        self.history: list[Record] = []
        self.correction = 1.0  # true stationarity over a solver's estimate, when last compared
        self.exact: Measured | None = None  # at the present factors, if it is known

    def measure(self, factors: Factors) -> tuple[float, float]:
        """Objective and stationarity, computed afresh."""
        self.exact = self.problem.measure(factors)
        return self.exact.fit + self.problem.penalty(factors), self.exact.stationarity

    def record(self, n_iter: int, factors: Factors, objective: float, stationarity: float) -> str | None:
        """Add a line to the history; the reason to stop, if there is one."""
        if not math.isfinite(objective):
            raise FloatingPointError(
                f"the objective is not a finite number after {n_iter} iterations: start, bounds or penalties "
                f"are too many orders of magnitude away from X for {self.problem.data.dtype}"
            )
        self.exact = None
        converged = False
        if n_iter > 1 and self.correction * stationarity <= self.limits.tol:
            _, exact = self.measure(factors)
            self.correction = max(exact / stationarity, 1.0) if stationarity > 0 else 1.0
            stationarity, converged = exact, exact <= self.limits.tol
        record = Record(n_iter, self.clock() - self.begin, self.problem.user_objective(objective), stationarity)
        self.history.append(record)
        return self.verdict(record, factors, converged)

    def verdict(self, record: Record, factors: Factors, converged: bool) -> str | None:
        stop = self.called_off(record, factors)
        if record.n_iter == 0:
            return None
        if converged:
            return "converged"
        if self.limits.target is not None and record.objective <= self.limits.target:
            return "target"
        if self.clock.over():
            return "time_limit"
        return "callback" if stop else None

    def finish(self, factors: Factors, status: str) -> Run:
        """The last line of the history gets its numbers in full precision, and the true stationarity."""
        problem, last = self.problem, self.history[-1]
        fit, stationarity = self.exact or problem.measure(factors)
        fit = problem.precise_fit(factors, fit)
        objective = problem.user_objective(fit + problem.penalty(factors))
        self.history[-1] = last._replace(objective=objective, stationarity=stationarity)
        if status == "max_iter" and last.n_iter > 1 and stationarity <= self.limits.tol:
            status = "converged"
        return Run(factors, tuple(self.history), status, fit)

    def called_off(self, record: Record, factors: Factors) -> bool:
        if not self.callbacks:
            return False
        view = self.problem.to_user(factors)  # copies: a callback cannot touch the run
        for A in view:
            A.flags.writeable = False
        wishes = [bool(callback(record, view)) for callback in self.callbacks]  # every one is called
        return any(wishes)


def warn_if_unfinished(run: Run, limits: Limits) -> None:
    """Say how far off a run that used up its iterations is, and what to try."""
    if run.status != "max_iter" or limits.tol == 0:
        return
    last = run.history[-1]
    warnings.warn(
        f"Maximum number of iterations {last.n_iter} reached. Increase it to improve convergence. Stationarity is "
        f"{last.stationarity:.1e}, tol={limits.tol:g} asks for {last.stationarity / limits.tol:.3g} times less: "
        "raise max_iter, or loosen tol if the objective in result.history no longer moves.",
        ConvergenceWarning,
        stacklevel=3,
    )
