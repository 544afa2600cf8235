"""Results in a file of their own, exact to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import ArchiveError
from ..result import Result
from .archive import read_archive, write_archive
from .codec import decode, encode


def save(result: Result, path: str | Path) -> Path:
    """Write a result to one file, arrays and JSON; `load` gives it back, exact to the bit."""
    arrays: dict[str, np.ndarray] = {}
    return write_archive(path, "result", {"result": encode(result, arrays)}, arrays)


def load(path: str | Path) -> Result:
    """A result that `Result.save` wrote. The file may come from strangers: nothing in it is run."""
    about, arrays = read_archive(path, "result")
    try:
        result = decode(about.get("result"), arrays)
        whole = isinstance(result, Result) and len({A.shape[1] for A in result.factors}) == 1 and result.history
        repr(result), str(result.certificate)
    except (AttributeError, TypeError, ValueError, IndexError, KeyError) as error:
        raise ArchiveError(f"{path} holds no whole result: {error}") from error
    if not whole:
        raise ArchiveError(f"{path} holds no whole result")
    return result
