"""HDF5: .h5 and .hdf5, .h5ad of AnnData, .h5 of 10x Genomics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import unpack_from

from .base import Reader, Request, Table, UnreadableError
from .hierarchy import Hierarchy

SIGNATURE = b"\x89HDF\r\n\x1a\n"
HEAP = b"GCOL\x01\0\0\0"  # how a heap of text begins: its version, and three zeros


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
    """The root of a file, once its heaps are known to be sound."""
    import h5py  # noqa: PLC0415  # optional

    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        place = content.find(HEAP)
        while place >= 0:
            check_heap(content, place)
            place = content.find(HEAP, place + len(HEAP))
    with h5py.File(path, "r") as file:
        yield Group(file)


def check_heap(content: mmap, start: int) -> None:
    """Whether the objects in a heap of text lie within it, one after the other, as in
    https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html: the library loops for ever where they do not."""
    end = start + int.from_bytes(content[start + 8 : start + 16], "little")
    place = start + 16
    while place + 16 <= end <= len(content):
        index, size = unpack_from("<H6xQ", content, place)
        place += 16 + -(-size // 8) * 8 if index else max(size, 1)  # free space, index 0, counts its own head
        if index == 0 and size < 16:
            break
    if not place <= end <= len(content) or end - place >= 16:
        raise UnreadableError("it is damaged: a heap of text in it is not sound")


READER = Reader((".h5ad", ".h5", ".hdf5"), read, signature=SIGNATURE, options=("key", "layer"), needs=("h5py",))
