"""partwise report"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..io import load
from ..selection.selected import RankSelection
from ..selection.stability import Stability
from .arguments import HelpFormatter
from .deliver import checked_new_file
from .options import add_counts, add_data, add_force, counting, opened
from .page import add_page, presentation, title_of
from .source import model_in


def add(commands) -> None:
    report_ = commands.add_parser(
        "report", help="write the page of a result that was saved", formatter_class=HelpFormatter
    )
    report_.set_defaults(command=report, modes=None, json=False, quiet=False)
    report_.add_argument("model", help="model.partwise, or rank.partwise")
    add_data(report_, nargs="?")
    report_.add_argument("--out", metavar="FILE", help="the page (default: the name of the model, with .html)")
    add_counts(report_)
    add_page(report_)
    add_force(report_)


def report(options) -> int:
    """The page of a result, or of a search for a number of parts; of stability, that of its fit. With the data, it says
    where the model fails."""
    options.model = str(model_in(options.model))
    found = load(options.model)
    found = (found.consensus or found.result) if isinstance(found, Stability) else found
    place = checked_new_file(options.out or str(Path(options.model).with_suffix(".html")), options.force)
    words: dict[str, Any] = {}
    if options.file is not None:
        words |= {"X": opened(options)[0], **counting(options)}
    result = found.result if isinstance(found, RankSelection) else found
    if result is not None:
        words |= presentation(options, result.shape[0], result.modes)
    if title := options.title or title_of(result):
        words["title"] = title
    print(f"wrote {found.report(place, **words)}")
    return 0
