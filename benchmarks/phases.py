"""Where the time of an iteration goes, how near each phase comes to what the machine can do, and what a fit takes
besides its iterations."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from contextlib import contextmanager
from importlib import import_module
from itertools import islice

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

import partwise as pw
from partwise import kernels
from partwise.bench import Contest, machine, partwise
from partwise.init import Init, Random
from partwise.kernels import cpu, threads
from partwise.run.loop import Monitor, StartRun
from partwise.solvers import BlockDescent

from . import data
from .pages import table
from .rows import ROWS

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

# fits of data with so many parts, and the stages that they are made of
FITS = {
    "news20, tf-idf": (lambda: data.tf_idf("news20"), 20),
    "k1b, tf-idf": (lambda: data.tf_idf("k1b"), 20),
    "orl": (lambda: data.images("orl"), 25),
    "cbcl": (lambda: data.images("cbcl"), 49),
    "uniform, 200 × 100": (lambda: np.random.default_rng(0).uniform(size=(200, 100)), 5),
}
BEFORE, START, COPY, FIRST, ITERATIONS, LAST, AFTER = STAGES = (
    "checks, statistics of X",
    "start",
    "second copy of X",
    "first measure",
    "iterations",
    "last measure",
    "conventions, certificate, result",
)
N_ITER, REPEATS = 20, 7


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


class Stages:
    """The time of a fit by its stages. Where one runs inside another, its time is its own."""

    def __init__(self):
        self.spent, self.open, self.since = defaultdict(float), [], 0.0

    def tick(self) -> None:
        now = time.perf_counter()
        if self.open:
            self.spent[self.open[-1]] += now - self.since
        self.since = now

    @contextmanager
    def running(self, stage: str):
        self.tick()
        self.open.append(stage)
        try:
            yield
        finally:
            self.tick()
            self.open.pop()

    def wrap(self, function, stage: str):
        def staged(*arguments, **options):
            with self.running(stage):
                return function(*arguments, **options)

        return staged

    def solving(self, solve):
        def staged(*arguments, **options):
            try:
                return solve(*arguments, **options)
            finally:
                self.tick()
                self.open[0] = AFTER

        return staged

    @contextmanager
    def installed(self):
        front = import_module("partwise.factorize")
        places = {
            (Init, "__call__"): START,
            (cpu, "transpose"): COPY,
            (Monitor, "look"): FIRST,
            (Monitor, "measure"): LAST,
            (StartRun, "go_on"): ITERATIONS,
            (BlockDescent, "known"): ITERATIONS,  # what the first step needs
            (Monitor, "finish"): LAST,
        }
        originals = {place: getattr(*place) for place in [*places, (front, "solve")]}
        for place, stage in places.items():
            setattr(*place, self.wrap(originals[place], stage))
        front.solve = self.solving(front.solve)
        try:
            yield
        finally:
            for place, function in originals.items():
                setattr(*place, function)


def by_stage(X, rank: int, init: str) -> dict[str, float]:
    """Seconds of one fit."""
    stages, model = Stages(), pw.NMF(rank, init=init, max_iter=N_ITER, tol=0, random_state=0)
    with warnings.catch_warnings(), stages.installed(), stages.running(BEFORE):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return stages.spent


def fixed_costs(X, rank: int, init: str) -> list:
    """A line of the table: the median of each stage."""
    pw.NMF(rank, init=init, max_iter=2, tol=0, random_state=0).fit(X)  # compile
    fits = [by_stage(X, rank, init) for _ in range(REPEATS)]
    spent = {stage: float(np.median([fit[stage] for fit in fits])) for stage in STAGES}
    iteration = spent[ITERATIONS] / N_ITER
    outside = sum(seconds for stage, seconds in spent.items() if stage not in (START, ITERATIONS))
    shown = [f"{1e3 * spent[stage]:.2f} ({spent[stage] / iteration:.1f})" for stage in STAGES if stage != ITERATIONS]
    share = outside / (outside + spent[START] + spent[ITERATIONS])
    return [init, f"{1e3 * iteration:.2f}", *shown, f"**{outside / iteration:.1f}**", f"{share:.0%}"]


def outside() -> str:
    """What fits take besides their iterations."""
    lines = []
    for name, (load, rank) in FITS.items():
        try:
            X = load()
        except data.Absent as error:
            print(f"{name}: {error}")
            continue
        lines += [[name, rank, *fixed_costs(X, rank, init)] for init in ("random", "nndsvda")]
    stages = [stage for stage in STAGES if stage != ITERATIONS]
    header = ["data", "rank", "init", "ms an iteration", *stages, "**all but the start, in iterations**", "of the fit"]
    return f"{machine()}\n\n{table(header, lines)}"


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


def run() -> str:
    best, lines = limits(), []
    for row in ROWS:
        if row.name in NAMES:
            try:
                lines.append(measure(row.contest(), best))
            except data.Absent as error:
                print(f"{row.name}: {error}")
    header = [
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
    peak = f"{best['float64']:.0f} GFLOP/s in float64 and {best['float32']:.0f} in float32, 2000 × 2000 matrices"
    return f"{machine()} Large products: {peak}; a copy: {best['copy']:.0f} GB/s.\n\n{table(header, lines)}"
