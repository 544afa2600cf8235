"""Many fits as one piece of work: side by side, with a bar, kept in a file, and ended by Ctrl-C without losing any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib

from ..data.validation import checked_checkpoint
from ..errors import ArchiveError, warn
from ..io.archive import clear_unfinished, read_archive, write_archive
from ..io.codec import decode, encode
from ..io.save import check
from ..result import Result
from ..run import interrupts
from ..run.checkpoint import check_identity, check_place
from ..run.progress import FitBar

KIND = "fits in progress"  # of the archive


class Interrupted(Exception):
    """Ctrl-C: what is done by then counts."""


class Jobs:
    """Fits that are done one after another or in `n_jobs` processes; use it as a context.

    Each has a key, a text that says which one of the whole it is, and its outcome depends on nothing but its arguments:
    so an outcome found in a checkpoint stands for the fit, and the number of processes changes no bit.
    """

    def __init__(self, identity: dict[str, Any], n_jobs: int | None, show: FitBar, checkpoint=None, resume=None):
        self.identity, self.n_jobs, self.show = identity, joblib.effective_n_jobs(n_jobs), show
        self.resumed, self.done = resume, {} if resume is None else read_outcomes(resume, identity)
        self.path: Path | None = None
        if checkpoint is not None:
            self.path, self.interval = checked_checkpoint(checkpoint)
            check_place(self.path, KIND)
            clear_unfinished(self.path)
        self.written = time.perf_counter()

    def __enter__(self) -> Jobs:
        self.held = interrupts.held()
        self.held.__enter__()
        self.show.__enter__()
        return self

    def __exit__(self, *raised) -> None:
        self.show.__exit__(*raised)
        try:
            self.write()
        finally:
            self.held.__exit__(*raised)

    def each(
        self, fit: Callable[..., Any], tasks: Mapping[str, tuple], could_be: Callable[[Any], bool]
    ) -> dict[str, Any]:
        """The outcomes of `fit(*arguments)` for all keys; raises `Interrupted` after Ctrl-C, when `done` has those that
        were finished. `could_be`: whether what a file has for one of them can be its outcome."""
        if wrong := [key for key in tasks if key in self.done and not could_be(self.done[key])]:
            raise ArchiveError(f"{self.resumed} holds no complete list of fits: what it has for {wrong[0]!r} cannot be")
        waiting = {key: arguments for key, arguments in tasks.items() if key not in self.done}
        run = self.in_processes if self.n_jobs > 1 and len(waiting) > 1 else self.in_turn
        for key, outcome in run(fit, waiting):
            if was_interrupted(outcome):
                raise Interrupted
            self.done[key] = outcome
            self.show(key)
            if self.path is not None and time.perf_counter() - self.written >= self.interval:
                self.write()
        return {key: self.done[key] for key in tasks}

    def in_turn(self, fit: Callable[..., Any], tasks: Mapping[str, tuple]) -> Iterator[tuple[str, Any]]:
        for key, arguments in tasks.items():
            if interrupts.came():
                raise Interrupted
            try:
                yield key, fit(*arguments)
            except KeyboardInterrupt:
                raise Interrupted from None

    def in_processes(self, fit: Callable[..., Any], tasks: Mapping[str, tuple]) -> Iterator[tuple[str, Any]]:
        calls = (joblib.delayed(fit)(*arguments) for arguments in tasks.values())
        outcomes = joblib.Parallel(self.n_jobs, return_as="generator")(calls)
        for key in tasks:
            try:
                with interrupts.at_once():
                    outcome = next(outcomes)
            except KeyboardInterrupt:
                raise Interrupted from None
            yield key, outcome

    def write(self) -> None:
        """Keep what is done. A disk that is full or gone is no reason to lose the rest."""
        if self.path is None:
            return
        arrays: dict[str, Any] = {}
        try:
            about = {"identity": self.identity, "outcomes": encode(self.done, arrays)}
            write_archive(self.path, KIND, about, arrays)
        except (OSError, TypeError) as error:
            warn(f"the checkpoint {self.path} could not be written ({error}); the work goes on without it")
        self.written = time.perf_counter()


def is_fit(shape: tuple[int, ...], rank: int, outcome: Any) -> bool:
    """Whether it is a result of at most so many parts, of data of this shape but for the number of rows."""
    if not isinstance(outcome, Result) or outcome.rank > rank or outcome.shape[1:] != shape[1:]:
        return False
    try:
        check(outcome)
    except ArchiveError:
        return False
    return True


def was_interrupted(outcome: Any) -> bool:
    return isinstance(outcome, Result) and outcome.status == "interrupted"


def read_outcomes(path: str | Path, identity: dict[str, Any]) -> dict[str, Any]:
    """The outcomes in a file, if they are of the same work."""
    about, arrays = read_archive(path, KIND)
    check_identity(path, about.get("identity"), identity)
    try:
        outcomes = decode(about.get("outcomes"), arrays)
        if not isinstance(outcomes, dict):
            raise ArchiveError("it is something else")
    except Exception as error:
        raise ArchiveError(f"{path} holds no complete list of fits: {error}") from error
    return outcomes
