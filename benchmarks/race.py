"""The race on all rows: the table, and the picture of the curves."""

from __future__ import annotations

from functools import partial

import numpy as np

from partwise.bench import NEAR, Contest, Heat, machine, mean, partwise, race, reached, warm_up

from . import data, peers
from .pages import ROOT, table
from .rows import ROWS, Row

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
PICTURE = "docs/race.png"
DRAWN = ["orl", "cbcl", "mnist, sparse", "news20, tf-idf", "tdt2, tf-idf", "k1b, tf-idf, L1"]


def run(names: list[str], starts: int, solver: str, with_peers: bool) -> str:
    lines, drawn = [], {}
    for row in ROWS:
        if names and not any(name in row.name for name in names):
            continue
        try:
            contest = row.contest()
        except data.Absent as error:
            lines.append([row.name, f"skipped: {error}", *[""] * (len(HEADER) - 2)])
            continue
        heats = compete(contest, starts, solver, with_peers)
        lines.append(line(row, contest, heats))
        print(table(HEADER, lines[-1:]).splitlines()[-1], flush=True)
        if row.name in DRAWN:
            drawn[row.name] = heats[0]
    if drawn:
        draw(drawn)
    return f"{machine()}\n\n{table(HEADER, lines)}"


def compete(contest: Contest, starts: int, solver: str, with_peers: bool) -> list[Heat]:
    """All starts; the further sides run from the first one or two."""
    own = {"partwise": partial(partwise, solver=solver)}
    everyone = {**own, **(peers.sides(contest) if with_peers else {})}
    warm_up(contest, everyone)
    return [race(contest, seed, everyone if seed < 2 else own) for seed in range(starts)]


def line(row: Row, contest: Contest, heats: list[Heat]) -> list:
    def ratios(side, slack):
        return [heat.speed_up(side, slack) for heat in heats if side in heat.curves]

    exact, near = ratios("partwise", 1.0), ratios("partwise", NEAR)
    finals = [heat.final("partwise") for heat in heats]
    others = [ratios(side, slack) for side, slack in (("mu", NEAR), ("nn-fac", 1.0))]
    return [
        row.name,
        contest.size,
        row.rank,
        f"{row.asked:g} ({row.judged})",
        mean(exact),
        mean(near),
        f"{reached(exact)} and {reached(near)} of {len(heats)}",
        f"{np.exp(np.mean(np.log(finals))):.4f}",
        *(mean(known) if known else "" for known in others),
    ]


def draw(heats: dict[str, Heat]) -> None:
    """Objective above the best seen, against time, one panel a data set."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  # only where pictures are made

    colours = {"partwise": "#c2410c", "scikit-learn": "#1d4ed8", "mu": "#94a3b8", "nn-fac": "#15803d"}
    columns = min(3, len(heats))
    height = -(-len(heats) // columns)
    figure, axes = plt.subplots(height, columns, figsize=(4.2 * columns, 3.2 * height), squeeze=False)
    for axis, (name, heat) in zip(axes.flat, heats.items()):
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
    figure.savefig(ROOT / PICTURE, dpi=110)
    plt.close(figure)
