"""partwise transform"""

from __future__ import annotations

from ..io.tables import checked_table, write_table
from ..io.write import part_names
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
        "--out",
        required=True,
        metavar="FILE",
        help="for the weights, a row a sample: .csv, .tsv, .parquet or .npy",
    )
    add_counts(transform_)
    add_force(transform_)
    transform_.add_argument("--quiet", action="store_true", help="nothing on standard output")


def transform(options) -> int:
    """New samples in the parts of a result; features are matched by name where both have names."""
    result = opened_model(options.model)
    place = checked_table(checked_new_file(options.out, options.force))
    X, modes, say = opened(options)
    W = transformed(result, X, modes, counting(options))
    write_table(place, W, part_names(W.shape[1]), modes[0].labels if modes else None)
    say(f"wrote {place}: {W.shape[0]} samples in {W.shape[1]} parts")
    return 0
