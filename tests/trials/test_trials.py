"""Solvers, measures and starts take kinds of data, losses and arrays that they have never heard of."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

import partwise as pw
from partwise import losses, solvers
from partwise.data import as_data
from partwise.data.base import khatri_rao
from partwise.data.remainder import remainder
from partwise.errors import IncompatibleError
from partwise.init import Random
from partwise.kernels import cpu
from partwise.kernels.records import Box, Others
from partwise.problem import pose
from partwise.problem.symmetric import pose_as
from partwise.registry import refusal
from partwise.run.limits import Limits
from partwise.run.loop import Control, solve
from partwise.solvers.exact_rows import linear_programs
from partwise.structures import Fixed, Free, NonNegative, Unimodal

from ..conformance.tables import SOLVERS, STRUCTURES, TIED
from ..covering import EACH
from .arrays import Elsewhere, ElsewhereData
from .data import RowBlocks, Tensor, observed
from .losses import Huber

RANK = 3
RNG = np.random.default_rng(0)
PLANTED = [RNG.uniform(size=(dim, RANK)) * (RNG.uniform(size=(dim, RANK)) < 0.8) + 0.05 for dim in (7, 6, 5)]
CUBE = (PLANTED[0] @ khatri_rao(PLANTED[1:]).T).reshape(7, 6, 5)
MATRIX = RNG.poisson(2.0, size=(23, 11)) * 0.25

FOR = {
    "hals": (solvers.HALS(), losses.Frobenius()),
    "gcd": (solvers.GCD(), losses.Frobenius()),
    "palm": (solvers.PALM(), losses.Frobenius()),
    "admm": (solvers.ADMM(), losses.Frobenius()),
    "mu": (solvers.MU(extrapolate=True), losses.Frobenius()),
    "mu, KL": (solvers.MU(extrapolate=True), losses.KL()),
    "newton": (solvers.Newton(), losses.Beta(1.5)),
    "newton_kl": (solvers.NewtonKL(), losses.KL()),
    "weighted_median": (solvers.WeightedMedian(), losses.L1()),
}
each = pytest.mark.parametrize("solver, loss", FOR.values(), ids=FOR)


def run(data, loss, solver, rank=RANK, **limits):
    problem = pose(data, loss, [NonNegative()] * len(data.shape), rank).normalized()
    assert refusal(solver, problem) is None
    limits = {"max_iter": 3000, "tol": 1e-6} | limits
    return problem, solve(problem, [Random()], solver, np.random.RandomState(1), Control(Limits(**limits)))[0]


def brute_force(loss, T, factors):
    """The loss of a model that is formed in full."""
    first, *others = factors
    return loss.value(T, (first @ khatri_rao(others).T).reshape(T.shape))


@each
def test_a_tensor_is_data(solver, loss):
    problem, found = run(Tensor.of(CUBE), loss, solver)
    factors = problem.to_user(found.factors)
    assert [A.shape for A in factors] == [(dim, RANK) for dim in CUBE.shape]
    assert all((A >= 0).all() for A in factors)
    assert found.history[-1].objective == pytest.approx(brute_force(loss, CUBE, factors), rel=1e-6, abs=1e-9)
    assert found.history[-1].objective < 1e-3 * brute_force(loss, CUBE, [A * 0 + 1e-3 for A in factors])


@EACH
@each
@pytest.mark.parametrize("mode", range(3))
def test_one_factor_of_a_tensor_is_that_of_its_unfolding(solver, loss, mode):
    """With the others held, `X_(mode) ~ A B'`, B their Khatri-Rao product: the same steps."""
    others = khatri_rao([A for m, A in enumerate(PLANTED) if m != mode])
    held = [NonNegative() if m == mode else Fixed(A) for m, A in enumerate(PLANTED)]
    unfolded = as_data(np.moveaxis(CUBE, mode, 0).reshape(CUBE.shape[mode], -1))
    cases = (
        (pose(Tensor.of(CUBE), loss, held, RANK), PLANTED, mode),
        (pose(unfolded, loss, [NonNegative(), Fixed(others.T)], RANK), [PLANTED[mode], others], 0),
    )
    found = []
    for problem, factors, own in cases:
        start = [A * 1.5 if m == own else A for m, A in enumerate(factors)]
        state = solver.init(problem, start, 0.0, np.random.RandomState(0))
        steps = [solver.step(problem, state) for _ in range(3)]
        found.append(([step.objective for step in steps], steps[-1].factors[own]))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9, abs=1e-12)
    assert np.allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-9)


@each
def test_blocks_of_rows_are_one_array(solver, loss):
    """Dense and sparse ones, to rounding, step by step."""
    blocks = RowBlocks.of(MATRIX[:9], sparse.csr_array(MATRIX[9:14]), np.asfortranarray(MATRIX[14:]))
    histories = []
    for data in (as_data(MATRIX), blocks):
        _, found = run(data, loss, solver, max_iter=12, tol=0.0)
        histories.append([record.objective for record in found.history])
    assert histories[1] == pytest.approx(histories[0], rel=1e-14)


@pytest.mark.parametrize("loss", [losses.KL(), losses.Frobenius(), losses.Beta(1.5)], ids=str)
def test_blocks_may_be_observed_in_part(loss):
    """What counts is settled block by block, the linear term of KL too."""
    rng = np.random.default_rng(2)
    mask, X = rng.uniform(size=(14, 11)) < 0.7, MATRIX + 0.1
    factors = [rng.uniform(size=(dim, RANK)) for dim in MATRIX.shape]
    blocks = RowBlocks.of(X[:9], X[9:])
    blocks = replace(blocks, children=(blocks.children[0], observed(X[9:], mask)))
    assert not blocks.complete
    weights = np.vstack([np.ones((9, 11)), mask])
    assert loss.direct_fit(blocks, factors) == pytest.approx(loss.value(X, factors[0] @ factors[1].T, weights))


def test_what_blocks_cannot_do_is_refused():
    blocks = RowBlocks.of(sparse.csr_array(MATRIX[:11]), MATRIX[11:22])
    problem = pose(blocks, losses.L1(), [Free(), Free()], RANK)
    assert "needs nonnegative factors where X is sparse" in refusal(solvers.WeightedMedian(), problem)
    square = RowBlocks.of(np.ones((3, 6)), np.ones((3, 6)))
    with pytest.raises(IncompatibleError, match="in one piece"):
        pose_as("off-diagonal", square, losses.Frobenius(), [NonNegative(), NonNegative()], 2)
    with pytest.raises(IncompatibleError, match="zero_weight, is for sparse matrices"):
        pose(Tensor.of(CUBE), losses.L1(0.5), [NonNegative()] * 3, 2)


def test_what_is_left_of_x_keeps_no_earlier_rest():
    data = as_data(MATRIX)
    first = remainder(data, [np.ones((dim, 1)) for dim in MATRIX.shape], range(2))
    second = remainder(first, [np.ones((dim, 1)) for dim in MATRIX.shape], range(2))
    assert second.source is data


@pytest.mark.parametrize("weights, best", [((0.1, 0.1, 1, 1), 3.0), ((5, 5, 1, 1), 0.0)])
def test_linear_programs_see_the_weights_of_listed_zeros(weights, best):
    X = next(as_data(np.array([[0.0, 0, 3, 3]])).rows(0))._replace(weights=np.array(weights, float))
    box = Box(0.0, np.zeros((1, 1)), np.full((1, 1), np.inf))
    (found,), _ = linear_programs(X, np.full((1, 1), 3.0 - best), Others(np.ones((4, 1))), box)
    assert found[0, 0] == pytest.approx(best)


@pytest.mark.slow_cases("mu")
@pytest.mark.parametrize("solver", [solvers.Newton(), solvers.MU(extrapolate=True)], ids=["newton", "mu"])
def test_least_squares_on_observed_entries_only(solver):
    mask = np.random.default_rng(1).uniform(size=MATRIX.shape) < 0.6
    X = MATRIX + 0.1
    problem, found = run(observed(X, mask), losses.Frobenius(), solver, tol=1e-9)
    W, H = problem.to_user(found.factors)
    rows = [nnls(H[seen], x[seen]) for x, seen in zip(X, mask, strict=True)]
    assert found.history[-1].objective == pytest.approx(sum(r**2 for _, r in rows) / 2, rel=1e-6)
    if isinstance(solver, solvers.Newton):
        assert np.allclose(W, [w for w, _ in rows], rtol=1e-4, atol=1e-4)


def test_a_loss_is_one_class():
    spoilt = MATRIX.copy()
    spoilt[::5, ::3] += 50
    loss = Huber(0.3)
    for data in (as_data(spoilt), as_data(sparse.csr_array(spoilt))):
        for solver in (solvers.HALS(), solvers.GCD(), solvers.PALM()):
            problem, found = run(data, loss, solver, tol=1e-4)
            W, H = problem.to_user(found.factors)
            objectives = [record.objective for record in found.history]
            assert objectives[-1] == pytest.approx(loss.value(spoilt, W @ H.T), rel=1e-9)
            assert np.diff(objectives).max() <= 1e-9 * objectives[0]
            assert found.status == "converged"


def test_users_may_bring_a_loss():
    result = pw.factorize(1000 * MATRIX, RANK, loss=Huber(300.0), random_state=0)
    assert result.loss == Huber(300.0)
    assert result.fit == pytest.approx(Huber(300.0).value(1000 * MATRIX, result.W @ result.H), rel=1e-9)
    assert result.certificate.stationarity <= 1e-4
    assert "HALS" in result.solver


WHERE = {name: FOR[name] for name in ("hals", "mu", "mu, KL", "newton_kl")}


@pytest.mark.parametrize("solver, loss", WHERE.values(), ids=WHERE)
def test_arrays_may_be_elsewhere(solver, loss):
    histories = []
    for data in (as_data(MATRIX), ElsewhereData.of(MATRIX)):
        problem, found = run(data, loss, solver, max_iter=30, tol=1e-3)
        histories.append([record.objective for record in found.history])
    assert histories[0] == histories[1]
    assert all(isinstance(A, Elsewhere) for A in problem.to_user(found.factors))
    with pytest.raises(TypeError, match="not for NumPy"):
        np.linalg.norm(found.factors[0])


@each
def test_what_arrays_lack_is_named(solver, loss):
    """Solvers and structures say which kernels they use."""
    problem = pose(ElsewhereData.of(MATRIX), loss, [NonNegative(), NonNegative()], RANK)
    refused = refusal(solver, problem)
    assert (refused is None) == (
        solver in [s for s, _ in WHERE.values()] or isinstance(solver, solvers.GCD | solvers.Newton)
    )
    assert refused is None or "needs the kernel 'numpy', which there is not for arrays of type Elsewhere" in refused


def test_a_loss_may_be_what_asks_for_numpy():
    problem = pose(ElsewhereData.of(MATRIX), Huber(0.3), [NonNegative(), NonNegative()], RANK)
    assert refusal(solvers.HALS(), problem).startswith("Huber(delta=0.3) needs the kernel 'numpy'")


def test_a_structure_may_be_what_asks_for_numpy():
    problem = pose(ElsewhereData.of(MATRIX), losses.Frobenius(), [NonNegative(), Unimodal()], RANK)
    assert refusal(solvers.HALS(), problem).startswith("Unimodal")


def test_every_kernel_that_is_named_exists():
    named = {name for solver in SOLVERS.values() for name in solver.kernels}
    named |= {name for structure in (STRUCTURES | TIED).values() for name in structure.kernels}
    assert all(hasattr(cpu, name) for name in named)
    assert {"hals", "newton_kl", "gain_columns"} <= named
