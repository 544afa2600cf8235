"""Newton's method on the rows of one factor after the other, for any beta-divergence and the Huber loss."""

import math
from dataclasses import dataclass
from typing import ClassVar

from .. import kernels
from ..checks import POSITIVE_INT
from ..losses.expansions import gram_of_others
from .base import require
from .block import LARGE, RowDescent, in_full, pays_in_single
from .exact_rows import dependent

ALONE = 20  # steps where the other factors are held
FEW = 0.3  # share of entries that are observed
# parts from which on whole rows were faster than single entries, for KL on dense data: on little, and on much, which is
# computed with in single precision
WIDE, WIDE_OF_MANY = 20, 8


@dataclass(frozen=True)
class Newton(RowDescent):
    """`steps` steps on each row: the quadratic model of the loss in the row, within the bounds, is minimised by
    coordinate descent, and the step held back where the objective could rise. Where the divergence is not convex
    (beta < 1, beta > 2) its concave part is taken as linear. For Huber the model is the parabola that touches the loss
    and lies above it: reweighted least squares.

    Parameters
    ----------
    steps : int
        Steps on each row in an update.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.
    single : bool
        Whether a run on a large X in double precision begins in single precision, with a copy of X; it
        ends in double precision wherever that makes a difference. Not for beta < 1, nor KL on sparse data.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X + 0.1
    >>> pw.factorize(X, 3, loss=1.5, solver=pw.solvers.Newton(steps=2)).converged
    True
    """

    steps: int = 1
    extrapolate: bool = True
    single: bool = True

    kernels: ClassVar[tuple[str, ...]] = ("newton", "extrapolate")

    def __post_init__(self):
        require(self, steps=POSITIVE_INT)

    def supports(self, problem):
        if problem.quadratic or "newton" not in problem.loss.updates:
            return (
                f"Newton takes beta-divergences, Huber, and least squares with missing entries only; got {problem.loss}"
            )
        stated = [problem.structures[mode].elementwise for mode in problem.modes]
        if any(entries and entries.l1 > 0 and not entries.nonnegative for entries in stated):
            return "Newton needs factors with L1 penalties to be nonnegative, 'nonnegative & l1(0.1)'"
        return super().supports(problem)

    def prefer(self, problem):
        if problem.loss.quadratic:
            few = problem.data.n_observed < FEW * math.prod(problem.data.shape)
            return (2.2 if few else 1.8), "each row by its own least squares, the fastest measured for few observations"
        sparse = problem.data.density < problem.loss.sparse_below(nonnegative=True)
        wide = WIDE_OF_MANY if in_full(problem) and problem.data.n_nonzeros >= LARGE else WIDE
        if "newton_kl" in problem.loss.updates and (sparse or problem.rank < wide):
            return 2.0, "Newton's method on whole rows, for KL better where X is dense and parts are many"
        return 2.8, "Newton's method on whole rows"

    def begins_in_single(self, problem):
        return self.single and in_full(problem) and pays_in_single(problem)

    def row_kernel(self, problem, mode, state):
        inner = (self.steps, 0.0, False)
        if problem.separable:
            inner = ALONE, float(state.tol) ** 2, dependent(gram_of_others(state.points, mode))
        return kernels.of(state.points[mode]).newton, problem.loss.of_entry, inner
