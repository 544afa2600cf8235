"""Successive projection: Araujo et al. (2001), Chemometrics and Intelligent Laboratory Systems 57.

The parts start as the samples that stick out most: exact when every part occurs pure in some sample (separable
data; Gillis and Vavasis 2014).
"""

from dataclasses import dataclass, replace

import numpy as np

from .. import kernels
from ..data.units import comparable
from ..errors import IncompatibleError
from ..losses import Frobenius
from ..structures import NonNegative
from .base import Init

EXHAUSTED = 1e-12  # of the largest squared norm: what is left is rounding
SWEEPS = 100  # to fit W to the parts


@dataclass(frozen=True)
class SPA(Init):
    """Rows of X, scaled to sum 1, each picked for its distance from the span of those before; W by least squares.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> pw.factorize(X, 3, init=pw.init.SPA()).converged
    True
    """

    limited = True
    nonnegative = True
    complete = True
    matrix_only = True
    name = "spa"

    def raw(self, problem, rng):
        if problem.data.in_blocks:
            raise IncompatibleError("init='spa' needs all of X at once, and X is read in blocks of rows: use 'random'")
        H = self.parts(problem, rng)
        W = np.zeros((problem.data.shape[0], problem.rank), dtype=H.dtype)
        gram, cross = replace(problem, loss=Frobenius()).expansion((W, H), 0)
        box = (problem.structures[0].elementwise or NonNegative()).box(W)
        rows, order = np.arange(W.shape[0]), np.arange(problem.rank)
        W, _ = kernels.of(W).hals(W, cross, gram, box, order, (SWEEPS, 1e-8), rows)
        return W, H

    @staticmethod
    def parts(problem, rng):
        data, rank = problem.data, problem.rank
        kind = data.dtype
        ones = np.ones((data.shape[1], 1), dtype=kind)
        sums = data.cross((ones, ones), 0)[:, 0].astype(np.float64)
        weight = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
        left = data.row_sums(0, 2.0) * np.square(weight)
        largest = left.max()
        basis = np.zeros((0, data.shape[1]))
        H = rng.uniform(size=(data.shape[1], rank)) / data.shape[1]  # stays where X has no further direction
        for k in range(rank):
            i = int(np.argmax(comparable(left, kind)))
            if left[i] <= EXHAUSTED * largest:
                break
            H[:, k] = data.take(0, slice(i, i + 1))[0] * weight[i]
            direction = H[:, k] - basis.T @ (basis @ H[:, k])
            direction -= basis.T @ (basis @ direction)  # once more: Gram-Schmidt twice is enough
            direction /= np.linalg.norm(direction)
            basis = np.vstack([basis, direction])
            along = data.cross((ones, direction[:, None].astype(kind)), 0)[:, 0]
            left = np.maximum(left - np.square(along * weight), 0)
            left[i] = 0
        return H.astype(kind)
