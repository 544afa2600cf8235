"""Every compatible (loss, structure, solver): descent, feasibility, optimality, reproducibility."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from partwise.datasets import make_parts
from partwise.init import Given, Random
from partwise.kernels import threads
from partwise.limits import Limits
from partwise.registry import refusal
from partwise.solve import Control, solve
from partwise.structures import Fixed, NonNegative

from .tables import (
    LOSSES,
    PLANTED,
    RANK,
    SHAPE,
    SOLVERS,
    STRUCTURES,
    SYMMETRIC,
    TIED,
    loss_for,
    problem_for,
    problem_of,
    symmetric_problem_of,
)

LARGE = make_parts(500, 400, 4, zeros=0.6, noise=0.1, random_state=0)


def takes(loss, structure):
    """Whether the loss allows the factors that the structure does."""
    return loss.refuses(0.1, structure.bind((SHAPE[1], RANK), transposed=True, name="H").nonnegative) is None


PROBLEMS = {
    f"{a}-{b}": problem_of(structure, loss)
    for (a, loss), (b, structure) in product(LOSSES.items(), (STRUCTURES | TIED).items())
    if takes(loss, structure)
}
PROBLEMS |= {f"frobenius-{name}": symmetric_problem_of(name) for name in SYMMETRIC}
TRIPLES = {
    f"{name}-{c}": (problem, solver) for (name, problem), (c, solver) in product(PROBLEMS.items(), SOLVERS.items())
}
COMPATIBLE = {name: triple for name, triple in TRIPLES.items() if refusal(*triple[::-1]) is None}
triples = pytest.mark.parametrize("problem, solver", COMPATIBLE.values(), ids=COMPATIBLE)


def beginning(solver):
    """Where a solver begins."""
    return solver.begins_with or Random()


def run(problem, solver, start=None, **limits):
    limits = {"max_iter": 40, "tol": 0.0} | limits
    rng = np.random.RandomState(0)
    return solve(problem, [start or beginning(solver)], solver, rng, Control(Limits(**limits)))[0]


def test_the_tables_are_not_empty():
    assert len(COMPATIBLE) > 50
    refused = [why for t in TRIPLES.values() if (why := refusal(*t[::-1]))]
    assert {solver for _, solver in COMPATIBLE.values()} == set(SOLVERS.values())
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
    state = solver.init(problem, beginning(solver)(problem, rng), 0.0, rng)
    for _ in range(15):
        step = solver.step(problem, state)
        assert step.objective == pytest.approx(problem.objective(step.factors), rel=1e-9)


@triples
def test_what_a_step_says_of_stationarity_is_near_the_truth(problem, solver):
    """Within a factor of what it is now or was a step ago: it decides when the loop looks more closely."""
    if not problem.modes:
        pytest.skip("nothing to solve for")
    rng = np.random.RandomState(0)
    state = solver.init(problem, beginning(solver)(problem, rng), 0.0, rng)
    ratios, before = [], None
    for _ in range(12):
        step = solver.step(problem, state)
        truth = problem.stationarity(step.factors)
        if before is not None and max(truth, before) > 1e-9 and step.stationarity < np.inf:  # infinite: not over yet
            ratios.append(step.stationarity / max(truth, before))
        before = truth
    assert not ratios or 0.02 < np.median(ratios) < 50


@triples
def test_only_solvers_that_say_so_draw_random_numbers(problem, solver):
    rng = np.random.RandomState(0)
    state = solver.init(problem, beginning(solver)(problem, rng), 0.0, rng)
    before = rng.get_state()[1:3]
    for _ in range(3):
        solver.step(problem, state)
    drawn = not all(np.array_equal(a, b) for a, b in zip(before, rng.get_state()[1:3]))
    assert drawn == bool(solver.draws and problem.modes)


@triples
def test_a_step_leaves_earlier_factors_alone(problem, solver):
    rng = np.random.RandomState(0)
    start = beginning(solver)(problem, rng)
    state = solver.init(problem, start, 0.0, rng)
    seen = [start, *(solver.step(problem, state).factors for _ in range(3))]
    copies = [[A.copy() for A in factors] for factors in seen]
    for _ in range(3):
        solver.step(problem, state)
    assert all(np.array_equal(A, B) for factors, kept in zip(seen, copies) for A, B in zip(factors, kept))


@triples
def test_converges_to_a_stationary_point(problem, solver):
    """`tol` is met by the problem's own measure, recomputed."""
    tol = 1e-3
    result = run(problem, solver, max_iter=20000, tol=tol)
    assert result.status == "converged"
    assert result.history[-1].n_iter < 20000  # in time, not by luck at the end
    assert problem.stationarity(result.factors) <= tol


