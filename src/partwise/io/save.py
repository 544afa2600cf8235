"""Results in a file of their own, exact to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..certificate import Certificate
from ..errors import ArchiveError
from ..losses import Loss
from ..result import Result
from ..validation import DTYPES, SYMMETRIES
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
        check(result)
    except Exception as error:
        raise ArchiveError(f"{path} holds no whole result: {error}") from error
    return result


def check(result: Result) -> None:
    """Whether what came out of a file is what its fields say."""
    W, H = result.factors
    for A in (W, H):
        if A.ndim != 2 or A.dtype not in DTYPES or A.shape[1] != W.shape[1]:
            raise ArchiveError("its factors are not two matrices of as many parts")
    if not result.history or not isinstance(result.certificate, Certificate) or not isinstance(result.loss, Loss):
        raise ArchiveError("its history, certificate or loss is not one")
    if not all(isinstance(text, str) for text in (result.status, result.solver, result.reason)):
        raise ArchiveError("its status, solver or reason is not text")
    if result.symmetric not in SYMMETRIES:
        raise ArchiveError("its symmetry is not one")
    repr(result), str(result.certificate)
