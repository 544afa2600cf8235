"""The doubly nonnegative relaxation of `max z' B z` over nonnegative unit vectors: `max <B, Z>` over positive
semidefinite `Z >= 0` of trace 1 (Huang and Zhang 2015).

Its dual gives a bound for every `S >= 0`: `z' B z <= z' (B + S) z <= lambda_max(B + S)`. Solved by Douglas-Rachford
splitting, which is the alternating direction method of multipliers in one matrix `Y = Z - S / penalty`: its positive
part is the primal point, its negative part the dual one.
"""

from __future__ import annotations

from collections.abc import Callable

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


def eigenvalue_bound(
    B: np.ndarray, z: np.ndarray, slack: np.ndarray, scale: float, enough: Callable[[float, np.ndarray], bool]
) -> float:
    """A bound on `max z' B z` from a point z and its slack `p z - B z`, of which z is a good guess at best.

    `enough(bound, direction)` is told the best bound so far and where Z points to, and says whether to stop.
    """
    penalty, best = PENALTIES[0] * scale, np.inf
    Y = np.outer(z, z) - complementary(np.zeros_like(B), (z, z), (slack, slack)) / penalty
    for count in range(1, allowed(10 * len(B) ** 3, *STEPS) + 1):
        interrupts.check()
        positive = np.maximum(Y, 0)
        Z, direction = spectraplex(2 * positive - Y + B / penalty)
        if count % LOOK == 0 or count < LOOK:
            S = penalty * (positive - Y)
            known = complementary(S, (z, z), (slack, slack))
            best = min(best, largest_eigenvalue(np.maximum(B + S, B)), largest_eigenvalue(np.maximum(B + known, B)))
            apart = abs(best - float(np.vdot(B, positive)) / max(float(np.trace(positive)), 0.5))
            if enough(best, direction) or max(apart / scale, float(np.linalg.norm(Z - positive))) <= AGREED:
                break
        Y += RELAX * (Z - positive)
        if count >= PATIENCE and count % (2 * LOOK) == 0:
            moved = penalty * float(np.linalg.norm(np.maximum(Y, 0) - positive)) / scale
            off = float(np.linalg.norm(Z - positive))
            change = PENALTIES[1] / PENALTIES[0] if count == PATIENCE else balance(off, moved)
            Y, penalty = np.maximum(Y, 0) + np.minimum(Y, 0) / change, penalty * change
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
