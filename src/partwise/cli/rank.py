"""partwise rank"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ..io.write import selection_summary, write_selection
from ..run import interrupts
from ..selection.select import METHODS, USUAL, select_rank
from .arguments import SEVERAL, SHARE, WHOLE, HelpFormatter, list_of_ranks
from .deliver import INTERRUPTED, checked_output, reported, signed
from .options import add_counts, add_course, add_data, add_force, add_model, counts_of, opened, stated
from .page import add_page, presentation


def add(commands) -> None:
    rank_ = commands.add_parser(
        "rank", help="how many parts: what predicts entries left out, and comes again", formatter_class=HelpFormatter
    )
    rank_.set_defaults(command=rank)
    add_data(rank_)
    ranks = rank_.add_mutually_exclusive_group()
    ranks.add_argument(
        "--max",
        dest="ranks",
        type=WHOLE,
        metavar="RANK",
        help=f"try 1 up to so many parts (default: {USUAL}, or as many as the data allow)",
    )
    ranks.add_argument("--ranks", type=list_of_ranks, metavar="RANKS", help="try these, such as 2,4,8")
    rank_.add_argument(
        "--method", choices=["auto", *METHODS], default="auto", help="how entries are left out; auto: what applies"
    )
    rank_.add_argument("--repeats", type=WHOLE, default=3, help="how often entries are left out, each time others")
    rank_.add_argument("--starts", type=SEVERAL, default=5, help="random starts whose parts are compared")
    rank_.add_argument("--share", type=SHARE, default=0.1, help="share of the entries that speckled leaves out")
    rank_.add_argument("--patience", type=WHOLE, default=2, help="ranks in a row that predict no better, to end with")
    rank_.add_argument(
        "--out",
        metavar="DIR",
        help="folder for rank.json, the fit at the rank picked as fit writes it, and report.html",
    )
    rank_.add_argument("--jobs", type=int, help="processes that fit side by side, -1 for one a core")
    add_model(rank_)
    add_counts(rank_)
    add_course(rank_, tol=1e-4)
    add_page(rank_)
    add_force(rank_)


def rank(options) -> int:
    """How many parts. After Ctrl-C, what was found by then is told and written."""
    X, modes, say = opened(options)
    if options.out:
        checked_output(options.out, options.force)
    said = stated(options, X.ndim, modes)
    shown = {
        "title": options.title or f"How many parts? {Path(options.file).name}",
        "X": X,
        **counts_of(said),
        **presentation(options, X.shape[0], modes),
    }
    with interrupts.held():
        found = select_rank(
            X,
            options.ranks,
            method=options.method,
            n_repeats=options.repeats,
            n_starts=options.starts,
            share=options.share,
            patience=options.patience,
            n_jobs=options.jobs,
            **said,
        )
        found = replace(found, result=signed(found.result, options, X, counts_of(said)))
        say(found)
        say(found.text)
        if options.out:
            written = write_selection(found, options.out)
            written += reported(found, options.out, say, **shown)
            say("wrote " + ", ".join(map(str, written)))
        interrupted = interrupts.came() or found.status == "interrupted"
    if options.json:
        print(json.dumps(selection_summary(found), indent=2))
    return INTERRUPTED if interrupted else 0
