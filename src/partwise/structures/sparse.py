"""How many nonzeros: in each item or component, in each group of components, and nonzeros that are all equal.

Xu, Yu and Zhang (2013), sections 3.2 to 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from .vectors import Vectors, checked_count


class Sparse(Vectors):
    """At most `k` nonzeros in each item, or in each component. Signed unless combined with `NonNegative()`."""

    def __init__(self, k: int, per: str = "item"):
        super().__init__(per=per, most=k)


class Pattern(Vectors):
    """How many nonzeros each group of components may have in an item.

    `groups`: the sizes of consecutive groups, or a list of indices for each; or `labels`, one for each component.
    `nonzeros`: a number for all groups or one for each; components in no group are not restricted.
    """

    def __init__(self, groups: Sequence | None = None, nonzeros: int | Sequence[int] = 1, *, labels=None):
        groups = checked_groups(groups, labels)
        numbers = [nonzeros] * len(groups) if isinstance(nonzeros, int | np.integer) else list(nonzeros)
        if len(numbers) != len(groups):
            raise ValueError(f"nonzeros has {len(numbers)} numbers for {len(groups)} groups")
        super().__init__(
            groups=groups, counts=tuple(checked_count("the number of nonzeros", number) for number in numbers)
        )


@dataclass(frozen=True, eq=False, repr=False)
class EqualNonzeros(Vectors):
    """Each item (or component) is zero, or has exactly `k` nonzeros, all of the same value.

    The nearest such vector has its nonzeros where the k largest entries are, at their mean (Xu, Yu and Zhang 2013,
    Proposition 2); where it may be negative, the k smallest are tried as well.
    """

    k: int = 1
    core = True

    def __init__(self, k: int, per: str = "item"):
        super().__init__(per=per)
        object.__setattr__(self, "k", checked_count("the number of nonzeros", k))

    @property
    def scale_free(self):
        return self.per == "component" and self.entries.scale_free

    @property
    def cone(self):
        return self.entries.scale_free

    @property
    def convex(self):
        return False

    @property
    def chosen(self):
        return True

    def takes(self, entries):
        return np.ndim(entries.lower) == np.ndim(entries.upper) == 0 and entries.lower <= 0 <= entries.upper

    def check(self, shape, name):
        room = shape[self.axis]
        if self.groups:
            grouped = {j for group in self.groups for j in group}
            room = sum(min(c, len(g)) for g, c in zip(self.groups, self.counts)) + shape[1] - len(grouped)
        room = min(room, room if self.most is None else self.most)
        if self.k > room:
            raise ValueError(
                f"{self} asks for {self.k} equal nonzeros in each {self.per} of {name}: at most {room} fit"
            )

    def prox(self, A, step):
        sides = [1] if self.entries.nonnegative else [-1] if self.entries.upper == 0 else [1, -1]
        keep, level, gain = self.one_sided(A, step, sides[0])
        for side in sides[1:]:
            other, its_level, its_gain = self.one_sided(A, step, side)
            better = its_gain > gain
            keep, level = np.where(better, other, keep), np.where(better, its_level, level)
            gain = np.maximum(its_gain, gain)
        return np.where(keep & (gain > 0), level.astype(A.dtype), A.dtype.type(0))

    def one_sided(self, A, step, sign):
        """Where the nearest vectors with k equal nonzeros of one sign have them, their value, and what each gains over
        the zero vector."""
        keep = self.altered(most=self.k).choice(A if sign > 0 else -A)
        total = np.einsum("ij,ij->i" if self.axis else "ij,ij->j", A, keep, dtype=np.float64)
        mean = np.expand_dims(total / self.k, self.axis)
        mean = np.maximum(mean, 0) if sign > 0 else np.minimum(mean, 0)
        level = self.entries.prox(mean, step)
        penalty = step * (self.entries.l1 * np.abs(level) + self.entries.l2 / 2 * level**2)
        return keep, level, level * (mean - level / 2) - penalty

    def face(self, A):
        return None

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
        return tuple(tuple(range(a, b)) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist()))
    if any(isinstance(group, Real | str) for group in groups):
        raise ValueError(wrong)
    members = [j for group in groups for j in group]
    if not all(isinstance(j, Integral) for j in members) or not all(map(len, groups)) or not groups:
        raise ValueError(wrong)
    if len(set(members)) < len(members) or min(members) < 0:
        raise ValueError(wrong)
    return tuple(tuple(int(j) for j in group) for group in groups)
