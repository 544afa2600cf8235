"""Projected steps: proximal alternating linearized minimization, for any structure.

Bolte, Sabach and Teboulle (2014), Mathematical Programming 146; extrapolation as in the other block solvers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .. import kernels
from ..checks import POSITIVE_INT
from ..losses.expansions import OwnGrams
from ..problem import Problem, Quadratic, curvature_of
from ..structures import Structure
from .base import require
from .block import Sweeps, Update, own_rows, quadratic_only
from .hals import HALS
from .supports import reselected, within_bounds

STARTS = {False: 1, True: 16}  # of the search for supports: more where it is all there is to do


@dataclass(frozen=True)
class PALM(HALS):
    """Each factor by `steps` projected steps of the gradient method, and then, where its structure is a matter of which
    entries are zero, by coordinate descent with these zeros held; a factor without ties between its entries by
    coordinate descent alone (`sweeps`, `eps` and `shuffle` as in `HALS`).

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
        Whether a run on a large X in double precision begins in single precision, as that of `HALS` does: where all
        structures act entry by entry.
    steps : int
        Projected steps in an update.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, structure_W="simplex", solver=pw.solvers.PALM(steps=5), random_state=0)
    >>> result.W.sum(axis=1)[:3].round(6)
    array([1., 1., 1.])
    """

    steps: int = 3

    kernels = ("numpy", "pursue", *HALS.kernels)

    def __post_init__(self):
        super().__post_init__()
        require(self, steps=POSITIVE_INT)

    def supports(self, problem):
        binary = any(s.elementwise is not None and s.elementwise.binary for s in problem.structures)
        if binary and not problem.loss.quadratic:  # a quadratic above the loss may keep entries from leaping
            return (
                "PALM cannot hold entries at one of two values here: Binary() goes with the losses 'frobenius' and 'l1'"
            )
        return quadratic_only(self, "palm", problem)

    def prefer(self, problem):
        return 0.2, "projected steps of the gradient method, each row on its own"

    def begins_in_single(self, problem):
        return super().begins_in_single(problem) and all(map(moves_freely, problem.structures))

    def init(self, problem, factors, tol, rng):
        return super().init(relaxed(problem), factors, tol, rng)

    def step(self, problem, state):
        before, objective, resting = state.factors, state.objective, state.beta == 0 and state.tol > 0
        step = super().step(relaxed(problem), state)
        if problem.separable:  # each row goes on as long as it moves, whatever the others do
            stuck = objective < np.inf and all(map(np.array_equal, before, state.factors))
        else:
            stuck = step.objective >= objective
        return step._replace(factors=problem.with_norms(step.factors), done=resting and stuck)

    def update(self, problem, mode, state, rows):
        structure, A = problem.structures[mode], state.points[mode]
        if moves_freely(structure):
            return super().update(problem, mode, state, rows)
        expansion = state.expansions[mode]
        if structure.elementwise is not None and isinstance(expansion, OwnGrams):  # 0/1: a majoriser would hold it back
            return own_rows(
                problem,
                mode,
                state,
                rows,
                Sweeps(*self.inner(problem, mode, state.tol), False, np.arange(problem.rank)),
            )
        if problem.separable and isinstance(expansion, OwnGrams):
            return self.update_rows(problem, mode, state, rows)
        gram, cross = expansion.around(A)
        gram = gram - gram.dtype.type(structure.ridge) * np.eye(problem.rank, dtype=gram.dtype)  # it is in the prox
        known, effort = problem.separable, self.effort(problem, mode, state.tol)  # known: for each row, already
        stationarity = 0.0 if known else problem.stationarity_of(state.points, mode, state.expansions[mode])
        if structure.applies_to_new_rows and rows.size < len(A):
            moved = descend_face(structure, A[rows], Quadratic(gram, cross[rows]), effort)
        else:
            moved = descend_face(structure, A, Quadratic(gram, cross), effort)[rows]
        factor = A.copy()
        factor[rows] = moved
        return Update(factor, stationarity)

    def update_rows(self, problem, mode, state, rows):
        """Rows that are problems of their own, each by its own Gram matrix: a majoriser would choose other zeros."""
        known, factor = state.expansions[mode], state.points[mode].copy()
        structure, effort = problem.structures[mode], self.effort(problem, mode, state.tol)
        for i, gram in known.grams(rows):
            factor[i] = descend_face(structure, factor[[i]], Quadratic(gram, known.cross[[i]]), effort)[0]
        return Update(factor, 0.0)

    def effort(self, problem, mode, tol) -> Effort:
        return Effort(self.steps, self.inner(problem, mode, tol), STARTS[problem.separable])


class Effort(NamedTuple):
    """How much is done in one update."""

    steps: int  # of the gradient method
    sweeps: tuple[int, float]  # of coordinate descent, as `HALS.inner` has them
    starts: int  # of the search for supports


def descend_face(structure: Structure, A: np.ndarray, known: Quadratic, effort: Effort) -> np.ndarray:
    """The better of what descent leads to from A and, where it is all there is to do and the set is not convex, from
    the point of the set nearest to the best one within its bounds."""
    moved = better_of(structure, A, descended(structure, A, known, effort), known)
    if effort.starts == 1 or structure.convex or structure.limits_only:
        return moved
    other = structure.nearest(within_bounds(structure, A, *known), 0.0)
    return better_of(structure, moved, descended(structure, other, known, effort), known)


def descended(structure: Structure, A: np.ndarray, known: Quadratic, effort: Effort) -> np.ndarray:
    """Projected steps, and coordinate descent among what they leave nonzero; no descent where the projection is an
    approximation."""
    (gram, cross), rank = known, A.shape[1]
    moved = project(structure, A, known, effort.steps)
    face = structure.face(moved)
    if face is not None:
        ridged = gram + gram.dtype.type(face.ridge) * np.eye(rank, dtype=gram.dtype)
        order, rows = np.arange(rank), np.arange(len(A))
        moved, _ = kernels.of(A).hals(moved, cross, ridged, face.box(moved), order, effort.sweeps, rows)
    return reselected(structure, moved, gram, cross, effort.starts)


def project(structure: Structure, A: np.ndarray, known: Quadratic, steps: int) -> np.ndarray:
    """Projected steps of the gradient method."""
    gram, cross = known
    curvature = curvature_of(gram)
    if curvature == 0:
        return A
    size = A.dtype.type(1 / curvature)
    for _ in range(steps):
        A = structure.nearest(A - size * (A @ gram - cross), float(size))
    return A


def moves_freely(structure: Structure) -> bool:
    """Whether coordinate descent takes this structure."""
    return structure.elementwise is not None and not structure.elementwise.binary


def better_of(structure: Structure, A: np.ndarray, B: np.ndarray, expansion: Quadratic) -> np.ndarray:
    """The one of two factors with the lower objective, row by row where rows are on their own."""
    (gram, cross), step = expansion, B.astype(np.float64) - A
    rise = np.einsum("ij,ij->i", step, (A + step / 2) @ gram - cross)
    if structure.separable_rows:
        rise += structure.row_values(B) - structure.row_values(A)
        return np.where((rise <= 0)[:, None], B, A)
    return B if rise.sum() + structure.value(B) - structure.value(A) <= 0 else A


def relaxed(problem: Problem) -> Problem:
    """The problem without norms of components that another factor can make up for."""
    structures = [
        structure if problem.partner(mode) is None else structure.without_norm or structure
        for mode, structure in enumerate(problem.structures)
    ]
    return replace(problem, structures=tuple(structures))
