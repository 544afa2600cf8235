"""partwise stability"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ..io.write import stability_summary, write_stability
from ..run import interrupts
from ..selection.resampling import RESAMPLES
from ..selection.stability import TOL
from ..selection.stability import stability as find_stability
from .arguments import SEVERAL, WHOLE, HelpFormatter
from .deliver import INTERRUPTED, checked_output, signed
from .options import add_counts, add_course, add_data, add_force, add_model, add_symmetric, counts_of, opened, stated


def add(commands) -> None:
    stability_ = commands.add_parser(
        "stability", help="fit many times and see which parts come again", formatter_class=HelpFormatter
    )
    stability_.set_defaults(command=stability)
    add_data(stability_)
    stability_.add_argument("--rank", type=WHOLE, required=True, help="number of parts")
    stability_.add_argument("--runs", type=SEVERAL, default=20, help="number of fits")
    stability_.add_argument(
        "--resample",
        choices=[name for name in RESAMPLES if name],
        help="fit rows drawn with replacement, halves of the rows, counts drawn anew, or entries with noise of 3%%; "
        "without it only the starts differ",
    )
    stability_.add_argument(
        "--out", metavar="DIR", help="folder for stability.json, the consensus parts as fit writes them, and pictures"
    )
    stability_.add_argument("--jobs", type=int, help="processes that fit side by side, -1 for one a core")
    add_model(stability_)
    add_symmetric(stability_)
    add_counts(stability_)
    add_course(stability_, tol=TOL)
    add_force(stability_)


def stability(options) -> int:
    """Which parts come again. After Ctrl-C, what was found by then is told and written."""
    X, modes, say = opened(options)
    if options.out:
        checked_output(options.out, options.force)
    said = stated(options, X.ndim, modes)
    with interrupts.held():
        found = find_stability(
            X,
            options.rank,
            n_runs=options.runs,
            resample=options.resample,
            n_jobs=options.jobs,
            **said,
        )
        sign = partial(signed, options=options, X=X, counts=counts_of(said))
        found = replace(found, result=sign(found.result), consensus=sign(found.consensus))
        say(found)
        say(found.table)
        if options.out:
            written = write_stability(found, options.out)
            if find_spec("matplotlib") is not None:
                written += drawn(Path(options.out), parts=found.plot.parts, consensus=found.plot.consensus)
            say("wrote " + ", ".join(map(str, written)))
        interrupted = interrupts.came() or found.n_runs < found.n_asked
    if options.json:
        print(json.dumps(stability_summary(found), indent=2))
    return INTERRUPTED if interrupted else 0


def drawn(folder: Path, **pictures: Callable) -> list[Path]:
    """Figures in files of their names."""
    for name, draw in pictures.items():
        draw().savefig(folder / f"{name}.png", dpi=150)
    return [folder / f"{name}.png" for name in pictures]
