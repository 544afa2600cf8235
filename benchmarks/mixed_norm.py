"""Sparsity budgets over groups of parts: a race of solvers, the parts of faces, and what the projection costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import partwise as pw
from docs import pictures
from partwise import structures as s
from partwise.bench import Curve, iterations, record
from partwise.data import as_data
from partwise.metrics import sparsity
from partwise.problem import Problem, pose
from partwise.solvers import ADMM, MixedNorm

from . import data
from .mixed_norm_peers import equal_start, hoyer, pairwise, single_columns
from .pages import ROOT
from .runs import Outcome, Table, Task, rows, values
from .scale import sized
from .semf import median_of

RANK, SEEDS = 25, sized(2, 1)
THREE = [5, 15, 5]
DIGITS = sized(5000, 300)
# data, groups, sparsities, seconds for each side
RACES = {
    "orl, mean sparsity 0.6": ("orl", [RANK], [0.6], sized(2, 0.5)),
    "orl, groups 5, 15, 5 at 0.2, 0.5, 0.8": ("orl", THREE, [0.2, 0.5, 0.8], sized(2, 0.5)),
    "cbcl, mean sparsity 0.6": ("cbcl", [RANK], [0.6], sized(2, 0.5)),
    "mnist (5000), mean sparsity 0.6": ("mnist", [RANK], [0.6], sized(2, 0.5)),
}
FIGURE = {
    "mean sparsity 0.4": ([RANK], [0.4]),
    "mean sparsity 0.6": ([RANK], [0.6]),
    "groups": (THREE, [0.2, 0.5, 0.8]),
}
WHEN = [0.1, 0.3, 1.0]  # of the time
COLOURS = ["#2b6cb0", "#c05621", "#718096", "#2f855a", "#9ae6b4", "#805ad5"]


def tables() -> list[Table]:
    title = (
        f"**Objective over that of `mixed_norm` at the same time**, geometric means over {SEEDS} starts, {RANK} parts, "
        "after 10%, 30% and all of the time. For `mixed_norm` the objective itself."
    )
    sizes = [(10304, 25), (2 * 10304, 25), (4 * 10304, 25), (10304, 50), (10304, 100)]
    kinds = itertools.product(sizes, ("standard_normal", "standard_exponential"))
    projections = [Task(f"{m} × {rank}, {kind}", partial(projection, m, rank, kind)) for (m, rank), kind in kinds]
    return [
        Table("projection", COSTS, projections, 2, "**What the exact projection costs**, five groups.", write_costs),
        Table("race", HEADER, [Task(name, partial(raced, name)) for name in RACES], 36, title, write_races),
        Table("faces", FACES, [Task("orl", faces)], 12, "**The parts of the picture.**"),
    ]


# -- the race ------------------------------------------------------------------------------------------


def sides(problem: Problem, X: np.ndarray) -> dict[str, Callable]:
    """Who races, in this order: name -> iterations from a start."""
    structure = problem.structures[1]
    groups, budgets = [np.array(group) for group in structure.members(RANK)], structure.totals

    def peer(function, **options):
        return lambda W, A: (partial(tuple, pair) for pair in function(X, W, A, groups, budgets, **options))

    return {
        "`mixed_norm`": lambda W, A: iterations(problem, (W, A), MixedNorm()),
        "Hoyer's projected gradient": peer(hoyer),
        "one part at a time, equal sparsity": peer(single_columns),
        "pairs, grid of 20": peer(pairwise, grid=20),
        "pairs, grid of 100": peer(pairwise, grid=100),
        "`admm`": lambda W, A: iterations(problem, (W, A), ADMM().variant(0, informed=False)),
    }


def images(name: str) -> np.ndarray:
    return data.images(name)[:DIGITS]


def start_of(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As in the paper: random codes, and parts that all have the sparsity of their group."""
    rng, structure = np.random.default_rng(seed), problem.structures[1]
    n, m = problem.data.shape
    groups = [np.array(group) for group in structure.members(RANK)]
    return rng.uniform(size=(n, RANK)), equal_start(m, structure.totals, groups, rng)


HEADER = ["data", "solver", "iterations", *(f"after {share:.0%}" for share in WHEN)]
HEADER += ["starts in which `mixed_norm` ended lower"]


