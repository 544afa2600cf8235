"""Signals and time limits: a run may be stopped at any moment, and hands over what it has."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

import partwise as pw
from partwise.datasets import make_parts
from partwise.init import Given, Random
from partwise.kernels import cpu, threads
from partwise.kernels.cpu import team
from partwise.run import interrupts
from partwise.run.limits import Clock, Limits
from partwise.run.loop import Control, solve

from .conformance.tables import INITS, SOLVERS, problem_for
from .covering import EACH

X = make_parts(300, 200, 12, zeros=0.5, noise=0.2, random_state=0).X
RNG = np.random.default_rng(0)


def pressed(call, signum=signal.SIGINT, longest=0.03):
    """The result of a call during which a signal came, at a random moment."""
    for attempt in range(20):
        timer = threading.Timer(RNG.uniform(0, longest / (1 + attempt)), os.kill, (os.getpid(), signum))
        try:
            timer.start()
            result = call()
            timer.join()
        except KeyboardInterrupt:  # it was over too soon
            continue
        return result
    raise AssertionError("no signal came in time")


def threads_of_blas():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    handlers, blas = {s: signal.getsignal(s) for s in interrupts.SIGNALS}, threads_of_blas()
    yield
    assert {s: signal.getsignal(s) for s in interrupts.SIGNALS} == handlers
    assert threads_of_blas() == blas
    assert not interrupts._signals.pending


@EACH
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", SOLVERS)
def test_ctrl_c_at_any_moment_returns_the_best_so_far(name, store):
    solver = SOLVERS[name]
    problem, start = problem_for(solver, X, 12, store=store), solver.default_init or Random()
    limits = Limits(max_iter=10**6, tol=0.0)

    def run():
        return solve(problem, [start] * 1000, solver, np.random.RandomState(0), Control(limits))[0]

    solve(problem, [start], solver, np.random.RandomState(0), Control(Limits(max_iter=2)))  # compile
    for _ in range(4):
        found = pressed(run)
        assert found.status == "interrupted"
        assert np.isfinite(found.history[-1].objective)
        assert problem.objective(found.factors) <= found.history[0].objective * (1 + 1e-6)


@pytest.mark.parametrize("name", INITS)
def test_ctrl_c_during_a_start_returns_what_there_is(name):
    loss = "l1" if name.endswith("l1") else "frobenius"

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pw.factorize(X, 12, loss=loss, init=name, max_iter=10**6, tol=0, random_state=0)

    for longest in (0.005, 0.05):
        result = pressed(run, longest=longest)
        assert result.status == "interrupted"
        assert np.all(np.isfinite(result.W))


def test_ctrl_c_outside_of_a_run_is_a_keyboard_interrupt():
    """A compiled function would turn it into a SystemError."""
    A = RNG.uniform(size=(400, 40))
    for _ in range(10):
        timer = threading.Timer(RNG.uniform(0, 0.01), os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                cpu.gain_columns(A, A, A, (A.dtype.type(0), A[:1], A[:1]))


@pytest.mark.parametrize("times", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_ctrl_c_while_handlers_are_put_in_place_or_back(times):
    for _ in range(times):
        timer = threading.Timer(RNG.uniform(0, 0.001), os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                with interrupts.held():
                    pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert not interrupts._signals.depth
        assert not interrupts._signals.pending


def test_ctrl_c_in_a_certificate():
    data = RNG.uniform(size=(150, 140))
    result = pw.factorize(data, 3, max_iter=5, tol=0)

    def certify():
        while True:
            result.certify(data, one_more=True)

    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        certify()


def test_ctrl_c_while_results_are_put_together_marks_them(monkeypatch):
    original = pw.factorize.__globals__["certificate"]

    def certificate(*arguments):
        signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setitem(pw.factorize.__globals__, "certificate", certificate)
    result = pw.factorize(X, 3, max_iter=5, tol=0, random_state=0)
    assert result.status == "interrupted"
    assert result.n_iter == 5


def test_a_handler_of_the_users_that_ends_the_process_leaves_a_checkpoint(tmp_path):
    """As job schedulers have it: SIGTERM, then the exit."""

    def leave(*_):
        raise SystemExit(3)

    path, seen = tmp_path / "run.partwise", []
    settings = {"init": "random", "max_iter": 60, "tol": 0, "random_state": 0}
    before = signal.signal(signal.SIGTERM, leave)
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        with pytest.raises(SystemExit):
            pw.factorize(
                X, 12, checkpoint=path, **settings | {"max_iter": 10**6}, callbacks=lambda r, _: seen.append(r)
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert path.exists()
    resumed = pw.factorize(X, 12, resume=path, **settings | {"max_iter": seen[-1].n_iter + 5})
    whole = pw.factorize(X, 12, **settings | {"max_iter": seen[-1].n_iter + 5})
    assert np.array_equal(resumed.W, whole.W)


def test_functions_of_the_users_are_interrupted_at_once():
    def forever(H):
        while True:
            pass

    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        pw.factorize(X, 3, structure_H=pw.structures.Projection(forever), max_iter=5)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    result = pw.factorize(X, 3, callbacks=lambda record, factors: record.n_iter == 2 and forever(0), tol=0)
    assert (result.status, result.n_iter) == ("interrupted", 2)


def test_other_threads_are_left_alone():
    """Signals belong to the main thread; a run in another one goes on."""
    found = []
    worker = threading.Thread(target=lambda: found.append(pw.factorize(X, 12, max_iter=200, tol=0, random_state=0)))
    worker.start()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        worker.join(10)
    worker.join()
    assert found[0].n_iter == 200


def heartbeat(*_):
    """A handler that does not raise."""


def test_signals_that_mean_nothing_do_not_end_a_run():
    before = signal.signal(signal.SIGALRM, heartbeat)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        assert pw.factorize(X, 12, tol=0, max_iter=10**6, time_limit=0.3, random_state=0).status == "time_limit"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_second_signal_does_not_outlast_the_call():
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert pw.factorize(X, 3, max_iter=3, tol=0).status == "max_iter"


def test_a_handler_that_is_put_back_late_still_works():
    seen = []

    def callback(record, factors):
        seen.append(signal.signal(signal.SIGINT, signal.default_int_handler))
        return True

    pw.factorize(X, 3, callbacks=callback)
    signal.signal(signal.SIGINT, seen[0])  # what was there during the call
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert pw.factorize(X, 3, max_iter=3, tol=0).n_iter == 3
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_in_the_users_projection_while_a_certificate_is_made_keeps_the_result(monkeypatch):
    made, original = [], pw.factorize.__globals__["certificate"]

    def project(H):
        if made:
            signal.raise_signal(signal.SIGINT)
        return np.maximum(H, 0)

    monkeypatch.setitem(pw.factorize.__globals__, "certificate", lambda *a: made.append(1) or original(*a))
    result = pw.factorize(X, 3, structure_H=pw.structures.Projection(project), max_iter=5, tol=0, random_state=0)
    assert result.status == "interrupted"
    assert np.all(np.isfinite(result.W))


# -- the time limit ------------------------------------------------------------------------------------


class CountingClock(Clock):
    """Says that the time is up from the n-th question on."""

    allowed = 0
    asked = 0

    def over(self):
        CountingClock.asked += 1
        return CountingClock.asked > CountingClock.allowed


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("partwise.run.loop.Clock", CountingClock)
    CountingClock.asked = 0
    return CountingClock


@EACH
@pytest.mark.parametrize("allowed", [0, 3, 40])
@pytest.mark.parametrize("name", INITS)
def test_the_time_limit_holds_during_starts(name, allowed, clock, monkeypatch):
    clock.allowed = allowed
    runs = []

    def noting(original):
        return lambda *a: runs.append(clock.asked > allowed) or original(*a)

    monkeypatch.setattr(threads, "map_chunks", noting(threads.map_chunks))
    monkeypatch.setattr(team, "_over", noting(team._over))
    loss = "l1" if name.endswith("l1") else "frobenius"
    result = pw.factorize(X, 12, loss=loss, init=name, time_limit=1, max_iter=10**6, tol=0, random_state=0)
    assert result.status == "time_limit"
    assert sum(runs) < 60  # what measures the result, and no more


@pytest.mark.parametrize("name", SOLVERS)
def test_the_time_limit_holds_in_the_middle_of_a_step(name, clock):
    """Even of a step that finds a whole part."""
    solver = SOLVERS[name]
    problem, rng = problem_for(solver, X[:60, :40], 4), np.random.RandomState(0)
    start = Given(problem.to_user((solver.default_init or Random())(problem, rng)))
    for allowed in (1, 2, 9):
        clock.allowed, clock.asked = allowed, 0
        limits = Limits(max_iter=10**6, tol=0.0, time_limit=1.0)
        found = solve(problem, [start], solver, rng, Control(limits))[0]
        assert found.status == "time_limit"
        assert np.isfinite(found.fit)


@pytest.mark.slow
def test_a_bound_on_one_more_part_of_a_large_sparse_matrix_never_makes_it_dense(monkeypatch):
    zeros = sparse.csr_array((100_000, 60_000))
    result = pw.factorize(zeros, 2, init="random", max_iter=3, random_state=0)

    def block(*_):
        raise AssertionError("rows of X were made dense")

    monkeypatch.setattr("partwise.data.rows.block", block)
    assert result.certify(zeros, one_more=True).one_more.gain == 0
