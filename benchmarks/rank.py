"""How many parts: planted numbers found again, beside other rules on the same data; data sets with a known number; and
what a search costs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import joblib
import numpy as np

import partwise as pw
from partwise.bench import machine
from partwise.selection.setting import Setting, silence

from . import rank_real
from .data import Absent, counts, loaded
from .pages import table
from .rank_planted import (
    COUNTS,
    LEAST_SQUARES,
    N_SEEDS,
    NAMED,
    OVERDISPERSED,
    Instance,
    detectable_rank,
    instances,
    path_of,
    structureless,
    turned,
)
from .rank_rules import RULES, Curves, of_starts, picks

ASKED = {LEAST_SQUARES: "86 / 97%", COUNTS: "93 / 98%", OVERDISPERSED: "80%", NAMED: "95%"}
COUNT_SUITES = (COUNTS, OVERDISPERSED, NAMED)  # "counts" of the first table are all of these
MANY = 8  # parts, of the instances whose fits are counted


# -- planted -----------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What rules say of one instance."""

    suite: str
    rank: int
    detectable: int
    picks: dict[str, int]
    n_fits: float

    def misses(self, rule: str) -> int:
        return self.picks[rule] - self.rank


def search(X, most: int, loss: str) -> pw.selection.RankSelection:
    with silence():
        return pw.select_rank(X, most, loss=loss, n_threads=1, progress=False)


def examined(instance: Instance) -> Found:
    setting = Setting.of(instance.X, instance.loss, (None, None, None), {}, {"n_threads": 1})
    path = path_of(setting, instance.most)
    selection = search(instance.X, instance.most, instance.loss)
    found = picks(Curves(selection, path, of_starts(setting, instance.most)))
    return Found(instance.name, instance.rank, detectable_rank(instance, path), found, selection.n_fits)


def side_by_side(task, arguments: Iterable) -> list:
    """In as many processes as there are cores, one thread each."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return joblib.Parallel(-1)(joblib.delayed(task)(argument) for argument in arguments)


def rate(found: Sequence[Found], rule: str, within: int = 0) -> str:
    return f"{np.mean([abs(one.misses(rule)) <= within for one in found]):.0%}"


def bias(found: Sequence[Found], rule: str) -> str:
    return f"{np.mean([one.misses(rule) for one in found]):+.1f}"


def planted_lines(every: Sequence[Found]) -> list[list]:
    """A line for each rule: exact, within 1 and mean error, where the planted rank can be seen."""
    seen = [one for one in every if one.detectable == one.rank]
    squares = [one for one in seen if one.suite == LEAST_SQUARES]
    counted = [one for one in seen if one.suite in COUNT_SUITES]
    lines = []
    for rule in RULES:
        pair = [f"{rate(some, rule)} / {rate(some, rule, 1)} / {bias(some, rule)}" for some in (squares, counted)]
        single = [rate([one for one in seen if one.suite == suite], rule) for suite in (OVERDISPERSED, NAMED)]
        lines.append([rule, *pair, *single])
    lines.append(["instances", *map(len, (squares, counted))])
    lines[-1] += [sum(one.suite == suite for one in seen) for suite in (OVERDISPERSED, NAMED)]
    lines.append(["asked", *ASKED.values()])
    return lines


def of_one(instance: Instance) -> tuple[str, bool]:
    return instance.name, search(instance.X, instance.most, instance.loss).rank == 1


def both_ways(instance: Instance) -> tuple[str, bool]:
    pair = [search(X, instance.most, instance.loss).rank for X in (instance.X, instance.X.T)]
    return instance.name, pair[0] == pair[1]


def shares(found: Sequence[tuple[str, bool]]) -> str:
    names = list(dict.fromkeys(name for name, _ in found))
    told = [f"{name}: {sum(yes for n, yes in found if n == name)}" for name in names]
    return f"{sum(yes for _, yes in found)} of {len(found)} ({', '.join(told)})"


def other_lines(every: Sequence[Found]) -> list[list]:
    """What else a search is held to."""
    seeds = range(N_SEEDS)
    nothing = side_by_side(of_one, [one for seed in seeds for one in structureless(seed)])
    pairs = side_by_side(both_ways, [one for seed in seeds for one in turned(seed)])
    fits = [one.n_fits for one in every if one.rank == MANY and one.picks["**select_rank**"] == MANY]
    return [
        ["no structure (columns shuffled; one part and noise): 1 part", shares(nothing), "22 of 24"],
        ["X and its transpose: the same number of parts", shares(pairs), "11 of 12"],
        [f"fits at {MANY} parts, mean and most", f"{np.mean(fits):.0f} and {max(fits):.0f}", "45"],
    ]


# -- what it costs -----------------------------------------------------------------------------------------


def news20_ratio() -> str:
    """The time of a whole search, KL, 1 to 30 parts, in plain fits at the rank it ends with."""
    X = counts("news20")
    pw.factorize(X[:500], 2, loss="kl", max_iter=2)  # compiled
    begun = time.perf_counter()
    found = pw.select_rank(X, 30, loss="kl", progress=False)
    middle = time.perf_counter()
    pw.factorize(X, found.rank, loss="kl", random_state=0)
    return f"{(middle - begun) / (time.perf_counter() - middle):.0f} ({found.rank} parts, {found.n_fits:.0f} fits)"


def cost_lines() -> list[list]:
    try:
        measured = news20_ratio()
    except Absent as error:
        return [["news20", str(error), "30"]]
    return [["news20, 18846 x 26214 counts: time of the search in plain fits", measured, "30"]]


# -- the page ----------------------------------------------------------------------------------------------

PLANTED = (
    "Planted numbers of parts, 4 and 8, three seeds, `random_state=0`: exact / within 1 / mean error, of the instances "
    "where the fit nearest to the noise-free matrix has as many parts as were planted. All rules have the same data, "
    "and fits of ours. With so few instances a few percent mean nothing."
)


def planted_table(every: Sequence[Found]) -> str:
    header = ["rule", "least squares", "all counts", "overdispersed counts", "topics and signatures"]
    return table(header, planted_lines(every))


def run() -> str:
    every = side_by_side(examined, (instance for _, _, instance in instances()))
    real = [rank_real.measured(row, X) for row, X in loaded(rank_real.ROWS)]
    return "\n\n".join(
        [
            machine(),
            PLANTED,
            planted_table(every),
            table(["what else", "measured", "asked"], [*other_lines(every), *cost_lines()]),
            rank_real.as_text(real),
        ]
    )
