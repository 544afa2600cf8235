"""Solvers: one algorithm a file. `partwise.registry` names them."""

from .base import Solver, Step
from .block import BlockDescent
from .gcd import GCD
from .hals import HALS
from .mu import MU

__all__ = ["GCD", "HALS", "MU", "BlockDescent", "Solver", "Step"]
