"""Single entries held out, here and there: Wold (1978), Technometrics 20(4); for NMF, Kanagal and Sindhwani (2010)."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..data import Data
from ..data.hiding import listed
from ..data.observed import Observed, found, listing, merged
from ..errors import IncompatibleError
from ..holdout import MOST_HIDDEN, holdout
from ..problem.weights import mean_of
from ..registry import choose
from .base import Method, Outcome, Split, Test
from .path import extended
from .setting import Setting, silence
from .zeros import FEWEST, drawn_zeros

ABOVE = 3.0  # times the largest entry seen in the same row or column: more is never predicted


@dataclass(frozen=True, eq=False)
class SpeckledSplit(Split):
    setting: Setting  # of what is left
    test: Test

    @classmethod
    def of(cls, setting: Setting, left: Observed, places, values, weights) -> SpeckledSplit:
        indices = np.unravel_index(places, setting.shape)
        sizes = [largest_along(left.data, mode)[index] for mode, index in enumerate(indices)]
        largest = ABOVE * np.maximum.reduce(sizes)
        return cls(
            setting.of_data(left),
            Test(setting.shape, places, values, weights, largest, mean_of(left), setting.exponent),
        )

    def fit(self, rank, seed, base, last):
        began = time.perf_counter()
        start = None if last is None else extended(self.setting.given.data, last.factors[0], rank, seed)
        result = self.setting.path_fit(rank, seed, start)
        background = result.factors if base is None else base.factors[0]
        held_out, chi_square, expected = self.test.judged(self.setting.loss, result.factors, background)
        return Outcome(
            factors=(result.factors,),
            held_out=held_out,
            counted=self.test.counted,
            training=result.fit,
            n_training=float(self.setting.given.n_observed),
            chi_square=chi_square,
            expected=expected,
            seconds=time.perf_counter() - began,
            fits=1.0,
        )


@dataclass(frozen=True)
class Speckled(Method):
    """Hide a share of single entries, the same ones for all ranks, and predict them from the rest.

    Where X is sparse and that would be more than 5 million, it is a share of the nonzeros, and about as many zeros that
    stand for all; nonzeros that are left then count for those hidden.

    Parameters
    ----------
    blocks : bool
        Whether to hide blocks of neighbouring entries, where these are alike: spectra, images.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(60, 40, 3, noise=0.1, random_state=0).X
    >>> pw.select_rank(X, 5, method=pw.selection.Speckled(blocks=True), n_repeats=1, n_starts=2).rank
    3
    """

    blocks: bool = False  # of neighbouring entries, where these are alike: spectra, images
    name = "speckled"

    def refuses(self, setting, rank):
        """Whether a solver takes data in which an entry is missing."""
        left = hidden_at_random(setting.given, 1.5 / setting.given.n_observed, False, 0)[0]
        try:
            choose(setting.of_data(left).problem(rank), setting.words.get("solver", "auto"))
        except IncompatibleError as error:
            return str(error)
        return None

    def split(self, setting, share, seed):
        given = setting.given
        large = share * given.n_observed > MOST_HIDDEN
        if large and given.data.sparse and not given.vectors and not self.blocks:
            return SpeckledSplit.of(setting, *hidden_by_strata(given, share, seed))
        return SpeckledSplit.of(setting, *hidden_at_random(given, share, self.blocks, seed))


def largest_along(data: Data, mode: int) -> np.ndarray:
    """The largest entry of each row of X unfolded along a mode, by absolute value, (dim,)."""
    found = []
    for X in data.rows(mode):
        largest, some = np.zeros(X.n_rows), np.diff(X.indptr) > 0
        largest[some] = np.maximum.reduceat(np.abs(X.values), X.indptr[:-1][some])
        found.append(largest * np.float64(X.scale))
    return np.concatenate(found)


def hidden_at_random(given: Observed, share: float, blocks: bool, seed: int) -> tuple:
    """What is left, and the places, values and weights of what is hidden."""
    with silence():  # how many could be hidden is nothing to act upon here
        held = holdout(given, share, blocks, random_state=seed)
    return held.left, held.places, held.values, held.weights


def hidden_by_strata(given: Observed, share: float, seed: int) -> tuple:
    """The same of sparse data, nonzeros and zeros apart."""
    data, rng = given.data, np.random.default_rng(seed)
    known, values, weights = listed(data)
    there = np.flatnonzero((values != 0) & (weights > 0))
    taken = there[rng.permutation(len(there))[: min(max(1, round(share * len(there))), MOST_HIDDEN)]]
    gain, chance = len(there) / max(len(there) - len(taken), 1), len(taken) / max(len(there), 1)
    sums = [data.row_sums(mode, 1.0) for mode in range(len(data.shape))]
    zeros, counts = drawn_zeros(data.shape, sums, known, max(len(taken), FEWEST), seed=seed, most=share)
    every = merged(known, zeros)
    left = found(every, known, weights, data.unlisted)
    places = np.concatenate([known[taken], zeros])
    left[np.searchsorted(every, known[there])] *= gain
    left[np.searchsorted(every, places)] = 0
    counted = np.concatenate([weights[taken] / chance, data.unlisted * counts])
    order = np.argsort(places, kind="stable")
    kept = listing(data.shape, every, found(every, known, values), left, data.unlisted)
    found_values = np.concatenate([values[taken], np.zeros(len(zeros))])
    return given._replace(data=kept), places[order], found_values[order].astype(np.float64), counted[order]
