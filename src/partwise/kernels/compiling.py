"""How long this process has spent on getting kernels ready: compiling them, or reading what an earlier one compiled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Runs while any kernel is made ready; one is compiled inside another, and several threads may be at it."""

    def __init__(self):
        self.total, self.depth, self.begun, self.lock = 0.0, 0, 0.0, threading.Lock()

    def begin(self) -> None:
        with self.lock:
            if self.depth == 0:
                self.begun = time.perf_counter()
            self.depth += 1

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.total += time.perf_counter() - self.begun

    @contextmanager
    def running(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()


STOPWATCH = Stopwatch()


def compile_seconds() -> float:
    """So far."""
    return STOPWATCH.total
