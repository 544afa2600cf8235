"""A small thread pool for compiled functions that release the GIL.

Every task writes its own rows, so results are the same bits for any number of threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import joblib
import numpy as np

CHUNK_WORK = 20_000  # entries below which a task is not worth handing to another thread


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


if hasattr(os, "register_at_fork"):  # the threads of a pool do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def even(n_rows: int, row_work: int) -> np.ndarray:
    """Boundaries of equal chunks of rows, each with enough work to pay for its task."""
    n_chunks = max(1, min(4 * count(), n_rows * row_work // CHUNK_WORK, n_rows))
    return np.linspace(0, n_rows, n_chunks + 1).astype(np.int64)


def run(task: Callable, boundaries: np.ndarray) -> list:
    """`[task(start, stop), ...]` over consecutive boundaries, in parallel, results in order."""
    starts, stops = boundaries[:-1].tolist(), boundaries[1:].tolist()
    n_threads = count()
    if n_threads == 1 or len(starts) == 1:
        return list(map(task, starts, stops))
    return list(_pool(n_threads).map(task, starts, stops))
