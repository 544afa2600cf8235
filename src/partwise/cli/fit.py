"""partwise fit"""

from __future__ import annotations

import argparse
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..data.names import factor_names
from ..errors import warn
from ..factorize import factorize
from ..io.tables import checked_table, write_table
from ..io.write import TABLES
from ..registry import INITS
from ..result import Result
from ..result.plots.parts import check_image_shape
from ..result.provenance import differences
from .arguments import AT_LEAST_0, NUMBER, SCALES, SECONDS, WHOLE, HelpFormatter, scale
from .deliver import checked_new_file, checked_output, deliver
from .options import (
    add_counts,
    add_course,
    add_data,
    add_force,
    add_memory,
    add_model,
    add_symmetric,
    counts_of,
    opened,
    opened_in_blocks,
    stated,
)
from .page import add_page, presentation
from .source import recorded


def add(commands) -> None:
    fit_ = commands.add_parser("fit", help="factorize a matrix or tensor in a file", formatter_class=HelpFormatter)
    fit_.set_defaults(command=fit, parser=fit_)
    add_data(fit_, nargs="?")
    fit_.add_argument("--rank", type=WHOLE, help="number of parts")
    fit_.add_argument(
        "--out",
        metavar="DIR",
        help="folder for W.npy and H.npy, or A1.npy, A2.npy, ... of a tensor (as .csv too where there are names), "
        "result.json, model.partwise and report.html",
    )
    fit_.add_argument(
        "--tables",
        choices=TABLES,
        help="write the factors as tables too, with names where there are any (default: csv where there are names)",
    )
    add_force(fit_)
    add_memory(fit_)
    fit_.add_argument(
        "--from",
        dest="source",
        metavar="RESULT",
        help="repeat the fit of this result.json or model.partwise, with its file and options unless others are given",
    )
    add_model(fit_)
    add_symmetric(fit_)
    add_counts(fit_)
    fit_.add_argument(
        "--impute",
        metavar="FILE",
        help="for the data with missing entries filled in: .csv, .tsv, .parquet or .npy",
    )
    add_start(fit_)
    add_course(fit_, tol=1e-4)
    add_presentation(fit_)


def add_start(fit_: argparse.ArgumentParser) -> None:
    """Where a single fit begins, and where it may end."""
    fit_.add_argument("--init", help=f"one of {', '.join(INITS)}")
    fit_.add_argument(
        "--n-init", type=WHOLE, help="number of starts, the best is kept (default: 1, or up to 4 until one fits)"
    )
    fit_.add_argument("--time-limit", type=SECONDS, metavar="SECONDS", help="stop after this time")
    fit_.add_argument("--target", type=NUMBER, metavar="F", help="stop at this objective")
    fit_.add_argument(
        "--ftol",
        type=AT_LEAST_0,
        metavar="SHARE",
        help="stop where ten iterations lower the error by no more than this share of that of the start",
    )


def add_presentation(fit_: argparse.ArgumentParser) -> None:
    """How a result is shown."""
    fit_.add_argument(
        "--normalize",
        default="balanced",
        type=scale,
        metavar="WHERE",
        help=f"where scale goes, one of {', '.join(SCALES)}, or with A1, A2, ... of a tensor for W and H; H:l1 makes "
        "each part add up to 1",
    )
    fit_.add_argument("--no-sort", action="store_true", help="leave parts in the order they were found in")
    fit_.add_argument("--no-certify", action="store_true", help="skip the bound, which can take longer than the fit")
    fit_.add_argument("--one-more", action="store_true", help="bound what one more part could gain")
    add_page(fit_)


def fit(options) -> int:
    check_given(options)
    if options.memory and not options.out_of_core:
        raise ValueError("--memory goes with --out-of-core: add it, or leave both out")
    X, modes, say = (opened_in_blocks if options.out_of_core else opened)(options)
    check_scale(options, X.ndim)
    if X.ndim == 2:
        check_image_shape(options.image, X.shape[1])
    checked_output(options.out, options.force)
    check_tables(options.tables)
    if options.impute:
        checked_table(checked_new_file(options.impute, options.force))
    said = stated(options, X.ndim, modes)
    report = {
        "title": options.title or f"The parts of {Path(options.file).name}",
        "X": X,
        **counts_of(said),
        **presentation(options, X.shape[0], modes),
    }
    return deliver(partial(factorized, X, options, said), X, options, say, report)


def check_given(options) -> None:
    """Whether all is there that a fit needs, here or in the result that it repeats."""
    needed = {"FILE": options.file, "--rank": options.rank, "--out": options.out}
    if missing := [name for name, value in needed.items() if value is None]:
        options.parser.error(f"the following arguments are required: {', '.join(missing)}")


def check_tables(kind: str | None) -> None:
    """Whether tables of this kind can be written: now rather than after the work."""
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise ValueError('--tables parquet needs pyarrow: pip install "partwise[files]", or say --tables csv')


def check_scale(options, order: int) -> None:
    """Whether the factor whose scale is set is one of those there are."""
    factor, names = options.normalize.partition(":")[0], factor_names(order)
    if factor not in ("balanced", "none", *names):
        raise ValueError(
            f"--normalize {options.normalize} is of a factor that X does not have: say balanced, none, "
            f"{', '.join(names)}, or with a norm such as {names[-1]}:l1"
        )


def factorized(X, options, said: dict[str, Any]) -> Result:
    result = factorize(
        X,
        options.rank,
        **said,
        init=options.init,
        n_init=options.n_init,
        target=options.target,
        ftol=options.ftol,
        time_limit=options.time_limit,
        normalize=normalization(options.normalize),
        sort=not options.no_sort,
    )
    if options.source:
        warn_of_differences(options.source, result)
    if options.impute:
        filled = result.impute(X, **counts_of(said))
        rows, columns = result.names[::-1] if options.transpose else result.names
        write_table(options.impute, filled.T if options.transpose else filled, columns, rows)
    return result


def warn_of_differences(source: str, result: Result) -> None:
    """Where a fit that repeats another may not be the same."""
    then, now = recorded(source), result.provenance
    if now is not None:
        versions = f"partwise {then.version} made it, and this is {now.version}"
        told = [*([versions] if then.version != now.version else []), *differences(then.data, now.data)]
        for line in told:
            warn(f"this does not repeat {source}: {line}")


def normalization(text: str) -> str | tuple[str, str] | None:
    """One of the SCALES as `factorize` takes it."""
    factor, _, norm = text.partition(":")
    return (factor, norm) if norm else None if text == "none" else text
