"""A file of arrays and one JSON text: what results and checkpoints are kept in.

The file is a ZIP archive without compression: `partwise.json` and one `.npy` for each array, so any tool can open it.
It is safe to read from strangers: nothing in it is run, no array is larger than the file, and whatever is wrong with it
ends in an `ArchiveError` that says so.
"""

from __future__ import annotations

import json
import math
import os
import threading
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ..errors import ArchiveError

FORMAT = 1  # of the file as a whole; raised when older readers could not make sense of it
TEXT = "partwise.json"
LONGEST_HEADER = 10_000  # bytes of an array's description


def write_archive(path: str | Path, kind: str, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
    """Write a file in one step: whoever looks sees the old file or the new one, never a part of it."""
    path = Path(path)
    text = json.dumps({"format": FORMAT, "kind": kind, **about}, allow_nan=False)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(TEXT, text)
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    npy.write_array(entry, np.asarray(array), allow_pickle=False)
        with open(unfinished, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    return path


def read_archive(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON text and the arrays of a file of this kind."""
    path = Path(path)
    if not path.is_file():
        raise ArchiveError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = checked_entries(archive, path.stat().st_size)
            about = json.loads(archive.read(TEXT).decode("utf-8"))
            arrays = {name: read_array(archive, f"{name}.npy") for name in entries}
    except ArchiveError as error:
        raise ArchiveError(f"{path} cannot be used: {error}") from error
    except Exception as error:  # broken and hostile files make the libraries raise all kinds of things
        raise ArchiveError(f"{path} is not a whole partwise file: {error or type(error).__name__}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        version = about.get("format") if isinstance(about, dict) else None
        raise ArchiveError(f"{path} has file format {version!r}; this version of partwise reads {FORMAT}")
    if about.get("kind") != kind:
        raise ArchiveError(f"{path} holds a {about.get('kind')}, not a {kind}")
    return about, arrays


def checked_entries(archive: zipfile.ZipFile, size: int) -> list[str]:
    """Names of the arrays, after a look at what the archive claims to hold."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if TEXT not in names or len(set(names)) != len(names):
        raise ArchiveError(f"it is a ZIP archive, but not one that partwise wrote (no single {TEXT} in it)")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ArchiveError("it is compressed, which partwise files never are")
    if sum(entry.file_size for entry in entries) > size:
        raise ArchiveError("its entries claim to be larger than the file")
    return [name.removesuffix(".npy") for name in names if name != TEXT]


def read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array, once its description fits the bytes that are there."""
    with archive.open(name) as entry:
        shape, fortran, dtype = description(entry, name, archive.getinfo(name).file_size)
        if dtype.kind not in "biuf":
            raise ArchiveError(f"the array {name} is of type {dtype}, not of numbers")
        data = entry.read()
    array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    return array.copy(order="K")


def description(entry: IO[bytes], name: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of the array in a `.npy` file of so many bytes, if they fit these."""
    version = npy.read_magic(entry)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ArchiveError(f"the array {name} is of an unknown version {version}")
    shape, fortran, dtype = readers[version](entry, max_header_size=LONGEST_HEADER)
    if dtype.hasobject:
        raise ArchiveError(f"the array {name} is of type {dtype}, not of numbers")
    left = size - entry.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != left:
        raise ArchiveError(f"the array {name} says it has shape {shape}, which does not fit its {left} bytes")
    return shape, fortran, dtype
