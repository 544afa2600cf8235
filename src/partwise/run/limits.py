"""When a run is over: the limits that a user sets, and the clock."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from ..checks import NUMBER, POSITIVE_INT, Rule, is_number
from ..kernels.compiling import compile_seconds

TOLERANCE = Rule("a number >= 0", lambda value: is_number(value) and 0 <= value < math.inf)
RULES = {
    "max_iter": POSITIVE_INT | None,
    "tol": TOLERANCE,
    "target": NUMBER | None,
    "ftol": TOLERANCE | None,
    "time_limit": Rule("a number of seconds > 0", lambda value: is_number(value) and value > 0) | None,
}

LAPSE = 10  # iterations over which the fall of the error is looked at, as in scikit-learn
ROUNDING = 1e-12  # of an objective: it is summed up in another order at the end of a run than on its way


@dataclass(frozen=True)
class Limits:
    """When to stop: at whichever comes first."""

    max_iter: int | None = None  # None: the solver's own
    tol: float = 1e-4  # stationarity
    target: float | None = None  # objective
    time_limit: float | None = None  # seconds, starts included, all of them together
    ftol: float | None = None  # what `LAPSE` iterations must lower the error by, as a share of that of the start

    def __post_init__(self):
        for name, rule in RULES.items():
            if not rule.holds(getattr(self, name)):
                raise ValueError(f"{name} must be {rule.says}; got {getattr(self, name)!r}")

    def reached(self, objective: float) -> bool:
        """Whether it is the target, up to the rounding of double precision: what one run reports, another can be told
        to reach."""
        return self.target is not None and objective <= self.target + ROUNDING * abs(self.target)


class Clock:
    """Seconds of work since it was made, those of compiling apart, and whether the time allowed is up, compiling
    included."""

    def __init__(self, limit: float | None):
        self.limit, self.start, self.compiled = limit, time.perf_counter(), compile_seconds()

    def __call__(self) -> float:
        return self.elapsed - self.compiling

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    @property
    def compiling(self) -> float:
        return compile_seconds() - self.compiled

    def over(self) -> bool:
        return self.limit is not None and self.elapsed >= self.limit
