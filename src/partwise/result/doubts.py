"""What is warned of: data and ranks that leave the parts open, and factors that are not what was wanted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..data.names import Mode, factor_names, listed
from ..errors import warn
from ..problem import Factors, Problem, gram_of, ratio
from ..solvers import Solver
from ..structures import Structure
from .certificate import Certificate

WILD, WORTHLESS = 10, 100  # times as large as expected: a model that missing entries do not hold back


# -- before a run --------------------------------------------------------------------------------------


def warn_if_unobserved(problem: Problem, named: Sequence[Mode] = ()) -> None:
    """Rows along a mode whose factor is to be found, of which nothing is observed, or all has weight 0."""
    without_weight = [False if units is None else units.numbers == 0 for units in problem.row_units]
    counts = {m: int(np.count_nonzero(problem.data.unobserved(m) | without_weight[m])) for m in problem.modes}
    warn_of_unobserved({m: count for m, count in counts.items() if count}, len(problem.data.shape), named)


def warn_of_unobserved(counts: dict[int, int], order: int, named: Sequence[Mode] = ()) -> None:
    """`counts`: of how many rows along a mode nothing is observed."""
    names = [mode.name for mode in named] or list(map(str, range(1, order + 1)))
    kinds = ("row", "column") if order == 2 else [f"slice along mode {name}" for name in names]
    plural = ("rows", "columns") if order == 2 else [f"slices along mode {name}" for name in names]
    if counts:
        told = listed(f"{count} {(kinds if count == 1 else plural)[mode]}" for mode, count in counts.items())
        warn(
            f"nothing is observed in {told} of X: their rows of the factors are 0 where the structures allow, "
            "and so is the model there. Leave them out if that is not wanted."
        )


def warn_if_overcomplete(problem: Problem, solver: Solver) -> None:
    """Where X itself is a model, and nothing else is wanted of the factors."""
    matrix, most = len(problem.data.shape) == 2, complete_rank(problem)
    if problem.rank > most and is_plain(problem) and not problem.symmetric and not solver.rank_is_limit:
        model, limit = (
            ("W H", "min(X.shape)") if matrix else ("the model", "the number of fibers along its longest mode")
        )
        stated = "structure_W and structure_H" if matrix else "structures"
        warn(
            f"rank {problem.rank} is above {limit} = {most}: {model} can be X itself in many ways, and parts mean "
            f"little. Take a smaller rank, or say more of the factors with {stated}."
        )


def complete_rank(problem: Problem) -> int:
    """With how many parts `X I` or `I X` is a model: the smaller side of X, or the number of fibers of a tensor along
    its longest mode."""
    return math.prod(problem.data.shape) // max(problem.data.shape)


def is_plain(problem: Problem) -> bool:
    """Whether factors are to be nonnegative, or free, and nothing else."""
    return all(s.elementwise is not None and s.elementwise.plain for s in problem.structures)


# -- after it ------------------------------------------------------------------------------------------


def wildness(problem: Problem, factors: Factors) -> float:
    """The root mean square of the model over all entries, against what the observed ones let expect: were X of rank
    one, with observations at random, it would be `r_1 ... r_d / r^(d - 1)`, r that of X and r_i over rows along a mode.
    0 where all is observed, or one factor alone is to be found."""
    data, order = problem.data, len(problem.data.shape)
    if data.complete or len(problem.modes) < 2:
        return 0.0
    square = float(np.sum(np.prod([gram_of(A).astype(np.float64) for A in factors], axis=0)))
    squares, counts = zip(*(data.observed_squares(mode) for mode in range(order)), strict=True)
    every = squares[0].sum() / max(counts[0].sum(), 1)
    expected = math.prod(np.mean(ratio(s, c)) / every for s, c in zip(squares, counts, strict=True)) * every
    return math.sqrt(ratio(max(square, 0.0) / math.prod(data.shape), expected))


def warn_if_wild(wild: float) -> None:
    if wild > WILD:
        warn(
            f"the model is {wild:.2g} times as large on average as the observed entries of X let expect: where entries "
            f"are missing the data do not hold it back, and its predictions are "
            f"{'worth nothing' if wild > WORTHLESS else 'far from the data'}. Take fewer parts, or add penalties to "
            "all factors, such as structures.NonNegative() & structures.L2(0.01)."
        )


def warn_of_factors(problem: Problem, certified: Certificate, stated: tuple[Structure, ...]) -> None:
    warn_if_unreached(certified)
    warn_if_zero(problem, certified)
    warn_if_infeasible(certified, stated)


def warn_if_unreached(certified: Certificate) -> None:
    if certified.unreached:
        warn(
            f"{certified.unreached} positive entries of X have a model of 0, where this loss is infinite: they are "
            "counted with a model at a tiny share of X. The parts that are held are 0 there (features that were not "
            "seen before? then leave them out, or fit again with them), or the start or the bounds keep them at 0."
        )


def warn_if_zero(problem: Problem, certified: Certificate) -> None:
    """Of components that came out zero although nothing asks for it: no penalty, no structure, no lack of data."""
    n_zero, n_nonzero = len(certified.zero_components), problem.rank - len(certified.zero_components)
    if n_zero and n_nonzero and is_plain(problem) and problem.rank < complete_rank(problem):
        warn(
            f"{n_zero} of the {problem.rank} parts {'is' if n_zero == 1 else 'are'} zero (see result.certificate): the "
            f"run found no use for {'it' if n_zero == 1 else 'them'}. Take {n_nonzero} "
            f"part{'' if n_nonzero == 1 else 's'}, or try other starts: "
            "init='random' with n_init=5."
        )


def warn_if_infeasible(certified: Certificate, stated: tuple[Structure, ...]) -> None:
    for name, violation, structure in zip(factor_names(len(stated)), certified.violations, stated, strict=True):
        if violation > 0:
            warn(
                f"{name} is not in the set {structure}: it is off by up to {violation:.1e}. Sets are projected onto in "
                "turns here, and did not come together: they may contradict each other, or be hard to meet at once. "
                "See structure.exact, and result.certificate."
            )
