"""Every compatible (loss, structure, solver): descent, feasibility, optimality, reproducibility."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import sparse

from partwise.datasets import make_parts
from partwise.init import Given, Random
from partwise.kernels import threads
from partwise.kernels.cpu import team
from partwise.registry import refusal
from partwise.run.limits import Limits
from partwise.run.loop import OFTEN, Control, solve
from partwise.solvers import ADMM, MU
from partwise.structures import Fixed, NonNegative

from ..covering import EACH
from .tables import (
    LOSSES,
    OF_TENSORS,
    PLANTED,
    RANK,
    SHAPE,
    SOLVERS,
    STRUCTURES,
    SYMMETRIC,
    TENSORS,
    TIED,
    loss_for,
    problem_for,
    problem_of,
    sparse_tensor,
    symmetric_problem_of,
    symmetric_tensor_problem_of,
    tensor_problem_of,
)

SEVERAL = make_parts(60, 50, 4, zeros=0.6, noise=0.1, random_state=0)  # rows for several tasks


# multiplicative updates look at bounds and penalties alone, and take long to get anywhere
SIMPLE = ("-nonnegative", "-nonnegative & elastic & box")


def takes(loss, structure, transposed=True):
    """Whether the loss allows the factors that the structure does."""
    return loss.refuses(0.1, structure.bind((SHAPE[1], RANK), transposed=transposed, name="H").nonnegative) is None


EXACT = ("frobenius", "kl", "l1")
NAMED = {name: loss for name, loss in LOSSES.items() if name != "kullback-leibler"}  # kl again
PROBLEMS = {
    f"{a}-{b}": problem_of(structure, loss)
    for (a, loss), (b, structure) in product(NAMED.items(), (STRUCTURES | TIED).items())
    if takes(loss, structure)
}
PROBLEMS |= {f"frobenius-{name}": symmetric_problem_of(name) for name in SYMMETRIC}
PROBLEMS |= {f"frobenius-symmetric, order {order}": symmetric_tensor_problem_of(order) for order in TENSORS}
PROBLEMS |= {"frobenius-symmetric, order 3, sparse": symmetric_tensor_problem_of(3, sparse_tensor)}
# every loss, and every structure under some
PROBLEMS |= {
    f"order {order}: {a}-{b}": tensor_problem_of(order, b, loss)
    for order, (a, loss), b in product(TENSORS, NAMED.items(), OF_TENSORS)
    if (a in EXACT or b in ("nonnegative", "fixed", "nonnegative & elastic & box"))
    and takes(loss, OF_TENSORS[b], False)
}
PROBLEMS |= {
    f"order 3, mode {mode}: frobenius-{b}": tensor_problem_of(3, b, LOSSES["frobenius"], mode)
    for mode, b in product((0, 1), OF_TENSORS)
    if not b.startswith("binary")  # which moves in leaps, so that estimates from before the others moved say little
}
TRIPLES = {
    f"{name}-{c}": (problem, solver)
    for (name, problem), (c, solver) in product(PROBLEMS.items(), SOLVERS.items())
    if not isinstance(solver, MU) or name.endswith(SIMPLE)
}
COMPATIBLE = {name: triple for name, triple in TRIPLES.items() if refusal(*triple[::-1]) is None}

triples = pytest.mark.parametrize("problem, solver", COMPATIBLE.values(), ids=COMPATIBLE)
NAMES = {solver: name for name, solver in SOLVERS.items()}


def shown(name, problem, solver):
    """Of a triple: its structure; by a solver a loss and an order; by a kind of solver whether entries are tied."""
    where, _, stated = name.removesuffix(f"-{NAMES[solver]}").rpartition(": ")
    loss = next(loss for loss in LOSSES if stated.startswith(f"{loss}-"))
    structure = stated.removeprefix(f"{loss}-")
    return {
        ("loss", loss, solver),
        ("tied", structure in TIED, type(solver)),
        ("order", where, solver),
        ("structure", structure),
    }


def beginning(solver):
    """Where a solver begins."""
    return solver.default_init or Random()


def same(factors, others):
    """To the bit."""
    return all(np.array_equal(A, B) for A, B in zip(factors, others, strict=True))


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


class Walk:
    """Some steps of a solver, and what they said, left and used."""

    STEPS = 40
    COMPARED = 12  # of them with the measures of the problem, which cost as much as a step

    def __init__(self, problem, solver, steps=STEPS):
        self.problem, self.solver, rng = problem, solver, np.random.RandomState(0)
        start = beginning(solver)(problem, rng)
        state = solver.init(problem, start, 0.0, rng)
        drawn = rng.get_state()[1:3]
        self.factors, self.copies, self.steps = [start], [[A.copy() for A in start]], []
        for _ in range(steps):
            self.steps.append(solver.step(problem, state))
            self.factors.append(self.steps[-1].factors)
            self.copies.append([A.copy() for A in self.factors[-1]])
        self.drew = not all(np.array_equal(a, b) for a, b in zip(drawn, rng.get_state()[1:3], strict=True))

    def check(self):
        """All of what follows."""
        self.check_descent()
        self.check_feasibility()
        self.check_reported_objectives()
        self.check_reported_stationarity()
        self.check_random_numbers()
        self.check_arrays_of_earlier_steps()
        self.check_repetition()

    def check_descent(self):
        objective = np.array([self.problem.objective(self.factors[0]), *(step.objective for step in self.steps)])
        if self.solver.monotone:
            assert np.diff(objective).max() <= 1e-10 * (1 + objective[0])
        assert objective[-1] < objective[0] or not self.problem.modes

    def check_feasibility(self):
        assert [s.violation(A) for s, A in zip(self.problem.structures, self.factors[-1], strict=True)] == [0] * len(
            self.factors[-1]
        )

    def check_reported_objectives(self):
        for step in self.steps[: self.COMPARED]:
            assert step.objective == pytest.approx(self.problem.objective(step.factors), rel=1e-9)

    def check_reported_stationarity(self):
        """Within a factor of what it is now or was a step ago: it decides when the loop looks more closely."""
        truths = [self.problem.stationarity(factors) for factors in self.factors[: self.COMPARED + 1]]
        told = [step.stationarity for step in self.steps[: self.COMPARED]]
        pairs = [
            (e, max(pair)) for e, pair in zip(told, pairwise(truths), strict=True) if max(pair) > 1e-9 and e < np.inf
        ]
        ratios = [estimate / truth for estimate, truth in pairs[1:]]  # infinite: not over yet
        assert not ratios or 0.02 < np.median(ratios) < 50

    def check_random_numbers(self):
        assert self.drew == bool(self.solver.draws and self.problem.modes)

    def check_arrays_of_earlier_steps(self):
        assert all(map(same, self.factors, self.copies))

    def check_repetition(self):
        assert same(Walk(self.problem, self.solver, 10).factors[-1], self.factors[10])


# variants of solvers run without further structures, and tensors with a few
@pytest.mark.slow_cases(
    r"(?<!-nonnegative)-(hals, shuffled|cd|(gcd|newton|newton_kl), plain|streamed)$|streamed, plain$"
)
@pytest.mark.slow_cases("sparse & (orthogonal|hoyer)-palm$")
@pytest.mark.slow_cases("^order 3, mode|^order 4(?!: (frobenius|kl|l1)-nonnegative-)")
@pytest.mark.slow_cases(
    "^order 3: (?!(frobenius|kl|l1|beta)-nonnegative-|frobenius-(box|fixed|simplex|pattern).*palm$)"
)
@pytest.mark.covering(shown=shown)
@triples
def test_steps_keep_their_promises(problem, solver):
    Walk(problem, solver).check()


# variants of solvers, tensors and multiplicative updates take long; descent within structures that tie entries is how
# `admm` ends, too
@pytest.mark.slow_cases("-palm$|^order|(plain|shuffled|-cd|-mu|mu_extrapolated|thorough)$|(?<!-nonnegative)-streamed$")
@pytest.mark.slow_cases("(orthogonal|hoyer|unimodal|group_sparsity|equal_nonzeros).*admm$")
@pytest.mark.covering(shown=shown)
@triples
def test_converges_to_a_stationary_point(problem, solver):
    """`tol` is met by the problem's own measure, recomputed."""
    tol = 1e-3
    result = run(problem, solver, max_iter=20000, tol=tol)
    assert result.status == "converged"
    assert result.history[-1].n_iter < 20000  # in time, not by luck at the end
    assert problem.stationarity(result.factors) <= tol


