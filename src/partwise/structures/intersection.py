"""Several structures at once, `a & b`: as one closed form where one is known, else by alternating projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from .alternating import Dykstra, Successive
from .base import Structure
from .elementwise import FREE, Elementwise, NonNegative
from .entries import WithEntrywise
from .traits import combines
from .vectors import PER, Vectors


@combines("outline", lambda stated: [stated.outlined])
@dataclass(frozen=True, eq=False, repr=False)
class Intersection(Structure):
    """All of `parts` at once, written `a & b`: sets are intersected, penalties added. Binding it looks for a closed
    form: see `combined`.

    Parameters
    ----------
    parts : tuple of Structure
        Those to have at once.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.structures.NonNegative() & pw.structures.Sparse(2) & pw.structures.Smooth(0.1)
    NonNegative() & Sparse(2, per='item') & Smooth(0.1)
    """

    parts: tuple[Structure, ...]

    def __post_init__(self):
        flat = []
        for part in self.parts:
            flat += part.parts if isinstance(part, Intersection) else [part]
        object.__setattr__(self, "parts", tuple(flat))

    @property
    def applies_to_new_rows(self):
        return all(part.applies_to_new_rows for part in self.parts)

    @property
    def outlined(self) -> Structure:
        """What binding will make of it, as far as that is known without a shape."""
        return combined([outline(part) for part in self.parts], repr(self))

    def bind(self, shape, transposed, name):
        whole = combined([part.bind(shape, transposed, name) for part in self.parts], f"{name} satisfies {self}")
        whole.check(shape, name)
        return whole

    def _unbound(self, *_):
        raise TypeError(f"{self} has no shape yet: bind it to a factor first")

    rescaled = value = prox = violation = gains = _unbound

    def __repr__(self):
        return " & ".join(map(repr, self.parts))


def outline(part: Structure) -> Structure:
    """A part with a single number for an array of bounds, so that parts can be combined before their shape is known."""
    if not isinstance(part, Elementwise):
        return part
    lower, upper = (
        b if np.ndim(b) == 0 else np.full((1, 1), end(b)) for b, end in ((part.lower, np.min), (part.upper, np.max))
    )
    return Elementwise(lower, upper, part.l1, part.l2, part.binary)


def combined(parts: list[Structure], what: str) -> Structure:
    """All parts as one structure: with the closed form of their intersection where one is known, else by alternating
    projections."""
    parts = without_repeats([piece for part in parts for piece in pieces(part)], what)
    entries = merged([part for part in parts if isinstance(part, Elementwise)], what)
    others = [part for part in parts if not isinstance(part, Elementwise)]
    if not others:
        return entries
    if whole := closed_form(entries, others):
        return whole
    return alternating(entries, others)


def pieces(part: Structure) -> list[Structure]:
    """A part that is a combination already is split: its bounds and penalties, and the rest."""
    if isinstance(part, WithEntrywise) and not part.entries.free:
        return [part.entries, part.altered(entries=FREE)]
    return [part]


def without_repeats(parts: list[Structure], what: str) -> list[Structure]:
    """Parts without those stated twice of the same vectors; an error where two of these differ."""
    rules = [part for part in parts if isinstance(part, Vectors) and part.core]
    for one, other in combinations(rules, 2):
        if type(one) is type(other) and one.per == other.per and one.own_terms()[-1] != other.own_terms()[-1]:
            raise ValueError(
                f"no value of {what}: {one} and {other} speak of the same {one.per}s. State one of them; GroupSparsity "
                "takes all groups at once, in groups= or labels="
            )
    repeated = [other for one, other in combinations(rules, 2) if repr(one) == repr(other)]
    return [part for part in parts if not any(part is other for other in repeated)]


def closed_form(entries: Elementwise, others: list[Structure]) -> Structure | None:
    """The intersection with its exact projection, or None. Each part looks at all of them, not at pairs."""
    if len(others) == 1 and entries.free:
        return others[0]
    forms = (part.together(entries, others) for part in others)
    return next((form for form in forms if form is not None), None)


def alternating(entries: Elementwise, others: list[Structure]) -> Structure:
    """Dykstra's method where all sets are convex, else one after the other: bounds, then nonzeros, then norms. Each set
    takes all of the bounds where it has a closed form with them, else the sign."""
    others = by_vectors(others)
    sign = NonNegative() if entries.nonnegative or any(part.nonnegative for part in others) else FREE
    bounded = [None if entries.free else closed_form(entries.bounds(), [part]) for part in others]
    signed = [part if part.nonnegative else closed_form(sign, [part]) for part in others]
    members = [whole or with_sign or part for whole, with_sign, part in zip(bounded, signed, others, strict=True)]
    if not entries.free and (entries.l1 or entries.l2 or None in bounded):
        members = [entries, *members]
    members.sort(key=lambda member: member.stage)
    return (Dykstra if all(member.convex for member in members) else Successive)(tuple(members))


def by_vectors(parts: list[Structure]) -> list[Structure]:
    """Parts about the same vectors become one, where that has a closed form."""
    for per in PER:
        same = [part for part in parts if isinstance(part, Vectors) and part.per == per]
        whole = Vectors.together(FREE, list(same)) if len(same) > 1 else None
        if whole is not None:
            parts = [whole if part is same[0] else part for part in parts if part not in same[1:]]
    return parts


def merged(parts: list[Elementwise], what: str) -> Elementwise:
    """The tighter bounds, the sums of the weights."""
    if not parts:
        return FREE
    lower, upper = (
        reduce(end, [getattr(part, name) for part in parts])
        for name, end in (("lower", np.maximum), ("upper", np.minimum))
    )
    if binary := any(part.binary for part in parts):
        lower, upper = np.ceil(lower), np.floor(upper)
    if np.any(lower > upper):
        raise ValueError(f"no value of {what}: its bounds exclude each other somewhere")
    return Elementwise(lower, upper, sum(p.l1 for p in parts), sum(p.l2 for p in parts), binary)
