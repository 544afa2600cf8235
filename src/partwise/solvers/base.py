"""The contract of a solver: frozen parameters, what it takes, and two functions that the loop in `solve.py` calls.

A solver owns no loop, no clock and no stopping rule. Its work arrays live in a state object made by `init`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArchiveError
from ..limits import is_number
from ..problem import Factors, Problem


class Step(NamedTuple):
    """Where a step ended, and what it knows of that without further cost."""

    factors: Factors
    objective: float  # `Problem.objective`
    # an estimate of `Problem.stationarity`, maybe of a little earlier; the loop confirms it. Infinite: it is not over
    stationarity: float
    done: bool = False  # the solver sees no way to go on


class Solver(ABC):
    """A frozen dataclass; its parameters are its fields."""

    states: tuple[type, ...] = ()  # the classes that a kept state is made of
    monotone = True  # the objective never rises from one step to the next
    symmetric = False  # takes `X ~ A A'` too
    draws = False  # random numbers, in its steps
    max_iter = 1000  # steps allowed when the user names no number
    rank_is_limit = False  # it may need fewer parts than it was given: those that stay empty are not handed over
    begins_with: Any = None  # the Init it begins with where the user names none; None: what suits the problem

    @abstractmethod
    def supports(self, problem: Problem) -> str | None:
        """None, or the sentence that tells the user why this solver cannot take the problem."""

    @abstractmethod
    def prefer(self, problem: Problem) -> tuple[float, str]:
        """How well this solver suits a problem it supports, larger is better, and the reason in a few words."""

    def starts(self, problem: Problem) -> int:
        """How many starts it takes where the user names no number, at most."""
        return 1

    def for_start(self, number: int, informed: bool) -> Solver:
        """This solver with the settings for one of several starts, counted from 0, and whether its factors are worth
        anything."""
        return self

    def settled(self, problem: Problem) -> tuple[Solver, str]:
        """This solver with the settings it was left to choose, as they measure best for such a problem, and why."""
        return self, ""

    @abstractmethod
    def init(self, problem: Problem, factors: Factors, tol: float, rng: np.random.RandomState) -> Any:
        """The state of a run: where it is, work arrays and counters. `tol` is the stationarity the run is after."""

    def kept(self, state: Any) -> Any:
        """The state as it is now, whatever later steps do to it: what has to be kept to go on with the same bits."""
        kept = twin(state)
        for name, value in vars(state).items():
            if type(value) in (list, *self.states) and not isinstance(value, tuple):
                setattr(kept, name, twin(value))
        return kept

    def restore(self, problem: Problem, factors: Factors, tol: float, rng: np.random.RandomState, kept: Any) -> Any:
        """The state again, from what was kept of it; fields named in its `made_anew` are."""
        check_factors(factors, problem)
        state = self.init(problem, factors, tol, rng)
        if type(kept) is not type(state):
            raise ArchiveError(f"the checkpoint holds no state of {type(self).__name__}")
        for name, value in vars(kept).items():
            fresh = getattr(state, name)
            if type(value) is not type(fresh) or (isinstance(value, list) and len(value) != len(fresh)):
                raise ArchiveError(f"the checkpoint holds a state of {type(self).__name__} whose {name} is not one")
            if isinstance(fresh, list | tuple) and any(isinstance(item, np.ndarray) for item in fresh):
                check_factors(value, problem)
            setattr(state, name, value)
        return state

    def details(self, problem: Problem, state: Any) -> dict[str, Any]:
        """What else there is to tell of a run, in the user's units."""
        return {}

    def close(self, problem: Problem, state: Any) -> Factors | None:
        """Better factors than those of the last step, if they can be had, when a run ends before its solver is done."""
        return None

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> Step:
        """One iteration over all free factors. Factors of earlier steps stay as they are."""


def whole(value: Any) -> bool:
    """Whether it is a whole number, at least 1."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


class Rule(NamedTuple):
    """What a parameter may be, in words and as a test."""

    says: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Any) -> Rule:
        """The rule that also takes one more value, such as None."""
        same = type(other)
        return Rule(f"{self.says}, or {other!r}", lambda v: (type(v) is same and v == other) or self.holds(v))


WHOLE = Rule("a whole number >= 1", whole)
AT_LEAST_0 = Rule("a number >= 0", lambda value: is_number(value) and value >= 0)
BELOW_1 = Rule("a number from 0 to below 1", lambda value: is_number(value) and 0 <= value < 1)


def one_of(*values) -> Rule:
    return Rule(
        f"one of {', '.join(map(repr, values))}", lambda value: isinstance(value, str | None) and value in values
    )


def require(solver: Solver, **rules: Rule) -> None:
    """An error that names a parameter which breaks its rule, and says the rule."""
    for name, rule in rules.items():
        value = getattr(solver, name)
        if not rule.holds(value):
            raise ValueError(f"{type(solver).__name__} cannot have {name}={value!r}: it must be {rule.says}")


def twin(value: Any) -> Any:
    """A copy that shares what is inside; several times faster than `copy.copy`, and made at every step."""
    if isinstance(value, list):
        return value[:]
    other = object.__new__(type(value))
    other.__dict__.update(value.__dict__)
    return other


def check_factors(factors: Sequence[Any], problem: Problem) -> None:
    """Kernels trust shapes and types, so factors that come from a file are compared with what they should be."""
    shapes, kind = [(dim, problem.rank) for dim in problem.data.shape], problem.data.dtype
    if len(factors) != len(shapes):
        raise ArchiveError(f"the checkpoint holds {len(factors)} factors, not {len(shapes)}")
    for A, shape in zip(factors, shapes):
        right = isinstance(A, np.ndarray) and A.shape == shape and A.dtype == kind and A.flags.c_contiguous
        if not right or not np.all(np.isfinite(A)):
            raise ArchiveError(f"the checkpoint holds a factor that is not {shape[0]} x {shape[1]} numbers of {kind}")
