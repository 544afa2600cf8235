"""The race on all rows: the table, and the picture of the curves."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from docs import pictures
from partwise import registry
from partwise.bench import ITERATIONS, NEAR, Contest, Heat, Side, machine, mean, partwise, race, reached, warm_up

from . import data, peers
from .pages import ROOT, table
from .rows import KL_ROWS, ROWS, Row

HEADER = [
    "data",
    "size",
    "rank",
    "asked",
    "**speed-up, exact**",
    "**speed-up, 0.1%**",
    "starts that got there",
    "final objective over scikit-learn's",
    "mu, 0.1%",
    "nn-fac, exact",
]
DRAWN = ["orl", "cbcl", "mnist, sparse", "news20, tf-idf", "tdt2, tf-idf", "k1b, tf-idf, L1"]
KL_HEADER = [
    "data",
    "size",
    "rank",
    "loss",
    "to the objective of",
    "asked",
    "**speed-up, exact**",
    "**speed-up, 0.1%**",
    "starts that got there",
    "objective reached over scikit-learn's",
    "solver taken by `auto`",
]


def run(names: list[str], starts: int, solver: str, with_peers: bool) -> str:
    """Least squares, against scikit-learn's coordinate descent."""
    lines, drawn = race_all("race", names, starts, solver, with_peers)
    if not names:
        draw({name: heat for name, heat in drawn.items() if name in DRAWN}, "docs/race.png")
    return f"{machine()}\n\n{table(HEADER, lines)}"


def run_kl(names: list[str], starts: int, solver: str) -> str:
    """Other losses, against scikit-learn's multiplicative updates."""
    lines, drawn = race_all("kl", names, starts, solver, with_peers=False)
    if not names:
        draw(drawn, "docs/race_kl.png")
    return f"{machine()}\n\n{table(KL_HEADER, lines)}"


def race_all(race_name: str, names: list[str], *settings, **options) -> tuple[list, dict[str, Heat]]:
    """The lines of a table, and the first heat of each row by its title.

    Every row has a process of its own: what one leaves behind in the memory of a process makes others faster, up to
    twice for scikit-learn.
    """
    lines, first = [], {}
    rows, _, header = RACES[race_name]
    for number, row in enumerate(rows):
        if names and not any(name in row.name for name in names):
            continue
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            written, heat = alone.submit(attend, race_name, number, *settings, **options).result()
        lines.append(written + [""] * (len(header) - len(written)))
        print(table(header, lines[-1:]).splitlines()[-1], flush=True)
        if heat is not None:
            first[title(row)] = heat
    return lines, first


def attend(race_name: str, number: int, starts: int, solver: str, with_peers: bool) -> tuple[list, Heat | None]:
    """One row: its line, and its first heat."""
    rows, write, _ = RACES[race_name]
    row = rows[number]
    try:
        contest = row.contest()
    except data.Absent as error:
        return [row.name, f"skipped: {error}"], None
    heats = compete(contest, starts, solver, peers.sides(contest) if with_peers else {})
    return write(row, contest, heats), heats[0]


def title(row: Row) -> str:
    """Of a panel in the picture."""
    loss = "" if row.loss in ("frobenius", "kl") else f", {row.loss}"
    return row.name + loss + (f", {row.iterations} iterations" if row.iterations != ITERATIONS else "")


def compete(contest: Contest, starts: int, solver: str, further: dict[str, Side]) -> list[Heat]:
    """All starts; the further sides run from the first one or two."""
    own = {"partwise": partial(partwise, solver=solver)}
    everyone = {**own, **further}
    warm_up(contest, everyone)
    return [race(contest, seed, everyone if seed < 2 else own) for seed in range(starts)]


def line(row: Row, contest: Contest, heats: list[Heat]) -> list:
    others = [ratios(heats, side, slack) for side, slack in (("mu", NEAR), ("nn-fac", 1.0))]
    known = (mean(ratio) if ratio else "" for ratio in others)
    return [row.name, contest.size, row.rank, *outcome(row, heats), *known]


def kl_line(row: Row, contest: Contest, heats: list[Heat]) -> list:
    chosen, _ = registry.choose(contest.problem.normalized(), "auto")
    name = next(name for name, make in registry.SOLVERS.items() if make() == chosen)
    goal = f"{row.iterations} iterations"
    loss = registry.resolve("loss", row.loss)
    return [row.name, contest.size, row.rank, loss, goal, *outcome(row, heats), f"`{name}`"]


RACES = {"race": (ROWS, line, HEADER), "kl": (KL_ROWS, kl_line, KL_HEADER)}


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
