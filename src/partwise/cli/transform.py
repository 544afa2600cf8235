"""partwise transform"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..io.write import SEPARATORS, part_names, write_table
from ..result.transform import transformed
from .arguments import HelpFormatter
from .deliver import checked_new_file
from .options import add_counts, add_data, add_force, counting, opened
from .source import opened_model


def add(commands) -> None:
    transform_ = commands.add_parser(
        "transform", help="the weights of new samples in the parts of a result", formatter_class=HelpFormatter
    )
    transform_.set_defaults(command=transform, modes=None, json=False)
    transform_.add_argument("model", help="model.partwise, as fit, rank and stability write it")
    add_data(transform_)
    transform_.add_argument(
        "--out", required=True, metavar="FILE", help="for the weights, a row for each sample: .csv, .tsv or .npy"
    )
    add_counts(transform_)
    add_force(transform_)
    transform_.add_argument("--quiet", action="store_true", help="nothing on standard output")


def transform(options) -> int:
    """New samples in the parts of a result; features are matched by name where both have names."""
    result = opened_model(options.model)
    place = checked_new_file(options.out, options.force)
    if place.suffix.lower() not in (*SEPARATORS, ".npy"):
        raise ValueError(f"cannot write {options.out}: weights are written to .csv, .tsv or .npy")
    X, modes, say = opened(options)
    W = transformed(result, X, modes, counting(options))
    write_weights(place, W, modes[0].labels if modes else None)
    say(f"wrote {place}: {W.shape[0]} samples in {W.shape[1]} parts")
    return 0


def write_weights(path: Path, W: np.ndarray, names) -> None:
    if path.suffix.lower() == ".npy":
        np.save(path, W)
    else:
        write_table(path, W, part_names(W.shape[1]), names)
