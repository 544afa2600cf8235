"""How work is cut into tasks, and a small thread pool for functions of Python's and NumPy's that release the GIL;
compiled kernels have threads of their own, `cpu/team.py`.

Every task writes its own rows or returns its own sum, and how work is cut into tasks does not depend on the number of
threads: results are the same bits for any number.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, reduce
from itertools import pairwise

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from ..run import interrupts

CHUNK_WORK = 500_000  # updates of one number below which a task is not worth handing to another thread
LIGHT_WORK = 1 << 15  # the same where a number costs no more than to read and write it
NUMPY_WORK = 100_000  # the same in functions of NumPy's, for threads that take longer to wake
BLAS_WORK = 3_000_000  # the same for multiplications in a call of BLAS
TILE_WORK = 1_000_000  # and in our own products of arrays
MOST_TASKS = 128
SAMPLED = 2048  # rows that are looked at first, where there are many
ROUND = 16  # beyond so many tasks, whole multiples of it: of 17 on 16 cores all but one would wait for the last


@cache
def cores() -> int:
    """Of this process."""
    return joblib.cpu_count()


def _available(setting: str | None) -> int:
    """The cores of this process, fewer where OMP_NUM_THREADS, here `setting`, says so: joblib's processes get it."""
    if setting and setting.isdigit() and int(setting) > 0:
        return min(cores(), int(setting))
    in_a_worker = getattr(joblib.parallel.get_active_backend()[0], "nesting_level", 0)
    return 1 if in_a_worker else cores()  # joblib's threads get no such number, and have the cores in use already


_wanted: ContextVar[int | None] = ContextVar("partwise_threads", default=None)
_settled: ContextVar[int | None] = ContextVar("partwise_threads_at_work", default=None)


@contextmanager
def limited(n_threads: int | None) -> Iterator[None]:
    """A context in which at most so many threads are used; None: as many as there are."""
    before = _wanted.get(), _settled.get()
    _wanted.set(n_threads)
    _settled.set(None)
    try:
        yield
    finally:
        _wanted.set(before[0])
        _settled.set(before[1])


def count() -> int:
    """Threads to use: while something is worked on as many as when that began, since to ask takes microseconds."""
    return _settled.get() or allowed()


def allowed() -> int:
    """Threads that may be used: those available, fewer where `limited` or the user's threadpoolctl say so."""
    limits = (_available(os.environ.get("OMP_NUM_THREADS")), _wanted.get(), blas.allowed)
    return min(limit for limit in limits if limit is not None)


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="partwise", initializer=begin_thread)


