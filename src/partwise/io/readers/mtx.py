"""Matrix Market, https://math.nist.gov/MatrixMarket/formats.html, plain or as .gz. (SciPy's reader trusts what it
reads: a damaged file ends the process.)

Names come from files beside it: of 10x Genomics, `matrix.mtx` with `features.tsv` or `genes.tsv` and `barcodes.tsv`,
which has genes as rows and is turned, so that cells are rows; or `x.mtx_rows` and `x.mtx_cols`, a name a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .base import Reader, Request, Table, UnreadableError, check_extent, check_size, decoded, line_blocks
from .numbers import numbers_in

BANNER = "%%MatrixMarket matrix coordinate real general"
REFLECTED = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # the sign of entries that are left out
FIELDS = ("real", "double", "integer", "pattern")
BLANKS = bytes.maketrans(b" \t\v\f", b"\n\n\n\n")


def read(path: Path, request: Request) -> Table:
    blocks = line_blocks(path)
    (layout, field, symmetry), sizes, body = head(next(blocks, b""))
    if field not in FIELDS or symmetry not in REFLECTED or layout not in ("coordinate", "array"):
        raise UnreadableError(f"{layout} {field} {symmetry} matrices are not read")
    rows, columns, *stored = sizes
    if min(rows, columns) < 1 or (symmetry != "general" and rows != columns):
        raise UnreadableError(f"it says it is {symmetry} and its shape is {rows} x {columns}")
    numbers = Numbers(chain([body], blocks), path.stat().st_size)
    if layout == "array":
        X = all_entries(numbers, (rows, columns), REFLECTED[symmetry])
    else:
        X = listed_entries(numbers, (rows, columns), stored[0], field, REFLECTED[symmetry])
    return with_names(X, path)


def head(block: bytes) -> tuple[list[str], list[int], bytes]:
    """Words of the banner, sizes, and the rest of the first block."""
    banner, _, rest = block.partition(b"\n")
    words = banner.decode("utf-8", "replace").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket":
        raise UnreadableError(f"it does not begin as a Matrix Market file does, with a line such as {BANNER!r}")
    line = b""
    while rest and not line.strip():
        line, _, rest = rest.partition(b"\n")
        line = b"" if line.lstrip().startswith(b"%") else line
    try:
        sizes = [int(word) for word in line.split()]
    except ValueError:
        sizes = []
    if len(sizes) != 3 - (words[2] == "array"):
        raise UnreadableError("it has no line with its size: rows, columns and, where entries are listed, their number")
    return words[2:], sizes, rest


@dataclass(frozen=True)
class Numbers:
    """The numbers in blocks of text, out of a file of `stored` bytes."""

    blocks: Iterator[bytes]
    stored: int

    def check(self, count: int, width: int) -> None:
        """Whether so many entries of so many numbers can be there: each takes a digit and a blank."""
        if count < 0:
            raise UnreadableError(f"it says it has {count} entries")
        check_size(2 * width * count, self.stored)

    def fill(self, count: int, out: tuple[np.ndarray, ...]) -> None:
        """Put `count` entries into the arrays, a number each: no more memory than these take, and a block."""
        place, rest, width = 0, np.empty(0), len(out)
        for found in map(numbers_of, self.blocks):
            values = np.concatenate([rest, found]) if rest.size else found
            entries = values[: values.size - values.size % width].reshape(-1, width)
            after = place + len(entries)
            if after > count:
                raise UnreadableError(f"it says it has {count} entries, and has more")
            for array, column in zip(out, entries.T, strict=True):
                array[place:after] = column
                if array.dtype.kind == "i" and not np.array_equal(array[place:after], column):
                    raise UnreadableError("its rows and columns are not numbered by whole numbers within its size")
            place, rest = after, values[entries.size :]
        if place != count or rest.size:
            raise UnreadableError(f"it says it has {count} entries, and has {place}")


def numbers_of(block: bytes) -> np.ndarray:
    values = numbers_in(block.translate(BLANKS))
    if values is None:
        raise UnreadableError("some of its entries are not numbers")
    return values


def listed_entries(numbers: Numbers, shape: tuple[int, int], count: int, field: str, sign: int) -> sparse.sparray:
    """Row, column and, unless it is 1, value of each entry."""
    check_extent(shape, count)
    numbers.check(count, width := 2 if field == "pattern" else 3)
    index: Any = np.int32 if max(shape) < 2**31 else np.int64
    i, j, values = np.empty(max(count, 0), index), np.empty(max(count, 0), index), np.ones(max(count, 0))
    numbers.fill(count, (i, j, values)[:width])
    i -= 1
    j -= 1
    for places, size in ((i, shape[0]), (j, shape[1])):
        if count and (places.min() < 0 or places.max() >= size):
            raise UnreadableError(f"its entries are not all within its size, {shape[0]} x {shape[1]}")
    if sign:
        off = i != j
        i, j, values = (np.concatenate(pair) for pair in ((i, j[off]), (j, i[off]), (values, sign * values[off])))
    return compressed(i, j, values, shape)


def compressed(i: np.ndarray, j: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> sparse.sparray:
    """CSC or CSR without a copy of the entries where they are listed by columns or rows, as they mostly are."""
    for make, major, minor, size in ((sparse.csc_array, j, i, shape[1]), (sparse.csr_array, i, j, shape[0])):
        if np.all(major[1:] >= major[:-1]):
            ends = np.searchsorted(major, np.arange(size + 1, dtype=major.dtype))
            index = np.int64 if values.size > np.iinfo(minor.dtype).max else minor.dtype  # or SciPy widens all indices
            X = make((values, minor, ends.astype(index)), shape=shape)
            X.sum_duplicates()
            return X
    return sparse.coo_array((values, (i, j)), shape=shape).tocsr()


def all_entries(numbers: Numbers, shape: tuple[int, int], sign: int) -> np.ndarray:
    """All entries column by column; of symmetric matrices those on and below the diagonal, of skew ones below it."""
    n, below = shape[0], int(sign < 0)
    count = n * (n + 1) // 2 - below * n if sign else shape[0] * shape[1]
    numbers.check(count, 1)
    values = np.empty(count)
    numbers.fill(count, (values,))
    if not sign:
        return values.reshape(shape, order="F")
    column, row = np.triu_indices(n, below)
    X = np.zeros(shape)
    X[column, row], X[row, column] = sign * values, values
    return X


def with_names(X: np.ndarray | sparse.sparray, path: Path) -> Table:
    """With names out of files beside this one."""
    what = "dense" if isinstance(X, np.ndarray) else "sparse"
    stem, _, after = path.name.partition("matrix.mtx")
    genes = next(filter(None, (beside(path, f"{stem}{name}.tsv") for name in ("features", "genes"))), None)
    cells = beside(path, f"{stem}barcodes.tsv")
    if genes and cells and after.lower() in ("", ".gz"):
        words = f"a {what} matrix of 10x Genomics, turned: cells are rows now, genes (rows in the file) are columns"
        return Table(X.T, [row[0] for row in cells_of(cells)], gene_names(cells_of(genes)), found=words)
    plain_name = path.name.removesuffix(".gz")
    rows, columns = (beside(path, f"{plain_name}_{kind}") for kind in ("rows", "cols"))
    of_rows, of_columns = ([row[-1] for row in cells_of(file)] if file else None for file in (rows, columns))
    return Table(X, of_rows, of_columns, found=f"a {what} matrix" + (", names beside it" if rows or columns else ""))


def beside(path: Path, name: str) -> Path | None:
    return next((file for file in (path.with_name(name), path.with_name(name + ".gz")) if file.is_file()), None)


def cells_of(path: Path) -> list[list[str]]:
    """The lines of a file, at tabs."""
    text = decoded(b"".join(line_blocks(path)))
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


def gene_names(rows: list[list[str]]) -> list[str]:
    """Symbols, which stand second, with the identifier where several genes share one."""
    symbols = [row[1] if len(row) > 1 else row[0] for row in rows]
    counts = Counter(symbols)
    return [name if counts[name] == 1 else f"{name} ({row[0]})" for name, row in zip(symbols, rows, strict=True)]


def in_folder(folder: Path) -> Path | None:
    """The matrix in a folder of 10x Genomics."""
    return beside(folder / "x", "matrix.mtx")


READER = Reader((".mtx", ".mtx.gz"), read)
