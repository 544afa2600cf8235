"""Where the time of an iteration goes, and how near each phase comes to what the machine can do."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from partwise import kernels
from partwise.bench import partwise
from partwise.init import Random
from partwise.kernels import threads

from .rows import ROWS, Row
from .runs import Outcome, Table, Task, rows

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
        originals = {name: getattr(self.module, name) for name in PHASES if hasattr(self.module, name)}
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


class Measured(NamedTuple):
    """Of an iteration: seconds, those of each phase, arithmetic in its products, bytes of X that these read, and rows
    of both factors."""

    name: str
    rank: int
    precision: str
    total: float
    spent: dict[str, float]
    flops: float
    n_bytes: float
    n_rows: int

    def line(self, best: dict[str, float]) -> list:
        flops, traffic = self.flops / 1e9 / self.spent["products"], self.n_bytes / 1e9 / self.spent["products"]
        return [
            self.name,
            self.rank,
            f"{1e3 * self.total:.2f}",
            *(f"{self.spent[phase] / self.total:.0%}" for phase in ("products", "updates", "bookkeeping")),
            f"{1 - sum(self.spent.values()) / self.total:.0%}",
            f"{flops:.0f} ({flops / best[self.precision]:.0%})",
            f"{traffic:.1f} ({traffic / best['copy']:.0%})",
            f"{1e9 * self.spent['updates'] / self.n_rows:.0f}",
        ]


def measure(row: Row) -> Measured:
    contest = row.contest()
    problem = contest.problem
    steps = partwise(contest, *Random()(problem, check_random_state(0)))
    for _ in islice(steps, 3):
        pass
    values = next(problem.data.listed())
    timed = Timed(kernels.of(values))
    with timed.installed():
        start = time.perf_counter()
        for _ in islice(steps, STEPS):
            pass
        total = (time.perf_counter() - start) / STEPS
    spent = {phase: timed.spent[phase] / STEPS for phase in set(PHASES.values())}
    stored = values.nbytes + (4 * values.size if issparse(contest.X) else 0)  # with indices
    return Measured(
        contest.name,
        contest.rank,
        problem.data.dtype.name,
        total,
        spent,
        4 * values.size * contest.rank,
        2 * stored,
        sum(problem.data.shape),
    )


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
MACHINE = "the machine"


def tables() -> list[Table]:
    tasks = [Task(row.title, partial(measure, row)) for row in ROWS if row.name in NAMES]
    return [Table("phases", HEADER, [Task(MACHINE, limits), *tasks], 5, write=written)]


def written(outcomes: list[Outcome]) -> str:
    """The table, and the limits of the machine."""
    machine, *others = outcomes
    if machine.failure:
        return f"The limits of the machine are not known: {machine.failure}."
    best = machine.value
    peak = f"{best['float64']:.0f} GFLOP/s in float64 and {best['float32']:.0f} in float32, 2000 × 2000 matrices"
    told = [one if one.failure else one._replace(value=[Measured(*one.value).line(best)]) for one in others]
    return f"Large products: {peak}; a copy: {best['copy']:.0f} GB/s.\n\n{rows(HEADER, told)}"
