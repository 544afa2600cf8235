"""The contract of a structure g(A) of one factor, and the scaling of penalties.

A structure is a frozen dataclass. Penalties are stated without hidden factors: L1 is `weight * sum |a|`, L2 is
`weight / 2 * sum a^2`. A user gives arrays in the public orientation (W as samples x parts, H as parts x
features); `bind` turns them tall, `(dim, rank)`, and checks them, and a `Problem` holds bound structures only.
In a tall factor an item (a sample of W, a feature of H) is a row, and a component is a column.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Self

    from .elementwise import Elementwise

ROUNDING = 32  # units in the last place of the largest entry: the error allowed for a vector of so many entries


class Structure(ABC):
    """What is asked of a factor: sets that it lies in, and penalties. Combine structures with `&`.

    A structure implies nothing beyond its definition: `Sparse(2)` allows negative entries, `NonNegative() & Sparse(2)`
    does not. For one of your own see `Projection`.

    Examples
    --------
    >>> import partwise as pw
    >>> shares = pw.structures.Simplex() & pw.structures.Sparse(2)
    >>> isinstance(shares, pw.structures.Structure)
    True
    >>> shares
    Simplex(per='item') & Sparse(2, per='item')
    """

    kernels: tuple[str, ...] = ("numpy",)  # that it calls in a run; "numpy": functions of NumPy's themselves
    fixed = False  # the set is a single point: nothing to solve for
    nonnegative = False  # every feasible A is >= 0
    scale_free = False  # a cone without penalty: columns may be rescaled
    ridge = 0.0  # weight of `1/2 |A|^2`, the smooth part, which the normal equations absorb
    interchangeable = True  # components are treated alike: they may be reordered
    # bounds on the largest entry of any feasible A, which set the unit of the factor
    magnitudes: tuple[float, float] = (0.0, np.inf)
    applies_to_new_rows = False  # treats all rows alike, so it also makes sense for rows to come
    separable_rows = False  # g is a sum over rows
    columnwise = False  # g is a sum over components, the same for each
    fixes_scale = False  # every component has a given size: the other factor carries the scale
    convex = True
    exact = True  # `prox` gives the nearest point; False: an approximation, which only `settle` brings into the set
    limits_only = False  # the set is all A, or all A >= 0 where `nonnegative`, within the `limits` on nonzeros
    stage = 1  # the order of alternating projections: lower first, bounds of entries 0

    @property
    def cone(self) -> bool:
        """Whether t A is feasible with A for every t > 0, at no cost."""
        return self.scale_free

    @property
    def replaceable(self) -> bool:
        """Whether a component may be re-initialised with any vector."""
        return self.interchangeable

    def scalable(self, rank: int) -> np.ndarray:
        """Which components may be multiplied by any positive number, (rank,)."""
        return np.full(rank, self.scale_free)

    @property
    def elementwise(self) -> Elementwise | None:
        """The bounds and penalties, if the structure acts entry by entry; else None."""
        return None

    @classmethod
    def together(cls, entries: Elementwise, parts: list[Structure]) -> Structure | None:
        """One structure of all `parts` and `entries`, with the exact projection, if there is a closed form."""
        return None

    @abstractmethod
    def bind(self, shape: tuple[int, int], transposed: bool, name: str) -> Structure:
        """The structure for a tall factor of this shape; messages call the factor `name`."""

    def check(self, shape: tuple[int, int], name: str) -> None:  # noqa: B027  # most have nothing to check
        """Raise an error if no factor of this shape satisfies the bound structure."""

    @abstractmethod
    def rescaled(self, exponent: int, objective_exponent: float) -> Structure:
        """The structure of `A / 2**exponent` in an objective divided by `2**objective_exponent`."""

    @abstractmethod
    def value(self, A: np.ndarray) -> float:
        """The penalty; 0 for a set."""

    @abstractmethod
    def prox(self, A: np.ndarray, step: float) -> np.ndarray:
        """`argmin_B g(B) + |B - A|^2 / (2 step)`, a new array; for step 0 the projection onto the set."""

    def nearest(self, A: np.ndarray, step: float) -> np.ndarray:
        """`prox`, but always a point of the set."""
        return self.prox(A, step) if self.exact else self.settle(self.prox(A, step))

    def settle(self, A: np.ndarray) -> np.ndarray:
        """A point of the set near A, also where `prox` is an approximation: results consist of such points."""
        return self.prox(A, 0.0)

    def within(self, A: np.ndarray, places: np.ndarray) -> np.ndarray:
        """A point of the set near A that is 0 outside `places`, a mask, where the set has such points."""
        return self.settle(np.where(places, A, A.dtype.type(0)))

    def places(self, A: np.ndarray) -> np.ndarray:
        """A mask of where A may be nonzero: its largest entries, where the set limits their number."""
        return np.ones(A.shape, dtype=bool)

    def limits(self, rank: int) -> list[tuple[int, list[int], int]]:
        """Upper limits on nonzeros, `(axis, components, count)`: for axis 1 among these components of each item, for
        axis 0 in each of these components."""
        return []

    def fewest(self, shape: tuple[int, int]) -> tuple[float, float | np.ndarray]:
        """The fewest nonzeros that each item and each component needs."""
        return 0, 0

    def sums(self, shape: tuple[int, int]) -> dict[str, float]:
        """The sum of all entries, and of their squares, where it is the same for every factor of the set."""
        return {}

    def violation(self, A: np.ndarray) -> float:
        """How far A is outside the set: the largest difference of an entry from the nearest known point, 0 where that
        is rounding. Zeros are exact: an entry that has to be zero counts, however small."""
        return max(beyond_rounding(np.max(np.abs(A - self.settle(A)), initial=0), A), self.surplus(A))

    def surplus(self, A: np.ndarray) -> float:
        """The largest entry where there has to be a zero."""
        return float(np.max(np.abs(A), where=~self.places(A), initial=0))

    def gains(self, A: np.ndarray, G: np.ndarray, d: np.ndarray) -> np.ndarray:
        """How much each column of A could still gain by itself, (rank,): the largest decrease of
        `<G, B - A> + sum d/2 (B - A)^2 + g(B)` from A, column by column; 0 where A is stationary. G is the gradient of
        the loss and the ridge, d the second derivatives, (dim, rank) or one row for all. Where the structure couples
        entries: the gain of all of them together, (1,), with the largest d for all."""
        B, curvature = self.improved(A, G, d)
        gain = self.value(A) - self.value(B) + model_gains(A, B, G, curvature).sum()
        return np.array([max(gain, 0.0)])

    def row_gains(self, A: np.ndarray, G: np.ndarray, d: np.ndarray) -> np.ndarray:
        """The same for each row, (dim,), where `separable_rows` holds."""
        B, curvature = self.improved(A, G, d)
        return np.maximum(self.row_values(A) - self.row_values(B) + model_gains(A, B, G, curvature), 0.0)

    def row_values(self, A: np.ndarray) -> np.ndarray:
        """The penalty of each row, where `separable_rows` holds."""
        return np.zeros(len(A))

    def improved(self, A: np.ndarray, G: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, float]:
        """A after one projected gradient step, and the curvature that set the length of the step."""
        curvature = float(np.max(d, initial=0))
        if curvature == 0:
            return A, 0.0
        target = A - G / A.dtype.type(curvature)
        return self.nearest(target, 1 / curvature), curvature

    @property
    def without_norm(self) -> Structure | None:
        """The cone that is left without the norms of the components, where these have one."""
        return None

    def face(self, A: np.ndarray) -> Elementwise | None:
        """Bounds within which every factor is in the set and zero where A is; None where there are none."""
        return None

    def columns(self, indices: list[int]) -> Structure:
        """The structure restricted to some components, where it is `columnwise`."""
        return self

    def altered(self, **fields) -> Self:
        """A copy with other values in some fields."""
        other = copy.copy(self)
        for name, value in fields.items():
            object.__setattr__(other, name, value)
        return other

    def __and__(self, other: Structure) -> Structure:
        from .intersection import Intersection  # noqa: PLC0415  # it is built on this class

        return Intersection((self, other)) if isinstance(other, Structure) else NotImplemented


def beyond_rounding(off: float, A: np.ndarray) -> float:
    """`off`, or 0 where that is rounding in A, which grows with the root of the length of a sum."""
    units = ROUNDING * max(1.0, max(A.shape) / ROUNDING) ** 0.5
    return float(off) if off > units * np.finfo(A.dtype).eps * np.max(np.abs(A), initial=0) else 0.0


def model_gains(A, B, G, curvature) -> np.ndarray:
    """The decrease of `<G, B - A> + curvature/2 |B - A|^2`, row by row."""
    step = B.astype(np.float64) - A
    return -np.einsum("ij,ij->i", step, G + curvature / 2 * step)
