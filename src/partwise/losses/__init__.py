"""Losses: how far a reconstruction may be from the data."""

from .base import Loss
from .beta import KL, Beta, Divergence, Frobenius, ItakuraSaito, divergence_of
from .huber import Huber
from .l1 import L1

__all__ = ["KL", "L1", "Beta", "Divergence", "Frobenius", "Huber", "ItakuraSaito", "Loss", "divergence_of"]