@pytest.mark.slow_cases("^(l1|elastic|monotone|unimodal|sparse & .*)$")
@pytest.mark.parametrize("structure", (STRUCTURES | TIED).values(), ids=STRUCTURES | TIED)
def test_admm_stops_at_tol(structure, monkeypatch):
    """Its search where it fits to `tol`, its descent where that is stationary, but for the steps between two looks."""
    tol, problem, step, taken = 1e-4, problem_of(structure), ADMM.step, []
    monkeypatch.setattr(ADMM, "step", lambda *arguments: taken.append(step(*arguments)) or taken[-1])
    result = run(problem, ADMM(search=200), max_iter=20000, tol=tol)
    assert result.status == "converged"
    searched = [s.objective for s in taken if s.stationarity == np.inf]
    assert np.all(np.sqrt(2 * np.array(searched[:-1])) > tol * problem.data.norm)
    descended = [problem.stationarity(s.factors) for s in taken[len(searched) :]]
    assert descended[-1] <= tol
    stationary = "".join("x" if measure <= tol else " " for measure in descended[:-1]).split()
    assert max(map(len, stationary), default=0) <= OFTEN


# structures that allow the parts which made X, or, for unit_norm, the same parts on another scale
ADMITTING = (
    *("nonnegative", "free", "fixed", "fixed partly", "fixed parts", "nonnegative & fixed parts", "box arrays"),
    *("unit_norm", "projection", "columns", *SYMMETRIC),
)
MADE = {
    f"{name}-{structure}-{c}": (problem, solver)
    for (name, structure), (c, solver) in product(product(NAMED, ADMITTING), SOLVERS.items())
    if (problem := PROBLEMS.get(f"{name}-{structure}")) and problem.loss.degree > 0 and not refusal(solver, problem)
}


