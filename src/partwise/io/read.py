"""Matrices and tensors from files: .npy, .npz, .csv, .tsv, .mtx, .tns. Files may be odd, damaged or hostile: each gives
an array or a `ValueError` that names it."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
from scipy import sparse

from ..data.tensor import SparseTensor
from ..data.validation import as_matrix
from .archive import description

DEFLATE = 1032  # times: what compression can gain at most
SMALL, SPARSEST = 1 << 20, 1000  # rows and columns that a file may have in any case, and for each of its entries
LARGEST_INDEX = 1 << 53  # whole numbers beyond it are not told apart
VALUES = ("values", "counts", "data")  # names of the nonzeros in an .npz with coordinates
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
MISSING = {"", "na", "n/a", "null", "none", "-", "?", "."}  # cells of values that are missing, as NaN is


@dataclass(frozen=True)
class Table:
    """A matrix or tensor, and the names of the columns of a matrix, where the file has any."""

    X: np.ndarray | sparse.sparray | SparseTensor
    feature_names: list[str] | None = None


def read(path: str | Path, key: str | None = None) -> Table:
    """The matrix or tensor in a file, by its ending; `key` names the array in an .npz with several."""
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"{path.name}: cannot read {path.suffix or 'a file without ending'}; partwise reads {', '.join(READERS)}"
        )
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    if key is not None and reader is not read_npz:
        raise ValueError(f"{path.name}: a key is for .npz files only")
    table = reader(path, key) if reader is read_npz else reader(path)
    with naming(path):
        X = table.X if isinstance(table.X, SparseTensor) else as_matrix(table.X, "its content", any_order=True)
    if X.ndim < 2 or X.dtype.kind not in "biuf" or 0 in X.shape:
        raise ValueError(
            f"{path.name} holds an array of shape {X.shape} and type {X.dtype}, where a matrix or tensor of numbers is "
            "needed"
        )
    return Table(X, table.feature_names)


@contextmanager
def naming(path: Path):
    """Errors of the libraries that read files, with the name of the file; damaged and hostile ones make them raise all
    kinds of things."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except Exception as error:
        what = (str(error) or type(error).__name__)[:300]
        raise ValueError(f"{path.name} is damaged, or does not hold an array of numbers: {what}") from error


def read_npy(path: Path) -> Table:
    with naming(path):
        return Table(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, key: str | None) -> Table:
    with naming(path), zipfile.ZipFile(path) as archive:
        names = [check_entry(archive, entry) for entry in archive.infolist()]
    if key is None and {"coords", "shape"} <= set(names):
        with naming(path), np.load(path, allow_pickle=False) as arrays:
            return Table(listed_tensor(arrays))
    if key is None and "coords" in names and not set(VALUES).isdisjoint(names):
        raise ValueError(
            f"{path.name} holds a tensor by its coords and has no shape: add the size of each mode, as shape"
        )
    if key is None and {"format", "shape", "data"} <= set(names):
        with naming(path):
            X = sparse.load_npz(path)
            check_extent(X.shape, X.nnz)
            return Table(X)
    if not names:
        raise ValueError(f"{path.name} holds no array")
    if key is None and len(names) > 1:
        raise ValueError(f"{path.name} holds several arrays: name one with --key ({', '.join(names)})")
    if key is not None and key not in names:
        raise ValueError(f"{path.name} has no array {key!r}, it has {', '.join(names)}")
    with naming(path), np.load(path, allow_pickle=False) as arrays:
        return Table(arrays[key or names[0]])


def listed_tensor(arrays) -> sparse.sparray | SparseTensor:
    """A tensor by its nonzeros: `coords`, (nnz, order) or the other way round, `values`, `counts` or `data`, and
    `shape`. `sparse.save_npz` writes such files, with what entries are that are not listed as `fill_value`."""
    values = next((arrays[name] for name in VALUES if name in arrays), None)
    coords, shape = arrays["coords"], arrays["shape"]
    if values is None:
        raise ValueError(f"it has coords and shape, and no {' or '.join(VALUES)}")
    if "fill_value" in arrays and arrays["fill_value"] != 0:
        raise ValueError(f"entries that are not listed are {arrays['fill_value']} there, and must be 0 here")
    if (
        coords.ndim == 2
        and coords.shape == (len(shape), len(values))
        and (len(coords.T) != len(coords) or "fill_value" in arrays)
    ):
        coords = coords.T
    if coords.shape != (values.size, shape.size) or values.ndim != 1 or shape.ndim != 1:
        raise ValueError(f"its coords have shape {coords.shape}, for {values.size} values and {shape.size} modes")
    if any(array.dtype.kind not in "iu" for array in (coords, shape)) or values.dtype.kind not in "biuf":
        raise ValueError("its coords and shape are not whole numbers, or its values not numbers")
    return from_entries(coords, values, tuple(map(int, shape)))


