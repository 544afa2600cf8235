"""Where the time of an iteration goes, and how near each phase comes to what the machine can do."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from itertools import islice

import numpy as np
from sklearn.utils import check_random_state

from partwise import kernels
from partwise.bench import Contest, partwise
from partwise.init import Random
from partwise.kernels import threads

from .rows import ROWS, Row
from .runs import Outcome, Table, Task, rows, values

NAMES = ["orl", "orl, float32", "cbcl", "mnist, sparse", "news20, tf-idf", "rcv1, float32", "planted, 30% zeros"]
PHASES = {
    "dense_product": "products",
    "sparse_product": "products",
    "transposed_product": "products",
    "hals": "updates",
    "extrapolate": "bookkeeping",
    "gram": "bookkeeping",
    "inner": "bookkeeping",
    "sum_abs": "bookkeeping",
}
STEPS = 15


class Timed:
    """The time spent in kernels while it is installed."""

    def __init__(self, module):
        self.module, self.spent = module, defaultdict(float)

    @contextmanager
    def installed(self):
        originals = {name: getattr(self.module, name) for name in PHASES}
        for name, function in originals.items():
            setattr(self.module, name, self.wrap(function, PHASES[name]))
        try:
            yield
        finally:
            for name, function in originals.items():
                setattr(self.module, name, function)

    def wrap(self, function, phase):
        def timed(*arguments):
            start = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.spent[phase] += time.perf_counter() - start

        return timed


def limits() -> dict[str, float]:
    """What the machine does at best, on all cores: GFLOP/s of large products, GB/s read and written by a copy."""
    best = {}
    for kind in (np.float64, np.float32):
        A = np.random.default_rng(0).uniform(size=(2000, 2000)).astype(kind)
        best[np.dtype(kind).name] = 2 * 2000**3 / 1e9 / fastest(lambda A=A: A @ A)
    source, target = np.ones(2**25), np.empty(2**25)
    pieces = threads.split_evenly(source.size, 1)

    def copy():
        threads.map_chunks(lambda i, j: np.copyto(target[i:j], source[i:j]), pieces)

    best["copy"] = 2 * source.nbytes / 1e9 / fastest(copy)
    return best


def fastest(function, repeats=5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(contest: Contest, best: dict[str, float]) -> list:
    problem = contest.problem
    rank, size, kind = contest.rank, sum(problem.data.shape), problem.data.dtype
    steps = partwise(contest, *Random()(problem, check_random_state(0)))
    for _ in islice(steps, 3):
        pass
    timed = Timed(kernels.of(problem.data.values))
    with timed.installed():
        start = time.perf_counter()
        for _ in islice(steps, STEPS):
            pass
        total = (time.perf_counter() - start) / STEPS
    spent = {phase: seconds / STEPS for phase, seconds in timed.spent.items()}
    flops = 4 * problem.data.values.size * rank / 1e9 / spent["products"]
    stored = problem.data.values.nbytes if problem.data.values.size == np.prod(contest.X.shape) else None
    traffic = 2 * (stored or problem.data.values.nbytes * (1 + 4 / kind.itemsize)) / 1e9 / spent["products"]
    return [
        contest.name,
        rank,
        f"{1e3 * total:.2f}",
        *(f"{spent[phase] / total:.0%}" for phase in ("products", "updates", "bookkeeping")),
        f"{1 - sum(spent.values()) / total:.0%}",
        f"{flops:.0f} ({flops / best[kind.name]:.0%})",
        f"{traffic:.1f} ({traffic / best['copy']:.0%})",
        f"{1e9 * spent['updates'] / size:.0f}",
    ]


HEADER = [
    "data",
    "rank",
    "ms an iteration",
    "products",
    "updates",
    "bookkeeping",
    "the rest",
    "products: GFLOP/s (of large products')",
    "products: GB/s of X read (of a copy's)",
    "updates: ns a row",
]


def tables() -> list[Table]:
    tasks = [Task(row.title, partial(attend, row)) for row in ROWS if row.name in NAMES]
    return [Table("phases", HEADER, tasks, 8, write=written)]


def attend(row: Row) -> dict:
    best = limits()
    return {"lines": [measure(row.contest(), best)], "best": best}


def written(outcomes: list[Outcome]) -> str:
    """The table, and the limits of the machine: the best that any row saw."""
    seen = [value["best"] for value in values(outcomes).values()]
    most = {name: max(best[name] for best in seen) for name in ("float64", "float32", "copy")}
    peak = f"{most['float64']:.0f} GFLOP/s in float64 and {most['float32']:.0f} in float32, 2000 × 2000 matrices"
    return f"Large products: {peak}; a copy: {most['copy']:.0f} GB/s.\n\n{rows(HEADER, outcomes)}"
