"""Arrays in groups, as HDF5 and Zarr files have them: dense arrays, sparse matrices, and the matrices of AnnData and
10x Genomics with their names. Groups are what has `keys`, `attrs` and items by name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .base import MOST_CHUNKS, Request, Table, UnreadableError, check_extent, check_size, chosen, plain

MOST_LISTED, DEEPEST = 1000, 16  # arrays that are looked for in a file, and groups inside each other
COMPRESSED = {"data", "indices", "indptr"}  # the arrays of a sparse matrix


@dataclass(frozen=True)
class Hierarchy:
    """The root of a file of `stored` bytes."""

    root: Any
    stored: int

    def table(self, request: Request) -> Table:
        annotated = {"X", "obs", "var"} <= set(self.root.keys())
        if request.layer is not None and not annotated:
            raise UnreadableError("it has no layers: these are in files of AnnData, which have X, obs and var")
        if annotated and request.key is None:
            return self.annotated(request.layer)
        if request.key is None and "matrix" in self.root and has_barcodes(self.root["matrix"]):
            return self.cells_and_genes(self.root["matrix"])
        name = chosen(list(self.listed(self.root)), request.key)
        return Table(self.matrix(self.root[name]), found=f"the array {name}")

    def annotated(self, layer: str | None) -> Table:
        """https://anndata.readthedocs.io/en/latest/fileformat-prose.html"""
        layers = list(self.root["layers"].keys()) if "layers" in self.root else []
        if layer is not None and layer not in layers:
            raise UnreadableError(f"it has no layer {layer!r}, it has {', '.join(layers[:20]) or 'none'}")
        X = self.matrix(self.root["X"] if layer is None else self.root["layers"][layer])
        words = "AnnData, " + ("X" if layer is None else f"the layer {layer}")
        words += f" (other layers: {', '.join(layers[:20])})" if layers and layer is None else ""
        return Table(X, self.names(self.root["obs"]), self.names(self.root["var"]), found=words)

    def cells_and_genes(self, group) -> Table:
        """Cell Ranger's filtered_feature_bc_matrix.h5, from version 3 on: genes are rows there, listed by columns,
        which is a matrix of cells as rows, listed by rows."""
        genes, cells = map(int, self.values(group["shape"]))
        X = self.compressed(group, (cells, genes), "csr")
        names = group["features"]["name"]
        words = "a matrix of 10x Genomics, turned: cells are rows now, genes (rows in the file) are columns"
        return Table(X, self.texts(group["barcodes"]), self.texts(names), found=words)

    def listed(self, group, path: str = "") -> Iterator[str]:
        """Names of all arrays of numbers with rows and columns."""
        places = [(group, path)]
        for _ in range(MOST_LISTED):
            if not places:
                return
            node, name = places.pop(0)
            if is_group(node) and not is_compressed(node):
                inside = name.count("/") < DEEPEST
                places += [(node[key], f"{name}/{key}".lstrip("/")) for key in node.keys() if inside]  # noqa: SIM118
            elif is_compressed(node) or (len(node.shape) >= 2 and node.dtype.kind in "biuf"):
                yield name

    def matrix(self, node) -> np.ndarray | sparse.sparray:
        if not is_group(node):
            return self.values(node)
        if not is_compressed(node):
            raise UnreadableError(f"the group {name_of(node)} is no matrix: name an array in it with key (--key)")
        shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
        shape = self.values(node["shape"]) if shape is None and "shape" in node else shape
        if shape is None:
            raise UnreadableError(f"the sparse matrix {name_of(node)} has no shape")
        rows, columns = map(int, shape)
        kind = node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "csr"))
        return self.compressed(node, (rows, columns), str(kind)[:3])

    def compressed(self, group, shape: tuple[int, int], kind: str) -> sparse.sparray:
        """A CSR or CSC matrix by its arrays."""
        if kind not in ("csr", "csc"):
            raise UnreadableError(f"sparse matrices of the format {kind!r} are not read")
        check_extent(shape, math.prod(group["data"].shape))
        arrays = tuple(self.values(group[name]) for name in ("data", "indices", "indptr"))
        return (sparse.csr_array if kind == "csr" else sparse.csc_array)(arrays, shape=shape)

    def values(self, array) -> np.ndarray:
        """All of an array, once its size is known to be sensible."""
        size = array.dtype.itemsize
        check_size(math.prod(array.shape) * size, self.stored)
        chunk = getattr(array, "chunks", None) or array.shape
        check_size(math.prod(chunk) * size, self.stored)
        pieces = math.prod(-(-length // max(piece, 1)) for length, piece in zip(array.shape, chunk, strict=True))
        if pieces > MOST_CHUNKS:
            raise UnreadableError(
                f"the array {name_of(array)} lies in {pieces} pieces, and {MOST_CHUNKS} at most are read"
            )
        if getattr(array, "is_virtual", False) or getattr(array, "external", None):
            raise UnreadableError(f"the array {name_of(array)} lies in other files, which are not read")
        return np.asarray(array[...])

    def names(self, frame) -> list[str] | None:
        """The index of a data frame of AnnData."""
        if not is_group(frame):  # an array of records, in old files
            fields = frame.dtype.names or ()
            return plain(self.values(frame)[fields[0]]) if fields else None
        index = frame.attrs.get("_index", "_index")
        index = index.decode() if isinstance(index, bytes) else str(index)
        return self.texts(frame[index]) if index in frame else None

    def texts(self, node) -> list[str]:
        """An array of text, or of categories, or text with a mask."""
        if not is_group(node):
            return plain(self.values(node.asstr() if hasattr(node, "asstr") and node.dtype.kind == "O" else node))
        if "categories" in node and "codes" in node:
            categories = self.texts(node["categories"])
            return [categories[code] if code >= 0 else "" for code in self.values(node["codes"]).tolist()]
        return self.texts(node["values"])


def is_group(node) -> bool:
    return hasattr(node, "keys")


def is_compressed(node) -> bool:
    return is_group(node) and set(node.keys()) >= COMPRESSED


def has_barcodes(node) -> bool:
    """Whether it is a matrix of 10x Genomics."""
    return is_group(node) and set(node.keys()) >= {*COMPRESSED, "barcodes", "features", "shape"}


def name_of(node) -> str:
    return str(getattr(node, "name", "")).lstrip("/") or "in it"
