"""Sparsity budgets over groups of parts: a race of solvers, the parts of faces, and what the projection costs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import partwise as pw
from docs import pictures
from partwise import structures as s
from partwise.bench import Curve, iterations, machine, record
from partwise.data import as_data
from partwise.metrics import sparsity
from partwise.problem import Problem, pose
from partwise.solvers import ADMM, MixedNorm

from . import data
from .mixed_norm_peers import equal_start, hoyer, pairwise, single_columns
from .pages import ROOT, table
from .semf import median_of

RANK, SEEDS = 25, 3
THREE = [5, 15, 5]
DIGITS = 5000
# data, groups, sparsities, seconds for each side
RACES = {
    "orl, mean sparsity 0.6": ("orl", [RANK], [0.6], 15),
    "orl, groups 5, 15, 5 at 0.2, 0.5, 0.8": ("orl", THREE, [0.2, 0.5, 0.8], 15),
    "cbcl, mean sparsity 0.6": ("cbcl", [RANK], [0.6], 6),
    "mnist (5000), mean sparsity 0.6": ("mnist", [RANK], [0.6], 10),
}
FIGURE = {
    "mean sparsity 0.4": ([RANK], [0.4]),
    "mean sparsity 0.6": ([RANK], [0.6]),
    "groups": (THREE, [0.2, 0.5, 0.8]),
}
WHEN = [0.1, 0.3, 1.0]  # of the time
COLOURS = ["#2b6cb0", "#c05621", "#718096", "#2f855a", "#9ae6b4", "#805ad5"]


def run() -> str:
    warnings.simplefilter("ignore")
    blocks = [costs(), races(), faces()]
    return f"{machine()}\n\n" + "\n\n".join(blocks)


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


def races() -> str:
    lines, drawn = [], {}
    for title, (name, groups, sparsities, seconds) in RACES.items():
        try:
            X = images(name)
        except data.Absent as error:
            print(error)
            continue
        curves = [race(X, groups, sparsities, seconds, seed) for seed in range(SEEDS)]
        drawn[title] = curves
        lines += told(title, curves, seconds)
        print("\n".join(map(str, lines[-len(curves[0]) :])), flush=True)
    draw(drawn)
    times = [f"after {share:.0%}" for share in WHEN]
    header = ["data", "solver", "iterations", *times, "starts in which `mixed_norm` ended lower"]
    title = (
        f"**Objective over that of `mixed_norm` at the same time**, geometric means over {SEEDS} starts, {RANK} parts, "
        "after 10%, 30% and all of the time. For `mixed_norm` the objective itself."
    )
    return f"{title}\n\n" + table(header, lines)


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


def faces() -> str:
    try:
        X = data.images("orl")
    except data.Absent as error:
        return f"ORL faces: {error}."
    shown, lines = {}, []
    for name, (groups, sparsities) in FIGURE.items():
        result = pw.factorize(X, RANK, structure_H=s.GroupSparsity(groups, sparsities), random_state=0)
        ends, found = np.cumsum([0, *groups]), sparsity(result.H)
        shown[name] = result.H, [found[a:b] for a, b in itertools.pairwise(ends)]
        for number, (wanted, own) in enumerate(zip(sparsities, shown[name][1], strict=True)):
            spread = f"{own.min():.2f} to {own.max():.2f}"
            off = abs(own.mean() - wanted)
            first = [name, f"{result.relative_error:.4f}", result.n_iter, result.status] if number == 0 else [""] * 4
            lines.append([*first, len(own), wanted, spread, f"{off:.0e}"])
    draw_faces(shown)
    run = ["faces", "relative error", "iterations", "status"]
    header = [*run, "parts", "mean sparsity asked for", "of the parts", "mean off by"]
    return "**The parts of the picture.**\n\n" + table(header, lines)


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
        for colour, own in zip(COLOURS, groups, strict=True):
            ax.vlines(own, 0, 1, color=colour, lw=2)
            ax.plot(own.mean(), 1.15, "v", color=colour)
        ax.set(xlim=(0, 1), ylim=(0, 1.4), yticks=[], xlabel="sparsity of each part; triangles: means of the groups")
        ax.spines[["top", "left", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs" / "mixed_norm.png", dpi=110)
    pictures.stamp("mixed_norm.png")


# -- the projection ------------------------------------------------------------------------------------


def costs() -> str:
    """Of the projection, in units of the product with the faces that an update needs, and as it grows."""
    rng, lines, unit = np.random.default_rng(0), [], None
    for m, rank in ((10304, 25), (2 * 10304, 25), (4 * 10304, 25), (10304, 50), (10304, 100)):
        for kind in ("standard_normal", "standard_exponential"):
            A = getattr(rng, kind)((m, rank))
            bound = s.GroupSparsity([rank // 5] * 5, [0.3, 0.4, 0.5, 0.6, 0.7]).bind(A.shape, False, "H")
            bound.prox(A, 0.0)
            spent = median_of(partial(bound.prox, A, 0.0), 30)
            unit = unit or spent / A.size
            known = f"{1e3 * spent:.2f} ms", f"{spent / product_time(rng):.2f}", f"{spent / A.size / unit:.2f}"
            lines.append([f"{m} × {rank}", kind.removeprefix("standard_"), *known])
    header = ["factor", "entries", "projection", "over the cross product of orl", "time for an entry, relative"]
    return "**What the exact projection costs**, five groups.\n\n" + table(header, lines)


def product_time(rng) -> float:
    """Of `X' W` for 400 faces of 10304 pixels and 25 parts, as solvers do it."""
    problem = pose(as_data(rng.uniform(size=(400, 10304))), pw.losses.Frobenius(), (s.NonNegative(),) * 2, RANK)
    factors = rng.uniform(size=(400, RANK)), rng.uniform(size=(10304, RANK))
    with problem.data.working():
        return median_of(partial(problem.data.cross, factors, 1), 30)
