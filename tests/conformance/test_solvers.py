"""Every compatible (loss, structure, solver): descent, feasibility, optimality, reproducibility."""

from itertools import product

import numpy as np
import pytest

from partwise.init import Given, Random
from partwise.solve import Limits, solve
from partwise.structures import NonNegative

from .tables import LOSSES, PLANTED, SOLVERS, STRUCTURES, problem_of

TRIPLES = {
    f"{a}-{b}-{c}": (problem_of(structure, loss), solver)
    for (a, loss), (b, structure), (c, solver) in product(LOSSES.items(), STRUCTURES.items(), SOLVERS.items())
}
COMPATIBLE = {name: triple for name, triple in TRIPLES.items() if triple[1].supports(triple[0]) is None}
triples = pytest.mark.parametrize("problem, solver", COMPATIBLE.values(), ids=COMPATIBLE)


def run(problem, solver, start=None, **limits):
    limits = {"max_iter": 40, "tol": 0.0} | limits
    rng = np.random.RandomState(0)
    return solve(problem, [start or Random()], solver, Limits(**limits), rng)[0]


def test_the_tables_are_not_empty():
    assert len(COMPATIBLE) > 50
    refused = [t[1].supports(t[0]) for t in TRIPLES.values() if t[1].supports(t[0])]
    assert refused
    assert all(isinstance(why, str) for why in refused)


@triples
def test_objective_never_rises(problem, solver):
    objective = np.array([record.objective for record in run(problem, solver).history])
    if solver.monotone:
        assert np.diff(objective).max() <= 1e-10 * (1 + objective[0])
    assert objective[-1] < objective[0] or not problem.modes


@triples
def test_factors_are_feasible(problem, solver):
    factors = run(problem, solver).factors
    assert [s.violation(A) for s, A in zip(problem.structures, factors)] == [0, 0]


@triples
def test_what_a_step_reports_is_what_the_problem_says(problem, solver):
    rng = np.random.RandomState(0)
    factors = Random()(problem, rng)
    state = solver.init(problem, factors, 0.0, rng)
    for _ in range(15):
        measures = solver.step(problem, factors, state)
        assert measures.objective == pytest.approx(problem.objective(factors), rel=1e-9)


@triples
def test_converges_to_a_stationary_point(problem, solver):
    """`tol` is met by the problem's own measure, recomputed."""
    tol = 1e-3
    result = run(problem, solver, max_iter=20000, tol=tol)
    assert result.status == "converged"
    assert problem.stationarity(result.factors) <= tol


@triples
def test_planted_optimum_is_stationary(problem, solver):
    """Without penalties the parts that made X are a solution, wherever the structure admits them."""
    planted = Given.public(PLANTED.W, PLANTED.H)
    start = planted(problem, np.random.RandomState(0))
    if problem.objective(start) > 1e-20:
        pytest.skip("the structure does not admit the planted parts as a solution")
    result = run(problem, solver, start=planted, max_iter=2, tol=1e-6)
    assert result.status == "converged"
    assert all(np.allclose(A, B, atol=1e-6) for A, B in zip(start, result.factors))


@triples
def test_same_seed_same_bits_for_any_number_of_threads(problem, solver, n_threads):
    runs = []
    for count in (1, 2, 1):
        n_threads(count)
        runs.append(run(problem, solver, max_iter=10).factors)
    for A, B, C in zip(*runs):
        assert np.array_equal(A, B)
        assert np.array_equal(A, C)


@triples
def test_callers_arrays_are_untouched(problem, solver):
    start = problem.to_user(Random()(problem, np.random.RandomState(1)))
    before = [A.copy() for A in start]
    run(problem, solver, start=Given(start), max_iter=3)
    assert all(np.array_equal(A, B) for A, B in zip(start, before))


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_float32_agrees_with_float64(solver):
    double = run(problem_of(NonNegative()), solver, max_iter=20)
    single = run(problem_of(NonNegative(), X=PLANTED.X.astype(np.float32)), solver, max_iter=20)
    assert all(A.dtype == np.float32 for A in single.factors)
    for A, B in zip(single.factors, double.factors):
        assert np.allclose(A, B, atol=2e-3)
