"""The doubly nonnegative relaxation of `max z' B z` over nonnegative unit vectors: `max <B, Z>` over positive
semidefinite `Z >= 0` of trace 1 (Huang and Zhang 2015).

Its dual gives a bound for every `S >= 0`: `z' B z <= z' (B + S) z <= lambda_max(B + S)`. Solved by Douglas-Rachford
splitting, which is the alternating direction method of multipliers in one matrix `Y = Z - S / penalty`: its positive
part is the primal point, its negative part the dual one. `Z >= 0` may be another cone (`Cone`): see `moments`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from ..run import interrupts
from .bounds import allowed, complementary, largest_eigenvalue

SIDE = 800  # of B, at most
PENALTIES = (100.0, 4.0)  # in units of B: high at first, since the primal point is known and the dual one is sought
RELAX = 1.6
STEPS = (100, 4000)  # at least and at most, see `allowed`
LOOK = 5  # steps between bounds
PATIENCE = 60  # steps before the second: where it takes longer, others are nearly as good as the primal point
SPREAD, CHANGE = 3.0, 1.5  # residuals that far apart move the penalty by this factor
AGREED = 1e-6  # in units of B: how near the two sides of the relaxation are when nothing more is to be had


class Cone(Protocol):
    """What Z is held to beside being positive semidefinite of trace 1. Its dual has the S with `<S, Z> >= 0`."""

    def project(self, Y: np.ndarray) -> np.ndarray:
        """The nearest matrix of the cone."""
        ...

    def first_dual(self, B: np.ndarray) -> np.ndarray:
        """A guess at the best S."""
        ...

    def bound(self, B: np.ndarray, S: np.ndarray) -> float:
        """What an S of the dual cone, but for rounding, proves: about `lambda_max(B + S)`, never too small."""
        ...


class Entries(NamedTuple):
    """`Z >= 0` entry by entry; a point z and its slack `p z - B z`, of which z is a good guess at best."""

    z: np.ndarray
    slack: np.ndarray

    def project(self, Y):
        return np.maximum(Y, 0)

    def complementary(self, S: np.ndarray) -> np.ndarray:
        return complementary(S, (self.z, self.z), (self.slack, self.slack))

    def first_dual(self, B):
        return self.complementary(np.zeros_like(B))

    def bound(self, B, S):
        known = self.complementary(S)
        return min(largest_eigenvalue(np.maximum(B + S, B)), largest_eigenvalue(np.maximum(B + known, B)))


Enough = Callable[[float, np.ndarray], bool]


def eigenvalue_bound(B: np.ndarray, z: np.ndarray, slack: np.ndarray, scale: float, enough: Enough) -> float:
    """A bound on `max z' B z` over nonnegative unit vectors, from a point z and its slack."""
    return relaxation_bound(B, z, Entries(z, slack), scale, enough)


def relaxation_bound(B: np.ndarray, z: np.ndarray, cone: Cone, scale: float, enough: Enough) -> float:
    """A bound on `max <B, Z>` over positive semidefinite Z of the cone with trace 1, from a guess at the best, `z z'`.

    `enough(bound, direction)` is told the best bound so far and where Z points to, and says whether to stop.
    """
    penalty, best = PENALTIES[0] * scale, np.inf
    Y = np.outer(z, z) - cone.first_dual(B) / penalty
    for count in range(1, allowed(10 * len(B) ** 3, *STEPS) + 1):
        interrupts.check()
        positive = cone.project(Y)
        Z, direction = spectraplex(2 * positive - Y + B / penalty)
        if count % LOOK == 0 or count < LOOK:
            best = min(best, cone.bound(B, penalty * (positive - Y)))
            apart = abs(best - float(np.vdot(B, positive)) / max(float(np.trace(positive)), 0.5))
            if enough(best, direction) or max(apart / scale, float(np.linalg.norm(Z - positive))) <= AGREED:
                break
        Y += RELAX * (Z - positive)
        if count >= PATIENCE and count % (2 * LOOK) == 0:
            now = cone.project(Y)
            moved = penalty * float(np.linalg.norm(now - positive)) / scale
            off = float(np.linalg.norm(Z - positive))
            change = PENALTIES[1] / PENALTIES[0] if count == PATIENCE else balance(off, moved)
            Y, penalty = now + (Y - now) / change, penalty * change
    return best


def balance(primal: float, dual: float) -> float:
    """The factor by which the penalty changes."""
    if primal > SPREAD * dual:
        return CHANGE
    return 1 / CHANGE if dual > SPREAD * primal else 1.0


def spectraplex(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest positive semidefinite matrix of trace 1, and its leading eigenvector."""
    values, V = eigh(Y, check_finite=False)
    values, V = values[::-1], V[:, ::-1]
    levels = (np.cumsum(values) - 1) / np.arange(1, len(values) + 1)
    above = int(np.count_nonzero(values > levels))
    kept = V[:, :above]
    return (kept * (values[:above] - levels[above - 1])) @ kept.T, V[:, 0]
