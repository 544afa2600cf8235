"""Matrices from files: .npy, .npz, .csv, .tsv, .mtx."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.io import mmread


@dataclass(frozen=True)
class Table:
    """A matrix and the names of its columns, where the file has any."""

    X: np.ndarray | sparse.sparray
    feature_names: list[str] | None = None


def read(path: str | Path, key: str | None = None) -> Table:
    """The matrix in a file, by its ending; `key` names the array in an .npz with several."""
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
    return reader(path, key) if reader is read_npz else reader(path)


@contextmanager
def naming(path: Path):
    """Errors of the libraries that read files, with the name of the file."""
    try:
        yield
    except (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name} is damaged, or does not hold a matrix of numbers: {error}") from error


def read_npy(path: Path) -> Table:
    with naming(path):
        return Table(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, key: str | None) -> Table:
    with naming(path):
        archive = np.load(path, allow_pickle=False)
    with archive:
        names = list(archive)
        if key is None and {"format", "shape", "data"} <= set(names):
            with naming(path):
                return Table(sparse.load_npz(path))
        if key is None and len(names) > 1:
            raise ValueError(f"{path.name} holds several arrays: name one with --key ({', '.join(names)})")
        if key is not None and key not in names:
            raise ValueError(f"{path.name} has no array {key!r}, it has {', '.join(names)}")
        if not names:
            raise ValueError(f"{path.name} holds no array")
        with naming(path):
            return Table(archive[key or names[0]])


def read_csv(path: Path) -> Table:
    """Numbers separated by commas, semicolons or tabs. A first row that is not all numbers holds the names of the
    features; the first column is names of samples if it is not all numbers, or if its heading is empty."""
    with naming(path), path.open(newline="", encoding="utf-8-sig") as file:
        text = file.read()
    if not text.strip():
        raise ValueError(f"{path.name} is empty")
    first = text.splitlines()[0]
    delimiter = max(",;\t", key=first.count)
    rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    header = None if all(map(is_number, rows[0])) else rows.pop(0)
    if not rows:
        raise ValueError(f"{path.name} has a row of names and no numbers")
    unnamed = header is not None and not header[0].strip()
    named_rows = len(rows[0]) > 1 and (unnamed or not all(is_number(row[0]) for row in rows))
    body = [row[named_rows:] for row in rows]
    for line, row in enumerate(body, start=1 + (header is not None)):
        if len(row) != len(body[0]):
            raise ValueError(f"{path.name}, line {line}: {len(row)} values where the first row has {len(body[0])}")
        for cell in row:
            if not is_number(cell):
                raise ValueError(f"{path.name}, line {line}: {cell!r} is not a number")
    names = header[-len(body[0]) :] if header else None
    return Table(np.array(body, dtype=np.float64), names)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_mtx(path: Path) -> Table:
    with naming(path):
        X = mmread(path)
    return Table(sparse.csr_array(X) if sparse.issparse(X) else X)


READERS: dict[str, Callable] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".mtx": read_mtx,
}
