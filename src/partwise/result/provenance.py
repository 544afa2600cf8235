"""Where a result comes from: what was called, with which settings, of which data, and when."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..data.observed import Observed
from ..data.weighted import Weighted
from ..fingerprint import fingerprint
from ..registry import signature_of


class Brief(reprlib.Repr):
    """Arguments with arrays and long lists in a few words; to write out a small array takes longer than a small fit."""

    def __init__(self):
        super().__init__()
        self.maxstring = self.maxother = 100

    def repr1(self, x, level):
        if isinstance(x, np.generic):
            x = x.item()
        shape = getattr(x, "shape", None)
        return super().repr1(x, level) if shape is None else f"<{type(x).__name__} of shape {shape}>"


BRIEF = Brief()


@dataclass(frozen=True)
class Provenance:
    """Enough to make a result again; text, numbers, lists and dicts throughout."""

    version: str  # of partwise
    call: str  # a command, or a call in Python
    date: str  # when it ended: ISO 8601, UTC
    seed: int | None  # None: not stated as a number, so that the run cannot be repeated to the bit
    settings: dict[str, Any]  # what was stated or chosen, the solver and the start among it
    data: dict[str, Any]  # shape, type, range, entries missing, and a fingerprint
    options: dict[str, Any] | None = None  # of the command, as `partwise fit --from` takes them

    @property
    def sentence(self) -> str:
        seed = "without a seed" if self.seed is None else f"with seed {self.seed}"
        return f"partwise {self.version}, {self.date}, {seed}: {self.call}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        about = {name: value for name, value in vars(self).items() if name != "options"}
        return about if self.options is None else about | {"options": self.options}


def provenance_of(function: Callable, said: dict[str, Any], given: Observed, settings: dict[str, Any]) -> Provenance:
    """Of a call with these arguments, whose first is X."""
    from .. import __version__  # noqa: PLC0415  # the package imports this module

    seed = said.get("random_state")
    return Provenance(
        version=__version__,
        call=call_text(function, said),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=int(seed) if isinstance(seed, int | np.integer) else None,
        settings=settings,
        data=data_facts(given, of_inner_fit=isinstance(next(iter(said.values())), Observed)),
    )


def call_text(function: Callable, said: dict[str, Any]) -> str:
    """`partwise.factorize(X, 3, loss='kl')`: the arguments that are not at their defaults."""
    first, *rest = signature_of(function).parameters.values()
    told = [first.name]
    for parameter in rest:
        value = said[parameter.name]
        if parameter.default is parameter.empty:
            told.append(BRIEF.repr(value))
        elif value is not parameter.default and not (
            type(value) is type(parameter.default) and value == parameter.default
        ):
            told.append(f"{parameter.name}={BRIEF.repr(value)}")
    return f"partwise.{function.__name__}({', '.join(told)})"


def data_facts(given: Observed, of_inner_fit: bool = False) -> dict[str, Any]:
    """What tells data from others; those of one fit among many have their fingerprint elsewhere."""
    data = given.data
    inner = data.entries if isinstance(data, Weighted) else data
    low, high = map(float, data.extremes)
    facts = {
        "shape": list(data.shape),
        "type": str(data.dtype),
        "n_missing": math.prod(data.shape) - given.n_observed,
        "lowest": low if math.isfinite(low) else None,
        "highest": high if math.isfinite(high) else None,
    }
    if of_inner_fit:
        return facts
    counts = (*data.excess.arrays, data.unlisted) if isinstance(data, Weighted) else ()
    return facts | {"fingerprint": fingerprint(*inner.arrays, *counts, *given.vectors)}


FACTS = {
    "shape": "the shape of X",
    "type": "the type of X",
    "n_missing": "the number of missing entries",
    "lowest": "the lowest entry",
    "highest": "the highest entry",
    "fingerprint": "the fingerprint of the entries",
}


def differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Where data differ from those of an earlier run."""
    return [
        f"{words} was {then[name]} then, and is {now[name]} now"
        for name, words in FACTS.items()
        if name in then and name in now and then[name] != now[name]
    ]
