"""Read a file in a process of its own, which damaged ones may crash or hold up for ever: `probe.py LIBRARY FILE`.

This module imports nothing of partwise, so that it starts at once.
"""

import math
import sys
from contextlib import suppress

MOST_MEMORY = 1 << 32  # bytes of this process, beside the file
LARGE = 1 << 28  # bytes of an array of numbers of which only the beginning is read


def hdf5(path: str) -> None:
    import h5py  # noqa: PLC0415  # optional

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(visit)


def visit(name: str, node) -> None:
    """Read what `hdf5.py` may read of a group or an array."""
    dict(node.attrs)
    if hasattr(node, "keys"):
        list(node.keys())
    elif not node.is_virtual and not node.external:
        if node.chunks:
            node.id.get_num_chunks()
        large = math.prod(node.shape) * node.dtype.itemsize > LARGE
        node[tuple(slice(1) for _ in node.shape) if large else ...]


def matlab(path: str) -> None:
    from scipy.io import loadmat, whosmat  # noqa: PLC0415  # slow

    for name, _, kind in whosmat(path):
        if kind not in ("cell", "struct", "object", "function", "opaque"):
            loadmat(path, variable_names=[name])


def main(library: str, path: str) -> None:
    with suppress(ImportError, ValueError, OSError):  # not on all systems
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY + size_of(path),) * 2)
    {"hdf5": hdf5, "matlab": matlab}[library](path)


def size_of(path: str) -> int:
    with open(path, "rb") as file:
        return 4 * file.seek(0, 2)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:
        print(" ".join((str(error) or type(error).__name__).split())[:200])
        sys.exit(1)
