"""A small thread pool for compiled functions that release the GIL.

Every task writes its own rows, so results are the same bits for any number of threads.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import joblib
from threadpoolctl import ThreadpoolController

CHUNK_WORK = 1_000_000  # updates of one number below which a task is not worth handing to another thread
LIGHT_WORK = 200_000  # the same where a number costs no more than to read and write it
BLAS_WORK = 6_000_000  # the same for multiplications in a call of BLAS
MOST_TASKS = 64


@cache
def _available(setting: str | None) -> int:
    cores = joblib.cpu_count()
    return min(cores, int(setting)) if setting and setting.isdigit() and int(setting) > 0 else cores


def count() -> int:
    """Threads to use: the cores of this process, fewer if OMP_NUM_THREADS says so (joblib's workers set it)."""
    return _available(os.environ.get("OMP_NUM_THREADS"))


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="partwise")


def pieces(work: int, least: int = CHUNK_WORK) -> int:
    """How many tasks this much work is cut into: not a matter of the number of threads, so sums keep their bits."""
    return max(1, min(MOST_TASKS, work // least))


def even(n_rows: int, row_work: int, least: int = CHUNK_WORK) -> list[int]:
    """Boundaries of equal chunks of rows, each with enough work to pay for its task."""
    n_chunks = max(1, min(pieces(n_rows * row_work, least), n_rows))
    return [n_rows * chunk // n_chunks for chunk in range(n_chunks + 1)]


def run(task: Callable, boundaries: list[int]) -> list:
    """`[task(start, stop), ...]` over consecutive boundaries, in parallel, results in order.

    The calling thread works too, and takes back what no other has begun: waking a thread costs 0.1 ms.
    """
    if len(boundaries) == 2:
        return [task(*boundaries)]
    ranges = list(pairwise(boundaries))
    n_helpers = min(count(), len(ranges)) - 1
    if n_helpers < 1:
        return [task(*ends) for ends in ranges]
    results: list = [None] * len(ranges)
    waiting = iter(range(len(ranges)))

    def work() -> None:
        for number in waiting:
            results[number] = task(*ranges[number])

    helpers = [_pool(count()).submit(work) for _ in range(n_helpers)]
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return results


class _Blas:
    """BLAS held to one thread while anyone works here.

    Its idle threads spin for milliseconds after every product and would take the cores from ours, which then run at
    half their speed. That is worth it where our kernels do most of the work, as on sparse data.
    """

    def __init__(self):
        self.lock, self.depth, self.limit = threading.Lock(), 0, None

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        with self.lock:
            self.depth += 1
            if self.depth == 1:  # the first sets it, the last restores it
                self.limit = self.controller().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self.lock:
                self.depth -= 1
                if self.depth == 0:
                    self.limit.restore_original_limits()

    @staticmethod
    @cache
    def controller() -> ThreadpoolController:
        return ThreadpoolController()


blas = _Blas()


def _after_fork() -> None:
    """The threads of a pool do not survive a fork, and a lock may have been held."""
    _pool.cache_clear()
    blas.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
