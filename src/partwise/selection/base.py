"""The contract of a method: how data are split into what is fitted and what is predicted, and how predictions count."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Data
from ..data.hiding import Grid, entries_at
from ..data.observed import Observed
from ..data.part import stored
from ..holdout import MOST_HIDDEN, distinct_numbers, model_at
from ..losses import L1, Loss
from ..problem import Factors
from .setting import Setting
from .zeros import FEWEST, drawn_zeros

GROUPS = 100  # at most, of samples, whose held-out losses are kept apart: standard errors are taken over them
SHARES = (0.01, 0.03, 0.1, 0.3)  # of the background in predictions, under losses that are infinite at 0
MEAN = 0.01  # share of the mean in the background, which is never 0


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the fits of one split at one rank tell: the losses of entries left out, what they count, and the factors.

    Attributes
    ----------
    factors : tuple of factors
        Of each fit, in the user's units: the next rank starts from them.
    held_out : ndarray of shape (n_groups,)
        Loss of the held-out entries, summed over groups of samples.
    counted : ndarray of shape (n_groups,)
        What these entries count.
    training, n_training : float
        Loss of the entries fitted, all fits together, and how many these are.
    chi_square, expected : float
        Pearson's, of the held-out entries, and what to expect of counts.
    seconds : float
        What the fits took.
    fits : float
        Fits of data as large as X that have the work of these.

    Examples
    --------
    >>> import partwise as pw
    >>> from partwise.selection.setting import Setting
    >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
    >>> setting = Setting.of(X, "frobenius", (None, None, None), {}, {})
    >>> split = pw.selection.Speckled().split(setting, share=0.1, seed=0)
    >>> outcome = split.fit(2, 0, None, None)
    >>> [A.shape for A in outcome.factors[0]], bool(outcome.held_out.sum() > 0)
    ([(40, 2), (30, 2)], True)
    """

    factors: tuple[Factors, ...]  # of each fit, in the user's units: the next rank starts from them
    held_out: np.ndarray  # loss of the held-out entries, summed over groups of samples, (n_groups,)
    counted: np.ndarray  # what these entries count, summed in the same way
    training: float  # loss of the entries fitted, all fits together
    n_training: float  # how many these are
    chi_square: float  # Pearson's, of the held-out entries, and what to expect of counts: see `Test.chi_square`
    expected: float
    seconds: float
    fits: float  # of data as large as X that have the work of these fits


class Split(ABC):
    """Data in two: what is fitted, and what is predicted. It is sent to other processes.

    Examples
    --------
    >>> import partwise as pw
    >>> from partwise.selection.setting import Setting
    >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
    >>> setting = Setting.of(X, "frobenius", (None, None, None), {}, {})
    >>> split = pw.selection.Speckled().split(setting, share=0.1, seed=0)
    >>> isinstance(split, pw.selection.Split), split.test.places.size
    (True, 120)
    """

    @abstractmethod
    def fit(self, rank: int, seed: int, base: Outcome | None, last: Outcome | None) -> Outcome:
        """Fit and predict; `base`: the outcome at rank 1, None if this is it; `last`: that of fewer parts, to start
        from."""


class Method(ABC):
    """A way to tell how well models of different rank predict: a frozen dataclass whose `split` leaves out entries. For
    one of your own see "How entries are left out" in docs/rank.md.

    Examples
    --------
    >>> import partwise as pw
    >>> isinstance(pw.selection.Speckled(), pw.selection.Method)
    True
    """

    name: str

    def refuses(self, setting: Setting, rank: int) -> str | None:
        """None, or the sentence that tells why it does not go with these data, this loss and these structures; `rank`:
        the fewest parts that are tried."""
        return None

    @abstractmethod
    def split(self, setting: Setting, share: float, seed: int) -> Split:
        """One split; the same seed gives the same. `share`: of what is to be predicted, where the method leaves it
        open."""


