"""Oracles: the best rank-one part for a gradient, and proof of how good it is."""

from .rank_one import Atom, rank_one

__all__ = ["Atom", "rank_one"]
