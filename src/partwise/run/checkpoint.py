"""A run that can be killed: its state in a file, now and then, and the way back.

Steps never write into arrays (see `Solver.step`), so a snapshot need not copy them: it names them, and a thread of its
own writes them while the run goes on.
"""

from __future__ import annotations

import json
import math
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..data.weighted import Weighted
from ..errors import ArchiveError, warn
from ..fingerprint import fingerprint, functions_in
from ..io.archive import clear_unfinished, destination, kind_of, read_archive, write_archive
from ..io.codec import check_history, decode, encode
from ..problem import Problem
from ..solvers.base import Solver, check_factors, unlike
from . import interrupts
from .course import working_on
from .records import STATUSES, Snapshot


class CheckpointWriter:
    """Writes snapshots of one run to one file."""

    def __init__(self, path: str | Path, interval: float, identity: dict[str, Any]):
        self.path, self.interval, self.identity = Path(path), interval, identity
        check_place(self.path)
        clear_unfinished(self.path)
        self.last = time.perf_counter()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="partwise-checkpoint")
        self.writing: Future | None = None

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(self, *_) -> None:
        self.pool.shutdown(wait=False)  # what is being written will be

    def due(self) -> bool:
        """Whether the interval is over and the last snapshot is on disk."""
        idle = self.writing is None or self.writing.done()
        return idle and time.perf_counter() - self.last >= self.interval

    def keep(self, snapshot: Snapshot) -> None:
        """Begin to write; what went wrong the last time is told now."""
        self.tell()
        arrays: dict[str, np.ndarray] = {}
        try:
            about = {"identity": self.identity, "snapshot": encode(snapshot, arrays)}
        except TypeError as error:
            self.warn(error)
        else:
            self.writing = self.pool.submit(write_archive, self.path, "checkpoint", about, arrays)
        self.last = time.perf_counter()

    def close(self, snapshot: Snapshot | None) -> None:
        """Write the end of the run, and wait for it."""
        if snapshot is not None:
            self.keep(snapshot)
        self.tell()

    def tell(self) -> None:
        if self.writing is not None:
            writing, self.writing = self.writing, None
            while not writing.done():  # a disk may hang
                wait([writing], timeout=0.1)
                if interrupts.came():
                    raise KeyboardInterrupt
            if error := writing.exception():
                self.warn(error)

    def warn(self, error: BaseException) -> None:
        """A disk that is full or gone is no reason to lose the run."""
        warn(f"the checkpoint {self.path} could not be written ({error}); the run goes on without it", RuntimeWarning)


def check_place(path: Path, kind: str = "checkpoint") -> None:
    """Whether a checkpoint can be written there, now rather than an hour later, and nothing is lost by it; `kind`: that
    of older ones, which may be replaced."""
    place = destination(path)
    if not place.parent.is_dir():
        raise ValueError(f"the checkpoint {path} cannot be written: {place.parent} is not a folder")
    if not os.access(place.parent, os.W_OK):
        raise ValueError(f"the checkpoint {path} cannot be written: {place.parent} is not a folder to write in")
    if place.exists() and place.stat().st_size and kind_of(place) != kind:
        raise ValueError(f"the checkpoint {path} would replace another kind of file: name another, or delete it first")


def read_checkpoint(path: str | Path, identity: dict[str, Any], problem: Problem, solver: Solver) -> Snapshot:
    """The snapshot in a file, if it is of the same problem."""
    about, arrays = read_archive(path, "checkpoint")
    check_identity(path, about.get("identity"), identity)
    try:
        snapshot = decode(about.get("snapshot"), arrays)
        check_snapshot(snapshot, problem, solver)
    except Exception as error:
        raise ArchiveError(f"{path} holds no complete snapshot: {error}") from error
    return snapshot


def check_identity(path: str | Path, kept: Any, identity: dict[str, Any]) -> None:
    """Whether a checkpoint is of what is to be done here."""
    if not isinstance(kept, dict):
        raise ArchiveError(f"{path} does not say what it is a checkpoint of")
    differences = [
        f"{name} is {str(kept.get(name))[:200]} there and {identity.get(name)} here"
        for name in {**kept, **identity}
        if kept.get(name) != identity.get(name)
    ]
    if differences:
        raise ArchiveError(f"{path} is a checkpoint of something else: {'; '.join(differences)}")


