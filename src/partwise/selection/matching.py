"""Parts of several runs, matched one to one: how alike they are, what they have in common, how well they keep apart.

Parts are compared by their columns in all modes but the first, the samples, which may differ from run to run; a
symmetric model has one factor, and is compared by it. Scale and sign do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.rows import BLOCK
from ..data.units import unit_columns
from ..metrics import assigned
from ..problem import Factors
from ..result import Result

ROUNDS = 20  # of matching to the median parts, at most: in general two or three are enough
LEAST_ANGLE = 1e-12  # in radians: parts that are all nearer than this are one


def compared(result: Result) -> Factors:
    """The factors by which parts are compared, columns of norm 1; those of zero components are 0."""
    factors = result.factors[:1] if result.symmetric else result.factors[1:]
    return tuple(unit_columns(A)[0] for A in factors)


def cosines(one: Factors, other: Factors) -> np.ndarray:
    """`(rank of one, rank of other)`: the products over modes of the absolute cosines; 0 with zero components."""
    return np.clip(np.prod([np.abs(A.T @ B) for A, B in zip(one, other, strict=True)], axis=0), 0.0, 1.0)


def chosen(scores: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Scores of these rows and columns; 0 where there is none, -1."""
    return np.where((rows >= 0)[:, None] & (columns >= 0), scores[np.ix_(rows, columns)], 0.0)


def matched(reference: Factors, runs: Sequence[Factors]) -> np.ndarray:
    """The cosine of every part of the reference with that of each run that goes with it, (n_runs, rank); 0 where there
    is none, or one of them is zero."""
    every = np.arange(reference[0].shape[1])
    scores = [cosines(reference, run) for run in runs]
    return np.array([chosen(C, every, assigned(C)).diagonal() for C in scores])


def clustered(reference: Factors, runs: Sequence[Factors]) -> tuple[np.ndarray, Factors]:
    """The parts of all runs in clusters of one part a run, as many as the reference has parts and in their order:
    (n_runs, rank), which part of each run is in each cluster, -1 for none; and the median parts, of norm 1.

    Runs are matched to the reference at first, then to the median of what was matched, until nothing changes.
    """
    centre, orders = reference, np.empty(0)
    for _ in range(ROUNDS):
        before, orders = orders, np.array([assigned(cosines(centre, run)) for run in runs])
        if np.array_equal(orders, before):
            break
        centre = median_parts(centre, runs, orders)
    own = assigned(cosines(reference, centre))  # medians may have changed places
    return orders[:, own], tuple(C[:, own] for C in centre)


def median_parts(centre: Factors, runs: Sequence[Factors], orders: np.ndarray) -> Factors:
    """The medians of matched columns, entry by entry, with the signs of the centre, of norm 1."""
    found = []
    for mode, C in enumerate(centre):
        medians = np.zeros_like(C)
        for k, places in enumerate(orders.T):
            columns = np.array(
                [run[mode][:, p] if p >= 0 else np.zeros(len(C)) for run, p in zip(runs, places, strict=True)]
            )
            signs = np.where(columns @ C[:, k] < 0, -1.0, 1.0)
            medians[:, k] = np.median(signs[:, None] * columns, axis=0)
        found.append(unit_columns(medians)[0])
    return tuple(found)


def silhouettes(runs: Sequence[Factors], orders: np.ndarray) -> np.ndarray:
    """The mean silhouette of each cluster of `clustered`, (rank,), distances being angles (Rousseeuw 1987; for parts,
    Alexandrov et al. 2013):

        mean over runs of  (b - a) / max(a, b),

    a the mean angle of a part to the others of its cluster, b the least mean angle to those of another. 1 where there
    is one cluster only; a zero component counts 0.
    """
    n_runs, rank = orders.shape
    scores = cosines_in_order(runs, orders)
    nonzero = scores.diagonal().reshape(n_runs, rank) > 0
    if rank == 1:
        return nonzero.mean(axis=0)
    np.fill_diagonal(scores, 1.0)  # those of zero components too
    sums = np.arccos(scores).reshape(n_runs, rank, n_runs, rank).sum(axis=2)  # to all parts of each cluster
    inside = np.diagonal(sums, axis1=1, axis2=2) / max(n_runs - 1, 1)
    outside = np.where(np.eye(rank, dtype=bool), np.inf, sums / n_runs).min(axis=2)
    widths = (outside - inside) / np.maximum(np.maximum(inside, outside), LEAST_ANGLE)
    return np.where(nonzero, widths, 0.0).mean(axis=0)


def cosines_in_order(runs: Sequence[Factors], orders: np.ndarray) -> np.ndarray:
    """`(n_runs rank, n_runs rank)`: the cosines of all parts in clusters, run after run; 0 where a run has none."""
    ranks = [run[0].shape[1] for run in runs]
    grams = np.ones((sum(ranks), sum(ranks)))
    for mode in range(len(runs[0])):
        arrays = [run[mode] for run in runs]
        step = max(1, BLOCK // sum(ranks))  # some rows at a time: no copy of all runs is made
        blocks = (np.hstack([A[start : start + step] for A in arrays]) for start in range(0, len(arrays[0]), step))
        grams *= np.abs(sum(block.T @ block for block in blocks))
    first = np.cumsum([0, *ranks[:-1]])
    places = np.where(orders >= 0, orders + first[:, None], -1).ravel()
    return np.minimum(chosen(grams, places, places), 1.0)
