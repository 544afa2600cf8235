"""A file of arrays and one JSON text: what results and checkpoints are kept in.

The file is a ZIP archive without compression: `partwise.json` and one `.npy` for each array, so any tool can open it.
It is safe to read from strangers: nothing in it is run, no array is larger than the file, and whatever is wrong with it
ends in an `ArchiveError` that says so.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ..checks import is_positive_int
from ..errors import ArchiveError

FORMAT = 1  # of the file as a whole; raised when older readers could not make sense of it, and see `codec.FORMER`
TEXT = "partwise.json"
LONGEST_HEADER = 10_000  # bytes of an array's description
MACHINE = f"{zlib.crc32(platform.node().encode()):08x}"  # in the names of unfinished files


def write_archive(path: str | Path, kind: str, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Path:
    """Write a file in one step: whoever looks sees the old file or the new one, never a part of it."""
    from .. import __version__  # noqa: PLC0415  # the package imports this module

    path = Path(path)
    text = json.dumps({"format": FORMAT, "version": __version__, "kind": kind, **about}, allow_nan=False)
    with replacing(path) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(TEXT, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                npy.write_array(entry, np.asarray(array), allow_pickle=False)
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside this one to write to, which takes its place once it is whole; on a full disk nothing is left."""
    place = destination(path)
    unfinished = place.with_name(f"{place.name}.{MACHINE}-{os.getpid()}-{threading.get_ident()}.unfinished")
    try:
        yield unfinished
        with open(unfinished, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, place)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError):
            why = error.strerror or str(error)
            raise OSError(error.errno, why, str(path)) from error  # the name that the user knows
        raise


def destination(path: Path) -> Path:
    """Where a file of this name is: links lead there. What is there must be a file, not a device or a folder."""
    try:
        place = path.resolve()
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} leads nowhere: {error}") from error
    if place.exists() and not place.is_file():
        raise ValueError(f"{path} is {'a folder' if place.is_dir() else 'no regular file'}: name a file")
    return place


def clear_unfinished(path: Path) -> None:
    """Delete what writers of this file left that were killed: files of exactly the names we give, whose process, on
    this machine, is no more."""
    place = destination(path)
    ours = re.compile(re.escape(f"{place.name}.{MACHINE}-") + r"(\d+)-\d+\.unfinished")
    with suppress(OSError):
        for name in os.listdir(place.parent):
            found = ours.fullmatch(name)
            if found and not is_running(int(found[1])):
                (place.parent / name).unlink()


def is_running(pid: int) -> bool:
    if os.name == "nt":  # there a signal would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is somebody else's
        return True
    return True


def kind_of(path: Path) -> str | None:
    """What a file of ours holds, by its own words; None where it is not ours."""
    try:
        with zipfile.ZipFile(path) as archive:
            return str(read_text(archive, path)["kind"])
    except Exception:  # it may be anything
        return None


def read_archive(path: str | Path, *kinds: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON text and the arrays of a file of one of these kinds."""
    path = Path(path)
    if not path.is_file():
        raise ArchiveError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            about = read_text(archive, path)
            names = [name.removesuffix(".npy") for name in archive.namelist() if name != TEXT]
            arrays = {name: read_array(archive, f"{name}.npy") for name in names}
    except ArchiveError as error:
        raise ArchiveError(f"{path} cannot be used: {error}") from error
    except Exception as error:  # broken and hostile files make the libraries raise all kinds of things
        raise ArchiveError(f"{path} is not a whole partwise file: {error or type(error).__name__}") from error
    check_header(path, about, kinds)
    return about, arrays


def check_header(path: Path, about: Any, kinds: tuple[str, ...]) -> None:
    """Whether this version can make sense of a file, and it is of a kind that is wanted."""
    version: Any = about.get("format") if isinstance(about, dict) else None
    if not is_positive_int(version):
        raise ArchiveError(f"{path} has file format {version!r}; this version of partwise reads 1 to {FORMAT}")
    if version > FORMAT:
        raise ArchiveError(
            f"{path} has file format {version}, of a newer version of partwise ({str(about.get('version'))[:20]}); "
            f"this one reads 1 to {FORMAT}: upgrade partwise"
        )
    if about.get("kind") not in kinds:
        raise ArchiveError(f"{path} holds a {str(about.get('kind'))[:60]}, not a {' or a '.join(kinds)}")


def read_text(archive: zipfile.ZipFile, path: Path) -> Any:
    """What the JSON text says, after a look at what the archive claims to hold."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if TEXT not in names or len(set(names)) != len(names):
        raise ArchiveError(f"it is a ZIP archive, but not one that partwise wrote (no single {TEXT} in it)")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ArchiveError("it is compressed, which partwise files never are")
    if sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise ArchiveError("its entries claim to be larger than the file")
    return json.loads(archive.read(TEXT).decode("utf-8"))


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
