"""Random starts."""

from dataclasses import dataclass

import numpy as np

from ..data.units import root
from .base import Init


@dataclass(frozen=True)
class Random(Init):
    """Absolute values of normal deviates times `(mean(X) / rank)^(1/d)` for d factors; with their signs where a factor
    is signed.

    For matrices the numbers are those of scikit-learn for the same seed.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, init=pw.init.Random(), n_init=3, random_state=0)
    >>> result.objective == min(result.objectives)
    True
    """

    seeded = True
    informed = False
    name = "random"

    def raw(self, problem, rng):
        kind = problem.data.dtype.type
        first, *others = problem.data.shape
        size = kind(root(problem.data.mean / problem.rank, len(problem.data.shape)))
        # the last first, and all but one lying down, as scikit-learn draws H
        drawn = [rng.standard_normal((problem.rank, dim)).T for dim in reversed(others)]
        drawn.append(rng.standard_normal((first, problem.rank)))
        factors = [size * A.astype(kind, copy=False) for A in reversed(drawn)]
        pairs = zip(problem.structures, factors, strict=True)
        return tuple(np.abs(A) if structure.nonnegative else A for structure, A in pairs)
