"""Count thinning: Neufeld, Dharamshi, Gao and Witten (2024), Journal of Machine Learning Research 25."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from ..data import Data
from ..data.hiding import Grid
from ..data.part import thinned
from ..problem import Factors
from .base import Method, Outcome, Split, Test
from .path import extended
from .setting import Setting

LARGEST = 1 << 53  # count: beyond, not all whole numbers are numbers


@dataclass(frozen=True, eq=False)
class ThinningSplit(Split):
    """Counts in two halves, `Binomial(X, 1/2)` and the rest, which are independent where X is Poisson. Each predicts
    the other. A half is fitted in the units of X, its counts doubled, so that structures ask of it what they ask of
    X."""

    settings: tuple[Setting, ...]  # of each half
    tests: tuple[Test, ...]  # of the other

    @classmethod
    def of(cls, setting: Setting, seed: int) -> ThinningSplit:
        one, other = thinned(setting.given.data, np.random.default_rng(seed))
        grid = Grid.of(setting.given)
        tests = Test.drawn(other, grid, [one], setting, seed), Test.drawn(one, grid, [other], setting, seed)
        doubled = (half.with_values(2 * next(half.listed())) for half in (one, other))
        return cls(tuple(setting.of_data(setting.given._replace(data=half)) for half in doubled), tests)

    def fit(self, rank, seed, base, last):
        began = time.perf_counter()
        factors, judged, training = [], [], 0.0
        for number, (setting, test) in enumerate(zip(self.settings, self.tests, strict=True)):
            start = None if last is None else extended(setting.given.data, last.factors[number], rank, seed)
            result = setting.path_fit(rank, seed, start)
            factors.append(result.factors)
            background = result.factors if base is None else base.factors[number]
            judged.append(test.judged(setting.loss, of_half(result.factors), of_half(background)))
            training += result.fit / 2  # of counts, not doubled, as what is predicted
        held_out, chi_square, expected = (sum(numbers) for numbers in zip(*judged, strict=True))
        return Outcome(
            factors=tuple(factors),
            held_out=held_out,
            counted=sum(test.counted for test in self.tests),
            training=training,
            n_training=float(sum(setting.given.n_observed for setting in self.settings)),
            # halves of counts vary beyond Poisson's half as much, over their mean, as the whole
            chi_square=2 * chi_square - math.ldexp(expected, -self.settings[0].exponent),
            expected=expected,
            seconds=time.perf_counter() - began,
            fits=2.0,
        )


def of_half(factors: Factors) -> Factors:
    """A model of all counts as one of half of them."""
    first, *others = factors
    return (first / 2, *others)


@dataclass(frozen=True)
class Thinning(Method):
    """Toss a coin for everything that was counted, and predict the counts of one half from those of the other.

    Counts that vary more than Poisson's are alike in both halves, and pass for parts: believe it where `dispersion` is
    near 1.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.random.default_rng(0).poisson(20 * pw.datasets.make_parts(60, 40, 3, random_state=0).X)
    >>> pw.select_rank(X, 5, loss="kl", method=pw.selection.Thinning(), n_repeats=1, n_starts=2).rank
    3
    """

    name = "thinning"

    def refuses(self, setting, rank):
        if getattr(setting.loss, "beta", None) != 1:
            return f"method='thinning' is for counts under loss='kl', got {setting.loss}: use method='speckled'"
        if not setting.given.data.complete or setting.given.vectors:
            return "method='thinning' needs counts without missing entries and weights: use method='speckled'"
        if not holds_counts(setting.given.data):
            return (
                "method='thinning' is for counts, whole numbers >= 0, and X has other entries: use method='speckled', "
                "or give the counts as they were before they were scaled"
            )
        return None

    def split(self, setting, share, seed):
        return ThinningSplit.of(setting, seed)


def holds_counts(data: Data) -> bool:
    lowest, highest = data.extremes
    return (
        lowest >= 0 and highest < LARGEST and all(np.array_equal(values, np.rint(values)) for values in data.listed())
    )
