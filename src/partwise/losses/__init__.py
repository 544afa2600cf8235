"""Losses: how far a reconstruction is from the data. `factorize(loss=...)` takes one, its name, or a number, beta.

>>> import partwise as pw
>>> X = pw.datasets.make_parts(20, 12, 3, outliers=0.05, random_state=0).X
>>> pw.factorize(X, 3, loss=pw.losses.Huber(0.1), random_state=0).loss
Huber(delta=0.1)
"""

from .base import Loss
from .beta import KL, Beta, Divergence, Frobenius, ItakuraSaito, divergence_of
from .huber import Huber
from .l1 import L1

__all__ = ["KL", "L1", "Beta", "Divergence", "Frobenius", "Huber", "ItakuraSaito", "Loss", "divergence_of"]


def __dir__() -> list[str]:
    return sorted(__all__)
