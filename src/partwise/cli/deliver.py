"""What commands hand over: the certificate, files and pages, after Ctrl-C too."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..data.names import listed
from ..data.observed import observed
from ..errors import warn
from ..io import write_result
from ..io.tables import checked_file
from ..io.write import checked_folder, summary
from ..result import Result
from ..result.certificate import Optimality
from ..result.provenance import data_facts
from ..run import interrupts
from ..selection.selected import RankSelection

INTERRUPTED = 130  # as shells have it: 128 + SIGINT
REPORT_NEEDS = ("matplotlib", "jinja2")
RESULTS = ("result.json", "model.partwise", "rank.json", "stability.json")  # what marks a folder of results
# options that say where and how a command runs, not what it finds
NOT_KEPT = {
    "command",
    "parser",
    "arguments",
    "source",
    "out",
    "force",
    "json",
    "quiet",
    "checkpoint",
    "resume",
    "impute",
}


def complain(text: str) -> None:
    """One line on standard error, where there is one."""
    if sys.stderr is not None:
        print(f"partwise: {' '.join(text.split())}", file=sys.stderr)


def checked_output(folder: str, force: bool) -> Path:
    """A folder to write results in: none of an earlier run are replaced unless the user says so."""
    place = checked_folder(folder)
    held = [name for name in RESULTS if (place / name).exists()]
    if held and not force:
        raise ValueError(
            f"{folder} holds results already ({listed(held)}): name another folder, or add --force to replace them"
        )
    return place


def checked_new_file(path: str, force: bool) -> Path:
    """The same for a file."""
    if Path(path).exists() and not force:
        raise ValueError(f"{path} is there already: name another file, or add --force to replace it")
    return checked_file(path)


def signed(result: Result | None, options, X=None, counts: dict[str, Any] | None = None) -> Any:
    """The result with the command it comes from; `X` and `counts`: the data, where the fit is one of many."""
    if result is None or result.provenance is None:
        return result
    said = {name: value for name, value in vars(options).items() if name not in NOT_KEPT}
    about = replace(result.provenance, call=shlex.join(["partwise", *options.arguments]), options=said)
    if X is not None:
        about = replace(about, seed=options.seed, data=data_facts(observed(X, **(counts or {}))))
    return replace(result, provenance=about)


def deliver(fitted: Callable[[], Result], X, options, say, report: dict) -> int:
    """Fit, certify and write. Ctrl-C ends the fit, or the certificate; what there is by then is written in any case."""
    with interrupts.held():
        result = signed(fitted(), options)
        optimality, interrupted = certified(result, X, options)
        if interrupted:
            complain("interrupted: writing what was found")
        hand_over(result, optimality, options, say, **report)
        interrupted |= interrupts.came()
    if options.json:
        print(json.dumps(summary(result, optimality), indent=2))
    return INTERRUPTED if interrupted else 0


def certified(result: Result, X, options) -> tuple[Optimality | None, bool]:
    """What is known of the optimum, and whether Ctrl-C was pressed, now or before: then nobody wants to wait. A result
    that one more part cannot be bounded for is handed over all the same."""
    why = result.unbounded or ("--no-certify says so" if options.no_certify else None)
    if why and options.one_more:
        warn(f"--one-more is left out: {why}")
    if why or result.status == "interrupted":
        return None, result.status == "interrupted"
    try:
        try:
            return result.certify(X, one_more=options.one_more), False
        except ValueError as error:
            if not options.one_more:
                raise
            warn(f"--one-more is left out: {error}")
            return result.certify(X), False
    except KeyboardInterrupt:
        return None, True


def hand_over(result: Result, optimality: Optimality | None, options, say, **report) -> None:
    """Write everything about a result and say what was written."""
    folder = options.out
    written = write_result(result, folder, optimality, tables=getattr(options, "tables", None))
    say(result)
    say(result.certificate)
    if optimality is not None:
        say(optimality)
    written += reported(result, folder, say, optimality=optimality, **report)
    say("wrote " + ", ".join(map(str, written)))


def reported(found: Result | RankSelection, folder, say, **report) -> list[Path]:
    """The page, or why there is none."""
    if missing := [name for name in REPORT_NEEDS if find_spec(name) is None]:
        say(f"no report: it needs {' and '.join(missing)} (pip install 'partwise[report]')")
        return []
    return [found.report(Path(folder) / "report.html", **report)]
