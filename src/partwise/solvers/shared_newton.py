"""Newton's method for KL on the rows of a factor, with one Hessian for all of them, up to scales."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from .. import kernels
from ..kernels.records import Box, Chosen, EntryLoss, RowScales, Wanted
from ..losses.expansions import SecondOrder
from ..problem import Factors, Problem, largest
from ..structures import Structure
from .base import Step
from .block import Momentum, State, Update, retreat
from .newton import WIDE, Newton

# over a row, and the share of what its first one moved it at which it has had enough: with 4 and 0.05 it took twice the
# iterations on faces. Of eight settings from 8 to 20 sweeps none was better on all data; this one was chosen by the
# default call on faces
SWEEPS, EPS = 10, 5e-3
FAR = 8  # times what rows can gain on average: those that can gain more have steps of their own
CAREFUL = 3  # iterations at the beginning that look at every row
BETA, MOST = 0.3, 0.4  # of extrapolation, at the beginning and at most: more failed every ninth iteration


@dataclass
class SharedState(State):
    losses: list[np.ndarray | None]  # of each row at the points, (dim,), where they are known; as old as the expansions
    careful: int = CAREFUL  # iterations to come that look at every row
    apart: bool = False  # whether shared steps went wrong: rows are too unlike for one Hessian, or rounding is near

    transient = (*State.transient, "losses")


@dataclass(frozen=True)
class SharedNewton(Newton):
    """The Hessian of KL in row i of a factor is `sum_j v_ij h_j h_j'`, `v = x / y^2`: as costly as `rank / 2` products
    with X for all rows. Here it is taken for `D_i^1/2 C D_i^1/2`. The diagonal D_i is that of the row, by one more
    product; the correlations C are those of `sum_j h_j h_j' / m_j`, m_j the sum of column j of the model, which are
    those of every row where the model is of rank one and meets X. In units of `D_i^1/2` all rows then have the Hessian
    C, and the cyclic coordinate descent of least squares solves for them together. Then each row goes to its best
    multiple.

    A few rows are unlike the others, and such steps would never bring them to their optimum: those whose entries can
    gain much more than the entries of others get a step with their own Hessian.

    Such steps nearly always lower the objective, but for the first ones. So they are taken unseen, and the objective is
    that of the points at which the next iteration begins, extrapolated ones too. Where it rose, the run goes back, and
    does not extrapolate in the next iteration; where that fails too, rows are too unlike for one Hessian, as in
    spectrograms, and from then on all steps are those of `Newton`. The first iterations, of which one is a
    multiplicative update, look at every row: those that a step makes worse get one with their own Hessian, or where
    that is worse, too, one of `Newton`.

    Parameters
    ----------
    steps : int
        Steps of `Newton` on a row that gets them: one that others make worse.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.
    single : bool
        Whether a run on a large array in double precision begins in single precision, with a copy of X; it
        ends in double precision wherever that makes a difference.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).gamma(1.0, size=(60, 40))
    >>> result = pw.factorize(X, 20, loss="kl", random_state=0, max_iter=300)
    >>> result.solver
    'SharedNewton(steps=1, extrapolate=True, single=True)'
    """

    kernels: ClassVar[tuple[str, ...]] = (
        *("shared_newton", "rescaled", "hessians", "given_grams", "given_slopes", "newton"),
        *("mu", "expansion", "losses", "extrapolate", "numpy"),
    )
    states: ClassVar[tuple[type, ...]] = (SharedState, Momentum)

    def supports(self, problem):
        if "newton_kl" not in problem.loss.updates:
            return f"SharedNewton minimises KL only, got the loss {problem.loss}"
        if len(problem.data.shape) != 2:
            return f"SharedNewton is for matrices, and X has {len(problem.data.shape)} modes: use Newton"
        return super().supports(problem)

    def prefer(self, problem):
        score, _ = super().prefer(problem)
        # measured: products by BLAS, and what the Hessians share; with fewer parts it is no faster
        better = 0.1 if problem.data.complete and problem.rank >= WIDE else -0.1
        return score + better, "Newton's method on whole rows with one Hessian for all, up to scales"

    def init(self, problem, factors, tol, rng):
        begun = super().init(problem, factors, tol, rng)
        return SharedState(**vars(begun), losses=[None] * len(factors))

    def step(self, problem, state):
        if not self.looks_ahead(problem, state):
            return super().step(problem, state)
        first, careful = problem.modes[0], state.careful > 0
        if state.expansions[first] is None:
            self.look(problem, state, first)
        known = state.stationarity[:], state.expansions[first], state.losses[first]
        for mode in problem.modes:
            if state.expansions[mode] is None:
                self.look(problem, state, mode, losses=careful)
            new = self.update(problem, mode, state, np.arange(len(state.points[mode])))
            state.points[mode], state.stationarity[mode], state.expansions[mode] = new.factor, new.stationarity, None
            self.advance(state, mode)
            if state.beta > 0:
                state.points[mode] = at_best_scale(problem, state, mode, state.points[mode])
        self.look(problem, state, first)
        objective = float(state.losses[first].sum()) + problem.penalty(state.points)
        if objective <= state.objective or (careful and state.beta == 0):
            self.accept(problem, state, objective)
        else:
            self.give_up(state, first, known)
        if state.apart:
            return self.step(problem, state)
        return Step(state.factors, state.objective, largest(state.stationarity))

    def looks_ahead(self, problem, state):
        return bool(problem.modes) and not problem.separable and not state.apart

    def accept(self, problem, state, objective):
        super().accept(problem, state, objective)
        state.careful = max(state.careful - 1, 0)

    def give_up(self, state: SharedState, first: int, known: tuple) -> None:
        """Go back to where the step began, of which this much is known. The next one does not extrapolate; where that
        was not to blame, a step of `Newton` comes at once."""
        state.apart = state.beta == 0 and not state.careful
        retreat(state)
        state.stationarity[:], state.expansions[first], state.losses[first] = known
        if state.apart:
            state.momentum, state.expansions[first] = super().momentum(), None

    def widened(self, problem, state):
        wide = super().widened(problem, state)  # what went wrong may have been rounding
        return replace(wide, apart=False, momentum=self.momentum()) if state.apart else wide

    def look(self, problem: Problem, state: SharedState, mode: int, losses: bool = True) -> None:
        """The loss around the points in one factor, for the next update; and of each row, where that is asked for."""
        given = problem.data, state.points, mode, problem.structures[mode].ridge
        loss: Any = problem.loss  # a Divergence
        state.expansions[mode], state.losses[mode] = loss.tangent(*given, Wanted(losses=losses))

    def momentum(self):
        return Momentum(BETA, ceiling=MOST, limit=MOST) if self.extrapolate else None

    def update(self, problem, mode, state, rows):
        if not self.looks_ahead(problem, state):
            return super().update(problem, mode, state, rows)
        A, structure, known = state.points[mode], problem.structures[mode], state.expansions[mode]
        slopes = known.slopes(A)
        if state.objective == np.inf:
            factor = self.multiplicative(problem, mode, state)
        else:
            factor = at_best_scale(problem, state, mode, shared_step(problem, state, mode, *slopes))
            self.mend(problem, mode, state, factor, slopes)
        return Update(factor, problem.relative_gain(structure.gains(A, *slopes)))

    def mend(self, problem: Problem, mode: int, state: SharedState, factor: np.ndarray, slopes: tuple) -> None:
        """Rows that are far from their optimum, and those that a step made worse where these are looked for, get a step
        with the Hessian of their own; those that even this makes worse, one of `Newton`, which is held back."""
        worse = partial(self.worse, problem, mode, state, factor)
        rows = worse() if state.careful else far_off(problem.structures[mode], state.points[mode], *slopes)
        if rows.size:
            factor[rows] = own_step(problem, state, mode, rows)
        if rows.size and state.careful and (rows := worse()).size:
            factor[rows] = super().update(problem, mode, state, rows).factor[rows]

    def multiplicative(self, problem: Problem, mode: int, state: SharedState) -> np.ndarray:
        """A factor of the start after a multiplicative update."""
        A, structure = state.points[mode], problem.structures[mode]
        known: Any = state.expansions[mode]
        loss: Any = problem.loss
        power, least = loss.exponent(structure.ridge > 0), np.zeros(problem.rank, A.dtype)
        return kernels.of(A).mu(A, known.plus, known.minus, power, least, state.boxes[mode], np.arange(len(A)))

    def worse(self, problem: Problem, mode: int, state: SharedState, factor: np.ndarray) -> np.ndarray:
        """The rows of a factor that a step made worse."""
        A, structure = state.points[mode], problem.structures[mode]
        before = state.losses[mode] + row_penalties(structure, A)
        after = row_losses(problem, state, mode, factor) + row_penalties(structure, factor)
        rounding = np.finfo(A.dtype).eps * problem.data.row_sums(mode, 1.0)
        return np.flatnonzero(~(after <= before + rounding))


def far_off(structure: Structure, A: np.ndarray, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """The rows of a factor that have an entry with much to gain."""
    gains = structure.row_gains(A, slope, curvature)
    return np.flatnonzero(gains > FAR * gains.mean())


def own_step(problem: Problem, state: State, mode: int, rows: np.ndarray) -> np.ndarray:
    """Rows of the factor after a step of Newton's method, within their bounds."""
    A, known = state.points[mode], cast(Any, state.expansions[mode])
    entries = cast(Any, problem.loss).of_entry  # of a Divergence
    (own,), _ = problem.data.map(kernels.of(A).hessians, state.points, mode, entries, Chosen(rows))
    around = SecondOrder(known.minus[rows], known.plus[rows], own, problem.structures[mode].ridge)
    return around.newton_step(A[rows], Box(*state.boxes[mode]).of_rows(rows), (SWEEPS, EPS))


