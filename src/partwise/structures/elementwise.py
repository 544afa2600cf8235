"""Structures that act entry by entry: bounds, L1 and L2 penalties, fixed values.

Each is an `Elementwise` with lower and upper bounds (numbers, or arrays) and two weights, which is all that kernels
need to know.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import kernels
from ..checks import is_number
from ..data.units import in_units, times_power
from ..kernels import records
from .base import Structure

LARGEST_WEIGHT = 1e100  # penalties in extreme units are cut here, so that weight * 0 stays 0


@dataclass(frozen=True, eq=False, repr=False)
class Elementwise(Structure):
    """`l1 sum |a| + l2 / 2 sum a^2` over `lower <= a <= upper`; NaN in an array of bounds means no bound. `binary`: a
    is one of its two bounds, nothing between.

    Parameters
    ----------
    lower, upper : float or ndarray
        Bounds; NaN in an array means none.
    l1, l2 : float
        Weights of the penalties.
    binary : bool
        Whether an entry is one of its two bounds, nothing between.

    Examples
    --------
    >>> import partwise as pw
    >>> isinstance(pw.structures.Box(0, 1), pw.structures.Elementwise)
    True
    """

    kernels = ("gain_columns", "gain_rows", "inner", "sum_abs")
    separable_rows = True
    stage = 0

    lower: float | np.ndarray = -np.inf
    upper: float | np.ndarray = np.inf
    l1: float = 0.0
    l2: float = 0.0
    binary: bool = False

    def __post_init__(self):
        for name in ("l1", "l2"):
            object.__setattr__(self, name, checked_weight(name, getattr(self, name)))
        lower = checked_bound("lower", self.lower, -np.inf)
        whole = self.upper is self.lower and np.all(lower > -np.inf)
        object.__setattr__(self, "upper", lower if whole else checked_bound("upper", self.upper, np.inf))
        object.__setattr__(self, "lower", lower)
        if self.uniform and self.lower > self.upper:
            raise ValueError(f"lower={self.lower:g} is above upper={self.upper:g}: no value lies between them")

    @property
    def elementwise(self):
        return self

    @property
    def ridge(self):
        return self.l2

    @property
    def held(self):
        """Both bounds are one array, or number: no entry may move. Known without a look at entries, which are many."""
        return self.upper is self.lower

    @property
    def fixed(self):
        return self.held or bool(np.all(self.lower == self.upper))

    @property
    def magnitudes(self):
        if self.held:
            return (float(np.max(np.abs(self.lower))),) * 2
        most = float(np.max(np.maximum(np.abs(self.lower), np.abs(self.upper))))
        least = float(np.max(np.maximum(np.maximum(self.lower, np.negative(self.upper)), 0.0)))
        return (most if self.binary else least), most

    @property
    def nonnegative(self):
        return bool(np.all(self.lower >= 0))

    @property
    def scale_free(self):
        no_bounds = np.ndim(self.lower) == 0 and self.lower in (0, -np.inf) and np.all(self.upper == np.inf)
        return bool(no_bounds) and self.l1 == self.l2 == 0

    def scalable(self, rank):
        """Those whose bounds are 0 or infinite."""
        if self.binary or self.l1 or self.l2:
            return np.zeros(rank, dtype=bool)
        bounds = [np.broadcast_to(np.atleast_2d(b), (len(np.atleast_2d(b)), rank)) for b in (self.lower, self.upper)]
        return np.all([np.all((b == 0) | np.isinf(b), axis=0) for b in bounds], axis=0)

    @property
    def uniform(self):
        """All entries have the same bounds."""
        return np.ndim(self.lower) == np.ndim(self.upper) == 0

    @property
    def interchangeable(self):
        return self.uniform

    @property
    def applies_to_new_rows(self):
        return self.uniform

    @property
    def bounds_only(self):
        """No penalty, and everything between the bounds is allowed."""
        return self.l1 == self.l2 == 0 and not self.binary

    @property
    def columnwise(self):
        return True

    @property
    def convex(self):
        return not self.binary

    @property
    def free(self):
        """No bounds and no penalty."""
        return self.plain and not self.nonnegative

    @property
    def plain(self):
        """No penalty, and no bounds but `a >= 0`, if that."""
        return self.scale_free and not self.binary

    def bind(self, shape, transposed, name):
        lower = tall(self.lower, shape, transposed, -np.inf, name)
        if self.held and np.all(lower > -np.inf):
            return self.bounded(lower, lower)
        upper = tall(self.upper, shape, transposed, np.inf, name)
        if np.any(lower > upper):
            raise ValueError(f"no value of {name} satisfies {self}: somewhere its lower bound is above its upper")
        return self.bounded(lower, upper)

    def bounded(self, lower, upper, **weights):
        """The same with other bounds, and weights, of which nothing has to be checked."""
        other = object.__new__(Elementwise)
        values = {"l1": self.l1, "l2": self.l2, "binary": self.binary} | weights
        for name, value in ({"lower": lower, "upper": upper} | values).items():
            object.__setattr__(other, name, value)
        return other

    def with_bounds(self, change, **weights):
        """The same with both bounds changed alike."""
        lower = change(self.lower)
        return self.bounded(lower, lower if self.held else change(self.upper), **weights)

    def rescaled(self, exponent, objective_exponent):
        l1 = min(times_power(self.l1, exponent - objective_exponent), LARGEST_WEIGHT)
        l2 = min(times_power(self.l2, 2 * exponent - objective_exponent), LARGEST_WEIGHT)
        return self.with_bounds(lambda bound: in_units(bound, exponent), l1=l1, l2=l2)

    def rounded(self, kind):
        """With bounds rounded to this type, so that an entry can equal one."""
        if kind == np.float64:
            return self
        with np.errstate(over="ignore"):
            return self.with_bounds(lambda bound: np.asarray(bound, dtype=kind).astype(np.float64)[()])

    def box(self, A):
        """`(l1, lower, upper)` as kernels take them: in A's type, bounds with one row or one per row of A."""
        rank, kind = A.shape[1], A.dtype
        bounds = (
            np.ascontiguousarray(b if np.ndim(b) == 2 else np.full((1, rank), b), dtype=kind)
            for b in (self.lower, self.upper)
        )
        return records.Box(kind.type(self.l1), *bounds)

    def value(self, A):
        total = 0.0
        if self.l1:
            total += self.l1 * kernels.of(A).sum_abs(A)
        if self.l2:
            total += self.l2 / 2 * kernels.of(A).inner(A, A)
        return total

    def prox(self, A, step):
        if self.binary:
            low, high = self.box(A)[1:]
            # from where on the upper of the two bounds has the smaller `g(b) + |b - a|^2 / (2 step)`
            middle = (low + high) / 2 + step * (self.l1 + self.l2 * (low + high) / 2)
            return np.where(middle < A, high, low).astype(A.dtype, copy=False)
        threshold, shrunk = float(step * self.l1), float(1 + step * self.l2)
        best = A - np.clip(A, -threshold, threshold) if threshold else A
        best = best / shrunk if shrunk != 1 else best
        low, high = self.lower, self.upper
        if self.uniform:
            best = np.maximum(best, A.dtype.type(low)) if low > -np.inf else best
            best = np.minimum(best, A.dtype.type(high)) if high < np.inf else best
            return A.copy() if best is A else best
        # the bounds in A's type, so that float32 stays float32
        return np.clip(best, *self.box(A)[1:])

    def row_values(self, A):
        size = np.abs(A.astype(np.float64))
        return (self.l1 * size + self.l2 / 2 * size**2).sum(axis=1)

    def face(self, A):
        return None if self.binary else self

    def columns(self, indices):
        return self.with_bounds(
            lambda bound: bound if np.ndim(bound) == 0 or bound.shape[1] == 1 else bound[:, indices]
        )

    def bounds(self):
        """The bounds without the penalties."""
        return self.bounded(self.lower, self.upper, l1=0.0, l2=0.0)

    def holding_zeros(self, A):
        """The same bounds where A is not 0, and 0 elsewhere; None where only the bounds themselves are allowed."""
        if self.binary:
            return None
        lower, upper = (np.where(A == 0, 0.0, b) for b in (self.lower, self.upper))
        return Elementwise(lower, upper, self.l1, self.l2)

    def violation(self, A):
        if self.uniform and not self.binary:
            low, high = A.dtype.type(self.lower), A.dtype.type(self.upper)
            below = low - A.min(initial=np.inf) if low > -np.inf else 0.0
            above = A.max(initial=-np.inf) - high if high < np.inf else 0.0
            return float(np.max((below, above, 0.0)))
        _, lower, upper = self.box(A)
        if self.binary:
            return float(np.max(np.minimum(np.abs(A - lower), np.abs(A - upper)), initial=0))
        return float(max(np.max(lower - A, initial=0), np.max(A - upper, initial=0)))

    def gains(self, A, G, d):
        if self.binary:
            return self.flip_gains(A, G, d).sum(axis=0)
        return kernels.of(A).gain_columns(A, G, d, self.box(A))

    def row_gains(self, A, G, d):
        """The largest gain of one entry in each row, (dim,)."""
        if self.binary:
            return self.flip_gains(A, G, d).max(axis=1)
        return kernels.of(A).gain_rows(A, G, d, self.box(A))

    def flip_gains(self, A, G, d):
        """What each entry gains by moving to its other bound, at least 0."""
        _, lower, upper = self.box(A)
        other = np.where(upper == A, lower, upper).astype(np.float64)
        step = other - A
        return np.maximum(-step * (G + d * step / 2) - self.l1 * (np.abs(other) - np.abs(A)), 0)

    def __repr__(self):
        terms = ["Binary()"] if self.binary else []
        terms += [term for term in bound_terms(self.lower, self.upper) if not self.binary or "array" in term]
        terms += [f"{name}({w:g})" for name, w in (("L1", self.l1), ("L2", self.l2)) if w]
        return " & ".join(terms) or "Free()"


