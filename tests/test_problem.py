"""The one definition of the objective and of optimality."""

import numpy as np
import pytest

import partwise as pw
from partwise import structures as s
from partwise.data import as_data
from partwise.datasets import make_parts
from partwise.losses import Frobenius
from partwise.problem import pose

PLANTED = make_parts(20, 15, 4, random_state=0)
RNG = np.random.default_rng(0)
W, H = RNG.uniform(size=(20, 4)), RNG.uniform(size=(15, 4))


def make(X=PLANTED.X, W=s.NonNegative(), H=s.NonNegative()):  # noqa: B008
    return pose(as_data(X), Frobenius(), (W, H), 4)


def test_objective_is_loss_plus_penalties():
    problem = make(W=s.L1(0.3), H=s.Elastic(0.1, 0.5))
    expected = 0.5 * np.square(PLANTED.X - W @ H.T).sum() + 0.3 * W.sum() + 0.1 * H.sum() + 0.25 * np.square(H).sum()
    assert problem.objective((W, H)) == pytest.approx(expected, rel=1e-12)
    assert problem.relative_error((W, H)) == pytest.approx(
        np.linalg.norm(PLANTED.X - W @ H.T) / np.linalg.norm(PLANTED.X)
    )


@pytest.mark.parametrize("mode", [0, 1])
def test_gradient_is_the_derivative_of_the_smooth_part(mode):
    problem = make(W=s.L2(0.7), H=s.L2(0.2))
    G = problem.gradient((W, H), mode)
    for index in [(0, 0), (3, 2), (14, 3)]:
        factors, step = [[W.copy(), H.copy()] for _ in range(2)], 1e-5
        factors[0][mode][index] += step
        factors[1][mode][index] -= step
        slope = (problem.objective(tuple(factors[0])) - problem.objective(tuple(factors[1]))) / (2 * step)
        assert slope == pytest.approx(G[index], rel=1e-6)


def test_stationarity_is_the_relative_gradient_in_the_interior():
    problem = make(W=s.Free(), H=s.Free())
    expected = max(
        np.linalg.norm(G[:, k]) / (np.linalg.norm(PLANTED.X) * np.linalg.norm(other[:, k]))
        for G, other in ((problem.gradient((W, H), 0), H), (problem.gradient((W, H), 1), W))
        for k in range(4)
    )
    assert problem.stationarity((W, H)) == pytest.approx(expected, rel=1e-10)


def test_stationarity_does_not_see_units_or_scale():
    plain = make().stationarity((W, H))
    assert make(1000 * PLANTED.X).stationarity((10 * W, 100 * H)) == pytest.approx(plain, rel=1e-10)
    assert make().stationarity((W / 50, 50 * H)) == pytest.approx(plain, rel=1e-10)
    assert make(PLANTED.X).normalized().stationarity(make().normalized().from_user((W, H))) == pytest.approx(plain)


def test_stationarity_is_zero_only_where_nothing_can_be_gained():
    exact = make()
    assert exact.stationarity((PLANTED.W, PLANTED.H.T)) < 1e-7
    assert exact.stationarity((W, H)) > 1e-2
    # at a bound, with the gradient pointing out of the set
    X = np.ones((3, 2))
    problem = pose(as_data(X), Frobenius(), (s.Box(0, 0.5), s.Fixed(np.ones((1, 2)))), 1)
    assert problem.stationarity((np.full((3, 1), 0.5), np.ones((2, 1)))) == 0
    assert problem.stationarity((np.full((3, 1), 0.4), np.ones((2, 1)))) > 0


def test_exact_fits_are_measured_without_cancellation():
    """Normal equations alone would leave 1e-8 |X| of noise."""
    assert make().relative_error((PLANTED.W, PLANTED.H.T)) < 1e-15
    from scipy.sparse import csr_array

    assert make(csr_array(PLANTED.X)).relative_error((PLANTED.W, PLANTED.H.T)) < 1e-15


@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1.0, 255.0, 1e150])
def test_normalized_problem_is_the_same_problem(unit):
    user = make(unit * PLANTED.X, H=s.L1(0.1 * unit**1.5))
    problem = user.normalized()
    factors = (np.sqrt(unit) * W, np.sqrt(unit) * H)
    inner = problem.from_user(factors)
    assert 0.1 < max(map(abs, problem.data.extremes)) < 10
    assert all(np.array_equal(A, B) for A, B in zip(problem.to_user(inner), factors))
    assert problem.user_objective(problem.objective(inner)) == pytest.approx(user.objective(factors), rel=1e-10)


def test_a_fixed_factor_keeps_its_own_unit():
    problem = make(1e200 * PLANTED.X, H=s.Fixed(1e-30 * PLANTED.H)).normalized()
    assert np.max(problem.structures[1].lower) < 10
    assert 2.0 ** sum(problem.exponents) == problem.data.scale


def test_public_names_build_a_problem():
    assert pw.Problem is type(make())
