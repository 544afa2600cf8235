"""Oracles: the best rank-one part for a gradient, and proof of how good it is."""

from .chain import Atom, rank_one

__all__ = ["Atom", "rank_one"]
