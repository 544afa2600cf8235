"""What numbers a user may give: predicates, and rules that also say in words what they ask for."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple


def is_int(value: Any) -> bool:
    """Whether it is an integer of any type; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_positive_int(value: Any) -> bool:
    return is_int(value) and value >= 1


def is_real(value: Any) -> bool:
    """Whether it is a real number of any type, NaN and infinity included; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """The same without NaN."""
    return is_real(value) and value == value  # noqa: PLR0124  # not NaN


def is_between(value: Any, least: float, most: float) -> bool:
    """Whether it is a number from `least` to `most`, both included."""
    return is_number(value) and least <= value <= most


class Rule(NamedTuple):
    """What a parameter may be, in words and as a test."""

    says: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Any) -> Rule:
        """The rule that also takes one more value, such as None."""
        same = type(other)
        return Rule(f"{self.says}, or {other!r}", lambda v: (type(v) is same and v == other) or self.holds(v))


NUMBER = Rule("a number", is_number)
POSITIVE_INT = Rule("a whole number >= 1", is_positive_int)
AT_LEAST_0 = Rule("a number >= 0", lambda value: is_number(value) and value >= 0)
BELOW_1 = Rule("a number from 0 to below 1", lambda value: is_number(value) and 0 <= value < 1)


def one_of(*values) -> Rule:
    return Rule(
        f"one of {', '.join(map(repr, values))}", lambda value: isinstance(value, str | None) and value in values
    )
