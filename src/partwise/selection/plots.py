"""Pictures of how many parts predict, and how they come again, with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..result.plots.base import new_figure
from . import connectivity
from .rule import STABLE

if TYPE_CHECKING:
    from .selected import RankSelection
    from .stability import Stability

MOST_NUMBERED = 30  # bars that each have a number below


def curve(selection: RankSelection):
    """The held-out loss by rank: repeats thin, their mean thick, the window shaded; below it the loss of what was
    fitted, which always falls. A matplotlib Figure."""
    fig = new_figure(6.4, 3.4)
    ax, ranks = fig.subplots(), selection.ranks
    ax.plot(ranks, selection.curves.T, color="#90cdf4", linewidth=0.8)
    mean = [row.held_out for row in selection.table]
    ax.plot(ranks, mean, color="#2b6cb0", marker="o", markersize=4, linewidth=2, label="left out")
    ax.plot(ranks, [row.training for row in selection.table], color="#a0aec0", linestyle="--", label="fitted")
    low, best = selection.window[0], selection.best
    ax.axvspan(low - 0.4, best + 0.4, color="#2b6cb0", alpha=0.1, linewidth=0, label="window")
    if selection.picked is not None:
        ax.axvline(selection.picked, color="#c05621", linewidth=1.2, label=f"picked: {selection.picked}")
    ax.set(xlabel="parts", ylabel=f"{selection.loss}, mean of an entry", xlim=(min(ranks) - 0.6, max(ranks) + 0.6))
    ax.legend(frameon=False, fontsize=8)
    tidy(ax)
    return fig


def stability(selection: RankSelection):
    """Silhouettes of the parts of random starts, by rank: the mean of all parts, and the weakest. A matplotlib
    Figure."""
    rows = [row for row in selection.table if row.weakest == row.weakest]
    if not rows:
        raise ValueError("no parts of random starts were compared: there is one part, or the search was interrupted")
    fig = new_figure(4.6, 3.0)
    ax = fig.subplots()
    style = {"marker": "o", "markersize": 5}
    ax.plot([r.rank for r in rows], [r.stability for r in rows], color="#90cdf4", label="mean of the parts", **style)
    ax.plot([r.rank for r in rows], [r.weakest for r in rows], color="#2b6cb0", label="weakest part", **style)
    ax.axhline(STABLE, color="#c05621", linewidth=1, linestyle="--", label=f"come again: {STABLE}")
    ax.set(xlabel="parts", ylabel="silhouette", ylim=(min(0, *(r.weakest for r in rows)) - 0.05, 1.05))
    ax.set_xlim(rows[0].rank - 0.6, rows[-1].rank + 0.6)
    ax.legend(frameon=False, fontsize=8)
    tidy(ax)
    return fig


def tidy(ax) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)  # one rank is one tick


def parts(stability: Stability):
    """One bar a part: its share, coloured by how often it came again. A matplotlib Figure."""
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415  # optional
    from matplotlib.colors import Normalize  # noqa: PLC0415

    fig = new_figure(max(4.0, 1.8 + 0.32 * stability.rank), 2.7)
    ax = fig.subplots()
    colours = ScalarMappable(Normalize(0, stability.n_runs), "RdYlBu")
    ax.bar(
        range(1, stability.rank + 1),
        [part.share for part in stability.parts],
        color=colours.to_rgba(np.array(stability.found)),
    )
    ax.set(xlabel="part", ylabel="share")
    tidy(ax)
    if stability.rank <= MOST_NUMBERED:
        ax.set_xticks(range(1, stability.rank + 1))
    bar = fig.colorbar(colours, ax=ax)
    bar.set_label(f"runs of {stability.n_runs} that found it", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    bar.ax.yaxis.get_major_locator().set_params(integer=True)
    return fig


def consensus(stability: Stability):
    """The consensus matrix of the samples, ordered so that groups are blocks. A matplotlib Figure."""
    matrix = stability.connectivity
    order = connectivity.leaves(matrix)
    fig = new_figure(4.2, 3.6)
    ax = fig.subplots()
    image = ax.imshow(matrix[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
    ax.set(xticks=[], yticks=[], xlabel=f"{len(matrix)} samples, ordered", title="share of runs that put two together")
    ax.title.set_fontsize(10)
    fig.colorbar(image, ax=ax).ax.tick_params(labelsize=8)
    return fig


@dataclass(frozen=True)
class StabilityPlots:
    """These functions on one `Stability`."""

    stability: Stability

    def parts(self):
        return parts(self.stability)

    def consensus(self):
        return consensus(self.stability)
