"""A tensor as FROSTT has them, http://frostt.io/tensors/file-formats.html: a line for each nonzero, with its indices,
which begin at 1, and its value; # begins a comment. The shape is that of the largest indices."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from .base import Reader, Request, Table, UnreadableError, line_blocks
from .npz import from_entries
from .text import as_number

LARGEST_INDEX = 1 << 53  # whole numbers beyond it are not told apart
FORM = "a .tns file has a line for each entry, its indices and its value, and no header"


def read(path: Path, request: Request) -> Table:
    lines = entries_in(path)
    if not len(lines):
        raise UnreadableError("it has no entries")
    if lines.shape[1] < 3:
        raise UnreadableError(f"its lines have {lines.shape[1]} numbers, where a matrix has two indices and a value")
    indices = lines[:, :-1]
    wrong = (indices < 1) | (indices > LARGEST_INDEX) | (indices != np.floor(indices))  # NaN is not itself
    if wrong.any():
        first = int(np.argmax(wrong.any(axis=1)))
        hint = ": .tns counts from 1, so add 1 to all indices" if 0 in indices[first] else ""
        raise UnreadableError(f"the indices of entry {first + 1} are not whole numbers >= 1{hint}")
    coords = indices.astype(np.int64) - 1
    shape = tuple((coords.max(axis=0) + 1).tolist())
    return Table(from_entries(coords, lines[:, -1].copy(), shape), found="entries by their indices")


def entries_in(path: Path) -> np.ndarray:
    """The numbers of all entries, a row each."""
    parts: list[np.ndarray] = []
    line = 1
    for block in line_blocks(path):
        try:
            part = np.loadtxt(io.BytesIO(block), comments="#", ndmin=2, encoding="utf-8")
        except ValueError as error:
            raise UnreadableError(fault(block, line) or str(error)) from error
        if part.size and parts and part.shape[1] != parts[0].shape[1]:
            raise UnreadableError(f"its lines have {parts[0].shape[1]} and {part.shape[1]} numbers: {FORM}")
        parts += [part] if part.size else []
        line += block.count(b"\n")
    return np.concatenate(parts) if parts else np.empty((0, 0))


def fault(block: bytes, first: int) -> str | None:
    """What is wrong in the first line that is no entry."""
    width = None
    for number, line in enumerate(block.decode("utf-8", "replace").split("\n"), start=first):
        cells = line.partition("#")[0].split()
        width = width or len(cells)
        if word := next((cell for cell in cells if as_number(cell) is None), None):
            return f"{word[:60]!r} in line {number} is not a number: {FORM}"
        if cells and len(cells) != width:
            return f"line {number} has {len(cells)} numbers, where the first has {width}: {FORM}"
    return None


READER = Reader((".tns", ".tns.gz"), read)
