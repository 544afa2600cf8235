"""Structures: constraints and penalties on a factor. Combine them with `&`."""

from .base import Structure
from .budgets import GroupSparsity, project_groups
from .columns import Columns
from .custom import Projection
from .elementwise import L1, L2, Binary, Box, Elastic, Elementwise, Fixed, Free, NonNegative
from .intersection import Intersection
from .norm import Hoyer, Simplex, UnitNorm
from .orthogonal import Orthogonal, OrthogonalTo
from .shape import Monotone, Smooth, Unimodal
from .sparse import EqualNonzeros, Pattern, Sparse

__all__ = [
    "L1",
    "L2",
    "Binary",
    "Box",
    "Columns",
    "Elastic",
    "Elementwise",
    "EqualNonzeros",
    "Fixed",
    "Free",
    "GroupSparsity",
    "Hoyer",
    "Intersection",
    "Monotone",
    "NonNegative",
    "Orthogonal",
    "OrthogonalTo",
    "Pattern",
    "Projection",
    "Simplex",
    "Smooth",
    "Sparse",
    "Structure",
    "Unimodal",
    "UnitNorm",
    "project_groups",
]
