"""The contract of a loss: an entrywise divergence d(x, y), summed over all entries."""

from abc import ABC, abstractmethod

import numpy as np


class Loss(ABC):
    """A loss is a frozen dataclass; its parameters are its fields."""

    quadratic = False  # True: gram and cross (`Problem.expansion`) say all about the data
    beta: float | None = None  # of a beta-divergence
    degree: float  # d(c x, c y) = c**degree d(x, y): how the objective follows the units of X
    root = 0.5  # errors are told as `(loss / root)^root`: a norm for least squares, the sum itself for L1
    start: str | None = None  # the initialisation that suits it best, where that is not for all to say
    needs_double = False  # float32 has no room for its derivatives: float32 data are computed with in double precision
    zero_weight = 1.0  # what an error under a zero of X counts

    explains = "the loss of 0"  # what `Result.explained` is a share of, in words

    def null(self, mean: float) -> float:
        """The null model, a constant, whose loss a fit is compared with, given the mean of |X|: 0, so that its loss is
        the size of X, or the best constant where 0 would not do."""
        return 0.0

    @abstractmethod
    def value(self, X: np.ndarray, Y: np.ndarray) -> float:
        """Sum of d(x, y) over the entries, in double precision."""

    @abstractmethod
    def gradient(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Derivative of `value` in each entry of Y; 0 where it has none."""

    def sparse_below(self, nonnegative: bool) -> float:
        """Data with a smaller share of nonzeros are held by these alone, however they came; `nonnegative`: the factors
        are. See docs/speed.md for what was measured."""
        return 0.0

    def refuses(self, lowest: float, nonnegative: bool) -> str | None:
        """None, or why it cannot take data whose lowest entry is this, or factors that may be negative."""
        return None