def shared_step(problem: Problem, state: State, mode: int, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """The factor after a step, within its bounds."""
    A, gram = state.points[mode], correlations(state.points, mode)
    return kernels.of(A).shared_newton(A, slope, curvature, gram, state.boxes[mode], (SWEEPS, EPS))


def at_best_scale(problem: Problem, state: State, mode: int, A: np.ndarray) -> np.ndarray:
    """A, in place of the factor, with each row at its best multiple: rows of the model then have the sums that those of
    X have, but for penalties. Where a step is much too long, that is most of what is wrong with it."""
    if not problem.data.complete:
        return A
    sums = state.points[1 - mode].sum(axis=0, dtype=np.float64)
    scales = RowScales(problem.data.row_sums(mode, 1.0), sums, float(problem.structures[mode].ridge))
    return kernels.of(A).rescaled(A, state.boxes[mode], scales)


def row_losses(problem: Problem, state: State, mode: int, A: np.ndarray) -> np.ndarray:
    """The loss of each row with A in place of the factor, (dim,)."""
    factors = [A if m == mode else B for m, B in enumerate(state.points)]
    (losses,), _ = problem.data.map(kernels.of(A).losses, factors, mode, EntryLoss(1.0))
    return losses


def row_penalties(structure: Structure, A: np.ndarray) -> np.ndarray:
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
