"""Files larger than memory: matrices that are read some rows at a time."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..data.names import Mode, matrix_modes
from ..data.places import Source
from .read import naming, reader_of
from .readers import hdf5, zarr
from .readers.base import Request, Table, UnreadableError, check_extent, physical_memory
from .readers.hierarchy import Hierarchy

SHARE = 4  # of the memory of the machine that is used where the user names none
BLOCK = 1 << 26  # bytes of a block, at most
BLOCKS = 12  # that a run may hold at a time: read, at work, in other types, and what is known of missing entries
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
BASE = 400_000_000  # bytes that Python and its libraries take
TALL = 7  # arrays as large as W that a run may hold at a time


class LazyMatrix(Source):
    """A matrix in a file, of which some rows are in memory at a time: what `partwise.factorize` and `partwise.NMF` take
    for X, from `partwise.open`.

    Parameters
    ----------
    rows : object
        What reads some rows of the file at a time; `partwise.open` makes it.
    memory : float
        Bytes to use at most.
    about : Table
        Names and shape, as the file has them.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> import partwise as pw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.npy"
    >>> np.save(path, np.ones((1000, 20)))
    >>> X = pw.open(path)
    >>> X.shape, len(X.heights)
    ((1000, 20), 1)
    """

    def __init__(self, rows: Any, memory: float, about: Table):
        self.rows, self.memory = rows, memory
        self.shape, self.dtype = rows.shape, rows.dtype
        self.row_names, self.column_names, self.found = about.row_names, about.column_names, about.found
        room = max(int(memory) - BASE, int(memory) // 4)
        self.heights = tuple(rows.heights(min(BLOCK, max(room // BLOCKS, 1))))

    def read(self, start, stop, room=None):
        return self.rows.read(start, stop, room)

    def room(self):
        return self.rows.room(max(self.heights))

    @property
    def modes(self) -> tuple[Mode, ...]:
        return matrix_modes(self.row_names, self.column_names)

    def needed(self, rank: int) -> float:
        """Bytes that a factorization of complete data takes, about."""
        block = max(self.heights) * self.rows.row_bytes
        return BASE + BLOCKS / 2 * block + TALL * self.shape[0] * rank * self.dtype.itemsize

    def check_memory(self, rank: int) -> None:
        """Whether W fits into the memory allowed, beside the blocks."""
        if (needed := self.needed(rank)) > self.memory:
            raise ValueError(
                f"rank {rank} needs about {needed / 1e9:.2g} GB for W, the blocks and the program, and "
                f"{self.memory / 1e9:.2g} GB are allowed: allow more, take fewer parts, or spread the work with "
                "Dask (docs/large.md)"
            )

    @property
    def blocks_in_words(self) -> str:
        """How many."""
        return "1 block" if len(self.heights) == 1 else f"{len(self.heights)} blocks"

    def __repr__(self):
        size = f"{self.shape[0]} x {self.shape[1]} of {self.dtype}"
        return f"<matrix in a file: {size}, in {self.blocks_in_words} ({self.found})>"


def open_lazily(
    path: str | Path, *, key: str | None = None, layer: str | None = None, memory: str | float | None = None
) -> LazyMatrix:
    """Open a matrix in a file that need not fit into memory: .npy, .zarr, .h5 and .h5ad, dense, or sparse and listed by
    rows (CSR). It is read in blocks of rows, in every iteration again.

    Parameters
    ----------
    path : str or Path
    key : str, optional
        Name of the array, where a file holds several.
    layer : str, optional
        Layer to read in place of X from AnnData.
    memory : str such as "2GB", or number of bytes, optional
        What a factorization may take, about; it sets the size of the blocks. None: a quarter of that of the machine.

    Returns
    -------
    LazyMatrix
        What `factorize` and `NMF` take for X.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, partwise as pw
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "large.npy"
    >>> np.save(path, np.outer(np.arange(1.0, 101), [1.0, 2.0, 3.0]))
    >>> X = pw.open(path, memory="2GB")
    >>> result = pw.factorize(X, 1)
    >>> result.W.shape, round(result.relative_error, 6)
    ((100, 1), 0.0)
    """
    path, request = Path(path), Request(key, layer)
    path, reader = reader_of(path)
    opener = next((o for suffixes, o in OPENERS.items() if reader.suffixes[0] in suffixes), None)
    if opener is None:
        known = ", ".join(suffix for suffixes in OPENERS for suffix in suffixes)
        raise ValueError(f"{path.name}: only {known} files are read in blocks: convert it, or use partwise.read")
    allowed = physical_memory() / SHARE if memory is None else bytes_of(memory)
    with naming(path):
        table = opener(path, request)
        rows: Any = table.X
        if len(rows.shape) != 2 or rows.dtype.kind not in "biuf" or 0 in rows.shape:
            raise UnreadableError(f"it holds an array of shape {rows.shape} and type {rows.dtype}, not a matrix")
        return LazyMatrix(rows, allowed, table)


def bytes_of(memory: str | float) -> float:
    """From "2GB" and the like."""
    found = re.fullmatch(r"([\d.]+)\s*([A-Za-z]*)", str(memory).strip())
    with suppress(ValueError, KeyError):
        if found and (number := float(found[1]) * UNITS[found[2].upper()]) > 0 and math.isfinite(number):
            return number
    raise ValueError(f"memory must be a size such as '2GB' or '500MB', got {memory!r}")


def even_heights(n_rows: int, height: int) -> list[int]:
    height = max(1, min(height, n_rows))
    return [min(height, n_rows - start) for start in range(0, n_rows, height)]


@dataclass(frozen=True)
class FlatRows:
    """The rows of an array that lie one after the other in a file of NumPy's."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype
    offset: int

    @property
    def row_bytes(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def heights(self, size: int) -> list[int]:
        return even_heights(self.shape[0], size // self.row_bytes)

    def room(self, height: int) -> np.ndarray:
        return np.empty((height, self.shape[1]), self.dtype)

    def read(self, start: int, stop: int, room: np.ndarray | None) -> np.ndarray:
        out = self.room(stop - start) if room is None else room[: stop - start]
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset + start * self.row_bytes)
            left = out.reshape(-1).view(np.uint8).data
            while left.nbytes:
                count = file.readinto(left)
                if not count:
                    raise OSError(f"{self.path.name} ends early")
                left = left[count:]
        return out


@dataclass(frozen=True)
class ArrayRows:
    """The rows of an array of HDF5 or Zarr."""

    array: Any

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype)

    @property
    def row_bytes(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def heights(self, size: int) -> list[int]:
        """Whole chunks, where they are small enough: those cut in two would be read twice."""
        height, chunk = size // self.row_bytes, (getattr(self.array, "chunks", None) or (1,))[0]
        return even_heights(self.shape[0], height // chunk * chunk or height)

    def room(self, height: int) -> None:
        return None

    def read(self, start: int, stop: int, room: None) -> np.ndarray:
        return np.asarray(self.array[start:stop])


@dataclass(frozen=True)
class CompressedRows:
    """The rows of a CSR matrix whose arrays are in HDF5 or Zarr; where rows begin is kept in memory."""

    group: Any
    shape: tuple[int, int]
    indptr: np.ndarray

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.group["data"].dtype)

    @property
    def row_bytes(self) -> int:
        entry = self.dtype.itemsize + np.dtype(self.group["indices"].dtype).itemsize
        return 8 + int(self.indptr[-1]) * entry // self.shape[0]

    def heights(self, size: int) -> list[int]:
        """As many rows as have so many bytes together."""
        entry = self.dtype.itemsize + np.dtype(self.group["indices"].dtype).itemsize
        found, start = [], 0
        while start < self.shape[0]:
            stop = int(np.searchsorted(self.indptr, self.indptr[start] + size // entry, side="right")) - 1
            stop = min(max(stop, start + 1), self.shape[0])
            found.append(stop - start)
            start = stop
        return found

    def room(self, height: int) -> None:
        return None

    def read(self, start: int, stop: int, room: None) -> csr_array:
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        data, indices = (np.asarray(self.group[name][first:last]) for name in ("data", "indices"))
        return csr_array((data, indices, self.indptr[start : stop + 1] - first), shape=(stop - start, self.shape[1]))


class LazyHierarchy(Hierarchy):
    """Matrices of HDF5 and Zarr, without their entries."""

    def matrix(self, node) -> Any:
        return ArrayRows(node) if not hasattr(node, "keys") else super().matrix(node)

    def compressed(self, group, shape, kind) -> Any:
        if kind != "csr":
            raise UnreadableError("its sparse matrix is listed by columns (CSC): save it listed by rows (CSR)")
        check_extent(shape, math.prod(group["data"].shape))
        indptr = self.values(group["indptr"]).astype(np.int64)
        (n_entries,) = group["data"].shape
        if len(indptr) != shape[0] + 1 or indptr[0] or indptr[-1] != n_entries or np.any(np.diff(indptr) < 0):
            raise UnreadableError("its sparse matrix does not say where rows begin")
        return CompressedRows(group, shape, indptr)


def open_npy(path: Path, request: Request) -> Table:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 2 and not array.flags.c_contiguous:
        raise UnreadableError("it is stored by columns: save it by rows, with numpy.ascontiguousarray")
    rows: Any = FlatRows(path, array.shape, array.dtype, array.offset)
    return Table(rows, found="an array")


def open_hdf5(path: Path, request: Request) -> Table:
    import h5py  # noqa: PLC0415  # optional

    file = h5py.File(path, "r")  # stays open as long as its arrays are used
    return LazyHierarchy(hdf5.Group(file), path.stat().st_size).table(request)


def open_zarr(path: Path, request: Request) -> Table:
    if not zarr.is_node(path):
        raise UnreadableError("it is no Zarr folder: it has no zarr.json, .zarray or .zgroup")
    root, stored = zarr.node(path, path), sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if hasattr(root, "keys"):
        return LazyHierarchy(root, stored).table(request)
    rows: Any = ArrayRows(root)
    return Table(rows, found="an array")


OPENERS = {(".npy",): open_npy, (".h5ad", ".h5", ".hdf5"): open_hdf5, (".zarr",): open_zarr}
