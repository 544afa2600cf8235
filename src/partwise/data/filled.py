"""X with its holes filled in by a model of rank 1, for starts that need all of X: products with it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..losses.expansions import OwnGrams
from .base import Data
from .weighted import Weighted

ROUNDS = 5  # of alternating least squares for the model


@dataclass(frozen=True, eq=False)
class Filled(Data):
    """`m x + (1 - m) y`, m the weights and y the model: nothing that is not listed is formed."""

    told: Data  # what the listed entries say
    model: Sequence[np.ndarray]  # one vector for each mode, (dim, 1)
    share: float  # of the model, where nothing is listed

    def rows(self, mode):
        raise NotImplementedError

    def cross(self, factors, mode):
        product = self.told.cross(factors, mode)
        if not self.share:
            return product
        inner = np.prod(
            [m.T @ A for other, (m, A) in enumerate(zip(self.model, factors, strict=True)) if other != mode], 0
        )
        return product + (self.share * self.model[mode] * inner).astype(product.dtype)


def filled(data: Data) -> Data:
    """The data themselves where all entries count alike."""
    if not isinstance(data, Weighted):
        return data
    model = rank_one(data)
    values, weights = data.listed_pair()
    (excess,) = data.excess.listed()
    most = data.largest  # an entry with this weight is known
    along = data.along([vector[:, 0] for vector in model]) * data.scale
    told = values * (weights / most) - (excess / most) * along
    share = 1 - data.unlisted / most
    entries = data.entries.with_values(told.astype(values.dtype)).variant(scale=data.scale, dtype=data.dtype)
    return Filled(data.shape, data.dtype, data.scale, entries, model, share)


def rank_one(data: Weighted) -> list[np.ndarray]:
    """The vectors of a model of rank 1, by alternating least squares from ones."""
    model = [np.ones((dim, 1), data.dtype) for dim in data.shape]
    for mode in list(range(len(model))) * ROUNDS:
        known = OwnGrams(data, model, mode, 0.0)
        _, curvature = known.slopes(model[mode])
        seen = curvature > 0
        model[mode] = np.divide(known.cross, curvature, out=np.zeros_like(model[mode]), where=seen)
    return model
