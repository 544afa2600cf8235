"""Where a factorization starts."""

from .base import Given, Init
from .empty import Empty
from .greedy import GreedyLS
from .greedy_l1 import GreedyL1
from .nndsvd import NNDSVD
from .random import Random
from .smooth_l1 import SmoothL1
from .spa import SPA

__all__ = ["NNDSVD", "SPA", "Empty", "Given", "GreedyL1", "GreedyLS", "Init", "Random", "SmoothL1"]
