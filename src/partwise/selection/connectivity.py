"""Samples that fall into the same group from run to run: the consensus matrix of Brunet et al. (2004), PNAS 101(12)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.units import unit_columns
from ..result import Result

MOST_SAMPLES = 2000  # of which a consensus matrix is made


def labels(runs: Sequence[Result], rows: Sequence[np.ndarray | None] | None, n_samples: int) -> np.ndarray:
    """The part with most of each sample in each run, (n_runs, n_samples), -1 where it is not known; without columns
    where it is not known in any run. `rows`: which samples a run has."""
    found = np.full((len(runs), n_samples), -1, np.int32)
    own = [np.arange(n_samples) if len(run.factors[0]) == n_samples else None for run in runs] if rows is None else rows
    for line, run, here in zip(found, runs, own, strict=True):
        if here is not None:
            line[here] = strongest(run)
    return found[:, :0] if all(here is None for here in own) else found


def strongest(result: Result) -> np.ndarray:
    """The part with most of each sample, the columns of the first factor having norm 1; -1 where all are 0."""
    A = np.abs(unit_columns(result.factors[0])[0])
    return np.where(A.any(axis=1), A.argmax(axis=1), -1)


def consensus_matrix(labels: np.ndarray) -> np.ndarray:
    """The share of runs in which two samples have the same label, among those that label both; 1/2 where none does. Of
    more than `MOST_SAMPLES` samples, as many drawn at random, always the same."""
    if not labels.shape[1]:
        raise ValueError("which rows of X the runs have is not known, so there is no consensus matrix of its samples")
    if labels.shape[1] > MOST_SAMPLES:
        labels = labels[:, np.sort(np.random.default_rng(0).permutation(labels.shape[1])[:MOST_SAMPLES])]
    together, both = np.zeros((2, labels.shape[1], labels.shape[1]))
    for line in labels:
        known = line >= 0
        together += (line[:, None] == line) & known
        both += known[:, None] & known
    return np.divide(together, both, out=np.full_like(both, 0.5), where=both > 0)


def cophenetic_correlation(matrix: np.ndarray) -> float:
    """Between the distances `1 - c` and the heights at which average linkage joins samples; 1 where all are equal."""
    from scipy.cluster.hierarchy import cophenet  # noqa: PLC0415  # slow to import

    distances, tree = tree_of(matrix)
    if not len(distances) or np.ptp(distances) == 0:
        return 1.0
    heights = cophenet(tree)
    return float(np.corrcoef(distances, heights)[0, 1]) if np.ptp(heights) else 0.0


def tree_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distances of pairs of samples, and their tree by average linkage; no tree of a single sample."""
    from scipy.cluster.hierarchy import linkage  # noqa: PLC0415
    from scipy.spatial.distance import squareform  # noqa: PLC0415

    distances = squareform(1 - matrix, checks=False)
    return distances, linkage(distances, "average") if len(distances) else np.empty((0, 4))


def leaves(matrix: np.ndarray) -> np.ndarray:
    """Samples in the order of the tree, so that groups are blocks."""
    from scipy.cluster.hierarchy import leaves_list  # noqa: PLC0415

    _, tree = tree_of(matrix)
    return leaves_list(tree) if len(tree) else np.arange(len(matrix))
