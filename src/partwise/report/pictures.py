"""Pictures as pieces of a page. matplotlib draws what has axes: its SVG needs no script, prints, and takes the colour
of the text around it, on light and dark pages; a plotting library that draws in the browser would add megabytes to
every page and show nothing without scripts. Images are PNG files of one pixel an entry, which the page enlarges."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..result.plots.base import figures

MOST_PIXELS = 96  # along a side
INK = "#010203"  # stands for the colour of text
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor"), "none"),
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}
HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
NAMESPACE = re.compile(r' xmlns(:\w+)?="[^"]*"')
IDS = re.compile(r'(?<=id=")(?!codes-)|(?<=url\(#)|(?<=href="#)')


def svg(draw: Callable[[], object], about: str) -> str:
    """A figure as a piece of HTML; `about` is read to those who cannot see it."""
    figures()  # or the line that installs matplotlib
    from matplotlib import rc_context  # noqa: PLC0415  # optional

    buffer = io.StringIO()
    # a browser has glyphs for the names that matplotlib's fonts do not
    with rc_context(STYLE | {"svg.hashsalt": about}), warnings.catch_warnings(action="ignore"):
        draw().savefig(buffer, format="svg", metadata={"Date": None})  # type: ignore[attr-defined]
    text = METADATA.sub("", NAMESPACE.sub("", HEAD.sub("", buffer.getvalue())))
    own = "p" + hashlib.sha256(text.encode()).hexdigest()[:8] + "-"  # ids of all pictures share one page
    text = IDS.sub(own, text).replace(INK, "currentColor")
    title = about.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)


def image(values: np.ndarray, largest: float | None = None) -> str:
    """A matrix as a data address: grey for what is nonnegative, white at `largest`, red and blue else."""
    figures()  # or the line that installs matplotlib, which brings Pillow
    from matplotlib import colormaps  # noqa: PLC0415  # optional
    from PIL import Image  # noqa: PLC0415

    step = -(-max(values.shape) // MOST_PIXELS)
    values = values[::step, ::step].astype(np.float64)
    top = float(np.abs(values).max(initial=0)) if largest is None else largest
    scaled = values / (top or 1.0)
    if values.min(initial=0) < 0:
        picture = Image.fromarray(colormaps["RdBu_r"]((scaled + 1) / 2, bytes=True)[..., :3]).quantize(64)
    else:
        picture = Image.fromarray(np.rint(255 * scaled.clip(0, 1)).astype(np.uint8))
    buffer = io.BytesIO()
    picture.save(buffer, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
