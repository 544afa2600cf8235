"""Structures that act on every item, or every component, by itself: which entries may be nonzero, and their values.

The nearest point of such a set has a closed form whenever the set is symmetric (it does not matter which entry is
which, but for the groups): the entries to keep are those with the largest scores, taken greedily, and their values are
those of the set without the restriction. For two values that change places, the larger score gains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ..checks import is_positive_int
from ..data.units import moderate
from ..errors import warn
from .base import Structure
from .elementwise import FREE, Elementwise
from .entries import WithEntrywise
from .traits import narrowest

SLACK = 1e-12  # of a sum of bounds, relative: ten times 0.1 is less than 1
PER = {"item": 1, "component": 0}  # the axis of a tall factor along which a vector runs


@dataclass(frozen=True, eq=False, repr=False)
class Vectors(WithEntrywise):
    """At most `most` nonzeros in each vector, at most `counts[g]` among the components `groups[g]` of an item, and
    `entries` for every entry."""

    per: str = "item"
    most: int | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    counts: tuple[int, ...] = ()
    entries: Elementwise = FREE

    sized: Any = field(default=None, init=False)  # what else fixes their size: a `FixedSize`
    transient = ("sized",)

    core: ClassVar[int] = 0  # a class with its own rule for the values has another number
    stage = 2

    def __post_init__(self):
        if self.per not in PER:
            raise ValueError(f"per must be 'item' or 'component', got {self.per!r}")
        if self.most is not None:
            object.__setattr__(self, "most", checked_count("the number of nonzeros", self.most))

    # -- traits ----------------------------------------------------------------------------------------

    @property
    def axis(self):
        return PER[self.per]

    @property
    def magnitudes(self):
        return narrowest(part.magnitudes for part in (self.entries, self.sized) if part is not None)

    @property
    def fixes_scale(self):
        return self.sized is not None and self.sized.fixes_scale

    @property
    def at_most(self):
        """Nonzeros in a vector, or None."""
        return self.most

    @property
    def separable_rows(self):
        return self.per == "item"

    @property
    def applies_to_new_rows(self):
        return self.per == "item" and self.entries.applies_to_new_rows

    @property
    def columnwise(self):
        return self.per == "component"

    @property
    def chosen(self):
        """Whether nonzeros are limited."""
        return self.at_most is not None or bool(self.groups)

    @property
    def limits_only(self):
        return self.core == 0 and self.chosen and self.entries.plain

    @property
    def convex(self):
        return not self.chosen and self.entries.convex

    @property
    def interchangeable(self):
        return not self.groups and self.entries.interchangeable

    @property
    def replaceable(self):
        return self.entries.interchangeable

    # -- combination -----------------------------------------------------------------------------------

    def takes(self, entries):
        return True

    @classmethod
    def together(cls, entries, parts):
        """A closed form needs parts about the same vectors, of which at most one fixes values, another one sizes, and
        at most one has groups."""
        vectors = [part for part in parts if isinstance(part, Vectors)]
        cores = [core for part in vectors if part.core for core in (part, part.sized) if core]
        cores.sort(key=lambda part: -part.core)
        grouped = [part for part in vectors if part.groups]
        if len(vectors) < len(parts) or len({part.per for part in vectors}) > 1 or len(grouped) > 1:
            return None
        if len(cores) > 2 or len({part.core for part in cores}) < len(cores):
            return None
        limits = [part.most for part in vectors if part.most is not None]
        whole = [*cores, *vectors][0].altered(
            most=min(limits, default=None),
            groups=grouped[0].groups if grouped else (),
            counts=grouped[0].counts if grouped else (),
            entries=entries,
            sized=cores[1] if len(cores) > 1 else None,
        )
        return whole if whole.takes(entries) else None

    def columns(self, indices):
        return self.altered(entries=self.entries.columns(indices))

    # -- the contract ----------------------------------------------------------------------------------

    def bind(self, shape, transposed, name):
        if self.groups and max(map(max, self.groups)) >= shape[1]:
            raise ValueError(f"{self} speaks of component {max(map(max, self.groups))}, but {name} has {shape[1]}")
        warn_if_idle(self.most, shape[self.axis], self, name)
        bound = super().bind(shape, transposed, name)
        bound.check(shape, name)
        return bound

    def check(self, shape, name):
        forced = np.broadcast_to(self.forced, shape)
        if self.chosen and forced.any():
            kept = self.choice(forced.astype(np.float64))
            if np.any(forced & ~kept):
                raise ValueError(f"no value of {name} satisfies {self}: more entries than allowed cannot be zero")

    def rescaled(self, exponent, objective_exponent):
        sized = self.sized and self.sized.rescaled(exponent, objective_exponent)
        return super().rescaled(exponent, objective_exponent).altered(sized=sized)

    def row_values(self, A):
        return self.entries.row_values(A)

    def prox(self, A, step):
        return self.values(A, step, self.choice(self.scores(A, step)) if self.chosen else None)

    def within(self, A, places):
        if self.chosen:
            places = places & self.choice(np.where(places, self.scores(A, 0.0), -np.inf))
        return self.values(A, 0.0, places)

    def places(self, A):
        return self.choice(np.abs(A)) if self.chosen else super().places(A)

    def limits(self, rank):
        every = [] if self.at_most is None else [(self.axis, list(range(rank)), self.at_most)]
        return every + [(1, list(group), count) for group, count in zip(self.groups, self.counts, strict=True)]

    def fewest(self, shape):
        return (self.needed(shape), 0) if self.axis else (0, self.needed(shape))

    def needed(self, shape: tuple[int, int]) -> float | np.ndarray:
        """The fewest places of a vector."""
        return 0

    def scores(self, A: np.ndarray, step: float) -> np.ndarray:
        """What each entry gains by being nonzero."""
        best = self.entries.prox(A, step)
        if self.entries.plain:
            return np.abs(best)
        if not np.any(self.forced):
            return self.relative_gain(A, best, step)
        return np.where(self.forced, np.inf, self.relative_gain(A, np.where(self.forced, 0, best), step))

    def relative_gain(self, A, best, step):
        """What entries gain by going from 0 to `best`, divided by a square of their size where that could overflow."""
        A, exponents = moderate(A.astype(np.float64, copy=False), self.axis)
        best = np.ldexp(best, -exponents) if exponents.any() else best.astype(np.float64, copy=False)
        gain = best * (A - best / 2)
        if step and (self.entries.l1 or self.entries.l2):
            gain -= step * (self.entries.l1 * np.ldexp(np.abs(best), -exponents) + self.entries.l2 / 2 * best**2)
        return gain

    @property
    def forced(self):
        """Entries that cannot be 0."""
        return (np.asarray(self.entries.lower) > 0) | (np.asarray(self.entries.upper) < 0)

    def values(self, A: np.ndarray, step: float, mask: np.ndarray | None) -> np.ndarray:
        """The nearest A with zeros outside the mask."""
        best = self.entries.prox(A, step)
        return best if mask is None else np.where(mask, best, best.dtype.type(0))

    def choice(self, scores: np.ndarray) -> np.ndarray:
        """Which entries to keep, of the shape of `scores`."""
        n = scores.shape[self.axis]
        groups = [*self.groups, *([range(n)] if self.at_most is not None else [])]
        counts = [*self.counts, *([self.at_most] if self.at_most is not None else [])]
        V = self.vectors(scores)
        return self.turned(kernels.of(V).keep_largest(V, groups, counts))

    def vectors(self, A: np.ndarray) -> np.ndarray:
        """The vectors of a tall factor as rows."""
        return np.ascontiguousarray(A if self.axis else A.T)

    def turned(self, V: np.ndarray) -> np.ndarray:
        """Vectors as a tall factor."""
        return V if self.axis else np.ascontiguousarray(V.T)

    def face(self, A):
        if self.core:
            return None
        return self.entries.holding_zeros(A) if self.chosen else self.entries.face(A)

    def own_terms(self):
        about = [f"Pattern({shortest(self.groups)}, nonzeros={shortest_counts(self.counts)})"] if self.groups else []
        about += [f"Sparse({self.most}, per={self.per!r})"] if self.most is not None else []
        return about + (self.sized.own_terms() if self.sized else [])


def shortest(groups) -> str:
    """Groups as sizes, where they follow each other, else as lists."""
    members = [j for group in groups for j in group]
    lists = [list(group) for group in groups]
    return str([len(group) for group in groups] if members == list(range(len(members))) else lists)


def shortest_counts(counts) -> str:
    return str(counts[0] if len(set(counts)) == 1 else list(counts))


def warn_if_idle(count: int | None, room: int, structure: Structure, name: str) -> None:
    """Warn where a number of nonzeros is no restriction."""
    if count is not None and count > room:
        per = getattr(structure, "per", "component")
        warn(
            f"{structure} does not restrict {name}: it allows {count} nonzeros in each {per}, which has {room} "
            "entries. An item has one entry for each component, a component one for each item."
        )


def checked_count(what: str, count) -> int:
    if not is_positive_int(count):
        raise ValueError(f"{what} must be a whole number >= 1, got {count!r}")
    return int(count)
