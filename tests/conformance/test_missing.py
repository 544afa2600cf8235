"""Every solver on data of which entries are missing or count differently, in every storage."""

import re
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from partwise.data.observed import observed
from partwise.errors import IncompatibleError
from partwise.problem.weights import pose_observed
from partwise.registry import refusal
from partwise.solvers import ADMM, MU
from partwise.structures import NonNegative

from .tables import LOSSES, OF_TENSORS, PLANTED, RANK, SOLVERS, STRUCTURES, TENSORS, TIED, sparse_tensor, tensor_of
from .test_solvers import SIMPLE, Walk, run

RNG = np.random.default_rng(11)
SEEN = {share: RNG.uniform(size=PLANTED.X.shape) < share for share in (0.25, 0.45, 0.85)}
SEEN[0.25] |= np.eye(*PLANTED.X.shape, dtype=bool) | np.eye(*PLANTED.X.shape, -7, dtype=bool)  # each row and column
WEIGHTS = RNG.uniform(0, 3, size=PLANTED.X.shape) * SEEN[0.85]
ROWS, COLUMNS = (RNG.uniform(0.5, 2, size=dim) for dim in PLANTED.X.shape)
OF_ROWS = np.repeat(ROWS[:, None], PLANTED.X.shape[1], axis=1)
FEW_OF_TENSOR, SEEN_OF_TENSOR = (RNG.uniform(size=TENSORS[3].shape) < share for share in (0.28, 0.8))


def holes(X, seen):
    return np.where(seen, X, np.nan)


def stored(X, seen):
    """The entries that are seen, zeros too, and nothing else."""
    return sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)


# how the user says it, and what entries count
KINDS = {
    "few holes": (lambda X: observed(holes(X, SEEN[0.85])), SEEN[0.85]),
    "many holes": (lambda X: observed(np.asfortranarray(holes(X, SEEN[0.45]))), SEEN[0.45]),
    "few observed": (lambda X: observed(stored(X, SEEN[0.25]), "zeros"), SEEN[0.25]),
    "weights": (lambda X: observed(X, weights=WEIGHTS), WEIGHTS),
    "few weights": (lambda X: observed(X, weights=sparse.csr_array(WEIGHTS * SEEN[0.25])), WEIGHTS * SEEN[0.25]),
    "zeros count": (lambda X: observed(sparse.csr_array(X), mask=SEEN[0.85]), SEEN[0.85]),
    "rows and columns": (lambda X: observed(X, weights=(ROWS, COLUMNS)), np.outer(ROWS, COLUMNS)),
    "rows, zeros count": (lambda X: observed(sparse.csr_array(X), weights=(ROWS, None)), OF_ROWS),
    "rows of what is seen": (lambda X: observed(holes(X, SEEN[0.45]), weights=(ROWS, None)), OF_ROWS * SEEN[0.45]),
}
OF_ORDER_3 = {
    "tensor": (lambda X: observed(holes(X, SEEN_OF_TENSOR)), SEEN_OF_TENSOR),
    "tensor, few observed": (lambda X: observed(holes(X, FEW_OF_TENSOR)), FEW_OF_TENSOR),
    "tensor, zeros count": (lambda X: observed(sparse_tensor(X), mask=SEEN_OF_TENSOR), SEEN_OF_TENSOR),
}
MAIN = ("frobenius", "kl", "l1", "huber")
NAMED = {name: loss for name, loss in LOSSES.items() if name not in ("kullback-leibler", "l1, zeros count half")}


def entries_of(kind, loss):
    """Without zeros where the loss does not take them, with some where zeros count."""
    X = TENSORS[3] if kind in OF_ORDER_3 else PLANTED.X
    return X + 0.1 if loss.degree <= 0 else np.where(X < 0.2, 0.0, X)


@cache
def given_of(kind, loss):
    return (KINDS | OF_ORDER_3)[kind][0](entries_of(kind, loss))


def problem_of(kind, loss, structure):
    given = given_of(kind, loss)
    stated = [NonNegative()] * (len(given.data.shape) - 1) + [structure]
    return pose_observed(False, given, loss, stated, RANK).normalized()


def posed(cases):
    """Problems by name, but for what is refused."""
    for kind, (a, loss), (b, structure) in cases:
        try:
            yield f"{kind}: {a}-{b}", problem_of(kind, loss, structure)
        except (IncompatibleError, ValueError) as refused:
            assert "nonnegative factors" in str(refused) or "cannot be joined to zeros" in str(refused)


