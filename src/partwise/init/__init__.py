"""Where a factorization starts."""

from .base import Given, Init
from .nndsvd import NNDSVD
from .random import Random
from .spa import SPA

__all__ = ["NNDSVD", "SPA", "Given", "Init", "Random"]
