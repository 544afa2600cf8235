"""Which losses, structures and solvers go together, from what solvers say of small problems."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
from scipy import sparse

from . import registry
from . import structures as s
from .data import as_data
from .problem import pose

EXAMPLES = {
    "nonnegative": s.NonNegative(),
    "free": s.Free(),
    "l1": s.L1(1.0),
    "l2": s.L2(1.0),
    "elastic": s.Elastic(1.0, 1.0),
    "box": s.Box(-1, 1),
    "binary": s.Binary(),
    "fixed": s.Fixed(np.where(np.eye(3) > 0, 1.0, np.nan)),
}

# of entries tied to each other: with least squares only
TIED = {
    "sparse": s.Sparse(2),
    "equal_nonzeros": s.EqualNonzeros(2),
    "pattern": s.Pattern([1, 2], 1),
    "unit_norm": s.UnitNorm(),
    "simplex": s.Simplex(),
    "hoyer": s.Hoyer(0.5),
    "group_sparsity": s.GroupSparsity(sparsity=0.5),
    "orthogonal_to": s.OrthogonalTo(0),
    "orthogonal": s.Orthogonal(),
    "monotone": s.Monotone(),
    "unimodal": s.Unimodal(),
    "smooth": s.Smooth(1.0),
    "Columns": s.Columns({0: s.Sparse(2, per="component")}),
    "Projection": s.Projection(abs),
}

LOSSES = ["frobenius", "kl", "itakura-saito", "beta(0.5)", "beta(1.5)", "beta(3)", "huber", "l1"]


def takes_pairs(solver) -> bool:
    """Whether a solver is for anything but `X ~ A A'`."""
    return any(mark(solver, loss, structure) != "no" for loss in LOSSES for structure in (EXAMPLES | TIED).values())


def problem_of(X, loss, stated):
    """The problem, or None where the loss does not take such factors or such data."""
    with warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("ignore")  # such as: both factors fix the scale
        return pose(as_data(X), registry.resolve("loss", loss), (stated, stated), 3)
    return None


def mark(solver, loss, structure) -> str:
    for text, stated in (("yes", structure), ("with nonnegative", s.NonNegative() & structure)):
        problem = problem_of(np.ones((3, 3)), loss, stated)
        if problem and registry.refusal(solver, problem) is None:
            return text
    return "no"


def automatic(X, loss, structure) -> tuple[str, str] | None:
    """The name of the solver that `auto` takes, and why, or None where there is none; zeros are left out of X where the
    loss does not take them."""
    for stated in (structure, s.NonNegative() & structure):
        problem = problem_of(X, loss, stated) or problem_of(X + sparse.csr_array(np.ones((3, 3))), loss, stated)
        kinds = {name: registry.resolve("solver", name) for name in registry.SOLVERS}
        if problem and any(registry.refusal(kind, problem) is None for kind in kinds.values()):
            solver, reason = registry.choose(problem, "auto")
            alike = [name for name, kind in kinds.items() if type(kind) is type(solver)]
            same = next((n for n in alike if extrapolates(kinds[n]) == extrapolates(solver)), alike[0])
            return same, reason.split(";")[0]
    return None


def extrapolates(solver) -> bool:
    return getattr(solver, "extrapolate", False)
