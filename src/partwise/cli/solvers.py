"""partwise solvers"""

from __future__ import annotations

import numpy as np

from .. import registry
from ..compatibility import EXAMPLES, LOSSES, TIED, automatic, mark
from ..structures import NonNegative
from .table import lined_up


def add(commands) -> None:
    solvers_ = commands.add_parser("solvers", help="which solver takes which losses and structures")
    solvers_.set_defaults(command=solvers)


def solvers(_options) -> int:
    """A line for each solver, then what `auto` takes for each loss, and why."""
    print(lined_up([("solver", "losses", "structures"), *map(solver_line, registry.SOLVERS)]))
    chosen = ((loss, automatic(np.ones((3, 3)), loss, NonNegative())) for loss in LOSSES)
    print("\nWithout --solver, for nonnegative factors:")
    print(lined_up([(f"  {loss}", *taken) for loss, taken in chosen if taken]))
    print("\nHow losses and structures go together: partwise structures.")
    return 0


def solver_line(name: str) -> tuple[str, str, str]:
    """What a solver takes, with nonnegativity added where it needs that."""
    solver = registry.resolve("solver", name)
    takes = {
        loss: [text for text, example in (EXAMPLES | TIED).items() if mark(solver, loss, example) != "no"]
        for loss in LOSSES
    }
    losses = [loss for loss, texts in takes.items() if texts]
    if not losses:
        return name, "frobenius", "nonnegative, of symmetric data (--symmetric)" if solver.symmetric else ""
    kinds = {text for texts in takes.values() for text in texts}
    return name, ", ".join(losses), told(kinds)


def told(kinds: set[str]) -> str:
    """Structures in a few words where they are many."""
    entries, tied = ([text for text in examples if text in kinds] for examples in (EXAMPLES, TIED))
    groups = [
        "entry by entry" if {*EXAMPLES} - {"binary"} <= set(entries) else ", ".join(entries),
        "binary" if "binary" in entries and {*EXAMPLES} <= set(entries) else "",
        "all that tie entries" if len(tied) == len(TIED) else ", ".join(tied),
    ]
    return ", ".join(filter(None, groups))
