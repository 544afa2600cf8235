"""What a run leaves: a line for each iteration, the run as a whole, and all that is needed to go on with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..problem import Factors

OVER = ("converged", "stalled")  # a solver has nothing more to do
STATUSES = (*OVER, "max_iter", "target", "ftol", "time_limit", "callback", "interrupted")


class Record(NamedTuple):
    """One line of a history, in the user's units."""

    n_iter: int
    time: float  # seconds since this start began, those of compiling left out
    objective: float
    stationarity: float


Callback = Callable[[Record, Factors], object]


@dataclass(frozen=True)
class Run:
    """One start carried through, in the units of the problem."""

    factors: Factors
    history: tuple[Record, ...]
    status: str  # one of STATUSES
    fit: float  # the loss, in double precision
    failure: Exception | None = None  # what a callback raised
    details: dict[str, Any] = field(default_factory=dict)  # what else its solver tells

    transient = ("failure",)  # not kept in files


@dataclass(frozen=True)
class Snapshot:
    """All that is needed to go on with the same bits: where the starts are, and where the present one is."""

    objectives: tuple[float, ...]  # of the starts that are over
    best: Run | None  # of them
    iterations: tuple[int, ...]  # of each of them
    max_iter: int | None  # the iterations allowed, where one of them used them up: with more it would have gone on
    random: tuple  # the state of the random numbers
    factors: Factors
    history: tuple[Record, ...]
    correction: float  # see `Monitor`
    state: Any  # the solver's
    status: str | None  # None while the start is under way
