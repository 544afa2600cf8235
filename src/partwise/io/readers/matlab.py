"""MATLAB's .mat: one matrix, or the one of several that a key names; dense or sparse, of all versions (7.3 is HDF5)."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy
from scipy import sparse

from . import hdf5
from .base import Reader, Request, Table, UnreadableError, check_apart, check_extent, check_size, chosen
from .hierarchy import Hierarchy, is_group

BYTES = {f"{u}int{8 * size}": size for u in ("", "u") for size in (1, 2, 4, 8)} | {
    "double": 8,
    "single": 4,
    "logical": 1,
}
SPARSE = "sparse"
LISTED = {"data", "ir", "jc"}  # the arrays of a sparse matrix in HDF5: values, rows, where columns begin


def read(path: Path, request: Request) -> Table:
    with path.open("rb") as file:
        beginning = file.read(520)
    if hdf5.SIGNATURE in (beginning[:8], beginning[512:]):
        return read_hdf5(path, request)
    check_apart(path, "matlab")
    variables = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(str(path))}
    numeric = [name for name, (shape, kind) in variables.items() if kind in (*BYTES, SPARSE)]
    matrices = [name for name in numeric if min(variables[name][0]) > 1] or numeric  # numbers and vectors stand beside
    name = chosen(matrices if request.key is None else numeric, request.key, "variable")
    shape, kind = variables[name]
    if kind == SPARSE:
        check_extent(shape, path.stat().st_size)
    else:
        check_size(math.prod(shape) * BYTES[kind], path.stat().st_size)
    return Table(scipy.io.loadmat(str(path), variable_names=[name])[name], found=f"the variable {name}")


def read_hdf5(path: Path, request: Request) -> Table:
    """Arrays lie there with their modes in reverse order."""
    if find_spec("h5py") is None:
        raise UnreadableError('it is of version 7.3, which needs h5py: pip install "partwise[files]"')
    with hdf5.opened(path) as root:
        within = Hierarchy(root, path.stat().st_size)
        name = chosen([name for name in root.keys() if is_matrix(root[name])], request.key, "variable")  # noqa: SIM118
        node = root[name]
        X = columns_of(within, node) if is_group(node) else within.values(node).T
    return Table(X, found=f"the variable {name}")


def is_matrix(node) -> bool:
    if is_group(node):
        return "MATLAB_sparse" in node.attrs and "jc" in node
    kind = node.attrs.get("MATLAB_class", b"double")
    return (kind.decode() if isinstance(kind, bytes) else str(kind)) in BYTES and min(node.shape, default=0) > 1


def columns_of(within: Hierarchy, group) -> sparse.csc_array:
    """A sparse matrix; one of zeros has no values."""
    starts = within.values(group["jc"])
    rows, columns = int(group.attrs["MATLAB_sparse"]), len(starts) - 1
    if not set(group.keys()) >= LISTED:
        check_extent((rows, columns), 0)
        return sparse.csc_array((rows, columns))
    data, places = within.values(group["data"]), within.values(group["ir"])
    check_extent((rows, columns), len(data))
    if max(rows, len(data)) < 2**31 and starts.max(initial=0) < 2**31 and places.max(initial=0) < 2**31:
        places, starts = places.astype(np.int32), starts.astype(np.int32)
    return sparse.csc_array((data, places, starts), shape=(rows, columns))


READER = Reader((".mat",), read, options=("key",))
