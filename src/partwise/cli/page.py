"""What options say of the page."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any

from ..data.names import Mode
from ..io.readers.base import decoded
from ..result import Result
from ..result.forms import FORMS
from .arguments import image_shape


def add_page(command: argparse.ArgumentParser) -> None:
    command.add_argument("--image", type=image_shape, metavar="HxW", help="show parts as images of this size")
    command.add_argument("--show", choices=FORMS, help="how the page shows parts (default: by what they look like)")
    command.add_argument(
        "--labels",
        metavar="FILE",
        help="a label for each sample, which the page shows parts by: a line each, or names and labels in two columns",
    )
    command.add_argument("--title", help="title of the page")


def presentation(options, n_samples: int, modes: tuple[Mode, ...]) -> dict[str, Any]:
    """How the page shows a result."""
    names = modes[0].labels if modes else None
    labels = labels_in(options.labels, n_samples, names) if options.labels else None
    return {"image_shape": options.image, "show": options.show, "labels": labels}


def title_of(result: Result | None) -> str | None:
    """As `fit` titles the page of the file that a result is of, where that is known."""
    options = result.provenance.options if result is not None and result.provenance else None
    return f"The parts of {Path(options['file']).name}" if options and options.get("file") else None


def labels_in(path: str, n_samples: int, names: tuple | None) -> list[str]:
    """One label for each sample, from lines in the order of the samples, or of names and labels, separated by a tab or
    a comma, in any order; a heading may stand above."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file")
    try:
        text = decoded(Path(path).read_bytes()).rstrip()
        delimiter = "\t" if "\t" in text else ","
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), delimiter=delimiter)]
    except (OSError, ValueError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read as labels: {error}") from error
    if not all(len(row) == 2 for row in rows):
        return labels_in_order(path, [delimiter.join(row) for row in rows], n_samples)
    if names is None:
        raise ValueError(f"{path}: it has names and labels, and the samples of X have no names: list labels alone")
    return labels_by_name(path, rows, names)


def labels_in_order(path: str, labels: list[str], n_samples: int) -> list[str]:
    if len(labels) == n_samples + 1 and labels[0] not in labels[1:]:
        labels = labels[1:]  # a heading
    if len(labels) != n_samples:
        raise ValueError(f"{path}: it has {len(labels)} labels, and there are {n_samples} samples")
    return labels


def labels_by_name(path: str, rows: list[list[str]], names: tuple) -> list[str]:
    known = dict(rows)
    if len(known) < len(rows):
        raise ValueError(f"{path}: a name stands more than once: give each sample one label")
    if missing := [str(name) for name in names if str(name) not in known]:
        raise ValueError(
            f"{path}: {len(missing)} of {len(names)} samples have no label, {missing[0]!r} for one: list every sample "
            "by its name, or all labels in order, one a line"
        )
    return [known[str(name)] for name in names]