def check_snapshot(snapshot: Snapshot, problem: Problem, solver: Solver) -> None:
    """Whether what came out of a file can be; the solver checks its state, see `Solver.restore`."""
    if not isinstance(snapshot, Snapshot):
        raise ArchiveError("it is something else")
    check_random(snapshot.random)
    check_factors(snapshot.factors, working_on(problem, solver, snapshot.factors))
    check_history(snapshot.history)
    over, best = len(snapshot.objectives), snapshot.best
    if len(snapshot.iterations) != over or (best is None) != (over == 0) or min(snapshot.iterations, default=0) < 0:
        raise ArchiveError("it does not say how finished starts ended")
    if not 0 <= snapshot.correction < math.inf or any(map(math.isnan, snapshot.objectives)):
        raise ArchiveError("its objectives are not numbers")
    if best is not None:
        check_factors(best.factors, problem)
        check_history(best.history)
        state = solver.init(problem, best.factors, 1.0, np.random.RandomState(0))
        fault = unlike(best.details, solver.details(problem, state), problem, "details")
        if fault or math.isnan(best.fit) or best.status not in STATUSES:
            raise ArchiveError(f"its best start is not valid: {fault or 'how it ended is not known'}")


def check_random(random: tuple) -> None:
    """NumPy takes any place among the random numbers, and reads what is in memory there."""
    kind, key, place, *gauss = random
    fresh: Any = np.random.RandomState(0).get_state()
    if list(map(type, random)) != list(map(type, fresh)) or not 0 <= place <= len(fresh[1]):
        raise ArchiveError("its random state is not valid")
    np.random.RandomState().set_state((kind, key, place, *gauss))


def check_iterations(path: str | Path, snapshot: Snapshot, max_iter: int) -> None:
    """Whether a run with so many iterations for each start would have come to where the snapshot is."""
    if snapshot.max_iter not in (None, max_iter):
        raise ArchiveError(
            f"{path} cannot be resumed with max_iter={max_iter}: a start that is over used up its {snapshot.max_iter} "
            f"iterations, and would have ended elsewhere. Resume with max_iter={snapshot.max_iter}, and go on from the "
            "result with init=result."
        )
    most = max(*snapshot.iterations, snapshot.history[-1].n_iter, 0)
    if most > max_iter:
        raise ArchiveError(f"{path} cannot be resumed with max_iter={max_iter}: {most} iterations of a start are done")


def identity_of(problem: Problem, **settings: Any) -> dict[str, Any]:
    """What must be the same for a run to go on: the data, the problem, and the settings that its course depends on."""
    from .. import __version__  # noqa: PLC0415  # the package imports this module

    arrays: dict[str, np.ndarray] = {}
    structures = encode(problem.structures, arrays)
    units = [None if unit is None else unit.numbers for unit in problem.row_units]
    return {
        "the version of partwise": __version__,
        "the shape of X": " x ".join(map(str, problem.data.shape)),
        "the type of X": str(problem.data.dtype),
        "which entries of X count, and how much,": fingerprint(
            problem.weight_exponent, *units, *counts_of(problem.data)
        ),
        "the contents of X": fingerprint(*entries_of(problem.data).arrays),
        "the memory order of X": "by rows" if problem.data.arrays[0].flags.c_contiguous else "by columns",
        "the rank": problem.rank,
        "the loss": repr(problem.loss),
        "the symmetry": problem.symmetric,
        "the structure of the factors": " and ".join(map(repr, problem.structures)),
        "the exact structure of the factors": fingerprint(json.dumps(structures), *arrays.values()),
        "the code of the projections": fingerprint(*functions_in(problem.structures)),
        **{f"the setting {name}": value for name, value in settings.items()},
    }


def entries_of(data: Data) -> Data:
    """The data without their weights."""
    return data.entries if isinstance(data, Weighted) else data


def counts_of(data: Data) -> tuple:
    """How much the entries count."""
    return (*data.excess.arrays, data.unlisted) if isinstance(data, Weighted) else ()
