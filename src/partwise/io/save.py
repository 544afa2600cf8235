"""Results in a file of their own, exact to the bit."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from ..data.names import Mode, checked_modes
from ..data.validation import DTYPES, SYMMETRIES
from ..errors import ArchiveError
from ..problem import Factors
from ..result import Result
from ..run.records import STATUSES
from ..solvers.greedy import PathStep
from .archive import read_archive, write_archive
from .codec import check_history, decode, encode


def save(result: Result, path: str | Path) -> Path:
    """Write a result to one file, arrays and JSON; `load` gives it back, exact to the bit."""
    arrays: dict[str, np.ndarray] = {}
    tree = encode(result, arrays)
    check(decode(tree, arrays.copy()))  # better said now than by `load`
    return write_archive(path, "result", {"result": tree}, arrays)


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
    """Whether what came out of a file can be; that fields are of their types is known."""
    if not isinstance(result, Result):
        raise ArchiveError("it is something else")
    check_factors(result.factors)
    check_history(result.history)
    about, shape = result.certificate, result.shape
    numbers = result.objective, result.fit, result.relative_error, result.data_norm, about.stationarity, about.tol
    path = result.path if isinstance(result.path, tuple) else (None,)
    holds = {
        "symmetry": result.symmetric in SYMMETRIES and (not result.symmetric or shape == shape[:1] * len(shape)),
        "status": result.status in STATUSES,
        "structures": len(result.structures) == len(shape),
        "objectives": len(result.objectives) > 0 and not any(map(math.isnan, (*numbers, *result.objectives))),
        "certificate": len(about.violations) == len(shape) and not any(map(math.isnan, about.violations)),
        "tolerance": 0 <= about.tol < math.inf,
        "zero components": all(0 <= k < result.rank for k in about.zero_components),
        "entries missing": 0 <= result.n_missing < math.prod(shape),
        "modes": as_stated(result.modes, shape) == result.modes,
        "path": all(isinstance(step, PathStep) and step.of(shape) for step in path),
    }
    for what, right in holds.items():
        if not right:
            raise ArchiveError(f"what it says of the {what} cannot be")
    repr((result, result.loss, result.structures)), str(about)  # nonsense in them shows here


def as_stated(modes, shape: tuple[int, ...]) -> tuple[Mode, ...]:
    """The modes as `factorize` would have them."""
    try:
        return checked_modes(modes, shape)
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"what it says of the modes cannot be: {error}") from error


def check_factors(factors: Factors) -> None:
    if len(factors) < 2 or any(A.ndim != 2 or A.dtype not in DTYPES for A in factors):
        raise ArchiveError("its factors are not two matrices, or more")
    if len({(A.shape[1], A.dtype) for A in factors}) != 1 or not all(np.all(np.isfinite(A)) for A in factors):
        raise ArchiveError("its factors are not of as many parts, or not finite")
