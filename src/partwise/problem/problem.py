"""The problem: data + loss + structures. The one definition of the objective and of optimality.

    minimise  loss(X, [[A_1, ..., A_d]]) + sum_i g_i(A_i)

Factors are tall, `(dim, rank)`. A problem can be posed in other units (`normalized`), where the largest entry
of X is near 1; it then knows the way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from .. import kernels
from ..data import Data
from ..data.units import shared_units, times_power
from ..losses import Loss
from ..losses.beta import SMALLEST
from ..losses.expansions import Expansion, OwnGrams, Quadratic, largest, normal_equations, ratio, relative_gain
from ..structures import Structure
from .blocks import measured

Factors = Sequence[np.ndarray]


class Measured(NamedTuple):
    fit: float
    stationarity: float


class RowUnits(NamedTuple):
    """Units of the rows of a factor: a row here divided by its own is the user's (see `partwise.problem.weights`)."""

    numbers: np.ndarray
    structure: Structure  # in the units of the user

    def into(self, A: np.ndarray) -> np.ndarray:
        """A factor of the user in these units."""
        return A * self.numbers[:, None].astype(A.dtype)

    def out_of(self, A: np.ndarray) -> np.ndarray:
        """The same back; rows whose unit is 0 are 0."""
        inverse = np.divide(1.0, self.numbers, out=np.zeros_like(self.numbers), where=self.numbers > 0)
        return self.structure.nearest(A * inverse[:, None].astype(A.dtype), 0.0)


