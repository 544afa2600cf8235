"""Table 3 of Hsieh and Dhillon (2011): seconds to a relative KL divergence, on the data that are here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

import partwise as pw

from . import data
from .pages import table
from .runs import Outcome, Table, Task, rows, values
from .scale import sized

STARTS = sized(2, 1)
LIMIT = sized(3.0, 0.2)  # seconds
SOLVERS = ("auto", "newton_kl", "mu")
HEADER = ["data", "size", "rank", "relative divergence", *(f"`{name}`, s" for name in SOLVERS)]
HEADER += ["their CCD, s", "their Multiplicative, s"]
FINAL = ["data", "rank", *(f"`{name}`" for name in SOLVERS)]


class Entry(NamedTuple):
    name: str
    load: Callable[[], np.ndarray]
    rank: int
    theirs: list[tuple[float, float, str]]  # relative divergence, seconds of their CCD and of their Multiplicative


ENTRIES = [
    Entry("Synth03", lambda: data.planted(10, 0.3), 10, [(1e-3, 11.4, "34.0"), (1e-5, 14.8, "144.2")]),
    Entry("Synth03", lambda: data.planted(30, 0.3), 30, [(1e-3, 121.1, "749.5"), (1e-5, 184.32, "7092.3")]),
    Entry("Synth08", lambda: data.planted(10, 0.8), 10, [(1e-2, 2.5, "30.3"), (1e-5, 13.0, "never")]),
    Entry("Synth08", lambda: data.planted(30, 0.8), 30, [(1e-2, 22.6, "46.0"), (1e-5, 56.8, "never")]),
    Entry(
        "CBCL",
        lambda: data.prepared("cbcl"),
        49,
        [(0.1202, 38.2, "21.2"), (0.1103, 123.2, "562.6"), (0.1093, 166.0, "3266.9")],
    ),
    Entry(
        "ORL",
        lambda: data.images("orl"),
        25,
        [(0.3370, 73.7, "165.2"), (0.3095, 253.6, "902.2"), (0.3067, 370.2, "1631.9")],
    ),
]


def uniform(X: np.ndarray) -> float:
    """The divergence of X from the mean of each feature, which theirs are relative to."""
    return float(xlogy(X, X / np.maximum(X.mean(axis=0), 1e-300)).sum())


def history(X: np.ndarray, rank: int, solver: str, *, seed=0, target=0.0, limit=LIMIT) -> list[tuple[float, float]]:
    """Time and relative divergence of every iteration."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pw.factorize(
            X,
            rank,
            loss="kl",
            solver=solver,
            init="random",
            random_state=seed,
            tol=0,
            max_iter=10**6,
            time_limit=limit,
            target=target * uniform(X),
        )
    reference = uniform(X)
    return [(record.time, record.objective / reference) for record in result.history]


def tables() -> list[Table]:
    tasks = [Task(f"{entry.name}, rank {entry.rank}", partial(measured, entry)) for entry in ENTRIES]
    return [Table("seconds", HEADER, tasks, 15, f"Means over {STARTS} random starts.", written)]


def measured(entry: Entry) -> dict:
    X, runs = entry.load(), {}
    least = 1e-8 if entry.name.startswith("Synth") else 0.0  # a planted X can be met exactly: no need to go on
    for solver in SOLVERS:
        history(X[:50], entry.rank, solver, target=1e3)  # compiles
        runs[solver] = [history(X, entry.rank, solver, seed=seed, target=least) for seed in range(STARTS)]
    lines, size = [], " × ".join(map(str, X.shape))
    for goal, ccd, multiplicative in entry.theirs:
        cells = [time_to(goal, runs[solver]) for solver in SOLVERS]
        lines.append([entry.name, size, entry.rank, f"{goal:g}", *cells, ccd, multiplicative])
    ends = [np.mean([curve[-1][1] for curve in runs[solver]]) for solver in SOLVERS]
    return {"lines": lines, "final": [entry.name, entry.rank, *(f"{end:.4g}" for end in ends)]}


def written(outcomes: list[Outcome]) -> str:
    finals = table(FINAL, [value["final"] for value in values(outcomes).values()])
    title = f"The relative divergence after {LIMIT:g} seconds, mean of the starts:"
    return f"{rows(HEADER, outcomes)}\n\n{title}\n\n{finals}"


def time_to(goal: float, curves: list[list[tuple[float, float]]]) -> str:
    """The mean time of the starts that got there."""
    times = [next((t for t, value in curve if value <= goal), None) for curve in curves]
    there = [t for t in times if t is not None]
    missed = "" if len(there) == len(times) else f" ({len(there)} of {len(times)})"
    return (f"{np.mean(there):.2g}" if there else "never") + missed
