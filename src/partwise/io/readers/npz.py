"""NumPy's .npz: an array, a SciPy sparse matrix, or a tensor by its nonzeros, with arrays of names beside it. Nothing
in it is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse

from ...data.tensor import SparseTensor
from ...errors import ArchiveError
from ..archive import description
from .base import Reader, Request, Table, UnreadableError, check_extent, check_size, chosen, plain

DEFLATE = 1032  # times: what compression can gain at most
VALUES = ("values", "counts", "data")  # names of the nonzeros of a tensor with coordinates
ROW_NAMES = ("row_names", "rows", "obs_names", "sample_names", "samples", "index", "barcodes", "cells", "documents")
COLUMN_NAMES = (
    *("column_names", "columns", "var_names", "feature_names", "features", "genes"),
    *("vocabulary", "vocab", "words", "terms"),
)


def read(path: Path, request: Request) -> Table:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_size(sum(entry.file_size for entry in entries), path.stat().st_size)
        dtypes = {entry.filename.removesuffix(".npy"): check_entry(archive, entry) for entry in entries}
    X, words = data_in(path, request.key, dtypes)
    with np.load(path, allow_pickle=False) as arrays:
        texts = [name for name, (kind, order) in dtypes.items() if kind in "US" and order == 1]
        row_names = next((plain(arrays[name]) for name in ROW_NAMES if name in texts), None)
        column_names = next((plain(arrays[name]) for name in COLUMN_NAMES if name in texts), None)
    named = X.ndim == 2
    return Table(X, row_names if named else None, column_names if named else None, found=words)


def data_in(path: Path, key: str | None, dtypes: dict[str, tuple[str, int]]):
    """What is factorized, and a few words on it."""
    names = set(dtypes)
    if key is None and {"coords", "shape"} <= names:
        with np.load(path, allow_pickle=False) as arrays:
            return listed_tensor(arrays), "entries by their coordinates"
    if key is None and "coords" in names and not names.isdisjoint(VALUES):
        raise UnreadableError("it holds a tensor by its coords and has no shape: add the size of each mode, as shape")
    if key is None and {"format", "shape", "data"} <= names:
        X = sparse.load_npz(path)
        check_extent(X.shape, X.nnz)
        return X, "a SciPy sparse matrix"
    numeric = [name for name, (kind, order) in dtypes.items() if kind in "biuf" and order >= 2]
    name = chosen(numeric if key is None else list(dtypes), key)
    with np.load(path, allow_pickle=False) as arrays:
        return arrays[name], f"the array {name}"


def check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[str, int]:
    """Kind and order of an array, once its size is known to be what is there."""
    if entry.file_size > DEFLATE * entry.compress_size + (1 << 20):
        raise UnreadableError(f"{entry.filename} claims to be larger than its bytes can hold")
    with archive.open(entry) as content:
        try:
            shape, _, dtype = description(content, entry.filename, entry.file_size)
        except ArchiveError as error:
            hint = "; save names as text, with np.array(names, dtype=str): pickles are never loaded"
            raise UnreadableError(f"{error}{hint if 'type object' in str(error) else ''}") from error
    return dtype.kind, len(shape)


def listed_tensor(arrays) -> sparse.sparray | SparseTensor:
    """A tensor by its nonzeros: `coords`, (nnz, order) or the other way round, `values`, `counts` or `data`, and
    `shape`. `sparse.save_npz` writes such files, with what entries are that are not listed as `fill_value`."""
    values = next((arrays[name] for name in VALUES if name in arrays), None)
    coords, shape = arrays["coords"], arrays["shape"]
    if values is None:
        raise UnreadableError(f"it has coords and shape, and no {' or '.join(VALUES)}")
    if "fill_value" in arrays and arrays["fill_value"] != 0:
        raise UnreadableError(f"entries that are not listed are {arrays['fill_value']} there, and must be 0 here")
    if (
        coords.ndim == 2
        and coords.shape == (len(shape), len(values))
        and (len(coords.T) != len(coords) or "fill_value" in arrays)
    ):
        coords = coords.T
    if coords.shape != (values.size, shape.size) or values.ndim != 1 or shape.ndim != 1:
        raise UnreadableError(f"its coords have shape {coords.shape}, for {values.size} values and {shape.size} modes")
    if any(array.dtype.kind not in "iu" for array in (coords, shape)) or values.dtype.kind not in "biuf":
        raise UnreadableError("its coords and shape are not whole numbers, or its values not numbers")
    return from_entries(coords, values, tuple(map(int, shape)))


def from_entries(coords: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> sparse.sparray | SparseTensor:
    """A sparse tensor, or a sparse matrix, of checked indices from 0 on."""
    check_extent(shape, len(values))
    extent = " x ".join(map(str, shape))
    if min(shape) < 1:
        raise UnreadableError(f"it says its shape is {extent}, and sizes are at least 1")
    if coords.size and (coords.min() < 0 or np.any(coords.max(axis=0) >= shape)):
        least, most = coords.min(axis=0).tolist(), coords.max(axis=0).tolist()
        raise UnreadableError(f"its coords go from {least} to {most}, and are counted from 0 within its shape {extent}")
    if len(shape) == 2:
        return sparse.coo_array((values, tuple(coords.T)), shape=shape).tocsr()
    return SparseTensor(coords, values, shape)


READER = Reader((".npz",), read, signature=b"PK", options=("key",))
