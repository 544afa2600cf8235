"""Structures: what is asked of a factor, constraints and penalties. Combine them with `&`.

>>> import partwise as pw
>>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
>>> few = pw.structures.NonNegative() & pw.structures.Sparse(2)
>>> result = pw.factorize(X, 3, structure_W=few, n_init=1, tol=0.01, random_state=0)
>>> int((result.W != 0).sum(axis=1).max())
2
"""

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


def __dir__() -> list[str]:
    return sorted(__all__)
