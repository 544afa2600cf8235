"""Newton's method for KL on the rows of a factor, with one Hessian for all of them, up to scales."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import kernels
from ..kernels.records import Box, EntryLoss
from ..problem import Factors, Problem
from ..structures import Structure
from .block import State, Update
from .newton import Newton

SWEEPS, EPS = 4, 0.05  # over a row, and the share of what its first one moved it at which it has had enough


@dataclass(frozen=True)
class SharedNewton(Newton):
    """The Hessian of KL in row i of a factor is `sum_j v_ij h_j h_j'`, `v = x / y^2`: as costly as `rank / 2` products
    with X for all rows. Here it is taken for `D_i^1/2 C D_i^1/2`. The diagonal D_i is exact, one more product; the
    correlations C are those of `sum_j h_j h_j' / m_j`, m_j the sum of column j of the model, which are those of every
    row where the model is of rank one and meets X. In units of `D_i^1/2` all rows then have the Hessian C, and the
    cyclic coordinate descent of least squares solves for them together.

    Rows that such a step would make worse, which are many in the first steps and hardly any later, get one of `Newton`,
    as all do in the first one.

    Parameters
    ----------
    steps : int
        Steps on each row in an update.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).gamma(1.0, size=(60, 40))
    >>> result = pw.factorize(X, 20, loss="kl", random_state=0, max_iter=300)
    >>> result.solver
    'SharedNewton(steps=1, extrapolate=True)'
    """

    kernels: ClassVar[tuple[str, ...]] = ("newton", "hals", "expansion", "losses", "extrapolate", "numpy")

    def supports(self, problem):
        if "newton_kl" not in problem.loss.updates:
            return f"SharedNewton minimises KL only, got the loss {problem.loss}: use Newton"
        if len(problem.data.shape) != 2:
            return f"SharedNewton is for matrices, and X has {len(problem.data.shape)} modes: use Newton"
        return super().supports(problem)

    def prefer(self, problem):
        score, _ = super().prefer(problem)
        better = 0.1 if problem.data.complete else -0.1  # measured: products by BLAS, and what the Hessians share
        return score + better, "Newton's method on whole rows with one Hessian for all, up to scales"

    def update(self, problem, mode, state, rows):
        if problem.separable or state.objective == np.inf:
            return super().update(problem, mode, state, rows)
        A, structure = state.points[mode], problem.structures[mode]
        slopes = problem.expansion(state.points, mode).slopes(A)
        factor = shared_step(problem, state, mode, *slopes)
        before, after = (row_losses(problem, state, mode, B) for B in (A, factor))
        costs = [penalties_of(structure, B) for B in (A, factor)]
        worse = np.flatnonzero(~(after + costs[1] <= before + costs[0]))
        told = problem.relative_gain(structure.gains(A, *slopes))
        if not worse.size:
            return Update(factor, told, float(after.sum()))
        factor[worse] = super().update(problem, mode, state, worse).factor[worse]
        return Update(factor, told)


def shared_step(problem: Problem, state: State, mode: int, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """The factor after a step, within its bounds."""
    A, (l1, lower, upper) = state.points[mode], state.boxes[mode]
    unit = np.sqrt(np.where(curvature > 0, curvature, 1)).astype(A.dtype, copy=False)
    gram, every = correlations(state.points, mode), (np.arange(problem.rank), (SWEEPS, EPS), np.arange(len(A)))
    scaled, box = A * unit, Box(A.dtype.type(0), lower * unit, upper * unit)
    # an L1 penalty is linear here, where factors that have one are nonnegative
    cross = kernels.of(A).times(scaled, gram) - (slope + l1) / unit
    found, _ = kernels.of(A).hals(scaled, cross, gram, box, *every)
    return np.clip(found / unit, lower, upper)


def row_losses(problem: Problem, state: State, mode: int, A: np.ndarray) -> np.ndarray:
    """With A in place of the factor, (dim,)."""
    factors = [A if m == mode else B for m, B in enumerate(state.points)]
    (losses,), _ = problem.data.map(kernels.of(A).losses, factors, mode, EntryLoss(1.0))
    return losses


def penalties_of(structure: Structure, A: np.ndarray) -> np.ndarray:
    """Of each row, (dim,)."""
    entries = structure.elementwise
    assert entries is not None
    return entries.l1 * np.abs(A).sum(axis=1) + structure.ridge / 2 * np.square(A).sum(axis=1)


def correlations(factors: Factors, mode: int) -> np.ndarray:
    """C, (rank, rank), with ones on its diagonal."""
    A, B = factors[mode], factors[1 - mode]
    sums = np.abs(B @ A.sum(axis=0))
    relative = np.maximum(sums / (sums.max() or 1), np.finfo(A.dtype).eps ** 2)
    gram = kernels.of(B).gram((B / np.sqrt(relative)[:, None]).astype(B.dtype, copy=False))
    norms = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1))
    shared = gram / np.outer(norms, norms)
    np.fill_diagonal(shared, 1)
    return shared.astype(A.dtype, copy=False)
