"""One Hessian for all rows: the step is what it says, and rows that it would make worse get Newton's."""

import numpy as np
import pytest
from scipy.optimize import minimize

from partwise import structures as s
from partwise.data import as_data
from partwise.losses import KL
from partwise.problem import pose
from partwise.solvers import Newton, SharedNewton, shared_newton

RNG = np.random.default_rng(0)
RANK = 5
X = RNG.gamma(1.0, size=(30, 20))
FACTORS = tuple(RNG.uniform(0.5, 1.5, size=(dim, RANK)) * 0.5 for dim in X.shape)


def begun(l1=0.0, ridge=0.0):
    """A problem, and a state after the first step, which is one of Newton's."""
    structure = s.NonNegative() & s.Elastic(l1, ridge)
    problem = pose(as_data(X), KL(), (structure, structure), RANK).normalized()
    state = SharedNewton().init(problem, problem.from_user(FACTORS), 1e-4, np.random.RandomState(0))
    state.objective = problem.objective(state.factors)
    return problem, state


@pytest.mark.parametrize("mode", [0, 1])
def test_correlations_are_those_of_a_model_of_rank_one(mode):
    A, B = FACTORS[mode], FACTORS[1 - mode]
    sums = (A @ B.T).sum(axis=0)
    hessian = sum(np.outer(h, h) / m for h, m in zip(B, sums, strict=True))
    scale = np.sqrt(np.diag(hessian))
    assert shared_newton.correlations(FACTORS, mode) == pytest.approx(hessian / np.outer(scale, scale))


@pytest.mark.parametrize("l1, ridge", [(0.0, 0.0), (3.0, 0.0), (0.0, 2.0), (2.0, 1.0)])
def test_a_step_minimises_the_model_of_each_row(l1, ridge, monkeypatch):
    monkeypatch.setattr(shared_newton, "SWEEPS", 3000)
    monkeypatch.setattr(shared_newton, "EPS", 0.0)
    problem, state = begun(l1, ridge)
    A = state.points[0]
    slope, curvature = problem.expansion(state.points, 0).slopes(A)
    new = shared_newton.shared_step(problem, state, 0, slope, curvature)
    C, cost = shared_newton.correlations(state.points, 0), state.boxes[0].l1
    assert (cost > 0) == (l1 > 0)
    for i in range(3):
        H = np.sqrt(np.outer(curvature[i], curvature[i])) * C

        def model(w, i=i, H=H):
            return (slope[i] + cost) @ (w - A[i]) + 0.5 * (w - A[i]) @ H @ (w - A[i])

        best = minimize(model, A[i], bounds=[(0, None)] * RANK, tol=1e-14)
        assert model(new[i]) == pytest.approx(best.fun, rel=1e-6)


@pytest.mark.parametrize("l1, ridge", [(0.0, 0.0), (200.0, 0.0), (0.0, 5000.0)])
def test_rows_that_a_step_makes_worse_get_newtons(l1, ridge, monkeypatch):
    """Where the loss rises, and where it falls by less than the penalties rise."""
    problem, state = begun(l1, ridge)
    state.points[0] = state.points[0] / 10  # where W wants to grow, were it not for the penalties
    worse = [2, 7, 11]
    plain, free = begun()
    better = Newton(steps=20).update(plain, 0, free, np.arange(len(X))).factor

    def step(problem, state, mode, slope, curvature):
        factor = state.points[mode].copy()
        factor[worse] = (100 if l1 == ridge == 0 else 1) * better[worse]
        return factor

    monkeypatch.setattr(shared_newton, "shared_step", step)
    updated = SharedNewton().update(problem, 0, state, np.arange(len(X))).factor
    expected = Newton().update(problem, 0, state, np.array(worse)).factor
    assert np.array_equal(updated[worse], expected[worse])
    assert not np.array_equal(updated[worse], state.points[0][worse])
    others = np.delete(np.arange(len(X)), worse)
    assert np.array_equal(updated[others], state.points[0][others])
