"""Bi-cross-validation: Owen and Perry (2009), Annals of Applied Statistics 3(2). Fits are of complete data, so that it
goes with every solver."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ..data.hiding import Grid
from ..data.names import factor_names
from ..data.part import part
from ..problem import Factors
from ..result import Result
from ..structures import Fixed, Structure
from .base import Method, Outcome, Split, Test
from .path import extended
from .setting import Setting, seeds

LEAST_ROWS = 4  # along a mode: two in each half
Cell = tuple[int, ...]  # which half of the rows along each mode


@dataclass(frozen=True, eq=False)
class BlocksSplit(Split):
    """Rows along every mode in two halves, X in 2^order cells. A cell is predicted from the opposite one, where its
    parts come from, and from those that differ from this in one mode, where the rows of its own find their weights.

    The factors of a cell are as tall as X: rows of the opposite cell as fitted, its own as they were found with the
    other factors held."""

    halves: tuple[tuple[np.ndarray, np.ndarray], ...]  # rows along each mode, in order
    parts: dict[Cell, Setting]
    tests: dict[Cell, Test]

    @classmethod
    def of(cls, setting: Setting, seed: int) -> BlocksSplit:
        data, order, rng = setting.given.data, len(setting.shape), np.random.RandomState(seed)
        halves = tuple(halved(rng.permutation(dim)) for dim in setting.shape)
        cells = list(product((0, 1), repeat=order))
        grids = {cell: Grid(data.shape, tuple(rows[h] for rows, h in zip(halves, cell, strict=True))) for cell in cells}
        parts = {cell: part(data, grid) for cell, grid in grids.items()}
        # a row of a factor meets one in 2^(order - 1) of its entries: these count for all, against its penalties
        exponent = setting.given.exponent + order - 1
        settings = {
            cell: replace(setting, given=setting.given._replace(data=some, exponent=exponent), modes=())
            for cell, some in parts.items()
        }
        numbers = zip(cells, seeds(seed, count=len(cells)), strict=True)
        tests = {c: Test.drawn(data, grids[c], [parts[s] for s in seen_for(c)], setting, s) for c, s in numbers}
        return cls(halves, settings, tests)

    def fit(self, rank, seed, base, last):
        began, order = time.perf_counter(), len(self.halves)
        factors, judged, training = [], [], 0.0
        for number, (cell, test) in enumerate(self.tests.items()):
            start = None if last is None else last.factors[number]
            result = self.fitted(opposite(cell), rank, seeds(seed, number)[0], start)
            factors.append(self.predictor(cell, result, seed))
            background = factors[-1] if base is None else base.factors[number]
            judged.append(test.judged(self.parts[cell].loss, factors[-1], background))
            training += math.ldexp(result.fit, 1 - order)
        held_out, chi_square, expected = (sum(numbers) for numbers in zip(*judged, strict=True))
        return Outcome(
            factors=tuple(factors),
            held_out=held_out,
            counted=sum(test.counted for test in self.tests.values()),
            training=training,
            n_training=float(sum(setting.given.n_observed for setting in self.parts.values())),
            chi_square=chi_square,
            expected=expected,
            seconds=time.perf_counter() - began,
            fits=1.0,  # 2^order of data that are as many times smaller
        )

    def fitted(self, cell: Cell, rank: int, seed: int, start: Factors | None) -> Result:
        """The fit of a cell, from rows of tall factors."""
        setting = self.parts[cell]
        if start is None:
            return setting.path_fit(rank, seed, None)
        rows = [A[pair[half]] for A, pair, half in zip(start, self.halves, cell, strict=True)]
        return setting.path_fit(rank, seed, extended(setting.given.data, rows, rank, seed))

    def predictor(self, cell: Cell, result: Result, seed: int) -> Factors:
        """Factors of X, from a fit of the opposite cell."""
        factors = []
        for mode, (pair, half) in enumerate(zip(self.halves, cell, strict=True)):
            fitted = result.factors[mode]
            A = np.empty((sum(map(len, pair)), fitted.shape[1]), fitted.dtype)
            A[pair[1 - half]] = fitted
            A[pair[half]] = projected(self.parts[other_half(opposite(cell), mode)], result, mode, seed)
            factors.append(A)
        return tuple(factors)


def projected(setting: Setting, result: Result, mode: int, seed: int) -> np.ndarray:
    """Rows along a mode for the parts of another cell, the other factors held: each on its own, as `transform` does."""
    names = factor_names(len(result.factors))
    held: list[Structure] = [Fixed(A.T if name == "H" else A) for A, name in zip(result.factors, names, strict=True)]
    held[mode] = setting.structures[mode]
    # what was estimated in the fit holds; and where the loss is convex every solver ends at the same place
    setting = replace(setting, loss=result.loss, structures=tuple(held))
    start = None
    if result.loss.smooth:
        start = [*result.factors[:mode], flat(setting, result.factors, mode), *result.factors[mode + 1 :]]
    return setting.path_fit(result.rank, seed, start, solver="auto").factors[mode]


def flat(setting: Setting, factors: Factors, mode: int) -> np.ndarray:
    """A start for rows along a mode, each from its own data: 0, or since some losses do not move from there, weights
    with which all parts have the same share in the sum of the row."""
    data, rank = setting.given.data, factors[0].shape[1]
    if setting.loss.quadratic:
        return np.zeros((data.shape[mode], rank))
    sums = np.prod([A.sum(axis=0, dtype=np.float64) for m, A in enumerate(factors) if m != mode], axis=0)
    weights = np.divide(1 / rank, np.abs(sums), out=np.zeros(rank), where=sums != 0)
    return data.row_sums(mode, 1.0)[:, None] * weights


def halved(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])


def opposite(cell: Cell) -> Cell:
    return tuple(1 - half for half in cell)


def other_half(cell: Cell, mode: int) -> Cell:
    """The cell next to this along a mode."""
    return tuple(1 - half if m == mode else half for m, half in enumerate(cell))


def seen_for(cell: Cell) -> list[Cell]:
    """The cells that one is predicted from."""
    away = opposite(cell)
    return [away, *(other_half(away, mode) for mode in range(len(cell)))]


@dataclass(frozen=True)
class Blocks(Method):
    """Cut the rows along every mode into halves, and predict each cell from the parts of the opposite one.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(60, 40, 3, noise=0.1, random_state=0).X
    >>> pw.select_rank(X, 5, method=pw.selection.Blocks(), n_repeats=1, n_starts=2).rank
    3
    """

    name = "blocks"

    def refuses(self, setting, rank):
        if not setting.given.data.complete or setting.given.vectors:
            return "method='blocks' needs X without missing entries and weights: use method='speckled'"
        if setting.symmetric:
            return "method='blocks' cuts the rows apart, and symmetric data have one factor: use method='speckled'"
        if math.prod(setting.shape) >= 1 << 63:
            return f"method='blocks' needs fewer than 2^63 entries, and X has shape {setting.shape}"
        if min(setting.shape) < LEAST_ROWS:
            return (
                f"method='blocks' cuts the rows along every mode into halves, and X has shape {setting.shape}: with "
                f"fewer than {LEAST_ROWS} of them use method='speckled'"
            )
        for structure, name in zip(setting.structures, factor_names(len(setting.shape)), strict=True):
            if not structure.applies_to_new_rows:
                return (
                    f"method='blocks' fits half of the rows of {name}, and {structure} speaks of all of them: use "
                    "method='speckled'"
                )
        return None

    def split(self, setting, share, seed):
        return BlocksSplit.of(setting, seed)
