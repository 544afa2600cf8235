"""Solvers, measures and starts take kinds of data, losses and arrays that they have never heard of."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

import partwise as pw
from partwise import losses, solvers
from partwise.data import as_data
from partwise.data.base import khatri_rao
from partwise.init import Random
from partwise.kernels import cpu
from partwise.problem import pose
from partwise.registry import refusal
from partwise.run.limits import Limits
from partwise.run.loop import Control, solve
from partwise.structures import NonNegative, Unimodal

from ..conformance.tables import SOLVERS, STRUCTURES, TIED
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


@each
def test_one_factor_of_a_tensor_is_that_of_its_unfolding(solver, loss):
    """With the others held, `X_(mode) ~ A B'`, B their Khatri-Rao product: the same objective step by step."""
    seen = []
    for mode in range(3):
        unfolded = np.moveaxis(CUBE, mode, 0).reshape(CUBE.shape[mode], -1)
        others = [A for m, A in enumerate(PLANTED) if m != mode]
        for data, factors, own in (
            (Tensor.of(CUBE), PLANTED, mode),
            (as_data(unfolded), [PLANTED[mode], khatri_rao(others)], 0),
        ):
            problem = pose(data, loss, [NonNegative()] * len(factors), RANK)
            start = [A * 1.5 if m == own else A for m, A in enumerate(factors)]
            expansion = problem.expansion(start, own)
            seen.append((problem.objective(start), expansion.stationarity(NonNegative(), start[own], problem.size)))
        assert seen[-1] == pytest.approx(seen[-2], rel=1e-9)


@each
def test_blocks_of_rows_are_one_array(solver, loss):
    """Dense and sparse ones, to rounding, step by step."""
    blocks = RowBlocks.of(MATRIX[:9], sparse.csr_array(MATRIX[9:14]), np.asfortranarray(MATRIX[14:]))
    histories = []
    for data in (as_data(MATRIX), blocks):
        _, found = run(data, loss, solver, max_iter=12, tol=0.0)
        histories.append([record.objective for record in found.history])
    assert histories[1] == pytest.approx(histories[0], rel=1e-14 if "l1" not in str(loss).lower() else 1e-12)


@pytest.mark.parametrize("solver", [solvers.Newton(), solvers.MU(extrapolate=True)], ids=["newton", "mu"])
def test_least_squares_on_observed_entries_only(solver):
    mask = RNG.uniform(size=MATRIX.shape) < 0.6
    X, H = MATRIX + 0.1, RNG.uniform(size=(MATRIX.shape[1], RANK))
    problem, found = run(observed(X, mask), losses.Frobenius(), solver, tol=1e-9)
    W, H = problem.to_user(found.factors)
    rows = [nnls(H[seen], x[seen]) for x, seen in zip(X, mask, strict=True)]
    assert found.history[-1].objective == pytest.approx(sum(r**2 for _, r in rows) / 2, rel=1e-6)
    assert np.allclose(W, [w for w, _ in rows], atol=1e-4)


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


def test_a_structure_may_be_what_asks_for_numpy():
    problem = pose(ElsewhereData.of(MATRIX), losses.Frobenius(), [NonNegative(), Unimodal()], RANK)
    assert refusal(solvers.PALM(), problem).startswith("Unimodal")


def test_every_kernel_that_is_named_exists():
    named = {name for solver in SOLVERS.values() for name in solver.kernels}
    named |= {name for structure in (STRUCTURES | TIED).values() for name in structure.kernels}
    assert all(hasattr(cpu, name) for name in named)
    assert {"hals", "newton_kl", "gain_columns"} <= named
