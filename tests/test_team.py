"""Threads of compiled kernels: the same bits from any number of them, and nothing goes on behind the caller's back."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from partwise.kernels import cpu, threads
from partwise.kernels.cpu import team
from partwise.run import interrupts

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 6400, 5))
BOX = A.dtype.type(0.1), np.zeros((1, 5)), np.full((1, 5), np.inf)
CHUNKS = list(range(0, 65))


@team.mapped
def spend(rounds, out, number, start, stop):
    """Something that takes its time: 10 microseconds for a thousand rounds."""
    for i in range(start, stop):
        x = np.float64(i)
        for _ in range(rounds):
            x = np.sqrt(x + 1)
        out[i] += x + 1


@team.mapped
def ask_for(numbers, out, number, start, stop):
    out[number] = np.empty(numbers)[0]


def spent(rounds):
    out = np.zeros(64)
    team.over(spend, CHUNKS, rounds, out)
    return out


@pytest.fixture(params=[1, 2, 16])
def count(request, monkeypatch):
    monkeypatch.setattr(threads, "pieces", lambda *_: 32)
    monkeypatch.setattr(threads, "count", lambda: request.param)
    return request.param


def results(A, B):
    return (
        cpu.inner(A, B),
        cpu.gain_columns(A, B, np.ones_like(A), BOX).tobytes(),
        cpu.gram(A).tobytes(),
        cpu.extrapolate(A, B, 0.5, BOX).tobytes(),
    )


EXPECTED: list = []


def test_bits_are_the_same_for_any_number_of_threads(count):
    for _ in range(20):
        EXPECTED.append(results(A, B))
    assert len(set(EXPECTED)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_matrices(count, dtype):
    for rank in (1, 5, 70):
        A = RNG.normal(size=(999, 2 * rank)).astype(dtype)[:, ::2]
        found, expected = cpu.gram(A), A.astype(np.float64).T @ A
        assert found.dtype == dtype
        assert np.array_equal(found, found.T)
        assert np.allclose(found, expected, atol=300 * np.finfo(dtype).eps * expected.max())


def test_helpers_that_sleep_or_watch_do_all_tasks_once(count):
    for round in range(300):
        assert np.all(spent(round % 5 * 100) >= 1)
        time.sleep(RNG.choice([0, 0, 1e-5, 1e-4, 1e-3]))
    out = np.zeros(64)
    for _ in range(100):
        team.over(spend, CHUNKS, 0, out)
    assert np.array_equal(out, 100 * (np.arange(64) + 1))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
def test_every_task_is_the_share_of_one_thread(n_threads):
    for n_tasks in (2, 15, 16, 17, 128):
        firsts, ends = team.shares(n_tasks, n_threads).T
        shared_out = [range(first, end) for first, end in zip(firsts, ends, strict=True)]
        assert [task for share in shared_out for task in share] == [*range(n_tasks)]
        assert max(ends - firsts) - min((ends - firsts)[:n_tasks]) <= 1
        assert np.all(ends[:n_tasks] > firsts[:n_tasks])  # threads that are woken first


def test_no_rows_and_no_tasks():
    out = np.zeros(1)
    for boundaries in ([0], [0, 0], [0, 0, 0]):
        team.over(spend, boundaries, 10, out)
    assert out[0] == 0


def test_when_the_caller_is_stopped_no_task_goes_on(count, monkeypatch):
    asked, out = [], np.zeros(64)

    def check():
        asked.append(1)
        if len(asked) == 2:  # after the first task of the caller's
            raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(interrupts, "check", check)
        with pytest.raises(TimeoutError):
            team.over(spend, CHUNKS, 1_000_000, out)  # so that helpers leave some to the caller
    before = out.copy()
    assert np.any(before)
    time.sleep(0.01)
    assert np.array_equal(out, before)
    assert np.all(spent(10) > 0)


def test_ctrl_c_in_the_middle_of_a_map(count):
    out = np.zeros(64)
    spent(1)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt), interrupts.stoppable():
        while True:
            team.over(spend, CHUNKS, 100_000, out)
    before = out.copy()
    time.sleep(0.01)
    assert np.array_equal(out, before)
    assert np.all(spent(10) > 0)


def test_several_threads_at_once(count):
    arrays = [RNG.normal(size=(2, 3000 + 100 * i, 5)) for i in range(4)]
    alone = [results(*pair) for pair in arrays]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert list(pool.map(lambda pair: results(*pair), arrays)) == alone


@pytest.mark.parametrize("boundaries", [[0, 64], CHUNKS])
def test_too_little_memory_is_an_error(count, boundaries):
    with pytest.raises(MemoryError, match="not enough memory"):
        team.over(ask_for, boundaries, 1 << 57, np.zeros(64))
    team.over(ask_for, boundaries, 10, np.zeros(64))


def in_a_fork(_):
    return results(A, B)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_after_a_fork(count):
    expected = results(A, B)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(in_a_fork, range(4)) == [expected] * 4


PROGRAM = """
import numpy as np
from numba.core import event
from partwise.kernels import cpu, threads
threads.pieces, threads.count = lambda *_: 8, lambda: 3
A = np.arange(640.0).reshape(128, 5)
with event.install_recorder("numba:compile") as compiled:
    print(cpu.inner(A, A), cpu.gram(A).sum(), len(compiled.buffer) > 0)
"""


def test_a_later_process_compiles_nothing(tmp_path):
    found = []
    for _ in range(2):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", PROGRAM]
        found.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        )
    assert found[0][:2] == found[1][:2]
    assert [compiled for *_, compiled in found] == ["True", "False"]
