"""A race against scikit-learn: from the same start, who gets to the same objective first.

Both sides run step by step in one process, on the same cores; the objective of a step is `Problem.objective`, and its
time that of a second run, in which nothing is computed between steps. The target is scikit-learn's objective after 200
iterations of its solver "cd", or of "mu" where the loss is not least squares, or a relative squared error given in
advance.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from . import registry
from . import structures as s
from .data import as_data
from .data.validation import checked_random_state
from .datasets import make_parts
from .estimators.sklearn_private import nmf_updates
from .init import Random
from .problem import Factors, Problem, pose
from .run.course import Course, starting_on

ITERATIONS = 200
PATIENCE = 1.5  # times scikit-learn's time, after which a side that is not there has failed
EPS = np.finfo(np.float64).eps  # what scikit-learn takes for 0 in some of its updates
FEW = 1 << 20  # entries to warm up with
BRIEF, AGAIN = 0.2, 5  # seconds of a run whose time is the median of so many
NEAR = 1.001  # the second target, as a multiple of the first

Side = Callable[["Contest", np.ndarray, np.ndarray], Iterator[Callable[[], Factors]]]


@dataclass(frozen=True)
class Contest:
    """What is raced on."""

    name: str
    X: Any
    rank: int
    l1: float = 0.0  # penalty on every entry of both factors
    target: float | None = None  # relative squared error, instead of scikit-learn's objective
    loss: Any = "frobenius"
    iterations: int = ITERATIONS  # of scikit-learn: its objective there is the target

    @property
    def problem(self) -> Problem:
        """The judge: in the user's units."""
        structure = s.NonNegative() & s.L1(self.l1) if self.l1 else s.NonNegative()
        return pose(as_data(self.X), registry.resolve("loss", self.loss), (structure, structure), self.rank)

    @property
    def size(self) -> str:
        shape = " × ".join(map(str, self.X.shape))
        nnz = getattr(self.X, "nnz", None)
        return shape if nnz is None else f"{shape}, {nnz / np.prod(self.X.shape):.2%} nonzero"


@dataclass
class Curve:
    """Objective against time, of one side from one start."""

    times: list[float]
    objectives: list[float]

    def reaches(self, target: float) -> float | None:
        """When the objective is first at most the target."""
        return next((t for t, f in zip(self.times, self.objectives, strict=True) if f <= target), None)

    def until(self, limit: float) -> Curve:
        """Its beginning, up to the first point that is later than the limit."""
        count = int(np.searchsorted(self.times, limit, side="right")) + 1
        return Curve(self.times[:count], self.objectives[:count])


def record(steps: Iterator[Callable[[], Factors]], judge: Problem, stop: Callable[[float, float, int], bool]) -> Curve:
    """Run a side step by step; the clock stands still while the judge works."""
    curve, spent = Curve([], []), 0.0
    while True:
        start = time.perf_counter()
        factors = next(steps)
        spent += time.perf_counter() - start
        curve.times.append(spent)
        with judge.data.working():  # without threads of BLAS that are still awake in the next step
            curve.objectives.append(judge.objective(factors()))
        if stop(spent, curve.objectives[-1], len(curve.times)):
            return curve


def uninterrupted(begin: Callable[[], Iterator[Callable[[], Factors]]], count: int) -> list[float]:
    """When each of the first steps is done, where nothing else runs between them: a judge takes the caches, and lets
    threads fall asleep. The median of several runs where they are short."""
    runs = [clocked(begin(), count)]
    if runs[0][-1] < BRIEF:
        runs += [clocked(begin(), count) for _ in range(AGAIN - 1)]
    return np.median(runs, axis=0).tolist()


def clocked(steps: Iterator[Callable[[], Factors]], count: int) -> list[float]:
    times, start = [], time.perf_counter()
    for _ in range(count):
        next(steps)
        times.append(time.perf_counter() - start)
    return times


