"""Nuclear splitting: `max u' P v <= |N|_2` for every `N >= P` entry by entry.

The best such N, `min |N|_2`, is the dual of `max <P, Z>` over `Z >= 0` with nuclear norm 1, of which `u v'` is a point.
It is sought by Douglas-Rachford splitting on an array of P's shape, from a known point, and every iterate gives bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh

from ..run import interrupts
from .bounds import allowed, complementary, gram, largest_singular_value

SIDE = 600  # of the smaller side, at most
STEP = 10.0  # in units of the value: long, since the primal point is known and the dual one is sought
RELAX = 1.6
STEPS = (10, 80)  # at least and at most, see `allowed`
LOOK = 5  # steps between bounds


def norm_bound(P: np.ndarray, point: tuple, value: float, slack: tuple, enough: Callable[[float], bool]) -> float:
    """A bound on `max u' P v`, from a point `(u, v)`, its value p and its slack `p u - P v, p v - P' u`; `enough` is
    told the best bound so far and says whether to stop."""
    u, v = point
    step = STEP * value
    Y, best = P + complementary(np.zeros_like(P), (u, v), slack) - step * np.outer(u, v), np.inf
    for count in range(1, allowed(6 * P.size * min(P.shape), *STEPS) + 1):
        interrupts.check()
        N = np.maximum(Y, P)
        if count % LOOK == 0 or count < LOOK:
            known = complementary(N - P, (u, v), slack)
            best = min(best, largest_singular_value(N), largest_singular_value(np.maximum(P + known, P)))
            if enough(best):
                break
        Y += RELAX * (shortened(2 * N - Y, step) - N)
    return best


def shortened(Y: np.ndarray, step: float) -> np.ndarray:
    """The minimiser of `|N|_2 + |N - Y|^2 / (2 step)`: singular values cut where that takes `step` off their sum."""
    squares, V = eigh(gram(Y), check_finite=False)
    sigma = np.sqrt(np.maximum(squares[::-1], 0))
    heights = (np.cumsum(sigma) - step) / np.arange(1, len(sigma) + 1)
    above = int(np.count_nonzero(sigma > heights))  # the cut is below the first so many
    height = max(float(heights[above - 1]), 0.0)
    V = V[:, ::-1][:, :above]
    cut = V if height == 0 else V * (1 - height / sigma[:above])  # all of it, where the step is longer than their sum
    return Y - (cut @ (V.T @ Y) if Y.shape[1] > Y.shape[0] else (Y @ V) @ cut.T)