@EACH
@pytest.mark.parametrize("problem, solver", MADE.values(), ids=MADE)
def test_planted_optimum_is_stationary(problem, solver):
    """Without penalties the parts that made X are a solution."""
    planted = Given.public(PLANTED.W, PLANTED.H)
    if problem.symmetric:
        planted = Given.public(PLANTED.W, None)
        problem = symmetric_problem_of("symmetric" if problem.diagonal else "off-diagonal", PLANTED.W)
    start = planted(problem, np.random.RandomState(0))
    assert problem.objective(start) < 1e-12
    result = run(problem, solver, start=planted, max_iter=2, tol=1e-6)
    assert result.status == "converged"
    assert all(np.allclose(A, B, atol=1e-6) for A, B in zip(start, result.factors, strict=True))


@EACH
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("structure", [NonNegative(), Fixed(SEVERAL.H)], ids=["fit", "parts held"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_same_bits_for_any_number_of_threads(solver, structure, store, monkeypatch):
    """Several tasks in every kernel, which is checked too."""
    if loss_for(solver) is None and structure.fixed:
        pytest.skip("there is one factor")
    problem = problem_for(solver, SEVERAL.X, 4, structure, store)
    monkeypatch.setattr(threads, "pieces", lambda *_: 8)
    tasks = []

    def counting(run_tasks):
        def counted(task, boundaries, *arguments):
            tasks.append(np.count_nonzero(np.diff(boundaries)))
            return run_tasks(task, boundaries, *arguments)

        return counted

    monkeypatch.setattr(threads, "map_chunks", counting(threads.map_chunks))
    monkeypatch.setattr(team, "_over", counting(team._over))
    factors = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        factors.append(run(problem, solver, max_iter=6).factors)
    assert np.mean(np.array(tasks) > 1) > 0.5  # not all: rows that are done are no task
    assert same(factors[0], factors[1])
    assert same(factors[0], factors[2])


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_callers_arrays_are_untouched(solver):
    problem = problem_for(solver, PLANTED.X, RANK)
    start = problem.to_user(Random()(problem, np.random.RandomState(1)))
    before = [A.copy() for A in start]
    run(problem, solver, start=Given(start), max_iter=3)
    assert same(start, before)


def in_both_types():
    """A solver, how a problem is made of X, and X: its first loss with every structure that it takes."""
    # linear programs gain much at once, at another iteration in another type: see test_l1.py
    plain = {name: solver for name, solver in SOLVERS.items() if not getattr(solver, "exact_blocks", False)}
    for (name, solver), (what, structure) in product(plain.items(), (STRUCTURES | TIED).items()):
        loss = loss_for(solver)
        if loss is not None and takes(loss, structure):
            X = PLANTED.X + 0.1 * (loss.degree <= 0)
            yield f"{what}-{name}", solver, partial(problem_of, structure, loss), X
    for (name, solver), what in product(plain.items(), SYMMETRIC):
        yield f"{what}-{name}", solver, partial(symmetric_problem_of, what), PLANTED.X


BOTH_TYPES = {
    name: (solver, make, X)
    for name, solver, make, X in in_both_types()
    if (problem := make(X)).modes and refusal(solver, problem) is None
}


@pytest.mark.slow_cases("^(?!nonnegative-hals$)")
@pytest.mark.parametrize("solver, make, X", BOTH_TYPES.values(), ids=BOTH_TYPES)
def test_float32_agrees_with_float64(solver, make, X):
    double, single = (make(X.astype(dtype)) for dtype in (np.float64, np.float32))
    one, two = (run(problem, solver, max_iter=8) for problem in (double, single))
    assert all(A.dtype == np.float32 for A in two.factors)
    assert two.history[-1].objective == pytest.approx(one.history[-1].objective, rel=1e-2, abs=1e-5)
    assert [s.violation(A) for s, A in zip(single.structures, two.factors, strict=True)] == [0, 0]


@pytest.mark.slow_cases(r"^(?!0\.3-hals$)")
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("noise", [0.3, 0.006])
def test_float32_is_honest(solver, noise):
    """Descent up to the rounding of the type, and the truth about the final error."""
    costly = loss_for(solver) is None or getattr(solver, "exact_blocks", False)  # X X', or linear programs
    X = make_parts(150 if costly else 2000, 40, 5, noise=noise, random_state=1).X.astype(np.float32)
    problem = problem_for(solver, X, 5)
    loss, X = problem.loss, X @ X.T if problem.symmetric else X
    result = run(problem, solver, max_iter=60)
    objective = np.array([record.objective for record in result.history])
    size = np.power(X.astype(float), loss.degree).sum()
    assert np.diff(objective).max() <= 1e-6 * size
    W, H = (A.astype(float) for A in problem.to_user(result.factors))
    truth = loss.value(X, W @ H.T)
    assert problem.relative_error(result.factors) == pytest.approx(
        (truth / loss.error_power / size) ** loss.error_power
    )
    assert objective[-1] == pytest.approx(truth, rel=1e-6)
