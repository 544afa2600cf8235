"""Tables as text: .csv and .tsv, plain or as .gz.

Numbers separated by commas, semicolons or tabs, after lines of comment that begin with #. A first row with text in it,
or with an empty first cell above numbers, holds names of columns. The first column is names of rows if it has no number
and some text, or its heading is empty or missing. Cells that are empty, or NA and the like, are NaN: missing values.
The layout is found in the beginning of the file; then blocks of lines are parsed at once, and cell by cell where that
fails, which gives the sentence that says what is wrong.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .base import Reader, Request, Table, UnreadableError, decoded, line_blocks
from .numbers import MISSING, numbers_in

SAMPLE = 1 << 20  # characters in which the layout is looked for
SPARSE, SPARSE_FROM = 0.1, 100_000  # share of nonzeros below which a table of so many cells is kept sparse
FEW, MANY = 5, 8  # numbers that may be in even steps, or in order, by chance
IDENTIFIERS = {"id", "ids", "index", "idx", "no", "nr", "row", "unnamed: 0", "sample", "sample_id", "cell", "cell_id"}
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+(?:e[+-]?\d+)?\s*", re.I)
DECIMAL_POINT = re.compile(r"\s*[+-]?\d+\.\d+(?:e[+-]?\d+)?\s*", re.I)
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "blanks"}


@dataclass(frozen=True)
class Layout:
    """How cells lie in the text: `width` cells a line, the first of them a name where rows are `named`."""

    separator: str
    decimal: str
    header: list[str] | None
    named: bool
    width: int

    @property
    def columns(self) -> list[str] | None:
        """Names of the columns; above names of rows there may be a heading."""
        return self.header[self.named and len(self.header) == self.width :] if self.header else None

    def __str__(self) -> str:
        words = [f"separated by {WORDS.get(self.separator, repr(self.separator))}"]
        words += ["decimal commas"] if self.decimal == "," else []
        words += ["a row of names"] if self.header else []
        return ", ".join([*words, "a column of names"] if self.named else words)


def read(path: Path, request: Request) -> Table:
    blocks = whole_rows(line_blocks(path))
    first = next(blocks, b"")
    if not first.strip():
        raise UnreadableError("it is empty")
    layout, skipped = layout_of(first, request, ".tsv" in path.suffixes[-2:])
    line, names, parts, seen = skipped + 1, [], [], np.zeros(layout.width - layout.named, bool)
    for block in chain([first.split(b"\n", skipped)[-1]], blocks):
        of_rows, values = parsed(block, layout, line)
        line += block.count(b"\n")
        names += of_rows
        seen |= ~np.isnan(values).all(axis=0)
        parts.append(thinned(values))
    if not seen.all():
        raise UnreadableError(
            f"it has no number in column {layout.named + int(np.argmin(seen)) + 1}: delete it, or the separators at "
            "the ends of lines"
        )
    X = joined(parts)
    words = f"text {layout}" + (", kept sparse: most cells are 0" if sparse.issparse(X) else "")
    return Table(
        X, names if layout.named else None, layout.columns, found=words, doubts=tuple(doubts(X, layout, request))
    )


def whole_rows(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end outside of quotes."""
    rest: list[bytes] = []
    quotes = 0
    for block in blocks:
        rest.append(block)
        quotes += block.count(b'"')
        if quotes % 2 == 0:
            yield b"".join(rest)
            rest, quotes = [], 0
    if rest:
        yield b"".join(rest)


def layout_of(block: bytes, request: Request, tabs: bool) -> tuple[Layout, int]:
    """The layout, and the number of lines before the first row of numbers."""
    skipped = 0
    for text in block.split(b"\n"):
        if text.strip() and not text.lstrip().startswith(b"#"):
            break
        skipped += 1
    else:
        raise UnreadableError("it has comments and no numbers")
    separator = request.separator or found_separator(decoded(text), tabs)
    reader = csv.reader(io.StringIO(decoded(block.split(b"\n", skipped)[-1])), delimiter=separator)
    rows = sample(reader)
    is_named = is_header(rows[0][1]) or is_axis([row for _, row in rows]) if request.header is None else request.header
    lines, header = rows.pop(0) if is_named else (0, None)
    if not rows:
        raise UnreadableError("it has a row of names and no numbers")
    width = len(rows[0][1])
    if header is not None and len(header) not in (width, width - 1):
        raise UnreadableError(f"it has {len(header)} names in its first row, and {width} values in the next")
    cells = [row for _, row in rows]
    named = has_names(header, [row[0] for row in cells], width) if request.index is None else request.index
    decimal = request.decimal or found_decimal(cells, separator)
    return Layout(separator, decimal, header, named and width > 1, width), skipped + lines


