"""The parts of a matrix: as images, as curves over the features, or by the features that weigh most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...checks import is_positive_int
from ...data.names import matrix_only
from ..forms import CURVE, IMAGE, LIST, axis_of, distinctive, form_of, heaviest, label_of
from .base import BLUE, ORANGE, check_columns, new_figure

if TYPE_CHECKING:
    from ..result import Result

TOP = 10  # features of a part that are named


def parts(result: Result, image_shape: tuple[int, int] | None = None, columns: int | None = None, show=None):
    """Every part as an image of `image_shape`, as a curve over features that lie on an axis, or else by the features
    that weigh most; `show`, "image", "curve" or "list", where that is not wanted. A matplotlib Figure.

    Examples
    --------
    >>> import partwise as pw
    >>> digits = pw.datasets.load_digits()
    >>> picture = pw.factorize(digits.X, 6, random_state=0).plot.parts(digits.image_shape)
    >>> picture.savefig("parts.png")  # doctest: +SKIP
    """
    if why := matrix_only("plot.parts", len(result.factors)):
        raise ValueError(f"{why}: use plot.modes()")
    check_image_shape(image_shape, result.shape[1])
    check_columns(columns)
    form = form_of(result.factors[1], result.names[1], image_shape, show)
    if form == LIST:
        return features(result, columns=columns)
    H, name = result.H, "features" if not result.modes else result.modes[1].name
    columns = columns or (math.ceil(math.sqrt(1.6 * len(H))) if form == IMAGE else min(3, len(H)))
    size = (1.25, 1.4) if form == IMAGE else (3.6, 1.5)
    fig, axes = grid(len(H), columns, *size)
    place = axis_of(result.names[1]) if form == CURVE else None
    for k, ax in enumerate(axes):
        if image_shape is not None and form == IMAGE:
            draw_image(ax, H[k].reshape(image_shape))
        else:
            draw_curve(ax, H[k], place)
    if form == CURVE and place is not None:
        fig.supxlabel(name, fontsize=8, parse_math=False)
    return fig


def features(result: Result, n: int = TOP, specific: bool = False, columns: int | None = None):
    """The `n` features that weigh most in each part, as bars; `specific`: those that tell it from the other parts most
    (Dey, Hsiao and Stephens 2017). A matplotlib Figure.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).poisson(3.0, (20, 5))
    >>> modes = {"documents": None, "words": ["one", "two", "three", "four", "five"]}
    >>> picture = pw.factorize(X, 2, loss="kl", modes=modes, random_state=0).plot.features(n=3)
    >>> [bar.get_text() for bar in picture.axes[0].get_yticklabels()]  # doctest: +SKIP
    ['three', 'one', 'four']
    """
    if why := matrix_only("plot.features", len(result.factors)):
        raise ValueError(f"{why}: use plot.modes()")
    if not is_positive_int(n):
        raise ValueError(f"n, the features to name, must be a whole number >= 1; got {n!r}")
    check_columns(columns)
    A = result.factors[1]
    if specific and A.min() < 0:
        raise ValueError("specific=True compares shares of nonnegative parts, and these have negative entries")
    values = distinctive(A) if specific else A
    fig, axes = grid(A.shape[1], columns or min(4, A.shape[1]), 2.7, 0.5 + 0.17 * min(n, len(A)))
    for k, ax in enumerate(axes):
        top = heaviest(values[:, k], n)
        ax.barh(range(len(top)), values[top, k], color=ORANGE if specific else BLUE)
        names = [label_of(result.names[1], int(j))[:24] for j in top]
        ax.set_yticks(range(len(top)), names, fontsize=7, parse_math=False)
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.spines[["top", "right", "bottom"]].set_visible(False)
    return fig


def grid(count: int, columns: int, width: float, height: float):
    """A figure with so many axes, titled with the number of a part; and the axes."""
    rows = math.ceil(count / columns)
    fig = new_figure(width * columns, height * rows)
    axes = np.ravel(fig.subplots(rows, columns, squeeze=False))
    for ax in axes[count:]:
        ax.axis("off")
    for k, ax in enumerate(axes[:count]):
        ax.set_title(f"part {k + 1}", fontsize=8, pad=2)
    return fig, axes[:count]


def draw_image(ax, image: np.ndarray) -> None:
    largest = np.abs(image).max() or 1.0
    colours = {"cmap": "gray", "vmin": 0} if image.min() >= 0 else {"cmap": "RdBu_r", "vmin": -largest}
    ax.imshow(image, vmax=largest, **colours)
    ax.set_xticks([])
    ax.set_yticks([])


def draw_curve(ax, values: np.ndarray, place: np.ndarray | None, **style) -> None:
    ax.plot(range(len(values)) if place is None else place, values, **({"linewidth": 0.9, "color": BLUE} | style))
    ax.tick_params(labelsize=6)
    ax.margins(x=0)


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
