"""SeMF: structure-enforced factorization by alternating directions, for any structure one can project onto.

Xu, Yu and Zhang (2013), An alternating direction and projection algorithm for structure-enforced matrix factorization.
Each factor has a free copy A, which sees the data, and a held copy U in its set, which does not:

    A = argmin 1/2 |X - [[A]]|^2 + <P, A - U> + penalty/2 |A - U|^2
    U = prox(A + P / penalty)
    P = P + penalty (A - U)

Beyond the paper: results are the best held copies, improved by descent within the structure, never the free ones; X is
scaled to norm `rank` where a factor can take up the scale; the test for sufficient decrease has a tolerance of its own;
components that are not needed are re-initialised; starts go through several first penalties until one fits;
near an exact fit, where alternating directions converge slowly, descent is tried and ends the search if it gets there.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace

import numpy as np

from ..checks import POSITIVE_INT, Rule, is_number
from ..problem import Problem
from .admm_search import Progress, Search, Split, scales_of, scattered, unit_of
from .base import Solver, Step, require
from .block import least_squares_only
from .palm import PALM

WINDOW = 5  # iterations over which progress is averaged before the penalties are looked at (q in the paper)
# the first penalties of several starts, in units of the rank: where items choose among nonnegative parts, and else
LADDERS = {True: (1.0, 3.0, 1.0, 3.0), False: (0.01, 1.0, 0.1, 0.01)}
WORTH = 1e-3  # the least relative gain that counts
STALE = (60, 0.01)  # in so many iterations the error has to fall by this share, or a component is replaced
EXACT = 1e-7  # relative error at which the search has found what there is
TRIAL = 0.1  # descent is tried each time the best error has fallen to this share, at first of |X|
FINISH = PALM()
ENOUGH = Rule("a number between 0 and 1", lambda value: is_number(value) and 0 < value < 1)
PENALTY = Rule(
    "a number > 0, a tuple of one for each factor",
    lambda value: all(
        is_number(v) and v > 0 for v in (value if isinstance(value, tuple) and len(value) > 1 else (value,))
    ),
)


@dataclass(frozen=True)
class ADMM(Solver):
    """A search with adaptive penalties, then descent (`PALM`) from the best feasible factors it saw.

    Parameters
    ----------
    penalty : float, tuple of float, or None
        The first penalty of the factors, in units of the rank, for X of norm `rank`: one number, or one for each
        factor. None: what measured best, another one for each of several starts.
    adapt : bool
        Whether penalties adapt.
    enough : float
        Penalties stay as they are while the error falls by this share from one window of five iterations to the
        next.
    search : int
        The most iterations of the search.
    patience : int
        Iterations in which the best error must fall by 0.1%.
    replacements : int
        How often a component that is not needed may be re-initialised.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_sparse_codes(40, 8, 10, nonzeros=2, random_state=0)
    >>> words = {"structure_W": "sparse(2)", "structure_H": "unit_norm", "random_state": 0, "n_init": 1}
    >>> result = pw.factorize(planted.X, 10, solver=pw.solvers.ADMM(search=200), **words, tol=1e-2)
    >>> int((result.W != 0).sum(axis=1).max())
    2
    """

    penalty: float | tuple[float, ...] | None = None
    adapt: bool = True
    enough: float = 0.05
    search: int = 800
    patience: int = 300
    replacements: int = 10
    start: int = field(default=0, repr=False, init=False)  # the number of this start
    informed: bool = field(default=True, repr=False, init=False)  # the factors to start from are worth something

    max_iter = 2000
    kernels = ("numpy", "admm_free", "admm_rhs", "admm_target", "admm_dual", "few_nonzeros_fit", *PALM.kernels)
    states = (Search, Split, Progress, *PALM.states)

    def __post_init__(self):
        require(self, penalty=PENALTY | None, enough=ENOUGH)
        require(self, search=POSITIVE_INT, patience=POSITIVE_INT, replacements=POSITIVE_INT | 0)

    def supports(self, problem):
        order = len(problem.structures)
        if isinstance(self.penalty, tuple) and len(self.penalty) != order:
            return (
                f"ADMM has penalty={self.penalty}, {len(self.penalty)} numbers for {order} factors: give one for each"
            )
        return least_squares_only(self, problem)

    def prefer(self, problem):
        reason = "projections onto the structures, by alternating directions with adaptive penalties"
        return (0.1 if problem.separable else 1.0), reason

    def starts(self, problem):
        return len(ladder(problem)) if len(problem.modes) > 1 and not all(s.convex for s in problem.structures) else 1

    def variant(self, number, informed):
        other = copy.copy(self)
        object.__setattr__(other, "start", number)
        object.__setattr__(other, "informed", informed)
        return other

    # -- the state -------------------------------------------------------------------------------------

    def init(self, problem, factors, tol, rng):
        choices = ladder(problem)
        penalty = choices[self.start % len(choices)] if self.penalty is None else self.penalty
        unit, order = unit_of(problem), len(factors)
        penalties = penalty if isinstance(penalty, tuple) else (penalty,) * order
        splits = [
            Split(A / A.dtype.type(scale), A / A.dtype.type(scale), np.zeros_like(A), problem.rank * first)
            for A, scale, first in zip(factors, scales_of(problem, unit), penalties, strict=True)
        ]
        for mode in problem.modes if not self.informed else []:
            splits[mode].free = scattered(problem, mode, rng)
            splits[mode].held = np.zeros_like(splits[mode].free)
        return Search(
            factors=tuple(factors),
            objective=problem.objective(factors),
            splits=tuple(splits),
            unit=unit,
            window=Progress.filled(0.0, order),
            before=Progress.filled(math.inf, order),
            n_iter=0,
            gained=(0, math.inf),
            fresh=(0, math.inf),
            replaced=0,
            tried=problem.data.norm,
            over=not problem.modes,
            descent=FINISH.init(problem, factors, tol, rng),
        )

    def kept(self, state):
        kept = super().kept(state)
        kept.splits = tuple(replace(split) for split in state.splits)
        kept.descent = FINISH.kept(state.descent)
        return kept

    # -- steps -----------------------------------------------------------------------------------------

    def step(self, problem, state):
        if state.over:
            step = FINISH.step(problem, state.descent)
            state.factors, state.objective = step.factors, step.objective
            return step
        error = self.move(problem, state)
        self.judge(problem, state, error)
        return Step(state.factors, state.objective, math.inf)  # the search is not over

    def move(self, problem: Problem, state: Search) -> float:
        """One round over the copies; the error of the free ones."""
        for mode in reversed(problem.modes):  # H first: what a start says is which parts a sample has
            known = state.normal_equations(problem, mode)
            state.splits[mode].move(known, problem.structures[mode], state.unit)
        return state.free_error(problem, mode, known)

    def judge(self, problem: Problem, state: Search, error: float) -> None:
        """See how good the held copies are, and what follows from that."""
        state.n_iter += 1
        ends_window = state.n_iter % WINDOW == 0
        fit = state.held_fit(problem)
        if all(structure.exact for structure in problem.structures):
            if fit < state.objective:  # penalties are >= 0
                state.keep_better(problem, state.held_factors(problem), fit)
        elif ends_window:  # what an approximation leaves may be outside the set
            pairs = zip(problem.structures, state.held_factors(problem), strict=True)
            settled = tuple(A if structure.exact else structure.settle(A) for structure, A in pairs)
            state.keep_better(problem, settled, problem.fit(settled))
        held = math.sqrt(2 * fit) / state.unit
        state.window = state.window.plus(Progress(error, held, tuple(split.gap for split in state.splits)))
        if ends_window:
            if self.adapt:
                state.adapt(problem, self.enough)
            state.before, state.window = state.window, Progress.filled(0.0, len(state.splits))
        self.replace_if_stale(problem, state, held)
        self.end_if_over(problem, state)

    def replace_if_stale(self, problem: Problem, state: Search, held: float) -> None:
        """Re-initialise a component where the error no longer falls."""
        if held < (1 - STALE[1]) * state.fresh[1]:
            state.fresh = state.n_iter, held
        elif state.n_iter - state.fresh[0] >= STALE[0] and self.may_replace(problem, state):
            state.reinitialise(problem)
            state.replaced += 1
            state.fresh = state.n_iter, math.inf

    def may_replace(self, problem: Problem, state: Search) -> bool:
        able = len(problem.modes) == len(problem.structures) and all(s.replaceable for s in problem.structures)
        return able and state.replaced < self.replacements

    def end_if_over(self, problem: Problem, state: Search) -> None:
        best = math.sqrt(2 * max(state.objective, 0.0))
        if best < (1 - WORTH) * state.gained[1]:
            state.gained = state.n_iter, best
        since = max(state.gained[0], state.fresh[0] if self.may_replace(problem, state) else 0)
        exact = max(EXACT, state.descent.tol) * problem.data.norm
        if exact < best <= TRIAL * state.tried:  # near an exact fit descent is far quicker than the search
            state.tried, step = best, self.descended(problem, state)
            if math.sqrt(2 * max(step.objective, 0.0)) <= exact:
                state.factors, state.objective, best = step.factors, step.objective, exact
        if best <= exact or state.n_iter >= self.search or state.n_iter - since >= self.patience:
            state.over = True
            state.descent = FINISH.init(problem, state.factors, state.descent.tol, state.descent.rng)

    def close(self, problem, state):
        return state.factors if state.over else self.descended(problem, state).factors

    def descended(self, problem: Problem, state: Search) -> Step:
        """A few steps of descent from the best factors."""
        descent = FINISH.init(problem, state.factors, state.descent.tol, state.descent.rng)
        for _ in range(WINDOW):
            step = FINISH.step(problem, descent)
        return step


def ladder(problem: Problem) -> tuple[float, ...]:
    chosen = any(structure.separable_rows and not structure.convex for structure in problem.structures)
    return LADDERS[chosen and all(structure.nonnegative for structure in problem.structures)]
