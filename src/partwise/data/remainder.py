"""What parts leave of X, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..kernels.records import Rows
from .base import Data


@dataclass(frozen=True, eq=False)
class Remainder(Data):
    """What parts leave of X, where that is positive, at its listed entries."""

    source: Data
    unfolded: dict[int, tuple[Rows, ...]]  # blocks of rows, of the modes that are asked for

    def rows(self, mode):
        return iter(self.unfolded[mode])

    def others(self, factors, mode, rows):
        return self.source.others(factors, mode, rows)

    def columns(self, mode):
        return self.source.columns(mode)


def remainder(data: Data, factors: Sequence[np.ndarray], modes: Iterable[int]) -> Remainder:
    """Of X less `[[factors]]`, unfolded along these modes."""

    def less(X: Rows, mode: int) -> Rows:
        A, others = factors[mode][X.first : X.first + X.n_rows], data.others(factors, mode, X)
        left = kernels.of(A).residuals(X, A, others)
        return X._replace(values=np.maximum(left, 0, out=left), scale=A.dtype.type(1))

    unfolded = {mode: tuple(less(X, mode) for X in data.rows(mode)) for mode in modes}
    return Remainder(data.shape, data.dtype, 1.0, data.source if isinstance(data, Remainder) else data, unfolded)
