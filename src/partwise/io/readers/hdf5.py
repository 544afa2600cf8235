"""HDF5: .h5 and .hdf5, .h5ad of AnnData, .h5 of 10x Genomics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .base import Reader, Request, Table, UnreadableError, check_apart
from .hierarchy import Hierarchy

SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Group:
    """A group of an HDF5 file that leads to no other file."""

    def __init__(self, group):
        self.group, self.attrs, self.name = group, group.attrs, group.name

    def keys(self) -> list[str]:
        return list(self.group.keys())

    def __contains__(self, name: str) -> bool:
        return name in self.group

    def __getitem__(self, name: str):
        import h5py  # noqa: PLC0415  # optional

        node = self.group
        for part in name.strip("/").split("/"):
            if isinstance(node.get(part, getlink=True), h5py.ExternalLink):
                raise UnreadableError(f"{name} is a link to another file, which is not read")
            node = node[part]
        return Group(node) if isinstance(node, h5py.Group) else node


def read(path: Path, request: Request) -> Table:
    with opened(path) as root:
        return Hierarchy(root, path.stat().st_size).table(request)


@contextmanager
def opened(path: Path) -> Iterator[Group]:
    """The root of a file that another process could read."""
    import h5py  # noqa: PLC0415  # optional

    check_apart(path, "hdf5")
    with h5py.File(path, "r") as file:
        yield Group(file)


READER = Reader((".h5ad", ".h5", ".hdf5"), read, signature=SIGNATURE, options=("key", "layer"), needs=("h5py",))
