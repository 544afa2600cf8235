"""A run that can be killed: its state in a file, now and then, and the way back.

Steps never write into arrays (see `Solver.step`), so a snapshot need not copy them: it names them, and a thread of its
own writes them while the run goes on.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np

from . import interrupts
from .errors import ArchiveError, warn
from .init import Init
from .io.archive import read_archive, write_archive
from .io.codec import decode, encode
from .problem import Problem
from .solve import Snapshot
from .solvers.base import check_factors


class Keeper:
    """Writes snapshots of one run to one file."""

    def __init__(self, path: str | Path, interval: float, identity: dict[str, Any]):
        self.path, self.interval, self.identity = Path(path), interval, identity
        for unfinished in self.path.parent.glob(f"{self.path.name}.*.unfinished"):  # of runs that were killed
            unfinished.unlink(missing_ok=True)
        self.last = time.perf_counter()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="partwise-checkpoint")
        self.writing: Future | None = None

    def __enter__(self) -> Keeper:
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


def read_checkpoint(path: str | Path, identity: dict[str, Any], problem: Problem) -> Snapshot:
    """The snapshot in a file, if it is of the same problem."""
    about, arrays = read_archive(path, "checkpoint")
    kept = about.get("identity")
    if not isinstance(kept, dict):
        raise ArchiveError(f"{path} does not say what it is a checkpoint of")
    differences = [
        f"{name} is {kept.get(name)} there and {identity.get(name)} here"
        for name in {**kept, **identity}
        if kept.get(name) != identity.get(name)
    ]
    if differences:
        raise ArchiveError(f"{path} is a checkpoint of something else: {'; '.join(differences)}")
    try:
        snapshot = decode(about.get("snapshot"), arrays)
        check_snapshot(snapshot, problem)
    except Exception as error:
        raise ArchiveError(f"{path} holds no whole snapshot: {error}") from error
    return snapshot


def check_snapshot(snapshot: Snapshot, problem: Problem) -> None:
    """Whether what came out of a file is what its fields say; the solver checks its state, see `Solver.restore`."""
    if not isinstance(snapshot, Snapshot):
        raise ArchiveError("it is something else")
    check_factors(snapshot.factors, problem)
    if snapshot.best is not None:
        check_factors(snapshot.best.factors, problem)
        math.isfinite(snapshot.best.history[-1].objective)
    np.random.RandomState().set_state(snapshot.random)
    if not all(
        isinstance(f, float) for f in (*snapshot.objectives, snapshot.correction, snapshot.history[-1].objective)
    ):
        raise ArchiveError("its objectives are not numbers")


def identity_of(problem: Problem, **settings: Any) -> dict[str, Any]:
    """What must be the same for a run to go on: the data, the problem, and the settings that its course depends on."""
    from . import __version__  # noqa: PLC0415  # the package imports this module

    arrays: dict[str, np.ndarray] = {}
    structures = encode(problem.structures, arrays)
    return {
        "the version of partwise": __version__,
        "the shape of X": " x ".join(map(str, problem.data.shape)),
        "the type of X": str(problem.data.dtype),
        "the contents of X": fingerprint(*problem.data.parts),
        "the memory order of X": "by rows" if problem.data.parts[0].flags.c_contiguous else "by columns",
        "the rank": problem.rank,
        "the loss": repr(problem.loss),
        "the symmetry": problem.symmetric,
        "the structure of the factors": " and ".join(map(repr, problem.structures)),
        "the exact structure of the factors": fingerprint(json.dumps(structures).encode(), *arrays.values()),
        **{f"the setting {name}": value for name, value in settings.items()},
    }


def name_of(start: Init) -> str:
    """The name of a start, with a fingerprint of arrays that the user gave."""
    given = [A for A in getattr(start, "factors", ()) if A is not None]
    return f"{start.name} {fingerprint(*given)}" if given else start.name


def fingerprint(*parts) -> str:
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        total.update(part if isinstance(part, bytes) else np.ravel(part, order="K").data)
    return total.hexdigest()
