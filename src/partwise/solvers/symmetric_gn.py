"""The method of Gauss and Newton for `X ~ [[A, ..., A]]`, A >= 0, damped as by Levenberg (1944) and Marquardt (1963).

For CP in general: Sorber, Van Barel and De Lathauwer (2013), SIAM J. Optimization 23(2), where products with `J'J`
come from Grams alone; bounds as in More and Toraldo (1991), SIAM J. Optimization 1(1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..checks import POSITIVE_INT
from ..losses.beta import cancels
from ..problem import Factors, Problem, Quadratic, gram_of
from ..run import interrupts
from .base import Solver, Step, feasible, require
from .block import complete_only

DAMPING = 0.1, 1e-12, 1e12  # at first, at least and at most, in units of the largest `d |a_k|^(2d - 2)`
GOOD, FAIR, LEAST = 0.75, 0.25, 1e-4  # shares of the fall that the model promises, that the objective falls by
LESS, MORE, FAILED = 0.2, 2.0, 4.0  # the damping after a step that was good, poor or undone
PRECISION = 0.1, 1e-3  # of the slopes that a step leaves to the model, of those at its start: at most and at least
ROUNDING = 64  # times eps, of |X|^2: a fall that differences of objectives do not show
FACES = 20  # sets of entries at 0 that a step looks at, at most


@dataclass
class GaussNewtonState:
    """Where a run is. Arrays are replaced, never written to."""

    factors: Factors  # the best so far
    known: Quadratic | None  # least squares in one factor there, the others held; None: not yet computed
    objective: float
    stationarity: float
    damping: float

    transient: ClassVar[tuple[str, ...]] = ("known",)

    def valid(self, problem: Problem) -> bool:
        return feasible(self.factors, problem) and DAMPING[1] <= self.damping <= DAMPING[2]


@dataclass(frozen=True)
class SymmetricGN(Solver):
    """All entries of A together, to the least of the objective with the model linearised, within the bounds and near
    where they are; a step that does not lower the objective is undone and the next one is shorter.

    A step costs one product with X, and at most `iterations` of conjugate gradients, `O(n rank^2)` each. Components
    that are zero stay zero.

    Parameters
    ----------
    iterations : int
        The most conjugate gradient iterations in a step.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> A = np.random.default_rng(0).uniform(size=(8, 2))
    >>> T = np.einsum("iz,jz,kz->ijk", A, A, A)
    >>> result = pw.factorize(T, 2, symmetric=True, solver=pw.solvers.SymmetricGN(), random_state=0)
    >>> bool(result.relative_error < 1e-3)
    True
    """

    iterations: int = 60

    symmetric = True
    states = (GaussNewtonState,)

    def __post_init__(self):
        require(self, iterations=POSITIVE_INT)

    def supports(self, problem):
        if not problem.symmetric:
            return "SymmetricGN is for X ~ [[A, ..., A]], which symmetric=True states"
        if not problem.diagonal:
            return "SymmetricGN needs data in which the diagonal of X counts, symmetric=True"
        return complete_only(self, problem)

    def prefer(self, problem):
        return 1.0, "damped Gauss-Newton steps in all entries together"

    def init(self, problem, factors, tol, rng):
        return GaussNewtonState(tuple(factors), None, np.inf, np.inf, DAMPING[0])

    def step(self, problem, state):
        if state.known is None:
            state.known = problem.normal_equations(state.factors, 0)
            state.objective, state.stationarity = problem.measured(state.factors, state.known)
        A = state.factors[0]
        model = Linearised.of(problem.order, A, state.known, state.damping)
        precision = min(PRECISION[0], max(PRECISION[1], state.stationarity))
        D, promised = model.least(self.iterations, precision)
        factors = problem.tied((np.maximum(A + D, 0).astype(A.dtype),))
        known = problem.normal_equations(factors, 0)
        objective, stationarity = problem.measured(factors, known)
        fall = state.objective - objective
        if promised <= rounding(problem) and not cancels(problem.data, objective):
            fall = model.fall(factors[0], known)
        share = fall / promised if promised > 0 else 0.0
        if taken := share >= LEAST:
            state.factors, state.known, state.objective, state.stationarity = factors, known, objective, stationarity
        change = FAILED if not taken else LESS if share >= GOOD else 1.0 if share >= FAIR else MORE
        done = change > 1 and state.damping >= DAMPING[2]
        state.damping = min(max(change * state.damping, DAMPING[1]), DAMPING[2])
        return Step(state.factors, state.objective, state.stationarity, done)


def rounding(problem: Problem) -> float:
    return ROUNDING * float(np.finfo(problem.data.dtype).eps) * problem.data.norm2


@dataclass(frozen=True, eq=False)
class Linearised:
    """The objective as a function of a step D, the model `[[A + D, ...]]` linearised, and damped:
    `<slopes, D> + 1/2 <D, J'J D> + damping / 2 |D|^2`, in double precision."""

    order: int
    A: np.ndarray
    slopes: np.ndarray
    others: np.ndarray  # `(A'A)^(d - 1)`, entry by entry
    rest: np.ndarray  # `(A'A)^(d - 2)`
    damping: float

    @classmethod
    def of(cls, order: int, A: np.ndarray, known: Quadratic, damping: float) -> Linearised:
        A, gram, cross = (x.astype(np.float64) for x in (A, gram_of(A), known.cross))
        others, rest = gram ** (order - 1), gram ** (order - 2)
        unit = order * float(np.diag(others).max())
        return cls(order, A, order * (A @ others - cross), others, rest, damping * unit if unit > 0 else 1.0)

    def fall(self, new: np.ndarray, known: Quadratic) -> float:
        """By how much the objective is lower at a new A close by: the mean slope on the way there, of both ends."""
        there = Linearised.of(self.order, new, known, 0.0)
        return 0.5 * float(np.vdot(self.slopes + there.slopes, self.A - there.A))

    def times(self, D: np.ndarray) -> np.ndarray:
        """`(J'J + damping) D`, with `J'J D = d (D (A'A)^(d-1) + (d-1) A ((A'A)^(d-2) * D'A))`."""
        own = D @ self.others + (self.order - 1) * (self.A @ (self.rest * (D.T @ self.A)))
        return self.order * own + self.damping * D

    @cached_property
    def diagonal(self) -> np.ndarray:
        own = np.diag(self.others) + (self.order - 1) * np.square(self.A) * np.diag(self.rest)
        return self.order * own + self.damping

    def least(self, iterations: int, precision: float) -> tuple[np.ndarray, float]:
        """About the D with the least value among those with `A + D >= 0`, and by how much the undamped value falls.

        On a face, the entries that are at 0 and want to stay held, by conjugate gradients; where these leave the
        bounds, from the nearest point within them, or from the border if that is no lower.
        """
        D, slopes = np.zeros_like(self.A), self.slopes
        enough, left = None, iterations
        for _ in range(FACES):
            interrupts.check()
            free = (self.A + D > 0) | (slopes < 0)
            size = np.vdot(slopes * free, slopes / self.diagonal)
            enough = precision**2 * size if enough is None else enough
            if size <= enough or left <= 0:
                break
            D, used = self.on_face(D, slopes, free, left, enough / 4)
            slopes, left = self.slopes + self.times(D), left - used
        return D, -0.5 * float(np.vdot(self.slopes + slopes - self.damping * D, D))

    def on_face(self, D, slopes, free, iterations, enough):
        """Conjugate gradients from D, where only free entries move, and how many."""
        z = free * slopes / self.diagonal
        p, size = -z, float(np.vdot(slopes, z))
        for count in range(1, iterations + 1):
            image = free * self.times(p)
            length = size / float(np.vdot(p, image))
            beyond = D + length * p
            if np.any(self.A + beyond < 0):
                return self.within(D, p, length, slopes), count
            D, slopes = beyond, slopes + length * image
            z = free * slopes / self.diagonal
            before, size = size, float(np.vdot(slopes, z))
            if size <= enough:
                break
            p = size / before * p - z
        return D, count

    def within(self, D, p, length, slopes):
        """The nearest point to `D + length p` with `A + D >= 0` if it is lower than D, else the border on the way."""
        nearest = np.maximum(D + length * p, -self.A)
        way = nearest - D
        if np.vdot(way, slopes + self.times(way) / 2) < 0:
            return nearest
        room = np.divide(self.A + D, -p, out=np.full_like(p, np.inf), where=p < 0)
        return np.maximum(D + min(length, float(room.min())) * p, -self.A)
