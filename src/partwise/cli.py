"""The command line: each command parses, calls public functions and prints."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import __version__
from .data.names import factor_names, matrix_only
from .data.validation import OFF_DIAGONAL, checked_data, checked_rank
from .datasets import make_swimmer
from .errors import warn
from .factorize import factorize
from .io import read, write_result
from .io.write import (
    checked_folder,
    checked_table,
    selection_summary,
    stability_summary,
    summary,
    write_selection,
    write_stability,
    write_table,
)
from .registry import INITS, LOSSES, SOLVERS, resolve
from .result import Result
from .result.certificate import Optimality
from .result.conventions import NORMS
from .result.plots import check_image_shape
from .run import interrupts
from .selection.resampling import RESAMPLES
from .selection.select import METHODS, USUAL, select_rank
from .selection.selected import RankSelection
from .selection.stability import TOL
from .selection.stability import stability as find_stability
from .structures import NonNegative, OrthogonalTo, Pattern

INTERRUPTED, BROKEN_PIPE = 130, 141  # as shells have it: 128 + SIGINT, 128 + SIGPIPE
REPORT_NEEDS = ("matplotlib", "jinja2")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0; 2 with a sentence on standard error when the input cannot be used; 130 after Ctrl-C or SIGTERM,
    with what was found written if there was anything; 141 where nobody reads standard output, as after `| head`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        status = run(arguments)
    for warning in caught:
        complain(f"warning: {warning.message}")
    return status


def run(arguments: Sequence[str] | None) -> int:
    """A command, its errors in one line each."""
    try:
        try:
            options = parser().parse_args(arguments)
            with terminated_as_interrupted():
                return options.command(options)
        finally:
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()
    except KeyboardInterrupt:
        complain("interrupted before there was a result")
        return INTERRUPTED
    except BrokenPipeError:
        with suppress(OSError):  # or Python would try again at its end, and complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        complain(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    except MemoryError as error:
        complain(f"not enough memory. {error}")
    except (ValueError, TypeError, ImportError, ArithmeticError, RecursionError) as error:
        complain(str(error))
    return 2


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """A context in which SIGTERM, with which schedulers end jobs, is taken for Ctrl-C."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def complain(text: str) -> None:
    """One line on standard error, where there is one."""
    if sys.stderr is not None:
        print(f"partwise: {' '.join(text.split())}", file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """Options by their full names only, so that a new one cannot change what a short form means."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        raise ValueError(f"{message}; see {self.prog} --help")


def number(kind: type, what: str, least: float = -math.inf, most: float = math.inf) -> Callable[[str], float]:
    """What reads the number after an option."""

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read


WHOLE = number(int, "a whole number >= 1", 1)
SEVERAL = number(int, "a whole number >= 2", 2)
SEED = number(int, "a whole number from 0 to 2**32 - 1", 0, 2**32 - 1)
NUMBER = number(float, "a number")
SHARE = number(float, "a number between 0 and 1", math.nextafter(0, 1), math.nextafter(1, 0))
AT_LEAST_0 = number(float, "a number >= 0", 0, sys.float_info.max)
SECONDS = number(float, "a number of seconds > 0", sys.float_info.min)
SCALES = ["balanced", "none", *(f"{A}{norm}" for A in "WH" for norm in ("", *(f":{norm}" for norm in NORMS)))]
TENSOR_SCALE = re.compile(rf"A\d+(:({'|'.join(NORMS)}))?")


def parser() -> Parser:
    top = Parser(prog="partwise", description="Take nonnegative data apart into meaningful parts.")
    top.add_argument("--version", action="version", version=f"partwise {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_fit, add_rank, add_stability, add_demo, add_bench):
        add(commands)
    return top


def add_fit(commands) -> None:
    fit_ = commands.add_parser("fit", help="factorize a matrix or tensor in a file", formatter_class=HelpFormatter)
    fit_.set_defaults(command=fit)
    add_data(fit_)
    fit_.add_argument("--rank", type=WHOLE, required=True, help="number of parts")
    fit_.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="folder for W.npy and H.npy, or A1.npy, A2.npy, ... of a tensor, result.json and report.html",
    )
    add_model(fit_)
    add_counts(fit_)
    fit_.add_argument(
        "--impute", metavar="FILE", help="write the data with missing entries filled in to this .csv or .tsv"
    )
    add_start(fit_)
    add_course(fit_, tol=1e-4)
    add_presentation(fit_)


def add_rank(commands) -> None:
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


def add_stability(commands) -> None:
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
    add_counts(stability_)
    add_course(stability_, tol=TOL)


def add_data(command: argparse.ArgumentParser) -> None:
    """What to read, and how it lies in the file."""
    command.add_argument(
        "file",
        help=".csv, .tsv, .parquet, .mtx (with names of 10x Genomics), .npy, .npz, .tns, .h5ad, .h5, .zarr, .mat, "
        ".wav, or a folder of images (docs/files.md); samples are rows",
    )
    command.add_argument("--key", help="name of the array in an .npz, .h5, .zarr or .mat with several")
    command.add_argument("--layer", help="layer of an .h5ad to read in place of X")
    command.add_argument("--separator", metavar="C", help="what separates cells of text (default: found out)")
    command.add_argument("--decimal", metavar="C", help="what stands before decimals in text (default: found out)")
    for name, what in (("header", "row"), ("index", "column")):
        command.add_argument(
            f"--{name}",
            action=argparse.BooleanOptionalAction,
            help=f"the first {what} of text holds names, or does not (default: found out)",
        )
    command.add_argument("--transpose", action="store_true", help="samples are columns")


def add_model(command: argparse.ArgumentParser) -> None:
    """The loss, and what is asked of the factors."""
    command.add_argument(
        "--loss", default="frobenius", help=f"one of {', '.join(LOSSES)}, such as beta(1.5), or a number, beta"
    )
    command.add_argument("--structure-w", metavar="S", help="structure of W, such as 'nonnegative & l1(0.1)'")
    command.add_argument("--structure-h", metavar="S", help="structure of H, such as 'box(0, 1)'")
    command.add_argument(
        "--structure",
        type=mode_and_text,
        action="append",
        metavar="MODE:S",
        help="structure of the factor of a mode, by number or name, such as '1:simplex'; once for each",
    )
    command.add_argument(
        "--modes", type=names_of_modes, metavar="NAMES", help="names of the modes, separated by commas, in order"
    )
    command.add_argument("--symmetric", action="store_true", help="all factors are one, for similarities")
    command.add_argument(
        "--off-diagonal",
        dest="symmetric",
        action="store_const",
        const=OFF_DIAGONAL,
        help="the same, for networks: the diagonal of the matrix does not count",
    )


def add_counts(command: argparse.ArgumentParser) -> None:
    """Which entries count, and how much."""
    command.add_argument(
        "--missing",
        choices=["nan", "zeros", "none"],
        default="nan",
        help="entries that are missing, and do not count: nan (in text also empty cells, NA and the like), zeros for "
        "what a sparse file does not list too, as in ratings, or none: NaN is then refused",
    )
    command.add_argument(
        "--mask",
        metavar="FILE",
        help="1 where an entry is observed, 0 where not: a table as large as the data, turned with it by --transpose",
    )
    command.add_argument(
        "--weights",
        metavar="FILE",
        help="how much each entry counts, >= 0, 0 if not listed: as large as the data, turned with it by --transpose",
    )


def add_start(fit_: argparse.ArgumentParser) -> None:
    """Where a single fit begins, and where it may end."""
    fit_.add_argument("--init", help=f"one of {', '.join(INITS)}")
    fit_.add_argument(
        "--n-init", type=WHOLE, help="number of starts, the best is kept (default: 1, or up to 4 until one fits)"
    )
    fit_.add_argument("--time-limit", type=SECONDS, metavar="SECONDS", help="stop after this time")
    fit_.add_argument("--target", type=NUMBER, metavar="F", help="stop at this objective")


def add_course(command: argparse.ArgumentParser, tol: float) -> None:
    """How fits run."""
    command.add_argument("--solver", default="auto", help=f"auto, or one of {', '.join(SOLVERS)}")
    command.add_argument("--max-iter", type=WHOLE, help="iterations allowed")
    command.add_argument("--tol", type=AT_LEAST_0, default=tol, help="stationarity to reach")
    command.add_argument("--checkpoint", metavar="FILE", help="keep the state of the work in this file")
    command.add_argument("--checkpoint-interval", type=AT_LEAST_0, default=60.0, metavar="SECONDS", help="how often")
    command.add_argument("--resume", metavar="FILE", help="go on from this checkpoint, with the same data and options")
    command.add_argument("--threads", type=WHOLE, help="threads to use at most")
    command.add_argument("--seed", type=SEED, default=0, help="seed of random starts")
    command.add_argument("--quiet", action="store_true", help="no bar, and nothing on standard output")
    command.add_argument("--json", action="store_true", help="print the summary as JSON, and nothing else")


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
    fit_.add_argument("--image", type=image_shape, metavar="HxW", help="show parts as images of this size")
    fit_.add_argument("--title", help="title of the report")


def add_demo(commands) -> None:
    demo_ = commands.add_parser("demo", help="factorize the Swimmer images and write a report")
    demo_.set_defaults(command=demo, no_certify=False, one_more=False, json=False)
    demo_.add_argument("--out", default="demo", metavar="DIR", help="folder for the results (default: demo)")


def add_bench(commands) -> None:
    bench_ = commands.add_parser(
        "bench", help="race against scikit-learn on this machine", formatter_class=HelpFormatter
    )
    bench_.set_defaults(command=bench)
    bench_.add_argument("file", nargs="?", help="your data, as for fit; without it, generated data, about a minute")
    bench_.add_argument("--rank", type=WHOLE, default=20, help="number of parts, with a file")
    bench_.add_argument("--loss", default="frobenius", help="as for fit; other than least squares with a file only")
    bench_.add_argument("--key", help="name of the array in a file with several")
    bench_.add_argument("--starts", type=WHOLE, default=3, help="random starts of each race")
    bench_.add_argument("--solver", default="auto", help=f"auto, or one of {', '.join(SOLVERS)}")


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Defaults in the help, but not where there is none."""

    def _get_help_string(self, action):
        return action.help if action.default in (None, False) else super()._get_help_string(action)


def image_shape(text: str) -> tuple[int, int]:
    try:
        height, width = map(int, text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not HEIGHTxWIDTH, such as 19x19") from None
    return height, width


def mode_and_text(text: str) -> tuple[str, str]:
    mode, colon, structure = text.partition(":")
    if not colon or not mode.strip() or not structure.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not MODE:STRUCTURE, such as '1:simplex'")
    return mode.strip(), structure.strip()


def names_of_modes(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def list_of_ranks(text: str) -> list[int]:
    try:
        return [int(WHOLE(part)) for part in text.split(",")]
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers >= 1, such as 2,4,8") from None


def scale(text: str) -> str:
    if text not in SCALES and not TENSOR_SCALE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {', '.join(map(repr, SCALES))})")
    return text


def fit(options) -> int:
    X, names, say = opened(options)
    check_scale(options, X.ndim)
    if X.ndim == 2:
        check_image_shape(options.image, X.shape[1])
    checked_folder(options.out)
    title = options.title or f"The parts of {Path(options.file).name}"
    report = {"title": title, "image_shape": options.image, "feature_names": None if options.transpose else names}
    if options.impute:
        checked_table(options.impute)
    return deliver(partial(factorized, X, options, names), X, options, say, report)


def opened(options) -> tuple[Any, list[str] | None, Callable]:
    """The data with samples as rows, the names of the columns in the file, and what says things to the user."""
    said = {name: getattr(options, name) for name in ("key", "layer", "separator", "decimal", "header", "index")}
    table = read(options.file, **said)
    check_order(options, table.X.ndim)
    if getattr(options, "image", 0) is None and not options.transpose:
        options.image = table.image_shape
    X: Any = table.X
    X = X.T if options.transpose else X
    say = (lambda *_: None) if options.quiet or options.json else print
    if X.ndim == 2:
        named = table.column_names and not options.transpose
        say(f"read {X.shape[0]} samples x {X.shape[1]} features" + (", named" if named else "") + f" ({table.found})")
    else:
        say(f"read a tensor of {' x '.join(map(str, X.shape))} ({table.found})")
    return X, table.column_names, say


def rank(options) -> int:
    """How many parts. After Ctrl-C, what was found by then is told and written."""
    X, names, say = opened(options)
    if options.out:
        checked_folder(options.out)
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
            **stated(options, X.ndim),
        )
        say(found)
        say(found.text)
        if options.out:
            named = None if options.transpose else names
            written = write_selection(found, options.out, named)
            words = {"title": f"How many parts? {Path(options.file).name}", "feature_names": named}
            written += reported(found, options.out, say, **words)
            say("wrote " + ", ".join(map(str, written)))
        interrupted = interrupts.came() or found.status == "interrupted"
    if options.json:
        print(json.dumps(selection_summary(found), indent=2))
    return INTERRUPTED if interrupted else 0


def stability(options) -> int:
    """Which parts come again. After Ctrl-C, what was found by then is told and written."""
    X, names, say = opened(options)
    if options.out:
        checked_folder(options.out)
    with interrupts.held():
        found = find_stability(
            X,
            options.rank,
            n_runs=options.runs,
            resample=options.resample,
            n_jobs=options.jobs,
            **stated(options, X.ndim),
        )
        say(found)
        say(found.table)
        if options.out:
            written = write_stability(found, options.out, None if options.transpose else names)
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


def deliver(fitted: Callable[[], Result], X, options, say, report: dict) -> int:
    """Fit, certify and write. Ctrl-C ends the fit, or the certificate; what there is by then is written in any case."""
    with interrupts.held():
        result = fitted()
        optimality, interrupted = certified(result, X, options)
        if interrupted:
            complain("interrupted: writing what was found")
        hand_over(result, optimality, options.out, say, **report)
        interrupted |= interrupts.came()
    if options.json:
        print(json.dumps(summary(result, optimality), indent=2))
    return INTERRUPTED if interrupted else 0


def check_order(options, order: int) -> None:
    """Whether what is for matrices goes with the data."""
    for name in ("transpose", "image", "impute", "structure_w", "structure_h"):
        if getattr(options, name, None) and (why := matrix_only(f"--{name.replace('_', '-')}", order)):
            raise ValueError(why + (": use --structure MODE:S" if name.startswith("structure") else ""))


def check_scale(options, order: int) -> None:
    """Whether the factor whose scale is set is one of those there are."""
    factor, names = options.normalize.partition(":")[0], factor_names(order)
    if factor not in ("balanced", "none", *names):
        raise ValueError(
            f"--normalize {options.normalize} is of a factor that X does not have: say balanced, none, "
            f"{', '.join(names)}, or with a norm such as {names[-1]}:l1"
        )


def structures_by_mode(options, order: int) -> list[str | None] | None:
    """The texts after --structure, one for each mode; None where there is none at all."""
    if not options.structure:
        return None
    numbers = list(map(str, range(1, order + 1)))
    names = options.modes or []
    found: list[str | None] = [None] * order
    for mode, text in options.structure:
        places = [known.index(mode) for known in (numbers, list(factor_names(order)), names) if mode in known]
        if not places:
            raise ValueError(
                f"--structure {mode}:{text} is of a mode that X does not have: name one of "
                f"{', '.join([*numbers, *factor_names(order), *names])}"
            )
        if found[places[0]] is not None:
            raise ValueError(f"--structure states two structures for the mode {mode}: join them with &, once")
        found[places[0]] = text
    return found


def stated(options, order: int) -> dict[str, Any]:
    """What all commands say of the model, of the entries that count, and of how fits run."""
    return {
        "loss": options.loss,
        "structure_W": options.structure_w,
        "structure_H": options.structure_h,
        "structures": structures_by_mode(options, order),
        "modes": options.modes,
        "symmetric": options.symmetric,
        **counting(options),
        "solver": options.solver,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "progress": False if options.quiet else None,
        "checkpoint": options.checkpoint and (options.checkpoint, options.checkpoint_interval),
        "resume": options.resume,
        "n_threads": options.threads,
        "random_state": options.seed,
    }


def counting(options) -> dict[str, Any]:
    """Which entries count, and how much, read from the files named."""

    def counts(path: str | None) -> Any:
        X: Any = read(path).X if path else None
        return X.T if path and options.transpose else X

    missing = None if options.missing == "none" else options.missing
    return {"missing": missing, "mask": counts(options.mask), "weights": counts(options.weights)}


def factorized(X, options, names: list[str] | None) -> Result:
    said = stated(options, X.ndim)
    result = factorize(
        X,
        options.rank,
        **said,
        init=options.init,
        n_init=options.n_init,
        target=options.target,
        time_limit=options.time_limit,
        normalize=normalization(options.normalize),
        sort=not options.no_sort,
    )
    if options.impute:
        filled = result.impute(X, **{name: said[name] for name in ("missing", "mask", "weights")})
        write_table(options.impute, filled.T if options.transpose else filled, names)
    return result


def normalization(text: str) -> str | tuple[str, str] | None:
    """One of the SCALES as `factorize` takes it."""
    factor, _, norm = text.partition(":")
    return (factor, norm) if norm else None if text == "none" else text


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


def demo(options) -> int:
    """17 parts in five groups, in order: every image has one of the four positions of each limb, and the last part, of
    17 pixels at most, shares none with the others."""
    checked_folder(options.out)
    swimmer = make_swimmer()
    fitted = partial(
        factorize,
        swimmer.X,
        17,
        structure_W=NonNegative() & Pattern(groups=[4, 4, 4, 4, 1], nonzeros=1),
        structure_H=NonNegative() & OrthogonalTo(16, nonzeros=17, method="successive"),
        random_state=0,
        tol=1e-6,
    )
    report = {"title": "Swimmer: 17 parts in five groups", "image_shape": swimmer.image_shape, "columns": 4}
    return deliver(fitted, swimmer.X, options, print, report)


def bench(options) -> int:
    """The short form of the benchmarks: who gets to scikit-learn's objective first."""
    from . import bench as racing  # noqa: PLC0415  # slow to import

    loss = resolve("loss", options.loss)
    if "mu" not in loss.updates:
        raise ValueError(
            f"--loss {options.loss}: scikit-learn has no solver for it to race against; use frobenius, kl or a beta"
        )
    if options.file:
        X = checked_data(read(options.file, key=options.key).X)
        contests = [racing.Contest(Path(options.file).name, X, checked_rank(options.rank), loss=options.loss)]
    elif loss.quadratic:
        contests = racing.short_contests()
    else:
        raise ValueError(f"--loss {options.loss} needs a file: the generated data are for least squares")
    sides = {"partwise": partial(racing.partwise, solver=options.solver)}
    for contest in contests:
        racing.warm_up(contest, sides)
        heats = [racing.race(contest, seed, sides) for seed in range(options.starts)]
        print(racing.summary(contest, heats), flush=True)
    print(racing.machine())
    return 0


def hand_over(result: Result, optimality: Optimality | None, folder, say, **report) -> None:
    """Write everything about a result and say what was written."""
    written = write_result(result, folder, optimality, report.get("feature_names"))
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
