"""Random starts."""

from dataclasses import dataclass

import numpy as np

from ..data.units import root
from .base import Init

AT_ONCE = 1 << 13  # numbers


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
        data, rank = problem.data, problem.rank
        size = data.dtype.type(root(data.mean / rank, len(data.shape)))
        factors = [np.empty((dim, rank), data.dtype) for dim in data.shape]
        # the last first, and all but one lying down, as scikit-learn draws H
        for mode in reversed(range(len(factors))):
            A = factors[mode]
            draw(rng, A.T if mode else A, size, absolute=problem.structures[mode].nonnegative)
        return tuple(factors)


def draw(rng: np.random.RandomState, A: np.ndarray, size: np.floating, absolute: bool) -> None:
    """Put normal deviates times a size, or absolute values of these, into A: some rows at a time, since new memory for
    all takes half as long as to draw them."""
    n_rows = max(1, AT_ONCE // A.shape[1])
    for start in range(0, len(A), n_rows):
        rows = A[start : start + n_rows]
        numbers = rng.standard_normal(rows.shape).astype(A.dtype, copy=False)
        np.multiply(numbers, size, out=rows)
        if absolute:
            np.abs(rows, out=rows)
