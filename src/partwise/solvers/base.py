"""The contract of a solver: frozen parameters, what it takes, and two functions that the loop in `solve.py` calls.

A solver owns no loop, no clock and no stopping rule. Its work arrays live in a state object made by `init`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..checks import Rule
from ..errors import ArchiveError
from ..problem import Expansion, Factors, Problem


class Step(NamedTuple):
    """Where a step ended, and what it knows of that without further cost.

    Attributes
    ----------
    factors : tuple of ndarray
        Where the step ended.
    objective : float
        `Problem.objective` there.
    stationarity : float
        An estimate.
    done : bool
        Whether the solver sees no way to go on.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> step = pw.solvers.Step((np.ones((3, 1)), np.ones((2, 1))), objective=0.5, stationarity=0.1)
    >>> step.done
    False
    """

    factors: Factors
    objective: float  # `Problem.objective`
    # an estimate of `Problem.stationarity`, maybe of a little earlier; the loop confirms it. Infinite: it is not over
    stationarity: float
    done: bool = False  # the solver sees no way to go on


class Solver(ABC):
    """An algorithm: a frozen dataclass whose fields are its parameters. `supports(problem)` is None, or the sentence
    that tells why it does not take a problem.

    Examples
    --------
    >>> import partwise as pw
    >>> solver = pw.solvers.HALS(sweeps=2)
    >>> isinstance(solver, pw.solvers.Solver), solver.sweeps
    (True, 2)
    >>> pw.factorize([[1.0, 2.0], [2.0, 4.1], [3.0, 6.0]], 1, solver=solver).converged
    True
    """

    kernels: ClassVar[tuple[str, ...]] = (
        "numpy",
    )  # that it calls beside those all need; "numpy": NumPy's own functions
    states: ClassVar[tuple[type, ...]] = ()  # the classes that a kept state is made of
    monotone = True  # the objective never rises from one step to the next
    in_blocks = False  # takes data in blocks of rows, which are never together
    symmetric = False  # takes `X ~ A A'` too
    draws = False  # random numbers, in its steps
    max_iter = 1000  # steps allowed when the user names no number
    rank_is_limit = False  # it may need fewer parts than it was given: those that stay empty are not handed over
    default_init: Any = None  # the Init it begins with where the user names none; None: what suits the problem

    @abstractmethod
    def supports(self, problem: Problem) -> str | None:
        """None, or the sentence that tells the user why this solver cannot take the problem."""

    @abstractmethod
    def prefer(self, problem: Problem) -> tuple[float, str]:
        """How well this solver suits a problem it supports, larger is better, and the reason in a few words."""

    def starts(self, problem: Problem) -> int:
        """How many starts it takes where the user names no number, at most."""
        return 1

    def variant(self, number: int, informed: bool) -> Solver:
        """This solver with the settings for one of several starts, counted from 0, and whether its factors are worth
        anything."""
        return self

    def configured(self, problem: Problem) -> tuple[Solver, str]:
        """This solver with the settings it was left to choose, as they measure best for such a problem, and why."""
        return self, ""

    @abstractmethod
    def init(self, problem: Problem, factors: Factors, tol: float, rng: np.random.RandomState) -> Any:
        """The state of a run: where it is, work arrays and counters. `tol` is the stationarity the run is after."""

    def kept(self, state: Any) -> Any:
        """The state as it is now, whatever later steps do to it: what has to be kept to go on with the same bits."""
        kept = shallow_copy(state)
        for name, value in vars(state).items():
            if type(value) in (list, *self.states) and not isinstance(value, tuple):
                setattr(kept, name, shallow_copy(value))
        return kept

    def restore(self, problem: Problem, factors: Factors, tol: float, rng: np.random.RandomState, kept: Any) -> Any:
        """The state again, from what was kept of it in a file: checked, with the fields named in its `transient` from a
        fresh one."""
        check_factors(factors, problem)
        drawn = rng.get_state()
        fresh = self.init(problem, factors, tol, rng)
        rng.set_state(drawn)
        if fault := unlike(kept, fresh, problem):
            raise ArchiveError(f"the checkpoint holds a state of {type(self).__name__} that is not valid: {fault}")
        return kept

    def begins_in_single(self, problem: Problem) -> bool:
        """Whether a run begins in single precision, which it leaves where rounding shows; it has `widened` then."""
        return False

    def widened(self, problem: Problem, state: Any) -> Any:
        """The state in double precision, with its factors as `factors`; `problem` is the one posed."""
        raise NotImplementedError

    def known(self, problem: Problem, state: Any, factors: Factors) -> dict[int, Expansion]:
        """Expansions of the loss around these factors that it has, or needs for its next step, by mode: they save the
        loop, which measures the factors, products with X."""
        return {}

    def details(self, problem: Problem, state: Any) -> dict[str, Any]:
        """What else there is to tell of a run, in the user's units."""
        return {}

    def close(self, problem: Problem, state: Any) -> Factors | None:
        """Better factors than those of the last step, if they can be had, when a run ends before its solver is done."""
        return None

    @abstractmethod
    def step(self, problem: Problem, state: Any) -> Step:
        """One iteration over all free factors. Factors of earlier steps stay as they are."""


