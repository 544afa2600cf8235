"""Losses: how far a reconstruction may be from the data."""

from .base import Loss
from .beta import KL, Beta, Divergence, Frobenius, ItakuraSaito

__all__ = ["KL", "Beta", "Divergence", "Frobenius", "ItakuraSaito", "Loss"]
