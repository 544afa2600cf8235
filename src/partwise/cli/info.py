"""partwise info"""

from __future__ import annotations

import math
import shlex
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..data.observed import is_listed, observed
from ..data.rows import BLOCK
from ..data.validation import checked_data
from ..errors import IncompatibleError
from ..problem.weights import pose_observed
from ..registry import choose, resolve
from ..structures import Free, NonNegative
from .arguments import WHOLE
from .options import add_data, opened

UNITS = ("bytes", "KB", "MB", "GB", "TB")
COPIES = 6  # of the factors in working memory, besides X: what least squares took at its peak, dense and sparse


class Facts(NamedTuple):
    """What decides how to take data apart."""

    shape: tuple[int, ...]
    listed: bool  # by nonzeros
    n_zeros: int
    n_missing: int
    lowest: float
    highest: float
    whole: bool  # all are whole numbers
    symmetric: bool
    n_bytes: int


def add(commands) -> None:
    info_ = commands.add_parser("info", help="what a file holds, and how to go on")
    info_.set_defaults(command=info, modes=None, json=False, quiet=False, image=None)
    add_data(info_)
    info_.add_argument("--rank", type=WHOLE, default=10, help="number of parts that memory is told for (default: 10)")


def info(options) -> int:
    """Shape, zeros, range, holes and memory; the loss and the solver that would suit, and why; the next command."""
    X, _, _ = opened(options)
    X = checked_data(X, any_order=True, missing="nan")
    facts = facts_of(X)
    for line in described(facts, options.rank):
        print(line)
    loss, why, structure = suited(facts, images=options.image is not None)
    print(f"loss: {loss}, {why}")
    print(f"solver: {solver_for(X, facts, loss, structure, options.rank)}")
    words = ["--loss", loss] if loss != "frobenius" else []
    words += ["--structure", "1:free"] if structure is not None else []
    words += ["--transpose"] if options.transpose else []
    words += ["--key", options.key] if options.key else []
    print("how many parts: " + shlex.join(["partwise", "rank", options.file, *words, "--out", "rank"]))
    print(
        "or, with a number that you know: "
        + shlex.join(["partwise", "fit", options.file, *words])
        + " --rank R --out DIR"
    )
    return 0


def facts_of(X: Any) -> Facts:
    values = np.ravel(X.data if issparse(X) else X.values if is_listed(X) else X, order="K")
    blocks = (values[start : start + BLOCK] for start in range(0, values.size, BLOCK))
    seen = [facts_of_block(block[~np.isnan(block)]) for block in blocks]  # with little memory
    sizes, zeros, lows, highs, whole = zip(*seen, strict=True) if seen else ((), (), (), (), ())
    n_entries, n_listed = math.prod(X.shape), values.size if is_listed(X) else math.prod(X.shape)
    implied = (0.0,) if n_listed < n_entries else ()
    lowest, highest = min((*implied, *lows), default=math.inf), max((*implied, *highs), default=-math.inf)
    return Facts(
        shape=tuple(X.shape),
        listed=is_listed(X),
        n_zeros=n_entries - n_listed + sum(zeros),
        n_missing=values.size - sum(sizes),
        lowest=lowest if lowest <= highest else math.nan,
        highest=highest if lowest <= highest else math.nan,
        whole=all(whole),
        symmetric=is_symmetric(X),
        n_bytes=values.nbytes * (2 if is_listed(X) else 1),
    )


def facts_of_block(seen: np.ndarray) -> tuple[int, int, float, float, bool]:
    """Of some entries that are not missing: their number, that of zeros, the extremes, and whether all are whole."""
    extremes = float(seen.min(initial=math.inf)), float(seen.max(initial=-math.inf))
    return seen.size, int(np.count_nonzero(seen == 0)), *extremes, bool(np.all(seen == np.floor(seen)))


def is_symmetric(X: Any) -> bool:
    if X.ndim != 2 or X.shape[0] != X.shape[1] or X.shape[0] == 1:
        return False
    return abs(X - X.T).nnz == 0 if is_listed(X) else bool(np.array_equal(X, X.T))


def described(facts: Facts, rank: int) -> list[str]:
    """A line for each thing to know."""
    n_entries = math.prod(facts.shape)
    kind = "whole numbers" if facts.whole else "numbers"
    lines = [
        f"entries: {n_entries:,}, {'listed by nonzeros' if facts.listed else 'all of them stored'}, "
        f"{facts.n_zeros / n_entries:.1%} zeros",
        f"range: {kind} from {facts.lowest:.6g} to {facts.highest:.6g}",
        f"missing: {facts.n_missing:,} entries" if facts.n_missing else "missing: none",
    ]
    factors = 8 * sum(facts.shape) * rank
    need = facts.n_bytes + COPIES * factors
    lines.append(f"memory: {size(facts.n_bytes)} for the data, about {size(need)} for a fit in {rank} parts")
    return [
        *lines,
        *(["symmetric: X is its own transpose; see --symmetric and --off-diagonal"] if facts.symmetric else []),
    ]


def size(n_bytes: float) -> str:
    power = min(int(math.log(max(n_bytes, 1), 1000)), len(UNITS) - 1)
    return f"{n_bytes / 1000**power:.3g} {UNITS[power]}"


def suited(facts: Facts, images: bool) -> tuple[str, str, Any]:
    """A loss, why, and the structure of the first factor where it is not to be nonnegative."""
    if facts.lowest < 0:
        return "frobenius", "since entries are negative: one factor must be free to be so, the other stays >= 0", Free()
    if images:
        return "frobenius", "for images; kl if they count photons, huber if parts are covered or glare", None
    if facts.whole and facts.highest > 1:
        return "kl", "since whole numbers >= 0 are mostly counts; frobenius if they are not", None
    if facts.whole:
        return "frobenius", "for entries that are 0 or 1; l1 with binary factors finds parts that are 0/1 as well", None
    return "frobenius", "least squares; kl if large entries vary more than small ones, huber if a few are wrong", None


def solver_for(X, facts: Facts, loss: str, structure, rank: int) -> str:
    """What `auto` takes, and why."""
    rank = min(rank, *facts.shape)
    stated = (structure or NonNegative(), *(NonNegative() for _ in facts.shape[1:]))
    try:
        solver, reason = choose(
            pose_observed(False, observed(X), resolve("loss", loss), stated, rank).normalized(), "auto"
        )
    except (IncompatibleError, ValueError) as error:
        return f"none: {error}"
    return f"{type(solver).__name__}, {reason}"
