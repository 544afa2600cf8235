"""The rank-one oracle: `min u' Q v` over nonnegative unit vectors, with a bound that says how good the answer is; for
tensors `min <Q, x_1 o ... o x_d>`, one vector for each mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..checks import is_number
from ..data import as_data
from ..data.names import matrix_only
from ..data.tensor import SparseTensor
from ..data.units import unit_of
from ..data.validation import checked_data, checked_random_state
from ..problem import Factors, Problem, ratio
from ..problem.parts import diagonal_weight
from ..problem.symmetric import check_symmetric
from ..run import interrupts
from . import cvx
from .flattening import flattened, groupings, reach
from .forms import Pair, Point, Single, settle
from .matrices import Array, Residual, Target
from .moments import best_symmetric
from .power import climb, starts

GAP = 1e-4  # relative to the value, at which an answer counts as proved
STARTS = 20
ROUNDING = 1e-13  # of |Q|: a difference that is none


@dataclass(frozen=True, eq=False)
class Atom:
    """An answer to `min u' Q v`, and how good it is: no nonnegative unit vectors give less than `bound`.

    Attributes
    ----------
    vectors : tuple of ndarray
        One for each mode; of a matrix also `u` and `v`.
    value : float
        What they give.
    bound : float
        No vectors give less; minus infinity where nothing is known.
    status : str
        "closed": value and bound agree to the gap asked for; "open"; "not certified": too large for a bound.
    stage : str
        Where the bound comes from.

    Examples
    --------
    >>> import partwise as pw
    >>> atom = pw.oracles.rank_one([[-2.0, 0.5], [1.0, -1.0]])
    >>> atom.u.round(3), atom.v.round(3), round(atom.value, 6)
    (array([1., 0.]), array([1., 0.]), -2.0)
    >>> print(atom)
    value -2, none below -2 (closed, closed form)
    """

    vectors: tuple[np.ndarray, ...]  # one for each mode
    value: float
    bound: float  # minus infinity where nothing is known
    status: str  # "closed": they agree to the gap asked for; "open"; "not certified": too large for a bound
    stage: str  # where the bound comes from

    @property
    def u(self) -> np.ndarray:
        return self.vectors[0]

    @property
    def v(self) -> np.ndarray:
        """The second vector: of a matrix, the other one."""
        return self.vectors[1]

    @property
    def gap(self) -> float:
        """`(value - bound) / |value|`; infinite where a value of 0 leaves no measure."""
        return float(ratio(self.value - self.bound, abs(self.value)))

    def __str__(self):
        return f"value {self.value:.6g}, none below {self.bound:.6g} ({self.status}, {self.stage})"

    def scaled(self, factor: float) -> Atom:
        """The same atom of `factor` times the matrix or tensor."""
        return replace(self, value=factor * self.value, bound=factor * self.bound)


class Search:
    """One run of the chain: a point from below, a bound from above, until they meet."""

    def __init__(self, P: Array, form: Pair | Single, point: Point, gap: float):
        self.P, self.form, self.point, self.gap = P, form, point, gap
        self.bound, self.stage = np.inf, "none"
        self.rounding = ROUNDING * float(np.linalg.norm(P.entries))

    @property
    def closed(self) -> bool:
        return self.meets(self.bound)

    def meets(self, bound: float) -> bool:
        """Whether a bound agrees with the point: to the gap, or, where the value is 0, to rounding."""
        return bound - self.point.value <= self.gap * abs(self.point.value) + self.rounding

    def run(self) -> None:
        """Bounds, the cheapest first."""
        for name, bound in self.form.bounds(self.P.shape):
            before = self.bound
            self.bound = min(self.bound, bound(self.P, self.point, self.enough) + self.P.rounding)
            self.stage = name if self.bound < before else self.stage
            if self.closed:
                break

    def enough(self, bound: float, direction: np.ndarray | None = None) -> bool:
        """Told the best bound of a stage so far, and where its relaxation points to: there may be a better point."""
        if direction is not None and not self.meets(bound):
            direction = direction if direction.sum() > 0 else -direction
            vectors = (direction[:, None],) * 2
            if Point.near(self.P, vectors, self.form.shift).value > self.point.value:
                other = settle(self.P, self.form, climb(self.P, vectors, self.form.shift))
                self.point = max(self.point, other, key=lambda point: point.value)
        return self.meets(bound + self.P.rounding)


def best_atom(P: Target, symmetric: bool, rng, gap: float = GAP) -> Atom:
    """The atom that minimises `-u' P v`, certified where P is an `Array` of a size that can be."""
    if isinstance(P, Array) and (not P.entries.any() or (not symmetric and P.largest()[1] <= 0)):
        return vertex(P, gap)
    form = (Single if symmetric else Pair).of(P, rng)
    point = settle(P, form, climb(P, starts(P, STARTS, rng), form.shift))
    if not symmetric and point.value <= 0:  # no start leads anywhere: look at every entry
        place, largest = P.largest()
        if largest <= 0:
            return vertex(P, gap)
        there = tuple(np.eye(dim, 1, -k, dtype=P.dtype) for dim, k in zip(P.shape, place, strict=True))
        point = settle(P, form, climb(P, there, form.shift))
    if not isinstance(P, Array) or not form.bounds(P.shape):
        return Atom(point.vectors, -point.value, -np.inf, "not certified", "none")
    search = Search(P, form, point, gap)
    search.run()
    vectors, value = search.point
    status = "closed" if search.closed else "open"
    return Atom(vectors, -value, -float(max(search.bound, value)), status, search.stage)


def next_atom(problem: Problem, factors: Factors, rng, gap: float = GAP, certify: bool = True) -> Atom:
    """The best next part for least squares, certified where the size of X allows, and the model: where a diagonal does
    not count, atoms differ in curvature, and the slope alone bounds nothing."""
    symmetric, left = bool(problem.symmetric), Residual(problem.data, factors, diagonal_weight(problem.symmetric) > 0)
    return atom_of(left, symmetric, rng, gap, certify and left.diagonal)


def atom_of(P: Residual, symmetric: bool, rng, gap: float, certify: bool = True) -> Atom:
    """The atom that minimises `-<P, x_1 o ... o x_d>`; `certify`: with a bound, where P is small enough."""
    if len(P.shape) == 2:
        return best_atom(known(P, symmetric) if certify else P, symmetric, rng, gap)
    if symmetric and certify and P.small:
        u, value, bound, status, stage = best_symmetric(P.entries(), rng, gap, P.rounding)
        atom = Atom((u,) * len(P.shape), -value, -bound, status, stage)
        if status != "not certified":
            return atom
    else:
        atom = best_atom(P.double() if P.small else P, symmetric, rng, gap)
    return by_flattenings(atom, P, gap) if certify and P.small and atom.stage != "entries" else atom


def known(P: Residual, symmetric: bool) -> Target:
    """A matrix entry by entry, where its size allows a bound."""
    return P.array(symmetric) if P.small and (Single(0.0) if symmetric else Pair()).bounds(P.shape) else P


def by_flattenings(atom: Atom, P: Residual, gap: float) -> Atom:
    """With the least bound of the flattenings of a tensor. They are tried in the order of what their matrix problems
    reach from the atom, as long as the next can give less."""
    found, entries = list(groupings(P.shape)), P.entries()
    if not found:
        return atom
    reached = [reach(flattened(P, entries, *modes), atom.vectors, modes[1]) for modes in found]
    bound, stage = np.inf, "none"
    enough = gap * abs(atom.value) - atom.value + ROUNDING * float(np.linalg.norm(entries))
    for k in np.argsort(reached, kind="stable"):
        if bound <= max(enough, reached[k]):
            break
        flat = best_atom(flattened(P, entries, *found[k]), False, np.random.RandomState(0), gap)
        if -flat.bound < bound:
            bound, stage = -flat.bound, f"{flat.stage}, flattened"
    status = "closed" if bound <= enough else "open"
    return replace(atom, bound=-float(max(bound, -atom.value)), status=status, stage=stage)


def vertex(P: Target, gap: float) -> Atom:
    """Where no entry of P is positive the largest one is the answer, exactly: `|u|_1 |v|_1 >= 1`. Of a P that is too
    large to look at every entry it is known that none is positive."""
    place, largest = P.largest()
    vectors = tuple(np.eye(1, dim, k)[0] for dim, k in zip(P.shape, place, strict=True))
    bound = (largest if P.sees_all else max(largest, 0.0)) + P.rounding
    return Atom(vectors, -largest, -bound, "closed" if bound - largest <= gap * abs(largest) else "open", "entries")


def rank_one(
    Q: Any, symmetric: bool = False, *, method: str = "chain", gap: float = GAP, random_state: Any = 0
) -> Atom:
    """The nonnegative unit vectors with the least `u' Q v`, and a bound: none have less. A tensor has one for each
    mode, and `<Q, x_1 o ... o x_d>` is least.

    The problem is NP-hard. The answer comes from the projected power method from 20 starts; the bound from the cheapest
    of a closed-form dual, nuclear splitting and the doubly nonnegative relaxation that meets it (to `gap`, relative to
    the value), or the best of them. Tensors are bounded through the matrices they can be flattened into. See "How good
    is one more part?" in the documentation.

    Parameters
    ----------
    Q : array-like, SciPy sparse matrix or SparseTensor
        Any matrix or tensor, such as the gradient of a loss.
    symmetric : bool
        `min u' Q u` for a symmetric Q: all vectors are one.
    method : "chain", "power" or "cvxpy"
        "power" gives no bound; "cvxpy" takes that of the relaxation from cvxpy, which must be installed: a cross-check.
    gap : float
        When to stop: at `(value - bound) / |value| <= gap`.
    random_state : int, RandomState, Generator or None
        Of the starts.

    Returns
    -------
    Atom
        `vectors`, one for each mode (`u`, `v` of a matrix), `value`, `bound`, `status` ("closed", "open" or "not
        certified"), `gap` and `stage`.

    Examples
    --------
    >>> import partwise as pw
    >>> atom = pw.oracles.rank_one([[-3.0, -1.0], [2.0, -2.0]])
    >>> atom.status, bool(atom.bound <= atom.value)
    ('closed', True)
    """
    if not isinstance(symmetric, bool | np.bool_):
        raise ValueError(f"symmetric must be True or False, got {symmetric!r}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    if not is_number(gap) or gap < 0:
        raise ValueError(f"gap must be a number >= 0, got {gap!r}")
    data = as_data(negative(checked_data(Q, name="Q", any_order=True)))
    if symmetric:
        check_symmetric(data, "Q")
    data = data.scaled(unit_of(max(map(abs, data.extremes))))
    nothing = tuple(np.zeros((dim, 1), dtype=data.dtype) for dim in data.shape)
    with interrupts.stoppable(), data.working():
        rng = checked_random_state(random_state)
        return METHODS[method](Residual(data, nothing), symmetric, rng, gap).scaled(data.scale)


def negative(Q):
    """Minus a matrix or a tensor."""
    return replace(Q, values=-Q.values) if isinstance(Q, SparseTensor) else -Q


def by_power(P: Residual, symmetric: bool, rng, gap: float) -> Atom:
    """The point alone."""
    return atom_of(P, symmetric, rng, gap, certify=False)


def by_cvxpy(P: Residual, symmetric: bool, rng, gap: float) -> Atom:
    """The point of the chain with the bound of cvxpy."""
    if why := matrix_only("method='cvxpy'", len(P.shape)):
        raise ValueError(f"{why}: use method='chain'")
    matrix = known(P, symmetric)
    atom = best_atom(matrix, symmetric, rng, gap=np.inf)
    if not isinstance(matrix, Array) or atom.stage == "entries":
        return atom
    bound = -cvx.eigenvalue_bound((Single if symmetric else Pair).square(matrix))
    status = "closed" if atom.value - bound <= gap * abs(atom.value) else "open"
    return replace(atom, bound=min(bound, atom.value), status=status, stage="cvxpy")


METHODS = {"chain": atom_of, "power": by_power, "cvxpy": by_cvxpy}