def from_entries(coords: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> sparse.sparray | SparseTensor:
    """A sparse tensor, or a sparse matrix, of checked indices from 0 on."""
    check_extent(shape, len(values))
    extent = " x ".join(map(str, shape))
    if min(shape) < 1:
        raise ValueError(f"it says its shape is {extent}, and sizes are at least 1")
    if coords.size and (coords.min() < 0 or np.any(coords.max(axis=0) >= shape)):
        least, most = coords.min(axis=0).tolist(), coords.max(axis=0).tolist()
        raise ValueError(f"its coords go from {least} to {most}, and are counted from 0 within its shape {extent}")
    if len(shape) == 2:
        return sparse.coo_array((values, tuple(coords.T)), shape=shape).tocsr()
    return SparseTensor(coords, values, shape)


def read_tns(path: Path) -> Table:
    """A tensor as FROSTT has them, http://frostt.io/tensors/file-formats.html: a line for each nonzero, with its
    indices, which begin at 1, and its value; # begins a comment. The shape is that of the largest indices."""
    with naming(path):
        lines = tns_lines(path)
        if not len(lines):
            raise ValueError("it has no entries")
        if lines.shape[1] < 3:
            raise ValueError(f"its lines have {lines.shape[1]} numbers, where a matrix has two indices and a value")
        indices = lines[:, :-1]
        wrong = (indices < 1) | (indices > LARGEST_INDEX) | (indices != np.floor(indices))  # NaN is not itself
        if wrong.any():
            first = int(np.argmax(wrong.any(axis=1)))
            hint = ": .tns counts from 1, so add 1 to all indices" if 0 in indices[first] else ""
            raise ValueError(f"the indices of entry {first + 1} are not whole numbers >= 1{hint}")
        coords = indices.astype(np.int64) - 1
        return Table(from_entries(coords, lines[:, -1].copy(), tuple((coords.max(axis=0) + 1).tolist())))


def tns_lines(path: Path) -> np.ndarray:
    """The numbers of all entries, a row each."""
    try:
        return np.loadtxt(path, comments="#", ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            raise ValueError(tns_fault(lines) or str(error)) from error


def tns_fault(lines: Iterable[str]) -> str | None:
    """What is wrong in the first line that is no entry."""
    form = "a .tns file has a line for each entry, its indices and its value, and no header"
    width = None
    for number, line in enumerate(lines, start=1):
        cells = line.partition("#")[0].split()
        width = width or len(cells)
        if word := next((cell for cell in cells if as_number(cell) is None), None):
            return f"{word[:60]!r} in line {number} is not a number: {form}"
        if cells and len(cells) != width:
            return f"line {number} has {len(cells)} numbers, where the first has {width}: {form}"
    return None


def check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """The name of an array in an .npz file, once its size is known to be what is there."""
    if entry.file_size > DEFLATE * entry.compress_size + SMALL:
        raise ValueError(f"{entry.filename} claims to be larger than its bytes can hold")
    with archive.open(entry) as content:
        description(content, entry.filename, entry.file_size)
    return entry.filename.removesuffix(".npy")


def check_extent(shape: tuple[int, ...], entries: int) -> None:
    """Whether rows and columns are not far more than entries: of a wrong shape they would cost much memory."""
    if sum(shape) > SMALL + SPARSEST * entries:
        raise ValueError(f"it says its shape is {' x '.join(map(str, shape))}, and has at most {entries} entries")


def read_csv(path: Path) -> Table:
    """Numbers separated by commas, semicolons or tabs, after lines of comment that begin with #.

    A first row with text in it, or with an empty first cell above numbers, holds the names of the features. The first
    column is names of samples if it has no number and some text, or its heading is empty or missing. Cells that are
    empty, or NA and the like, are NaN: missing values.
    """
    with naming(path):
        text = path.read_text(encoding="utf-8-sig")
        if "\0" in text:
            raise ValueError("it has zero bytes, which text does not")
        lines = text.split("\n")
        skipped = len(list(takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)))
        rows = numbered_rows(lines[skipped:], skipped, path.suffix.lower() == ".tsv")
    if not text.strip():
        raise ValueError(f"{path.name} is empty")
    header = rows.pop(0)[1] if rows and is_header(rows[0][1]) else None
    if not rows:
        raise ValueError(f"{path.name} has {'a row of names' if header else 'comments'} and no numbers")
    width = len(rows[0][1])
    if header is not None and len(header) not in (width, width - 1):
        raise ValueError(f"{path.name} has {len(header)} names in its first row, and {width} values in the next")
    named = width > 1 and has_names(header, [row[0] for _, row in rows], width)
    for line, row in rows:
        check_cells(f"{path.name}, line {line}", row, width, named)
    X = np.array([[value_of(cell) for cell in row[named:]] for _, row in rows])
    if (empty := np.isnan(X).all(axis=0)).any():
        raise ValueError(
            f"{path.name} has no number in column {named + int(np.argmax(empty)) + 1}: delete it, or the separators at "
            "the ends of lines"
        )
    return Table(X, header[named and len(header) == width :] if header else None)


def numbered_rows(lines: list[str], skipped: int, tabs: bool) -> list[tuple[int, list[str]]]:
    """The cells of each line that has any, with the number of the line in the file."""
    first = lines[0] if lines else ""
    # commas beside semicolons are those of numbers
    delimiter = "\t" if tabs and "\t" in first else ";" if ";" in first else max(",\t", key=first.count)
    reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter)
    rows = [(skipped + reader.line_num, row) for row in reader if row]
    for line, row in rows:
        if wrong := next(filter(DECIMAL_COMMA.fullmatch, row), None):
            raise ValueError(f"{wrong!r} in line {line} has a decimal comma: write {wrong.strip().replace(',', '.')}")
    return rows


