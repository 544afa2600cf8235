"""Nonnegative double singular value decomposition: Boutsidis and Gallopoulos (2008), Pattern Recognition 41."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.filled import filled
from ..data.spectrum import svd
from ..data.units import column_norms
from .base import Init

SMALLEST = 1e-6  # entries below this become 0


@dataclass(frozen=True)
class NNDSVD(Init):
    """The dominant nonnegative part of each singular pair.

    Numbers are those of scikit-learn where the largest entry of X is 1; `sqrt(max(X))` is the unit of a factor
    here, so that the start does not depend on the units of X.

    Parameters
    ----------
    fill : "zeros", "mean" or "random"
        What zeros become: nothing, the mean of X, or random numbers about a hundredth of it.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, init=pw.init.NNDSVD("mean"))  # or init="nndsvda"
    >>> result.converged
    True
    """

    fill: str = "zeros"
    limited = True
    nonnegative = True
    matrix_only = True
    names: ClassVar = {"zeros": "nndsvd", "mean": "nndsvda", "random": "nndsvdar"}

    @property
    def name(self):
        return self.names[self.fill]

    @property
    def seeded(self):
        return self.fill == "random"

    def raw(self, problem, rng):
        U, s, V = svd(filled(problem.data), problem.rank, rng)
        # of each pair (u, v) keep the heavier of (u+, v+) and (u-, v-); the leading pair has one sign
        lengths = np.array([[column_norms(np.maximum(sign * A, 0)) for A in (U, V)] for sign in (1, -1)])
        kept = lengths.prod(axis=1).argmax(axis=0)  # 0: of positive entries, 1: of negative ones
        length = np.take_along_axis(lengths, kept[None, None], axis=0)[0]  # (2, rank)
        scale = np.sqrt(s * length.prod(axis=0)) / np.where(length > 0, length, 1) * (1 - 2 * kept)
        unit = np.sqrt(problem.data.extremes[1])
        mean = problem.data.mean / unit if unit > 0 else 0.0
        factors = []
        for A, own in zip((U, V), scale.astype(U.dtype), strict=True):
            A = np.ascontiguousarray(A) * own  # noqa: PLW2901
            np.putmask(A, SMALLEST * unit > A, 0)
            factors.append(self.filled(A, mean, rng))
        return tuple(factors)

    def filled(self, A, mean, rng):
        if self.fill == "mean":
            np.putmask(A, A == 0, mean)
        elif self.fill == "random":
            empty = A == 0
            A[empty] = np.abs(mean * rng.standard_normal(np.count_nonzero(empty)) / 100)
        return A
