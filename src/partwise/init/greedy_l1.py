"""One part at a time for the L1 loss: Vandaele, Moutier and Gillis (2022).

From random factors a sweep sets an entry to 0 wherever less than half of its part lies on the nonzeros of that row, and
everything collapses. A part that begins as a row of what is left of X explains at least that row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..data import Data
from ..data.remainder import Remainder, remainder
from ..data.units import comparable
from ..kernels.records import Chosen
from ..problem import Problem
from ..run.interrupts import yielding
from ..structures import Elementwise, Structure
from .base import Init

ROUNDS = 20  # of alternation for a part


@dataclass(frozen=True)
class GreedyL1(Init):
    """The row with the largest sum of what is left of X, fitted to all of X by alternating medians, then subtracted.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 2, random_state=0).X
    >>> pw.factorize(X, 2, loss="l1", init=pw.init.GreedyL1()).rank
    2
    """

    nonnegative = True
    by_entries = True
    for_l1 = True
    name = "greedy-l1"

    def raw(self, problem, rng):
        shapes = [(dim, problem.rank) for dim in problem.data.shape]
        zeros = (np.zeros(shape, problem.data.dtype) for shape in shapes)
        factors = [s.prox(A, 0.0) for s, A in zip(problem.structures, zeros, strict=True)]
        rest = remainder(problem.data, factors, range(len(factors)))
        with yielding():
            for k in range(problem.rank):
                part, rest = next_part(problem, rest, k)
                for A, a in zip(factors, part, strict=True):
                    A[:, [k]] = a
        return factors


def next_part(problem: Problem, rest: Data, k: int) -> tuple[list[np.ndarray], Remainder]:
    """A further part that component k may be, all its factors (dim, 1), and what it leaves."""
    structures = [column(structure, k) for structure in problem.structures]
    part = [structure.prox(a, 0.0) for structure, a in zip(structures, begun(rest), strict=True)]
    for _ in range(ROUNDS):
        settled = True
        for mode, s in enumerate(structures):
            rule = s.box(part[mode]), s.l2, s.binary, 1, Chosen(np.arange(len(part[mode])))
            (part[mode], n_suboptimal), _ = rest.map(kernels.of(part[mode]).weighted_median, part, mode, *rule)
            settled &= not n_suboptimal.any()
        if settled:
            break
    return part, remainder(rest, part, range(len(part)))


def begun(rest: Data) -> list[np.ndarray]:
    """0, and the row that has most left; of a tensor, its sums along each of the other modes."""
    i = int(np.argmax(comparable(rest.row_sums(0, 1.0), rest.dtype)))
    ones = [np.ones((dim, 1), rest.dtype) for dim in rest.shape]
    row = [np.eye(rest.shape[0], 1, -i, dtype=rest.dtype), *ones[1:]]
    return [np.zeros_like(ones[0]), *(rest.cross(row, mode) for mode in range(1, len(row)))]


def column(structure: Structure, k: int) -> Elementwise:
    """What is asked of one component."""
    whole = structure.elementwise
    assert whole is not None
    lower, upper = (np.asarray(bound)[:, [k]] if np.ndim(bound) else bound for bound in (whole.lower, whole.upper))
    return Elementwise(lower, upper, whole.l1, whole.l2, whole.binary)
