"""Pictures of a result, with matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..checks import is_positive_int
from ..data.names import Mode, factor_names, matrix_only

if TYPE_CHECKING:
    from .result import Result

FEW = 20  # lines of a history that are drawn as points too
MOST_BARS = 40  # of a mode; a curve has more points
MOST_LABELS, HEAVIEST = 16, 3  # of bars: all are named, or those that weigh most


def figures():
    """`matplotlib.figure`, or the line that installs it. Figures are made without pyplot, so no window opens."""
    try:
        from matplotlib import figure  # noqa: PLC0415  # optional
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'partwise[report]'") from error
    return figure


def parts(result: Result, image_shape: tuple[int, int] | None = None, columns: int | None = None):
    """Every part as an image of `image_shape`, or as a curve over the features. A matplotlib Figure."""
    if why := matrix_only("plot.parts", len(result.factors)):
        raise ValueError(f"{why}: use plot.modes()")
    H = result.H
    check_image_shape(image_shape, H.shape[1])
    check_columns(columns)
    columns = columns or (math.ceil(math.sqrt(1.6 * len(H))) if image_shape else min(3, len(H)))
    rows = math.ceil(len(H) / columns)
    size = (1.25 * columns, 1.4 * rows) if image_shape else (3.6 * columns, 1.5 * rows)
    fig = figures().Figure(figsize=size, layout="constrained")
    for k, ax in enumerate(np.ravel(fig.subplots(rows, columns, squeeze=False))):
        if k >= len(H):
            ax.axis("off")
            continue
        ax.set_title(str(k), fontsize=8, pad=2)
        if image_shape:
            largest = np.abs(H[k]).max() or 1.0
            colours = {"cmap": "gray_r", "vmin": 0} if H.min() >= 0 else {"cmap": "RdBu_r", "vmin": -largest}
            ax.imshow(H[k].reshape(image_shape), vmax=largest, **colours)
            ax.set_xticks([])
            ax.set_yticks([])
        else:
            ax.plot(H[k], linewidth=0.8, color="#2b6cb0")
            ax.tick_params(labelsize=6)
            ax.margins(x=0)
    return fig


def modes(result: Result):
    """All modes in one picture: a row for each component, with its share of the fit, and a column for each mode. The
    entries are drawn as curves over numbers, or as bars, with a largest one of 1. A matplotlib Figure."""
    named = result.modes or tuple(map(Mode, factor_names(len(result.factors))))
    rank, order = result.rank, len(named)
    fig = figures().Figure(figsize=(0.4 + 3.2 * order, 0.5 + 1.1 * rank), layout="constrained")
    axes = fig.subplots(rank, order, squeeze=False, sharex="col")
    for k, (row, share) in enumerate(zip(axes, result.shares, strict=True)):
        row[0].set_ylabel(f"{k}\n{share:.0%}", fontsize=8, rotation=0, ha="right", va="center")
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
    if mode.numeric or (mode.labels is None and values.size > MOST_BARS):
        ax.plot(mode.labels or range(values.size), values, linewidth=1, color="#2b6cb0")
        ax.margins(x=0)
        return
    ax.bar(range(values.size), values, color="#2b6cb0", width=0.8 if values.size <= MOST_BARS else 1.0)
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


def convergence(result: Result):
    """Objective and stationarity against time. A matplotlib Figure."""
    time = [record.time for record in result.history]
    fig = figures().Figure(figsize=(7.2, 2.7), layout="constrained")
    left, right = fig.subplots(1, 2)
    style = {"color": "#2b6cb0", "marker": "." if len(time) < FEW else None}
    left.plot(time, [record.objective for record in result.history], **style)
    left.set(title="objective", xlabel="seconds")
    if min(record.objective for record in result.history) > 0:
        left.set_yscale("log")
    # gaps where a solver gives no estimate: a line across them would show values that were never there
    known = [r.stationarity if 0 < r.stationarity < np.inf else np.nan for r in result.history]
    n_known = int(np.count_nonzero(np.isfinite(known)))
    if n_known:
        right.semilogy(time, known, color=style["color"], marker="." if n_known < FEW else None)
    else:
        right.text(0.5, 0.5, "0 throughout", ha="center", va="center", transform=right.transAxes, fontsize=9)
    if result.certificate.tol > 0:
        right.axhline(result.certificate.tol, color="#c05621", linewidth=1, linestyle="--", label="tol")
        right.legend(frameon=False, fontsize=8)
    right.set(title="stationarity (estimates; the last is exact)", xlabel="seconds")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.title.set_fontsize(10)
    return fig


def path(result: Result):
    """Error against the number of parts, and what each part gained against what any could have. A matplotlib Figure."""
    steps = [step for step in result.path if step.status != "pruned"]
    if not steps:
        raise ValueError("this result has no path: factorize with solver='greedy'")
    fig = figures().Figure(figsize=(7.2, 2.7), layout="constrained")
    left, right = fig.subplots(1, 2)
    left.plot([r.rank for r in steps], [r.relative_error for r in steps], color="#2b6cb0", marker="o", markersize=4)
    pruned = [step for step in result.path if step.status == "pruned"]
    if pruned:
        down = [steps[-1], *pruned]
        style = {"color": "#c05621", "marker": "o", "markersize": 4, "linestyle": "--", "label": "taken away again"}
        left.plot([r.rank for r in down], [r.relative_error for r in down], **style)
        left.legend(frameon=False, fontsize=8)
    left.set(title="relative error", xlabel="parts", ylim=(0, None))
    right.bar([r.rank for r in steps], [r.gain for r in steps], color="#bee3f8", label="gained by the part")
    for status, (colour, marker) in {"closed": ("#2b6cb0", "_"), "open": ("#c05621", "^")}.items():
        known = [r for r in steps if r.status == status]
        if known:
            style = {"color": colour, "marker": marker, "label": f"no part gains more ({status})"}
            right.scatter([r.rank for r in known], [r.bound for r in known], zorder=3, **style)
    if len(steps) > 1 and all(r.gain > 0 for r in steps):
        right.set_yscale("log")
    right.set(title="loss lowered, others held", xlabel="parts")
    right.legend(frameon=False, fontsize=8)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.title.set_fontsize(10)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(0.5, max(r.rank for r in steps) + 0.5)
    return fig


def check_columns(columns) -> None:
    if columns is not None and not is_positive_int(columns):
        raise ValueError(f"columns, the parts in a row, must be a whole number >= 1 or None; got {columns!r}")


def check_image_shape(image_shape, n_features: int) -> None:
    if image_shape is None:
        return
    if not isinstance(image_shape, tuple | list) or len(image_shape) != 2 or not all(map(is_positive_int, image_shape)):
        raise ValueError(f"image_shape must be a pair of whole numbers (height, width), got {image_shape!r}")
    if math.prod(image_shape) != n_features:
        raise ValueError(
            f"image_shape {tuple(image_shape)} has {math.prod(image_shape)} pixels, a part has {n_features}: "
            "height times width must be the number of features"
        )
