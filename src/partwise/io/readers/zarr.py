"""Zarr folders, .zarr, of version 2 and 3: one array, or groups of them, such as AnnData writes. Only codecs that are
known to do nothing but unpack numbers are let in: one of Zarr's unpickles, and that runs code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .base import Reader, Request, Table, UnreadableError
from .hierarchy import Hierarchy, is_group

CODECS = {
    *(
        "blosc",
        "zstd",
        "zlib",
        "gzip",
        "lz4",
        "bz2",
        "lzma",
        "shuffle",
        "delta",
        "bytes",
        "transpose",
        "crc32c",
        "crc32",
    ),
    *("adler32", "sharding_indexed", "vlen-utf8", "vlen-bytes", "bitround", "packbits", "fixedscaleoffset", "default"),
}
LARGEST_METADATA = 1 << 22  # bytes


class Folder:
    """A group: a folder, whose folders are groups and arrays."""

    def __init__(self, path: Path, root: Path):
        self.path, self.root, self.name = path, root, path.relative_to(root).as_posix()
        about = described(path)
        self.attrs = about.get("attributes", {}) if about else described(path, ".zattrs")

    def keys(self) -> list[str]:
        return sorted(item.name for item in self.path.iterdir() if item.is_dir() and is_node(item))

    def __contains__(self, name: str) -> bool:
        return is_node(self.path / name)

    def __getitem__(self, name: str):
        path = self.path / name
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise UnreadableError(f"{name} leads out of the folder")
        if not is_node(path):
            raise UnreadableError(f"it has no array or group {name!r}, it has {', '.join(self.keys()[:20]) or 'none'}")
        return node(path, self.root)


def is_node(path: Path) -> bool:
    return any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def node(path: Path, root: Path):
    """A group or an array."""
    about = described(path) or described(path, ".zarray")
    if about.get("node_type") == "group" or not about:
        return Folder(path, root)
    import zarr  # noqa: PLC0415  # optional

    steps = [about.get(name) for name in ("codecs", "compressor", "filters")]
    if unknown := sorted(set(codecs(steps)) - CODECS):
        raise UnreadableError(f"its array {path.name} is packed by {', '.join(unknown)[:200]}, which is not read")
    return zarr.open_array(str(path), mode="r", zarr_format=3 if "node_type" in about else 2)


def described(path: Path, name: str = "zarr.json") -> dict[str, Any]:
    """What a file of metadata says; nothing where there is none."""
    file = path / name
    if not file.is_file():
        return {}
    if file.stat().st_size > LARGEST_METADATA:
        raise UnreadableError(f"its {name} is larger than {LARGEST_METADATA} bytes")
    about = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(about, dict):
        raise UnreadableError(f"its {name} says nothing of an array")
    return about


def codecs(steps: Any) -> Iterator[str]:
    """Names of all codecs, those inside of others too."""
    if isinstance(steps, dict):
        yield from (str(steps[word]).removeprefix("numcodecs.") for word in ("id", "name") if word in steps)
        yield from codecs([value for value in steps.values() if isinstance(value, dict | list)])
    for step in steps if isinstance(steps, list) else []:
        yield from codecs(step) if isinstance(step, dict | list) else ([step] if isinstance(step, str) else [])


def read(path: Path, request: Request) -> Table:
    if not is_node(path):
        raise UnreadableError("it is no Zarr folder: it has no zarr.json, .zarray or .zgroup")
    stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    root = node(path, path)
    if is_group(root):
        return Hierarchy(root, stored).table(request)
    if request.stated:
        raise UnreadableError(f"it is one array: leave out {' and '.join(request.stated)}")
    return Table(Hierarchy(root, stored).values(root), found="an array")


READER = Reader((".zarr",), read, options=("key", "layer"), needs=("zarr",))
