"""The contract of an initialisation, and the one that takes what the user gives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.names import factor_names, listed, matrix_only
from ..problem import Factors, Problem


class Init(ABC):
    """A start: a frozen dataclass; called with the (normalized) problem and a random state, it returns feasible factors
    in its units.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, partwise as pw
    >>> @dataclass(frozen=True)
    ... class Flat(pw.init.Init):
    ...     name = "flat"
    ...     def raw(self, problem, rng):
    ...         return tuple(np.ones((dim, problem.rank)) for dim in problem.data.shape)
    ...
    >>> pw.factorize([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], 1, init=Flat()).converged
    True
    """

    seeded = False  # another random state gives another start
    informed = True  # knows something of X
    given = False  # its numbers are the user's, and are to be taken as they are
    limited = False  # needs rank <= min(shape)
    nonnegative = False  # needs nonnegative data
    by_entries = False  # needs structures that act entry by entry
    for_l1 = False  # made for the L1 loss
    matrix_only = False  # needs X with two modes
    complete = False  # needs X without missing entries, all of which count alike
    name: str

    @abstractmethod
    def raw(self, problem: Problem, rng: np.random.RandomState) -> Factors:
        """Factors that need not satisfy the structures yet."""

    def __call__(self, problem: Problem, rng: np.random.RandomState) -> Factors:
        if self.matrix_only and (why := matrix_only(f"init='{self.name}'", len(problem.structures))):
            raise ValueError(f"{why}: use init='greedy' or 'random'")
        if self.complete and not problem.data.complete:
            raise ValueError(
                f"init='{self.name}' needs X without missing entries, in which all count alike: use init='random'"
            )
        if self.limited and problem.rank > min(problem.data.shape):
            raise ValueError(
                f"init = '{self.name}' can only be used when n_components <= min(n_samples, n_features): got rank "
                f"{problem.rank} for X of shape {problem.data.shape}. Use init='random'."
            )
        if self.nonnegative and problem.data.extremes[0] < 0:
            raise ValueError(
                f"Negative values in data passed to NMF initialization: init='{self.name}' needs nonnegative X. "
                "Use init='random'."
            )
        tied = [str(structure) for structure in problem.structures if structure.elementwise is None]
        if self.by_entries and tied:
            raise ValueError(
                f"init='{self.name}' needs structures that act entry by entry, got {tied[0]}. Use init='random'."
            )
        factors = problem.with_norms(self.checked(self.raw(problem, rng), problem))
        if not problem.data.complete:  # nothing is known of these rows, and nothing is claimed
            silent = map(problem.data.unobserved, range(len(factors)))
            factors = [np.where(rows[:, None], A.dtype.type(0), A) for rows, A in zip(silent, factors, strict=True)]
        feasible = (structure.nearest(A, 0.0) for structure, A in zip(problem.structures, factors, strict=True))
        return problem.tied(tuple(problem.data.spread(A, mode) for mode, A in enumerate(feasible)))

    def checked(self, made: Factors, problem: Problem) -> Factors:
        """What `raw` returned, which may be anything, in the type of X."""
        needed = [(dim, problem.rank) for dim in problem.data.shape]
        shapes = [np.shape(A) for A in made] if isinstance(made, Sequence) else type(made).__name__
        if shapes != needed:
            told = f"factors of shapes {listed(map(str, shapes))}" if isinstance(shapes, list) else shapes
            raise ValueError(
                f"init='{self.name}' made {told}; for X of shape {problem.data.shape} and rank {problem.rank} "
                f"it has to make a tuple of factors of shapes {listed(map(str, needed))}"
            )
        kind = problem.data.dtype
        return [A.astype(kind, copy=False) if hasattr(A, "astype") else np.array(A, kind) for A in made]


@dataclass(frozen=True, eq=False)
class Given(Init):
    """Factors in the user's units, tall; None where the user gave none (a fixed factor needs none).

    Parameters
    ----------
    factors : tuple of ndarray or None
        One for each mode, (dim, rank).

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> W, H = np.ones((20, 1)), np.ones((1, 12))
    >>> start = pw.init.Given.public(W, H)  # or init=(W, H)
    >>> pw.factorize(X, 1, init=start).converged
    True
    """

    factors: tuple[np.ndarray | None, ...]
    name = "custom"
    given = True

    @classmethod
    def public(cls, *factors) -> "Given":
        """From W (n_samples, rank) and H (rank, n_features), or from the factors of a tensor, each (dim, rank)."""
        names = factor_names(len(factors))
        arrays = (as_numbers(A, name) for A, name in zip(factors, names, strict=True))
        return cls(tuple(A.T if A is not None and name == "H" else A for A, name in zip(arrays, names, strict=True)))

    def raw(self, problem, rng):
        names = factor_names(len(problem.structures))
        if len(self.factors) != len(names):
            raise ValueError(f"the start has {len(self.factors)} factors, and X has {len(names)} modes: give as many")
        given = []
        for mode, (A, dim) in enumerate(zip(self.factors, problem.data.shape, strict=True)):
            if A is None and mode not in problem.modes:
                A = np.zeros((dim, problem.rank))  # noqa: PLW2901  # the structure, or the other factor, says it all
            check_given(A, (dim, problem.rank), names[mode], problem.structures[mode].nonnegative)
            given.append(np.array(A, dtype=problem.data.dtype))
        return problem.from_user(tuple(given))


def as_numbers(A, name: str) -> np.ndarray | None:
    """A given factor as an array of real numbers; None where there is none."""
    try:
        array = None if A is None else np.asarray(A)
    except ValueError:  # rows of different lengths
        array = np.array("")
    if array is not None and array.dtype.kind not in "biuf":
        raise ValueError(f"the initial {name} must be a matrix of real numbers, as a dense array")
    return array


def check_given(A: np.ndarray | None, shape: tuple[int, int], name: str, nonnegative: bool) -> None:
    if A is None:
        raise ValueError(
            f"the initial {name} is missing: give all factors; only one that is Fixed as a whole needs none"
        )
    if A.shape != shape:
        expected, got = (s[::-1] if name == "H" else s for s in (shape, A.shape))
        raise ValueError(f"the initial {name} has shape {got}, but this X and rank need {expected}")
    if not np.all(np.isfinite(A)):
        raise ValueError(f"the initial {name} contains NaN or infinity: give finite numbers")
    if nonnegative and A.min() < 0:
        raise ValueError(
            f"the initial {name} has negative entries, but {name} is to be nonnegative: clip it with "
            f"np.maximum({name}, 0), or allow signs with structures.Free() for {name}"
        )
