"""Parts of several runs, matched one to one: how alike they are, what they have in common, how well they keep apart.

Parts are compared by their columns in all modes but the first, the samples, which may differ from run to run; a
symmetric model has one factor, and is compared by it. Scale and sign do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def taken(factors: Factors, order: np.ndarray) -> Factors:
    """Columns in this order, zeros where it is -1."""
    return tuple(np.where(order >= 0, A[:, order], 0.0) for A in factors)


def matched(reference: Factors, runs: Sequence[Factors]) -> np.ndarray:
    """The cosine of every part of the reference with that of each run that goes with it, (n_runs, rank); 0 where there
    is none, or one of them is zero."""
    found = np.zeros((len(runs), reference[0].shape[1]))
    for line, run in zip(found, runs, strict=True):
        scores = cosines(reference, run)
        order = assigned(scores)
        line[:] = np.where(order >= 0, np.take_along_axis(scores, order[:, None], axis=1)[:, 0], 0.0)
    return found


def clustered(reference: Factors, runs: Sequence[Factors]) -> tuple[list[Factors], Factors]:
    """The parts of all runs in clusters of one part a run, as many as the reference has parts and in their order: the
    runs with their columns in the order of the clusters, and the median parts, of norm 1.

    Runs are matched to the reference at first, then to the median of what was matched, until nothing changes.
    """
    centre, before = reference, None
    for _ in range(ROUNDS):
        orders = [assigned(cosines(centre, run)) for run in runs]
        if before is not None and np.array_equal(orders, before):
            break
        ordered, before = [taken(run, order) for run, order in zip(runs, orders, strict=True)], orders
        centre = median_parts(centre, ordered)
    own = assigned(cosines(reference, centre))  # medians may have changed places
    return [taken(run, own) for run in ordered], taken(centre, own)


def median_parts(centre: Factors, ordered: Sequence[Factors]) -> Factors:
    """The medians of matched columns, entry by entry, with the signs of the centre, of norm 1."""
    found = []
    for mode, C in enumerate(centre):
        medians = np.empty_like(C)
        for k in range(C.shape[1]):
            columns = np.array([run[mode][:, k] for run in ordered])
            signs = np.where(columns @ C[:, k] < 0, -1.0, 1.0)
            medians[:, k] = np.median(signs[:, None] * columns, axis=0)
        found.append(unit_columns(medians)[0])
    return tuple(found)


def silhouettes(ordered: Sequence[Factors]) -> np.ndarray:
    """The mean silhouette of each cluster of `clustered`, (rank,), distances being angles (Rousseeuw 1987; for parts,
    Alexandrov et al. 2013):

        mean over runs of  (b - a) / max(a, b),

    a the mean angle of a part to the others of its cluster, b the least mean angle to those of another. 1 where there
    is one cluster only; a zero component counts 0.
    """
    n_runs, rank = len(ordered), ordered[0][0].shape[1]
    flat = [np.concatenate([run[mode].T for run in ordered]).T for mode in range(len(ordered[0]))]  # runs, then parts
    nonzero = np.all([np.any(A, axis=0) for A in flat], axis=0).reshape(n_runs, rank)
    if rank == 1:
        return nonzero.mean(axis=0)
    angles = np.arccos(cosines(tuple(flat), tuple(flat)))
    np.fill_diagonal(angles, 0.0)
    means = angles.reshape(n_runs, rank, n_runs, rank).sum(axis=2) / n_runs  # to all parts of each cluster
    inside = np.diagonal(means, axis1=1, axis2=2) * n_runs / max(n_runs - 1, 1)
    others = np.where(np.eye(rank, dtype=bool), np.inf, means).min(axis=2)
    widths = (others - inside) / np.maximum(np.maximum(inside, others), LEAST_ANGLE)
    return np.where(nonzero, widths, 0.0).mean(axis=0)
