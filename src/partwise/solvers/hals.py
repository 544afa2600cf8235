"""Hierarchical alternating least squares: cyclic coordinate descent.

Cichocki and Phan (2009), IEICE Trans. E92-A; inner sweeps as in Gillis and Glineur (2012), Neural Computation
24(4); extrapolation as in Ang and Gillis (2019), Neural Computation 31(2).
"""

from dataclasses import dataclass

import numpy as np

from .. import kernels
from .base import require, whole
from .block import BlockDescent

FEWEST = 4  # sweeps over a factor, and one more for every
SHARE = 4  # sweeps' worth of multiplications in the product with X
ALONE = 100  # sweeps where the other factors are held


@dataclass(frozen=True)
class HALS(BlockDescent):
    """Each entry in turn to its best value, `sweeps` times over a factor before the next one.

    `sweeps`: a number, or None for as many as cost about as much as the product with X; a row stops earlier
    once a sweep gains less than `eps` times its first. `shuffle`: a new order of components in each step.
    """

    sweeps: int | None = None
    eps: float = 0.01
    extrapolate: bool = True
    shuffle: bool = False

    def __post_init__(self):
        require(self, sweeps=self.sweeps is None or whole(self.sweeps), eps=self.eps >= 0)

    def prefer(self, problem):
        if not self.extrapolate:
            return 1.5, "cyclic coordinate descent without extrapolation: with one sweep, scikit-learn's"
        return 2.0, "cyclic coordinate descent carries many rows at once: mostly the fastest for elementwise structures"

    def update(self, problem, mode, state, rows):
        A, (gram, cross) = state.points[mode], state.equations[mode]
        order = state.rng.permutation(problem.rank) if self.shuffle else np.arange(problem.rank)
        inner = self.inner(problem, A, state.tol)
        return kernels.of(A).hals(A, cross, gram, state.boxes[mode], order, inner, rows)

    def inner(self, problem, A, tol):
        """How many sweeps, and the share of the first one's gain at which a row has had enough."""
        if problem.separable and self.sweeps is None:
            # nothing else will change: go for the end, where gains are tol^2 of what they were
            return ALONE, min(self.eps, tol**2)
        return self.sweeps or FEWEST + problem.data.product_cost // (SHARE * A.size), self.eps
