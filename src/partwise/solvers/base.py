"""The contract of a solver: frozen parameters, what it takes, and two functions that the loop in `solve.py` calls.

A solver owns no loop, no clock and no stopping rule. Its work arrays live in a state object made by `init`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ..problem import Factors, Problem


class Step(NamedTuple):
    """Where a step ended, and what it knows of that."""

    factors: Factors
    objective: float  # `Problem.objective`, at no further cost
    stationarity: float  # `Problem.stationarity`, or an estimate from gradients at hand; the loop confirms it


class Solver(ABC):
    """A frozen dataclass; its parameters are its fields."""

    monotone = True  # the objective never rises from one step to the next
    max_iter = 1000  # steps allowed when the user names no number

    @abstractmethod
    def supports(self, problem: Problem) -> str | None:
        """None, or the sentence that tells the user why this solver cannot take the problem."""

    @abstractmethod
    def prefer(self, problem: Problem) -> tuple[float, str]:
        """How well this solver suits a problem it supports, larger is better, and the reason in a few words."""

    def settled(self, problem: Problem) -> tuple[Solver, str]:
        """This solver with the settings it was left to choose, as they measure best for such a problem, and why."""
        return self, ""

    @abstractmethod
    def init(self, problem: Problem, factors: Factors, tol: float, rng: np.random.RandomState) -> Any:
        """The state of a run: where it is, work arrays and counters. `tol` is the stationarity the run is after."""

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> Step:
        """One iteration over all free factors. Factors of earlier steps stay as they are."""


def whole(value: Any) -> bool:
    """Whether it is a whole number, at least 1."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def require(solver: Solver, **checks: bool) -> None:
    """An error that names the parameter whose check is false."""
    for name, holds in checks.items():
        if not holds:
            raise ValueError(f"{type(solver).__name__} cannot have {name}={getattr(solver, name)!r}")
