"""Coordinate descent for the L1 loss by weighted medians: Vandaele, Moutier and Gillis (2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from .. import kernels
from ..checks import POSITIVE_INT
from ..data.remainder import remainder
from ..init.greedy_l1 import next_part
from ..kernels.records import Box, Chosen
from ..problem import Factors, Problem, zero_components
from .base import Step, require
from .block import BlockDescent, Momentum, State, Update
from .exact_rows import exact_rows

ALONE = 100  # sweeps where the other factors are held
LIVES = 3  # how often components that became zero are re-initialised


@dataclass
class MedianState(State):
    tops: list[float] = field(default_factory=list)  # where values are counted: what each factor's are; 0 elsewhere
    lives: int = LIVES
    passes: int = 0  # of linear programs
    gained: float = 0.0  # by them
    left: float = 0.0  # what the last pass found, and was too little to go on with
    steady: bool = False  # no extrapolation, which leaves 0/1 values

    def valid(self, problem):
        return super().valid(problem) and (not any(self.tops) or math.prod(self.tops) == problem.data.level)

    @property
    def beta(self):
        return 0.0 if self.steady else super().beta


@dataclass(frozen=True)
class WeightedMedian(BlockDescent):
    """Each entry in turn to its exact best value, the others held, `sweeps` times over a row while it is at hand.

    Where X and the start are 0/1 the factors stay so (and where structures ask for it): values are counted, not sorted.
    A component that becomes zero is re-initialised from what the others leave of X.

    Such a descent can end where no single entry can gain but several together could. Extrapolation leads past many
    of these places.

    Parameters
    ----------
    sweeps : int
        Sweeps over a row while it is at hand.
    exact_blocks : bool
        Whether to solve every row as a linear program once descent has ended, and go on from there until that gains
        less than `tol` of the objective; what it gained is in `Result.details`.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, outliers=0.05, random_state=0).X
    >>> result = pw.factorize(X, 3, loss="l1", solver=pw.solvers.WeightedMedian(sweeps=2), random_state=0)
    >>> result.certificate.feasible
    True
    """

    sweeps: int = 1
    exact_blocks: bool = False
    extrapolate: bool = True
    kernels = ("numpy", "weighted_median", "residuals")
    states = (MedianState, Momentum)

    def __post_init__(self):
        require(self, sweeps=POSITIVE_INT)

    def supports(self, problem):
        if "weighted_median" not in problem.loss.updates:
            return f"WeightedMedian minimises the L1 loss only, got the loss {problem.loss}"
        if any(structure.elementwise is None for structure in problem.structures):
            return super().supports(problem)
        if problem.data.sparse and not all(s.nonnegative for s in problem.structures):
            return "WeightedMedian needs nonnegative factors where X is sparse; give X as an array, X.toarray()"
        if self.exact_blocks:
            for structure in problem.structures:
                if structure.elementwise.binary or structure.ridge or not structure.nonnegative:
                    return f"exact_blocks solves linear programs, and cannot with {structure}: leave exact_blocks out"
        return None

    def prefer(self, problem):
        return 2.0, "weighted medians, each entry to its exact best value"

    def init(self, problem, factors, tol, rng):
        state = MedianState(**vars(super().init(problem, factors, tol, rng)))
        state.tops = counted(problem, factors)
        state.steady = any(state.tops) or any(structure.elementwise.binary for structure in problem.structures)
        return state

    def rule(self, problem: Problem, mode: int, state: MedianState) -> tuple:
        """Penalty and bounds of a factor, and whether its entries are at one of these."""
        structure, box = problem.structures[mode].elementwise, state.boxes[mode]
        assert structure is not None
        if not any(state.tops):
            return box, structure.binary
        l1, lower, upper = box
        top = lower.dtype.type(state.tops[mode])
        return Box(l1, np.clip(lower, 0, top), np.clip(upper, 0, top)), True

    def expand(self, problem, mode, state):
        return None

    def update(self, problem, mode, state, rows):
        A, (box, binary) = state.points[mode], self.rule(problem, mode, state)
        sweeps = ALONE if problem.separable else self.sweeps
        rule = box, problem.structures[mode].ridge, binary, sweeps, Chosen(rows)
        (factor, n_suboptimal), (loss,) = problem.data.map(kernels.of(A).weighted_median, state.points, mode, *rule)
        return Update(factor, float(n_suboptimal.sum()) / A.size, loss if rows.size == A.shape[0] else None)

    def step(self, problem, state):
        step = super().step(problem, state)
        zero = zero_components(state.factors)
        if zero and state.lives and len(problem.modes) == len(problem.structures):
            return self.reinitialise(problem, state, zero, step)
        if self.exact_blocks and step.stationarity <= state.tol and not (problem.separable and state.passes):
            return self.solve_rows(problem, state, step)
        return step

    def solve_rows(self, problem: Problem, state: MedianState, step: Step) -> Step:
        """Every row of every factor by its linear program; where that gains too little all stays as it is, but in a
        separable problem, where rows know nothing of each other and are solved for good."""
        factors, gained = list(state.factors), 0.0
        for mode in problem.modes:
            factors[mode], gain = exact_rows(problem, factors, mode)
            gained += gain
        state.passes += 1
        if gained <= state.tol * step.objective and not (problem.separable and gained):
            state.left = float(gained)
            return step
        state.gained += float(gained)
        return restarted(state, factors, problem.objective(factors))

    def details(self, problem, state):
        if not self.exact_blocks:
            return {}
        gains = {"gained": state.gained, "left": state.left}
        return {"passes": state.passes} | {name: problem.user_objective(gain) for name, gain in gains.items()}

    def reinitialise(self, problem: Problem, state: MedianState, zero: tuple[int, ...], step: Step) -> Step:
        """Re-initialise components that are zero, if that gains."""
        state.lives -= 1
        factors, rest = [A.copy() for A in state.factors], remainder(problem.data, state.factors, problem.modes)
        for k in zero:
            part, rest = next_part(problem, rest, k)
            for mode, a in enumerate(part):
                (_, lower, upper), binary = self.rule(problem, mode, state)
                factors[mode][:, [k]] = np.where(a > 0, upper[:, [k]], lower[:, [k]]) if binary else a
        objective = problem.objective(factors)
        if objective >= step.objective:
            return step
        return restarted(state, factors, objective)


def restarted(state: MedianState, factors: list[np.ndarray], objective: float) -> Step:
    """Go on from other factors."""
    state.factors, state.objective = tuple(factors), objective
    state.points[:] = state.origins[:] = state.factors
    return Step(state.factors, objective, 1.0)


def counted(problem: Problem, factors: Factors) -> list[float]:
    """The value that all nonzero entries of each factor have, where X has one too and they make it up, as in 0/1 data:
    medians then are 0 or it. 0 where that is not so, or where penalties or bounds allow others."""
    tops = [float(A.max(initial=0)) for A in factors]
    none = [0.0] * len(tops)
    if np.prod(tops) == 0 or problem.data.level != np.prod(tops):
        return none
    for structure, A, top in zip(problem.structures, factors, tops, strict=True):
        assert structure.elementwise is not None
        _, lower, upper = structure.elementwise.box(A)
        levels = (A == 0) | (top == A), (lower <= 0) | (lower == top), (upper == 0) | (upper >= top)
        if structure.ridge or not structure.nonnegative or not all(np.all(level) for level in levels):
            return none
    return tops
