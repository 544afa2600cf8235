"""The contract of a structure g(A) of one factor, and the scaling of penalties.

A structure is a frozen dataclass. Penalties are stated without hidden factors: L1 is `weight * sum |a|`, L2 is
`weight / 2 * sum a^2`. A user gives arrays in the public orientation (W as samples x parts, H as parts x
features); `bind` turns them tall, `(dim, rank)`, and checks them, and a `Problem` holds bound structures only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .elementwise import Elementwise


class Structure(ABC):
    fixed = False  # the set is a single point: nothing to solve for
    nonnegative = False  # every feasible A is >= 0
    scale_free = False  # a cone without penalty: columns may be rescaled
    ridge = 0.0  # weight of `1/2 |A|^2`, the smooth part, which the normal equations absorb
    interchangeable = True  # components are treated alike: they may be reordered
    magnitude = 0.0  # the largest finite bound: it sets the unit of the factor; 0 where there is none
    rowwise = False  # says the same of every row, so it has a meaning for new rows

    @property
    def elementwise(self) -> Elementwise | None:
        """Bounds and penalties entry by entry, if that is all there is to it."""
        return None

    @abstractmethod
    def bind(self, shape: tuple[int, int], transposed: bool, name: str) -> Structure:
        """The structure of a tall factor of this shape; `name` is what messages call the factor."""

    @abstractmethod
    def rescaled(self, exponent: int, objective_exponent: float) -> Structure:
        """The structure of `A / 2**exponent` in an objective divided by `2**objective_exponent`."""

    @abstractmethod
    def value(self, A: np.ndarray) -> float:
        """The penalty; 0 for a set."""

    @abstractmethod
    def prox(self, A: np.ndarray, step: float) -> np.ndarray:
        """`argmin_B g(B) + |B - A|^2 / (2 step)`, a new array; for step 0 the projection onto the set."""

    @abstractmethod
    def violation(self, A: np.ndarray) -> float:
        """How far A is outside the set: the largest amount by which an entry breaks it."""

    @abstractmethod
    def gains(self, A: np.ndarray, G: np.ndarray, d: np.ndarray) -> np.ndarray:
        """How much each column of A could still gain by itself, (rank,): the largest decrease of
        `<G, B - A> + sum d/2 (B - A)^2 + g(B)` from A, column by column; 0 where A is stationary. G is the gradient of
        the loss and the ridge, d the second derivatives, (dim, rank) or one row for all."""

    def __and__(self, other: Structure) -> Structure:
        from .algebra import All  # noqa: PLC0415  # algebra is built on this class

        return All((self, other)) if isinstance(other, Structure) else NotImplemented
