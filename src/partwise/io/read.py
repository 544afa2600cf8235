"""Matrices and tensors from files, by the readers of `readers/`. Files may be odd, damaged or hostile: each gives a
table or a `ValueError` that names it in one sentence, within bounded memory; nothing in them is run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from scipy import sparse

from ..data.tensor import SparseTensor
from ..data.validation import as_matrix
from ..errors import warn
from .readers import FOLDER_OF_IMAGES, READERS, mtx
from .readers.base import Reader, Request, Table, UnreadableError, check_extent
from .readers.numbers import release_memory


def read(
    path: str | Path,
    *,
    key: str | None = None,
    layer: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
) -> Table:
    """The matrix or tensor in a file, with names of its rows and columns where the file has them.

    The format is known by the ending: .csv and .tsv (plain or .gz), .parquet, .feather, .mtx (10x Genomics with names),
    .npy, .npz, .tns, .h5ad, .h5, .zarr, .mat, .wav (a magnitude spectrogram), or a folder of images; see docs/files.md.
    Some need `pip install "partwise[files]"`. No pickle is ever loaded.

    Parameters
    ----------
    path : str or Path
    key : str, optional
        Name of the array, where a file holds several (.npz, .h5, .zarr, .mat).
    layer : str, optional
        Layer to read in place of X from AnnData (.h5ad, .zarr).
    separator, decimal : str, optional
        What separates cells of text, and what stands before decimals; without it, found out.
    header, index : bool, optional
        Whether the first row of text, or its first column, holds names; without it, found out.

    Returns
    -------
    Table
        `X`, `row_names`, `column_names`, `modes`, `image_shape`, and `found`, a few words on what was read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import partwise as pw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cells.csv"
    >>> _ = path.write_text("cell,CD3D,CD19\\nc1,5,0\\nc2,0,3\\n")
    >>> table = pw.read(path)
    >>> table.X.shape, table.row_names, table.column_names
    ((2, 2), ['c1', 'c2'], ['CD3D', 'CD19'])
    >>> table.found
    'text separated by commas, a row of names, a column of names'
    """
    path, request = Path(path), checked_request(Request(key, layer, separator, decimal, header, index))
    path, reader = reader_of(path)
    for name in request.stated:
        if name not in reader.options:
            takers = [suffix for suffix, other in READERS.items() if name in other.options]
            raise ValueError(f"{path.name}: {name} is for {', '.join(takers)} files only, leave it out")
    with naming(path):
        table = checked_table(reader.read(path, request))
        release_memory()
    for doubt in table.doubts:
        warn(f"{path.name}: {doubt}")
    return table


def checked_request(request: Request) -> Request:
    """What the user says of text, checked."""
    if request.separator is not None and (len(request.separator) != 1 or not request.separator.isascii()):
        raise ValueError(f"the separator must be one character, such as ',' or ';', got {request.separator!r}")
    if request.separator is not None and request.separator in '"\n\r\0':
        raise ValueError(f"the separator must not be a quote or the end of a line, got {request.separator!r}")
    if request.decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {request.decimal!r}")
    if request.decimal is not None and request.decimal == request.separator:
        raise ValueError(f"decimal and separator are both {request.decimal!r}: they must differ")
    return request


def reader_of(path: Path) -> tuple[Path, Reader]:
    """The reader of a file or folder, and the file in the folder where that is what is read."""
    name = path.name.lower()
    reader = next((READERS[suffix] for suffix in sorted(READERS, key=len, reverse=True) if name.endswith(suffix)), None)
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if reader is None and path.is_dir():
        matrix = mtx.in_folder(path)
        path, reader = (matrix, mtx.READER) if matrix else (path, FOLDER_OF_IMAGES)
    if reader is None:
        raise ValueError(
            f"{path.name}: cannot read {path.suffix or 'a file without ending'}; partwise reads {', '.join(READERS)} "
            "and folders of images"
        )
    if path.is_dir() != (reader in (FOLDER_OF_IMAGES, READERS[".zarr"])):
        raise ValueError(f"{path.name} is {'a folder' if path.is_dir() else 'a file'}, where it should not be one")
    check_beginning(path, reader)
    if missing := [module for module in reader.needs if find_spec(module) is None]:
        raise ValueError(f'{path.name}: this format needs {" and ".join(missing)}: pip install "partwise[files]"')
    return path, reader


def check_beginning(path: Path, reader: Reader) -> None:
    """Whether a file has anything in it, and begins as those of its format do."""
    if path.is_dir():
        return
    if not path.stat().st_size:
        raise ValueError(f"{path.name} is empty")
    with path.open("rb") as file:
        beginning = file.read(len(reader.signature))
    if beginning != reader.signature:
        raise ValueError(
            f"{path.name} does not begin as {reader.suffixes[0]} files do: it is damaged, or something else"
        )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors with the name of the file; damaged and hostile ones make libraries raise all kinds of things."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except UnreadableError as error:
        raise ValueError(f"{path.name}: {error}") from error
    except Exception as error:
        what = " ".join((str(error) or type(error).__name__).split())[:300]
        raise ValueError(f"{path.name} is damaged, or does not hold an array of numbers: {what}") from error


def checked_table(table: Table) -> Table:
    """A table whose matrix is valid, and whose names are as many as rows and columns."""
    X = table.X if isinstance(table.X, SparseTensor) else as_matrix(table.X, "its content", any_order=True)
    if X.ndim < 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise UnreadableError(
            f"it holds an array of shape {X.shape} and type {X.dtype}, where a matrix or tensor of numbers is needed"
        )
    if sparse.issparse(X):
        check_extent(X.shape, X.nnz)
    for names, size, what in zip((table.row_names, table.column_names), X.shape, ("row", "column"), strict=False):
        if names is not None and len(names) != size:
            raise UnreadableError(f"it has {len(names)} names for {size} {what}s")
    return replace(table, X=X)