@dataclass(frozen=True, eq=False)
class Test:
    """Entries to predict, and what their losses count.

    Parameters
    ----------
    shape : tuple of int
        Of X.
    places : ndarray of int
        Entries to predict, counted through an array of this shape, the last mode fastest, in order.
    values, weights : ndarray
        What is there, and what it counts.
    largest : ndarray or float
        What each of them may be predicted to be at most, by absolute value.
    mean : float
        Of the entries fitted.
    exponent : int
        Losses are told in units of 2**this.

    Examples
    --------
    >>> import partwise as pw
    >>> from partwise.selection.setting import Setting
    >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
    >>> setting = Setting.of(X, "frobenius", (None, None, None), {}, {})
    >>> split = pw.selection.Speckled().split(setting, share=0.1, seed=0)
    >>> split.test.shape, split.test.values.size
    ((40, 30), 120)
    """

    shape: tuple[int, ...]
    places: np.ndarray  # counted through an array of this shape, the last mode fastest, in order
    values: np.ndarray
    weights: np.ndarray
    largest: np.ndarray | float  # that each of them may be predicted to be, by absolute value
    mean: float  # of the entries fitted
    exponent: int  # losses are told in units of 2**this: see `Setting`

    @classmethod
    def drawn(cls, data: Data, grid: Grid, seen: Sequence[Data], setting: Setting, seed: int) -> Test:
        """The entries of complete data in some rows along each mode: all of them, or where they are too many, and of
        zeros that are not stored, a random sample that counts as much as all, so that sums have the right mean.
        `seen`: what they are predicted from."""
        rng, found = np.random.RandomState(seed), stored(data, grid)
        count = min(found.n, MOST_HIDDEN)
        places = grid.out_of(found.at(np.sort(distinct_numbers(count, found.n, rng))))
        weights = np.full(count, found.n / max(count, 1))
        if data.sparse:
            sums = [data.row_sums(mode, 1.0)[rows] for mode, rows in enumerate(grid.kept)]
            zeros, counted = drawn_zeros(grid.own_shape, sums, found.listed, max(count, FEWEST), seed=seed, most=1.0)
            places, weights = np.append(places, grid.out_of(zeros)), np.append(weights, counted)
        order = np.argsort(places, kind="stable")  # merges two runs
        places = places[order]
        values, _ = entries_at(Observed(data, (), 0.0), places)
        largest = max(max(map(abs, some.extremes)) for some in seen)
        mean = sum(some.mean * some.n_observed for some in seen) / sum(some.n_observed for some in seen)
        return cls(data.shape, places, values, weights[order], largest, mean, setting.exponent)

    def judged(self, loss: Loss, factors: Factors, base: Factors) -> tuple[np.ndarray, float, float]:
        """Losses of the entries, summed over groups of samples, and `chi_square`.

        No single entry can spoil a prediction: a part that rests on held-out entries alone can say anything of them, so
        that none is larger than `largest`, which what was seen sets. And where the loss is
        infinite at 0, a share of the background is mixed in, whichever of a few predicts best: parts that are sure that
        nothing is there are forgiven at every rank alike, and the curve tells of what they say of the rest."""
        Y = np.clip(model_at(self.places, factors), -self.largest, self.largest)
        background = self.background(base)
        mixed = [(1 - share) * Y + share * background for share in SHARES] if loss.infinite_at_zero else [Y]
        scored = [(self.losses(loss, prediction), prediction) for prediction in mixed]
        losses, predicted = min(scored, key=lambda pair: pair[0].sum())
        return losses, *self.chi_square(predicted, background)

    def background(self, base: Factors) -> np.ndarray:
        """The model of one part, mixed with the mean: what row and column sums predict."""
        return (1 - MEAN) * np.clip(model_at(self.places, base), 0, self.largest) + MEAN * self.mean

    def losses(self, loss: Loss, predicted: np.ndarray) -> np.ndarray:
        """Summed over groups of samples."""
        own = scored_by(loss).in_units(self.exponent)
        X, Y = np.ldexp(self.values, -self.exponent), np.ldexp(predicted, -self.exponent)
        return np.array([own.value(X[p], Y[p], self.weights[p]) if p.stop > p.start else 0.0 for p in self.groups])

    @property
    def counted(self) -> np.ndarray:
        """What the entries count, summed over groups of samples."""
        return np.array([self.weights[p].sum() for p in self.groups])

    @property
    def groups(self) -> list[slice]:
        """The entries of each group of samples."""
        n_samples = self.shape[0]
        n_groups = min(n_samples, GROUPS)
        rows = np.arange(1, n_groups + 1) * n_samples // n_groups
        ends = np.searchsorted(self.places, rows * (math.prod(self.shape) // n_samples))
        return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    def chi_square(self, predicted: np.ndarray, background: np.ndarray) -> tuple[float, float]:
        """`sum (x - y)^2 / b` and `sum x / b` over the entries, by what they count, b being the background. These are
        Pearson's chi-square and its expectation where x is Poisson, of mean y; b in place of y, since one count where
        next to none was expected would outweigh all others."""
        b = np.divide(self.weights, background, out=np.zeros_like(background), where=background > 0)
        away = np.ldexp(self.values - predicted, -self.exponent)
        return float(b @ np.square(away)), float(b @ np.ldexp(self.values, -self.exponent))


def scored_by(loss: Loss) -> Loss:
    """The loss that models of different rank are compared by: one whose scale each fit estimates would be another at
    every rank, and is replaced by absolute differences, as robust as it is."""
    return loss if loss.scale is not None else L1()


def is_outcome(rank: int, outcome: Any) -> bool:
    """Whether what came out of a file can be the outcome of fits of this rank."""
    if not isinstance(outcome, Outcome) or outcome.held_out.ndim != 1:
        return False
    losses, counted = outcome.held_out, outcome.counted
    told = losses.dtype == counted.dtype == np.float64 and losses.shape == counted.shape and not np.isnan(losses).any()
    arrays = [A for factors in outcome.factors for A in factors]
    return (
        told and min(counted.sum(), outcome.n_training) > 0 and all(A.ndim == 2 and A.shape[1] <= rank for A in arrays)
    )


def total(outcomes: Sequence[Outcome]) -> np.ndarray:
    """Mean held-out loss of an entry in each of them."""
    return np.array([outcome.held_out.sum() / outcome.counted.sum() for outcome in outcomes])
