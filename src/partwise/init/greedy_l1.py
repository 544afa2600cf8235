"""One part at a time for the L1 loss: Vandaele, Moutier and Gillis (2022).

From random factors a sweep sets an entry to 0 wherever less than half of its part lies on the nonzeros of that row, and
everything collapses. A part that begins as a row of what is left of X explains at least that row.
"""

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..data.units import comparable
from ..problem import Factors, Problem
from ..run.interrupts import yielding
from ..structures import Elementwise, Structure
from .base import Init

ROUNDS = 20  # of alternation for a part


@dataclass(frozen=True)
class GreedyL1(Init):
    """The row with the largest sum of what is left of X, fitted to all of X by alternating medians, then subtracted."""

    nonnegative = True
    by_entries = True
    for_l1 = True
    name = "greedy-l1"

    def raw(self, problem, rng):
        shapes = [(dim, problem.rank) for dim in problem.data.shape]
        factors = [s.prox(np.zeros(shape, problem.data.dtype), 0.0) for s, shape in zip(problem.structures, shapes)]
        rest = Rest(problem, factors)
        with yielding():
            for k in range(problem.rank):
                for A, a in zip(factors, rest.part(k)):
                    A[:, [k]] = a
        return factors


class Rest:
    """What the parts so far leave of X, where that is positive, at its listed entries, by rows and by columns."""

    def __init__(self, problem: Problem, factors: Factors):
        self.problem = problem
        self.unfolded = []
        for mode, A in enumerate(factors):
            rows, scale = problem.data.entries(mode)
            left = kernels.of(A).residuals(rows, scale, A, factors[1 - mode])
            self.unfolded.append((*rows[:2], np.maximum(left, 0, out=left)))

    def part(self, k: int) -> list[np.ndarray]:
        """A further part that component k may be, both its factors (dim, 1); it is subtracted."""
        structures = [column(structure, k) for structure in self.problem.structures]
        part = [structure.prox(a, 0.0) for structure, a in zip(structures, self.begun())]
        for _ in range(ROUNDS):
            settled = True
            for mode, structure in enumerate(structures):
                part[mode], unsettled = self.improved(part, mode, structure)
                settled &= not unsettled.any()
            if settled:
                break
        for mode, rows in enumerate(self.unfolded):
            left = kernels.of(part[mode]).residuals(rows, 1.0, part[mode], part[1 - mode])
            self.unfolded[mode] = (*rows[:2], np.maximum(left, 0, out=left))
        return part

    def begun(self) -> list[np.ndarray]:
        """0, and the row that has most left."""
        indptr, indices, values = self.unfolded[0]
        part = [np.zeros((dim, 1), values.dtype) for dim in self.problem.data.shape]
        sums = kernels.of(values).power_sums(indptr, values, values.dtype.type(1), 1.0)
        i = np.argmax(comparable(sums, values.dtype))
        entries = slice(indptr[i], indptr[i + 1])
        part[1][slice(None) if indices is None else indices[entries], 0] = values[entries]
        return part

    def improved(self, part: list[np.ndarray], mode: int, structure: Elementwise) -> tuple[np.ndarray, np.ndarray]:
        """One factor of a part to its best, and which of its entries were not."""
        a, b, zero_weight = part[mode], part[1 - mode], self.problem.loss.zero_weight
        rule = structure.box(a), structure.l2, zero_weight, structure.binary, 1, np.arange(len(a))
        return kernels.of(a).weighted_median(self.unfolded[mode], 1.0, a, b, *rule)[:2]


def column(structure: Structure, k: int) -> Elementwise:
    """What is asked of one component."""
    whole = structure.elementwise
    assert whole is not None
    lower, upper = (np.asarray(bound)[:, [k]] if np.ndim(bound) else bound for bound in (whole.lower, whole.upper))
    return Elementwise(lower, upper, whole.l1, whole.l2, whole.binary)
