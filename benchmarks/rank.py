"""How many parts: planted numbers found again, beside other rules on the same data; data sets with a known number; and
what a search costs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import joblib
import numpy as np

import partwise as pw
from partwise.selection.setting import Setting, silence

from . import rank_real
from .data import counts
from .pages import table
from .rank_planted import (
    COUNTS,
    LEAST_SQUARES,
    N_SEEDS,
    NAMED,
    OVERDISPERSED,
    SEEDS,
    Instance,
    detectable_rank,
    instances,
    path_of,
    structureless,
    turned,
)
from .rank_rules import RULES, Curves, of_starts, picks
from .runs import Outcome, Table, Task, failures, values
from .scale import sized

ASKED = {LEAST_SQUARES: "86 / 97%", COUNTS: "93 / 98%", OVERDISPERSED: "80%", NAMED: "95%"}
COUNT_SUITES = (COUNTS, OVERDISPERSED, NAMED)  # "counts" of the first table are all of these
MANY = 8  # parts, of the instances whose fits are counted
SUITES = tuple(ASKED)
COST = "news20"
EVERY, MOST = sized((8, 30), (100, 3))  # documents of news20, and the most parts tried


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
    return f"{np.mean([abs(one.misses(rule)) <= within for one in found]):.0%}" if found else "no data"


def bias(found: Sequence[Found], rule: str) -> str:
    return f"{np.mean([one.misses(rule) for one in found]):+.1f}" if found else ""


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


def suite(name: str) -> list[Found]:
    """All instances of a suite."""
    return side_by_side(examined, (one for _, _, one in instances() if one.name == name))


def of_one(instance: Instance) -> tuple[str, bool]:
    return instance.name, search(instance.X, instance.most, instance.loss).rank == 1


def both_ways(instance: Instance) -> tuple[str, bool]:
    pair = [search(X, instance.most, instance.loss).rank for X in (instance.X, instance.X.T)]
    return instance.name, pair[0] == pair[1]


def shares(found: Sequence[tuple[str, bool]]) -> str:
    names = list(dict.fromkeys(name for name, _ in found))
    told = [f"{name}: {sum(yes for n, yes in found if n == name)}" for name in names]
    return f"{sum(yes for _, yes in found)} of {len(found)} ({', '.join(told)})"


NOTHING, PAIRS = "no structure", "transposed"


def nothing() -> list:
    return side_by_side(of_one, [one for seed in range(N_SEEDS) for one in structureless(seed)])


def pairs() -> list:
    return side_by_side(both_ways, [one for seed in range(N_SEEDS) for one in turned(seed)])


def share_of(known: dict, name: str, asked: float) -> list[str]:
    """How many, and how many were asked for."""
    found = known.get(name, [])
    return [shares(found), f"{round(asked * len(found))} of {len(found)}"] if found else ["failed", ""]


def other_lines(every: Sequence[Found], known: dict) -> list[list]:
    """What else a search is held to."""
    fits = [one.n_fits for one in every if one.rank == MANY and one.picks["**select_rank**"] == MANY] or [np.nan]
    return [
        ["no structure (columns shuffled; one part and noise): 1 part", *share_of(known, NOTHING, 22 / 24)],
        ["X and its transpose: the same number of parts", *share_of(known, PAIRS, 11 / 12)],
        [f"fits at {MANY} parts, mean and most", f"{np.mean(fits):.0f} and {max(fits):.0f}", "45"],
    ]


# -- what it costs -----------------------------------------------------------------------------------------


def news20_ratio() -> str:
    """The time of a whole search, KL, 1 to 30 parts, in plain fits at the rank it ends with."""
    X = counts("news20")[::EVERY]
    X = X[:, np.flatnonzero(X.sum(axis=0) > 0)]
    pw.factorize(X[:500], 2, loss="kl", max_iter=2)  # compiled
    begun = time.perf_counter()
    found = pw.select_rank(X, MOST, loss="kl", progress=False)
    middle = time.perf_counter()
    pw.factorize(X, found.rank, loss="kl", random_state=0)
    ratio = (middle - begun) / (time.perf_counter() - middle)
    return f"{ratio:.0f} ({found.rank} parts, {found.n_fits:.0f} fits, {X.shape[0]} × {X.shape[1]})"


# -- the page ----------------------------------------------------------------------------------------------

PLANTED = (
    f"Planted numbers of parts, 4 and 8, {len(SEEDS)} seeds, `random_state=0`: exact / within 1 / mean error, of the "
    "instances where the fit nearest to the noise-free matrix has as many parts as were planted. All rules have the "
    "same data, and fits of ours. With so few instances a few percent mean nothing."
)


def written(outcomes: list[Outcome]) -> str:
    """Both tables of planted data."""
    known = values(outcomes)
    every = [Found(*one) for name in SUITES for one in known.get(name, [])]
    header = ["rule", "least squares", "all counts", "overdispersed counts", "topics and signatures"]
    ratio = known.get(COST, next(outcome.failure for outcome in outcomes if outcome.name == COST))
    cost = [f"news20, counts, every {EVERY}th document: time of the search in plain fits", ratio, "30"]
    others = table(["what else", "measured", "asked"], [*other_lines(every, known), cost])
    return f"{table(header, planted_lines(every))}\n\n{others}" + failures(outcomes)


def tables() -> list[Table]:
    planted = [Task(name, partial(suite, name)) for name in SUITES]
    planted += [Task(NOTHING, nothing), Task(PAIRS, pairs), Task(COST, news20_ratio)]
    return [Table("planted", [], planted, 25, PLANTED, written), rank_real.known_table()]
