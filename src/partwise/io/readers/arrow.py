"""Tables of Apache Arrow: .parquet, .feather and .arrow. Columns are numbers; names of rows are the index that pandas
wrote, or a first column of text."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .base import Reader, Request, Table, UnreadableError, check_size


def read_parquet(path: Path, request: Request) -> Table:
    from pyarrow import parquet  # noqa: PLC0415  # optional

    with parquet.ParquetFile(path) as file:
        about = file.metadata
        check_size(8 * about.num_rows * about.num_columns, path.stat().st_size)
        return from_columns(file.read(use_threads=False))


def read_feather(path: Path, request: Request) -> Table:
    """Of version 2, which is Arrow's own file format."""
    from pyarrow import ipc  # noqa: PLC0415  # optional

    with ipc.open_file(str(path)) as file:
        total = 0
        for number in range(file.num_record_batches):
            total += file.get_batch(number).num_rows * len(file.schema)
            check_size(8 * total, path.stat().st_size)
        return from_columns(file.read_all())


def from_columns(table: Any) -> Table:
    """Numbers of all columns, one after the other; nulls are NaN."""
    table.validate(full=True)
    index = index_of(table)
    kept = [(place, str(name)) for place, name in enumerate(table.column_names) if name != index]
    if not kept or not table.num_rows:
        raise UnreadableError(f"it has {table.num_rows} rows and no column of numbers")
    X = np.empty((table.num_rows, len(kept)))
    for target, (place, name) in enumerate(kept):
        X[:, target] = as_floats(table.column(place), name)
    names = None if index is None else [str(name) for name in table.column(index).to_pylist()]
    words = "columns of a table" + ("" if index is None else f", names of rows from {index!r}")
    return Table(X, names, [name for _, name in kept], found=words)


def index_of(table: Any) -> str | None:
    """The column that holds names of rows, if there is one and only one of its name."""
    names = table.column_names
    stated: Any = None
    with suppress(Exception):  # whatever these words are, they are only a hint
        stated = json.loads(table.schema.metadata[b"pandas"])["index_columns"][0]
    if not isinstance(stated, str) or names.count(stated) != 1:
        stated = names[0] if names and is_text(table.schema.field(0).type) else None
    return stated if names.count(stated) == 1 else None


def is_text(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415  # optional

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def as_floats(column: Any, name: str) -> np.ndarray:
    from pyarrow import float64, types  # noqa: PLC0415  # optional

    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        raise UnreadableError(
            f"its column {name[:60]!r} is of type {str(kind)[:60]}, not of numbers: leave it out, or put it first if "
            "it holds names of rows"
        )
    plain = column.cast("uint8") if types.is_boolean(kind) else column
    return plain.cast(float64(), safe=False).to_numpy()


PARQUET = Reader((".parquet", ".pq"), read_parquet, signature=b"PAR1", needs=("pyarrow",))
FEATHER = Reader((".feather", ".arrow"), read_feather, signature=b"ARROW1", needs=("pyarrow",))
