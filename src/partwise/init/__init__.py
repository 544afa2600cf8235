"""Starts: where a factorization begins. `factorize(init=...)` takes one, its name, arrays or a `Result`.

>>> import partwise as pw
>>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
>>> pw.factorize(X, 3, init=pw.init.NNDSVD("mean")).converged
True
"""

from .base import Given, Init
from .empty import Empty
from .greedy import GreedyLS
from .greedy_l1 import GreedyL1
from .nndsvd import NNDSVD
from .random import Random
from .smooth_l1 import SmoothL1
from .spa import SPA

__all__ = ["NNDSVD", "SPA", "Empty", "Given", "GreedyL1", "GreedyLS", "Init", "Random", "SmoothL1"]


def __dir__() -> list[str]:
    return sorted(__all__)