NOTHING: Mapping[int, Expansion] = MappingProxyType({})  # is known
CONSTANT = 1e-7  # relative deviation from the mean below which X is constant: its square is near rounding


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss, structures and data put together: the objective, its gradient and the measure of optimality, as functions
    of factors that are all tall, (dim, rank). `partwise.factorize` makes one, in units where the largest entry of X is
    near 1, and hands it to the start and to the solver.

    Parameters
    ----------
    data : Data
        X, in units where its largest entry is near 1.
    loss : Loss
        The loss of an entry.
    structures : tuple of Structure
        One for each mode, bound to (dim, rank).
    rank : int
        The number of parts.
    exponents : tuple of int
        A factor here times 2**exponent is the factor the user knows.
    weight_exponent : float
        Weights of entries here times 2**this are those the user knows.
    row_units : tuple
        Units of the rows of each factor, None where they are those of the user.
    null_fit : float, optional
        The loss of the null model, where the data do not tell it because of these units.

    Examples
    --------
    >>> import partwise as pw
    >>> class Watched(pw.init.Random):
    ...     def raw(self, problem, rng):
    ...         print(problem.rank, problem.data.shape, problem.loss)
    ...         return super().raw(problem, rng)
    ...
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, init=Watched())
    3 (20, 12) Frobenius()
    """

    data: Data
    loss: Loss
    structures: tuple[Structure, ...]  # bound to (dim, rank)
    rank: int
    exponents: tuple[int, ...] = ()  # a factor here times 2**exponent is the factor the user knows
    weight_exponent: float = 0.0  # weights of entries here times 2**this are those the user knows
    row_units: tuple[RowUnits | None, ...] = ()  # of each factor, where its rows are not in those of the user
    null_fit: float | None = None  # the loss of the null model, where the data do not tell it because of these units

    symmetric: ClassVar[bool | str] = False  # `X ~ A A'`, one factor: see `partwise.problem.symmetric`

    @cached_property
    def modes(self) -> list[int]:
        """The factors to solve for."""
        return [mode for mode, structure in enumerate(self.structures) if not structure.fixed]

    @cached_property
    def separable(self) -> bool:
        """One factor to solve for, whose structure speaks of rows: each of them is a problem of its own."""
        return len(self.modes) == 1 and self.structures[self.modes[0]].separable_rows

    def __post_init__(self):
        if not self.exponents:
            object.__setattr__(self, "exponents", (0,) * len(self.structures))
        if not self.row_units:
            object.__setattr__(self, "row_units", (None,) * len(self.structures))

    # -- objective -------------------------------------------------------------------------------------

    def objective(self, factors: Factors) -> float:
        """`loss(X, [[A]]) + sum_i g_i(A_i)`."""
        return self.fit(factors) + self.penalty(factors)

    def penalty(self, factors: Factors) -> float:
        return sum(structure.value(A) for structure, A in zip(self.structures, factors, strict=True))

    def fit(self, factors: Factors, mode: int = 0, known: Expansion | None = None) -> float:
        """The loss alone. `known`: the expansion in this mode, which saves a product for least squares."""
        if self.data.in_blocks:
            return self.measure(factors).fit
        return self.loss.fit(self.data, factors, mode, known, self.structures[mode].ridge)

    def direct_fit(self, factors: Factors) -> float:
        """The loss summed entry by entry, in double precision."""
        return self.loss.direct_fit(self.data, factors)

    def precise_fit(self, factors: Factors) -> float:
        """`fit` in double precision whatever the type of X."""
        problem, factors = self.in_double(factors)
        return problem.fit(factors)

    def in_double(self, factors: Factors) -> tuple[Problem, Factors]:
        """The problem and the factors in double precision."""
        if self.data.dtype == np.float64:
            return self, factors
        return replace(self, data=self.data.double()), self.tied(
            tuple(kernels.of(A).astype(A, np.float64) for A in factors)
        )

    @cached_property
    def in_single(self) -> Problem:
        """The problem in single precision."""
        return replace(self, data=self.data.single())

    def taken(self, factors: Factors) -> Factors:
        """Factors in the type of this problem, within its structures; those of another may be in another precision."""
        kind = self.data.dtype
        if all(A.dtype == kind for A in factors):
            return factors
        taken = []
        for structure, A in zip(self.structures, factors, strict=True):
            entries, B = structure.elementwise, kernels.of(A).astype(A, kind)
            # bounds other than 0 are another number there
            taken.append(B if entries is not None and entries.plain else structure.nearest(B, 0.0))
        return self.tied(tuple(taken))

    def relative_error(self, factors: Factors) -> float:
        """`(fit / p)^p / size` in double precision: `|X - [[A]]| / |X|` for least squares and L1."""
        return self.relative(self.precise_fit(factors))

    def relative(self, fit: float) -> float:
        """The relative error of a fit; 0 for an all-zero X that is met exactly."""
        return float(ratio(self.error(fit), self.size))

    def error(self, fit: float) -> float:
        """`(fit / p)^p`: `|X - [[A]]|` for least squares, the sum of `|x - y|` for L1, else `sqrt(2 fit)`."""
        return (max(fit, 0.0) / self.loss.error_power) ** self.loss.error_power

    def against_null(self, fit: float) -> float:
        """The error of a fit over that of the null model; 0 for an all-zero X that is met, where a model of 0 may count
        as the floor of the divergences."""
        if self.size == 0 and fit <= self.loss.of_constant(self.data, 2 * SMALLEST):
            return 0.0
        return float(ratio(self.error(fit), self.null_error))

    @cached_property
    def null_error(self) -> float:
        """The error of the null model (`Loss.null`): what the fit of a result is compared with. It is `size` for least
        squares and L1, and also where X is constant, so that the null model has no error but rounding."""
        constant, fit = self.loss.null(self.data.mean), self.null_fit
        if fit is None:
            fit = self.loss.of_constant(self.data, constant) if constant > 0 else 0.0
        error = self.error(fit)
        return error if error > CONSTANT * self.size else self.size

    def unreached(self, factors: Factors) -> int:
        """How many positive entries of X have a model of 0, where the loss would be infinite."""
        problem, factors = self.in_double(factors)
        return problem.loss.unreached(problem.data, factors)

    @cached_property
    def size(self) -> float:
        """What errors are measured against, in the measure of the loss."""
        return self.loss.size(self.data)

    # -- optimality ------------------------------------------------------------------------------------

    @property
    def quadratic(self) -> bool:
        """Whether the normal equations say all about the data."""
        return self.loss.quadratic and self.data.complete

    def expansion(self, factors: Factors, mode: int) -> Expansion:
        """The smooth part of the objective, the loss with the ridge of the structure, as a function of one factor: the
        whole of it for least squares, around the present factor otherwise."""
        return self.loss.expand(self.data, factors, mode, self.structures[mode])

    def normal_equations(self, factors: Factors, mode: int) -> Quadratic | OwnGrams:
        """Least squares in one factor, without any structure."""
        return normal_equations(self.data, factors, mode)

    def gradient(self, factors: Factors, mode: int) -> np.ndarray:
        """Derivative of the smooth part of the objective in one factor."""
        return self.expansion(factors, mode).slopes(factors[mode])[0]

    def stationarity(self, factors: Factors) -> float:
        """How much could still be gained, relative to X: the largest over modes and components of

            sqrt(2 gain / sum x^beta),

        where `gain` is by how much the objective falls if each entry of `A[:, k]` goes to its own best value, all else
        held, by a model of second order; beta is 2 for least squares, and `sum x^beta = |X|^2`, and 1 for KL. Where no
        bound is in the way the former is `|gradient[:, k]| / (|X| prod |others[:, k]|)`. It is 0 exactly at stationary
        points, where the conditions of Karush, Kuhn and Tucker hold, sees penalties and bounds, and is free of units
        and of the scale that one factor can hand to another. In a separable problem each row is measured against its
        own data, which implies the above. For L1 it is the share of entries that are not at their best value, the
        others held.
        """
        return self.measure(factors).stationarity

    def measure(self, factors: Factors, known: Mapping[int, Expansion] = NOTHING) -> Measured:
        """The loss and the stationarity together, at one product with X for each factor to solve for, but for those
        whose expansions are known, by mode."""
        if self.data.in_blocks:
            return Measured(*measured(self, factors))
        fit, found = None, []
        for mode in reversed(self.modes):  # solvers know the loss in the last one
            expansion = known[mode] if mode in known else self.expansion(factors, mode)
            fit = self.fit(factors, mode, expansion) if fit is None else fit
            found.append(self.stationarity_of(factors, mode, expansion))
        return Measured(self.fit(factors) if fit is None else fit, largest(found))

    def precise(self, factors: Factors, known: Mapping[int, Expansion] = NOTHING) -> Measured:
        """`measure` in double precision whatever the type of X: reported values.

        Under L1 entries are compared with their best values in the precision that they have. Where a structure ties
        entries to each other, stationarity is that of the nearest point which is in the set by double precision.
        """
        if self.data.dtype == np.float64:
            return self.measure(factors, known)
        if self.data.in_blocks:  # rows of W are converted with their block
            return replace(self, data=self.data.double()).measure(factors)
        problem, precise = self.in_double(factors)
        if not self.loss.smooth:
            return Measured(problem.fit(precise), self.stationarity(factors))
        if all(structure.elementwise for structure in self.structures):
            return problem.measure(precise)
        nearest = tuple(structure.settle(A) for structure, A in zip(self.structures, precise, strict=True))
        return Measured(problem.fit(precise), problem.stationarity(nearest))

    def stationarity_of(self, factors: Factors, mode: int, expansion: Expansion) -> float:
        """The same for one mode."""
        if self.separable:
            return largest(self.row_stationarity(factors, mode, expansion))
        return expansion.stationarity(self.structures[mode], factors[mode], self.size)

    def relative_gain(self, gains: np.ndarray) -> float:
        """`sqrt(2 gain) / size` of the component that can gain most."""
        return relative_gain(gains, self.size)

    def row_stationarity(self, factors: Factors, mode: int, expansion: Expansion) -> np.ndarray:
        """Stationarity of each row of the only free factor, (dim,)."""
        sizes = self.loss.row_sizes(self.data, mode)
        sizes = np.where(sizes > 0, sizes, self.size or 1.0)
        return expansion.row_stationarity(self.structures[mode], factors[mode], sizes)

    def partner(self, mode: int) -> int | None:
        """Another mode whose structure is scale-free, to take up what this one gives away; None if there is none."""
        return next((other for other, s in enumerate(self.structures) if other != mode and s.scale_free), None)

    def with_norms(self, factors: Factors) -> Factors:
        """Factors whose components have the norms that a structure asks for, where another factor can make up for it:
        the model is the same."""
        found = list(factors)
        for mode, structure in enumerate(self.structures):
            if structure.without_norm is not None and (partner := self.partner(mode)) is not None:
                A = found[mode]
                found[mode] = structure.nearest(A, 0.0)
                lengths, given = (np.linalg.norm(B.astype(np.float64), axis=0) for B in (A, found[mode]))
                found[partner] = found[partner] * (lengths / given).astype(A.dtype)
        return tuple(found)

    def without_zero_components(self, factors: Factors) -> tuple[Problem, Factors]:
        """Drop zero components; keep one if all are zero."""
        kept = self.nonzero_components(factors)
        if not kept[0].shape[1]:
            kept = self.tied(tuple(kernels.of(A).columns(A, [0]) for A in factors))
        return replace(self, rank=kept[0].shape[1]), kept

    def nonzero_components(self, factors: Factors) -> Factors:
        """Drop zero components; none is left where all are zero."""
        zero = zero_components(factors)
        nonzero = [k for k in range(factors[0].shape[1]) if k not in zero]
        return self.tied(tuple(kernels.of(A).columns(A, nonzero) for A in factors))

    def tied(self, factors: Factors) -> Factors:
        """Factors as this problem has them, where one is made of another."""
        return factors

    # -- units -----------------------------------------------------------------------------------------

    def user_objective(self, objective: float) -> float:
        """An objective of this problem in the user's units; infinite where they are too large for a number."""
        return times_power(objective, self.objective_exponent)

    @property
    def objective_exponent(self) -> float:
        """An objective here times 2**this is the user's."""
        return self.loss.degree * sum(self.exponents) + self.weight_exponent

    def normalized(self) -> Problem:
        """The same problem in units where the largest entry of X is near 1, and entries of the factors too where their
        bounds and X allow it; in double precision where the loss needs it.

        Units are powers of two, so nothing is rounded, and factors without bounds share the unit of X equally.
        """
        kind, top = self.data.stored, max(map(abs, self.data.extremes))
        exponents = shared_units(top, [s.magnitudes for s in self.structures], kind)
        objective_exponent = self.loss.degree * sum(exponents) + self.weight_exponent

        def normal(structure, exponent):
            scaled = structure.rescaled(exponent, objective_exponent)
            return scaled.elementwise.rounded(kind) if scaled.elementwise else scaled

        structures = tuple(map(normal, self.structures, exponents))
        pairs = zip(self.row_units, exponents, strict=True)
        units = tuple(None if u is None else u._replace(structure=normal(u.structure, e)) for u, e in pairs)
        data = self.data.double() if self.loss.needs_double else self.data
        data, loss = data.scaled(2.0 ** sum(exponents)), self.loss.in_units(sum(exponents))
        null_fit = None if self.null_fit is None else times_power(self.null_fit, -self.loss.degree * sum(exponents))
        changed = replace(self, structures=structures, exponents=exponents, row_units=units)
        return replace(changed, data=data, loss=loss, null_fit=null_fit)

    def to_user(self, factors: Factors) -> Factors:
        """Factors of this problem in the user's units and the type of X, within the numbers that there are of it; the
        same arrays where these are its own."""
        kind = self.data.stored
        most = np.finfo(kind).max
        return tuple(
            A if exponent == 0 and A.dtype == kind else kernels.of(A).ldexp(A, exponent, kind, most)
            for A, exponent in zip(self.in_plain_rows(factors), self.exponents, strict=True)
        )

    def from_user(self, factors: Factors) -> Factors:
        """Factors in the user's units as factors of this problem, in new arrays."""
        kind = self.data.dtype
        factors = tuple(kernels.of(A).ldexp(A, -e, kind) for A, e in zip(factors, self.exponents, strict=True))
        return tuple(A if u is None else u.into(A) for A, u in zip(factors, self.row_units, strict=True))

    def in_plain_rows(self, factors: Factors) -> Factors:
        """Factors with rows in the units of the user."""
        return tuple(A if u is None else u.out_of(A) for A, u in zip(factors, self.row_units, strict=True))

    def with_plain_rows(self) -> Problem:
        """The problem of such factors; its data are still in units of rows."""
        structures = (s if u is None else u.structure for s, u in zip(self.structures, self.row_units, strict=True))
        return replace(self, structures=tuple(structures), row_units=())

    def as_told(self, factors: Factors) -> Factors:
        """The factors that the user is given, in the units of this problem: the same, unless the user's have another
        type, or units so extreme that entries are rounded, overflow or underflow there."""
        kind = self.data.stored
        if kind == self.data.dtype and max(map(abs, self.exponents)) <= np.finfo(kind).maxexp // 4:
            return factors
        told = self.from_user(self.to_user(factors))
        return factors if all(kernels.of(A).equal(A, B) for A, B in zip(told, factors, strict=True)) else told


def zero_components(factors: Factors) -> tuple[int, ...]:
    """Components that are zero in some factor, and so add nothing."""
    nonzero = np.all([kernels.of(A).nonzero_columns(A) for A in factors], axis=0)
    return tuple(np.flatnonzero(~nonzero).tolist())


def is_binary(factors: Factors) -> bool:
    """Whether all entries are 0 or 1."""
    arrays = (kernels.of(A).to_numpy(A) for A in factors)
    return all(bool(np.all((A == 0) | (A == 1))) for A in arrays)