def require(solver: Solver, **rules: Rule) -> None:
    """An error that names a parameter which breaks its rule, and says the rule."""
    for name, rule in rules.items():
        value = getattr(solver, name)
        if not rule.holds(value):
            raise ValueError(f"{type(solver).__name__} cannot have {name}={value!r}: it must be {rule.says}")


def shallow_copy(value: Any) -> Any:
    """A copy that shares what is inside; several times faster than `copy.copy`, and made at every step."""
    if isinstance(value, list):
        return value[:]
    other = object.__new__(type(value))
    other.__dict__.update(value.__dict__)
    return other


def unlike(kept: Any, fresh: Any, problem: Problem, name: str = "it") -> str | None:
    """None, or what is wrong with a value out of a file that should be like a fresh one: of the same types, lengths,
    shapes and order, field by field; an empty tuple of a fresh one stands for any number of items. Numbers are numbers,
    counts are not negative, and `valid(problem)` of a class says what else holds. Fields in `transient` are filled in.

    Kernels trust all this.
    """
    if isinstance(fresh, np.ndarray | float | int):
        return None if is_like(kept, fresh) else f"{name} is not {described(fresh)}"
    if type(kept) is not type(fresh):
        return f"{name} is a {type(kept).__name__}, not a {type(fresh).__name__}"
    pairs = parts_of(kept, fresh)
    if pairs is None:
        return f"{name} has other items than it should"
    faults = (unlike(a, b, problem, f"{name}.{part}") for part, a, b in pairs)
    if fault := next(filter(None, faults), None):
        return fault
    values = kept if isinstance(kept, tuple) else (kept,)
    wrong = any(not value.valid(problem) for value in values if hasattr(value, "valid"))
    return f"{name} has numbers that are out of range" if wrong else None


def is_like(kept: Any, fresh: np.ndarray | float) -> bool:
    """The same for numbers, and arrays of them."""
    if isinstance(fresh, np.ndarray):
        same = isinstance(kept, np.ndarray) and kept.shape == fresh.shape and kept.dtype == fresh.dtype
        largest = 2.0 ** (np.finfo(fresh.dtype).maxexp // 2)  # so that squares are numbers
        return same and kept.flags.c_contiguous and bool(np.all(np.abs(kept) < largest))
    if isinstance(fresh, float):
        return isinstance(kept, float) and not math.isnan(kept)
    return type(kept) is type(fresh) and kept >= 0


def described(fresh: np.ndarray | float) -> str:
    if isinstance(fresh, np.ndarray):
        return f"{' x '.join(map(str, fresh.shape))} numbers of {fresh.dtype}"
    return "a number" if isinstance(fresh, float) else "a count" if type(fresh) is int else "true or false"


def parts_of(kept: Any, fresh: Any) -> list[tuple[Any, Any, Any]] | None:
    """Name, value out of a file and fresh value of each item or field; None where these are not the same."""
    if isinstance(fresh, dict):
        return [(name, kept[name], fresh[name]) for name in fresh] if kept.keys() == fresh.keys() else None
    if isinstance(fresh, list | tuple):
        if isinstance(fresh, tuple) and not fresh:
            return []
        return list(zip(range(len(fresh)), kept, fresh, strict=True)) if len(kept) == len(fresh) else None
    if not hasattr(fresh, "__dict__"):
        return []
    transient = {name: vars(fresh)[name] for name in getattr(fresh, "transient", ())}
    vars(kept).update(transient)
    return [(name, getattr(kept, name), value) for name, value in vars(fresh).items() if name not in transient]


def check_factors(factors: Sequence[Any], problem: Problem) -> None:
    """Kernels trust shapes and types, so factors that come from a file are compared with what they should be."""
    shapes, kind = [(dim, problem.rank) for dim in problem.data.shape], problem.data.dtype
    if len(factors) != len(shapes):
        raise ArchiveError(f"the checkpoint holds {len(factors)} factors, not {len(shapes)}")
    for A, shape in zip(factors, shapes, strict=True):
        if unlike(A, np.empty(shape, kind), problem):
            raise ArchiveError(f"the checkpoint holds a factor that is not {shape[0]} x {shape[1]} numbers of {kind}")
    if not feasible(factors, problem):
        raise ArchiveError("the checkpoint holds factors that are not within the bounds of the problem")


def feasible(factors: Sequence[np.ndarray], problem: Problem) -> bool:
    """Whether factors are within their bounds, of a size that can be computed with, and equal where they are one;
    further structure is not looked at."""
    for A, structure in zip(factors, problem.structures, strict=True):
        _, lower, upper = structure.elementwise.box(A) if structure.elementwise else (0, -np.inf, np.inf)
        if np.any(lower > A) or np.any(upper < A) or (structure.nonnegative and np.any(A < 0)):
            return False
    with np.errstate(all="ignore"):
        return math.isfinite(problem.objective(factors)) and all(map(np.array_equal, factors, problem.tied(factors)))
