"""The projected power method: `u = [P v]_+ / |.|`, `v = [P' u]_+ / |.|`, from many starts at once.

In general `x_m = [P contracted with the vectors of the other modes]_+ / |.|`, mode after mode. Each is the exact best
for the vectors held, so the value never falls, and ends at a point where the conditions of Karush, Kuhn and Tucker
hold. For `max u' P u` with P + c I positive semidefinite `u = [P u + c u]_+ / |.|` does the same, and so it does for
symmetric tensors with c beyond `(order - 1) max |P(u, ..., u)|` (Kolda and Mayo 2011).

Vectors are arrays (dim, count), one for each mode: a column of all of them is a point. That of mode 0 is computed
first, and so is not read.
"""

from __future__ import annotations

import numpy as np

from ..run import interrupts
from .matrices import Target

Vectors = tuple[np.ndarray, ...]

PAIRS = 5  # leading singular vectors, of either sign
ROUNDS = ((6, 6), (12, 2), (24, 1))  # steps, and how many of the best go on after them
SLOW = 1e-3  # growth of values on a tensor at which a round ends
ALIKE = 9  # digits to which values are the same
LAST = 200  # steps of the best one, at most


def unit(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positive parts of columns, with norm 1, and the norms they had."""
    V = np.maximum(V, 0)
    peaks = V.max(axis=0, initial=0)  # so that no square is too small for a number
    V = V / np.where(peaks > 0, peaks, 1)
    norms = np.sqrt(np.einsum("ij,ij->j", V, V))
    return V / np.where(norms > 0, norms, 1), norms * peaks


def ascend(P: Target, vectors: Vectors, shift: float | None) -> tuple[Vectors, np.ndarray]:
    """One step from every column, and the values there; `shift`: c of the symmetric case, None where vectors differ."""
    interrupts.check()
    if shift is None:
        for mode in range(len(vectors)):
            x, values = unit(P.contract(vectors, mode))
            vectors = (*vectors[:mode], x, *vectors[mode + 1 :])
        return vectors, values
    V = vectors[0]
    new, norms = unit(P.contract(vectors, 0) + V.dtype.type(shift) * V)
    V = np.where(norms > 0, new, V)  # where nothing pulls, all is as good
    vectors = (V,) * len(vectors)
    values = np.einsum("ij,ij->j", V, P.contract(vectors, 0))
    return vectors, np.where(V.any(axis=0), values, -np.inf)


def climb(P: Target, vectors: Vectors, shift: float | None) -> Vectors:
    """The best point that the columns lead to, one column."""
    vectors = tuple(unit(V)[0] for V in (vectors if shift is None else vectors[:1] * len(vectors)))
    for steps, few in ROUNDS:
        values = np.full(vectors[1].shape[1], -np.inf)
        for _ in range(steps):
            before = values
            vectors, values = ascend(P, vectors, shift)
            found = np.isfinite(values)  # a start of zeros leads nowhere
            if len(vectors) > 2 and np.all(values[found] - before[found] <= SLOW * np.abs(values[found])):
                break  # on tensors the method is fast, and ends early
        best = ranking(vectors, values)[:few]
        vectors = tuple(V[:, best] for V in vectors)
    value = -np.inf
    for _ in range(LAST):
        vectors, values = ascend(P, vectors, shift)
        if values[0] - value <= P.settled * abs(values[0]):
            break
        value = values[0]
    return vectors


def ranking(vectors: Vectors, values: np.ndarray) -> np.ndarray:
    """The best first; among those as good as each other the one that is most concentrated, since a mixture of several
    parts of the same value has that value too."""
    top = np.max(np.abs(values), where=np.isfinite(values), initial=0) or 1.0
    return np.lexsort((sum(V.sum(axis=0) for V in vectors[1:]), -np.round(values / top, ALIKE)))


def starts(P: Target, count: int, rng: np.random.RandomState) -> Vectors:
    """Both signs of leading singular vectors, the heaviest rows or what stands out in the heaviest slices, and sparse
    random vectors for the rest."""
    singular = leading(P, min(PAIRS, *P.shape), rng)
    slices = P.heaviest(PAIRS)
    rest = max(count - 2 * singular[-1].shape[1] - slices[-1].shape[1], 1)
    found = []
    for mode in range(1, len(P.shape)):
        shape = P.shape[mode], rest
        drawn = rng.uniform(size=shape) * (rng.uniform(size=shape) < 0.2)
        if len(P.shape) > 2:
            drawn[rng.randint(P.shape[mode], size=rest), np.arange(rest)] = 1  # one mode of zeros makes all useless
        columns = np.concatenate([singular[mode], -singular[mode], slices[mode], drawn], axis=1)
        found.append(columns.astype(P.dtype)[:, -count:])
    return found[0], *found


def leading(P: Target, count: int, rng: np.random.RandomState) -> Vectors:
    """About the leading right singular vectors (n, count), by subspace iteration (Halko, Martinsson and Tropp 2011).

    In general columns of orthogonal vectors in each mode, from power steps that keep them so (Sharan and Valiant 2017):
    about the leading terms of P, each up to the signs of its vectors."""
    width = min(2 * count, *P.shape)
    vectors = tuple(rng.standard_normal((dim, width)).astype(P.dtype) for dim in P.shape[1:])
    vectors = vectors[0], *vectors
    for _ in range(4):
        for mode in range(len(vectors)):
            Q = np.linalg.qr(P.contract(vectors, mode))[0]
            vectors = (*vectors[:mode], Q, *vectors[mode + 1 :])
    if len(vectors) == 2:
        turn = np.linalg.svd(P.contract(vectors, 0), full_matrices=False)[2]
        return ((vectors[1] @ turn.T)[:, :count],) * 2
    sizes = np.linalg.norm(P.contract(vectors, 0), axis=0)
    best = np.argsort(-sizes, kind="stable")[:count]
    return tuple(V[:, best] * np.where(V[:, best].sum(axis=0) < 0, -1, 1).astype(V.dtype) for V in vectors)
