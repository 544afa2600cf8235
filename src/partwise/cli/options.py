"""Options that several commands share, and what they say in terms of `factorize`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..data.names import SAMPLES_AND_FEATURES, Mode, factor_names, matrix_only
from ..data.validation import OFF_DIAGONAL
from ..io import LazyMatrix, open_lazily, read
from ..registry import LOSSES, SOLVERS
from .arguments import AT_LEAST_0, SEED, WHOLE, mode_and_text, names_of_modes


def add_data(command: argparse.ArgumentParser, **words) -> None:
    """What to read, and how it lies in the file."""
    command.add_argument(
        "file",
        **words,
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
    command.set_defaults(symmetric=False)


def add_symmetric(command: argparse.ArgumentParser) -> None:
    """For data whose rows and columns are the same items."""
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
        help="how much each entry counts, >= 0, 0 if not listed: as large as the data, turned with it by --transpose, "
        "or one column, of a weight for each sample, or one row, of one for each feature",
    )


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


def add_force(command: argparse.ArgumentParser) -> None:
    command.add_argument("--force", action="store_true", help="replace results that are there already")


def add_memory(command: argparse.ArgumentParser) -> None:
    """For files larger than memory."""
    command.add_argument(
        "--out-of-core",
        action="store_true",
        help="read the file in blocks of rows, once an iteration: .npy, .zarr, .h5 and .h5ad that need not fit into "
        "memory",
    )
    command.add_argument("--memory", metavar="SIZE", help="what to use at most out of core, such as 2GB")


def opened_in_blocks(options) -> tuple[LazyMatrix, tuple[Mode, ...], Callable]:
    """The same as `opened` for a file that is read in blocks of rows."""
    for name in ("transpose", "impute"):
        if getattr(options, name):
            raise ValueError(f"--out-of-core does not go with --{name}: leave it out")
    X = open_lazily(options.file, key=options.key, layer=options.layer, memory=options.memory)
    X.check_memory(options.rank)
    say = (lambda *_: None) if options.quiet or options.json else print
    say(f"opened {X.shape[0]} samples x {X.shape[1]} features in {X.blocks_in_words} ({X.found})")
    return X, called(X.modes, options.modes, 2), say


def opened(options) -> tuple[Any, tuple[Mode, ...], Callable]:
    """The data with samples as rows, what the file says of their modes, and what says things to the user."""
    said = {name: getattr(options, name) for name in ("key", "layer", "separator", "decimal", "header", "index")}
    table = read(options.file, **said)
    check_order(options, table.X.ndim)
    if getattr(options, "image", 0) is None and not options.transpose:
        options.image = table.image_shape
    X: Any = table.X
    X, modes = (X.T, table.modes[::-1]) if options.transpose else (X, table.modes)
    say = (lambda *_: None) if options.quiet or options.json else print
    if X.ndim == 2:
        named = listed_names(modes)
        told = f", {named} named" if named else ""
        say(f"read {X.shape[0]} samples x {X.shape[1]} features{told} ({table.found})")
    else:
        say(f"read a tensor of {' x '.join(map(str, X.shape))} ({table.found})")
    return X, called(modes, options.modes, X.ndim), say


def listed_names(modes: tuple[Mode, ...]) -> str:
    """Which modes of a matrix have names."""
    pairs = zip(SAMPLES_AND_FEATURES, modes, strict=False)
    return " and ".join(name for name, mode in pairs if mode.labels is not None)


def called(modes: tuple[Mode, ...], names: list[str] | None, order: int) -> tuple[Mode, ...]:
    """The modes by the names that the user gives them; of a matrix, its rows are the samples."""
    if not modes and not names:
        return ()
    labels = [mode.labels for mode in modes] or [None] * order
    usual = SAMPLES_AND_FEATURES if order == 2 else [mode.name for mode in modes]
    if names and len(names) != order:  # `factorize` has a sentence for it
        labels = [None] * len(names)
    return tuple(map(Mode, names or usual, labels))


def check_order(options, order: int) -> None:
    """Whether what is for matrices goes with the data."""
    for name in ("transpose", "image", "impute", "structure_w", "structure_h"):
        if getattr(options, name, None) and (why := matrix_only(f"--{name.replace('_', '-')}", order)):
            raise ValueError(why + (": use --structure MODE:S" if name.startswith("structure") else ""))


def stated(options, order: int, modes: tuple[Mode, ...]) -> dict[str, Any]:
    """What all commands say of the model, of the entries that count, and of how fits run."""
    return {
        "loss": options.loss,
        "structure_W": options.structure_w,
        "structure_H": options.structure_h,
        "structures": structures_by_mode(options, order),
        "modes": modes,
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


def counting(options) -> dict[str, Any]:
    """Which entries count, and how much, read from the files named."""

    def counts(path: str | None) -> Any:
        if path and getattr(options, "out_of_core", False):
            return open_lazily(path, memory=options.memory)
        X: Any = read(path).X if path else None
        return X.T if path and options.transpose else X

    missing = None if options.missing == "none" else options.missing
    return {"missing": missing, "mask": counts(options.mask), "weights": along_modes(counts(options.weights))}


def along_modes(weights: Any) -> Any:
    """Weights in one column as those of samples, in one row as those of features; others as they are."""
    if weights is None or len(weights.shape) != 2 or weights.shape.count(1) != 1:
        return weights
    of_samples, of_features = (length > 1 for length in weights.shape)
    whole = weights.read(0, weights.shape[0]) if isinstance(weights, LazyMatrix) else weights
    vector = np.ravel(whole.toarray() if issparse(whole) else whole)
    return vector if of_samples else None, vector if of_features else None


def counts_of(said: dict[str, Any]) -> dict[str, Any]:
    """What `stated` says of entries."""
    return {name: said[name] for name in ("missing", "mask", "weights")}
