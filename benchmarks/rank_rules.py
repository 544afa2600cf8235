"""Rules by which others choose the number of parts, on the same data and from our own fits.

Curves first: fits of X with 1, 2, ... parts, and random starts at every rank. Then a rule is a function of these."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partwise.losses import Frobenius
from partwise.result import Result
from partwise.selection import RankSelection, Stability
from partwise.selection.rule import STABLE
from partwise.selection.select import fit_start
from partwise.selection.setting import Setting, seeds

from .scale import sized

N_STARTS = sized(3, 2)


@dataclass(frozen=True)
class Curves:
    """Everything that a rule may look at, by rank."""

    selection: RankSelection
    path: list[Result]  # fits of X with 1, 2, ... parts
    starts: dict[int, Stability]  # from 2 parts on

    @property
    def fits(self) -> np.ndarray:
        return np.array([result.fit for result in self.path])


def of_starts(setting: Setting, most: int) -> dict[int, Stability]:
    """Random starts at every rank but 1."""
    every = {}
    for rank in range(2, most + 1):
        runs = [fit_start(setting, rank, seed) for seed in seeds(0, 7, rank, count=N_STARTS)]
        every[rank] = Stability.of(runs)
    return every


def two_stages(curves: Curves) -> int:
    return curves.selection.rank


def least_held_out(curves: Curves) -> int:
    return curves.selection.best


def one_standard_error(curves: Curves) -> int:
    """The fewest parts whose mean held-out loss is within one standard error, over the repeats, of the least."""
    found = curves.selection
    totals = found.curves[:, found.ranks.index(found.best)]
    bound = totals.mean() + totals.std(ddof=1) / math.sqrt(len(totals))
    return next(row.rank for row in found.table if row.held_out <= bound)


def silhouette(curves: Curves) -> int:
    """The most parts the weakest of which has a silhouette of 0.8 or, where none has, of the best there is: as NMFk
    (Alexandrov et al. 2013), with starts in place of noise."""
    weakest = {rank: found.weakest for rank, found in curves.starts.items()}
    return max(rank for rank, value in weakest.items() if value >= min(STABLE, max(weakest.values())))


def cophenetic(curves: Curves) -> int:
    """The largest cophenetic correlation (Brunet et al. 2004)."""
    return max(curves.starts, key=lambda rank: curves.starts[rank].cophenetic)


def elbow(curves: Curves) -> int:
    """The point of the error curve that is farthest from its chord."""
    y = np.sqrt(curves.fits)
    x = np.linspace(0, 1, len(y))
    return 1 + int(np.argmax(1 - x - (y - y[-1]) / (y[0] - y[-1])))


def ic1(curves: Curves) -> int:
    """Bai and Ng (2002)."""
    shape = curves.path[0].shape
    dims, n = sum(shape), math.prod(shape)
    return criterion(curves, np.array([k * dims * math.log(n / dims) for k in ranks_of(curves)]))


def bic(curves: Curves) -> int:
    """Schwarz (1978); a part has as many parameters as rows and columns together, less those that only rotate."""
    shape = curves.path[0].shape
    dims, n, order = sum(shape), math.prod(shape), len(shape)
    own = [k * dims - (k * k if order == 2 else k * (order - 1)) for k in ranks_of(curves)]
    return criterion(curves, math.log(n) * np.array(own))


def ranks_of(curves: Curves) -> range:
    return range(1, len(curves.path) + 1)


def criterion(curves: Curves, costs: np.ndarray) -> int:
    """The least of the deviance and what parameters cost; that of least squares is `n log(mean square)`."""
    n = math.prod(curves.path[0].shape)
    deviance = 2 * curves.fits
    if curves.path[0].loss == Frobenius():
        deviance = n * np.log(np.maximum(deviance / n, 1e-300))
    return 1 + int(np.argmin(deviance + costs))


RULES = {
    "**select_rank**": two_stages,
    "least held-out error": least_held_out,
    "one standard error": one_standard_error,
    "silhouette of starts": silhouette,
    "elbow": elbow,
    "cophenetic, largest": cophenetic,
    "IC1": ic1,
    "BIC": bic,
}


def picks(curves: Curves) -> dict[str, int]:
    return {name: rule(curves) for name, rule in RULES.items()}
