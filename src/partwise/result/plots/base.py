"""What all pictures share: figures that notebooks show by themselves, colours, and the look of axes."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING

from ...checks import is_positive_int
from ...data.names import SAMPLES_AND_FEATURES, Mode, factor_names

if TYPE_CHECKING:
    from ..result import Result

BLUE, ORANGE, PALE = "#3a7bbf", "#d9722e", "#bcd7ef"
FEW = 20  # points that are marked too
# of components, as far apart as so many colours can be, none so dark or pale that it is lost on black or white
COLOURS = (
    *("#3a7bbf", "#e08a1e", "#3f9b57", "#d1495b", "#8663b8", "#8a6a4f", "#d977b4", "#7d8a94", "#a8a62b", "#2fa7b3"),
    *("#7fb2e5", "#f2bd6b", "#86cf96", "#ee9aa3", "#bda4dd", "#c2a183", "#efb3d5", "#b4bec6", "#d3d06a", "#83d4db"),
)


def figures():
    """`matplotlib.figure`, or the line that installs it. Figures are made without pyplot, so no window opens."""
    try:
        from matplotlib import figure  # noqa: PLC0415  # optional
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'partwise[report]'") from error
    return figure


@cache
def picture_type():
    """A matplotlib Figure that a notebook shows, whatever it was told of matplotlib."""

    class Picture(figures().Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    return Picture


def new_figure(width: float, height: float):
    return picture_type()(figsize=(width, height), layout="constrained")


def plain_axes(*axes) -> None:
    """Without a frame, in small letters."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
        ax.title.set_fontsize(10)


def named_modes(result: Result) -> tuple[Mode, ...]:
    """The modes as pictures and pages call them, with labels where there are any."""
    usual = SAMPLES_AND_FEATURES if len(result.shape) == 2 else factor_names(len(result.shape))
    return result.modes or tuple(map(Mode, usual))


def colour_of(k: int) -> str:
    return COLOURS[k % len(COLOURS)]


def check_columns(columns) -> None:
    if columns is not None and not is_positive_int(columns):
        raise ValueError(f"columns, the parts in a row, must be a whole number >= 1 or None; got {columns!r}")
