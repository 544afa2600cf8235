"""Newton coordinate descent for KL: Hsieh and Dhillon (2011), KDD, Algorithm 2."""

from dataclasses import dataclass

from .. import kernels
from ..checks import AT_LEAST_0, POSITIVE_INT
from ..losses.expansions import gram_of_others
from .base import require
from .block import RowDescent, in_full, pays_in_single
from .exact_rows import dependent

ALONE = 100  # sweeps where the other factors are held


@dataclass(frozen=True)
class NewtonKL(RowDescent):
    """A Newton step on each entry in turn, `sweeps` times over a row while it is at hand, fewer once one gains less
    than `eps` of the best one. Zeros of a sparse X cost nothing.

    Beyond the paper: a step that could raise the objective is cut short, zero rows and columns are allowed, entries at
    0 that want to stay there are skipped, and entries of X that no part reaches are given one. Where the other factor
    is held and its parts are nearly dependent, the steps are those of `Newton`, on all entries of a row at once.

    Parameters
    ----------
    sweeps : int
        The most sweeps over a row while it is at hand.
    eps : float
        A row is done once a sweep gains less than this share of the best one.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.
    single : bool
        Whether a run on a large array in double precision begins in single precision, with a copy of X; it
        ends in double precision wherever that makes a difference. On sparse data it would be no faster.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).poisson(5 * pw.datasets.make_parts(20, 12, 3, random_state=0).X)
    >>> pw.factorize(X, 3, loss="kl", solver=pw.solvers.NewtonKL(sweeps=5)).converged
    True
    """

    sweeps: int = 3
    eps: float = 0.01
    extrapolate: bool = True
    single: bool = True

    kernels = ("newton", "newton_kl", "extrapolate")

    def __post_init__(self):
        require(self, sweeps=POSITIVE_INT, eps=AT_LEAST_0)

    def supports(self, problem):
        if "newton_kl" not in problem.loss.updates:
            return f"NewtonKL minimises KL only, got the loss {problem.loss}"
        return super().supports(problem)

    def prefer(self, problem):
        return 2.5, "Newton coordinate descent, the fastest measured for KL on sparse data or with few parts"

    def begins_in_single(self, problem):
        return self.single and in_full(problem) and pays_in_single(problem)

    def row_kernel(self, problem, mode, state):
        offered = kernels.of(state.points[mode])
        if not problem.separable:
            return offered.newton_kl, (self.sweeps, self.eps)
        if dependent(gram_of_others(state.points, mode)):  # entry by entry would end early
            return offered.newton, problem.loss.of_entry, (ALONE, state.tol**2, True)
        return offered.newton_kl, (ALONE, min(self.eps, state.tol**2))
