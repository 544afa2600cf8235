"""What an iteration of `admm` costs beside its products and projections, and what projections cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import partwise as pw
from partwise import structures as s
from partwise.data import as_data
from partwise.init import Random
from partwise.problem import pose
from partwise.solvers import ADMM

from . import data
from .runs import Table
from .semf import LIMBS, TORSO, exact_dictionary, median_of, tasks


def tables() -> list[Table]:
    return [
        Table("iterations", COSTS, tasks(iteration, ITERATIONS), 4, "**What an iteration costs.**"),
        Table("projections", ["structure", "cost"], tasks(projection, STATED), 1.5, PROJECTIONS),
    ]


COSTS = ["data", "an iteration", "its two cross products", "its projections", "the rest over the products"]
ITERATIONS: dict[str, Callable[[], tuple]] = {
    "orl, 25 parts, 10% nonzeros each": lambda: (
        data.images("orl"), 25, s.NonNegative(), s.NonNegative() & s.Sparse(1030, per="component"),
    ),
    "news20, 20 parts, 3 in a text": lambda: (
        data.counts("news20"), 20, s.NonNegative() & s.Sparse(3), s.NonNegative(),
    ),
    "Swimmer, sets (35)": lambda: (pw.datasets.make_swimmer().X, 17, LIMBS, TORSO),
    "dictionary of section 4.1": lambda: (exact_dictionary(0)[0], 60, s.Sparse(3), s.UnitNorm()),
}  # fmt: skip


def iteration(name: str) -> list[list]:
    return [[name, *costs(*ITERATIONS[name]())]]


def costs(X, rank: int, codes, parts) -> list[str]:
    """Milliseconds of an iteration, its products and its projections, and the ratio that is to stay small."""
    problem = pose(as_data(X), pw.losses.Frobenius(), (codes, parts), rank).normalized()
    solver, rng = ADMM(replacements=0).variant(0, informed=False), np.random.RandomState(0)
    state = solver.init(problem, Random()(problem, rng), 0.0, rng)
    with problem.data.working():
        for _ in range(5):
            solver.step(problem, state)
        free = [split.free for split in state.splits]
        products = sum(median_of(partial(problem.data.cross, free, m)) for m in (0, 1))
        projected = sum(median_of(partial(problem.structures[m].prox, free[m], 1.0)) for m in (0, 1))
        whole = median_of(partial(solver.step, problem, state))
    return [*(f"{1e3 * t:.1f} ms" for t in (whole, products, projected)), f"{(whole - projected) / products:.1f}"]


PROJECTIONS = "**What a projection of a 10304 × 25 factor costs, in units of a cross product with a 10304 × 400 X.**"
STATED = {
    "`Sparse(3)`, by items": s.Sparse(3),
    "`NonNegative & Sparse(1030)`, by components": s.NonNegative() & s.Sparse(1030, per="component"),
    "`NonNegative & EqualNonzeros(3)`": s.NonNegative() & s.EqualNonzeros(3),
    "`NonNegative & Pattern`, five groups": s.NonNegative() & s.Pattern([5] * 5, 1),
    "`UnitNorm`": s.UnitNorm(),
    "`Simplex`, by items": s.Simplex(),
    "`Hoyer(0.8)`, by components": s.Hoyer(0.8),
    "`NonNegative & OrthogonalTo`": s.NonNegative() & s.OrthogonalTo(0, nonzeros=500),
    "`Orthogonal`": s.Orthogonal(),
    "`Monotone`": s.Monotone(),
    "`NonNegative & Unimodal`": s.NonNegative() & s.Unimodal(),
    "`Smooth`": s.Smooth(1.0),
}


def projection(name: str) -> list[list]:
    rng = np.random.default_rng(0)
    A, X = rng.standard_normal((10304, 25)), rng.uniform(size=(10304, 400))
    cross = median_of(lambda: X @ (A[:400]))
    bound = STATED[name].bind(A.shape, transposed=False, name="W")
    bound.prox(A, 1.0)
    return [[name, f"{median_of(lambda: bound.prox(A, 1.0)) / cross:.2f}"]]
