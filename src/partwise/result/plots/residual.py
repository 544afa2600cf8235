"""Where the model fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..forms import CURVE, IMAGE, axis_of, form_of, heaviest, label_of
from ..residual import Residual, data_of, residual_of
from .base import BLUE, ORANGE, named_modes, new_figure, plain_axes
from .parts import check_image_shape, draw_curve, draw_image

if TYPE_CHECKING:
    from ..result import Result

TOP = 12  # rows, columns or slices that are named
SHOWN = 4  # images that are drawn beside their model, of the worst and of typical ones; half as many curves


def residual(result: Result, X, image_shape=None, *, show=None, missing: str | None = "nan", mask=None, weights=None):
    """Where the model fails: the samples and features, or slices of a tensor, that are explained worst, whose share of
    the loss is most above their share of that of the null model; and where samples are images or curves, the worst of
    them and typical ones beside their model. Of large data, some rows are looked at, evenly chosen. A matplotlib
    Figure.

    Examples
    --------
    >>> import partwise as pw
    >>> digits = pw.datasets.load_digits()
    >>> result = pw.factorize(digits.X, 8, random_state=0)
    >>> picture = result.plot.residual(digits.X, digits.image_shape)
    """
    if image_shape is not None:
        check_image_shape(image_shape, result.shape[-1])
    found = residual_of(result, data_of(result, X, missing, mask, weights))
    form = form_of(result.factors[-1], result.names[-1], image_shape, show)
    pictured = len(result.shape) == 2 and form in (IMAGE, CURVE)
    if not pictured:
        return shares(result, found)
    if form == IMAGE and image_shape is not None:
        return beside_images(result, found, image_shape)
    return beside_curves(result, found)


def shares(result: Result, found: Residual):
    """The largest shares of the loss along each mode, as bars."""
    modes = named_modes(result)
    fig = new_figure(3.6 * len(modes), 0.8 + 0.2 * TOP)
    for m, (ax, mode) in enumerate(zip(fig.subplots(1, len(modes), squeeze=False)[0], modes, strict=True)):
        share = found.shares(m)
        top = heaviest(np.maximum(found.excess(m), 0), TOP)
        places = found.rows[top] if m == 0 else top
        ax.barh(range(len(top)), share[top], color=BLUE)
        ax.set_yticks(range(len(top)), [label_of(mode.labels, int(i))[:24] for i in places], parse_math=False)
        ax.invert_yaxis()
        ax.set_title(f"share of the loss: {mode.name}", parse_math=False)
        ax.xaxis.set_major_formatter("{x:.1%}")
        plain_axes(ax)
    return fig


def examples_of(found: Residual, count: int = SHOWN) -> list[tuple[str, int]]:
    """The rows that lose most, and typical ones: what to call them, and their places among the rows looked at."""
    order = np.argsort(-found.losses[0], kind="stable")
    half = min(count, len(order) // 2 or 1)
    middle = len(order) // 2
    typical = order[middle : middle + half]
    return [("worst", int(i)) for i in order[:half]] + [("typical", int(i)) for i in typical if i not in order[:half]]


def beside_images(result: Result, found: Residual, image_shape):
    """Data, model and difference of some samples, in three rows."""
    chosen = examples_of(found)
    fig = new_figure(1.2 * len(chosen), 4.2)
    axes = fig.subplots(3, len(chosen), squeeze=False)
    for column, (word, i) in zip(axes.T, chosen, strict=True):
        data = np.nan_to_num(found.data[i])
        difference = np.where(np.isnan(found.data[i]), 0, data - found.model[i])
        column[0].set_title(
            f"{word}\n{label_of(result.names[0], int(found.rows[i]))[:14]}", fontsize=7, parse_math=False
        )
        for ax, values in zip(column, (data, found.model[i], difference), strict=True):
            draw_image(ax, values.reshape(image_shape))
    for ax, name in zip(axes[:, 0], ("data", "model", "difference"), strict=True):
        ax.set_ylabel(name, fontsize=8)
    return fig


def beside_curves(result: Result, found: Residual):
    """Data and model of some samples, over each other."""
    chosen, place = examples_of(found, SHOWN // 2), axis_of(result.names[1])
    rows = (len(chosen) + 1) // 2
    fig = new_figure(7.2, 1.5 * rows)
    axes = np.ravel(fig.subplots(rows, 2, squeeze=False))
    for ax in axes[len(chosen) :]:
        ax.axis("off")
    for ax, (word, i) in zip(axes, chosen, strict=False):
        draw_curve(ax, found.data[i], place, color=BLUE, label="data")
        draw_curve(ax, found.model[i], place, color=ORANGE, linestyle="--", label="model")
        ax.set_title(f"{word}: {label_of(result.names[0], int(found.rows[i]))[:30]}", fontsize=8, parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=7)
    return fig
