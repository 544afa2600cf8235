"""Least squares over the supports of a factor: which entries are nonzero, which projected steps do not revise."""

from __future__ import annotations

import numpy as np

from .. import kernels
from ..structures import Elementwise, Free, NonNegative, Structure

SWEEPS = (20, 0.01)  # of coordinate descent at most, and the share of the first one's gain that is too little
FLIPS = 20  # rounds over the columns of a factor of two values


def reselected(structure: Structure, A: np.ndarray, gram: np.ndarray, cross: np.ndarray, starts: int) -> np.ndarray:
    """A with another support where that lowers `1/2 tr(A gram A') - tr(A' cross)`, searched for from so many starts;
    A itself where the structure leaves nothing to choose."""
    if structure.elementwise is not None and structure.elementwise.binary:
        return flipped(structure.elementwise, A, gram, cross)
    if not structure.limits_only:
        return A
    by_rows = all(axis == 1 for axis, _, _ in structure.limits(A.shape[1]))
    return pursued(structure, A, gram, cross, starts) if by_rows else cut_back(structure, A, gram, cross)


def pursued(structure: Structure, A: np.ndarray, gram: np.ndarray, cross: np.ndarray, starts: int) -> np.ndarray:
    """Orthogonal matching pursuit and exchanges, row by row."""
    rank = A.shape[1]
    most, labels, counts = rank, np.zeros(rank, dtype=int), [rank]  # components in no group have label 0
    for _, group, count in structure.limits(rank):
        if len(group) == rank:
            most = min(most, count)
        else:
            labels[group] = len(counts)
            counts.append(count)
    most = int(min(most, sum(np.minimum(counts, np.bincount(labels, minlength=len(counts))))))
    return kernels.of(A).pursue(A, gram, cross, most, labels, counts, structure.nonnegative, starts)


def cut_back(structure: Structure, A: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """The best factor without the limits, cut back to its largest entries, and its values improved (after Peharz and
    Pernkopf 2012); A where that is no better."""
    order, rows = np.arange(A.shape[1]), np.arange(len(A))
    unlimited = NonNegative() if structure.nonnegative else Free()
    full, _ = kernels.of(A).hals(A, cross, gram, unlimited.box(A), order, SWEEPS, rows)
    cut = structure.prox(full, 0.0)
    face = structure.face(cut)
    assert face is not None
    cut, _ = kernels.of(A).hals(cut, cross, gram, face.box(cut), order, SWEEPS, rows)
    step = cut.astype(np.float64) - A
    return cut if np.vdot(step, (A + step / 2) @ gram - cross) < 0 else A


def flipped(entries: Elementwise, A: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Entries at one of two values: one column after the other, each entry to the other value where that gains."""
    d = np.diag(gram)
    for _ in range(FLIPS):
        before = A
        for k in range(A.shape[1]):
            one = entries.columns([k])
            column, slope = A[:, [k]], (A @ gram[:, [k]]) - cross[:, [k]]
            gains = one.flip_gains(column, slope + entries.l2 * column, d[k] + entries.l2)
            flip = gains[:, 0] > 0
            if flip.any():
                _, lower, upper = one.box(column)
                A = A.copy()
                A[flip, k] = np.where(upper == column, lower, upper)[flip, 0]
        if A is before:
            break
    return A