def scikit_learn(contest: Contest, W: np.ndarray, H: np.ndarray) -> Iterator[Callable[[], Factors]]:
    """The iterations of scikit-learn's solver "cd", or of "mu" where the loss is not least squares."""
    if not contest.problem.loss.quadratic:
        return multiplicative_updates(contest, W, H)
    return coordinate_descent(contest, W, H)


def coordinate_descent(contest: Contest, W: np.ndarray, H: np.ndarray) -> Iterator[Callable[[], Factors]]:
    """The iterations of scikit-learn's solver "cd"."""
    update, _, _ = nmf_updates()
    W, H, rng = W.copy(), H.copy(), checked_random_state(0)
    while True:
        update(contest.X, W, H, contest.l1, 0.0, False, rng)
        update(contest.X.T, H, W, contest.l1, 0.0, False, rng)
        yield lambda: (W, H)


def multiplicative_updates(contest: Contest, W: np.ndarray, H: np.ndarray) -> Iterator[Callable[[], Factors]]:
    """The iterations of scikit-learn's solver "mu"; its penalties act per entry, as ours here."""
    _, update_w, update_h = nmf_updates()
    beta = contest.problem.loss.degree
    gamma = 1 / (2 - beta) if beta < 1 else (1 / (beta - 1) if beta > 2 else 1.0)
    W, Ht = W.copy(), np.ascontiguousarray(H.T)
    while True:
        W, *_ = update_w(contest.X, W, Ht, beta, contest.l1, 0.0, gamma)
        if beta < 1:
            W[W < EPS] = 0
        Ht = update_h(contest.X, W, Ht, beta, contest.l1, 0.0, gamma)
        if beta <= 1:
            Ht[Ht < EPS] = 0
        yield partial(tall, W, Ht)


def tall(W: np.ndarray, Ht: np.ndarray) -> Factors:
    return W, np.ascontiguousarray(Ht.T)


def partwise(contest: Contest, W: np.ndarray, H: np.ndarray, solver="auto") -> Iterator[Callable[[], Factors]]:
    """The iterations of partwise, everything before the first of them included."""
    return iterations(contest.problem, (W, H), solver)


def whole_in_double(contest: Contest, W: np.ndarray, H: np.ndarray) -> Iterator[Callable[[], Factors]]:
    """The same in the precision of X from the beginning."""
    return iterations(contest.problem, (W, H), "auto", in_single=False)


def iterations(judge: Problem, start: Factors, solver, in_single: bool = True) -> Iterator[Callable[[], Factors]]:
    """Those of a solver, from factors in the user's units, in single precision first where that pays."""
    problem = judge.normalized()
    chosen = registry.choose(problem, solver)[0].variant(0, informed=False)
    with problem.data.working():
        working, objectives = starting_on(problem, chosen, Random()) if in_single else problem, []
        state = chosen.init(working, working.from_user(start), 0.0, checked_random_state(0))
        course = Course(problem, working, chosen, state)
        while True:
            step = course.step()
            yield partial(in_users_units, problem, step.factors)
            objectives.append(problem.user_objective(step.objective))
            if course.is_spent(objectives, step.done):
                course.widen()


def in_users_units(problem: Problem, factors: Factors) -> Factors:
    return problem.to_user(problem.taken(factors))


@dataclass
class Heat:
    """One start: the curves of all sides, and the target."""

    target: float
    curves: dict[str, Curve]

    def speed_up(self, side: str, slack: float = 1.0) -> float | None:
        """How many times sooner than scikit-learn a side was at `slack * target`; None if it did not get there."""
        theirs = self.curves["scikit-learn"].reaches(slack * self.target)
        own = self.curves[side].reaches(slack * self.target)
        return None if own is None or theirs is None else theirs / own

    def final(self, side: str) -> float:
        """The side's last objective over scikit-learn's."""
        return self.curves[side].objectives[-1] / self.curves["scikit-learn"].objectives[-1]


