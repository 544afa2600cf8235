"""Single entries held out, here and there: Wold (1978), Technometrics 20(4); for NMF, Kanagal and Sindhwani (2010)."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from ..holdout import Holdout, holdout
from ..problem.weights import mean_of
from .base import Method, Outcome, Split, Test
from .path import extended
from .setting import Setting


@dataclass(frozen=True, eq=False)
class SpeckledSplit(Split):
    setting: Setting  # of what is left
    test: Test

    @classmethod
    def of(cls, setting: Setting, held: Holdout) -> SpeckledSplit:
        data = held.left.data
        largest = max(map(abs, data.extremes))
        test = Test(held.shape, held.places, held.values, held.weights, largest, mean_of(held.left))
        return cls(setting.of_data(held.left), test)

    def fit(self, rank, seed, base, last):
        began = time.perf_counter()
        data = self.setting.given.data
        start = None if last is None else extended(data, last.factors[0], rank, seed)
        result = self.setting.path_fit(rank, seed, start)
        background = result.factors if base is None else base.factors[0]
        predicted = self.test.capped(self.setting.loss, result.factors, background)
        chi_square, expected = self.test.chi_square(predicted, background)
        return Outcome(
            factors=(result.factors,),
            held_out=self.test.losses(self.setting.loss, predicted),
            counted=float(self.test.weights.sum()),
            training=result.fit,
            n_training=float(self.setting.given.n_observed),
            chi_square=chi_square,
            expected=expected,
            seconds=time.perf_counter() - began,
            fits=1.0,
            likeness=np.empty((0, rank)),
        )


@dataclass(frozen=True)
class Speckled(Method):
    """Hide a share of single entries, the same ones for all ranks, and predict them from the rest."""

    blocks: bool = False  # of neighbouring entries, where these are alike: spectra, images
    name = "speckled"

    def split(self, setting, share, seed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # how many could be hidden is in the table
            return SpeckledSplit.of(setting, holdout(setting.given, share, self.blocks, random_state=seed))
