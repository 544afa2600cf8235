"""What more threads give."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse

import partwise as pw
from partwise.kernels import threads

from . import data
from .runs import Table, Task
from .scale import sized

COUNTS = [n for n in (1, 2, 4, 8, 16) if n <= threads.count()]
SHORT, LONG = sized((5, 25), (2, 4))  # iterations: what two fits differ by is free of what they begin and end with
REPEATS = sized(5, 1)
HEADER = [
    *("data", "size", "rank", "loss", "ms an iteration, one thread"),
    *(f"{n} threads: times faster" for n in COUNTS[1:]),
    "asked of 16",
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
    return [Table("cores", HEADER, [Task(name, partial(speed_up, name)) for name in FITS], 40)]


def speed_up(name: str) -> list[list]:
    load, rank, loss, asked = FITS[name]
    X = load(np.random.default_rng(0))
    options = {"loss": {"KL": "kl"}.get(loss, "frobenius"), "init": "random", "random_state": 0, "tol": 0.0}
    fit = partial(pw.factorize, X, rank, **options)
    warnings.simplefilter("ignore")
    fit(max_iter=2)
    one, *more = iterations(fit)
    size = f"{X.shape[0]} × {X.shape[1]}" + (f", {X.nnz} nonzeros" if scipy.sparse.issparse(X) else "")
    return [[name, size, rank, loss, f"{1e3 * one:.1f}", *(f"**{one / seconds:.1f}**" for seconds in more), asked]]


def iterations(fit: Callable) -> np.ndarray:
    """Seconds of an iteration with each number of threads, medians; numbers of threads take turns."""
    found = [[[timed(fit, n, most) for most in (SHORT, LONG)] for n in COUNTS] for _ in range(REPEATS)]
    short, long = np.median(found, axis=0).T
    return (long - short) / (LONG - SHORT)


def timed(fit: Callable, n_threads: int, max_iter: int) -> float:
    began = time.perf_counter()
    fit(n_threads=n_threads, max_iter=max_iter)
    return time.perf_counter() - began
