"""The races: who gets to scikit-learn's objective first, the table and the picture of the curves."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from itertools import islice

import numpy as np
from sklearn.utils import check_random_state

from docs import pictures
from partwise.bench import NEAR, Contest, Curve, Heat, Side, mean, partwise, race, reached, warm_up
from partwise.init import Random
from partwise.registry import choose
from partwise.run.course import starting_on

from . import peers
from .growth import per_iteration
from .pages import ROOT
from .rows import ROWS, TEXTS, Row
from .runs import Outcome, Table, Task, rows, values
from .scale import sized

HEADER = [
    "data",
    "size",
    "rank",
    "iterations of scikit-learn",
    "asked",
    "**speed-up, exact**",
    "**speed-up, 0.1%**",
    "starts that got there",
    "final objective over scikit-learn's",
    "ms an iteration",
    "over its two products (asked 1.5)",
    "mu, 0.1%",
    "nn-fac, exact",
]
DRAWN = ["orl", "cbcl", "mnist, sparse", "news20, tf-idf", "tdt2, tf-idf", "k1b, tf-idf, L1"]


def tables() -> list[Table]:
    tasks = [Task(row.title, partial(attend, row)) for row in ROWS]
    return [Table("least squares", HEADER, tasks, 18, write=written)]


def attend(row: Row) -> dict:
    """One row: its line, its first heat, and the speed-up that it is judged by."""
    contest = row.contest()
    heats = compete(contest, row, peers.sides(contest) if row.peers else {})
    judged = ratios(heats, "partwise", 1.0 if row.judged == "exact" else NEAR)
    return {"lines": [line(row, contest, heats)], "heat": asdict(heats[0]), "judged": judged}


def written(outcomes: list[Outcome]) -> str:
    """The table, the mean over texts, and the picture."""
    found = values(outcomes)
    of_texts = [
        value["judged"]
        for name, value in found.items()
        if any(name.startswith(f"{text}, ") for text in TEXTS)
    ]  # fmt: skip
    draw(panels({row.name: found[row.title]["heat"] for row in drawn(found)}), "docs/race.png")
    told = mean([ratio for some in of_texts for ratio in some]) if of_texts else "no data"
    over = f"Geometric mean over the starts of {len(of_texts)} rows of texts, one or two each"
    return f"{rows(HEADER, outcomes)}\n\n{over}: {told} (asked: 5)."


def drawn(found: dict) -> list[Row]:
    """One row for each panel of the picture."""
    first = {row.name: row for row in reversed(ROWS) if row.name in DRAWN and row.title in found}
    return [first[name] for name in DRAWN if name in first]


def panels(stored: dict[str, dict]) -> dict[str, Heat]:
    """Heats out of JSON, by their titles: as many as fill the rows of a picture."""
    heats = {
        name: Heat(heat["target"], {side: Curve(**curve) for side, curve in heat["curves"].items()})
        for name, heat in stored.items()
    }
    return dict(islice(heats.items(), len(heats) - len(heats) % 3 if len(heats) > 3 else None))


def compete(contest: Contest, row: Row, further: dict[str, Side]) -> list[Heat]:
    """All starts; the further sides run from the first one."""
    own: dict[str, Side] = {"partwise": partwise}
    everyone = {**own, **further}
    warm_up(contest, everyone)
    starts = sized(row.starts, 1)
    return [race(contest, seed, everyone if seed == 0 else own) for seed in range(starts)]


def line(row: Row, contest: Contest, heats: list[Heat]) -> list:
    others = [ratios(heats, side, slack) for side, slack in (("mu", NEAR), ("nn-fac", 1.0))]
    known = (mean(ratio) if ratio else "" for ratio in others)
    goal = "" if row.target else contest.iterations
    an_iteration, its_products = per_iteration(partwise, contest), products(contest)
    cost = f"{1e3 * an_iteration:.1f}", f"{an_iteration / its_products:.1f}"
    return [row.name, contest.size, contest.rank, goal, *outcome(row, heats), *cost, *known]


def products(contest: Contest, repeats: int = 8) -> float:
    """Seconds of `X H` and `X' W`, as solvers compute them at first: the median."""
    posed = contest.problem.normalized()
    problem = starting_on(posed, choose(posed, "auto")[0], Random())
    factors, times = problem.from_user(Random()(contest.problem, check_random_state(0))), []
    with problem.data.working():
        for _ in range(repeats + 2):
            start = time.perf_counter()
            for mode in (0, 1):
                problem.data.cross(factors, mode)
            times.append(time.perf_counter() - start)
    return float(np.median(times[2:]))


def ratios(heats: list[Heat], side: str, slack: float) -> list[float | None]:
    return [heat.speed_up(side, slack) for heat in heats if side in heat.curves]


def outcome(row: Row, heats: list[Heat]) -> list[str]:
    """What was asked, the speed-ups, how many starts got there, and the final objectives."""
    exact, near = ratios(heats, "partwise", 1.0), ratios(heats, "partwise", NEAR)
    finals = [heat.final("partwise") for heat in heats]
    return [
        f"{row.asked:g} ({row.judged})",
        mean(exact),
        mean(near),
        f"{reached(exact)} and {reached(near)} of {len(heats)}",
        f"{np.exp(np.mean(np.log(finals))):.4f}",
    ]


def draw(heats: dict[str, Heat], picture: str) -> None:
    """Objective above the best seen, against time, one panel a data set."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  # only where pictures are made

    colours = {"partwise": "#c2410c", "scikit-learn": "#1d4ed8", "mu": "#94a3b8", "nn-fac": "#15803d"}
    if not heats:
        return
    columns = min(3, len(heats))
    height = -(-len(heats) // columns)
    figure, axes = plt.subplots(height, columns, figsize=(4.2 * columns, 3.2 * height), squeeze=False)
    for axis, (name, heat) in zip(axes.flat, heats.items(), strict=True):
        best = min(min(curve.objectives) for curve in heat.curves.values())
        for side, curve in heat.curves.items():
            above = np.array(curve.objectives) / best - 1
            axis.loglog(curve.times, np.maximum(above, 1e-6), color=colours[side], label=side, lw=1.8)
        axis.axhline(max(heat.target / best - 1, 1e-6), color="black", lw=0.7, ls=":")
        axis.set(title=name, xlabel="seconds", ylim=(1e-5, None))
    for axis in axes.flat[len(heats) :]:
        axis.set_axis_off()
    axes[0, 0].set_ylabel("objective above the best seen")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(ROOT / picture, dpi=110)
    pictures.stamp(picture.removeprefix("docs/"))
    plt.close(figure)
