"""What is to be solved: data, a loss and structures, and the measures that are the same for every solver."""

from .problem import (
    Expansion,
    Factors,
    Kinks,
    Measured,
    Problem,
    Quadratic,
    Tangent,
    curvature_of,
    dead_parts,
    gram_of,
    is_binary,
    largest,
    pose,
    ratio,
)

__all__ = [
    "Expansion",
    "Factors",
    "Kinks",
    "Measured",
    "Problem",
    "Quadratic",
    "Tangent",
    "curvature_of",
    "dead_parts",
    "gram_of",
    "is_binary",
    "largest",
    "pose",
    "ratio",
]
