"""The objective and the measure of optimality where X is in blocks of rows: one pass, and nothing tall is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Data
from ..losses.expansions import largest, relative_gain
from ..structures import Structure


@dataclass(frozen=True, eq=False)
class Measure:
    """What rows of X say of the loss, of how much their rows of W could gain, and of H."""

    loss: Any
    structure: Structure  # of W
    H: np.ndarray
    complete: bool

    def __call__(self, data: Data, W: np.ndarray) -> tuple[tuple, tuple]:
        factors = W.astype(data.dtype, copy=False), self.H
        known = self.loss.expand(data, factors, 0, self.structure)
        gains = known.gains(self.structure, factors[0])
        fit = self.loss.fit(data, factors, 0, known, self.structure.ridge)
        return (), (gains, fit, self.loss.share(data, factors, self.complete))


def measured(problem, factors) -> tuple[float, float]:
    """The loss and the stationarity, in the type of the data."""
    W, H = factors
    H = H.astype(problem.data.dtype, copy=False)
    structure_W, structure_H = problem.structures
    _, (gains, fit, share) = problem.data.each(Measure(problem.loss, structure_W, H, problem.data.complete), W)
    known = problem.loss.whole(share, problem.data, H, structure_H.ridge)
    found = [relative_gain(gains, problem.size)] if 0 in problem.modes else []
    found += [known.stationarity(structure_H, H, problem.size)] if 1 in problem.modes else []
    return fit, largest(found)
