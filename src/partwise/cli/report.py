"""partwise report"""

from __future__ import annotations

from pathlib import Path

from ..io import load
from ..selection.stability import Stability
from .arguments import image_shape
from .deliver import checked_new_file
from .options import add_force


def add(commands) -> None:
    report_ = commands.add_parser("report", help="write the page of a result that was saved")
    report_.set_defaults(command=report)
    report_.add_argument("model", help="model.partwise, or rank.partwise")
    report_.add_argument("--out", metavar="FILE", help="the page (default: the name of the model, with .html)")
    report_.add_argument("--image", type=image_shape, metavar="HxW", help="show parts as images of this size")
    report_.add_argument("--title", help="title of the page")
    add_force(report_)


def report(options) -> int:
    """The page of a result, or of a search for a number of parts; of stability, that of its fit."""
    found = load(options.model)
    found = (found.consensus or found.result) if isinstance(found, Stability) else found
    place = checked_new_file(options.out or str(Path(options.model).with_suffix(".html")), options.force)
    words = {"title": options.title} if options.title else {}
    print(f"wrote {found.report(place, image_shape=options.image, **words)}")
    return 0
