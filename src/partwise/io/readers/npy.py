"""NumPy's .npy: one array. Nothing in it is unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Reader, Request, Table


def read(path: Path, request: Request) -> Table:
    return Table(np.load(path, mmap_mode="r", allow_pickle=False), found="an array")


READER = Reader((".npy",), read, signature=b"\x93NUMPY")
