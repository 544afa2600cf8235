"""Results, and what else users keep, in a file of their own, exact to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import is_positive_int
from ..data.names import Mode, checked_modes
from ..data.validation import DTYPES, SYMMETRIES
from ..errors import ArchiveError
from ..problem import Factors
from ..result import Result
from ..run.records import STATUSES
from ..solvers.greedy import PathStep
from .archive import read_archive, write_archive
from .codec import check_history, decode, encode

if TYPE_CHECKING:
    from ..selection.selected import RankSelection
    from ..selection.stability import Part, Stability


def kinds() -> dict[str, tuple[type, Callable[[Any], None]]]:
    """What files hold: by the name of its kind, the class, and what checks an instance that came out of a file."""
    from ..selection.selected import RankSelection  # noqa: PLC0415  # it imports this package
    from ..selection.stability import Stability  # noqa: PLC0415

    return {
        "result": (Result, check),
        "stability": (Stability, check_stability),
        "rank selection": (RankSelection, check_selection),
    }


def save(thing: Any, path: str | Path) -> Path:
    """Write a result, or what else is in `kinds`, to one file, arrays and JSON; `load` gives it back, exact to the
    bit."""
    kind, checks = next((name, checks) for name, (cls, checks) in kinds().items() if isinstance(thing, cls))
    arrays: dict[str, np.ndarray] = {}
    tree = encode(thing, arrays)
    checks(decode(tree, arrays.copy()))  # better said now than by `load`
    return write_archive(path, kind, {kind: tree}, arrays)


def load(path: str | Path) -> Any:
    """What `save` of a `Result`, `Stability` or `RankSelection` wrote. The file may come from strangers: nothing in it
    is run.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Result, Stability or RankSelection

    Examples
    --------
    >>> import os, tempfile, partwise as pw
    >>> path = os.path.join(tempfile.mkdtemp(), "model.partwise")
    >>> path = pw.factorize(pw.datasets.make_parts(20, 12, 3, random_state=0).X, 3).save(path)
    >>> pw.load(path).rank
    3
    """
    about, arrays = read_archive(path, *kinds())
    kind = about["kind"]
    cls, checks = kinds()[kind]
    try:
        thing = decode(about.get(kind), arrays)
        if not isinstance(thing, cls):
            raise ArchiveError("it is something else")
        checks(thing)
    except Exception as error:
        raise ArchiveError(f"{path} holds no whole {kind}: {error}") from error
    return thing


def check(result: Result) -> None:
    """Whether what came out of a file can be; that fields are of their types is known."""
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
        "relative error": result.relative_error >= 0,
        "zero components": all(0 <= k < result.rank for k in about.zero_components),
        "entries missing": 0 <= result.n_missing < math.prod(shape),
        "modes": as_stated(result.modes, shape) == result.modes,
        "path": all(isinstance(step, PathStep) and step.of(shape) for step in path),
    }
    check_all(holds)
    repr((result, result.loss, result.structures, result.explained)), str(about)  # nonsense in them shows here


def check_stability(stability: Stability) -> None:
    """The same for what tells how parts come again."""
    result, parts, n_runs = stability.result, stability.parts, len(stability.objectives)
    check(result)
    if stability.consensus is not None:
        check(stability.consensus)
    labels = stability.labels
    holds = {
        "parts": len(parts) == result.rank and all(map(possible, parts)),
        "times they were found": all(0 <= part.reproduced <= stability.n_compared for part in parts),
        "number of runs": 1 <= stability.n_compared <= n_runs <= stability.n_asked,
        "objectives": not any(map(math.isnan, stability.objectives)),
        "status": len(stability.statuses) == n_runs and all(status in STATUSES for status in stability.statuses),
        "labels": labels.dtype == np.int32 and labels.shape in ((n_runs, 0), (n_runs, result.shape[0])),
        "consensus": stability.consensus is None or stability.consensus.shape == result.shape,
    }
    check_all(holds)
    repr(stability), str(stability)


def check_selection(found: RankSelection) -> None:
    """The same for a number of parts."""
    ranks = found.ranks
    if found.result is not None:
        check(found.result)
    if found.stability is not None:
        check_stability(found.stability)
    holds = {
        "ranks": bool(ranks) and all(map(is_positive_int, ranks)) and sorted(set(ranks)) == list(ranks),
        "candidates": set(ranks) <= set(found.candidates) and found.candidates == tuple(sorted(found.candidates)),
        "window": bool(found.window) and set(found.window) <= set(ranks) and found.window[-1] == found.best,
        "picks": {found.rank, found.best, found.near} <= set(ranks),
        "curves": found.curves.ndim == 2 and found.curves.shape[1] == len(ranks) and found.curves.dtype == np.float64,
        "losses": not any(math.isnan(row.held_out) for row in found.table) and not np.isnan(found.curves).any(),
        "status": found.status in ("complete", "interrupted")
        and (found.status != "complete") == (found.result is None),
        "result": found.result is None or (found.result.rank <= found.rank and found.result.shape == found.shape),
    }
    check_all(holds)
    str(found), found.text  # nonsense shows here


def possible(part: Part) -> bool:
    """Whether the numbers of a part are in their ranges; NaN is not."""
    cosines = 0 <= part.least <= part.cosine <= 1
    return cosines and -1 <= part.silhouette <= 1 and 0 <= part.share <= 1


def check_all(holds: dict[str, bool]) -> None:
    for what, right in holds.items():
        if not right:
            raise ArchiveError(f"what it says of the {what} is not valid")


def as_stated(modes, shape: tuple[int, ...]) -> tuple[Mode, ...]:
    """The modes as `factorize` would have them."""
    try:
        return checked_modes(modes, shape)
    except (TypeError, ValueError) as error:
        raise ArchiveError(f"its modes are not valid: {error}") from error


def check_factors(factors: Factors) -> None:
    if len(factors) < 2 or any(A.ndim != 2 or A.dtype not in DTYPES for A in factors):
        raise ArchiveError("its factors are not two matrices, or more")
    if len({(A.shape[1], A.dtype) for A in factors}) != 1 or not all(np.all(np.isfinite(A)) for A in factors):
        raise ArchiveError("its factors are not of as many parts, or not finite")
