"""A problem from what the user states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..data import Data
from ..data.names import factor_names
from ..errors import warn
from ..losses import Loss
from ..structures import Structure
from .problem import Problem


def pose(data: Data, loss: Loss, structures: Sequence[Structure], rank: int) -> Problem:
    """A problem from structures as the user states them; checks what the loss and the structures demand of X."""
    names = factor_names(len(structures))
    bound = tuple(
        structure.bind((dim, rank), transposed=name == "H", name=name)
        for structure, dim, name in zip(structures, data.shape, names, strict=True)
    )
    if all(structure.fixes_scale for structure in bound):
        stated = " and ".join(f"{structure} for {name}" for structure, name in zip(structures, names, strict=True))
        both, rest, model = ("both", "the other factor", "W H") if len(names) == 2 else ("all", "another", "the model")
        warn(
            f"{stated} {both} fix the size of every component, so {model} cannot adapt to the scale of X. "
            f"State one of them, and let {rest} be NonNegative() or Free()."
        )
    lowest, _ = data.extremes
    nonnegative = all(structure.nonnegative for structure in bound)
    if why := loss.refuses(lowest, nonnegative):
        raise ValueError(f"{why}.{data.where_negative()}")
    if lowest < 0 and nonnegative and not any(structure.fixed for structure in bound):  # parts held are what they are
        raise ValueError(
            f"Negative values in data passed to partwise: X goes down to {lowest:g}, which nonnegative factors "
            "cannot reproduce. Clip or shift X, or let one factor of pw.factorize be structures.Free(); if such values "
            f"mean that an entry is missing, put NaN in their place, or use mask=.{data.where_negative()}"
        )
    problem = Problem(loss.held(data, nonnegative), loss, bound, rank)
    # rows that are problems of their own may be seen in small entries alone, which sums over all would drown
    return replace(problem, data=problem.data.exactly()) if problem.separable else problem