PLAIN = {"nonnegative": NonNegative()}
CASES = [
    *product(KINDS, NAMED.items(), PLAIN.items()),
    *product(OF_ORDER_3, NAMED.items(), PLAIN.items()),
    *product(KINDS, [(name, LOSSES[name]) for name in MAIN], STRUCTURES.items()),
    *product(KINDS, [("frobenius", LOSSES["frobenius"]), ("huber", LOSSES["huber"])], TIED.items()),
    *product(["tensor"], [("frobenius", LOSSES["frobenius"])], OF_TENSORS.items()),
]
PROBLEMS = dict(posed(CASES))
COMPATIBLE = {
    f"{name}-{c}": (problem, solver)
    for (name, problem), (c, solver) in product(PROBLEMS.items(), SOLVERS.items())
    if (not isinstance(solver, MU) or name.endswith(SIMPLE)) and refusal(solver, problem) is None
}
# `make test` takes one of each kind of data, loss and solver
QUICK = re.compile(
    r"(few holes|few observed|zeros count|weights|tensor|rows of what is seen): "
    r"(frobenius-nonnegative-(hals|gcd|newton|palm|mu_extrapolated)|kl-nonnegative-(newton_kl|newton)"
    r"|l1-nonnegative-weighted_median|huber-nonnegative-(newton|hals)|beta-nonnegative-newton)"
    r"|(few holes|few observed): frobenius-(simplex-palm|nonnegative & unimodal-palm|l1-(hals|gcd)|box-admm"
    r"|group_sparsity-mixed_norm|fixed parts-hals)"
)


def sampled(triples, slow=None):
    """All of them, most marked as slow: those of solvers with the name `slow` too."""
    marks = {
        name: () if QUICK.fullmatch(name) and not name.endswith(f"-{slow}") else pytest.mark.slow for name in triples
    }
    cases = [pytest.param(*triple, id=name, marks=marks[name]) for name, triple in triples.items()]
    return pytest.mark.parametrize("problem, solver", cases)


def shown(name, problem, solver):
    """Of a triple: a kind of data, and a loss and structure by a solver."""
    return set(name.split(": "))


def test_every_solver_takes_what_it_is_for():
    taken = {(name.split(":")[0], type(solver).__name__) for name, (_, solver) in COMPATIBLE.items()}
    able = ("HALS", "GCD", "Newton", "NewtonKL", "MU", "WeightedMedian", "ADMM", "PALM", "MixedNorm")
    plain = {"rows and columns", "rows, zeros count"}  # weights that are units: the data are complete
    for kind in (KINDS | OF_ORDER_3).keys() - {"tensor, few observed", "tensor, zeros count"}:
        assert {name for k, name in taken if k == kind} >= set(able), kind
        assert ((kind, "Greedy") in taken) == (kind in plain)


@pytest.mark.covering(shown=shown)
@sampled(COMPATIBLE)
def test_steps_keep_their_promises(problem, solver):
    Walk(problem, solver, 40 if isinstance(solver, ADMM) else 20).check()


# plain multiplicative updates take too long, and so do majorisers: of the Huber loss, which `newton` is for, and of
# tensors with further structure (some 10^4 iterations); one sweep without extrapolation crawls where a penalty on one
# factor alone asks for other scales, and many entries are missing
LONG = re.compile(
    r"many holes: frobenius-nonnegative & l1-cd|"
    r".*-mu|.*: huber-.*-(hals|cd|hals, shuffled|gcd|gcd, plain|palm)|tensor: frobenius-(?!nonnegative-).*-(admm|palm)"
)
CONVERGING = {name: triple for name, triple in COMPATIBLE.items() if not LONG.fullmatch(name)}


@pytest.mark.covering(shown=shown)
@sampled(CONVERGING, slow="mu_extrapolated")
def test_converges_to_a_stationary_point(problem, solver):
    tol = 1e-3
    result = run(problem, solver, max_iter=20000, tol=tol)
    assert result.status == "converged"
    assert problem.stationarity(result.factors) <= tol


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name.endswith("-nonnegative")])
def test_the_objective_is_a_weighted_sum(name):
    kind, loss = name.split(":")[0], PROBLEMS[name].loss
    problem, (_, weights) = PROBLEMS[name], (KINDS | OF_ORDER_3)[kind]
    rng = np.random.default_rng(0)
    factors = [rng.uniform(0.1, 1, size=(dim, RANK)) for dim in problem.data.shape]
    X = entries_of(kind, loss)
    stated = loss.in_units(-sum(problem.exponents))
    expected = stated.value(X, tensor_of(factors), weights.astype(float))
    assert problem.user_objective(problem.fit(problem.from_user(factors))) == pytest.approx(expected, rel=1e-9)


SMOOTH = {name: problem for name, problem in PROBLEMS.items() if problem.loss.smooth and name.endswith("-nonnegative")}


@pytest.mark.parametrize("problem", SMOOTH.values(), ids=SMOOTH)
def test_gradients_are_those_of_the_objective(problem):
    rng = np.random.default_rng(1)
    factors = [rng.uniform(0.3, 1, size=(dim, RANK)) for dim in problem.data.shape]
    for mode, A in enumerate(factors):
        direction, step = rng.standard_normal(A.shape), 1e-6
        ends = [problem.objective([*factors[:mode], A + s * direction, *factors[mode + 1 :]]) for s in (step, -step)]
        slope = float(np.vdot(problem.gradient(factors, mode), direction))
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6 * ends[0])
