"""Solvers: one algorithm a file. `partwise.registry` names them."""

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
    "Solver",
    "Step",
    "Streamed",
    "SymmetricCD",
    "SymmetricGN",
    "WeightedMedian",
]
