"""The one definition of the objective and of optimality, and the units it is computed in."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import losses
from partwise import structures as s
from partwise.data import as_data
from partwise.data.units import shared_units, times_power
from partwise.datasets import make_parts
from partwise.losses import Frobenius
from partwise.losses.expansions import Quadratic, Reweighted, Smooth, Tangent
from partwise.problem import Problem, largest, pose, ratio

from .covering import EACH

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
    assert all(np.array_equal(A, B) for A, B in zip(problem.to_user(inner), factors, strict=True))
    assert problem.user_objective(problem.objective(inner)) == pytest.approx(user.objective(factors), rel=1e-10)


def test_factors_are_copied_where_units_or_types_differ():
    same, other = make().normalized(), make(1e6 * PLANTED.X).normalized()
    assert same.exponents == (0, 0)
    for problem in (same, other):
        assert not any(map(np.shares_memory, problem.from_user((W, H)), (W, H)))
    assert all(A is B for A, B in zip(same.to_user((W, H)), (W, H), strict=True))
    assert not any(map(np.shares_memory, other.to_user((W, H)), (W, H)))
    single = make(PLANTED.X.astype(np.float32)).normalized()
    assert all(A.dtype == np.float32 for A in single.to_user((W, H)))


def test_a_result_is_of_its_own():
    """Not the start, nor what a callback saw."""
    start, seen = (W.copy(), H.T.copy()), []
    result = pw.factorize(PLANTED.X, 4, init=start, callbacks=lambda *state: seen.append(state[1]) or True, sort=False)
    assert result.n_iter == 0
    for A, given, shown in zip(result.factors, (start[0], start[1].T), seen[0], strict=True):
        assert A.flags.writeable
        assert not np.shares_memory(A, given)
        assert not np.shares_memory(A, shown)


def test_gains_of_slopes_whose_sum_is_too_large():
    """They are numbers all the same."""
    A, gram, cross = np.zeros((40, 2)), np.eye(2), np.full((40, 2), -1e307)
    assert Quadratic(gram, cross).gains(s.NonNegative(), A).tolist() == [0, 0]
    assert np.isnan(Quadratic(gram, np.full_like(cross, -np.inf)).gains(s.NonNegative(), A)).all()


@pytest.mark.parametrize(
    "structure", [s.NonNegative(), s.Box(0, 0.3) & s.L1(0.1), s.Binary(), s.Simplex("item")], ids=str
)
def test_gains_of_a_quadratic_are_those_of_its_slopes(structure):
    structure = structure.bind(W.shape, transposed=False, name="W")
    A = structure.nearest(W, 0.0)
    known = Quadratic(H.T @ H, PLANTED.X @ H)
    assert np.allclose(known.gains(structure, A), Smooth.gains(known, structure, A))
    curved = Reweighted(*known, np.full(W.shape, 50.0))
    assert np.array_equal(curved.gains(structure, A), Smooth.gains(curved, structure, A))


def test_a_fixed_factor_keeps_its_own_unit():
    problem = make(1e200 * PLANTED.X, H=s.Fixed(1e-30 * PLANTED.H)).normalized()
    assert np.max(problem.structures[1].lower) < 10
    assert 2.0 ** sum(problem.exponents) == problem.data.scale


def test_public_names_build_a_problem():
    assert pw.Problem is type(make())


# -- extreme units -----------------------------------------------------------------------------------------

LOSSES = {
    "frobenius": Frobenius(),
    "kl": losses.KL(),
    "itakura-saito": losses.ItakuraSaito(),
    "beta -1": losses.Beta(-1),
    "beta 3": losses.Beta(3),
    "l1": losses.L1(),
    "huber": losses.Huber(),
}
BOUNDS = [5e-324, 1e-310, 1e-200, 1e-90, 1e-44, 1e-36, 1e-10, 1e15, 1e30, 1e38, 1e90, 1e200, 1.7e308]
SMALL = RNG.uniform(0.1, 1, size=(6, 2)) @ RNG.uniform(0.1, 1, size=(2, 5))


@pytest.mark.slow_cases("float32|all")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("bounds", [BOUNDS[::4], BOUNDS], ids=["some", "all"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_of_any_size_leave_the_report_true(loss, bounds, dtype):
    """Generous bounds say nothing, and tiny ones hold: the loss reported is that of the factors handed over."""
    X, options = SMALL.astype(dtype), {"loss": loss, "random_state": 0, "max_iter": 6, "tol": 0, "normalize": None}
    free = pw.factorize(X, 2, **options)
    for bound in bounds:
        for structures in (
            {"structure_W": s.Box(0, bound)},
            {"structure_W": s.Box(0, bound), "structure_H": s.Box(0, bound)},
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = pw.factorize(X, 2, **structures, **options)
            W, H = result.W.astype(float), result.H.astype(float)
            assert float(result.W.max()) <= bound * (1 + 1e-7) + float(np.finfo(dtype).smallest_subnormal) / 2
            assert np.all(np.isfinite(W)) and np.all(np.isfinite(H))
            assert result.fit == pytest.approx(result.loss.value(X, W @ H), rel=1e-5, abs=1e-9)
            if bound >= 1e15:
                assert np.array_equal(result.W, free.W)


@EACH
@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("end", ["smallest", "largest"])
def test_the_largest_and_smallest_numbers_are_data(loss, dtype, end):
    """Up to the largest number of the type and down to those that have fewer digits."""
    kind = np.finfo(dtype)
    whole = np.round(2.0**10 * SMALL / SMALL.max())  # exact in either unit
    unit = float(kind.smallest_subnormal) if end == "smallest" else float(kind.max) / 2.0**10
    X = (unit * whole).astype(dtype)
    one, two = (pw.factorize(Y, 2, loss=loss, random_state=0, max_iter=20, tol=0) for Y in (whole.astype(dtype), X))
    assert two.relative_error == pytest.approx(one.relative_error, rel=1e-2)
    assert np.all(np.isfinite(two.W)) and np.all(np.isfinite(two.H))
    assert two.W.dtype == dtype
    W, H = (A.astype(float) / unit**0.5 for A in (two.W, two.H))
    assert np.allclose(W @ H, one.W.astype(float) @ one.H.astype(float), atol=2)  # of 1024


def test_units_follow_bounds_as_far_as_the_data_allow():
    anything, most = (0.0, np.inf), np.finfo(np.float64).maxexp
    assert shared_units(2.0**10, [anything, anything], np.float64) == (5, 5)
    assert shared_units(2.0**10, [(0.0, 2.0**90), anything], np.float64) == (5, 5)  # further than X needs
    assert shared_units(2.0**10, [(0.0, 2.0**-3), anything], np.float64) == (-3, 13)
    assert shared_units(2.0**10, [(2.0**90, 2.0**90), anything], np.float64) == (90, -80)  # it must be as large
    assert shared_units(2.0**10, [(2.0**90, 2.0**90), (1.0, 1.0)], np.float64) == (50, -40)  # X stays near 1
    for size in (5e-324, 1.0, 1.7e308):
        for bound in (5e-324, 1.7e308):
            units = shared_units(size, [(bound, bound), anything], np.float64)
            assert max(map(abs, units)) < most
            assert abs(times_power(size, -sum(units)) - 1) < 3.1


def test_units_of_three_factors():
    anything = 0.0, np.inf
    assert shared_units(2.0**12, [anything] * 3, np.float64) == (4, 4, 4)
    assert shared_units(2.0**12, [(0.0, 2.0**-2), anything, anything], np.float64) == (-2, 7, 7)
    assert shared_units(2.0**12, [(2.0**90, 2.0**90), (1.0, 1.0), anything], np.float64) == (90, 0, -78)
    assert shared_units(2.0**12, [(1.0, 1.0)] * 3, np.float64) == (4, 4, 4)  # X stays near 1
    assert shared_units(2.0**10, [(2.0**120, 2.0**120), anything, anything], np.float32) == (
        104,
        -55,
        -39,
    )  # no number beyond the type


def test_powers_beyond_all_numbers():
    assert times_power(1.0, 5000.5) == np.inf
    assert times_power(-1.0, 5000.0) == -np.inf
    assert times_power(1.0, -5000.5) == 0
    assert times_power(5e-324, 1074) == 1
    assert times_power(3.0, 0.5) == pytest.approx(3 * 2**0.5, rel=1e-15)


# -- NaN, and double precision -----------------------------------------------------------------------------


def test_nan_is_no_measure_of_optimality():
    assert np.isnan(largest([0.0, np.nan, 1.0]))
    assert np.isnan(largest([np.nan, 0.0]))
    assert np.isnan(ratio(np.nan, 0.0))
    assert np.isnan(make().relative_gain(np.array([0.0, np.nan])))


@pytest.mark.parametrize("spoilt", ["minus", "plus", "curvature"])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("solver", ["newton", "mu"])
def test_slopes_that_are_no_numbers_are_never_called_stationary(monkeypatch, spoilt, held, solver):
    """Whatever a kernel makes of them."""
    expansion = Problem.expansion

    def broken(self, factors, mode):
        found = expansion(self, factors, mode)
        assert isinstance(found, Tangent)
        field = getattr(found, spoilt).copy()
        field[0] = np.inf if spoilt == "curvature" else np.nan
        return found._replace(**{spoilt: field})

    monkeypatch.setattr(Problem, "expansion", broken)
    structure = s.Fixed(PLANTED.H) if held else s.NonNegative()
    options = {"loss": 1.5, "solver": solver, "structure_H": structure, "random_state": 0, "tol": 0.1}
    problem = pose(as_data(PLANTED.X), losses.Beta(1.5), (s.NonNegative(), structure), 4)
    assert np.isnan(problem.stationarity((W, np.ascontiguousarray(PLANTED.H.T))))
    if solver == "newton":  # its steps need no expansion
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = pw.factorize(PLANTED.X, 4, max_iter=20, **options)
        assert not result.converged
        assert not result.certificate.stationary


@pytest.mark.slow
@pytest.mark.parametrize("loss", [Frobenius(), losses.KL(), losses.ItakuraSaito(), losses.Beta(1.5)], ids=str)
@pytest.mark.parametrize("structure", [s.NonNegative(), s.Box(0.1, 0.7) & s.L1(0.01)], ids=["nonnegative", "box"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_single_precision_is_reported_in_double(loss, structure, store):
    X = (PLANTED.X + 0.1 * (loss.degree <= 0)).astype(np.float32)
    result = pw.factorize(
        store(X),
        4,
        loss=loss,
        structure_W=structure,
        random_state=0,
        max_iter=400,
        tol=1e-6,
        normalize=None,
        sort=False,
    )
    factors = tuple(np.ascontiguousarray(A, dtype=np.float64) for A in result.factors)
    rounded = structure.bind(result.W.shape, False, "W").rounded(np.float32)
    truth = pose(as_data(X.astype(np.float64)), loss, (rounded, s.NonNegative()), 4)
    assert result.W.dtype == np.float32
    assert result.certificate.feasible
    assert result.objective == pytest.approx(truth.objective(factors), rel=1e-9)
    assert result.certificate.stationarity == pytest.approx(truth.stationarity(factors), rel=1e-4, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("structure", [s.Simplex(per="component"), s.UnitNorm(), s.Sparse(3)], ids=str)
def test_tied_entries_in_single_precision_are_stationary_by_double(structure):
    """A sum of 1 by single precision is not one by double; that is no gain."""
    X = PLANTED.X.astype(np.float32)
    result = pw.factorize(X, 4, structure_H=structure, solver="palm", random_state=0, max_iter=3000)
    assert result.converged


@pytest.mark.slow
def test_double_precision_takes_no_copy_of_the_data():
    """A product converts a piece at a time."""
    X = RNG.uniform(size=(4000, 1500)).astype(np.float32)
    factors = tuple(RNG.uniform(size=(n, 8)).astype(np.float32) for n in X.shape)
    problem = pose(as_data(X), Frobenius(), (s.NonNegative(), s.NonNegative()), 8)
    problem.precise(factors)
    tracemalloc.start()
    problem.precise(factors)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes
