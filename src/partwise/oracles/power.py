"""The projected power method: `u = [P v]_+ / |.|`, `v = [P' u]_+ / |.|`, from many starts at once.

Each half step is the exact best for the vector held, so `u' P v` never falls, and ends at a point where the conditions
of Karush, Kuhn and Tucker hold. For `max u' P u` with P + c I positive semidefinite `u = [P u + c u]_+ / |.|` does the
same.
"""

from __future__ import annotations

import numpy as np

from ..run import interrupts
from .matrices import Matrix

PAIRS = 5  # leading singular vectors, of either sign
ROUNDS = ((6, 6), (12, 2), (24, 1))  # steps, and how many of the best go on after them
ALIKE = 9  # digits to which values are the same
LAST = 200  # steps of the best one, at most


def unit(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positive parts of columns, with norm 1, and the norms they had."""
    V = np.maximum(V, 0)
    peaks = V.max(axis=0, initial=0)  # so that no square is too small for a number
    V = V / np.where(peaks > 0, peaks, 1)
    norms = np.sqrt(np.einsum("ij,ij->j", V, V))
    return V / np.where(norms > 0, norms, 1), norms * peaks


def ascend(P: Matrix, V: np.ndarray, shift: float | None) -> tuple[np.ndarray, np.ndarray]:
    """One step from every column of V, and the values there; `shift`: c of the symmetric case, None for a pair."""
    interrupts.check()
    if shift is None:
        return unit(P.times(unit(P.times(V))[0], 1))
    new, norms = unit(P.times(V) + V.dtype.type(shift) * V)
    V = np.where(norms > 0, new, V)  # where nothing pulls, all is as good
    values = np.einsum("ij,ij->j", V, P.times(V))
    return V, np.where(V.any(axis=0), values, -np.inf)


def climb(P: Matrix, V: np.ndarray, shift: float | None) -> np.ndarray:
    """The best point that the columns of V lead to, (n,)."""
    V = unit(V)[0]
    for steps, few in ROUNDS:
        for _ in range(steps):
            V, values = ascend(P, V, shift)
        V = V[:, ranking(V, values)[:few]]
    value = -np.inf
    for _ in range(LAST):
        V, values = ascend(P, V, shift)
        if values[0] - value <= P.settled * abs(values[0]):
            break
        value = values[0]
    return V[:, 0]


def ranking(V: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The best first; among those as good as each other the one that is most concentrated, since a mixture of several
    parts of the same value has that value too."""
    top = np.max(np.abs(values), where=np.isfinite(values), initial=0) or 1.0
    return np.lexsort((V.sum(axis=0), -np.round(values / top, ALIKE)))


def starts(P: Matrix, count: int, rng: np.random.RandomState) -> np.ndarray:
    """Both signs of leading singular vectors, the heaviest rows, and sparse random vectors for the rest: (n, count)."""
    singular = leading(P, min(PAIRS, *P.shape), rng)
    rows = P.heaviest_rows(min(PAIRS, P.shape[0]))
    rest = max(count - 2 * singular.shape[1] - rows.shape[1], 1)
    drawn = rng.uniform(size=(P.shape[1], rest)) * (rng.uniform(size=(P.shape[1], rest)) < 0.2)
    return np.concatenate([singular, -singular, rows, drawn], axis=1).astype(P.dtype)[:, -count:]


def leading(P: Matrix, count: int, rng: np.random.RandomState) -> np.ndarray:
    """About the leading right singular vectors (n, count), by subspace iteration (Halko, Martinsson and Tropp 2011)."""
    width = min(2 * count, *P.shape)
    V = rng.standard_normal((P.shape[1], width)).astype(P.dtype)
    for _ in range(4):
        U = np.linalg.qr(P.times(V))[0]
        V = np.linalg.qr(P.times(U, 1))[0]
    turn = np.linalg.svd(P.times(V), full_matrices=False)[2]
    return (V @ turn.T)[:, :count]
