"""Who has which parts: samples as stacked shares, as a heat map, or as courses over time."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..forms import CURVE, axis_of, contributions, form_of, label_of
from .base import COLOURS, colour_of, new_figure, plain_axes
from .parts import draw_curve

if TYPE_CHECKING:
    from ..result import Result

BINS = 300  # columns that are drawn; where there are more samples, each is the mean of some
MOST_NAMED = 30  # groups, or samples
MOST_LETTERS = 60  # of names that stand side by side
MOST_COURSES = 24
NO_LABEL = "(none)"


class Groups(NamedTuple):
    """Samples by their labels."""

    names: list[str]
    of: np.ndarray  # (n_samples,) the number of the name


def groups_of(labels, n_samples: int) -> Groups | None:
    """One label for each sample, as text."""
    if labels is None:
        return None
    labels = getattr(labels, "values", labels)  # of a column of a frame
    if isinstance(labels, str | bytes | Mapping | Set) or not hasattr(labels, "__len__") or np.ndim(labels) > 1:
        raise TypeError(f"labels must be a list of one label for each sample; got {reprlib.repr(labels)}")
    if len(labels) != n_samples:
        raise ValueError(f"labels must be one for each sample: there are {n_samples} samples, and {len(labels)} labels")
    known = [NO_LABEL if str(label) in ("None", "nan", "<NA>") else label for label in labels]
    names = sorted(set(map(str, known)), key=in_order)
    places = {name: place for place, name in enumerate(names)}
    return Groups(names, np.array([places[str(label)] for label in known]))


def in_order(name: str) -> tuple:
    """Numbers by size, before other names."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


def codes(result: Result, labels: Sequence | None = None, show=None):
    """Who has which parts: the share of each part in what the model puts into each sample, stacked, samples with the
    same leading part side by side; by `labels`, groups of samples, where these are given. A heat map where parts are
    too many for colours, and courses where samples lie on an axis, such as time (`show="curve"`, or "list" where that
    is not wanted). A matplotlib Figure.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).poisson(3.0, (30, 8))
    >>> result = pw.factorize(X, 3, loss="kl", random_state=0)
    >>> picture = result.plot.codes(labels=["a", "b", "c"] * 10)
    """
    groups = groups_of(labels, result.shape[0])
    if are_courses(result, groups, show):
        return courses(result)
    shares = contributions(result.factors)
    columns, ends = ordered(shares, groups)
    fig = new_figure(7.2, 2.6)
    ax = fig.subplots()
    (stack if result.rank <= len(COLOURS) else heat)(
        ax, np.array([shares[members].mean(axis=0) for members in columns])
    )
    ax.margins(0)
    if groups and len(groups.names) <= MOST_NAMED:
        name_places(ax, (np.array([0, *ends[:-1]]) + ends) / 2, groups.names)
        for end in ends[:-1]:
            ax.axvline(end, color="white", linewidth=1)
    elif result.shape[0] <= MOST_NAMED:
        name_places(ax, np.arange(len(columns)) + 0.5, [label_of(result.names[0], int(i)) for (i,) in columns])
    else:
        ax.set_xticks([])
        what = result.modes[0].name if result.modes else "samples"
        order = "by label" if groups else "by their leading part"
        ax.set_xlabel(f"{result.shape[0]} {what}, {order}", fontsize=8, parse_math=False)
    plain_axes(ax)
    return fig


def are_courses(result: Result, groups: Groups | None, show=None) -> bool:
    """Whether samples lie on an axis; those without names may be in any order."""
    form = form_of(result.factors[0], result.names[0], None, show)
    return groups is None and form == CURVE and bool(show or result.names[0])


def name_places(ax, places: np.ndarray, names: list[str]) -> None:
    names = [name[:20] for name in names]
    turned = 90 if sum(map(len, names)) > MOST_LETTERS else 0
    ax.set_xticks(places, names, rotation=turned, fontsize=7, parse_math=False)


def ordered(shares: np.ndarray, groups: Groups | None) -> tuple[list[np.ndarray], np.ndarray]:
    """Samples by group, leading part and its share, in about `BINS` columns of one or several; and where groups end, in
    columns."""
    leading = shares.argmax(axis=1)
    of = np.zeros(len(shares), int) if groups is None else groups.of
    order = np.lexsort((-shares.max(axis=1), leading, of))
    counts = np.bincount(of)
    if len(counts) > BINS:  # too many to tell apart
        return np.array_split(order, BINS), np.arange(1, BINS + 1)
    widths = np.ceil(counts * min(1.0, BINS / len(shares))).astype(int)
    columns = [
        members
        for group, width in zip(np.split(order, np.cumsum(counts)[:-1]), widths, strict=True)
        for members in np.array_split(group, width)
    ]
    return columns, np.cumsum(widths)


def stack(ax, shares: np.ndarray) -> None:
    """One band of colour a part; each has an id, so that a page can point at it."""
    edges = np.repeat(np.arange(len(shares) + 1), 2)[1:-1]
    bands = ax.stackplot(edges, np.repeat(shares, 2, axis=0).T, colors=[colour_of(k) for k in range(shares.shape[1])])
    for k, band in enumerate(bands):
        band.set_gid(f"codes-{k + 1}")
        band.set_linewidth(0)
    ax.set_ylim(0, 1)
    ax.set_ylabel("share of parts", fontsize=8)


def heat(ax, shares: np.ndarray) -> None:
    drawn = ax.imshow(
        shares.T, aspect="auto", cmap="viridis", vmin=0, extent=(0, len(shares), shares.shape[1] + 0.5, 0.5)
    )
    ax.figure.colorbar(drawn, ax=ax, format="{x:.0%}").ax.tick_params(labelsize=8)
    ax.set_ylabel("part", fontsize=8)


def courses(result: Result):
    """The first factor as curves over what stands along it, one a part."""
    A, place = result.factors[0], axis_of(result.names[0])
    count = min(result.rank, MOST_COURSES)
    fig = new_figure(7.2, 0.5 + 0.55 * count)
    axes = np.ravel(fig.subplots(count, 1, squeeze=False, sharex=True))
    for k, ax in enumerate(axes):
        draw_curve(ax, A[:, k], place, color=colour_of(k), gid=f"codes-{k + 1}")
        ax.set_yticks([])
        ax.set_ylabel(str(k + 1), rotation=0, fontsize=8, va="center", ha="right")
        ax.spines[["top", "right", "left"]].set_visible(False)
    name = result.modes[0].name if result.modes else "samples"
    axes[-1].set_xlabel(name if place is not None else f"{name}, in order", fontsize=8, parse_math=False)
    return fig
