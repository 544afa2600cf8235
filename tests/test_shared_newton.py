"""One Hessian for all rows: the step is what it says, rows that it would make worse get Newton's, and an iteration
that went wrong is taken back."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_digits

import partwise as pw
from partwise import kernels
from partwise import structures as s
from partwise.data import as_data
from partwise.data.observed import observed
from partwise.kernels import threads
from partwise.kernels.cpu.expansion import block_tasks
from partwise.kernels.records import Chosen
from partwise.losses import KL
from partwise.problem import pose
from partwise.solvers import Newton, SharedNewton, newton, shared_newton
from partwise.solvers.shared_newton import row_losses, row_penalties

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


@pytest.mark.parametrize("own", [True, False], ids=["own Hessians", "Newton"])
@pytest.mark.parametrize("l1, ridge", [(0.0, 0.0), (200.0, 0.0), (0.0, 5000.0)])
def test_rows_that_a_step_makes_worse_get_steps_of_their_own(l1, ridge, own, monkeypatch):
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
    monkeypatch.setattr(shared_newton, "at_best_scale", lambda problem, state, mode, A: A)
    solver = SharedNewton()
    solver.look(problem, state, 0)
    expected = Newton().update(problem, 0, state, np.array(worse)).factor[worse]
    worst = better[worse] * (100 if l1 == ridge == 0 else 1)
    monkeypatch.setattr(shared_newton, "own_step", lambda *_: expected if own else worst)
    if own:
        monkeypatch.setattr(Newton, "update", None)
    updated = solver.update(problem, 0, state, np.arange(len(X))).factor
    assert np.array_equal(updated[worse], expected)
    assert not np.array_equal(updated[worse], state.points[0][worse])
    others = np.delete(np.arange(len(X)), worse)
    assert np.array_equal(updated[others], state.points[0][others])


def test_the_objective_of_a_step_is_that_of_its_factors():
    problem, state = begun()
    for _ in range(12):
        factors, objective, *_ = SharedNewton().step(problem, state)
        assert objective == pytest.approx(problem.objective(factors), rel=1e-12)


def wrong(problem, state, mode, *_):
    """A step that no scale makes right."""
    return np.ascontiguousarray(state.points[mode][:, ::-1])


def test_a_step_that_went_wrong_is_taken_back_and_newtons_come_where_that_happens_again(monkeypatch):
    problem, state = begun()
    solver = SharedNewton()
    before = solver.step(problem, state)
    while state.careful:
        before = solver.step(problem, state)
    monkeypatch.setattr(shared_newton, "shared_step", wrong)
    after = solver.step(problem, state)  # the next one does not extrapolate
    assert state.beta == 0 and not state.apart
    assert after.objective == before.objective
    assert all(A is B for A, B in zip(after.factors, before.factors, strict=True))
    for _ in range(4):
        before, after = after, solver.step(problem, state)
        assert state.apart and after.objective < before.objective
        assert after.objective == pytest.approx(problem.objective(after.factors), rel=1e-12)
    assert not solver.widened(problem, state).apart


def test_spectra_take_no_longer_than_with_newtons_steps(tmp_path):
    """Rows of a spectrogram are too unlike for one Hessian: with shared steps alone it took 300 iterations and more. A
    run that has found that out resumes."""
    rng = np.random.default_rng(0)
    loudness = np.exp(rng.normal(0, 3, size=(12, 1))) * (rng.random((12, 150)) < 0.2)
    spectra = rng.gamma(0.1, size=(80, 12)) ** 2
    power = spectra @ loudness * rng.exponential(size=(80, 150)) + 1e-6
    how = {"loss": "kl", "init": "random", "random_state": 0, "max_iter": 300}
    shared, newton = (pw.factorize(power, 10, solver=name, **how) for name in ("shared_newton", "newton"))
    assert shared.converged
    assert shared.n_iter <= 2 * newton.n_iter
    how |= {"solver": "shared_newton"}
    pw.factorize(power, 10, **how, checkpoint=tmp_path / "run", callbacks=[lambda record, _: record.n_iter == 20])
    resumed = pw.factorize(power, 10, **how, resume=tmp_path / "run")
    assert [record.objective for record in resumed.history] == [record.objective for record in shared.history]


def test_a_step_after_one_that_was_taken_back_knows_what_it_would_see(monkeypatch):
    problem, state = begun()
    solver = SharedNewton()
    while state.careful:
        solver.step(problem, state)
    with monkeypatch.context() as patched:
        patched.setattr(shared_newton, "shared_step", wrong)
        solver.step(problem, state)
    kept, losses = state.expansions[0], state.losses[0]
    solver.look(problem, state, 0)
    assert np.array_equal(losses, state.losses[0])
    assert all(map(np.array_equal, kept, state.expansions[0]))


@pytest.mark.parametrize("l1, ridge", [(0.0, 0.0), (3.0, 0.0), (0.0, 2.0), (2.0, 1.0)])
@pytest.mark.parametrize("mode", [0, 1])
def test_rows_go_to_their_best_multiples(mode, l1, ridge):
    problem, state = begun(l1, ridge)
    scaled = shared_newton.at_best_scale(problem, state, mode, state.points[mode])
    assert not np.allclose(scaled, state.points[mode], rtol=0.01)
    lower, best, upper = (
        row_losses(problem, state, mode, t * scaled) + row_penalties(problem.structures[mode], t * scaled)
        for t in (1 - 1e-4, 1, 1 + 1e-4)
    )
    assert np.all(best <= lower) and np.all(best <= upper)
    if l1 == ridge == 0:
        model = scaled @ state.points[1 - mode].T
        assert model.sum(axis=1) == pytest.approx(problem.data.row_sums(mode, 1.0))


@pytest.mark.parametrize(
    ("data", "structure"),
    [(X, s.Box(0, 5.0)), (np.where(X > 2, np.nan, X), s.NonNegative())],
    ids=["bounds", "missing"],
)
def test_rows_keep_their_scale_where_bounds_or_missing_entries_are_in_the_way(data, structure):
    problem = pose(observed(data).data, KL(), (structure, structure), RANK).normalized()
    state = SharedNewton().init(problem, problem.from_user(FACTORS), 1e-4, np.random.RandomState(0))
    assert shared_newton.at_best_scale(problem, state, 0, state.points[0]) is state.points[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_that_no_step_fits_does_not_hold_up_the_others(dtype):
    """Its model is near 0 under positive entries, so that second derivatives are huge; steps unseen fail there."""
    rng = np.random.default_rng(0)
    W = rng.gamma(0.3, size=(60, 4)) * 10 ** rng.uniform(-2, 2, size=(60, 1)) * (rng.uniform(size=(60, 4)) > 0.5)
    H = rng.gamma(0.3, size=(4, 25)) * (rng.uniform(size=(4, 25)) > 0.5)
    data = W @ H + 0.3 * rng.uniform(size=(60, 25)) * (rng.uniform(size=(60, 25)) < 0.3)
    how = {"loss": "kl", "init": "random", "random_state": 1, "max_iter": 300, "tol": 1e-9}
    found, newtons = (pw.factorize(data.astype(dtype), 22, solver=name, **how) for name in ("shared_newton", "newton"))
    assert found.objective < 1.3 * newtons.objective


def test_histories_of_hard_data_never_rise():
    rng = np.random.default_rng(3)
    data = rng.gamma(0.2, size=(50, 40)) * 10 ** rng.uniform(-6, 2, size=(50, 1))
    result = pw.factorize(
        data, 20, loss="kl", init="random", random_state=0, solver="shared_newton", max_iter=150, tol=0
    )
    objectives = np.array([record.objective for record in result.history])
    assert np.all(np.diff(objectives[1:]) <= 1e-12 * objectives[1])
    assert objectives[-1] < 0.5 * objectives[5]


def test_bits_do_not_depend_on_the_number_of_threads():
    data = np.random.default_rng(0).gamma(1.0, size=(700, 900))  # of several tasks in each mode
    start = tuple(np.random.default_rng(1).uniform(size=(dim, 21)) for dim in data.shape)
    problem, found = pose(as_data(data), KL(), (s.NonNegative(),) * 2, 21).normalized(), []
    for n_threads in (1, 3):
        state = SharedNewton().init(problem, problem.from_user(start), 1e-4, np.random.RandomState(0))
        with threads.limited(n_threads), problem.data.working():
            for _ in range(6):
                step = SharedNewton().step(problem, state)
        found.append(step)
    assert len(block_tasks(*problem.from_user(start))) > 2
    assert all(map(np.array_equal, found[0].factors, found[1].factors))
    assert found[0].objective == found[1].objective


def test_a_row_of_tiny_numbers_comes_to_scale_without_overflow():
    A = np.full((2, RANK), 1e-40, np.float32)
    A[0, 0] = 0
    box = s.NonNegative().bind((2, RANK), transposed=False, name="W").elementwise.box(A)
    scales = shared_newton.RowScales(np.array([3.0, 0.0]), np.ones(RANK), 0.0)
    scaled = kernels.of(A).rescaled(A, box, scales)
    assert np.all(np.isfinite(scaled)) and scaled.sum(axis=1) == pytest.approx([3, 0], rel=1e-4)


@pytest.mark.parametrize(
    ("rank", "zeros", "large", "taken"),
    [
        (7, 0.0, True, "NewtonKL("),
        (8, 0.5, True, "Newton("),
        (19, 0.0, False, "NewtonKL("),
        (20, 0.5, False, "SharedNewton("),
        (20, 0.9, True, "NewtonKL("),
    ],
)
def test_auto_takes_it_from_as_many_parts_as_pay(rank, zeros, large, taken, monkeypatch):
    monkeypatch.setattr(newton, "LARGE", 1 if large else 1 << 17)
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(60, 40)) * (rng.random((60, 40)) >= zeros)
    assert pw.factorize(X, rank, loss="kl", random_state=0, max_iter=2).solver.startswith(taken)


def test_rows_unlike_the_others_do_not_hold_up_a_run():
    """Shared steps alone leave some rows of these where they are: a stationarity of 9e-4 after 300 iterations."""
    how = {"init": "random", "random_state": 0, "max_iter": 250, "tol": 1e-5}
    assert pw.factorize(load_digits().data, 20, loss="kl", solver="shared_newton", **how).converged


def test_rows_with_much_to_gain_are_seen():
    rng = np.random.default_rng(0)
    A, slope, curvature = rng.random((40, RANK)) + 1, rng.normal(size=(40, RANK)), np.full((40, RANK), 50.0)
    slope[[3, 30], 1] = -20
    assert shared_newton.far_off(s.NonNegative(), A, slope, curvature).tolist() == [3, 30]


OWN = {
    "ridge": s.NonNegative() & s.L2(3.0),
    "l1": s.NonNegative() & s.L1(4.0),
    "bounds": s.Box(0.1, 0.7),
}


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("stated", OWN)
def test_rows_go_to_the_minimum_of_their_own_expansion(stated, mode, store, monkeypatch):
    """By BLAS where all entries are listed, row by row elsewhere."""
    monkeypatch.setattr(shared_newton, "SWEEPS", 5000)
    monkeypatch.setattr(shared_newton, "EPS", 0.0)
    structure, factors = OWN[stated], tuple(np.clip(A, 0.1, 0.7) for A in FACTORS)
    problem = pose(as_data(store(X)), KL(), (structure, structure), RANK)
    state = SharedNewton().init(problem, factors, 0.0, np.random.RandomState(0))
    SharedNewton().look(problem, state, mode)
    rows = np.array([1, 5, 6])
    found = shared_newton.own_step(problem, state, mode, rows)
    A, B, Y = factors[mode], factors[1 - mode], X if mode == 0 else X.T
    l1, ridge = (4.0 if stated == "l1" else 0.0), (3.0 if stated == "ridge" else 0.0)
    low, high = (0.1, 0.7) if stated == "bounds" else (0.0, np.inf)
    for row, new in zip(rows, found, strict=True):
        y = B @ A[row]
        slope = B.T @ (1 - Y[row] / y) + ridge * A[row] + l1
        H = (B * (Y[row] / y**2)[:, None]).T @ B + ridge * np.eye(RANK)

        def model(w, a=A[row], slope=slope, H=H):
            return slope @ (w - a) + 0.5 * (w - a) @ H @ (w - a)

        best = minimize(model, A[row], bounds=[(low, high)] * RANK, tol=1e-14)
        assert model(new) == pytest.approx(best.fun, rel=1e-6)
        assert np.all((new >= low) & (new <= high))


def test_hessians_of_some_rows_are_those_of_all():
    """By BLAS, and row by row, in single precision too."""
    for dtype, close in ((np.float64, 1e-12), (np.float32, 1e-5)):
        factors = tuple(A.astype(dtype) for A in FACTORS)
        data, of = as_data(X.astype(dtype)), kernels.of(factors[0])
        (every,), _ = data.map(of.hessians, factors, 0, KL().of_entry)
        (some,), _ = data.map(of.hessians, factors, 0, KL().of_entry, Chosen(np.array([0, 7, 29])))
        assert some.dtype == dtype
        assert np.allclose(some, every[[0, 7, 29]], rtol=close)
