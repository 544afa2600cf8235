"""What an iteration of `admm` costs beside its products and projections, and what projections cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

import partwise as pw
from partwise import structures as s
from partwise.data import as_data
from partwise.init import Random
from partwise.kernels import threads
from partwise.problem import pose
from partwise.solvers import ADMM
from partwise.solvers.admm import WINDOW

from . import data
from .runs import Table
from .scale import sized
from .semf import LIMBS, TORSO, exact_dictionary, median_of, tasks

ROUNDS = sized(31, 2)  # of what an iteration costs


def tables() -> list[Table]:
    return [
        Table("iterations", COSTS, tasks(iteration, ITERATIONS), 4, "**What an iteration costs, in one thread.**"),
        Table("projections", ["structure", "cost"], tasks(projection, STATED), 1.5, PROJECTIONS),
    ]


COSTS = ["data", "an iteration", "its two products", "its projections", "over both", "the rest over the products"]
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
    """Milliseconds of an iteration, its products with X and its projections; the first over the sum of the others, and
    without the projections over the products. In turns, and in CPU time, so that other work on the machine hardly
    counts."""
    problem = pose(as_data(X), pw.losses.Frobenius(), (codes, parts), rank).normalized()
    solver, rng = ADMM(replacements=0).variant(0, informed=False), np.random.RandomState(0)
    state = solver.init(problem, Random()(problem, rng), 0.0, rng)

    def window():
        for _ in range(WINDOW):
            solver.step(problem, state)

    def product(mode):
        problem.data.cross([split.free for split in state.splits], mode)

    def projection(mode):
        problem.structures[mode].prox(state.splits[mode].free, 1.0)

    pieces = [window, *(partial(function, mode) for function in (product, projection) for mode in (0, 1))]
    with threads.limited(1), problem.data.working():
        for _ in range(2):
            window()
        times = np.array([[cpu_time(piece) for piece in pieces] for _ in range(ROUNDS)])
    whole, *costs = np.median(times, axis=0)
    whole, products, projected = whole / WINDOW, sum(costs[:2]), sum(costs[2:])
    ratios = whole / (products + projected), (whole - projected) / products
    return [*(f"{1e3 * t:.2f} ms" for t in (whole, products, projected)), *(f"{ratio:.2f}" for ratio in ratios)]


def cpu_time(function: Callable) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


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