def is_header(row: list[str]) -> bool:
    """Whether a first row holds names: a cell that is missing among numbers is no name."""
    return any(map(is_text, row)) or (not row[0].strip() and None not in map(as_number, row[1:]))


def has_names(header: list[str] | None, column: list[str], width: int) -> bool:
    """Whether the first column holds names of samples, not numbers."""
    if header is not None and (len(header) < width or not header[0].strip()):
        return True
    return any(map(is_text, column)) and all(as_number(cell) is None for cell in column)


def check_cells(place: str, row: list[str], width: int, named: bool) -> None:
    """Whether a row is numbers, as many as the first one, but for its name."""
    if len(row) != width:
        raise ValueError(f"{place}: {len(row) - named} values where the first row has {width - named}")
    for number, cell in enumerate(row):
        if is_text(cell) and not (named and number == 0):
            hint = "" if number else "; if the first column holds names, leave its heading empty"
            raise ValueError(f"{place}: {cell[:60]!r} is not a number{hint}")


def as_number(cell: str) -> float | None:
    """The number in a cell; `1_2`, which Python takes for one, is a name."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def value_of(cell: str) -> float:
    """The number in a cell, NaN where it is missing."""
    number = as_number(cell)
    return np.nan if number is None else number


def is_text(cell: str) -> bool:
    return as_number(cell) is None and cell.strip().lower() not in MISSING


def read_mtx(path: Path) -> Table:
    """A Matrix Market file: https://math.nist.gov/MatrixMarket/formats.html. (SciPy's reader trusts what it reads: a
    damaged file ends the process.)"""
    with naming(path):
        banner, _, text = path.read_text(encoding="utf-8-sig", errors="replace").partition("\n")
        _, _, layout, field, symmetry = banner.lower().split()
        sizes, _, body = re.sub(COMMENTS, "", text, count=1).partition("\n")
        if field not in ("real", "double", "integer", "pattern") or symmetry not in REFLECTED:
            raise ValueError(f"{field} {symmetry} matrices are not read")
        *shape, stored = map(int, sizes.split()) if layout == "coordinate" else (*map(int, sizes.split()), -1)
        rows, columns = shape
        if min(shape) < 1 or (symmetry != "general" and rows != columns):
            raise ValueError(f"it says it is {symmetry} and its shape is {rows} x {columns}")
        return Table(MTX[layout](body, (rows, columns), stored, field, REFLECTED[symmetry]))


def coordinates(body: str, shape: tuple[int, int], stored: int, field: str, sign: int) -> sparse.sparray:
    """Row, column and, unless it is 1, value of each entry."""
    check_extent(shape, stored)
    width = 2 if field == "pattern" else 3
    numbers = numbers_in(body, stored * width).reshape(stored, width)
    i, j = places = numbers[:, :2].T.astype(np.int64) - 1
    if not np.array_equal(places + 1, numbers[:, :2].T):
        raise ValueError("its rows and columns are not numbered by whole numbers")
    values = numbers[:, 2] if width == 3 else np.ones(stored)
    if sign:
        off = i != j
        i, j, values = (np.concatenate(pair) for pair in ((i, j[off]), (j, i[off]), (values, sign * values[off])))
    return sparse.coo_array((values, (i, j)), shape=shape).tocsr()


def columns_of(body: str, shape: tuple[int, int], stored: int, field: str, sign: int) -> np.ndarray:
    """All entries column by column; of symmetric matrices those on and below the diagonal, of skew ones below it."""
    if not sign:
        return numbers_in(body, shape[0] * shape[1]).reshape(shape, order="F")
    n, skipped = shape[0], int(sign < 0)
    values = numbers_in(body, n * (n + 1) // 2 - skipped * n)
    column, row = np.triu_indices(n, skipped)
    X = np.zeros(shape)
    X[column, row], X[row, column] = sign * values, values
    return X


def numbers_in(body: str, count: int) -> np.ndarray:
    """So many numbers, separated by blanks."""
    if not 0 <= count <= (len(body) + 1) // 2:
        raise ValueError(f"it says it has {count} numbers, where there are at most {(len(body) + 1) // 2}")
    with warnings.catch_warnings(action="error"):
        numbers = np.fromstring(body, sep=" ") if body.strip() else np.empty(0)
    if numbers.size != count:
        raise ValueError(f"it says it has {count} numbers, and has {numbers.size}")
    return numbers


COMMENTS = re.compile(r"\A(?:[ \t]*(?:%[^\n]*)?\n)*")
REFLECTED = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # the sign of entries that are left out
MTX: dict[str, Callable] = {"coordinate": coordinates, "array": columns_of}
READERS: dict[str, Callable] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".mtx": read_mtx,
    ".tns": read_tns,
}
