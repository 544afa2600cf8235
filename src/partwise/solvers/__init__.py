"""Solvers: one algorithm a file. `factorize(solver=...)` takes one, or its name as `partwise solvers` lists them.

>>> import partwise as pw
>>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
>>> pw.factorize(X, 3, solver=pw.solvers.HALS(sweeps=2)).converged
True
"""

from .admm import ADMM
from .base import Solver, Step
from .block import BlockDescent
from .gcd import GCD
from .greedy import Greedy
from .hals import HALS
from .mixed_norm import MixedNorm
from .mu import MU
from .newton import Newton
from .newton_kl import NewtonKL
from .palm import PALM
from .shared_newton import SharedNewton
from .streamed import Streamed
from .symmetric_cd import SymmetricCD
from .symmetric_gn import SymmetricGN
from .weighted_median import WeightedMedian

__all__ = [
    "ADMM",
    "GCD",
    "HALS",
    "MU",
    "PALM",
    "BlockDescent",
    "Greedy",
    "MixedNorm",
    "Newton",
    "NewtonKL",
    "SharedNewton",
    "Solver",
    "Step",
    "Streamed",
    "SymmetricCD",
    "SymmetricGN",
    "WeightedMedian",
]


def __dir__() -> list[str]:
    return sorted(__all__)
