"""No parts at all: where the greedy solver begins."""

from dataclasses import dataclass

import numpy as np

from .base import Init


@dataclass(frozen=True)
class Empty(Init):
    informed = False
    name = "empty"

    def raw(self, problem, rng):
        return tuple(np.zeros((dim, problem.rank)) for dim in problem.data.shape)
