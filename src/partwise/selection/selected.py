"""What a search for the number of parts returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..losses import Loss
from ..result import Result
from . import plots, sentences
from .stability import Stability


class RankRow(NamedTuple):
    """One rank tried; NaN where a column does not apply, or was not looked at."""

    rank: int
    held_out: float  # mean loss of an entry that was left out
    se: float  # its standard error, over samples
    excess: float  # how much more that is than at the best rank
    excess_se: float  # its standard error: samples are paired
    training: float  # mean loss of an entry that was fitted
    stability: float  # mean silhouette of the parts of random starts
    weakest: float  # the least of them
    ic1: float  # information criterion of Bai and Ng (2002)
    core_consistency: float  # CORCONDIA, in percent, for tensors
    fits: float  # of data as large as X
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """A number of parts, and what speaks for it; see `select_rank`."""

    rank: int
    best: int  # that with the lowest held-out loss
    near: int  # the fewest parts within 1% of its drop
    window: tuple[int, ...]  # ranks tried from the fewest parts within 5% of the drop to the best
    table: tuple[RankRow, ...]  # one row for each rank tried
    curves: np.ndarray  # mean held-out loss of an entry, (repeats, ranks)
    candidates: tuple[int, ...]  # ranks that would have been tried
    dispersion: float  # variance of counts over their mean, of entries left out; NaN where X holds none
    result: Result | None  # the fit of X at this rank; None after Ctrl-C
    stability: Stability | None  # of random starts at this rank; None for one part, and where none were compared
    method: str
    loss: Loss
    shape: tuple[int, ...]
    n_starts: int
    status: str  # "complete" or "interrupted"

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those tried."""
        return tuple(row.rank for row in self.table)

    def row(self, rank: int) -> RankRow:
        return self.table[self.ranks.index(rank)]

    @property
    def drop(self) -> float:
        """How much the held-out loss falls from the fewest parts tried, one as a rule, to the best."""
        return self.table[0].excess

    @property
    def no_end(self) -> bool:
        """Whether the held-out loss was lowest at the largest candidate."""
        return self.best == self.candidates[-1] and self.best > 1

    @property
    def n_fits(self) -> float:
        """Fits of data as large as X, the last one included."""
        return sum(row.fits for row in self.table) + (self.result is not None)

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        return sentences.selected(self)

    @property
    def plot(self) -> Plots:
        """Pictures: `selection.plot.curve()` and `.stability()`."""
        return Plots(self)

    def report(self, path) -> Path:
        """Write a page with the sentence, the curve, the table and the parts."""
        from ..report.selection import write_selection  # noqa: PLC0415  # needs the optional drawing libraries

        return write_selection(self, path)

    def save(self, path) -> Path:
        """Write everything to one file that `partwise.load` reads back exact to the bit."""
        from ..io import save  # noqa: PLC0415  # it is built on this class

        return save(self, path)

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<partwise rank selection: {self.sentence}>"


@dataclass(frozen=True)
class Plots:
    """The functions of `partwise.selection.plots` on one selection."""

    selection: RankSelection

    def curve(self):
        return plots.curve(self.selection)

    def stability(self):
        return plots.stability(self.selection)
