"""The problem: data + loss + structures. The one definition of the objective and of optimality.

    minimise  loss(X, [[A_1, ..., A_d]]) + sum_i g_i(A_i)

Factors are tall, `(dim, rank)`. A problem can be posed in other units (`normalized`), where the largest entry
of X is near 1; it then knows the way back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import ClassVar, NamedTuple

import numpy as np

from .. import kernels
from ..data import Data
from ..data.units import power_scaled, shared_units, times_power
from ..errors import warn
from ..losses import Loss
from ..losses.beta import SMALLEST
from ..structures import Structure

Factors = Sequence[np.ndarray]


class Quadratic(NamedTuple):
    """Least squares with the ridge in one factor: `1/2 tr(A gram A') - tr(A' cross) + constant`."""

    gram: np.ndarray  # (rank, rank)
    cross: np.ndarray  # (dim, rank)

    def split(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`minus` and `plus`: the gradient at A is `plus - minus`; both >= 0 where the data and the factors are."""
        return self.cross, A @ self.gram

    def slopes(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at A, (dim, rank), and the second derivatives entry by entry, one row for all."""
        minus, plus = self.split(A)
        return plus - minus, np.diag(self.gram)[None]

    def steepest(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same with one number that no second derivative in any direction exceeds."""
        return self.slopes(A)[0], np.full((1, A.shape[1]), curvature_of(self.gram))


class Tangent(NamedTuple):
    """Another loss with the ridge around one point A."""

    minus: np.ndarray  # the gradient is `plus - minus`, both (dim, rank) and >= 0
    plus: np.ndarray
    curvature: np.ndarray  # second derivatives entry by entry, of the convex part, (dim, rank)

    def split(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`minus` and `plus`."""
        return self.minus, self.plus

    def slopes(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at A and the second derivatives, both (dim, rank)."""
        return self.plus - self.minus, self.curvature


class Kinks(NamedTuple):
    """The L1 loss around one point, where slopes say little: how many entries of each row are not at their best value,
    the others held, (dim,), and the loss."""

    unsettled: np.ndarray
    loss: float


Expansion = Quadratic | Tangent | Kinks


class Measured(NamedTuple):
    fit: float
    stationarity: float


# The normal equations give |X - WH|^2 as a difference of numbers near |X|^2. Below this share of |X|^2 the
# residual is summed entry by entry, unless X is so sparse that this would cost far more than an iteration.
CANCELLATION = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}
DIRECT_COST = 50

CONSTANT = 1e-7  # relative deviation from the mean below which X is constant: its square is near rounding


@dataclass(frozen=True, eq=False)
class Problem:
    data: Data
    loss: Loss
    structures: tuple[Structure, ...]  # bound to (dim, rank)
    rank: int
    exponents: tuple[int, ...] = (0, 0)  # a factor here times 2**exponent is the factor the user knows

    symmetric: ClassVar[bool | str] = False  # `X ~ A A'`, one factor: see `partwise.problem.symmetric`

    @cached_property
    def modes(self) -> list[int]:
        """The factors to solve for."""
        return [mode for mode, structure in enumerate(self.structures) if not structure.fixed]

    @cached_property
    def separable(self) -> bool:
        """One factor to solve for, whose structure speaks of rows: each of them is a problem of its own."""
        return len(self.modes) == 1 and self.structures[self.modes[0]].separable_rows

    # -- objective -------------------------------------------------------------------------------------

    def objective(self, factors: Factors) -> float:
        """`loss(X, [[A]]) + sum_i g_i(A_i)`."""
        return self.fit(factors) + self.penalty(factors)

    def penalty(self, factors: Factors) -> float:
        return sum(structure.value(A) for structure, A in zip(self.structures, factors))

    def fit(self, factors: Factors, mode: int = 0, known: Expansion | None = None) -> float:
        """The loss alone. `known`: the expansion in this mode, which saves a product for least squares."""
        if self.loss.beta is not None and not self.loss.quadratic:
            return self.data.loss(self.loss, factors)
        known = known or self.expansion(factors, mode)
        if isinstance(known, Kinks):
            return known.loss
        assert isinstance(known, Quadratic)
        gram, cross = known
        A = factors[mode]
        value = 0.5 * (self.data.norm2 - 2 * kernels.of(A).inner(A, cross) + self.model_norm2(A, mode, gram))
        if value < CANCELLATION[self.data.dtype] * self.data.norm2 and self.direct_is_cheap:
            return self.direct_fit(factors)
        return max(value, 0.0)

    def model_norm2(self, A: np.ndarray, mode: int, gram: np.ndarray) -> float:
        """`|[[A]]|^2` from one factor and the normal equations in it, where X counts."""
        own = gram_of(A).astype(np.float64)
        return float(np.vdot(gram, own)) - self.structures[mode].ridge * float(np.trace(own))

    def direct_fit(self, factors: Factors) -> float:
        """The loss summed entry by entry, in double precision."""
        return self.data.loss(self.loss, factors)

    def precise_fit(self, factors: Factors) -> float:
        """`fit` in double precision whatever the type of X."""
        problem, factors = self.in_double(factors)
        return problem.fit(factors)

    def in_double(self, factors: Factors) -> tuple[Problem, Factors]:
        """The problem and the factors in double precision."""
        if self.data.dtype == np.float64:
            return self, factors
        return replace(self, data=self.data.double()), self.tied(tuple(A.astype(np.float64) for A in factors))

    @property
    def direct_is_cheap(self) -> bool:
        """Whether all entries of `[[A]]` can be visited at a cost comparable to that of a product with X."""
        return math.prod(self.data.shape) <= DIRECT_COST * max(self.data.n_nonzeros, 1 << 16)

    def relative_error(self, factors: Factors) -> float:
        """`(fit / root)^root / size` in double precision: `|X - [[A]]| / |X|` for least squares and L1."""
        return self.relative(self.precise_fit(factors))

    def relative(self, fit: float) -> float:
        """The relative error of a fit; 0 for an all-zero X that is met exactly."""
        return float(ratio(self.error(fit), self.size))

    def error(self, fit: float) -> float:
        """`(fit / root)^root`: `|X - [[A]]|` for least squares, the sum of `|x - y|` for L1, else `sqrt(2 fit)`."""
        return (max(fit, 0.0) / self.loss.root) ** self.loss.root

    def against_null(self, fit: float) -> float:
        """The error of a fit over that of the null model; 0 for an all-zero X that is met, where a model of 0 may count
        as the floor of the divergences."""
        if self.size == 0 and fit <= self.data.constant_loss(self.loss, 2 * SMALLEST):
            return 0.0
        return float(ratio(self.error(fit), self.null_error))

    @cached_property
    def null_error(self) -> float:
        """The error of the null model (`Loss.null`): what the fit of a result is compared with. It is `size` for least
        squares and L1, and also where X is constant, so that the null model has no error but rounding."""
        constant = self.loss.null(self.data.mean)
        error = self.error(self.data.constant_loss(self.loss, constant)) if constant > 0 else 0.0
        return error if error > CONSTANT * self.size else self.size

    def unreached(self, factors: Factors) -> int:
        """How many positive entries of X have a model of 0, where the loss would be infinite."""
        beta = self.loss.beta
        if beta is None or beta > 1:
            return 0
        problem, factors = self.in_double(factors)
        return problem.data.divergence(beta, factors)[1]

    @cached_property
    def size(self) -> float:
        """What errors are measured against: `sqrt(sum x^beta)` over the positive entries, `|X|` for least squares, and
        for L1 `sum |x|`."""
        if self.loss.quadratic:
            return self.data.norm
        if self.loss.beta is None:
            return self.data.mean * math.prod(self.data.shape)
        return math.sqrt(self.data.power_sums(self.loss.degree, 0).sum())

    # -- optimality ------------------------------------------------------------------------------------

    def expansion(self, factors: Factors, mode: int) -> Expansion:
        """The smooth part of the objective, the loss with the ridge of the structure, as a function of one factor: the
        whole of it for least squares, around the present factor otherwise."""
        ridge = self.structures[mode].ridge
        if self.loss.quadratic:
            gram, cross = self.normal_equations(factors, mode)
            if ridge:
                gram = gram + gram.dtype.type(ridge) * np.eye(self.rank, dtype=gram.dtype)
            return Quadratic(gram, cross)
        if self.loss.beta is None:
            return self.kinks(factors, mode)
        minus, plus, curvature = self.data.expansion(self.loss.beta, factors, mode)
        if ridge:
            plus, curvature = plus + plus.dtype.type(ridge) * factors[mode], curvature + plus.dtype.type(ridge)
        return Tangent(minus, plus, curvature)

    def normal_equations(self, factors: Factors, mode: int) -> Quadratic:
        """Least squares in one factor, without any structure."""
        gram = hadamard(gram_of(B) for other, B in enumerate(factors) if other != mode)
        return Quadratic(gram, self.data.cross(factors, mode))

    def kinks(self, factors: Factors, mode: int) -> Kinks:
        """Of the L1 loss."""
        structure = self.structures[mode].elementwise
        assert structure is not None
        A, B = factors[mode], factors[1 - mode]
        entries = *self.data.entries(mode), A, B, structure.box(A), structure.ridge
        rows = np.arange(A.shape[0])
        return Kinks(*kernels.of(A).weighted_median(*entries, self.loss.zero_weight, structure.binary, 0, rows)[1:])

    def gradient(self, factors: Factors, mode: int) -> np.ndarray:
        """Derivative of the smooth part of the objective in one factor."""
        expansion = self.expansion(factors, mode)
        assert not isinstance(expansion, Kinks), "L1 has no gradient"
        return expansion.slopes(factors[mode])[0]

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

    def measure(self, factors: Factors) -> Measured:
        """The loss and the stationarity together, at one product with X for each factor to solve for."""
        fit, found = None, []
        for mode in self.modes:
            expansion = self.expansion(factors, mode)
            fit = self.fit(factors, mode, expansion) if fit is None else fit
            found.append(self.stationarity_of(factors, mode, expansion))
        return Measured(self.fit(factors) if fit is None else fit, largest(found))

    def precise(self, factors: Factors) -> Measured:
        """`measure` in double precision whatever the type of X: reported values.

        Under L1 entries are compared with their best values in the precision that they have. Where a structure ties
        entries to each other, stationarity is that of the nearest point which is in the set by double precision.
        """
        if self.data.dtype == np.float64:
            return self.measure(factors)
        problem, precise = self.in_double(factors)
        if self.loss.beta is None:
            return Measured(problem.fit(precise), self.stationarity(factors))
        if all(structure.elementwise for structure in self.structures):
            return problem.measure(precise)
        nearest = tuple(structure.settle(A) for structure, A in zip(self.structures, precise))
        return Measured(problem.fit(precise), problem.stationarity(nearest))

    def stationarity_of(self, factors: Factors, mode: int, expansion: Expansion) -> float:
        """The same for one mode."""
        if self.separable:
            return largest(self.row_stationarity(factors, mode, expansion))
        A = factors[mode]
        if isinstance(expansion, Kinks):
            return float(expansion.unsettled.sum()) / A.size
        slopes = self.slopes(A, mode, expansion)
        return self.relative_gain(np.where(defined(*slopes).all(), self.structures[mode].gains(A, *slopes), np.nan))

    def slopes(self, A: np.ndarray, mode: int, expansion: Quadratic | Tangent) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at A and second derivatives, as the `gains` of its structure take them: where entries are tied
        to each other, they move together."""
        if self.structures[mode].elementwise is None and isinstance(expansion, Quadratic):
            return expansion.steepest(A)
        return expansion.slopes(A)

    def relative_gain(self, gains: np.ndarray) -> float:
        """`sqrt(2 gain) / size` of the component that can gain most."""
        return float(ratio(math.sqrt(2 * largest(gains)), self.size))

    def row_stationarity(self, factors: Factors, mode: int, expansion: Expansion) -> np.ndarray:
        """Stationarity of each row of the only free factor, (dim,)."""
        A = factors[mode]
        if isinstance(expansion, Kinks):
            return expansion.unsettled / self.rank
        slopes = self.slopes(A, mode, expansion)
        gains = np.where(defined(*slopes), self.structures[mode].row_gains(A, *slopes), np.nan)
        sizes = self.row_sizes(mode)
        return np.sqrt(2 * gains) / np.where(sizes > 0, sizes, self.size or 1.0)

    def row_sizes(self, mode: int) -> np.ndarray:
        """`size` of each row of X unfolded along `mode`, (dim,)."""
        if self.loss.quadratic:
            return self.data.row_norms(mode)
        return np.sqrt(self.data.power_sums(self.loss.degree, mode))

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

    def without_empty(self, factors: Factors) -> tuple[Problem, Factors]:
        """The problem of the parts that are not zero, and they; one of zeros where all are."""
        kept = self.living(factors)
        if not kept[0].shape[1]:
            kept = self.tied(tuple(np.ascontiguousarray(A[:, :1]) for A in factors))
        return replace(self, rank=kept[0].shape[1]), kept

    def living(self, factors: Factors) -> Factors:
        """The parts that are not zero; none, where all are."""
        dead = dead_parts(factors)
        alive = [k for k in range(factors[0].shape[1]) if k not in dead]
        return self.tied(tuple(np.ascontiguousarray(A[:, alive]) for A in factors))

    def tied(self, factors: Factors) -> Factors:
        """Factors as this problem has them, where one is made of another."""
        return factors

    # -- units -----------------------------------------------------------------------------------------

    def user_objective(self, objective: float) -> float:
        """An objective of this problem in the user's units; infinite where they are too large for a number."""
        return times_power(objective, self.loss.degree * sum(self.exponents))

    def normalized(self) -> Problem:
        """The same problem in units where the largest entry of X is near 1, and entries of the factors too where their
        bounds and X allow it; in double precision where the loss needs it.

        Units are powers of two, so nothing is rounded, and factors without bounds share the unit of X equally.
        """
        kind, top = self.data.stored, max(map(abs, self.data.extremes))
        exponents = shared_units(top, [s.magnitudes for s in self.structures], kind)
        objective_exponent = self.loss.degree * sum(exponents)
        scaled = (s.rescaled(e, objective_exponent) for s, e in zip(self.structures, exponents))
        structures = tuple(s.elementwise.rounded(kind) if s.elementwise else s for s in scaled)
        data = self.data.double() if self.loss.needs_double else self.data
        return replace(self, data=data.scaled(2.0 ** sum(exponents)), structures=structures, exponents=exponents)

    def to_user(self, factors: Factors) -> Factors:
        """Factors of this problem in the user's units and the type of X, within the numbers that there are of it."""
        kind = self.data.stored
        most = np.finfo(kind).max
        scaled = (power_scaled(A, exponent) for A, exponent in zip(factors, self.exponents))
        return tuple(np.clip(A, -most, most, out=A).astype(kind, copy=False) for A in scaled)

    def from_user(self, factors: Factors) -> Factors:
        """Factors in the user's units as factors of this problem."""
        kind = self.data.dtype
        return tuple(power_scaled(A.astype(kind, copy=False), -e) for A, e in zip(factors, self.exponents))

    def as_told(self, factors: Factors) -> Factors:
        """The factors that the user is given, in the units of this problem: the same, unless the user's have another
        type, or units so extreme that entries are rounded, overflow or underflow there."""
        kind = self.data.stored
        if kind == self.data.dtype and max(map(abs, self.exponents)) <= np.finfo(kind).maxexp // 4:
            return factors
        told = self.from_user(self.to_user(factors))
        return factors if all(map(np.array_equal, told, factors)) else told


def pose(data: Data, loss: Loss, structures: Sequence[Structure], rank: int) -> Problem:
    """A problem from structures as the user states them; checks what the loss and the structures demand of X."""
    names = ["W", "H"]
    bound = tuple(
        structure.bind((dim, rank), transposed=mode == 1, name=names[mode])
        for mode, (structure, dim) in enumerate(zip(structures, data.shape))
    )
    if all(structure.fixes_scale for structure in bound):
        W, H = structures
        warn(
            f"{W} for W and {H} for H both fix the size of every component, so W H cannot adapt to the scale of X. "
            "State one of them, and let the other factor be NonNegative() or Free()."
        )
    lowest, _ = data.extremes
    nonnegative = all(structure.nonnegative for structure in bound)
    if why := loss.refuses(lowest, nonnegative):
        raise ValueError(f"{why}.")
    if lowest < 0 and nonnegative:
        raise ValueError(
            f"Negative values in data passed to partwise: X goes down to {lowest:g}, which nonnegative factors "
            "cannot reproduce. Clip or shift X, or let one factor be signed with structures.Free()."
        )
    limit = loss.sparse_below(nonnegative)
    return Problem(data.compressed() if limit and data.density < limit else data, loss, bound, rank)


def dead_parts(factors: Factors) -> tuple[int, ...]:
    """Components that are zero in some factor, and so add nothing."""
    alive = np.all([A.any(axis=0) for A in factors], axis=0)
    return tuple(np.flatnonzero(~alive).tolist())


def is_binary(factors: Factors) -> bool:
    """Whether all entries are 0 or 1."""
    return all(bool(np.all((A == 0) | (A == 1))) for A in factors)


def gram_of(A: np.ndarray) -> np.ndarray:
    return kernels.of(A).gram(A)


def curvature_of(gram: np.ndarray) -> float:
    """The largest second derivative of `1/2 tr(A gram A')` in any direction."""
    return max(float(np.linalg.eigvalsh(gram.astype(np.float64))[-1]), 0.0)


def hadamard(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """The product of arrays, entry by entry."""
    return reduce(np.multiply, arrays)


def ratio(a: float | np.ndarray, b: float | np.ndarray) -> np.ndarray:
    """`a / b` for a, b >= 0, with 0 / 0 = 0 and a / 0 infinite."""
    a = np.asarray(a, dtype=np.float64)
    return np.divide(a, b, out=np.where(a > 0, np.inf, a), where=np.asarray(b) > 0)


def largest(measures: Sequence[float] | np.ndarray) -> float:
    """The largest of some measures, at least 0; NaN if any is, since then nothing is known."""
    return float(np.max(measures, initial=0.0))


def defined(G: np.ndarray, d: np.ndarray) -> np.ndarray:
    """In which rows slopes and second derivatives are numbers, (dim,) or one for all: elsewhere a gain says nothing."""
    if np.isfinite(G).all() and np.isfinite(d).all():
        return np.ones(1, dtype=bool)
    return np.isfinite(G).all(axis=1) & np.isfinite(d).all(axis=1)
