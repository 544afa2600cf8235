"""Oracles: the best rank-one part for a gradient, and proof of how good it is.

>>> import partwise as pw
>>> pw.oracles.rank_one([[-3.0, -1.0], [2.0, -2.0]]).status
'closed'
"""

from .chain import Atom, rank_one

__all__ = ["Atom", "rank_one"]


def __dir__() -> list[str]:
    return sorted(__all__)
