"""Pictures of how parts come again, with matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..result.plots import figures
from . import connectivity

if TYPE_CHECKING:
    from .stability import Stability

MOST_NUMBERED = 30  # bars that each have a number below


def parts(stability: Stability):
    """One bar a part: its share, coloured by how often it came again. A matplotlib Figure."""
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415  # optional
    from matplotlib.colors import Normalize  # noqa: PLC0415

    fig = figures().Figure(figsize=(max(4.0, 1.8 + 0.32 * stability.rank), 2.7), layout="constrained")
    ax = fig.subplots()
    colours = ScalarMappable(Normalize(0, stability.n_runs), "RdYlBu")
    ax.bar(
        range(stability.rank),
        [part.share for part in stability.parts],
        color=colours.to_rgba(np.array(stability.found)),
    )
    ax.set(xlabel="part", ylabel="share")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.xaxis.get_major_locator().set_params(integer=True)
    if stability.rank <= MOST_NUMBERED:
        ax.set_xticks(range(stability.rank))
    bar = fig.colorbar(colours, ax=ax)
    bar.set_label(f"runs of {stability.n_runs} that found it", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    bar.ax.yaxis.get_major_locator().set_params(integer=True)
    return fig


def consensus(stability: Stability):
    """The consensus matrix of the samples, ordered so that groups are blocks. A matplotlib Figure."""
    matrix = stability.connectivity
    order = connectivity.leaves(matrix)
    fig = figures().Figure(figsize=(4.2, 3.6), layout="constrained")
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
