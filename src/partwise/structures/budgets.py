"""Sparsity budgets: the mean sparsity of each group of components, shared out as fits best.

Potluru, Le Roux, Pearlmutter, Hershey and Brand (2013), Coordinate descent for mixed-norm NMF.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import kernels
from ..checks import is_between
from ..data.units import in_units
from .base import ROUNDING, beyond_rounding
from .norm import FixedSize
from .sparse import checked_groups
from .vectors import SLACK, shortest

MET = 1e-12  # of a sum, relative


@dataclass(frozen=True, eq=False, repr=False)
class GroupSparsity(FixedSize):
    """Each component is nonnegative and of norm 1, and the components of a group have the mean sparsity given for it,
    in Hoyer's measure, 0 for a flat vector and 1 for a single nonzero::

        |a_k|_2 = 1,    sum_{k in g} |a_k|_1 = |g| (sqrt(n) - s_g (sqrt(n) - 1)),    n entries each.

    The nearest such components are in proportion to `(a - mu)_+`, with one mu for a group: see `project_groups`.

    Parameters
    ----------
    groups : sequence, optional
        The sizes of consecutive groups, or a list of indices for each; None: one group of all.
    sparsity : float or sequence of float
        The mean sparsity of all groups, or of each.
    budget : float or sequence of float
        In place of `sparsity`: the L1 totals of the groups.
    labels : sequence, optional
        In place of `groups`: a label for each component; groups count in the order in which they first appear.
    weights : sequence of float, optional
        The norms of the components, if not 1; the mean sparsity is then weighted by them.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, structure_H=pw.structures.GroupSparsity(sparsity=0.6), random_state=0)
    >>> pw.metrics.sparsity(result.H).mean().round(6)
    np.float64(0.6)
    """

    stated: tuple[tuple[int, ...], ...] | None = None
    sparsity: tuple[float, ...] | None = None
    budget: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None
    lengths: np.ndarray | None = None  # the norm of each component, once it is known how many there are
    totals: np.ndarray | None = None  # the sum of each group, once it is known how long they are
    core = 3
    nonnegative = True
    convex = False
    columnwise = False

    def __init__(
        self, groups: Any = None, sparsity: Any = None, budget: Any = None, *, labels: Any = None, weights: Any = None
    ) -> None:
        super().__init__(per="component")
        if (sparsity is None) == (budget is None):
            raise ValueError(
                "give either sparsity=, a number between 0 and 1 for all groups or one for each, or budget=, the sum "
                "of all entries of each group; the first argument is the groups"
            )
        stated = None if groups is None and labels is None else checked_groups(groups, labels)
        n_groups = 1 if stated is None else len(stated)
        for name, value, limit in (("sparsity", sparsity, 1.0), ("budget", budget, math.inf)):
            object.__setattr__(self, name, None if value is None else checked_numbers(name, value, n_groups, limit))
        if weights is not None:
            norms = np.asarray(weights)
            if norms.ndim != 1 or norms.dtype.kind not in "iuf" or not np.all((norms > 0) & np.isfinite(norms)):
                raise ValueError(f"weights must be a list of positive numbers, one for each component; got {weights!r}")
            weights = tuple(norms.astype(float).tolist())
        object.__setattr__(self, "stated", stated)
        object.__setattr__(self, "weights", weights)

    @property
    def interchangeable(self):
        return (self.stated is None or len(self.stated) == 1) and self.weights is None

    @property
    def magnitudes(self):
        size = self.size if self.lengths is None else float(self.lengths.max())
        return size, size

    def takes(self, entries):
        return entries.plain and self.sized is None

    def needed(self, shape):
        """Of all components of a group together no fewer can have its sum, `|b_k|_1 <= c_k sqrt(n_k)`; shared out."""
        needed = np.empty(shape[1])
        for group, total in zip(self.members(shape[1]), self.totals, strict=True):
            squares = self.lengths[list(group)] ** 2
            needed[list(group)] = total**2 * squares / squares.sum() ** 2 * (1 - SLACK)
        return needed

    def members(self, rank: int) -> tuple[tuple[int, ...], ...]:
        """The groups of that many components."""
        return self.stated if self.stated is not None else (tuple(range(rank)),)

    def bind(self, shape, transposed, name):
        n, rank = shape
        groups = self.members(rank)
        if sorted(k for group in groups for k in group) != list(range(rank)):
            raise ValueError(
                f"the groups of {self} must take up every component of {name} once: it has {rank}, from 0 to "
                f"{rank - 1}, and they name {sum(map(len, groups))}"
            )
        if self.weights is not None and len(self.weights) != rank:
            raise ValueError(f"{self} has {len(self.weights)} weights, but {name} has {rank} components")
        lengths = np.ones(rank) if self.weights is None else np.array(self.weights)
        norms = np.array([lengths[list(group)].sum() for group in groups])
        if self.sparsity is None:
            totals = np.array(self.budget)
        else:
            totals = norms * (math.sqrt(n) - np.array(self.sparsity) * (math.sqrt(n) - 1))
        return super(GroupSparsity, self.altered(lengths=lengths, totals=totals)).bind(shape, transposed, name)

    def sums(self, shape):
        return {"entries": float(self.totals.sum()), "squares": float((self.lengths**2).sum())}

    def check(self, shape, name):
        n = shape[0] if self.most is None else min(self.most, shape[0])
        for number, group in enumerate(self.members(shape[1])):
            least = float(self.lengths[list(group)].sum())
            most, total = least * math.sqrt(n), float(self.totals[number])
            if not least * (1 - SLACK) <= total <= most * (1 + SLACK):
                raise ValueError(
                    f"no value of {name} satisfies {self}: the components of group {number} are to add up to "
                    f"{total:.6g}, but with {n} entries that may be nonzero they add up to {least:.6g} (a single "
                    f"nonzero each) to {most:.6g} (all of them equal). " + self.advice(n, shape[0])
                )

    def advice(self, n: int, dim: int) -> str:
        """What a budget in range would be."""
        if self.sparsity is None:
            return "Give a budget in this range, or a sparsity instead."
        lowest = (math.sqrt(dim) - math.sqrt(n)) / (math.sqrt(dim) - 1)
        return f"Give a sparsity of at least {math.ceil(1e4 * lowest) / 1e4:g}, or allow more nonzeros."

    def rescaled(self, exponent, objective_exponent):
        scaled = super().rescaled(exponent, objective_exponent)
        return scaled.altered(lengths=in_units(self.lengths, exponent), totals=in_units(self.totals, exponent))

    def scores(self, A, step):
        return A

    def values(self, A, step, mask):
        allowed = A if mask is None else np.where(mask, A, A.dtype.type(-np.inf))
        return kernels.of(A).with_budgets(allowed, self.members(A.shape[1]), self.lengths, self.totals)

    def violation(self, A):
        """How far signs, norms and sums are off, shared out evenly over the entries: near a vertex the nearest point
        is much further off."""
        V = np.ascontiguousarray(A.T, dtype=np.float64)
        n = V.shape[1]
        norms, sums = np.linalg.norm(V, axis=1), V.sum(axis=1)
        totals = np.array([sums[list(group)].sum() for group in self.members(len(V))])
        met = (MET + ROUNDING * np.finfo(A.dtype).eps) * self.totals  # what sums of many entries may be off by
        missed = np.maximum(np.abs(totals - self.totals) - met, 0)
        off = [*-V.min(axis=1), *np.abs(norms - self.lengths) / math.sqrt(n), *missed / n]
        return max(beyond_rounding(max(off), A), self.surplus(A))

    def own_terms(self):
        groups = [] if self.stated is None else [shortest(self.stated)]
        numbers = f"sparsity={plain(self.sparsity)}" if self.budget is None else f"budget={plain(self.budget)}"
        weights = [] if self.weights is None else [f"weights={list(self.weights)}"]
        return [*super().own_terms(), f"GroupSparsity({', '.join([*groups, numbers, *weights])})"]


def project_groups(
    A: Any, groups: Any = None, sparsity: Any = None, budget: Any = None, *, labels: Any = None, weights: Any = None
) -> np.ndarray:
    """The nearest array to A, (n, components), whose columns satisfy `GroupSparsity` of these arguments, exactly::

        min |B - A|    such that    B >= 0,    |b_k|_2 = c_k,    sum_{k in g} |b_k|_1 = budget_g.

    The answer is `b_k = c_k (a_k - mu)_+ / |(a_k - mu)_+|` with one mu for each group, and a column whose largest entry
    is not above mu has that one alone; the sum falls as mu grows, so mu takes one search. The work is in proportion to
    the size of A.

    Parameters
    ----------
    A : array-like of shape (n, components)
        What to project.
    groups : sequence, optional
        The sizes of consecutive groups, or a list of indices for each; None: one group of all.
    sparsity : float or sequence of float
        The mean sparsity of all groups, or of each.
    budget : float or sequence of float
        In place of `sparsity`: the L1 totals of the groups.
    labels : sequence, optional
        In place of `groups`: a label for each component; groups count in the order in which they first appear.
    weights : sequence of float, optional
        The norms of the components, if not 1; the mean sparsity is then weighted by them.

    Returns
    -------
    ndarray of shape (n, components)
        The nearest such array.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> A = np.random.default_rng(0).uniform(size=(12, 3))
    >>> B = pw.structures.project_groups(A, sparsity=0.6)
    >>> np.linalg.norm(B, axis=0).round(6), pw.metrics.sparsity(B.T).mean().round(6)
    (array([1., 1., 1.]), np.float64(0.6))
    """
    A = np.asarray(A)
    if A.ndim != 2 or not A.size or A.dtype.kind not in "biuf":
        raise ValueError(f"A must be a matrix of real numbers, (n, components); got shape {A.shape} of {A.dtype}")
    A = np.ascontiguousarray(A, dtype=A.dtype if A.dtype in (np.float32, np.float64) else np.float64)
    if not np.all(np.isfinite(A)):
        raise ValueError("A contains NaN or infinity: there is no nearest matrix. Fill or remove these entries first")
    structure = GroupSparsity(groups, sparsity, budget, labels=labels, weights=weights)
    return structure.bind(A.shape, False, "A").prox(A, 0.0)


def checked_numbers(name: str, value, n_groups: int, limit: float) -> tuple[float, ...]:
    """A number for each group, from one for all or one for each."""
    numbers = (value,) * n_groups if np.ndim(value) == 0 else tuple(value)
    if len(numbers) != n_groups:
        raise ValueError(f"{name} has {len(numbers)} numbers for {n_groups} groups: give one for all, or one for each")
    for number in numbers:
        if not is_between(number, 0, limit):
            span = "between 0 (flat) and 1 (a single nonzero)" if limit == 1 else "at least 0"
            raise ValueError(f"the {name} of a group must be a number {span}, got {number!r}")
    return tuple(float(number) for number in numbers)


def plain(numbers: tuple[float, ...]) -> str:
    """One number where all are the same."""
    shown = [f"{number:g}" for number in numbers]
    return shown[0] if len(set(shown)) == 1 else f"[{', '.join(shown)}]"
