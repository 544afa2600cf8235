"""Multiplicative updates: Lee and Seung (2001), NIPS 13; for all beta-divergences, Fevotte and Idier (2011), Neural
Computation 23(9); with extrapolation, Hien, Leplat and Gillis (2024), block majorization minimization."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ..kernels.records import Wanted
from ..losses.expansions import Tangent
from ..problem import Factors, Problem
from .block import BlockDescent, Momentum, State, Update

NOTHING = 2.0**-120  # an entry below this share of the largest in its column is 0
# a beta below which optima of spectrograms with many parts were better than Newton's: measured at 0, worse at 0.5
LEAST_FOR_NEWTON = 0.5
LITTLE = 2.0**-10  # of the mean of a column: what zeros of a start become
EVERY = 5  # iterations: how often stationarity is measured, for which second derivatives take two products of eight;
# the loop looks at it more closely in tens and fifties (`Monitor.look_is_due`)


@dataclass
class MUState(State):
    iteration: int = 0


@dataclass(frozen=True)
class MU(BlockDescent):
    """`A <- A * (minus / (plus + l1))^gamma`, within the bounds, `plus - minus` being the gradient. Zeros stay zeros.

    gamma is 1 for 1 <= beta <= 2, or what makes the objective fall for sure elsewhere.

    But for least squares, the objective is that of the points at which the next iteration begins,
    extrapolated ones too: it comes with the slopes that the next update needs.

    Parameters
    ----------
    extrapolate : bool
        Whether to start each update from beyond the last, where an entry grew, and at the beginning lift zeros of
        the start that want to grow.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, loss="kl", solver=pw.solvers.MU(), tol=1e-3)
    >>> result.converged
    True
    """

    extrapolate: bool = False

    kernels = ("mu", "extrapolate", "lifted", "minimum", "scaled")
    states: ClassVar[tuple[type, ...]] = (MUState, Momentum)

    def supports(self, problem):
        if why := super().supports(problem):
            return why
        if "mu" not in problem.loss.updates:
            return f"MU minimises beta-divergences, got the loss {problem.loss}"
        if problem.data.extremes[0] < 0 or not all(s.nonnegative for s in problem.structures):
            return "MU needs nonnegative data and nonnegative structures"
        return None

    def prefer(self, problem):
        if not self.extrapolate:
            return 0.0, "multiplicative updates are the slowest choice"
        if problem.loss.beta < LEAST_FOR_NEWTON and not problem.separable:
            return 3.0, "multiplicative updates with extrapolation: on spectra they end in better optima than Newton's"
        return 0.5, "multiplicative updates with extrapolation"

    def init(self, problem, factors, tol, rng):
        state = MUState(**vars(super().init(problem, factors, tol, rng)))
        if self.extrapolate and any(has_zeros(factors[mode]) for mode in problem.modes):
            points = [lifted(problem, factors, mode) if mode in problem.modes else A for mode, A in enumerate(factors)]
            if problem.objective(points) < problem.objective(factors):
                state.points[:] = points
        return state

    def step(self, problem, state):
        state.iteration += 1
        return super().step(problem, state)

    def looks_ahead(self, problem, state):
        return not problem.loss.quadratic and not problem.separable

    def descend(self, problem, mode, state):
        if self.looks_ahead(problem, state) and state.expansions[mode] is None:
            state.expansions[mode] = around(problem, mode, state, state.iteration)[0]
        return super().descend(problem, mode, state)

    def reached(self, problem, state, update):
        if not self.looks_ahead(problem, state):
            return super().reached(problem, state, update)
        first, last = problem.modes[0], problem.modes[-1]
        self.advance(state, last)
        state.expansions[first], losses = around(problem, first, state, state.iteration + 1, losses=True)
        return float(losses.sum())

    def update(self, problem, mode, state, rows):
        A, expansion, structure = state.points[mode], state.expansions[mode], problem.structures[mode]
        minus, plus = expansion.split(A)
        power = problem.loss.exponent(structure.ridge > 0)
        # an entry that vanishes never quite does, and numbers too small for full precision are slow to work with
        largest = kernels.of(A).column_extremes(A)[1]
        least = ((0.0 if problem.separable else NOTHING) * largest).astype(A.dtype)
        factor = kernels.of(A).mu(A, plus, minus, power, least, state.boxes[mode], rows)
        if isinstance(expansion, Tangent) and expansion.curvature is None:
            return Update(factor, state.stationarity[mode])
        return Update(factor, problem.relative_gain(structure.gains(A, *expansion.slopes(A))))

    def beyond(self, new, old, beta, box):
        return super().beyond(new, kernels.of(new).minimum(new, old), beta, box)


def around(problem: Problem, mode: int, state: MUState, iteration: int, losses: bool = False) -> tuple:
    """The loss around the points in one factor, as far as an iteration needs it, and of each row."""
    loss: Any = problem.loss  # a Divergence
    wanted = Wanted(curvature=iteration == 1 or iteration % EVERY == 0, losses=losses)
    return loss.tangent(problem.data, state.points, mode, problem.structures[mode].ridge, wanted)


def lifted(problem: Problem, factors: Factors, mode: int) -> np.ndarray:
    """A factor with the zeros a little above 0 that want to grow, and may."""
    A, structure = factors[mode], problem.structures[mode].elementwise
    assert structure is not None
    (minus, plus), of = problem.expansion(factors, mode).split(A), kernels.of(A)
    mean = of.column_sums(A) / A.shape[0]
    little = LITTLE * np.where(mean > 0, mean, mean.mean() or 1.0)
    return of.lifted(A, (plus, of.scaled(minus, 1 - LITTLE)), little, structure.box(A))


def has_zeros(A: np.ndarray) -> bool:
    """Of a factor >= 0."""
    return bool(np.any(kernels.of(A).column_extremes(A)[0] == 0))