class NonNegative(Elementwise):
    """Every entry is at least 0: what is asked of a factor unless something else is said.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.structures.NonNegative() & pw.structures.L1(0.1)
    NonNegative() & L1(0.1)
    """

    def __init__(self) -> None:
        super().__init__(lower=0.0)


class Free(Elementwise):
    """Any sign, no penalty. With it on one factor the other stays nonnegative (semi-NMF), and X may have any sign.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X - 0.5
    >>> result = pw.factorize(X, 3, structure_H=pw.structures.Free(), random_state=0)
    >>> bool((result.W >= 0).all()), bool((result.H < 0).any())
    (True, True)
    """

    def __init__(self) -> None:
        super().__init__()


class L1(Elementwise):
    """`weight * sum |a|`, which drives small entries to 0. Signed unless combined with `NonNegative()`.

    Parameters
    ----------
    weight : float
        How much it counts, >= 0.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> sparse = pw.structures.NonNegative() & pw.structures.L1(0.3)
    >>> plain, penalised = (pw.factorize(X, 3, structure_H=H, structure_W="box(0, 1)") for H in (None, sparse))
    >>> int((penalised.H == 0).sum()) > int((plain.H == 0).sum())
    True
    """

    def __init__(self, weight: float) -> None:
        super().__init__(l1=weight)


