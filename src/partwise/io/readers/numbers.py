"""Many numbers out of text, at once: by Arrow's parser where it is installed, by NumPy's else."""

from __future__ import annotations

import re
import sys
import warnings
from importlib.util import find_spec

import numpy as np

MISSING = ("", "na", "n/a", "null", "none", "-", "?", ".")  # cells of values that are missing, as NaN is
MISSING_LINE = re.compile(rb"(?im)^(?:na|n/a|null|none|-|\?|\.|)$")
NULLS = [*{form for word in (*MISSING, "nan") for form in (word, word.upper(), word.capitalize())}, "NaN"]


def numbers_in(lines: bytes, count: int | None = None) -> np.ndarray | None:
    """The numbers in so many lines, one each, NaN where they are missing, blank lines too; without a count, in all
    lines that are not blank. None where that is not what these lines hold."""
    found = (from_arrow if find_spec("pyarrow") else from_numpy)(lines, count)
    return found if found is not None and count in (None, found.size) else None


def from_arrow(lines: bytes, count: int | None) -> np.ndarray | None:
    import pyarrow as pa  # noqa: PLC0415  # optional
    from pyarrow import csv  # noqa: PLC0415

    if not lines.strip():
        return np.empty(0) if count is None else np.full(lines.count(b"\n"), np.nan)
    try:
        table = csv.read_csv(
            pa.BufferReader(lines),
            csv.ReadOptions(column_names=["x"], block_size=min(len(lines) + 1, 1 << 30), use_threads=False),
            csv.ParseOptions(delimiter="\x1f", quote_char=False, ignore_empty_lines=count is None),
            csv.ConvertOptions(column_types={"x": pa.float64()}, null_values=NULLS, strings_can_be_null=True),
        )
    except pa.ArrowException:
        return None
    return table.column(0).to_numpy()


def release_memory() -> None:
    """Give back what Arrow freed and keeps for later."""
    if pa := sys.modules.get("pyarrow"):
        pa.default_memory_pool().release_unused()


def from_numpy(lines: bytes, count: int | None) -> np.ndarray | None:
    """Missing numbers are looked for where there are too few."""
    if count is not None and any(blank in lines for blank in (b" ", b"\t", b"\v", b"\f")):  # taken for ends of lines
        return None
    found = words_of(lines)
    if count is None or (found is not None and found.size == count):
        return found
    return words_of(MISSING_LINE.sub(b"nan", lines.removesuffix(b"\n")))


def words_of(lines: bytes) -> np.ndarray | None:
    """Numbers with blanks or line ends between them."""
    if not lines.strip():
        return np.empty(0)
    try:
        with warnings.catch_warnings(action="error"):
            return np.fromstring(lines, sep="\n")
    except (ValueError, DeprecationWarning):
        return None
