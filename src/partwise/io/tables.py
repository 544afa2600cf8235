"""Matrices as tables in files, with names of rows and columns: one function for each ending."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .archive import replacing

Names = Sequence[Any] | None
INDEX = "__index_level_0__"  # what pandas calls an index without a name in a file


def checked_file(path: str | Path) -> Path:
    """A file that can be written, in a folder that is there."""
    path = as_path(path)
    folder = path.absolute().parent
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder, name a file in it")
    if not folder.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {folder}, make it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ValueError(f"cannot write {path}: you may not write there, name another place")
    return path


def checked_table(path: str | Path) -> Path:
    """A file that a table can be written to, by its ending."""
    path = checked_file(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(f"cannot write {path}: tables are written to {', '.join(WRITERS)}")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError(f'cannot write {path}: .parquet needs pyarrow, pip install "partwise[files]", or name a .csv')
    return path


def write_table(path: str | Path, X: np.ndarray, names: Names = None, row_names: Names = None) -> None:
    """A matrix that reads back exact to the bit, with names of its columns and rows where there are any; the file is
    whole or not there."""
    path = checked_table(path)
    for given, size, what in ((names, X.shape[1], "column"), (row_names, X.shape[0], "row")) if X.ndim == 2 else ():
        if given is not None and len(given) != size:
            raise ValueError(f"cannot write {path}: there are {len(given)} names for {size} {what}s")
    with replacing(path) as unfinished:
        WRITERS[path.suffix.lower()](unfinished, X, names, row_names)


def text_writer(separator: str) -> Callable[[Path, np.ndarray, Names, Names], None]:
    """Names of columns in the first line, those of rows in the first column, which has an empty heading."""

    def write(path: Path, X: np.ndarray, names: Names, row_names: Names) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, delimiter=separator)
            corner = [] if row_names is None else [""]
            lines.writerows([] if names is None else [[*corner, *names]])
            lines.writerows(
                X.tolist() if row_names is None else ([n, *row] for n, row in zip(row_names, X.tolist(), strict=True))
            )

    return write


def write_parquet(path: Path, X: np.ndarray, names: Names, row_names: Names) -> None:
    """A column for each of X, called by its number from 1 on where it has no name; names of rows are the index of
    pandas, and a column of text for others."""
    import pyarrow as pa  # noqa: PLC0415  # optional
    from pyarrow import parquet  # noqa: PLC0415

    names = [str(number + 1) for number in range(X.shape[1])] if names is None else list(map(str, names))
    columns = [pa.array(column) for column in np.ascontiguousarray(X.T)]
    if row_names is None:
        parquet.write_table(pa.Table.from_arrays(columns, names), path)
        return
    labels = pa.array(list(map(str, row_names)), pa.string())
    kind = {"name": None, "field_name": INDEX, "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
    about = {"index_columns": [INDEX], "column_indexes": [], "columns": [kind], "pandas_version": "2.0.0"}
    table = pa.Table.from_arrays([labels, *columns], [INDEX, *names])
    parquet.write_table(table.replace_schema_metadata({"pandas": json.dumps(about)}), path)


def write_npy(path: Path, X: np.ndarray, names: Names, row_names: Names) -> None:
    """The numbers alone."""
    with path.open("wb") as file:
        np.save(file, X, allow_pickle=False)


WRITERS: dict[str, Callable[[Path, np.ndarray, Names, Names], None]] = {
    ".csv": text_writer(","),
    ".tsv": text_writer("\t"),
    ".parquet": write_parquet,
    ".npy": write_npy,
}


def as_path(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise TypeError(f"a path must be text or a pathlib.Path, got {path!r}")
    return Path(path)
