"""Sparsity budgets over groups of parts: exact updates of whole parts, at a common price of sparsity.

Potluru, Le Roux, Pearlmutter, Hershey and Brand (2013), Coordinate descent for mixed-norm NMF.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import kernels
from ..checks import POSITIVE_INT
from ..structures import GroupSparsity, NonNegative
from .base import require
from .block import Update, least_squares_only
from .gcd import GCD


@dataclass(frozen=True)
class MixedNorm(GCD):
    """A factor with `GroupSparsity` part by part: each to its best value with its own sum held; then `rounds` times all
    parts of a group at one price of their sums, which moves budget to where it gains most, and again with sums held,
    brought back to the budget; where that is no descent, all parts of all groups at once, by the exact projection of a
    majoriser. The other factor by greedy coordinate descent (`eps` and `updates` as in `GCD`).

    The paper moves budget between two parts at a time, on disjoint sets of entries, by a search over a grid.

    Parameters
    ----------
    eps : float
        A row is done once no entry gains more than this share of the largest gain.
    updates : int
        The most updates of a row, in multiples of the rank.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.
    rounds : int
        How often budget is moved within a group in an update.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> budget = pw.structures.GroupSparsity(sparsity=0.6)
    >>> result = pw.factorize(X, 3, structure_H=budget, solver=pw.solvers.MixedNorm(rounds=1), random_state=0)
    >>> result.certificate.feasible
    True
    """

    rounds: int = 2

    kernels = ("numpy", "mixed_norm", *GCD.kernels)

    def __post_init__(self):
        super().__post_init__()
        require(self, rounds=POSITIVE_INT)

    def supports(self, problem):
        if why := least_squares_only(self, problem):
            return why
        budgets = [isinstance(s, GroupSparsity) and not s.chosen for s in problem.structures]
        if not any(budgets):
            return "MixedNorm needs GroupSparsity(...) in a factor, without further structures there"
        others = tuple(NonNegative() if budget else s for budget, s in zip(budgets, problem.structures, strict=True))
        return super().supports(replace(problem, structures=others))

    def prefer(self, problem):
        return 3.0, "exact updates of parts that share a sparsity budget"

    def update(self, problem, mode, state, rows):
        structure = problem.structures[mode]
        if not isinstance(structure, GroupSparsity):
            return super().update(problem, mode, state, rows)
        A = state.points[mode]
        gram, cross = state.expansions[mode].around(A)
        groups = [np.array(group) for group in structure.members(problem.rank)]
        budgets = structure.lengths, structure.totals
        factor, gain = kernels.of(A).mixed_norm(A, cross, gram, groups, *budgets, self.rounds)
        return Update(factor, problem.relative_gain(np.array([gain])))