def raced(title: str) -> dict:
    """The lines of a race, and its curves."""
    name, groups, sparsities, seconds = RACES[title]
    X = images(name)
    curves = [race(X, groups, sparsities, seconds, seed) for seed in range(SEEDS)]
    stored = [{side: asdict(curve) for side, curve in heat.items()} for heat in curves]
    return {"lines": told(title, curves, seconds), "curves": stored}


def write_races(outcomes: list[Outcome]) -> str:
    draw(
        {
            title: [{side: Curve(**curve) for side, curve in heat.items()} for heat in value["curves"]]
            for title, value in values(outcomes).items()
        }
    )
    return rows(HEADER, outcomes)


def race(X: np.ndarray, groups: list, sparsities: list, seconds: float, seed: int) -> dict[str, Curve]:
    """All sides from one start, in another order for another seed."""
    problem = pose(as_data(X), pw.losses.Frobenius(), (s.NonNegative(), s.GroupSparsity(groups, sparsities)), RANK)
    start, everyone = start_of(problem, seed), sides(problem, X)
    few = pose(as_data(X[:60]), problem.loss, (s.NonNegative(), s.GroupSparsity(groups, sparsities)), RANK)
    for steps in sides(few, X[:60]).values():  # compile
        record(steps(start[0][:60], start[1]), few, lambda spent, f, n: n >= 3)
    names = list(everyone)
    order = names[seed % len(names) :] + names[: seed % len(names)]
    curves = {name: record(everyone[name](*start), problem, lambda spent, f, n: spent > seconds) for name in order}
    return {name: curves[name] for name in names}


def at(curve: Curve, when: float) -> float:
    """The lowest objective until then."""
    return min(
        (f for t, f in zip(curve.times, curve.objectives, strict=True) if t <= when), default=curve.objectives[0]
    )


def told(title: str, curves: list[dict[str, Curve]], seconds: float) -> list[list]:
    lines, ours = [], [heat["`mixed_norm`"] for heat in curves]
    for name in curves[0]:
        theirs = [heat[name] for heat in curves]
        values = []
        for share in WHEN:
            pairs = [
                (at(mine, share * seconds), at(other, share * seconds))
                for mine, other in zip(ours, theirs, strict=True)
            ]
            own = name == "`mixed_norm`"
            values.append(f"{np.mean([p[0] for p in pairs]):.0f}" if own else f"{geometric(pairs):.3f}")
        lower = sum(at(mine, seconds) < at(other, seconds) for mine, other in zip(ours, theirs, strict=True))
        wins = "" if name == "`mixed_norm`" else f"{lower} of {len(ours)}"
        steps = round(np.mean([len(curve.times) for curve in theirs]))
        lines.append([title if name == "`mixed_norm`" else "", name, steps, *values, wins])
    return lines


def geometric(pairs: list[tuple[float, float]]) -> float:
    return float(np.exp(np.mean([np.log(other / mine) for mine, other in pairs])))


def draw(drawn: dict[str, list[dict[str, Curve]]]) -> None:
    """Means over the starts, above the best that any side saw from any of them."""
    if not drawn:
        return
    figure, axes = plt.subplots(1, len(drawn), figsize=(4.2 * len(drawn), 3.6), squeeze=False)
    for axis, (title, heats) in zip(axes[0], drawn.items(), strict=True):
        seconds = RACES[title][3]
        times = np.geomspace(seconds / 60, seconds, 40)
        best = min(at(curve, seconds) for heat in heats for curve in heat.values())
        for name, colour in zip(heats[0], COLOURS, strict=True):
            mean = [np.mean([at(heat[name], t) for heat in heats]) for t in times]
            axis.loglog(times, np.maximum(np.array(mean) / best - 1, 1e-4), color=colour, label=name.strip("`"), lw=1.8)
        axis.set(title=title, xlabel="seconds")
        axis.title.set_fontsize(9)
    axes[0, 0].set_ylabel("objective above the best seen")
    axes[0, -1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "mixed_norm_race.png", dpi=110)
    pictures.stamp("mixed_norm_race.png")
    plt.close(figure)


# -- the parts of faces --------------------------------------------------------------------------------


