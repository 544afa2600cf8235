"""When a run is over: the limits that a user sets, and the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np


@dataclass(frozen=True)
class Limits:
    """When to stop: at whichever comes first."""

    max_iter: int | None = None  # None: the solver's own
    tol: float = 1e-4  # stationarity
    target: float | None = None  # objective
    time_limit: float | None = None  # seconds, starts included, all of them together

    def __post_init__(self):
        number = isinstance(self.max_iter, Integral) and not isinstance(self.max_iter, bool)
        whole = self.max_iter is None or (number and self.max_iter >= 1)
        allowed = {
            "max_iter": ("a whole number >= 1, or None", whole),
            "tol": ("a number >= 0", is_number(self.tol) and 0 <= self.tol < np.inf),
            "target": ("a number, or None", self.target is None or is_number(self.target)),
            "time_limit": (
                "a number of seconds > 0, or None",
                self.time_limit is None or (is_number(self.time_limit) and self.time_limit > 0),
            ),
        }
        for name, (sentence, holds) in allowed.items():
            if not holds:
                raise ValueError(f"{name} must be {sentence}; got {getattr(self, name)!r}")


def is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value  # noqa: PLR0124  # not NaN


class Clock:
    """Seconds since it was made, and whether they are up."""

    def __init__(self, limit: float | None):
        self.limit, self.start = limit, time.perf_counter()

    def __call__(self) -> float:
        return time.perf_counter() - self.start

    def over(self) -> bool:
        return self.limit is not None and self() >= self.limit
