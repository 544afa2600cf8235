"""Multiplicative updates: Lee and Seung (2001), NIPS 13; for all beta-divergences, Fevotte and Idier (2011), Neural
Computation 23(9); with extrapolation, Hien, Leplat and Gillis (2024), block majorization minimization."""

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..problem import Factors, Kinks, Problem
from .block import BlockDescent, Update

NOTHING = 2.0**-120  # an entry below this share of the largest in its column is 0
LITTLE = 2.0**-10  # of the mean of a column: what zeros of a start become


@dataclass(frozen=True)
class MU(BlockDescent):
    """`A <- A * (minus / (plus + l1))^gamma`, within the bounds, `plus - minus` being the gradient. Zeros stay zeros.

    gamma is 1 for 1 <= beta <= 2, or what makes the objective fall for sure elsewhere. `extrapolate`: start each update
    from beyond the last, where an entry grew, and at the beginning lift zeros of the start that want to grow.
    """

    extrapolate: bool = False

    def supports(self, problem):
        if why := super().supports(problem):
            return why
        if problem.loss.beta is None:
            return f"MU minimises beta-divergences, got the loss {problem.loss}"
        if problem.data.extremes[0] < 0 or not all(s.nonnegative for s in problem.structures):
            return "MU needs nonnegative data and nonnegative structures"
        return None

    def prefer(self, problem):
        if not self.extrapolate:
            return 0.0, "multiplicative updates are the slowest choice"
        if problem.loss.beta < 1 and not problem.separable:
            return 3.0, "multiplicative updates with extrapolation: on spectra they end in better optima than Newton's"
        return 0.5, "multiplicative updates with extrapolation"

    def init(self, problem, factors, tol, rng):
        state = super().init(problem, factors, tol, rng)
        if self.extrapolate and any((factors[mode] == 0).any() for mode in problem.modes):
            points = [lifted(problem, factors, mode) if mode in problem.modes else A for mode, A in enumerate(factors)]
            if problem.objective(points) < problem.objective(factors):
                state.points[:] = points
        return state

    def update(self, problem, mode, state, rows):
        A, expansion, structure = state.points[mode], state.expansions[mode], problem.structures[mode]
        minus, plus = expansion.split(A)
        power = exponent(problem.loss.beta, structure.ridge > 0)
        # an entry that vanishes never quite does, and numbers too small for full precision are slow to work with
        least = ((0.0 if problem.separable else NOTHING) * A.max(axis=0)).astype(A.dtype)
        factor = kernels.of(A).mu(A, plus, minus, power, least, state.boxes[mode], rows)
        return Update(factor, problem.relative_gain(structure.gains(A, *expansion.slopes(A))))

    def beyond(self, new, old, beta, box):
        return super().beyond(new, np.minimum(new, old), beta, box)


def lifted(problem: Problem, factors: Factors, mode: int) -> np.ndarray:
    """A factor with the zeros a little above 0 that want to grow, and may."""
    A, structure, expansion = factors[mode], problem.structures[mode].elementwise, problem.expansion(factors, mode)
    assert structure is not None
    assert not isinstance(expansion, Kinks)
    (l1, lower, upper), (minus, plus) = structure.box(A), expansion.split(A)
    mean = A.mean(axis=0, dtype=np.float64)
    little = (LITTLE * np.where(mean > 0, mean, mean.mean() or 1.0)).astype(A.dtype)
    return np.where((A == 0) & (plus + l1 < (1 - LITTLE) * minus), np.clip(little, lower, upper), A)


def exponent(beta: float, ridge: bool) -> float:
    """gamma, so that the update goes to the minimum of a majorizer: one over the span of the powers in it. Those of the
    divergence are beta - 1 to beta, its concave part taken as linear (power 1); that of a ridge is 2."""
    lowest = min(beta - 1, 1.0)
    highest = max(beta, 1.0, 2.0 if ridge else 1.0)
    return 1 / (highest - lowest)