def race(contest: Contest, seed: int, sides: Mapping[str, Side]) -> Heat:
    """All sides from one random start; scikit-learn sets the target and the time."""
    judge = contest.problem
    W, H = Random()(judge, checked_random_state(seed))
    fixed = None if contest.target is None else contest.target * judge.data.norm2 / 2
    goal = (
        (lambda _, f, n: n >= contest.iterations)
        if fixed is None
        else (lambda _, f, n: f <= fixed or n >= 10 * ITERATIONS)
    )
    rival = record(scikit_learn(contest, W, H), judge, goal)
    target, limit = rival.objectives[-1] if fixed is None else fixed, 2 * PATIENCE * rival.times[-1]
    curves = {"scikit-learn": rival}
    for name, side in sides.items():
        curves[name] = record(side(contest, W, H), judge, lambda spent, f, n: spent > limit or (f <= target and n >= 2))
    for name, side in {"scikit-learn": scikit_learn, **sides}.items():
        curves[name].times = uninterrupted(partial(side, contest, W, H), len(curves[name].times))
    return Heat(target, {name: curve.until(PATIENCE * rival.times[-1]) for name, curve in curves.items()})


def warm_up(contest: Contest, sides: Mapping[str, Side]) -> None:
    """Compile and load what the contest needs, on both sides: a few steps on some of its rows, enough for kernels to
    work in several threads, and in both precisions."""
    few = replace(contest, X=contest.X[: max(FEW // contest.X.shape[1], 50)])
    start = Random()(few.problem, checked_random_state(0))
    for side in (scikit_learn, *sides.values(), whole_in_double):
        record(side(few, *start), few.problem, lambda spent, f, n: n >= 4)


def mean(ratios: list[float | None]) -> str:
    """The geometric mean of those that are known."""
    good = [ratio for ratio in ratios if ratio is not None]
    return f"{np.exp(np.mean(np.log(good))):.1f}" if good else "never"


def reached(ratios: list[float | None]) -> int:
    return sum(ratio is not None for ratio in ratios)


def short_contests() -> list[Contest]:
    """Generated data of three kinds, small enough for a minute."""
    return [
        Contest("dense, noisy", make_parts(400, 4000, 20, noise=0.2, random_state=0).X, 20),
        Contest("sparse counts", make_counts(8000, 6000, 20), 20),
        Contest("dense, exact parts", make_parts(500, 1000, 10, zeros=0.3, random_state=0).X, 10, target=1e-4),
    ]


def make_counts(n_samples: int, n_features: int, rank: int) -> sparse.csr_array:
    """Poisson counts of sparse parts, some two in a hundred of them nonzero; made in blocks of rows."""
    rng = np.random.default_rng(0)
    W, H = (
        rng.uniform(size=shape) * (rng.uniform(size=shape) < 0.1) for shape in ((n_samples, rank), (rank, n_features))
    )
    rate = 0.02 * n_samples * n_features / float(W.sum(axis=0) @ H.sum(axis=1))
    blocks = (rng.poisson(rate * rows @ H) for rows in np.array_split(W, max(1, n_samples // 500)))
    return sparse.csr_array(sparse.vstack([sparse.csr_array(block.astype(np.float64)) for block in blocks]))


def summary(contest: Contest, heats: list[Heat]) -> str:
    """What a person wants to know of a contest, in a line."""
    exact, near = ([heat.speed_up("partwise", slack) for heat in heats] for slack in (1.0, NEAR))
    goal = f"relative squared error {contest.target:g}" if contest.target else f"{contest.iterations} iterations"
    loss = "" if contest.problem.loss.quadratic else f", {contest.problem.loss}"
    size = f"{contest.name} ({contest.size}, rank {contest.rank}{loss})"
    return f"{size}, to scikit-learn's {goal}: {in_words(exact)}; to 0.1% above: {in_words(near)}"


def in_words(ratios: list[float | None]) -> str:
    got = reached(ratios)
    return f"{mean(ratios)} times as fast ({got} of {len(ratios)} starts)" if got else "not within 1.5 times its time"


def machine() -> str:
    load = f", load {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    return f"{hardware()}{load}."


def hardware() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
