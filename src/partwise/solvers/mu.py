"""Multiplicative updates: Lee and Seung (2001), NIPS 13."""

from dataclasses import dataclass

import numpy as np

from .. import kernels
from .block import BlockDescent


@dataclass(frozen=True)
class MU(BlockDescent):
    """`A <- A * cross / (A gram + l1)`, clipped to the bounds. Zeros stay zeros; slow, and known to everyone."""

    extrapolate: bool = False

    def supports(self, problem):
        if why := super().supports(problem):
            return why
        if problem.data.extremes[0] < 0 or not all(s.nonnegative for s in problem.structures):
            return "MU needs nonnegative data and nonnegative structures"
        return None

    def prefer(self, problem):
        return 0.0, "multiplicative updates are the slowest choice"

    def update(self, problem, mode, state, rows):
        A, (gram, cross) = state.points[mode], state.equations[mode]
        product = A @ gram
        gains = problem.structures[mode].gains(A, product - cross, np.diag(gram))
        return kernels.of(A).mu(A, product, cross, state.boxes[mode], rows), gains
