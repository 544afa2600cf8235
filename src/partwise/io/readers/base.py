"""What all readers of files share: what they return, what they are asked, and limits for damaged and hostile files."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired, run
from typing import IO, Any

import numpy as np
from scipy import sparse

from ...data.names import Mode, matrix_modes
from ...data.tensor import SparseTensor

EXPANSION, FREE = 200, 1 << 29  # bytes that a file may hold: so many times its size, and so many in any case
SMALL, SPARSEST = 1 << 20, 1000  # rows and columns that sparse data may have in any case, and for each of their entries
MOST_CHUNKS = 1_000_000  # of one array
SLOW_START, SLOWEST = 30, 1 << 23  # seconds, and bytes a second, in which a file is read at least
BLOCK = 1 << 24  # bytes of text that are worked on at a time


class UnreadableError(ValueError):
    """A file that cannot be read, with a sentence that says why; `read` puts the name of the file before it."""


@dataclass(frozen=True)
class Table:
    """A matrix or tensor out of a file, with what the file says of it.

    Attributes
    ----------
    X : ndarray, sparse array or SparseTensor
        The numbers.
    row_names, column_names : list of str or None
        Of a matrix; None where the file has none.
    modes : tuple of Mode
        Names of the modes and labels along them, as `factorize(..., modes=...)` takes them; empty where unknown. A
        `Table` itself can be passed in place of X, with these.
    image_shape : tuple of int or None
        Height and width where rows are images.
    found : str
        A few words on what was read, and how.
    doubts : tuple of str
        What may have been misunderstood, in sentences.

    Examples
    --------
    >>> import os, tempfile, partwise as pw
    >>> path = os.path.join(tempfile.mkdtemp(), "counts.csv")
    >>> with open(path, "w") as file:
    ...     print("sample,red,green", "a,1,2", "b,3,4", sep="\\n", file=file)
    >>> table = pw.read(path)
    >>> table.X.tolist(), table.row_names, table.column_names
    ([[1.0, 2.0], [3.0, 4.0]], ['a', 'b'], ['red', 'green'])
    >>> [mode.labels for mode in pw.factorize(table, 1).modes]
    [('a', 'b'), ('red', 'green')]
    """

    X: np.ndarray | sparse.sparray | SparseTensor
    row_names: list[str] | None = None
    column_names: list[str] | None = None
    modes: tuple[Mode, ...] = ()
    image_shape: tuple[int, int] | None = None
    found: str = ""
    doubts: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.modes:
            object.__setattr__(self, "modes", matrix_modes(self.row_names, self.column_names))


@dataclass(frozen=True)
class Request:
    """What the user says of a file; None: find out."""

    key: str | None = None
    layer: str | None = None
    separator: str | None = None
    decimal: str | None = None
    header: bool | None = None
    index: bool | None = None

    @property
    def stated(self) -> list[str]:
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]


@dataclass(frozen=True)
class Reader:
    """A format: the endings of its files, how they begin, which options of a `Request` it takes, and the modules it
    needs beyond those of partwise itself."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, Request], Table]
    signature: bytes = b""
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def check_size(size: int, stored: int) -> None:
    """Whether so many bytes may come out of a file of `stored` bytes, and fit into memory."""
    if size > FREE + EXPANSION * stored:
        raise UnreadableError(
            f"it says it holds {size / 2**30:.3g} GiB, in a file of {stored} bytes; what grows more than {EXPANSION} "
            "times is not read"
        )
    if size > (most := physical_memory()):
        raise UnreadableError(
            f"it holds {size / 2**30:.3g} GiB, and this machine has {most / 2**30:.3g} GiB of memory; save it sparse, "
            "as float32, or a part of it"
        )


def physical_memory() -> float:
    """Bytes; infinite where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def check_apart(path: Path, library: str) -> None:
    """Whether another process can read the file: some libraries crash or hang on damaged ones, which would end this
    one."""
    probe = [sys.executable, "-P", str(Path(__file__).with_name("probe.py")), library, str(path)]
    longest = SLOW_START + path.stat().st_size / SLOWEST
    try:
        tried = run(probe, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, timeout=longest, check=False)
    except TimeoutExpired as error:
        raise UnreadableError(
            f"it is damaged: the library that reads it had not finished in {longest:.0f} s"
        ) from error
    if tried.returncode:
        why = tried.stdout.decode("utf-8", "replace").strip() or "the library that reads it crashes"
        raise UnreadableError(f"it is damaged: {why}")


def check_extent(shape: tuple[int, ...], entries: int) -> None:
    """Whether rows and columns are not far more than entries: of a wrong shape they would cost much memory."""
    if sum(shape) > SMALL + SPARSEST * entries:
        raise UnreadableError(f"it says its shape is {' x '.join(map(str, shape))}, and has at most {entries} entries")


def chosen(names: list[str], key: str | None, what: str = "array") -> str:
    """The one array that there is, or the one that the user names."""
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if not names:
        raise UnreadableError(f"it holds no {what} of numbers with rows and columns")
    if key is None and len(names) > 1:
        raise UnreadableError(f"it holds several {what}s: name one with key, on the command line --key ({shown})")
    if key is not None and key not in names:
        raise UnreadableError(f"it has no {what} {key!r}, it has {shown}")
    return names[0] if key is None else key


def plain(names: Any) -> list[str]:
    """Names as text, from an array of text or bytes."""
    return [name.decode("utf-8") if isinstance(name, bytes) else str(name) for name in names]


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked where its name ends in .gz."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def check_unpacked(path: Path) -> None:
    """Whether a file is not too large once unpacked: known before any work on it."""
    stored, total = path.stat().st_size, 0
    check_size(stored, stored)
    if path.suffix.lower() == ".gz":
        with opened(path) as stream:
            while chunk := stream.read(BLOCK):
                total += len(chunk)
                check_size(total, stored)


def line_blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """The text of a file in blocks that end with a line, its lines ended by newlines alone and its byte order mark left
    out."""
    total, rest = 0, [b""]
    check_unpacked(path)
    with opened(path) as stream:
        while chunk := stream.read(size):
            chunk = chunk.removeprefix(b"\xef\xbb\xbf") if total == 0 else chunk
            total += len(chunk)
            if b"\0" in chunk:
                raise UnreadableError("it has zero bytes, which UTF-8 text does not: save it as UTF-8 text")
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield unix_lines(b"".join([*rest, chunk[:cut]]))
            rest = [chunk[cut:]] if cut else [*rest, chunk]
    if tail := b"".join(rest):
        yield unix_lines(tail)


def unix_lines(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        shown = text[max(error.start - 20, 0) : error.end].decode("utf-8", "replace")
        raise UnreadableError(f"it is not UTF-8 text, at {shown!r}: save it as UTF-8") from error
