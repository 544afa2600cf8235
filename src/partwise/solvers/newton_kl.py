"""Newton coordinate descent for KL: Hsieh and Dhillon (2011), KDD, Algorithm 2."""

from dataclasses import dataclass

from .. import kernels
from ..checks import AT_LEAST_0, POSITIVE_INT
from ..problem import gram_of
from .base import require
from .block import RowDescent
from .exact_rows import dependent

ALONE = 100  # sweeps where the other factors are held


@dataclass(frozen=True)
class NewtonKL(RowDescent):
    """A Newton step on each entry in turn, `sweeps` times over a row while it is at hand, fewer once one gains less
    than `eps` of the best one. Zeros of a sparse X cost nothing.

    Beyond the paper: a step that could raise the objective is cut short, zero rows and columns are allowed, entries at
    0 that want to stay there are skipped, and entries of X that no part reaches are given one. Where the other factor
    is held and its parts are nearly dependent, the steps are those of `Newton`, on all entries of a row at once.
    """

    sweeps: int = 3
    eps: float = 0.01
    extrapolate: bool = True

    def __post_init__(self):
        require(self, sweeps=POSITIVE_INT, eps=AT_LEAST_0)

    def supports(self, problem):
        if problem.loss.beta != 1:
            return f"NewtonKL minimises KL only, got the loss {problem.loss}"
        return super().supports(problem)

    def prefer(self, problem):
        return 2.5, "Newton coordinate descent, the fastest measured for KL on sparse data or with few parts"

    def descend_rows(self, problem, state, arguments, rows):
        kernel = kernels.of(state.points[0])
        if not problem.separable:
            return kernel.newton_kl(*arguments, (self.sweeps, self.eps), rows)
        if dependent(gram_of(state.points[1 - problem.modes[0]])):  # entry by entry would end early
            return kernel.newton(*arguments, 1.0, (ALONE, state.tol**2, True), rows)
        return kernel.newton_kl(*arguments, (ALONE, min(self.eps, state.tol**2)), rows)
