"""Hierarchical alternating least squares: cyclic coordinate descent.

Cichocki and Phan (2009), IEICE Trans. E92-A; inner sweeps as in Gillis and Glineur (2012), Neural Computation
24(4); extrapolation as in Ang and Gillis (2019), Neural Computation 31(2).
"""

import copy
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from .. import kernels
from ..checks import AT_LEAST_0, Rule, is_positive_int
from ..data.names import factor_names, listed
from ..losses.expansions import OwnGrams
from ..problem import Problem
from .base import require
from .block import BlockDescent, Momentum, Sweeps, Update, own_rows, pays_in_single, quadratic_only

FEWEST = 4  # sweeps over a factor
SHARE = 2  # one sweep more for so many sweeps' worth of multiplications in the product with X
ALONE = 100  # sweeps where the other factors are held
# where fewer than this share of X are nonzeros, extrapolation begins with BETA: a tenth fewer iterations on text than
# with 0.5
FEW, BETA = 0.05, 0.3
# There, without L1, a random start begins with EASY iterations of one sweep that do not extrapolate, then AFTER: of
# 1040 starts on four texts 13 end more than 0.1% above scikit-learn's objective and 31 below, where it was 108 and 90.
# With L1, single sweeps lose parts that several keep: of 100 on k1b they leave 60, not 93.
EASY, AFTER = 3, 0.4
SWEEPS = Rule(
    "a whole number >= 1, a tuple of one for each factor",
    lambda value: all(map(is_positive_int, value)) if isinstance(value, tuple) else is_positive_int(value),
)


@dataclass(frozen=True)
class HALS(BlockDescent):
    """Each entry in turn to its best value, `sweeps` times over a factor before the next one. Where entries are missing
    or count differently, each row by its own Gram matrix, or, where most count alike, by a quadratic above the loss.

    From a random start, where less than 5% of a matrix is nonzero, and without L1, the first three iterations make one
    sweep, whatever `sweeps` says, and do not extrapolate; nor does one after an extrapolation that was undone. Fewer
    runs end in worse optima.

    Parameters
    ----------
    sweeps : int, tuple of int, or None
        Sweeps over a factor, or over each; None: as many as the product with X pays for.
    eps : float
        A row stops early once a sweep moves it by less than this share of what its first one did.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.
    shuffle : bool
        Whether components are taken in a new order each time.
    single : bool
        Whether a run on a large X in double precision begins in single precision, with a copy of X; it
        ends in double precision wherever that makes a difference.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> pw.factorize(X, 3, solver=pw.solvers.HALS(sweeps=2)).converged
    True
    """

    sweeps: int | tuple[int, ...] | None = None
    eps: float = 0.02
    extrapolate: bool = True
    shuffle: bool = False
    single: bool = True
    informed: bool = field(default=True, repr=False, init=False)  # the factors to start from are worth something

    kernels: ClassVar[tuple[str, ...]] = ("hals", "extrapolate")

    def __post_init__(self):
        require(self, sweeps=SWEEPS | None, eps=AT_LEAST_0)

    @property
    def draws(self):
        return self.shuffle

    def supports(self, problem):
        if isinstance(self.sweeps, tuple) and len(self.sweeps) != len(problem.structures):
            return f"HALS has sweeps={self.sweeps}, but there are {len(problem.structures)} factors"
        return quadratic_only(self, "hals", problem) or super().supports(problem)

    def variant(self, number, informed):
        other = copy.copy(self)
        object.__setattr__(other, "informed", informed)
        return other

    def configured(self, problem):
        if self.sweeps is not None:
            return self, ""
        if problem.separable:
            return self, "one factor is held, so each row is swept until it is done"
        ratios = [problem.data.n_nonzeros / (dim * problem.rank) for dim in problem.data.shape]
        solver = replace(self, sweeps=tuple(FEWEST + int(ratio / SHARE) for ratio in ratios))
        most, worth = (listed(f"{number:.3g}" for number in numbers) for numbers in (solver.sweeps, ratios))
        names, costs = listed(factor_names(len(ratios))), "a product with X costs as much as"
        if len(ratios) == 2:
            return solver, f"at most {most} sweeps over {names}, since {costs} {worth}"
        return solver, f"at most {most} sweeps over {names}, since {costs} {worth} of them"

    def prefer(self, problem):
        if not self.extrapolate:
            return 1.5, "cyclic coordinate descent without extrapolation: with one sweep, scikit-learn's"
        return 2.0, "cyclic coordinate descent with extrapolation, the fastest on most data measured"

    def init(self, problem, factors, tol, rng):
        state = super().init(problem, factors, tol, rng)
        if state.momentum and problem.data.density < FEW:
            easy = not self.informed and begins_easily(problem)
            state.momentum = Momentum(AFTER, rest=EASY, brief=True) if easy else Momentum(BETA)
        return state

    def begins_in_single(self, problem):
        return self.single and problem.quadratic and pays_in_single(problem)

    def update(self, problem, mode, state, rows):
        A, expansion, inner = state.points[mode], state.expansions[mode], self.inner(problem, mode, state.tol)
        order = state.rng.permutation(problem.rank) if self.shuffle else np.arange(problem.rank)
        if isinstance(expansion, OwnGrams) and (problem.separable or not expansion.mostly_known):
            return own_rows(problem, mode, state, rows, Sweeps(*inner, False, order))
        if state.brief:
            inner = 1, self.eps
        gram, cross = expansion.around(A)
        factor, gains = kernels.of(A).hals(A, cross, gram, state.boxes[mode], order, inner, rows)
        return Update(factor, problem.relative_gain(gains))

    def inner(self, problem, mode, tol):
        """How many sweeps, and the share of the first one's gain at which a row has had enough."""
        if self.sweeps is None and problem.separable:
            # nothing else will change: go for the end, where gains are tol^2 of what they were
            return ALONE, min(self.eps, tol**2)
        sweeps = self.configured(problem)[0].sweeps
        return sweeps[mode] if isinstance(sweeps, tuple) else sweeps, self.eps


def begins_easily(problem: Problem) -> bool:
    """Whether a run on data with few nonzeros begins with single sweeps: least squares on matrices, no L1 penalty."""
    plain = all(s.elementwise is not None and s.elementwise.l1 == 0 for s in problem.structures)
    return plain and problem.quadratic and len(problem.data.shape) == 2
