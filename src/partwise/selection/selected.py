"""What a search for the number of parts returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..losses import Loss
from ..result import Result
from . import plots, sentences
from .stability import Stability


class RankRow(NamedTuple):
    """One rank tried; NaN where a column does not apply, or was not looked at.

    Attributes
    ----------
    rank : int
        The number of parts.
    held_out, se : float
        Mean loss of an entry that was left out, and its standard error over samples.
    excess, excess_se : float
        How much more that is than at the best rank, and its standard error: samples are paired.
    training : float
        Mean loss of an entry that was fitted.
    stability, weakest : float
        Mean silhouette of the parts of random starts, and the least of them.
    ic1 : float
        Information criterion of Bai and Ng (2002).
    core_consistency : float
        CORCONDIA, in percent, for tensors.
    fits : float
        Fits of data as large as X.
    seconds : float
        What they took.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
    >>> row = pw.select_rank(X, 3, n_repeats=1, n_starts=2).row(2)
    >>> row.rank, bool(row.held_out > 0)
    (2, True)
    """

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


class Column(NamedTuple):
    """A column of the table as people read it."""

    heading: str
    spec: str = ""  # how numbers are written; none: as losses, all with as many decimals
    error: str = ""  # the field with its standard error


COLUMNS = {
    "rank": Column("parts", "d"),
    "held_out": Column("left out", error="se"),
    "excess": Column("excess", error="excess_se"),
    "training": Column("fitted"),
    "stability": Column("stability", ".2f"),
    "weakest": Column("weakest", ".2f"),
    "ic1": Column("IC1", ".4f"),
    "core_consistency": Column("core consistency", ".0f"),
    "fits": Column("fits", ".4g"),
    "seconds": Column("seconds", ".1f"),
}
FLAT = 1e-3  # of the drop: a curve that falls by less has come to its end
DIGITS, MOST_DECIMALS = (
    4,
    8,
)  # of the least held-out loss and the drop, and of losses that are not written with powers of ten


@dataclass(frozen=True, eq=False, repr=False)
class RankSelection:
    """A number of parts, and what speaks for it; see `partwise.select_rank`.

    Attributes
    ----------
    rank : int
        The number of parts taken.
    best : int
        The rank with the lowest held-out loss.
    near : int
        The fewest parts within 1% of its drop.
    window : tuple of int
        Ranks tried from the fewest parts within 5% of the drop to the best.
    table : tuple of RankRow
        One row for each rank tried.
    curves : ndarray of shape (repeats, ranks)
        Mean held-out loss of an entry.
    candidates : tuple of int
        Ranks that would have been tried.
    dispersion : float
        Variance of counts over their mean, of entries left out; NaN where X holds none.
    result : Result or None
        The fit of X at this rank; None after Ctrl-C.
    stability : Stability or None
        Of random starts at this rank; None for one part, and where none were compared.
    method : str
        How entries were left out.
    loss : Loss
        The loss of all fits.
    shape : tuple of int
        The shape of X.
    n_starts : int
        Random starts compared at each rank looked at.
    share : float
        The share of entries left out, where the method leaves it open.
    random_state : int or None
        The seed, where it was given as a number.
    status : str
        "complete" or "interrupted".

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
    >>> selection = pw.select_rank(X, 4, n_repeats=1, n_starts=2)
    >>> selection.rank, selection.ranks, selection.result.rank
    (2, (1, 2, 3, 4), 2)
    >>> print(selection.sentence)
    2 parts: the held-out error is lowest at 2; both parts came again in 2 of 2 starts (weakest cosine 1.00).
    """

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
    share: float  # of the entries, left out where the method leaves it open
    random_state: int | None  # the seed, where it was given as a number
    status: str  # "complete" or "interrupted"

    @property
    def ranks(self) -> tuple[int, ...]:
        """Those tried."""
        return tuple(row.rank for row in self.table)

    def row(self, rank: int) -> RankRow:
        """The line of the table for a rank that was tried.

        Examples
        --------
        >>> import partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
        >>> selection = pw.select_rank(X, 3, n_repeats=1, n_starts=2)
        >>> selection.row(1).excess > selection.row(2).excess
        True
        """
        if rank not in self.ranks:
            raise ValueError(f"rank {rank!r} was not tried: there are rows for {', '.join(map(str, self.ranks))}")
        return self.table[self.ranks.index(rank)]

    @property
    def picked(self) -> int | None:
        """The rank, where the search came to its end."""
        return self.rank if self.status == "complete" else None

    @property
    def drop(self) -> float:
        """How much the held-out loss falls from the fewest parts tried, one as a rule, to the best."""
        return self.table[0].excess

    @property
    def no_end(self) -> bool:
        """Whether the held-out loss still falls at the largest candidate, from the rank before it by more than 0.1% of
        its drop."""
        falls = len(self.table) > 1 and self.table[-2].excess > FLAT * self.drop
        return self.best == self.candidates[-1] and falls

    @property
    def n_fits(self) -> float:
        """Fits of data as large as X, the last one included."""
        return sum(row.fits for row in self.table) + (self.result is not None)

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        return sentences.selected(self)

    @property
    def columns(self) -> list[tuple[str, list[str]]]:
        """The table as people read it: heading and cells of each column that has a number in it."""
        cells = {name: [self.cell(row, name) for row in self.table] for name in COLUMNS}
        told = [(COLUMNS[name].heading, column) for name, column in cells.items() if any(column)]
        return [*told, ("", [self.remark(rank) for rank in self.ranks])]

    def cell(self, row: RankRow, name: str) -> str:
        """A number as text, with its standard error if it has one; nothing for NaN."""
        _, spec, error = COLUMNS[name]
        values = [getattr(row, field) for field in (name, error) if field]
        return " ± ".join(format(value, spec or self.loss_format) for value in values if math.isfinite(value))

    @property
    def loss_format(self) -> str:
        """As many decimals as the least of the held-out losses needs, and their drop, which may be a small share."""
        least = min(self.row(self.best).held_out, self.drop or math.inf)
        decimals = DIGITS - 1 - math.floor(math.log10(least)) if 0 < least < math.inf else -1
        return f".{decimals}f" if 0 <= decimals <= MOST_DECIMALS else f".{DIGITS - 1}e"

    def remark(self, rank: int) -> str:
        """What is special about a rank, in a word or two."""
        words = {"picked": rank == self.picked, "best": rank == self.best}
        return ", ".join(word for word, applies in words.items() if applies) or "window" * (rank in self.window)

    @property
    def text(self) -> str:
        """The table as text, one line for each rank tried."""
        padded = []
        for heading, cells in self.columns:
            width = max(map(len, [heading, *cells]))
            padded.append([cell.rjust(width) if heading else cell for cell in [heading, *cells]])
        return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))

    @property
    def plot(self) -> Plots:
        """Pictures: `selection.plot.curve()` and `.stability()`."""
        return Plots(self)

    def report(self, path: Any, **options: Any) -> Path:
        """Write one HTML page with the sentence, the curve, the table and the parts.

        Parameters
        ----------
        path : str or Path
            The file to write.
        **options
            Those of `Result.report`.

        Returns
        -------
        Path
        """
        from ..report import write_selection_report  # noqa: PLC0415  # needs the optional drawing libraries

        return write_selection_report(self, path, **options)

    def save(self, path: Any) -> Path:
        """Write everything to one file that `partwise.load` reads back exact to the bit.

        Returns
        -------
        Path

        Examples
        --------
        >>> import os, tempfile, partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 2, noise=0.1, random_state=0).X
        >>> path = os.path.join(tempfile.mkdtemp(), "selection.partwise")
        >>> pw.load(pw.select_rank(X, 2, n_repeats=1, n_starts=2).save(path)).rank
        2
        """
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
