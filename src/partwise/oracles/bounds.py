"""Eigenvalues that are certain: computed ones with a margin for rounding."""

import math

import numpy as np

EPS = np.finfo(np.float64).eps
VANISHED = math.sqrt(np.finfo(np.float64).tiny)  # what may be lost where squares are too small for a number
WORK = 5e10  # operations that the search for a bound may take


def largest_eigenvalue(N: np.ndarray) -> float:
    """Not below the largest eigenvalue of a symmetric matrix. LAPACK's is that of `N + E`, `|E|_2` at most a small
    multiple of `eps |N|_2`; the dimension is taken for the multiple, and the Frobenius norm for the other."""
    value = float(np.linalg.eigvalsh(N)[-1])  # of all: LAPACK's search for one fails on some matrices of few values
    return value + EPS * len(N) * float(np.linalg.norm(N))


def largest_singular_value(N: np.ndarray) -> float:
    """Not below `|N|_2`, from the smaller Gram matrix, whose sums round by at most `max(shape) eps |N|_F^2`."""
    G = gram(N)
    value = float(np.linalg.eigvalsh(G)[-1])
    return math.sqrt(max(value, 0.0) + EPS * sum(N.shape) * float(np.trace(G))) + VANISHED * max(N.shape)


def gram(N: np.ndarray) -> np.ndarray:
    """`N' N` or `N N'`, whichever is smaller."""
    return N.T @ N if N.shape[1] <= N.shape[0] else N @ N.T


def allowed(cost: float, fewest: int, most: int) -> int:
    """How many steps of so many operations a search may take: no seconds, so that answers are the same everywhere."""
    return int(min(most, max(fewest, WORK / cost)))


def complementary(S: np.ndarray, point: tuple, slack: tuple) -> np.ndarray:
    """`S >= 0` changed so that `S v = a` and `S' u = b`, where `point = (u, v)` and `slack = (a, b)` vanish in turn.

    With `a = p u - P v` and `b = p v - P' u`, `N = P + S` has (u, v) for a singular pair with value p. Where S is near
    the best one and no other singular value comes near p, `|N|_2` is then p itself. Rows (columns) outside the supports
    are scaled on them, or filled in proportion where they hold nothing that counts.
    """
    (u, v), (a, b) = point, slack
    S = np.where(np.outer(u > 0, v > 0), 0.0, S)
    S = with_sums(S, v, a)
    return with_sums(S.T, u, b).T


def with_sums(S: np.ndarray, x: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """S with its rows scaled where x is positive so that `S x = sums`."""
    have = S @ x
    # a row whose largest entry meets next to nothing of x would have to grow beyond all measure
    counts = have > EPS * np.max(S, axis=1, where=x > 0, initial=0.0)
    share = np.divide(sums, have, out=np.ones_like(have), where=counts)
    return S * np.where(x > 0, share[:, None], 1.0) + np.where(counts, 0.0, sums)[:, None] * x
