"""Greedy coordinate descent: Hsieh and Dhillon (2011), KDD, Algorithm 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import kernels
from ..checks import BELOW_1, POSITIVE_INT
from ..losses.expansions import OwnGrams
from .base import require
from .block import BlockDescent, Sweeps, Update, own_rows, quadratic_only


@dataclass(frozen=True)
class GCD(BlockDescent):
    """In each row the entry whose best value gains most, until no entry of the row gains more than `eps` times
    the largest gain in the whole factor at the start (of the row, where rows are problems of their own).

    The paper's slips are put right: it updates *while* the gain is above the limit, and a gain is
    `-s (g + d s / 2)` with the present entries.

    Parameters
    ----------
    eps : float
        A row is done once no entry gains more than this share of the largest gain.
    updates : int
        The most updates of a row, in multiples of the rank.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> pw.factorize(X, 3, solver=pw.solvers.GCD(eps=0.01)).converged
    True
    """

    eps: float = 1e-3
    updates: int = 20
    extrapolate: bool = True

    kernels: ClassVar[tuple[str, ...]] = ("gcd", "extrapolate")

    def __post_init__(self):
        require(self, eps=BELOW_1, updates=POSITIVE_INT)

    def supports(self, problem):
        return quadratic_only(self, "gcd", problem) or super().supports(problem)

    def prefer(self, problem):
        return 1.0, "greedy coordinate descent suits sparse factors"

    def update(self, problem, mode, state, rows):
        A, expansion, inner = state.points[mode], state.expansions[mode], (self.updates * problem.rank, self.eps)
        if isinstance(expansion, OwnGrams):
            return own_rows(problem, mode, state, rows, Sweeps(*inner, True, np.arange(problem.rank)))
        gram, cross = expansion
        shared = not problem.separable
        factor, gains = kernels.of(A).gcd(A, cross, gram, state.boxes[mode], rows, inner, shared)
        return Update(factor, problem.relative_gain(gains))
