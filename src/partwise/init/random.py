"""Random starts."""

from dataclasses import dataclass

import numpy as np

from .base import Init


@dataclass(frozen=True)
class Random(Init):
    """Absolute values of normal deviates times `sqrt(mean(X) / rank)`; with their signs where a factor is signed.

    The numbers are those of scikit-learn for the same seed.
    """

    seeded = True
    informed = False
    name = "random"

    def raw(self, problem, rng):
        kind = problem.data.dtype.type
        size = kind(np.sqrt(problem.data.mean / problem.rank))
        m, n = problem.data.shape
        # H first and lying down, as scikit-learn draws it
        H = size * rng.standard_normal((problem.rank, n)).astype(kind, copy=False)
        W = size * rng.standard_normal((m, problem.rank)).astype(kind, copy=False)
        return tuple(np.abs(A) if structure.nonnegative else A for structure, A in zip(problem.structures, (W, H.T)))