class L2(Elementwise):
    """`weight / 2 * sum a^2`, which keeps entries small. Signed unless combined with `NonNegative()`.

    Parameters
    ----------
    weight : float
        How much it counts, >= 0.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> ridge = pw.structures.NonNegative() & pw.structures.L2(0.5)
    >>> result = pw.factorize(X, 3, structure_W=ridge, structure_H=ridge)
    >>> bool((result.W**2).sum() < (pw.factorize(X, 3).W ** 2).sum())
    True
    """

    def __init__(self, weight: float) -> None:
        super().__init__(l2=weight)


class Elastic(Elementwise):
    """`l1 sum |a| + l2 / 2 sum a^2`: both penalties. Signed unless combined with `NonNegative()`.

    Parameters
    ----------
    l1, l2 : float
        How much each counts, >= 0.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> both = pw.structures.NonNegative() & pw.structures.Elastic(0.1, 0.1)
    >>> pw.factorize(X, 3, structure_W=both, structure_H=both).converged
    True
    """

    def __init__(self, l1: float, l2: float) -> None:
        super().__init__(l1=l1, l2=l2)


class Box(Elementwise):
    """`lower <= a <= upper`.

    Parameters
    ----------
    lower, upper : float, array or None
        A number, an array in the factor's own shape, a vector along its rows (for H: one value per feature), or
        None for no bound.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 3, structure_W=pw.structures.Box(0, 0.5))
    >>> bool(result.W.min() >= 0), bool(result.W.max() <= 0.5)
    (True, True)
    """

    def __init__(self, lower: Any = None, upper: Any = None) -> None:
        super().__init__(-np.inf if lower is None else lower, np.inf if upper is None else upper)


