"""Two sides from the same start: how long each needs to get to the same objective."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.decomposition._nmf import _update_coordinate_descent
from sklearn.utils import check_random_state

from partwise import registry
from partwise import structures as s
from partwise.data import as_data
from partwise.init import Random
from partwise.losses import Frobenius
from partwise.problem import Factors, Problem, pose

ITERATIONS = 200  # of scikit-learn: its objective there is the target
PATIENCE = 1.5  # times scikit-learn's time, after which a side that is not there has failed


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    load: Callable[[], object]
    rank: int
    asked: float  # the speed-up asked for
    judged: str  # at "exact" or "0.1%" above the target
    l1: float = 0.0  # penalty on every entry of both factors
    target: float | None = None  # relative squared error, instead of scikit-learn's objective


@dataclass
class Curve:
    """Objective against time, of one side from one start."""

    times: list[float]
    objectives: list[float]

    def reaches(self, target: float) -> float | None:
        """When the objective is first at most the target."""
        return next((t for t, f in zip(self.times, self.objectives) if f <= target), None)


def problem_of(X, row: Row) -> Problem:
    """The judge: in the user's units."""
    structure = s.NonNegative() & s.L1(row.l1) if row.l1 else s.NonNegative()
    return pose(as_data(X), Frobenius(), (structure, structure), row.rank)


def record(steps: Iterator[Callable[[], Factors]], judge: Problem, stop: Callable[[float, float, int], bool]) -> Curve:
    """Run a side step by step; the clock stands still while the judge works."""
    curve, spent = Curve([], []), 0.0
    while True:
        start = time.perf_counter()
        factors = next(steps)
        spent += time.perf_counter() - start
        curve.times.append(spent)
        curve.objectives.append(judge.objective(factors()))
        if stop(spent, curve.objectives[-1], len(curve.times)):
            return curve


def scikit_learn(X, row: Row, W: np.ndarray, H: np.ndarray) -> Iterator[Callable[[], Factors]]:
    """The iterations of scikit-learn's solver "cd"."""
    W, H, rng = W.copy(), H.copy(), check_random_state(0)
    while True:
        _update_coordinate_descent(X, W, H, row.l1, 0.0, False, rng)
        _update_coordinate_descent(X.T, H, W, row.l1, 0.0, False, rng)
        yield lambda: (W, H)


def ours(X, row: Row, W: np.ndarray, H: np.ndarray, solver="auto") -> Iterator[Callable[[], Factors]]:
    """The iterations of partwise, everything before the first of them included."""
    problem = problem_of(X, row).normalized()
    chosen, _ = registry.choose(problem, solver)
    with problem.data.working():
        state = chosen.init(problem, problem.from_user((W, H)), 0.0, check_random_state(0))
        while True:
            factors = chosen.step(problem, state).factors
            yield partial(problem.to_user, factors)


def one_start(X, row: Row, seed: int, sides: dict[str, Callable]) -> dict[str, Curve]:
    """The curves of all sides; scikit-learn sets the target and the time."""
    judge = problem_of(X, row)
    W, H = Random()(judge, check_random_state(seed))
    fixed = None if row.target is None else row.target * judge.data.norm2 / 2
    goal = None if fixed is None else (lambda _, f, n: f <= fixed or n >= 10 * ITERATIONS)
    curves = {}
    rival = record(scikit_learn(X, row, W, H), judge, goal or (lambda _, f, n: n >= ITERATIONS))
    target, limit = rival.objectives[-1] if fixed is None else fixed, PATIENCE * rival.times[-1]
    for name, side in sides.items():
        curves[name] = record(side(X, row, W, H), judge, lambda spent, f, n: spent > limit or (f <= target and n >= 2))
    return {"scikit-learn": rival, **curves}