FACES = ["faces", "relative error", "iterations", "status", "parts", "mean sparsity asked for", "of the parts"]
FACES += ["mean off by"]


def faces() -> list[list]:
    """The lines, and the picture."""
    X, shown, lines = data.images("orl"), {}, []
    for name, (groups, sparsities) in FIGURE.items():
        settings = {"structure_H": s.GroupSparsity(groups, sparsities), "random_state": 0} | sized({}, {"max_iter": 3})
        result = pw.factorize(X, RANK, **settings)
        ends, found = np.cumsum([0, *groups]), sparsity(result.H)
        shown[name] = result.H, [found[a:b] for a, b in itertools.pairwise(ends)]
        for number, (wanted, own) in enumerate(zip(sparsities, shown[name][1], strict=True)):
            spread = f"{own.min():.2f} to {own.max():.2f}"
            off = abs(own.mean() - wanted)
            first = [name, f"{result.relative_error:.4f}", result.n_iter, result.status] if number == 0 else [""] * 4
            lines.append([*first, len(own), wanted, spread, f"{off:.0e}"])
    draw_faces(shown)
    return lines


def draw_faces(shown: dict) -> None:
    """As Figure 1 of the paper, and below it the sparsity of every part."""
    figure = Figure(figsize=(12, 6.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[4, 1.3])
    for block, (name, (H, _)) in zip(above.subfigures(1, len(shown), wspace=0.05), shown.items(), strict=True):
        block.suptitle("5 parts at 0.2, 15 at 0.5, 5 at 0.8" if name == "groups" else name, fontsize=10)
        for part, ax in zip(H, block.subplots(5, 5).ravel(), strict=True):
            ax.imshow(part.reshape(112, 92), cmap="gray_r", vmin=0)
            ax.axis("off")
    for ax, (_, (_, groups)) in zip(below.subplots(1, len(shown)), shown.items(), strict=True):
        for colour, own in zip(COLOURS, groups, strict=False):
            ax.vlines(own, 0, 1, color=colour, lw=2)
            ax.plot(own.mean(), 1.15, "v", color=colour)
        ax.set(xlim=(0, 1), ylim=(0, 1.4), yticks=[], xlabel="sparsity of each part; triangles: means of the groups")
        ax.spines[["top", "left", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs" / "mixed_norm.png", dpi=110)
    pictures.stamp("mixed_norm.png")


# -- the projection ------------------------------------------------------------------------------------


COSTS = ["factor", "entries", "projection", "over the cross product of orl", "time for an entry, relative"]


def projection(m: int, rank: int, kind: str) -> dict:
    """Its time in units of the product with the faces that an update needs; seconds for each entry."""
    rng = np.random.default_rng(0)
    A = getattr(rng, kind)((m, rank))
    bound = s.GroupSparsity([rank // 5] * 5, [0.3, 0.4, 0.5, 0.6, 0.7]).bind(A.shape, False, "H")
    bound.prox(A, 0.0)
    spent = median_of(partial(bound.prox, A, 0.0), 30)
    known = f"{1e3 * spent:.2f} ms", f"{spent / product_time(rng):.2f}"
    return {"lines": [[f"{m} × {rank}", kind.removeprefix("standard_"), *known]], "entry": spent / A.size}


def write_costs(outcomes: list[Outcome]) -> str:
    """With the time for an entry in units of that in the first row."""
    entries = {name: value["entry"] for name, value in values(outcomes).items()}
    unit = next(iter(entries.values()), np.nan)
    finished = [
        one if one.failure else one._replace(value=[[*one.value["lines"][0], f"{entries[one.name] / unit:.2f}"]])
        for one in outcomes
    ]
    return rows(COSTS, finished)


def product_time(rng) -> float:
    """Of `X' W` for 400 faces of 10304 pixels and 25 parts, as solvers do it."""
    problem = pose(as_data(rng.uniform(size=(400, 10304))), pw.losses.Frobenius(), (s.NonNegative(),) * 2, RANK)
    factors = rng.uniform(size=(400, RANK)), rng.uniform(size=(10304, RANK))
    with problem.data.working():
        return median_of(partial(problem.data.cross, factors, 1), 30)
