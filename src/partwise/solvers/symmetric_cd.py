"""Coordinate descent for `X ~ A A'`: Vandaele, Gillis, Lei, Zhong and Dhillon (2016), "Efficient and non-convex
coordinate descent for symmetric nonnegative matrix factorization", IEEE Trans. Signal Processing 64(21)."""

from __future__ import annotations

from dataclasses import dataclass

from .. import kernels
from ..problem import Factors
from .base import Solver, Step, require, whole


@dataclass
class SymmetricState:
    factors: Factors


@dataclass(frozen=True)
class SymmetricCD(Solver):
    """Each entry of A in turn, row by row, to its exact best value with the others held: the minimum of a polynomial of
    degree 4, or of 2 where the diagonal of X does not count. A sweep costs `O(nnz rank + n rank^2)`.

    `sweeps`: over all entries in a step, after which the objective is computed. Any A where no single entry can gain is
    an end, and A = 0 is one where the diagonal of X is 0: a component that dies in a network stays dead, and is
    named in the certificate.
    """

    sweeps: int = 2

    symmetric = True
    states = (SymmetricState,)

    def __post_init__(self):
        require(self, sweeps=whole(self.sweeps))

    def supports(self, problem):
        if not problem.symmetric:
            return "SymmetricCD is for X ~ A A', which symmetric=True states"
        return None

    def prefer(self, problem):
        return 2.0, "coordinate descent, each entry to its exact best value"

    def init(self, problem, factors, tol, rng):
        return SymmetricState(tuple(factors))

    def step(self, problem, state):
        A, data = state.factors[0], problem.data
        A, gains = kernels.of(A).symmetric_cd(*data.entries(0), A, data.diagonal, problem.diagonal, self.sweeps)
        state.factors = problem.tied((A,))
        return Step(state.factors, problem.objective(state.factors), problem.relative_gain(gains))
