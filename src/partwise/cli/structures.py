"""partwise structures"""

from __future__ import annotations

import inspect

import numpy as np

from .. import registry
from ..compatibility import EXAMPLES, LOSSES, TIED, automatic
from .table import lined_up


def add(commands) -> None:
    structures_ = commands.add_parser("structures", help="what can be asked of factors, and with which losses")
    structures_.set_defaults(command=structures)


def structures(_options) -> int:
    """A line for each structure that has a name: how it is written, the losses it goes with, and what it says."""
    print(lined_up([("write", "losses", "meaning"), *map(structure_line, registry.STRUCTURES)]))
    print("\nJoin them with &: --structure-h 'nonnegative & l1(0.1)'. Losses other than frobenius and huber need")
    print("nonnegative factors: join with nonnegative. All on one page: docs/structures.md and docs/compatibility.md.")
    return 0


def structure_line(name: str) -> tuple[str, str, str]:
    example = (EXAMPLES | TIED)[name]
    losses = [loss for loss in LOSSES if automatic(np.ones((3, 3)), loss, example)]
    text = "all" if len(losses) == len(LOSSES) else ", ".join(losses)
    told = " ".join((inspect.getdoc(registry.STRUCTURES[name]) or "").partition("\n\n")[0].split())
    return registry.EXAMPLES.get(name, name), text, told.split(". ")[0].rstrip(".:")
