"""Least squares over the supports of a factor: which entries are nonzero, which projected steps do not revise."""

from __future__ import annotations

import numpy as np

from .. import kernels
from ..kernels.records import Box
from ..run import interrupts
from ..structures import Elementwise, Free, NonNegative, Structure

SWEEPS = (20, 0.01)  # of coordinate descent at most, and the share of the first one's gain that is too little
FLIPS = 20  # rounds over the columns of a factor of two values
PAIRS, WORTH = 100, 1e-12  # moves of one or two entries of a row at most, and the relative gain that is one
BLOCK = 1 << 19  # pairs of entries that are compared at a time


def reselected(structure: Structure, A: np.ndarray, gram: np.ndarray, cross: np.ndarray, starts: int) -> np.ndarray:
    """A with another support where that lowers `1/2 tr(A gram A') - tr(A' cross)`, searched for from so many starts;
    A itself where the structure leaves nothing to choose."""
    if structure.elementwise is not None and structure.elementwise.binary:
        A = flipped(structure.elementwise, A, gram, cross)
        return flipped_in_pairs(structure.elementwise, A, gram, cross) if starts > 1 else A
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
    cut = structure.prox(within_bounds(structure, A, gram, cross), 0.0)
    face = structure.face(cut)
    assert face is not None
    cut, _ = kernels.of(A).hals(cut, cross, gram, face.box(cut), order, SWEEPS, rows)
    step = cut.astype(np.float64) - A
    return cut if np.vdot(step, (A + step / 2) @ gram - cross) < 0 else A


def within_bounds(structure: Structure, A: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """The best factor within the bounds, or of the sign, that a structure asks for, whatever else it does."""
    entries = structure.elementwise or (NonNegative() if structure.nonnegative else Free())
    box, order, rows = Elementwise(entries.lower, entries.upper).box(A), np.arange(A.shape[1]), np.arange(len(A))
    return kernels.of(A).hals(A, cross, gram, box, order, SWEEPS, rows)[0]


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


def flipped_in_pairs(entries: Elementwise, A: np.ndarray, gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """The same by one or two entries of a row at a time, those that gain most together."""
    box, height = entries.box(A), max(1, BLOCK // A.shape[1] ** 2)
    gram = gram + gram.dtype.type(entries.l2) * np.eye(A.shape[1], dtype=gram.dtype)
    blocks = [
        best_pairs(A[i : i + height], gram, cross[i : i + height], box.within(i, i + height))
        for i in range(0, max(len(A), 1), height)
    ]
    return np.concatenate(blocks)


def best_pairs(A: np.ndarray, gram: np.ndarray, cross: np.ndarray, box: Box) -> np.ndarray:
    """Move the best pair of every row to its other bounds, as long as that gains."""
    interrupts.check()
    A, rows, every = A.copy(), np.arange(len(A)), np.arange(A.shape[1])
    worth = max(WORTH, 4 * float(np.finfo(A.dtype).eps))
    lower, upper = (np.broadcast_to(bound, A.shape) for bound in (box.lower, box.upper))
    for _ in range(PAIRS):
        own, terms = A[rows], A[rows] @ gram - cross[rows]
        other = np.where(own == upper[rows], lower[rows], upper[rows])
        step = other - own
        single = -step * (terms + np.diag(gram) * step / 2) - box.l1 * (np.abs(other) - np.abs(own))
        gains = single[:, :, None] + single[:, None, :] - gram * step[:, :, None] * step[:, None, :]
        gains[:, every, every] = single
        best = gains.reshape(len(rows), A.shape[1] ** 2).argmax(axis=1)
        i, j = np.divmod(best, A.shape[1])
        lines = np.arange(len(rows))
        moves = gains[lines, i, j] > worth * np.max(np.abs(step * terms), axis=1, initial=0)
        rows, i, j, other = rows[moves], i[moves], j[moves], other[moves]
        if not rows.size:
            break
        lines = np.arange(len(rows))
        A[rows, i], A[rows, j] = other[lines, i], other[lines, j]
    return A
