"""The beta-divergences: Basu, Harris, Hjort and Jones (1998), Biometrika 85(3); Fevotte and Idier (2011), Neural
Computation 23(9). Least squares, Kullback-Leibler and Itakura-Saito are the members with names.

    d(x, y) = x^beta / (beta (beta - 1)) + y^beta / beta - x y^(beta - 1) / (beta - 1)

and its limits at beta = 1 and beta = 0. Near these, and near an exact fit, the terms cancel; with r = x / y it is also

    y^beta (r (r^(beta - 1) - 1) / (beta - 1) - (r - 1)) / beta  =  y^beta ((r - 1) - (r^beta - 1) / beta) / (1 - beta),

and `r^a - 1 = expm1(a log r)` has all its digits. y is held at `floor_of(beta) x`: for beta <= 1 the divergence would
be infinite at y = 0 under x > 0, and elsewhere it changes by nothing that can be seen.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from .. import kernels
from ..checks import is_number
from ..kernels.records import CURVATURE, EntryLoss, Wanted
from .base import Loss
from .expansions import (
    OwnGrams,
    Quadratic,
    RowQuadratics,
    SecondOrder,
    Several,
    Tangent,
    gram_of,
    normal_equations,
    with_ridge,
)

SPARSE = {1.0: 1 / 3, 2.0: 1 / 5}  # `sparse_below` by beta: elsewhere zeros of X cost as much as other entries
UPDATES = {
    1.0: frozenset({"mu", "newton", "newton_kl"}),
    2.0: frozenset({"admm", "gcd", "greedy", "hals", "mixed_norm", "mu", "newton", "palm", "symmetric_cd"}),
}
FLOOR = 2.0**-40  # a model below this share of an entry of X counts as this share of it
SMALLEST = 2.0**-200  # where x = 0 too
ROUNDING = 2.0**-50  # a beta so near to 0, 1 or 2 is that


# where the normal equations say too little of |X - WH|^2, the residual is summed entry by entry, unless X is so sparse
# that this would cost far more than an iteration
DIRECT_COST = 50


class Divergence(Loss):
    """What beta-divergences share; `beta` is a field or a constant of the class.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.losses.KL().beta, isinstance(pw.losses.KL(), pw.losses.Divergence)
    (1.0, True)
    """

    beta: float
    kernels = ("expansion", "losses")
    additive = True

    @property
    def of_entry(self):
        return EntryLoss(self.beta)

    @property
    def quadratic(self):
        return self.beta == 2

    @property
    def updates(self):
        return UPDATES.get(self.beta, frozenset({"mu", "newton"}))

    @property
    def degree(self):
        return self.beta

    @property
    def homogeneous(self):
        return self.beta != 0

    @property
    def infinite_at_zero(self):
        return self.beta <= 1

    @property
    def explains(self):
        return "the sum of squares" if self.quadratic else "the deviance"

    def null(self, mean):
        """The mean, which has the least divergence from X of all constants; 0 for least squares."""
        return 0.0 if self.quadratic else mean

    def sparse_below(self, nonnegative):
        return SPARSE.get(self.beta, 0.0)

    @property
    def needs_double(self):
        """Below beta = 1 small entries count as much as large ones or more, and `y^(beta - 2)` has a range that squares
        that of X."""
        return self.beta < 1

    def refuses(self, lowest, nonnegative):
        if self.beta == 2:
            return None
        if lowest < 0:
            return (
                f"Negative values in data passed to partwise: X goes down to {lowest:g}, and {self} needs X >= 0; if "
                "such values mean that an entry is missing, put NaN in their place, or use mask="
            )
        if lowest == 0 and self.beta <= 0:
            return (
                "When beta_loss <= 0 and X contains zeros, the solver may diverge. Please add small values to X, or "
                f"use a positive beta_loss: {self} is infinite at zeros"
            )
        if not nonnegative:
            return f"{self} needs nonnegative factors: add structures.NonNegative() to each, 'nonnegative & ...'"
        return None

    def value(self, X, Y, weights=1.0):
        if self.beta == 2 and np.ndim(weights) == 0:
            difference = (np.asarray(X, dtype=np.float64) - np.asarray(Y, dtype=np.float64)).ravel()
            return 0.5 * float(weights) * float(difference @ difference)
        return float(np.sum(weights * self.entrywise(X, Y)))

    def entrywise(self, X, Y):
        X, Y = np.asarray(X, dtype=np.float64), self.floored(X, np.asarray(Y, dtype=np.float64))
        beta = self.beta
        if beta == 2:
            return np.square(X - Y) / 2
        if beta == 1:
            return scipy.special.xlogy(X, X / Y) - X + Y
        if beta == 0:
            ratio, beyond = X / Y, X / Y - 1
            return beyond - np.where(ratio < 1 / 2, np.log(ratio), np.log1p(np.maximum(beyond, -1 / 2)))
        ratio = X / Y
        if beta < 0.5:
            return Y**beta * ((ratio - 1) - power_less_one(ratio, beta)) / (1 - beta)
        return Y**beta * (ratio * power_less_one(ratio, beta - 1) - (ratio - 1)) / beta

    def gradient(self, X, Y):
        Y = self.floored(X, Y)
        return Y ** (self.beta - 2) * (Y - X) if self.beta != 2 else Y - X

    # -- the loss of a model ---------------------------------------------------------------------------

    def fit(self, data, factors, mode=0, known=None, ridge=0.0):
        """For least squares from the normal equations, `|X|^2 - 2 <A, cross> + <gram, A'A>`, halved; else, and where
        these cancel, entry by entry."""
        if not self.quadratic:
            return self.direct_fit(data, factors)
        known, A = known if known is not None else normal_equations(data, factors, mode, ridge), factors[mode]
        model = known.square(A) - (ridge * float(np.trace(gram_of(A).astype(np.float64))) if ridge else 0.0)
        value = 0.5 * (data.norm2 - 2 * kernels.of(A).inner(A, known.cross) + model)
        return self.direct_fit(data, factors) if cancels(data, value) else max(value, 0.0)

    def direct_fit(self, data, factors):
        data, factors = data.double(), [kernels.of(A).astype(A, np.float64) for A in factors]
        return self.counted(data, factors)[0]

    def counted(self, data, factors):
        """The loss, and how many positive entries of X the model does not reach."""
        data = data if self.beta == 1 else data.every_entry()
        _, (value, missed) = data.map(kernels.of(factors[0]).losses, factors, data.natural, self.of_entry)
        return value, missed

    def expand(self, data, factors, mode, structure):
        if self.quadratic:
            return normal_equations(data, factors, mode, structure.ridge)
        return self.tangent(data, factors, mode, structure.ridge)[0]

    def tangent(self, data, factors, mode, ridge, wanted=CURVATURE):
        """The loss around the factors, and the losses of the rows: what is not wanted is None."""
        A = factors[mode]
        (minus, plus, *more), _ = data.map(kernels.of(A).expansion, factors, mode, self.of_entry, wanted)
        curvature, losses = (more.pop(0) if asked else None for asked in wanted)
        if ridge:
            plus = kernels.of(A).plus_scaled(plus, ridge, A)
            curvature = kernels.of(A).plus_number(curvature, ridge) if wanted.curvature else None
        return Tangent(minus, plus, curvature), losses

    def share(self, data, factors, complete, curved=False):
        """What some rows of X, with their rows of W, say of the loss as a function of H: arrays of double precision
        that add up over rows. `complete`: whether all rows of X are; `curved`: with the second derivatives in each row
        of H, (n_features, rank (rank + 1) / 2) of them, where there is no one Gram matrix for all."""
        if self.quadratic:
            found = normal_equations(data, factors, 1) if complete else row_equations(data, factors)
        else:
            of = kernels.of(factors[1])
            found, _ = data.map(of.expansion, factors, 1, self.of_entry, Wanted(curvature=not curved))
            if curved:
                (own,), _ = data.map(of.hessians, factors, 1, self.of_entry)
                found = (*found, own)
        return Several(tuple(array.astype(np.float64, copy=False) for array in found))

    def whole(self, share, data, H, ridge, curved=False):
        """The expansion in H, from the shares of all rows."""
        arrays = [array.astype(H.dtype) for array in share.arrays]
        if self.quadratic and data.complete:
            return Quadratic(with_ridge(arrays[0], ridge), arrays[1])
        if self.quadratic:
            gram, own, cross, others = arrays
            most = with_ridge(others * H.dtype.type(data.largest), ridge)
            return RowQuadratics(with_ridge(gram, ridge), own, cross, most)
        minus, plus = arrays[0], arrays[1] + H.dtype.type(ridge) * H
        if curved:
            return SecondOrder(minus, plus, arrays[2], ridge)
        return Tangent(minus, plus, arrays[2] + H.dtype.type(ridge))

    def size(self, data):
        """`sqrt(sum x^beta)` over the positive entries, `|X|` for least squares."""
        return data.norm if self.quadratic else math.sqrt(data.row_sums(0, self.degree).sum())

    def row_sizes(self, data, mode):
        return np.sqrt(data.row_sums(mode, self.degree))

    def unreached(self, data, factors):
        return self.counted(data, factors)[1] if self.infinite_at_zero else 0

    def exponent(self, ridge: bool) -> float:
        """gamma of a multiplicative update, so that it goes to the minimum of a majoriser: one over the span of the
        powers in it. Those of the divergence are beta - 1 to beta, its concave part taken as linear (power 1); that of
        a ridge is 2."""
        lowest = min(self.beta - 1, 1.0)
        highest = max(self.beta, 1.0, 2.0 if ridge else 1.0)
        return 1 / (highest - lowest)

    def floored(self, X, Y):
        return (
            Y
            if self.quadratic
            else np.maximum(Y, floor_of(self.beta) * X + Y.dtype.type(max(SMALLEST, np.finfo(Y.dtype).tiny)))
        )


def row_equations(data, factors) -> tuple[np.ndarray, ...]:
    """Least squares in H where entries may be missing, as `RowQuadratics` has it, for some rows of X: the Gram matrix
    that rows of H share, their own, `X' W`, and `W' W`."""
    if data.complete:
        gram = gram_of(factors[0])
        return gram, np.zeros((1, 1)), data.cross(factors, 1), gram
    known = OwnGrams(data, factors, 1, 0.0)
    (own,), _ = known.beyond.map(kernels.of(factors[1]).row_grams, factors, 1)
    return known.gram, own, known.cross, known.others


def cancels(data, value: float) -> bool:
    """Whether too little is left of half a squared norm that is a difference of numbers near `|X|^2`, and all entries
    of the model can be visited at a cost comparable to that of a product with X."""
    cheap = math.prod(data.shape) <= DIRECT_COST * max(data.n_nonzeros, 1 << 16)
    return cheap and value < data.cancellation * data.norm2


@dataclass(frozen=True)
class Frobenius(Divergence):
    """`1/2 |X - Y|^2`, the sum of squared differences, halved: beta = 2.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> result = pw.factorize(X, 2, loss=pw.losses.Frobenius())
    >>> bool(np.isclose(result.fit, 0.5 * np.square(X - result.reconstruct()).sum()))
    True
    """

    beta = 2.0
    says = "least squares: differences count by their squares"


@dataclass(frozen=True)
class KL(Divergence):
    """`sum x log(x / y) - x + y`, Kullback-Leibler: the likelihood of Poisson counts. beta = 1.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> counts = np.random.default_rng(0).poisson(5, size=(20, 12))
    >>> result = pw.factorize(counts, 2, loss=pw.losses.KL())
    >>> result.loss, bool(0 < result.explained < 1)
    (KL(), True)
    """

    beta = 1.0
    says = "Kullback-Leibler divergence: the loss of counts"


@dataclass(frozen=True)
class ItakuraSaito(Divergence):
    """`sum x / y - log(x / y) - 1`: relative errors count, as in power spectra. beta = 0.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> power = np.random.default_rng(0).chisquare(2, size=(30, 20))
    >>> one, other = (pw.factorize(unit * power, 2, loss=pw.losses.ItakuraSaito()) for unit in (1, 1000))
    >>> bool(np.isclose(one.objective, other.objective))  # whatever the units
    True
    """

    beta = 0.0
    says = "Itakura-Saito divergence: relative errors count, as in power spectra"


@dataclass(frozen=True)
class Beta(Divergence):
    """The beta-divergence `x^beta / (beta (beta - 1)) + y^beta / beta - x y^(beta - 1) / (beta - 1)`, for any beta: 2
    is least squares, 1 Kullback-Leibler, 0 Itakura-Saito.

    Parameters
    ----------
    beta : float
        Any number; below 1 small entries count more, 0 and less need X > 0.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X + 0.1
    >>> pw.factorize(X, 3, loss=pw.losses.Beta(1.5)).loss
    Beta(beta=1.5)
    """

    beta: float
    says = "beta-divergence: between squared and relative errors, by its beta"

    def __post_init__(self):
        if not is_number(self.beta) or not np.isfinite(self.beta):
            raise ValueError(f"beta must be a finite number, such as beta(1.5), got {self.beta!r}")
        whole = round(self.beta)
        near = whole in (0, 1, 2) and abs(self.beta - whole) <= ROUNDING
        object.__setattr__(self, "beta", float(whole if near else self.beta))


def divergence_of(beta: float) -> Divergence:
    """The beta-divergence of this beta, by its name where it has one.

    Parameters
    ----------
    beta : float
        Any number.

    Returns
    -------
    Divergence
        `Frobenius()` for 2, `KL()` for 1, `ItakuraSaito()` for 0, else `Beta(beta)`.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.losses.divergence_of(1), pw.losses.divergence_of(0.5)
    (KL(), Beta(beta=0.5))
    """
    loss = Beta(beta)
    named = {2.0: Frobenius, 1.0: KL, 0.0: ItakuraSaito}
    return named[loss.beta]() if loss.beta in named else loss


def floor_of(beta: float) -> float:
    """The share of an entry that its model is held at: `FLOOR`, or more where `FLOOR^-beta` would be no number."""
    return max(FLOOR, 2.0 ** (-960 / max(beta, 1.0)))


def power_less_one(r, exponent):
    """`(r^exponent - 1) / exponent` for r >= 0; where r = 0 as for positive exponents."""
    logarithm = np.log(r, out=np.zeros_like(r), where=r > 0)
    return np.where(r > 0, np.expm1(exponent * logarithm), -1.0) / exponent


def safe_share(beta):
    """By how much of itself a model may change so that a step to the minimum of its quadratic model gains for sure:
    `int (1 - t) (1 - t r)^(beta - 3) dt < 1` at r = 0.45 for beta >= 0; for others the curvature may at most double."""
    if beta < 0:
        return 1 - 2.0 ** (1 / (beta - 3))
    return 0.45 if beta <= 2 else 2.0 ** (1 / (beta - 2)) - 1
