"""A start for the L1 loss through smoother ones: gross errors do not mislead it, and it does not collapse."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .. import kernels
from ..data.weighted import observed_sums
from ..kernels.records import PerRow
from ..problem import Problem
from ..run.interrupts import yielding
from .base import Init
from .random import Random


@dataclass(frozen=True)
class SmoothL1(Init):
    """From random factors through `stages` losses, each closer to L1: differences below delta count by their square,
    and delta is halved, from the median of the nonzero entries on; `sweeps` over both factors for each.

    Where one factor is held, every row of the other goes its own way, from equal weights. Where a factor is to be 0/1
    its parts are rounded at half of their largest entry, or at 1/2 where the other is held.

    Parameters
    ----------
    stages : int
        Losses on the way to L1.
    sweeps : int
        Sweeps over both factors for each.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 2, outliers=0.05, random_state=0).X
    >>> pw.factorize(X, 2, loss="l1", init=pw.init.SmoothL1(stages=5), random_state=0).rank
    2
    """

    stages: int = 10
    sweeps: int = 5
    seeded = True
    by_entries = True
    for_l1 = True
    name = "smooth-l1"

    def raw(self, problem, rng):
        entries = [structure.elementwise for structure in problem.structures]
        relaxed = [opened(s, problem.separable) if s.binary else s for s in entries]
        factors = list(Random()(replace(problem, structures=tuple(relaxed)), rng))
        if problem.separable:
            factors[problem.modes[0]][:] = flat(problem, factors)
        factors = [s.prox(A, 0.0) for s, A in zip(relaxed, factors, strict=True)]
        boxes = [structure.box(A) for structure, A in zip(relaxed, factors, strict=True)]
        deltas, together = typical(problem), all(structure.nonnegative for structure in relaxed)
        with yielding():
            for stage in range(self.stages):
                for mode in problem.modes * self.sweeps:
                    rule = boxes[mode], entries[mode].l2, together, PerRow(deltas[mode] * 2.0**-stage)
                    kernel = kernels.of(factors[mode]).smooth_l1
                    (factors[mode],), _ = problem.data.map(kernel, factors, mode, *rule)
        return factors if problem.separable else rescaled(factors, entries)


def opened(structure, bounded: bool):
    """A 0/1 structure with all between, and without its upper bound, but for entries that are held, or if `bounded`."""
    held = np.asarray(structure.lower) == structure.upper
    return replace(structure, upper=np.where(held | bounded, structure.upper, np.inf), binary=False)


def rescaled(factors, entries) -> list[np.ndarray]:
    """Factors that are to be 0/1 with 1 for their largest entry in each part; what that takes goes to the other factor,
    unless that is to be 0/1 too."""
    factors = list(factors)
    for mode, structure in enumerate(entries):
        if structure.binary:
            top, one = factors[mode].max(axis=0), structure.magnitudes[1]
            factors[mode] = factors[mode] / np.where(top > 0, top, 1) * one
            other = next((m for m, s in enumerate(entries) if m != mode and not s.binary), None)
            if other is not None:
                factors[other] = factors[other] * (top / one)
    return factors


def flat(problem: Problem, factors) -> np.ndarray:
    """Equal weights for the rows of the only free factor, that add up to the row."""
    mode = problem.modes[0]
    sums, totals = observed_sums(problem.data, [np.abs(B) for B in factors], mode)
    return (sums / np.where(totals > 0, totals, 1.0))[:, None]


def typical(problem: Problem) -> list[np.ndarray]:
    """For every row of each mode the size of differences to begin with: one for all, or its own in a separable problem,
    where rows know nothing of each other."""
    data = problem.data
    if problem.separable:
        modes = range(len(data.shape))
        pairs = [(data.row_sums(mode, 1.0), data.row_sums(mode, 0.0)) for mode in modes]
        return [np.divide(sums, counts, out=np.ones_like(sums), where=sums > 0) for sums, counts in pairs]
    sizes = np.concatenate([np.abs(X.values[X.values != 0] * np.float64(X.scale)) for X in data.rows(0)])
    median = float(np.median(sizes)) if sizes.size else 1.0
    return [np.full(dim, median) for dim in data.shape]