def sample(reader) -> list[tuple[int, list[str]]]:
    """The first rows that have cells, with the number of the line where each ends."""
    rows: list[tuple[int, list[str]]] = []
    size = 0
    for row in reader:
        if row:
            rows.append((reader.line_num, row))
            size += sum(map(len, row)) + len(row)
        if size > SAMPLE and len(rows) > 2:
            break
    return rows


def found_separator(line: str, tabs: bool) -> str:
    """Commas beside semicolons are those of numbers."""
    return "\t" if tabs and "\t" in line else ";" if ";" in line else max(",\t", key=line.count)


def found_decimal(rows: list[list[str]], separator: str) -> str:
    """A comma where some cells have one as in 1,5, and none a point as in 1.5."""
    if separator == ",":
        return "."
    commas = any(DECIMAL_COMMA.fullmatch(cell) for row in rows for cell in row)
    return "," if commas and not any(DECIMAL_POINT.fullmatch(cell) for row in rows for cell in row) else "."


def parsed(block: bytes, layout: Layout, line: int) -> tuple[list[str], np.ndarray]:
    """Names of rows, where there are any, and numbers of a block that begins with this line of the file."""
    return at_once(block, layout) or cell_by_cell(block, layout, line)


def at_once(block: bytes, layout: Layout) -> tuple[list[str], np.ndarray] | None:
    """None where some line does not have `width` cells, or some cell is neither a number nor missing."""
    separator, decimal, width = layout.separator.encode(), layout.decimal.encode(), layout.width - layout.named
    names, cells = split_names(block, separator) if layout.named else ([], without_blank_lines(block))
    if any(b'"' in name and not is_quoted(name) for name in names):
        return None
    if b'"' in cells or (decimal != b"." and b"." in cells):
        return None
    marks = np.frombuffer(cells, np.uint8)
    ends = marks[(marks == ord("\n")) | (marks == ord(separator))] == ord("\n")
    if ends.size % width or np.count_nonzero(ends) * width != ends.size or not ends[width - 1 :: width].all():
        return None
    values = numbers_in(cells.translate(bytes.maketrans(separator + decimal, b"\n.")), ends.size)
    return None if values is None else ([decoded(name).strip('"') for name in names], values.reshape(-1, width))


def split_names(block: bytes, separator: bytes) -> tuple[list[bytes], bytes]:
    """The first cells of all lines that are not blank, and the other cells."""
    pairs = [line.partition(separator)[::2] for line in block.split(b"\n") if line]
    return [name for name, _ in pairs], b"\n".join([*(rest for _, rest in pairs), b""])


def without_blank_lines(block: bytes) -> bytes:
    """The same lines, each with its end."""
    if b"\n\n" in block or block.startswith(b"\n"):
        block = b"\n".join(line for line in block.split(b"\n") if line)
    return block if block.endswith(b"\n") or not block else block + b"\n"


def is_quoted(name: bytes) -> bool:
    return name.count(b'"') == 2 and name.startswith(b'"') and name.endswith(b'"')


def cell_by_cell(block: bytes, layout: Layout, line: int) -> tuple[list[str], np.ndarray]:
    names, values = [], []
    reader = csv.reader(io.StringIO(decoded(block)), delimiter=layout.separator)
    for row in filter(None, reader):
        place = f"line {line - 1 + reader.line_num}"
        if len(row) != layout.width:
            raise UnreadableError(
                f"{place}: {len(row) - layout.named} values where the first row has {layout.width - layout.named}"
            )
        names += row[:1] if layout.named else []
        values.append(
            [value_of(cell, layout, place, number) for number, cell in enumerate(row) if number >= layout.named]
        )
    return names, np.array(values).reshape(len(values), layout.width - layout.named)


def value_of(cell: str, layout: Layout, place: str, number: int) -> float:
    """The number in a cell, NaN where it is missing."""
    if layout.decimal == "," and DECIMAL_COMMA.fullmatch(cell):
        return float(cell.replace(",", "."))
    if not is_text(cell) and not (layout.decimal == "," and DECIMAL_POINT.fullmatch(cell)):
        value = as_number(cell)
        return np.nan if value is None else value
    if DECIMAL_COMMA.fullmatch(cell) or DECIMAL_POINT.fullmatch(cell):
        raise UnreadableError(
            f"{place}: {cell!r} has a decimal {'comma' if ',' in cell else 'point'}, and other cells do not: write all "
            "of them in the same way, or say which it is with decimal, on the command line --decimal"
        )
    heading = layout.columns[number - layout.named][:60] if layout.columns else number + 1
    hint = "leave out columns of text" if number else "if the first column holds names, pass index=True (--index)"
    raise UnreadableError(f"{place}: {cell[:60]!r} in column {heading!r} is not a number; {hint}")