@triples
def test_planted_optimum_is_stationary(problem, solver):
    """Without penalties the parts that made X are a solution, wherever the structure admits them."""
    planted = Given.public(PLANTED.W, PLANTED.H)
    if problem.symmetric:
        planted = Given.public(PLANTED.W, None)
        problem = symmetric_problem_of("symmetric" if problem.diagonal else "off-diagonal", PLANTED.W)
    start = planted(problem, np.random.RandomState(0))
    if problem.objective(start) > 1e-20:
        pytest.skip("the structure does not admit the planted parts as a solution")
    result = run(problem, solver, start=planted, max_iter=2, tol=1e-6)
    assert result.status == "converged"
    assert all(np.allclose(A, B, atol=1e-6) for A, B in zip(start, result.factors))


@triples
def test_same_seed_same_bits(problem, solver):
    one, two = (run(problem, solver, max_iter=10).factors for _ in range(2))
    assert all(np.array_equal(A, B) for A, B in zip(one, two))


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("structure", [NonNegative(), Fixed(LARGE.H)], ids=["fit", "parts held"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_bits_for_any_number_of_threads(solver, structure, store, dtype, monkeypatch):
    """Enough rows for several tasks in every kernel, which is checked too."""
    if loss_for(solver) is None and structure.fixed:
        pytest.skip("there is one factor")
    problem = problem_for(solver, LARGE.X.astype(dtype), 4, structure, store)
    monkeypatch.setattr(threads, "pieces", lambda *_: 8)
    tasks, run_tasks = [], threads.run

    def counted(task, boundaries):
        tasks.append(np.count_nonzero(np.diff(boundaries)))
        return run_tasks(task, boundaries)

    monkeypatch.setattr(threads, "run", counted)
    factors = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        factors.append(run(problem, solver, max_iter=6).factors)
    assert np.mean(np.array(tasks) > 1) > 0.5  # not all: rows that are done are no task
    for A, B, C in zip(*factors):
        assert np.array_equal(A, B)
        assert np.array_equal(A, C)


@triples
def test_callers_arrays_are_untouched(problem, solver):
    start = problem.to_user(Random()(problem, np.random.RandomState(1)))
    before = [A.copy() for A in start]
    run(problem, solver, start=Given(start), max_iter=3)
    assert all(np.array_equal(A, B) for A, B in zip(start, before))


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("structure", (STRUCTURES | TIED).values(), ids=STRUCTURES | TIED)
def test_float32_agrees_with_float64(solver, structure):
    if loss_for(solver) is None or not takes(loss_for(solver), structure):
        pytest.skip("for X ~ A A' see below, or the loss needs nonnegative factors")
    if getattr(solver, "exact_blocks", False):
        pytest.skip("linear programs gain much at once, at another iteration in another type: see test_l1.py")
    double = problem_of(structure, loss_for(solver))
    single = problem_of(structure, loss_for(solver), X=PLANTED.X.astype(np.float32))
    if double.modes and refusal(solver, double) is None:
        check_float32(solver, double, single)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("name", SYMMETRIC)
def test_float32_agrees_with_float64_where_symmetric(solver, name):
    double, single = (symmetric_problem_of(name, PLANTED.X.astype(dtype)) for dtype in (np.float64, np.float32))
    if refusal(solver, double) is None:
        check_float32(solver, double, single)


def check_float32(solver, double, single):
    one, two = (run(problem, solver, max_iter=8) for problem in (double, single))
    assert all(A.dtype == np.float32 for A in two.factors)
    assert two.history[-1].objective == pytest.approx(one.history[-1].objective, rel=1e-2, abs=1e-5)
    assert [s.violation(A) for s, A in zip(single.structures, two.factors)] == [0, 0]


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("noise", [0.3, 0.006])
def test_float32_is_honest(solver, noise):
    """Descent up to the rounding of the type, and the truth about the final error."""
    X = make_parts(3000, 40, 5, noise=noise, random_state=1).X.astype(np.float32)
    X = X[:300] if loss_for(solver) is None else X
    problem = problem_for(solver, X, 5)
    loss, X = problem.loss, X @ X.T if problem.symmetric else X
    result = run(problem, solver, max_iter=60)
    objective = np.array([record.objective for record in result.history])
    size = np.power(X.astype(float), loss.degree).sum()
    assert np.diff(objective).max() <= 1e-6 * size
    W, H = (A.astype(float) for A in problem.to_user(result.factors))
    truth = loss.value(X, W @ H.T)
    assert problem.relative_error(result.factors) == pytest.approx((truth / loss.root / size) ** loss.root)
    assert objective[-1] == pytest.approx(truth, rel=1e-6)
