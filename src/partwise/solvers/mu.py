"""Multiplicative updates: Lee and Seung (2001), NIPS 13; for all beta-divergences, Fevotte and Idier (2011), Neural
Computation 23(9); with extrapolation, Hien, Leplat and Gillis (2024), block majorization minimization."""

from dataclasses import dataclass

import numpy as np

from .. import kernels
from .block import BlockDescent, Update

NOTHING = 2.0**-120  # an entry below this share of the largest in its column is 0
FAINT, TINY = 2.0**-60, 2.0**-100  # an entry below this share, or this, cannot gain anything to speak of


@dataclass(frozen=True)
class MU(BlockDescent):
    """`A <- A * (minus / (plus + l1))^gamma`, within the bounds, `plus - minus` being the gradient. Zeros stay zeros.

    gamma is 1 for 1 <= beta <= 2, or what makes the objective fall for sure elsewhere. `extrapolate`: start each update
    from beyond the last, where an entry grew.
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

    def expand(self, problem, mode, state):
        return problem.expansion(state.points, mode, curved=False)

    def update(self, problem, mode, state, rows):
        A, structure, beta = state.points[mode], problem.structures[mode], problem.loss.beta
        minus, plus = state.expansions[mode].split(A)
        power = exponent(beta, structure.ridge > 0)
        # the curvature of the majorizer, which lies above that of the objective and costs nothing
        d = (max(beta - 1, 0) * plus + max(2 - beta, 0) * minus) / np.maximum(A, FAINT * A.max(axis=0) + TINY)
        # an entry that vanishes never quite does, and numbers too small for full precision are slow to work with
        least = ((0.0 if problem.separable else NOTHING) * A.max(axis=0)).astype(A.dtype)
        factor = kernels.of(A).mu(A, plus, minus, power, least, state.boxes[mode], rows)
        return Update(factor, structure.gains(A, plus - minus, d.astype(A.dtype, copy=False)))

    def beyond(self, new, old, beta, box):
        return super().beyond(new, np.minimum(new, old), beta, box)


def exponent(beta: float, ridge: bool) -> float:
    """gamma, so that the update goes to the minimum of a majorizer: one over the span of the powers in it. Those of the
    divergence are beta - 1 to beta, its concave part taken as linear (power 1); that of a ridge is 2."""
    lowest = min(beta - 1, 1.0)
    highest = max(beta, 1.0, 2.0 if ridge else 1.0)
    return 1 / (highest - lowest)
