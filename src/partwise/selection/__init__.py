"""How many parts, and do they come again: rank selection and stability."""

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
