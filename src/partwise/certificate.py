"""What can be said for sure about a result."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh

from .data import Data
from .problem import Factors, Problem
from .units import exponent_of, times_power

FULL_SIDE = 5000  # largest smaller side whose eigenvalues are all computed
TAIL = 1e-12  # share of |X|^2 below which what a rank leaves out is rounding


@dataclass(frozen=True)
class Certificate:
    """Feasibility and stationarity of the factors, in the user's units."""

    violations: tuple[float, ...]  # by how much each factor breaks its structure, at most
    stationarity: float  # see `Problem.stationarity`; 0 at a stationary point
    tol: float
    dead_parts: tuple[int, ...]  # components that are zero
    unreached: int  # positive entries of X where W H is 0, if the loss is infinite there; it is computed with a floor

    @property
    def feasible(self) -> bool:
        return max(self.violations) == 0

    @property
    def stationary(self) -> bool:
        return self.stationarity <= self.tol

    def __str__(self):
        feasible = "yes" if self.feasible else f"no, off by up to {max(self.violations):.1e}"
        stationary = "yes" if self.stationary else "no"
        lines = [
            f"feasible: {feasible}",
            f"stationary: {stationary} ({self.stationarity:.1e}, tol {self.tol:g})",
        ]
        if self.dead_parts:
            lines.append(f"parts that are zero: {', '.join(map(str, self.dead_parts))}")
        if self.unreached:
            lines.append(f"positive entries of X where W H is 0: {self.unreached}")
        return "\n".join(lines)


def certificate(problem: Problem, factors: Factors, stationarity: float, tol: float) -> Certificate:
    violations = tuple(
        times_power(s.violation(A), e) for s, A, e in zip(problem.structures, factors, problem.exponents)
    )
    return Certificate(violations, stationarity, tol, dead_parts(factors), problem.unreached(factors))


def dead_parts(factors: Factors) -> tuple[int, ...]:
    """Components that are zero in some factor, and so add nothing."""
    alive = np.all([A.any(axis=0) for A in factors], axis=0)
    return tuple(np.flatnonzero(~alive).tolist())


@dataclass(frozen=True)
class Optimality:
    """How far a least-squares fit is from the best that any factorization of its rank could do.

    By Eckart and Young no matrix of rank r is nearer to X than its truncated singular value decomposition, so the
    relative error of any factorization of rank r, nonnegative or not, is at least `bound`.
    """

    relative_error: float
    bound: float
    rigorous: bool  # False: an estimate, from a partial decomposition
    rank: int

    @property
    def gap(self) -> float:
        """`relative_error - bound`, an upper bound on what could be gained."""
        return max(0.0, self.relative_error - self.bound)

    @property
    def excess(self) -> float:
        """By what share the error is above the bound, at most; infinite where the bound is 0."""
        return self.gap / self.bound if self.bound > 0 else (math.inf if self.gap > 0 else 0.0)

    def __str__(self):
        if self.bound > 0:
            text = (
                f"the relative error is at most {100 * self.excess:.3g}% above the best possible at rank {self.rank} "
                f"({self.relative_error:.6g} against {self.bound:.6g})"
            )
        else:
            text = (
                f"the relative error is at most {self.gap:.3g} above the best possible at rank {self.rank} "
                "(what this rank leaves out of X is at rounding level)"
            )
        return text if self.rigorous else "estimate: " + text


def optimality(data: Data, relative_error: float, rank: int) -> Optimality:
    """The Eckart-Young statement. X is not densified: at most a square of its smaller side is."""
    data = data.scaled(2.0 ** exponent_of(max(map(abs, data.extremes))))
    if data.norm2 == 0 or rank >= min(data.shape):
        rigorous, share = True, 0.0  # every X can be met
    else:
        rigorous = min(data.shape) <= FULL_SIDE
        share = (full_tail if rigorous else partial_tail)(data, rank)
    bound = math.sqrt(share) if share > TAIL else 0.0
    return Optimality(relative_error, min(bound, relative_error), rigorous, rank)


def full_tail(data: Data, rank: int) -> float:
    """The share of |X|^2 beyond the leading `rank` singular values, less a margin for rounding."""
    eigenvalues = eigvalsh(data.gram(int(data.shape[1] < data.shape[0])))
    # The computed eigenvalues are those of the Gram plus some E. By Ky Fan the sum of the leading ones is off by at
    # most sqrt(rank) |E|_F; E is the rounding of the sums in the Gram (at most max(shape) eps |X|^2), and of the
    # eigenvalues (backward stable; min(shape) eps |X|^2 is taken for its constant).
    margin = np.finfo(np.float64).eps * (max(data.shape) + min(data.shape)) * math.sqrt(rank)
    return max(0.0, 1 - float(eigenvalues[-rank:].sum()) / data.norm2 - margin)


def partial_tail(data: Data, rank: int) -> float:
    """The same from the leading singular values alone, which a randomized method may put a little too low."""
    _, s, _ = data.svd(rank, 0, n_iter=10, n_oversamples=20)
    leading = np.square(s.astype(np.float64)).sum()
    return max(0.0, 1 - float(leading) / data.norm2)
