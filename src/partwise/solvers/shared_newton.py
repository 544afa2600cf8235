"""Newton's method for KL on the rows of a factor, with one Hessian for all of them, up to scales."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import kernels
from ..kernels.records import Box, EntryLoss
from ..problem import Factors, Problem, largest
from .base import Step
from .block import Momentum, State, Update, retreat
from .newton import Newton

SWEEPS, EPS = 4, 0.05  # over a row, and the share of what its first one moved it at which it has had enough
REFRESH = 3  # iterations that use the same curvatures
CAREFUL, LONGEST = 3, 48  # iterations that look at every row, at the beginning and after a failure, more after several


@dataclass
class SharedState(State):
    curvatures: list[np.ndarray]  # of each factor, (dim, rank)
    age: int = REFRESH  # iterations since these were computed
    careful: int = CAREFUL  # iterations to come that look at every row
    patience: int = CAREFUL  # how many these are after the next failure


@dataclass(frozen=True)
class SharedNewton(Newton):
    """The Hessian of KL in row i of a factor is `sum_j v_ij h_j h_j'`, `v = x / y^2`: as costly as `rank / 2` products
    with X for all rows. Here it is taken for `D_i^1/2 C D_i^1/2`. The diagonal D_i is exact, one more product in every
    third iteration; the correlations C are those of `sum_j h_j h_j' / m_j`, m_j the sum of column j of the model, which
    are those of every row where the model is of rank one and meets X. In units of `D_i^1/2` all rows then have the
    Hessian C, and the cyclic coordinate descent of least squares solves for them together.

    Such steps nearly always lower the objective, but for the first ones. So they are taken unseen, and the objective is
    that of the points at which the next iteration begins, extrapolated ones too: an iteration has two products for each
    factor, as many as multiplicative updates have. Where the objective rose, the run goes back, and for some iterations
    looks at every row: those that a step makes worse get one of `Newton` instead. The first iteration is a
    multiplicative update.

    Parameters
    ----------
    steps : int
        Steps of `Newton` on a row that gets them: one that a shared step makes worse.
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

    kernels: ClassVar[tuple[str, ...]] = ("newton", "hals", "mu", "expansion", "losses", "extrapolate", "numpy")
    states: ClassVar[tuple[type, ...]] = (SharedState, Momentum)

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

    def init(self, problem, factors, tol, rng):
        begun = super().init(problem, factors, tol, rng)
        return SharedState(**vars(begun), curvatures=[np.zeros_like(A) for A in factors])

    def step(self, problem, state):
        if problem.separable or not problem.modes:
            return super().step(problem, state)
        first, known, careful = problem.modes[0], state.stationarity[:], state.careful > 0
        for mode in problem.modes:
            if state.expansions[mode] is None:
                self.look(problem, state, mode)
            new = self.update(problem, mode, state, np.arange(len(state.points[mode])))
            state.points[mode], state.stationarity[mode], state.expansions[mode] = *new[:2], None
            self.advance(state, mode)
        state.age = 1 if state.age >= REFRESH else state.age + 1
        losses = self.look(problem, state, first)
        objective = float(losses.sum()) + problem.penalty(state.points)
        if objective <= state.objective or (careful and state.beta == 0):
            state.factors, state.objective = tuple(state.points), objective
            state.careful -= careful
            state.patience = state.patience if careful else max(state.patience // 2, CAREFUL)
            if state.momentum:
                state.momentum.succeed()
        else:
            retreat(state)
            state.age, state.stationarity[:] = REFRESH, known
            if not careful:
                state.careful, state.patience = state.patience, min(2 * state.patience, LONGEST)
        return Step(state.factors, state.objective, largest(state.stationarity))

    def look(self, problem: Problem, state: SharedState, mode: int) -> np.ndarray:
        """The loss around the points in one factor, for the next update; that of each row."""
        old = state.curvatures[mode] if state.age < REFRESH and not state.careful else None
        ridge = problem.structures[mode].ridge
        found, losses = problem.loss.tangent(problem.data, state.points, mode, ridge, known=old, losses=True)
        state.expansions[mode], state.curvatures[mode] = found, found.curvature
        return losses

    def update(self, problem, mode, state, rows):
        if problem.separable:
            return super().update(problem, mode, state, rows)
        A, structure, known = state.points[mode], problem.structures[mode], state.expansions[mode]
        slopes = known.slopes(A)
        factor = shared_step(problem, state, mode, *slopes)
        if state.careful:
            self.mend(problem, mode, state, factor)
        return Update(factor, problem.relative_gain(structure.gains(A, *slopes)))

    def mend(self, problem: Problem, mode: int, state: SharedState, factor: np.ndarray) -> None:
        """Rows of a factor that a step made worse get one of `Newton`; all of a start, a multiplicative update."""
        A, known, structure = state.points[mode], state.expansions[mode], problem.structures[mode]
        rows = np.arange(len(A))
        if state.objective == np.inf:
            power, least = problem.loss.exponent(structure.ridge > 0), np.zeros(problem.rank, A.dtype)
            factor[:] = kernels.of(A).mu(A, known.plus, known.minus, power, least, state.boxes[mode], rows)
            return
        before, after = (row_objectives(problem, state, mode, B) for B in (A, factor))
        worse = np.flatnonzero(~(after <= before))
        if worse.size:
            factor[worse] = super().update(problem, mode, state, worse).factor[worse]


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


def row_objectives(problem: Problem, state: State, mode: int, A: np.ndarray) -> np.ndarray:
    """With A in place of the factor: the loss of each row with its penalties, (dim,)."""
    factors, structure = [A if m == mode else B for m, B in enumerate(state.points)], problem.structures[mode]
    (losses,), _ = problem.data.map(kernels.of(A).losses, factors, mode, EntryLoss(1.0))
    entries = structure.elementwise
    assert entries is not None
    return losses + entries.l1 * np.abs(A).sum(axis=1) + structure.ridge / 2 * np.square(A).sum(axis=1)


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
