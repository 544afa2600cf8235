"""The command line, one command a file: each parses, calls public functions and prints."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from .. import __version__
from . import bench, demo, fit, info, rank, report, solvers, stability, structures, transform
from .arguments import Parser
from .deliver import INTERRUPTED, NOT_KEPT, complain
from .source import recorded_options

BROKEN_PIPE = 141  # as shells have it: 128 + SIGPIPE
COMMANDS = (
    info,
    fit,
    rank,
    stability,
    transform,
    report,
    solvers,
    structures,
    demo,
    bench,
)  # modules, each with a function `add`


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
            options = parsed(arguments)
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


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; where they repeat an earlier result, over those that made it."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    top = parser()
    options = top.parse_args(arguments)
    if source := getattr(options, "source", None):
        options.parser.set_defaults(**recorded_options(source, set(vars(options)) - NOT_KEPT))
        options = top.parse_args(arguments)
    options.arguments = arguments
    return options


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


def parser() -> Parser:
    top = Parser(prog="partwise", description="Take nonnegative data apart into meaningful parts.")
    top.add_argument("--version", action="version", version=f"partwise {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return top
