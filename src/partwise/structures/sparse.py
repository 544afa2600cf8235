"""How many nonzeros: in each item or component, in each group of components, and nonzeros that are all equal.

Xu, Yu and Zhang (2013), sections 3.2 to 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..checks import is_int
from .vectors import SLACK, Vectors, checked_count


class Sparse(Vectors):
    """At most `k` nonzeros in each item, or in each component. Signed unless combined with `NonNegative()`.

    Parameters
    ----------
    k : int
        The most nonzeros.
    per : "item" or "component"
        Each sample of W, or feature of H, on its own; or each part.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> few = pw.structures.NonNegative() & pw.structures.Sparse(4, per="component")
    >>> result = pw.factorize(X, 3, structure_H=few, n_init=1, tol=0.01, random_state=0)
    >>> (result.H != 0).sum(axis=1)
    array([4, 4, 4])
    """

    def __init__(self, k: int, per: str = "item") -> None:
        super().__init__(per=per, most=k)


class Pattern(Vectors):
    """How many nonzeros each group of components may have in an item.

    Parameters
    ----------
    groups : sequence, optional
        The sizes of consecutive groups, or a list of indices for each.
    nonzeros : int or sequence of int
        A number for all groups, or one for each; components in no group are not restricted.
    labels : sequence, optional
        In place of `groups`: a label for each component; groups count in the order in which they first appear.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 4, random_state=0).X
    >>> one_of_each = pw.structures.NonNegative() & pw.structures.Pattern([2, 2], 1)
    >>> result = pw.factorize(X, 4, structure_W=one_of_each, n_init=1, tol=0.01, random_state=0)
    >>> int((result.W[:, :2] != 0).sum(axis=1).max()), int((result.W[:, 2:] != 0).sum(axis=1).max())
    (1, 1)
    """

    def __init__(
        self, groups: Sequence | None = None, nonzeros: int | Sequence[int] = 1, *, labels: Any = None
    ) -> None:
        groups = checked_groups(groups, labels)
        one_for_all = np.ndim(nonzeros) == 0
        numbers = [nonzeros] * len(groups) if one_for_all else list(nonzeros)  # type: ignore[arg-type]
        if len(numbers) != len(groups):
            raise ValueError(f"nonzeros has {len(numbers)} numbers for {len(groups)} groups")
        counts = tuple(checked_count("the number of nonzeros", number) for number in numbers)
        idle = [count > len(group) for count, group in zip(counts, groups, strict=True)]
        if all(idle) or (any(idle) and not one_for_all):
            raise ValueError(
                f"nonzeros={nonzeros} does not restrict groups of {[len(group) for group in groups]} components: give "
                "at most as many as a group has, or leave the group out"
            )
        super().__init__(groups=groups, counts=counts)


@dataclass(frozen=True, eq=False, repr=False)
class EqualNonzeros(Vectors):
    """Each item (or component) is zero, or has exactly `k` nonzeros, all of the same value.

    The nearest such vector has its nonzeros where the k largest entries are, at their mean (Xu, Yu and Zhang 2013,
    Proposition 2); where it may be negative, the k smallest are tried as well. With `UnitNorm` or `Simplex` over the
    same vectors the value is known, and only the places are looked for.

    Parameters
    ----------
    k : int
        How many.
    per : "item" or "component"
        Each sample of W, or feature of H, on its own; or each part.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> pairs = pw.structures.NonNegative() & pw.structures.EqualNonzeros(2)
    >>> result = pw.factorize(X, 3, structure_W=pairs, n_init=1, tol=0.01, random_state=0)
    >>> sorted({len(set(row[row > 0])) for row in result.W})  # different nonzero values in a sample
    [0, 1]
    """

    k: int = 1
    core = 3

    def __init__(self, k: int, per: str = "item") -> None:
        super().__init__(per=per)
        object.__setattr__(self, "k", checked_count("the number of nonzeros", k))

    @property
    def scale_free(self):
        return self.per == "component" and self.cone

    @property
    def cone(self):
        return self.entries.scale_free and self.sized is None

    @property
    def nonnegative(self):
        return self.entries.nonnegative or (self.sized is not None and self.sized.nonnegative)

    @property
    def convex(self):
        return False

    @property
    def at_most(self):
        return self.k

    @property
    def level(self):
        """The value of the nonzeros, but for its sign, where their size is fixed."""
        return self.sized.norm_at(math.sqrt(self.k)) / math.sqrt(self.k)

    @property
    def sides(self):
        """The signs that nonzeros may have."""
        low, high = self.entries.lower, self.entries.upper
        least = 0.0 if self.sized is None else self.level * (1 - SLACK)
        allowed = {1: high > 0 and high >= least, -1: not self.nonnegative and -low >= least}
        return [side for side, able in allowed.items() if able] or [1]

    def takes(self, entries):
        return entries.uniform and entries.lower <= 0 <= entries.upper

    def needed(self, shape):
        return self.k if self.sized else 0

    def check(self, shape, name):
        room = shape[self.axis]
        if self.groups:
            grouped = {j for group in self.groups for j in group}
            room = sum(min(c, len(g)) for g, c in zip(self.groups, self.counts, strict=True)) + shape[1] - len(grouped)
        room = min(room, room if self.most is None else self.most)
        if self.k > room:
            raise ValueError(
                f"{self} asks for {self.k} equal nonzeros in each {self.per} of {name}: at most {room} fit"
            )
        if self.sized and self.entries.violation(np.full((1, 1), self.sides[0] * self.level)) > SLACK * self.level:
            raise ValueError(
                f"no value of {name} satisfies {self}: {self.k} equal nonzeros would have to be {self.level:.6g} each"
            )

    def prox(self, A, step):
        return self.equal(A, step, None)

    def within(self, A, places):
        return self.equal(A, 0.0, places)

    def equal(self, A, step, places):
        """The nearest vectors with their nonzeros in these places, or anywhere: of two signs the better."""
        keeps, means, levels = zip(*(self.one_sided(A, step, places, side) for side in self.sides), strict=True)
        means, levels = (np.concatenate(both, axis=self.axis) for both in (means, levels))
        gains = means * levels if self.sized else self.relative_gain(means, levels, step)
        best = np.argmax(gains, axis=self.axis, keepdims=True)
        level = np.take_along_axis(levels, best, self.axis).astype(A.dtype)
        return np.where(np.where(best == 0, keeps[0], keeps[-1]), level, A.dtype.type(0))

    def one_sided(self, A, step, places, sign):
        """Where the nearest vectors with k equal nonzeros of one sign have them, their mean there, and their value."""
        scores = A if sign > 0 else -A
        keep = self.choice(scores if places is None else np.where(places, scores, -np.inf))
        if places is not None:
            keep &= places
            keep &= np.count_nonzero(keep, axis=self.axis, keepdims=True) == self.k  # or there is only the zero vector
        total = np.einsum("ij,ij->i" if self.axis else "ij,ij->j", A, keep, dtype=np.float64)
        mean = np.expand_dims(total / self.k, self.axis)
        if self.sized:
            return keep, mean, np.full_like(mean, sign * self.level)
        mean = np.maximum(mean, 0) if sign > 0 else np.minimum(mean, 0)
        return keep, mean, self.entries.prox(mean, step)

    def own_terms(self):
        return [*super().own_terms(), f"EqualNonzeros({self.k}, per={self.per!r})"]


def checked_groups(groups, labels=None) -> tuple[tuple[int, ...], ...]:
    """Groups of components, from sizes, lists of indices, or labels."""
    if (groups is None) == (labels is None):
        raise ValueError("give either groups, as sizes or as lists of indices, or labels, one for each component")
    if labels is not None:
        labels = np.asarray(labels)
        if labels.ndim != 1 or not labels.size or (labels.dtype.kind == "f" and np.isnan(labels).any()):
            raise ValueError(f"labels must be a list, one for each component, without NaN; got {labels.tolist()!r}")
        return tuple(tuple(np.flatnonzero(labels == label).tolist()) for label in dict.fromkeys(labels.tolist()))
    wrong = f"groups must be sizes, or lists of indices from 0 on that do not overlap; got {groups!r}"
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ValueError(wrong)
    groups = list(groups)
    if groups and all(isinstance(size, Integral) for size in groups):
        ends = np.cumsum([0, *(checked_count("the size of a group", size) for size in groups)])
        return tuple(tuple(range(a, b)) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
    if any(isinstance(group, Real | str) for group in groups):
        raise ValueError(wrong)
    members = [j for group in groups for j in group]
    if not all(map(is_int, members)) or not all(map(len, groups)) or not groups:
        raise ValueError(wrong)
    if len(set(members)) < len(members) or min(members) < 0:
        raise ValueError(wrong)
    return tuple(tuple(int(j) for j in group) for group in groups)