class Fixed(Elementwise):
    """Entries held at `values`, an array in the factor's own shape; NaN leaves an entry free. An array with fewer parts
    than the rank holds the first parts and leaves the others free. Entries that are free may have any sign, unless it
    is combined with `NonNegative()`.

    Parameters
    ----------
    values : array-like
        In the factor's own shape, or with fewer parts; NaN leaves an entry free.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_parts(20, 12, 3, random_state=0)
    >>> known = pw.structures.NonNegative() & pw.structures.Fixed(planted.H[:1])  # one part of three is known
    >>> result = pw.factorize(planted.X, 3, structure_H=known, random_state=0)
    >>> np.array_equal(result.H[0], planted.H[0])
    True
    """

    def __init__(self, values: Any) -> None:
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or np.isinf(values).any():
            raise ValueError("Fixed takes a matrix of finite numbers, with NaN where an entry is free")
        super().__init__(lower=values, upper=values)


class Binary(Elementwise):
    """Every entry is 0 or 1.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_binary_parts(30, 20, 2, share=0.3, random_state=0)
    >>> result = pw.factorize(planted.X, 2, loss="l1", structure_W="binary", structure_H="binary", random_state=0)
    >>> np.unique(result.W), np.unique(result.H)
    (array([0., 1.]), array([0., 1.]))
    """

    def __init__(self) -> None:
        super().__init__(0.0, 1.0, binary=True)


def checked_weight(name, weight):
    if not is_number(weight) or not 0 <= weight < np.inf:
        raise ValueError(f"the {name} weight must be a finite number >= 0, got {weight!r}")
    return float(weight)


def checked_bound(name, bound, missing):
    bound = np.array(bound, dtype=np.float64)
    if bound.ndim > 2:
        raise ValueError(f"{name} must be a number or a matrix in the factor's shape, got {bound.ndim} dimensions")
    if bound.ndim == 0:
        if np.isnan(bound):
            raise ValueError(f"{name} is NaN; a number that means no bound is {missing}")
        return float(bound)
    holes = np.isnan(bound)
    if holes.any():
        bound[holes] = missing
    return bound


def tall(bound, shape, transposed, missing, name):
    """A bound in the public orientation as `(dim, rank)`; parts that are not given are free."""
    if np.ndim(bound) == 0:
        return bound
    if bound.ndim == 1:
        with suppress(ValueError):
            bound = np.broadcast_to(bound, shape[::-1] if transposed else shape)
    bound = np.atleast_2d(bound).T if transposed else np.atleast_2d(bound)
    dim, rank = shape
    if bound.shape[0] != dim or bound.shape[1] > rank:
        expected, got = (" x ".join(map(str, s[::-1] if transposed else s)) for s in (shape, bound.shape))
        raise ValueError(
            f"an array given for {name} has shape {got}, but {name} is {expected}; "
            "give all of it, or fewer parts (the others are then free)"
        )
    free = np.full((dim, rank - bound.shape[1]), missing)
    return np.ascontiguousarray(np.hstack([bound, free]))


def bound_terms(lower, upper):
    """The bounds as messages state them."""
    if np.ndim(lower) == np.ndim(upper) == 0:
        if (lower, upper) == (0, np.inf):
            yield "NonNegative()"
        elif (lower, upper) != (-np.inf, np.inf):
            yield f"Box({lower:g}, {upper:g})"
        return
    held = float(np.mean(np.broadcast_to(lower == upper, np.broadcast(lower, upper).shape)))
    yield f"Fixed(<array, {held:.0%} held>)" if held else "Box(<arrays>)"


FREE = Free()
