"""Whole calls at default settings, ours and scikit-learn's, and our time to the objective that theirs ends with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sklearn.decomposition
from matplotlib.figure import Figure

import partwise as pw
from docs import pictures
from partwise.bench import NEAR, Contest
from partwise.datasets import make_parts

from . import data
from .pages import ROOT, table
from .runs import Outcome, Table, Task, values
from .scale import sized

LOSSES = {
    "least squares": {},
    "KL": {"beta_loss": "kullback-leibler"},
    "Itakura-Saito": {"beta_loss": "itakura-saito"},
    "beta = 0.5": {"beta_loss": 0.5},
    "beta = 1.5": {"beta_loss": 1.5},
}
SIDES: dict[str, type] = {"scikit-learn": sklearn.decomposition.NMF, "partwise": pw.NMF}


class Row(NamedTuple):
    name: str
    loss: str
    load: Callable[[], Any]
    rank: int
    calls: int = 3

    @property
    def repeats(self) -> int:
        return sized(self.calls, 1)


def tiny() -> np.ndarray:
    return make_parts(200, 100, 5, noise=0.1, random_state=0).X


ROWS = [
    Row("tiny", "least squares", tiny, 5),
    Row("orl", "least squares", lambda: data.images("orl"), 25),
    Row("cbcl", "least squares", lambda: data.images("cbcl"), 49),
    Row("mnist", "least squares", lambda: data.sparse_images("mnist"), 10, 1),
    Row("news20", "least squares", lambda: data.tf_idf("news20"), 20),
    Row("k1b", "least squares", lambda: data.tf_idf("k1b"), 20),
    Row("rcv1", "least squares", lambda: data.stored("rcv1_subsets"), 20),
    Row("cbcl", "KL", lambda: data.counts("cbcl"), 49),
    Row("classic3", "KL", lambda: data.counts("classic3"), 20),
    Row("pbmc3k", "KL", lambda: data.counts("pbmc3k"), 10, 1),
    Row("spectrogram", "Itakura-Saito", lambda: data.power("fevotte_spectrogram"), 10),
    Row("spectrogram", "beta = 0.5", lambda: data.power("fevotte_spectrogram"), 10),
    Row("cbcl", "beta = 1.5", lambda: data.counts("cbcl"), 49),
]
HEADER = [
    "data",
    "loss",
    "size, number of parts",
    "scikit-learn, s",
    "partwise, s",
    "**whole call: times faster**",
    "our objective over theirs",
    "**to 0.1% above theirs: times faster**",
    "first call adds, s",
]


def tables() -> list[Table]:
    """Sides in turn, each call in a process of its own."""
    tasks = []
    for row in ROWS:
        tasks += [Task(title(row, side, n), partial(call, row, side)) for n in range(row.repeats) for side in SIDES]
        tasks.append(Task(traced_title(row), partial(traced, row)))
    return [Table("default calls", [], tasks, 4, write=written)]


def title(row: Row, side: str, repeat: int) -> str:
    return f"{row.name}, {row.loss}: {side}, {repeat + 1}"


def traced_title(row: Row) -> str:
    return f"{row.name}, {row.loss}: partwise, by iteration"


def settings_of(row: Row) -> dict[str, Any]:
    """Of both estimators."""
    loss = {} if row.loss == "least squares" else {"solver": "mu", **LOSSES[row.loss]}
    return {"n_components": sized(row.rank, min(row.rank, 3)), "init": "nndsvda", "random_state": 0, **loss}


def call(row: Row, side: str) -> dict:
    """One whole call of an estimator, after a first one on little data: seconds, and the objective."""
    X, settings = row.load(), settings_of(row)
    first, again = (sum(timed(SIDES[side](**settings), little)[1] for little in few(X, settings)) for _ in range(2))
    model = SIDES[side](**settings)
    W, seconds = timed(model, X)
    contest = Contest(row.name, X, settings["n_components"], loss=settings.get("beta_loss", "frobenius"))
    return {
        "seconds": seconds,
        "objective": contest.problem.objective((W, np.ascontiguousarray(model.components_.T))),
        "first": first - again,
        "size": f"{contest.size}, {contest.rank}",
    }


def few(X, settings: dict) -> list:
    """Rows for a first call, which reads what was compiled, in both precisions: runs on large data begin in single."""
    rows = X[: max(60, 2 * settings["n_components"])]
    return [rows.astype(kind) for kind in (np.float64, np.float32)]


def timed(model, X) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    W = model.fit_transform(X)
    return W, time.perf_counter() - start


def traced(row: Row) -> list[tuple[float, float]]:
    """Seconds since the call, and objectives, of the iterations of our default call."""
    X, settings = row.load(), settings_of(row)
    for little in few(X, settings):
        pw.NMF(**settings).fit(little)
    marks: list[tuple[float, float]] = []
    start = time.perf_counter()
    watch = lambda record, factors: marks.append((time.perf_counter() - start, record.objective))  # noqa: E731
    pw.NMF(**settings, callbacks=[watch]).fit(X)
    return marks


# -- the page ----------------------------------------------------------------------------------------------


class Compared(NamedTuple):
    """A row: medians of seconds and objectives of both sides, and our seconds to their objective."""

    row: Row
    size: str
    theirs: float
    ours: float
    objective: float  # ours over theirs
    equal: float | None  # None: never
    first: float

    def line(self) -> list[str]:
        seconds = [f"{value:.2g}" if value < 10 else f"{value:.0f}" for value in (self.theirs, self.ours)]
        equal = "never" if self.equal is None else f"{self.theirs / self.equal:.1f}"
        whole = f"{self.theirs / self.ours:.1f}"
        about = [self.row.name, self.row.loss, self.size]
        return [*about, *seconds, whole, f"{self.objective:.4f}", equal, f"{self.first:.1f}"]


def compared(row: Row, found: dict[str, dict]) -> Compared | None:
    """None where a side has no value at all."""
    sides = {side: [found.get(title(row, side, repeat)) for repeat in range(row.repeats)] for side in SIDES}
    known = {side: [run for run in runs if run] for side, runs in sides.items()}
    if not all(known.values()):
        return None
    theirs, ours = (
        {key: float(np.median([run[key] for run in known[side]])) for key in ("seconds", "objective", "first")}
        for side in SIDES
    )
    trace = found.get(traced_title(row)) or []
    equal = next((seconds for seconds, objective in trace if objective <= NEAR * theirs["objective"]), None)
    return Compared(
        row,
        known["partwise"][0]["size"],
        theirs["seconds"],
        ours["seconds"],
        ours["objective"] / theirs["objective"],
        equal,
        ours["first"],
    )


def written(outcomes: list[Outcome]) -> str:
    """The table, and the picture."""
    found, why = values(outcomes), {outcome.name: outcome.failure for outcome in outcomes}
    every = {row: compared(row, found) for row in ROWS}
    lines = []
    for row, one in every.items():
        reasons = filter(None, (why[title(row, side, repeat)] for repeat in range(row.repeats) for side in SIDES))
        lines.append(one.line() if one else [row.name, row.loss, next(reasons), *[""] * (len(HEADER) - 3)])
    draw([one for one in every.values() if one])
    return table(HEADER, lines)


def draw(every: list[Compared]) -> None:
    """Two bars for each data set, to be read on a phone."""
    if not every:
        return
    figure = Figure(figsize=(5.4, 0.52 * len(every) + 1.5), layout="constrained")
    axis = figure.subplots()
    places = np.arange(len(every))[::-1]
    whole = [one.theirs / one.ours for one in every]
    equal = [one.theirs / one.equal if one.equal else np.nan for one in every]
    for shift, ratios, colour, label in (
        (0.2, whole, "#c2410c", "whole call at default settings"),
        (-0.2, equal, "#fdba74", "to an objective as good (0.1%)"),
    ):
        axis.barh(places + shift, np.array(ratios) - 1, 0.38, left=1, color=colour, label=label)  # from 1 on
    for y, value in [*zip(places + 0.2, whole, strict=True), *zip(places - 0.2, equal, strict=True)]:
        told = "never" if np.isnan(value) else f"{value:.1f}"
        at = 1.0 if np.isnan(value) else max(value, 1.0)
        axis.annotate(told, (at, y), (3, 0), textcoords="offset points", va="center", fontsize=9)
    axis.axvline(1, color="black", lw=1)
    axis.set_xscale("log")
    axis.set_xlim(min(0.7 * np.nanmin([*whole, *equal]), 0.8), 4 * np.nanmax([*whole, *equal, 1.0]))
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if tick < axis.get_xlim()[1]]
    axis.set_xticks([tick for tick in ticks if tick > axis.get_xlim()[0]], minor=False)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.minorticks_off()
    named = {"least squares": "", "Itakura-Saito": ", IS"}
    axis.set_yticks(places, [one.row.name + named.get(one.row.loss, f", {one.row.loss}") for one in every])
    axis.set_xlabel("times as fast as scikit-learn (1: the same)")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0, labelsize=11)
    figure.legend(loc="outside upper center", ncols=1, frameon=False, fontsize=11)
    figure.savefig(ROOT / "docs" / "defaults.png", dpi=120)
    pictures.stamp("defaults.png")
