"""Structures: what is wanted of a factor, as a penalty, a set, or both. Combine them with `&`."""

from .algebra import All
from .base import Structure
from .elementwise import L1, L2, Binary, Box, Elastic, Elementwise, Fixed, Free, NonNegative

__all__ = ["L1", "L2", "All", "Binary", "Box", "Elastic", "Elementwise", "Fixed", "Free", "NonNegative", "Structure"]
