"""How many parts, and do they come again: rank selection and stability.

>>> import partwise as pw
>>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
>>> pw.select_rank(X, 4, n_repeats=1, n_starts=2).rank
2
"""

from .base import Method, Outcome, Split, Test
from .blocks import Blocks
from .select import select_rank
from .selected import RankRow, RankSelection
from .speckled import Speckled
from .stability import Stability, stability
from .thinning import Thinning

__all__ = [
    "Blocks",
    "Method",
    "Outcome",
    "RankRow",
    "RankSelection",
    "Speckled",
    "Split",
    "Stability",
    "Test",
    "Thinning",
    "select_rank",
    "stability",
]


def __dir__() -> list[str]:
    return sorted(__all__)
