"""What the fits of one study share: the data, the loss, the structures and the words that `factorize` takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..checks import is_number
from ..data.names import Mode, checked_modes, listed, modes_of
from ..data.observed import Observed, observed
from ..data.units import exponent_of
from ..data.validation import checked_symmetric
from ..factorize import check_one_factor, factorize, stated_structures
from ..init import Given
from ..losses import Loss
from ..problem import Problem
from ..problem.weights import pose_observed
from ..registry import resolve
from ..result import Result
from ..run.checkpoint import identity_of
from ..structures import Structure

# stationarity of fits whose predictions are compared, under least squares and other losses: closer ones do as well
PATH_TOL, OTHER_PATH_TOL = 3e-3, 1e-2
OWN = (
    *("checkpoint", "resume", "progress", "random_state", "init", "n_init", "callbacks"),
    *("target", "ftol", "time_limit"),
)


@dataclass(frozen=True, eq=False)
class Setting:
    """A problem whose rank is open, and how it is to be fitted."""

    given: Observed
    loss: Loss
    structures: tuple[Structure, ...]  # as stated
    symmetric: bool | str = False
    modes: tuple[Mode, ...] = ()
    words: dict[str, Any] = field(default_factory=dict)  # what else `factorize` is told: solver, max_iter, n_threads
    exponent: int = 0  # 2**this is near the largest entry of X: held-out losses are kept in this unit

    @classmethod
    def of(cls, X, loss, structures: tuple, counts: dict[str, Any], words: dict[str, Any]) -> Setting:
        """From what the user says: `structures` is structure_W, structure_H and the list of them, `counts` what
        entries count."""
        if own := [name for name in words if name in OWN]:
            raise TypeError(f"{listed(own)} cannot be stated here: it is not the same for all fits")
        given = observed(X, **counts)
        stated = stated_structures(len(given.data.shape), *structures)
        modes = checked_modes(words.pop("modes", None), given.data.shape) or modes_of(X)
        symmetric = checked_symmetric(words.pop("symmetric", False))
        check_one_factor(symmetric, structures[1])
        exponent = exponent_of(max(map(abs, given.data.extremes)))
        return cls(given, resolve("loss", loss), stated, symmetric, modes, words, exponent)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.given.data.shape

    def of_data(self, given: Observed) -> Setting:
        """The same of other data; what stands along the modes is not known where there is more or less of it."""
        return replace(self, given=given, modes=self.modes if given.data.shape == self.shape else ())

    def factorize(self, rank: int, seed: int, init: Any = "random", **words) -> Result:
        """A fit."""
        return factorize(
            self.given,
            rank,
            loss=self.loss,
            structures=self.structures,
            symmetric=self.symmetric,
            modes=self.modes,
            init=init,
            progress=False,
            random_state=seed,
            **{**self.words, **words},
        )

    def fit(self, rank: int, seed: int, init: Any = "random", **words) -> Result:
        """The same in silence: what one of many fits has to say is for whoever puts them together."""
        with silence():
            return self.factorize(rank, seed, init, **words)

    def path_fit(self, rank: int, seed: int, start: Sequence[np.ndarray] | None, **words) -> Result:
        """The same for a prediction: from tall factors, or where there are none as `factorize` starts. A fit cut short
        by Ctrl-C predicts nothing."""
        init = None if start is None else Given(tuple(start))
        tol = self.tol_of(PATH_TOL if self.loss.quadratic else OTHER_PATH_TOL)
        found = self.fit(rank, seed, init, tol=tol, **{"normalize": None, "sort": False, **words})
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return found

    def tol_of(self, enough: float) -> float:
        """The stationarity of one of many fits: what is enough for it, or what the user says, if that is more."""
        said = self.words.get("tol", enough)
        return max(said, enough) if is_number(said) else said

    def problem(self, rank: int) -> Problem:
        """As `factorize` poses it."""
        with silence():
            return pose_observed(self.symmetric, self.given, self.loss, self.structures, rank).normalized()

    def identity(self, rank: int, **settings: Any) -> dict[str, Any]:
        """What must be the same for work on it to go on: see `partwise.run.checkpoint`."""
        words = {name: repr(value) for name, value in self.words.items() if name != "n_threads"}
        return identity_of(self.problem(rank), **words, **settings)


@contextmanager
def silence() -> Iterator[None]:
    """A context without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def seeds(root: int, *numbers: int, count: int = 1) -> list[int]:
    """Seeds of the fits that these numbers name: the same ones, whatever else is done."""
    return np.random.SeedSequence([root, *numbers]).generate_state(count).tolist()
