"""All modes of a model in one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...data.names import Mode, factor_names
from ..forms import axis_of
from .base import BLUE, new_figure

if TYPE_CHECKING:
    from ..result import Result

MOST_BARS = 40  # of a mode; a curve has more points
MOST_LABELS, HEAVIEST = 16, 3  # of bars: all are named, or those that weigh most


def modes(result: Result):
    """All modes in one picture: a row for each component, with its share of the fit, and a column for each mode. The
    entries are drawn as curves over numbers, or as bars, with a largest one of 1. A matplotlib Figure.

    Examples
    --------
    >>> import partwise as pw
    >>> mixtures = pw.datasets.make_fluorescence(random_state=0).X
    >>> picture = pw.factorize(mixtures, 3, random_state=0).plot.modes()
    """
    named = result.modes or tuple(map(Mode, factor_names(len(result.factors))))
    rank, order = result.rank, len(named)
    fig = new_figure(0.4 + 3.2 * order, 0.5 + 1.1 * rank)
    axes = fig.subplots(rank, order, squeeze=False, sharex="col")
    for k, (row, share) in enumerate(zip(axes, result.shares, strict=True)):
        row[0].set_ylabel(f"part {k + 1}\n{share:.0%}", fontsize=8, rotation=0, ha="right", va="center")
        for ax, mode, A in zip(row, named, result.factors, strict=True):
            largest = float(np.abs(A[:, k]).max()) or 1.0
            draw_mode(ax, mode, A[:, k] / largest)
            ax.set_ylim(-1.05 if A.min() < 0 else 0, 1.05)
    for ax, mode in zip(axes[0], named, strict=True):
        ax.set_title(mode.name, fontsize=10, parse_math=False)
    return fig


def draw_mode(ax, mode: Mode, values: np.ndarray) -> None:
    """One column of a factor: a curve over labels that are numbers, or over many that are not known, bars over text."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=6)
    ax.set_yticks([])
    place = axis_of(mode.labels)
    if place is not None or mode.numeric or (mode.labels is None and values.size > MOST_BARS):
        ax.plot(range(values.size) if place is None else place, values, linewidth=1, color=BLUE)
        ax.margins(x=0)
        return
    ax.bar(range(values.size), values, color=BLUE, width=0.8 if values.size <= MOST_BARS else 1.0)
    if mode.labels is None:
        ax.xaxis.get_major_locator().set_params(integer=True)
        return
    if values.size <= MOST_LABELS:
        ax.set_xticks(range(values.size), [str(label)[:20] for label in mode.labels], rotation=90, parse_math=False)
        return
    ax.set_xticks([])
    top = np.argsort(-np.abs(values), kind="stable")[:HEAVIEST]
    text = "\n".join(str(mode.labels[i])[:20] for i in top if values[i])
    behind = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1}
    ax.text(1, 1, text, ha="right", va="top", fontsize=6, transform=ax.transAxes, bbox=behind, parse_math=False)
