"""How the traits of a combined structure follow from those of its members: one table for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Rule = Callable[[Iterable[Any]], Any]


def same(values):
    """That of the only member."""
    (value,) = values
    return value


def narrowest(magnitudes):
    """The range of the largest entry where all members bound it."""
    least, most = zip(*magnitudes, strict=True)
    return max(least), min(most)


def widest(magnitudes):
    """The same where each member bounds some of the entries."""
    least, most = zip(*magnitudes, strict=True)
    return max(least), max(most)


KINDS = ("intersection", "columns", "entries", "outline")
# for each kind: members that all hold of the whole factor; each of its own components; what holds of the entries, under
# a structure that adds to it; the closed form that a stated `a & b` will have. None: the class says it itself
TRAITS: dict[str, tuple[Rule | None, Rule | None, Rule | None, Rule | None]] = {
    "fixed": (None, all, None, None),
    "nonnegative": (any, all, same, same),
    "convex": (all, all, None, same),
    "exact": (None, all, None, same),
    "scale_free": (all, all, same, None),
    "cone": (all, all, None, None),
    "fixes_scale": (any, all, None, None),
    "magnitudes": (narrowest, widest, same, None),
    "interchangeable": (all, None, None, None),
    "replaceable": (all, None, None, None),
    "separable_rows": (all, all, None, None),
    "applies_to_new_rows": (None, all, None, None),
}


def combines(kind: str, members: Callable[[Any], Iterable[Any]]) -> Callable[[type], type]:
    """A class decorator: traits as the table says for this kind, from those of `members(structure)`."""

    def decorate(cls):
        for trait, rules in TRAITS.items():
            rule = rules[KINDS.index(kind)]
            if rule is not None:
                setattr(cls, trait, combined_trait(trait, rule, members))
        return cls

    return decorate


def combined_trait(trait: str, rule: Rule, members: Callable[[Any], Iterable[Any]]) -> property:
    return property(lambda structure: rule(getattr(member, trait) for member in members(structure)))
