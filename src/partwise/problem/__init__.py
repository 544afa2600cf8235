"""What is to be solved: data, a loss and structures, and the measures that are the same for every solver."""

from ..losses.expansions import Expansion, Quadratic, curvature_of, gram_of, largest, ratio
from .pose import pose
from .problem import Factors, Measured, Problem, is_binary, zero_components

__all__ = [
    "Expansion",
    "Factors",
    "Measured",
    "Problem",
    "Quadratic",
    "curvature_of",
    "gram_of",
    "is_binary",
    "largest",
    "pose",
    "ratio",
    "zero_components",
]
