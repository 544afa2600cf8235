"""Runs that begin in single precision: where they do, and that their results are those of double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import structures as s
from partwise.data import Dense, Sparse, as_data
from partwise.kernels import threads
from partwise.problem import Problem, pose
from partwise.registry import resolve
from partwise.run import course
from partwise.solvers import block


def counts(rows=60, columns=40, rank=4, seed=0):
    planted = pw.datasets.make_parts(rows, columns, rank, noise=0.3, random_state=seed).X
    return np.random.default_rng(seed).poisson(3 * planted).astype(float)


def tensor():
    rng = np.random.default_rng(0)
    factors = [rng.gamma(0.5, size=(dim, 3)) for dim in (15, 12, 10)]
    return np.einsum("ir,jr,kr->ijk", *factors) + 0.1 * rng.random((15, 12, 10))


X = counts()
LITTLE = s.NonNegative() & s.L1(0.3)
FITS = {
    "dense": (X, 4, {}),
    "sparse": (sparse.csr_array(X * (X > 2)), 4, {}),
    "tensor": (tensor(), 3, {}),
    "penalised": (X, 4, {"structure_W": LITTLE, "structure_H": s.NonNegative() & s.L2(0.2)}),
    "bounded": (X / X.max(), 4, {"structure_W": s.Box(0.1, 0.7), "structure_H": s.Box(0, 0.3)}),
    "KL": (X, 4, {"loss": "kl", "solver": "shared_newton"}),
    "KL, penalised": (X, 4, {"loss": "kl", "solver": "shared_newton", "structure_H": LITTLE, "structure_W": LITTLE}),
    "KL, few parts": (X, 4, {"loss": "kl", "solver": "newton_kl"}),
    "KL, tensor": (tensor(), 3, {"loss": "kl", "solver": "newton_kl"}),
    "beta = 1.5": (X, 4, {"loss": 1.5, "solver": "newton"}),
    "beta = 1.5, sparse": (sparse.csr_array(X * (X > 2)), 4, {"loss": 1.5, "solver": "newton"}),
    "beta = 3": (X, 4, {"loss": 3, "solver": "newton"}),
    "Huber": (X, 4, {"loss": "huber(1)", "solver": "newton"}),
}
EACH = pytest.mark.parametrize("name", FITS)
pytestmark = pytest.mark.filterwarnings("ignore:Maximum number of iterations", "ignore:.*model of 0")


@pytest.fixture
def on_small_data(monkeypatch):
    monkeypatch.setattr(block, "LARGE", 1)


@pytest.fixture
def types(monkeypatch):
    """Of every step of a run the type that it computes with."""
    seen = []
    step = course.Course.step

    def watched(self):
        seen.append(self.working.data.dtype)
        return step(self)

    monkeypatch.setattr(course.Course, "step", watched)
    return seen


def fitted(name, **options):
    data, rank, more = FITS[name]
    return pw.factorize(data, rank, **{"random_state": 0, "init": "random", "n_init": 1, **more, **options})


@EACH
def test_runs_begin_in_single_precision_and_end_as_exactly_as_in_double(name, on_small_data, types):
    result = fitted(name, tol=1e-7, max_iter=3000)
    first = types.index(np.dtype(np.float64))
    assert set(types[:first]) == {np.dtype(np.float32)} and set(types[first:]) == {np.dtype(np.float64)}
    assert first > 3, "nearly all of it was in double precision"
    assert result.converged
    solver = FITS[name][2].get("solver", "hals")
    double = fitted(name, tol=1e-7, max_iter=3000, init=result, solver=f"{solver}(single=False)")
    assert double.n_iter <= 5 and double.objective == pytest.approx(result.objective, rel=1e-9)


@EACH
def test_what_a_run_cut_short_in_single_precision_reports_is_exact(name, on_small_data, types):
    seen = []
    result = fitted(name, tol=0, max_iter=4, callbacks=[lambda record, factors: seen.append((record, factors))])
    assert set(types) == {np.dtype(np.float32)}
    assert all(A.dtype == np.float64 for A in (*result.factors, *seen[1][1]))
    posed = posed_as(name)
    assert all(structure.violation(A) == 0 for A, structure in zip(result.factors, posed.structures, strict=True))
    assert result.history[-1].objective == pytest.approx(posed.objective(result.factors), rel=1e-12)
    for record, factors in seen:
        tall = [np.ascontiguousarray(A) for A in factors]
        assert record.objective == pytest.approx(posed.objective(tall), abs=1e-6 * posed.size**2)


def posed_as(name) -> Problem:
    data, rank, more = FITS[name]
    stated = [more.get(key) or s.NonNegative() for key in ("structure_W", "structure_H", "others")][: len(data.shape)]
    return pose(as_data(data), resolve("loss", more.get("loss", "frobenius")), stated, rank)


@EACH
def test_the_objective_never_rises(name, on_small_data):
    """But for rounding, which lines of `history` in single precision have."""
    objectives = np.array([record.objective for record in fitted(name, tol=1e-6, max_iter=2000).history])
    assert np.diff(objectives).max() <= np.finfo(np.float32).eps * posed_as(name).size ** 2


@EACH
def test_bits_do_not_depend_on_the_number_of_threads(name, on_small_data, monkeypatch):
    monkeypatch.setattr(threads, "pieces", lambda *_: 8)
    one, many = (fitted(name, max_iter=30, n_threads=n) for n in (1, 5))
    assert all(map(np.array_equal, one.factors, many.factors))


@pytest.mark.parametrize("name", ["sparse", "KL", "beta = 1.5"])
@pytest.mark.parametrize("cut", ["in single precision", "where it is left", "in double precision"])
def test_a_resumed_run_has_the_same_bits(name, cut, on_small_data, types, tmp_path):
    options = {"tol": 1e-9, "max_iter": 400}
    whole = fitted(name, **options)
    left = types.index(np.dtype(np.float64))
    at = {"in single precision": left - 3, "where it is left": left, "in double precision": left + 3}[cut]
    fitted(name, **options, checkpoint=tmp_path / "run", callbacks=[lambda record, _: record.n_iter == at])
    resumed = fitted(name, **options, resume=tmp_path / "run")
    assert [r.objective for r in resumed.history] == [r.objective for r in whole.history]
    assert all(map(np.array_equal, resumed.factors, whole.factors))


def test_a_run_that_ends_where_single_precision_is_left_stays_in_it(on_small_data, types, monkeypatch):
    """To go on in double precision takes copies that nobody would use; factors are converted once."""
    fitted("sparse", tol=0, max_iter=400)
    left = types.index(np.dtype(np.float64))
    left_early, taken = [], []
    widen, take = course.Course.widen, Problem.taken
    monkeypatch.setattr(course.Course, "widen", lambda self: left_early.append(1) or widen(self))
    monkeypatch.setattr(Problem, "taken", lambda self, factors: taken.append(1) or take(self, factors))
    fitted("sparse", tol=0, max_iter=left)
    assert not left_early
    assert len(taken) == 1
    fitted("sparse", tol=0, max_iter=left + 1)
    assert left_early


@pytest.mark.parametrize("cell", [1e200, 1e-200])
def test_units_without_room_in_single_precision_are_computed_with_in_double(cell, on_small_data, types):
    pw.factorize(X * cell, 4, random_state=0, max_iter=5, tol=0.1)
    assert set(types) == {np.dtype(np.float64)}


def test_large_data_begin_in_single_precision_and_small_ones_do_not(types):
    large = np.random.default_rng(0).random((400, 400))
    for rows, kind in ((400, np.float32), (200, np.float64)):
        types.clear()
        pw.factorize(large[:rows], 3, random_state=0, max_iter=2, tol=0)
        assert set(types) == {np.dtype(kind)}


@pytest.mark.parametrize(
    "options",
    [{"mask": X > 0}, {"structure_H": s.Fixed(np.ones((4, 40)))}, {"solver": "gcd"}, {"solver": "hals(single=False)"}],
    ids=["holes", "held", "gcd", "asked"],
)
def test_what_gains_nothing_stays_in_double_precision(options, on_small_data, types):
    pw.factorize(X, 4, random_state=0, max_iter=2, tol=0, **options)
    assert set(types) == {np.dtype(np.float64)}


def test_entries_that_are_given_stay_as_they_are(on_small_data, types):
    given = np.full((4, 40), np.nan)
    given[0] = np.random.default_rng(0).random(40)
    result = pw.factorize(X, 4, structure_H=s.NonNegative() & s.Fixed(given), random_state=0, max_iter=3, tol=0)
    assert set(types) == {np.dtype(np.float32)}
    assert any(np.array_equal(row, given[0]) for row in result.H)


def test_the_copy_of_a_sparse_matrix_shares_its_places():
    data = as_data(FITS["sparse"][0])
    single = data.single()
    assert np.shares_memory(single.matrix.indices, data.matrix.indices)
    assert single.turned.dtype == np.float32 and (single.norm2, single.mean) == (data.norm2, data.mean)
    assert "turned" not in vars(data), "X is sorted by columns in double precision, which takes time and memory"
    assert np.array_equal(single.turned.toarray(), data.turned.toarray().astype(np.float32))


SMOOTH = [name for name, (_, _, options) in FITS.items() if "loss" not in options]


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("rough", [0, np.inf], ids=["large", "small"])
def test_a_large_stationarity_is_measured_with_one_product_in_double_precision(name, rough, on_small_data, monkeypatch):
    """A small one with all of them, to the last digits."""
    monkeypatch.setattr(course, "ROUGH", rough)
    double = []
    for kind in (Dense, Sparse):

        def counted(data, factors, mode, product=kind.cross):
            double.append(data.dtype == np.float64)
            return product(data, factors, mode)

        monkeypatch.setattr(kind, "cross", counted)
    last = fitted(name, tol=0, max_iter=4)
    order = len(last.factors)
    assert sum(double) == (order - 1 if rough == 0 else order)
    monkeypatch.undo()
    expected = posed_as(name).stationarity(last.factors)
    assert last.history[-1].stationarity == pytest.approx(expected, rel=5e-3 if rough == 0 else 1e-9)


@pytest.mark.parametrize("name", ["dense", "KL"])
def test_a_target_that_is_reached_is_reached_exactly(name, on_small_data):
    reported = [record.objective for record in fitted(name, tol=0, max_iter=25).history]
    for target in np.linspace(reported[-1], reported[4], 12):
        result = fitted(name, tol=1e-9, max_iter=100, target=target)
        assert result.status == "target" and result.objective <= target * (1 + 1e-12)


def test_factors_that_are_given_are_not_rounded(on_small_data, types):
    planted = pw.datasets.make_parts(60, 40, 4, random_state=0)
    result = pw.factorize(planted.X, 4, init=(planted.W, planted.H), tol=1e-6)
    assert result.relative_error < 1e-12 and set(types) <= {np.dtype(np.float64)}


@pytest.mark.parametrize(
    "options",
    [
        {"X": X * 1e60, "weights": np.full(X.shape, 1e-120)},
        {"X": X * 1e60, "weights": np.full(X.shape, 1e-60), "loss": "kl", "solver": "shared_newton"},
        {"X": X, "structure_W": s.NonNegative() & s.L2(1e60)},
    ],
    ids=["weighted", "weighted KL", "penalty"],
)
def test_numbers_without_room_in_single_precision_are_computed_with_in_double(options, on_small_data, types):
    assert pw.factorize(rank=4, random_state=0, max_iter=500, tol=1e-3, **options).converged
    assert set(types) == {np.dtype(np.float64)}
