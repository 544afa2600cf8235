"""Pictures of a result, with matplotlib: one a function."""

from .codes import codes
from .course import convergence, path
from .modes import modes
from .parts import features, parts
from .residual import residual

__all__ = ["codes", "convergence", "features", "modes", "parts", "path", "residual"]
