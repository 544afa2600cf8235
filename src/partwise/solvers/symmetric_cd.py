"""Coordinate descent for `X ~ A A'`: Vandaele, Gillis, Lei, Zhong and Dhillon (2016), "Efficient and non-convex
coordinate descent for symmetric nonnegative matrix factorization", IEEE Trans. Signal Processing 64(21); extrapolation
as in Ang and Gillis (2019), Neural Computation 31(2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..checks import POSITIVE_INT
from ..problem import Factors, Problem
from .base import Solver, Step, feasible, require
from .block import Momentum


@dataclass
class SymmetricState:
    """Where a run is. Arrays are replaced, never written to."""

    factors: Factors  # the best so far
    point: np.ndarray  # where the next sweeps start: A, extrapolated, >= 0
    momentum: Momentum | None  # None: no extrapolation
    objective: float  # at the factors
    stationarity: float  # the latest estimate, from on the way to them

    def valid(self, problem: Problem) -> bool:
        return feasible(self.factors, problem) and feasible((self.point, self.point), problem)

    @property
    def beta(self) -> float:
        return self.momentum.current if self.momentum else 0.0


@dataclass(frozen=True)
class SymmetricCD(Solver):
    """Each entry of A in turn, row by row, to its exact best value with the others held: the minimum of a polynomial of
    degree 4, or of 2 where the diagonal of X does not count. A sweep costs `O(nnz rank + n rank^2)`.

    Any A where no single entry can gain is an end, A = 0 too where the diagonal of X is 0: a component of a network
    that becomes zero stays zero, and the certificate names it.

    Parameters
    ----------
    sweeps : int
        Sweeps over all entries in a step, after which the objective is computed.
    extrapolate : bool
        Whether to start each update from beyond the last one; undone where the objective would rise.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> A = np.random.default_rng(0).uniform(size=(20, 2))
    >>> result = pw.factorize(A @ A.T, 2, symmetric=True, solver=pw.solvers.SymmetricCD(sweeps=3), random_state=0)
    >>> np.array_equal(result.W, result.H.T)
    True
    """

    sweeps: int = 2
    extrapolate: bool = True

    kernels = ("numpy", "symmetric_cd", "symmetric_gains", "extrapolate")
    symmetric = True
    states = (SymmetricState, Momentum)

    def __post_init__(self):
        require(self, sweeps=POSITIVE_INT)

    def supports(self, problem):
        if not problem.symmetric:
            return "SymmetricCD is for X ~ A A', which symmetric=True states"
        if problem.order > 2:
            return f"SymmetricCD is for matrices, got a tensor of order {problem.order}"
        return None

    def prefer(self, problem):
        return 2.0, "coordinate descent, each entry to its exact best value"

    def init(self, problem, factors, tol, rng):
        # an infinite objective, so that the first step, which does not extrapolate, is taken
        return SymmetricState(tuple(factors), factors[0], Momentum() if self.extrapolate else None, np.inf, 0.0)

    def step(self, problem, state):
        kernel, X = kernels.of(state.point), next(problem.data.rows(0))
        A, gains = kernel.symmetric_cd(X, state.point, problem.own, problem.diagonal, self.sweeps)
        factors = problem.tied((A,))
        objective = problem.objective(factors)
        if objective <= state.objective or state.beta == 0:
            box = problem.structures[0].elementwise.box(A)
            state.point = kernel.extrapolate(A, state.factors[0], state.beta, box) if state.beta > 0 else A
            state.factors, state.objective, state.stationarity = factors, objective, problem.relative_gain(gains)
            if state.momentum:
                state.momentum.succeed()
        else:
            state.point = state.factors[0]
            state.momentum.fail()
        return Step(state.factors, state.objective, state.stationarity)
