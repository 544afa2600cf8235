"""Losses: how far a reconstruction may be from the data."""

from .base import Loss
from .frobenius import Frobenius

__all__ = ["Frobenius", "Loss"]