def pieces(work: int, least: int = CHUNK_WORK, most: int = MOST_TASKS) -> int:
    """How many tasks this much work is cut into: not a matter of the number of threads, so sums keep their bits."""
    if work < 2 * least:
        return 1
    count = min(most, work // least)
    return count - count % ROUND if count > ROUND else count


def split_evenly(n_rows: int, row_work: int, least: int = CHUNK_WORK, most: int = MOST_TASKS) -> list[int]:
    """Boundaries of equal chunks of rows, at most so many, each with enough work to pay for its task."""
    return in_chunks(n_rows, pieces(n_rows * row_work, least, most))


def in_chunks(n_rows: int, count: int) -> list[int]:
    """Boundaries of so many equal chunks of rows, fewer where there are fewer rows."""
    count = min(count, n_rows)
    return [n_rows * chunk // count for chunk in range(count + 1)] if count > 1 else [0, n_rows]


def split_by_work(work: np.ndarray, least: int = CHUNK_WORK) -> list[int]:
    """Boundaries of chunks of rows with about as much work each, that of every row given."""
    done = np.concatenate([[0], np.cumsum(work)])
    shares = np.linspace(0, done[-1], pieces(int(done[-1]), least) + 1)
    return np.searchsorted(done, shares).tolist()


def split_rows(
    indptr: np.ndarray, more: int, work: int = 1, least: int = CHUNK_WORK, most: int = MOST_TASKS
) -> list[int]:
    """The same for rows of `indptr[i + 1] - indptr[i]` entries, each of which costs `work`, and a row `more` of these
    besides. Threads wait for it in every iteration, so of many rows it looks at some, and then at those between two."""
    n_rows = indptr.size - 1
    whole = int(indptr[-1] - indptr[0]) + more * n_rows
    count = pieces(whole * work, least, most)
    if count == 1:
        return [0, n_rows]
    shares = indptr[0] + np.arange(count + 1) * whole / count
    step = max(1, n_rows // SAMPLED)
    sampled = np.arange(0, n_rows + step, step).clip(max=n_rows)
    found = (indptr[sampled] + more * sampled).searchsorted(shares)
    if step == 1:
        return sampled[found].tolist()
    before = sampled[found - 1].clip(max=n_rows - 1)
    between = (before[:, None] + np.arange(step + 1)).clip(max=n_rows)
    short = indptr[between] + more * between < shares[:, None]
    return [0, *(before + short.sum(axis=1)).tolist()[1:]]


def added(sums: list[np.ndarray]) -> np.ndarray:
    """The sum of what tasks return, in their order."""
    return reduce(np.add, sums)


def map_chunks(task: Callable, boundaries: list[int]) -> list:
    """`[task(start, stop), ...]` over consecutive boundaries, in parallel, results in order.

    The calling thread works too, and takes back what no other has begun: waking a thread costs 0.1 ms. Between two
    tasks is where Ctrl-C and the time limit are looked at.
    """
    if interrupts.are_held():  # as in every run
        return _mapped(task, boundaries)
    with interrupts.held():
        return _mapped(task, boundaries)


def _mapped(task: Callable, boundaries: list[int]) -> list:
    interrupts.check()
    if len(boundaries) == 2:
        return [task(*boundaries)]
    ranges = list(pairwise(boundaries))
    results: list = [None] * len(ranges)
    waiting = deque(range(len(ranges)))
    _work_off(task, ranges, results, waiting)
    return results


def _work_off(task: Callable, ranges: list[tuple[int, int]], results: list, waiting: deque[int]) -> None:
    """Do all that is waiting, with the help of other threads."""

    def work(check: Callable[[], None] = lambda: None) -> None:
        while True:
            try:
                number = waiting.popleft()
            except IndexError:
                return
            results[number] = task(*ranges[number])
            check()

    n_threads = count()
    helpers = [_pool(n_threads).submit(work) for _ in range(min(n_threads, len(ranges)) - 1)]
    try:
        work(interrupts.check)
    finally:
        waiting.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)  # all of them, whatever one of them raises: they write to arrays of the caller
    for helper in begun:
        helper.result()


class _Blas:
    """BLAS held to one thread while anyone works here.

    Its idle threads spin for milliseconds after every product and would take the cores from ours, which then run at
    half their speed; and products that are left to it are cut into pieces for our own threads (`dense_product`).
    """

    def __init__(self):
        self.forget()

    def forget(self) -> None:
        self.lock, self.depth = threading.Lock(), 0
        self.before: list[int] = []
        self.allowed: int | None = None  # threads that BLAS had before: what a user's threadpoolctl allows

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        with interrupts.held():  # Ctrl-C in the middle of `restore` would leave the process on one thread for good
            with self.lock:
                self.depth += 1
                if self.depth == 1:  # the first sets it, the last restores it
                    self.before = [library.num_threads for library in _libraries()]
                    self.allowed = min(self.before, default=None)
                    self.set([1] * len(self.before))
            before = _settled.get()
            _settled.set(allowed())
            try:
                yield
            finally:
                _settled.set(before)
                self.restore()

    def restore(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.set(self.before)
                self.allowed = None

    @staticmethod
    def set(numbers: list[int]) -> None:
        for library, number in zip(_libraries(), numbers, strict=True):
            # threadpoolctl gives the first thread that sets a number the sole right to, but ours may come and go in
            # any order: the lock is what keeps them apart
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(number)
            release(force=True)


@cache
def _libraries() -> list:
    """The BLAS libraries of this process."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def begin_thread() -> None:
    """Some libraries keep a number for each thread: ours get theirs when they begin."""
    for library in _libraries():
        if getattr(library, "threading_layer", "pthreads") != "pthreads":
            library.set_num_threads(1)


blas = _Blas()


def _after_fork() -> None:
    """The threads of a pool do not survive a fork, and a lock may have been held."""
    _pool.cache_clear()
    if blas.depth:
        blas.set(blas.before)
    blas.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
