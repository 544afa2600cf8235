"""No parts at all: where the greedy solver begins."""

from dataclasses import dataclass

import numpy as np

from .base import Init


@dataclass(frozen=True)
class Empty(Init):
    """No parts at all: where `solver="greedy"` begins.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> pw.factorize(X, 2, solver="greedy", init=pw.init.Empty()).rank
    2
    """

    informed = False
    name = "empty"

    def raw(self, problem, rng):
        return tuple(np.zeros((dim, problem.rank)) for dim in problem.data.shape)
