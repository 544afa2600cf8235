"""A run that can be killed: its state in a file, now and then, and the way back.

Steps never write into arrays (see `Solver.step`), so a snapshot costs nothing: it names them, and a thread of its own
writes them while the run goes on.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .data import Data
from .errors import ArchiveError
from .io.archive import read_archive, write_archive
from .io.codec import decode, encode
from .problem import Problem
from .solve import Snapshot


class Keeper:
    """Writes snapshots of one run to one file."""

    def __init__(self, path: str | Path, interval: float, identity: dict[str, Any]):
        self.path, self.interval, self.identity = Path(path), interval, identity
        self.last = time.perf_counter()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="partwise-checkpoint")
        self.writing: Future | None = None

    def due(self) -> bool:
        """Whether the interval is over and the last snapshot is on disk."""
        idle = self.writing is None or self.writing.done()
        return idle and time.perf_counter() - self.last >= self.interval

    def keep(self, snapshot: Snapshot) -> None:
        """Begin to write; what went wrong the last time is told now."""
        self.tell()
        arrays: dict[str, np.ndarray] = {}
        about = {"identity": self.identity, "snapshot": encode(snapshot, arrays)}
        self.writing = self.pool.submit(write_archive, self.path, "checkpoint", about, arrays)
        self.last = time.perf_counter()

    def close(self, snapshot: Snapshot | None) -> None:
        """Write the end of the run, and wait for it."""
        if snapshot is not None:
            self.keep(snapshot)
        self.pool.shutdown(wait=True)
        self.tell()

    def tell(self) -> None:
        """A disk that is full or gone is no reason to lose the run."""
        if self.writing is None:
            return
        error = self.writing.exception()
        self.writing = None
        if isinstance(error, OSError):
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error}); the run goes on without it",
                RuntimeWarning,
                stacklevel=2,
            )
        elif error is not None:
            raise error


def read_checkpoint(path: str | Path, identity: dict[str, Any]) -> Snapshot:
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
    snapshot = decode(about.get("snapshot"), arrays)
    if not isinstance(snapshot, Snapshot):
        raise ArchiveError(f"{path} holds no snapshot")
    return snapshot


def identity_of(problem: Problem, **settings: Any) -> dict[str, Any]:
    """What must be the same for a run to go on: the data, the problem, and the settings that its course depends on."""
    from . import __version__  # noqa: PLC0415  # the package imports this module

    arrays: dict[str, np.ndarray] = {}
    structures = encode(problem.structures, arrays)
    return {
        "the version of partwise": __version__,
        "the shape of X": " x ".join(map(str, problem.data.shape)),
        "the type of X": str(problem.data.dtype),
        "the contents of X": digest(problem.data),
        "the rank": problem.rank,
        "the loss": repr(problem.loss),
        "the structure of the factors": " and ".join(map(repr, problem.structures)),
        "the exact structure of the factors": fingerprint(json.dumps(structures).encode(), *arrays.values()),
        **{f"the setting {name}": value for name, value in settings.items()},
    }


def digest(data: Data) -> str:
    return fingerprint(*(np.ascontiguousarray(part) for part in data.parts))


def fingerprint(*parts) -> str:
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        total.update(memoryview(part).cast("B") if isinstance(part, bytes) else np.ravel(part, order="K").data)
    return total.hexdigest()
