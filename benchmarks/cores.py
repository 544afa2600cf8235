"""What more threads give, and what they could at most."""

from __future__ import annotations

import heapq
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import numpy as np
import scipy.sparse

import partwise as pw
from partwise.kernels import threads

from . import data
from .runs import Table, Task
from .scale import sized

WAKE = 30e-6  # seconds until a thread that was asleep begins its first task
MANY = 16  # threads that the last columns speak of
SHORT, LONG = sized((5, 15), (2, 4))  # iterations: what two fits differ by is free of what they begin and end with
REPEATS = sized(3, 1)
HEADER = [
    *("data", "size", "rank", "loss", "ms an iteration, one thread", "on all {cores} cores: times faster"),
    *("share outside of tasks", f"with {MANY} threads at most: times faster", "asked"),
]


def dense(rng: np.random.Generator) -> np.ndarray:
    rows, columns = sized((20_000, 2000), (2000, 200))
    return rng.random((rows, 32)) @ rng.random((32, columns)) + 0.1 * rng.random((rows, columns))


def counts(rng: np.random.Generator) -> scipy.sparse.csr_array:
    rows, columns, nonzeros = sized((100_000, 20_000, 4_000_000), (2000, 1000, 40_000))
    draw = {"data_sampler": lambda size: rng.integers(1, 6, size).astype(float), "rng": rng}
    return scipy.sparse.random_array((rows, columns), density=nonzeros / (rows * columns), format="csr", **draw)


# name: data, rank, loss, what is asked of 16 threads
FITS = {
    "uniform parts": (dense, 32, "least squares", 10),
    "uniform counts": (counts, 20, "least squares", 10),
    "uniform counts, KL": (counts, 20, "KL", 10),
    "orl": (lambda _: data.images("orl"), 25, "least squares", 5),
}


def tables() -> list[Table]:
    header = [title.format(cores=threads.count()) for title in HEADER]
    return [Table("cores", header, [Task(name, partial(speed_up, name)) for name in FITS], 25)]


def speed_up(name: str) -> list[list]:
    load, rank, loss, asked = FITS[name]
    X = load(np.random.default_rng(0))
    options = {"loss": {"KL": "kl"}.get(loss, "frobenius"), "init": "random", "random_state": 0, "tol": 0.0}
    fit = partial(pw.factorize, X, rank, **options)
    warnings.simplefilter("ignore")
    fit(max_iter=2)
    found = [
        (iteration(timed(partial(fit, n_threads=1))), iteration(timed(fit)), *watched(fit)) for _ in range(REPEATS)
    ]
    one, every, alone, outside, most = np.median(found, axis=0)
    size = f"{X.shape[0]} × {X.shape[1]}" + (f", {X.nnz} nonzeros" if scipy.sparse.issparse(X) else "")
    measured = [f"{1e3 * one:.1f}", f"**{one / every:.2f}**"]
    return [[name, size, rank, loss, *measured, f"{outside / alone:.1%}", f"{alone / most:.1f}", asked]]


def iteration(fits: list) -> np.ndarray:
    """Of an iteration, from what is known of a short and of a long fit."""
    short, long = fits
    return (np.array(long) - np.array(short)) / (LONG - SHORT)


def timed(fit) -> list[float]:
    found = []
    for max_iter in (SHORT, LONG):
        began = time.perf_counter()
        fit(max_iter=max_iter)
        found.append(time.perf_counter() - began)
    return found


def watched(fit) -> np.ndarray:
    """Seconds of an iteration of a fit on one thread, what of them is outside of tasks, and what `MANY` threads would
    take if they had cores and memory to themselves."""
    found = []
    for max_iter in (SHORT, LONG):
        with one_by_one() as maps:
            began = time.perf_counter()
            fit(max_iter=max_iter)
            spent = time.perf_counter() - began
        outside = spent - sum(map(sum, maps))
        found.append((spent, outside, outside + sum(spread(tasks, MANY) for tasks in maps)))
    return iteration(found)


@contextmanager
def one_by_one() -> Iterator[list[list[float]]]:
    """A context in which tasks are done one after the other; of each map the seconds of its tasks."""
    maps, usual = [], threads._mapped

    def mapped(task, boundaries):
        results, seconds = [], []
        for start, stop in pairwise(boundaries):
            began = time.perf_counter()
            results.append(task(start, stop))
            seconds.append(time.perf_counter() - began)
        maps.append(seconds)
        return results

    threads._mapped = mapped
    try:
        yield maps
    finally:
        threads._mapped = usual


def spread(tasks: list[float], many: int) -> float:
    """Seconds until all tasks are done, each by the first of so many threads that is free."""
    free = [0.0, *[WAKE] * (min(many, len(tasks)) - 1)]
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)
