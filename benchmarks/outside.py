"""What a fit takes besides its iterations, by stage."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import partwise as pw
from partwise.data import Data
from partwise.init import Init
from partwise.kernels import cpu
from partwise.run.course import Course
from partwise.run.loop import Monitor, StartRun
from partwise.solvers import BlockDescent

from . import data
from .runs import Table, Task
from .scale import sized

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
    "copies of X",
    "first measure",
    "iterations",
    "last measure",
    "conventions, certificate, result",
)
N_ITER, REPEATS = 20, sized(7, 1)
SHOWN = [stage for stage in STAGES if stage != ITERATIONS]
HEADER = ["data", "rank", "init", "ms an iteration", *SHOWN, "**all but the start, in iterations**", "of the fit"]


def tables() -> list[Table]:
    return [Table("outside", HEADER, [Task(name, partial(fixed_costs, name)) for name in FITS], 12)]


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
            (Data, "single"): COPY,
            (Course, "look"): FIRST,
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


def fixed_costs(name: str) -> list[list]:
    load, rank = FITS[name]
    X = load()
    return [[name, rank, *median_stages(X, rank, init)] for init in ("random", "nndsvda")]


def median_stages(X, rank: int, init: str) -> list:
    """The end of a line of the table: the median of each stage."""
    pw.NMF(rank, init=init, max_iter=2, tol=0, random_state=0).fit(X)  # compile
    fits = [by_stage(X, rank, init) for _ in range(REPEATS)]
    spent = {stage: float(np.median([fit[stage] for fit in fits])) for stage in STAGES}
    iteration = spent[ITERATIONS] / N_ITER
    outside = sum(seconds for stage, seconds in spent.items() if stage not in (START, ITERATIONS))
    shown = [f"{1e3 * spent[stage]:.2f} ({spent[stage] / iteration:.1f})" for stage in SHOWN]
    share = outside / (outside + spent[START] + spent[ITERATIONS])
    return [init, f"{1e3 * iteration:.2f}", *shown, f"**{outside / iteration:.1f}**", f"{share:.0%}"]