def is_header(row: list[str]) -> bool:
    """Whether a first row holds names: a cell that is missing among numbers is no name."""
    return any(is_text(cell) and not DECIMAL_COMMA.fullmatch(cell) for cell in row) or (
        not row[0].strip() and None not in map(as_number, row[1:])
    )


def is_axis(rows: list[list[str]]) -> bool:
    """Whether a first row is numbers that rise or fall throughout, as wavelengths do, and no other row is."""
    first, *others = ([as_number(cell) for cell in row] for row in rows)
    return bool(others) and goes_one_way(first) and not any(map(goes_one_way, others))


def goes_one_way(numbers: list[float | None]) -> bool:
    """Whether several numbers rise throughout, or fall."""
    if len(numbers) < MANY or None in numbers:
        return False
    steps = np.diff(np.array(numbers, dtype=np.float64))
    return bool(np.all(steps > 0) or np.all(steps < 0))


def has_names(header: list[str] | None, column: list[str], width: int) -> bool:
    """Whether the first column holds names of rows, not numbers."""
    if header is not None and (len(header) < width or not header[0].strip()):
        return True
    texts = [is_text(cell) and not DECIMAL_COMMA.fullmatch(cell) for cell in column]
    return any(texts) and all(as_number(cell) is None for cell in column)


def as_number(cell: str) -> float | None:
    """The number in a cell; `1_2`, which Python takes for one, is a name."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def is_text(cell: str) -> bool:
    return as_number(cell) is None and cell.strip().lower() not in MISSING


def thinned(values: np.ndarray) -> np.ndarray | sparse.csr_array:
    """The same numbers, sparse where few are not 0."""
    return sparse.csr_array(values) if np.count_nonzero(values) < SPARSE * values.size else values


def joined(parts: list[Any]) -> np.ndarray | sparse.csr_array:
    """All rows; sparse where all parts are, and there are many cells."""
    size = sum(part.shape[0] * part.shape[1] for part in parts)
    if size >= SPARSE_FROM and all(map(sparse.issparse, parts)):
        return sparse.vstack(parts, format="csr")
    return np.concatenate([part.toarray() if sparse.issparse(part) else part for part in parts])


def doubts(X: Any, layout: Layout, request: Request) -> Iterator[str]:
    """Whether numbers that are read as data look like names."""
    if request.header is None and layout.header and not is_header(layout.header):
        yield (
            "its first row is numbers that rise or fall throughout, unlike those below, and is taken for names of "
            "columns, such as wavelengths: pass header=False (--no-header) if it is data, header=True (--header) if not"
        )
    first_rows = (X[:2].toarray() if sparse.issparse(X) else X[:2]) if request.header is None else X[:0]
    if not layout.header and len(first_rows) == 2 and in_steps(first_rows[0]) and not in_steps(first_rows[1]):
        yield (
            "its first row is numbers in even steps, and looks like a header; it is read as data: pass header=True "
            "(--header) if it holds names, header=False (--no-header) if not"
        )
    if layout.named or request.index is not None or min(X.shape) < 2:
        return
    column = X[:, [0]].toarray()[:, 0] if sparse.issparse(X) else X[:, 0]
    heading = layout.header[0].strip().lower() if layout.header else ""
    whole = bool(np.all(column == np.floor(column))) and np.unique(column).size == column.size
    if (heading in IDENTIFIERS and whole) or (column[0] in (0, 1) and whole and in_steps(column, 1.0)):
        yield (
            "its first column is whole numbers that look like identifiers of rows; it is read as data: pass index=True "
            "(--index) if it holds names, index=False (--no-index) if not"
        )


def in_steps(values: np.ndarray, step: float | None = None) -> bool:
    """Whether several numbers rise in even steps."""
    if values.size < FEW:
        return False
    steps = np.diff(values)
    return bool(steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-9) and step in (None, steps[0]))


OPTIONS = ("separator", "decimal", "header", "index")
READER = Reader((".csv", ".csv.gz", ".tsv", ".tsv.gz"), read, options=OPTIONS)
