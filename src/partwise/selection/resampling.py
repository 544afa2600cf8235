"""Ways to change the data from run to run: do the parts come again on other data of the same kind?

Each is an object in the table `RESAMPLES`; a user's own is a function `(X, rng) -> X`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..data.base import Data
from ..data.names import factor_names
from ..data.observed import Observed, observed
from ..errors import IncompatibleError, UnknownNameError, warn
from ..fingerprint import fingerprint
from .setting import Setting

NOISE = 0.03  # of an entry, up or down, at most
MOST_COUNT = 2.0**53  # up to here whole numbers are numbers


class Resample(ABC):
    """How the data of a run are drawn, and what that is called in sentences. The same generator gives the same."""

    name: str | None
    runs: str  # what parts came again in, "20 of 20 ..."
    between: str  # where parts differ
    draws: ClassVar[int] = 1  # runs that share one draw, each with its turn

    def check(self, setting: Setting, rank: int) -> None:  # noqa: B027  # most have nothing to check
        """Raise an error where it does not go with the data."""

    @abstractmethod
    def draw(self, setting: Setting, rng: np.random.Generator, turn: int) -> Observed:
        """The data of a run."""

    def rows(self, setting: Setting, rng: np.random.Generator, turn: int) -> np.ndarray | None:
        """Which row of X each row of them is; None: not known."""
        return np.arange(setting.shape[0])

    @property
    def identity(self) -> str:
        """A text that tells it from others."""
        return str(self.name)


class Starts(Resample):
    """X as it is: only the starts differ."""

    name, runs, between = None, "starts", "start to start"

    def draw(self, setting, rng, turn):
        return setting.given


class SomeRows(Resample):
    """Some rows of X, with everything that belongs to them."""

    def check(self, setting, rank):
        check_rows_may_change(self, setting)

    def draw(self, setting, rng, turn):
        return setting.given.select(0, self.rows(setting, rng, turn))


class Rows(SomeRows):
    """As many rows of X as there are, drawn with replacement from those of which something is observed (the bootstrap,
    Efron 1979)."""

    name, runs, between = "rows", "samples of the rows", "sample to sample"

    def rows(self, setting, rng, turn):
        there = observed_rows(setting.given)
        return there[np.sort(rng.integers(len(there), size=setting.shape[0]))]


class Halves(SomeRows):
    """Two disjoint random halves of the rows of which something is observed, a run each."""

    name, runs, between, draws = "halves", "halves of the rows", "half to half", 2

    def check(self, setting, rank):
        super().check(setting, rank)
        n_rows = len(observed_rows(setting.given))
        if n_rows < 2:
            raise ValueError(
                f"resample='halves' needs two rows of X at least, and something is observed in {n_rows}: use "
                "resample=None, 'noise' or 'counts'"
            )
        if n_rows // 2 < rank:
            warn(
                f"halves of the {n_rows} rows of X are {n_rows // 2} and {n_rows - n_rows // 2} rows, too few to tell "
                f"{rank} parts apart: use resample=None, 'rows' or 'noise'"
            )

    def rows(self, setting, rng, turn):
        return np.sort(np.array_split(rng.permutation(observed_rows(setting.given)), 2)[turn])


class Counts(Resample):
    """Poisson draws with the entries of X as their means (the parametric bootstrap)."""

    name, runs, between = "counts", "sets of counts drawn anew", "draw to draw"

    def check(self, setting, rank):
        values, weights = setting.given.data.listed_pair()
        values = values[weights > 0]
        if not np.all((values >= 0) & (values == np.rint(values)) & (values < MOST_COUNT)):
            raise ValueError(
                "resample='counts' redraws counts, and X has entries that are not counts: whole numbers from 0 to 2^53 "
                "are needed. Use resample='rows', or 'noise', which changes entries by up to 3%."
            )

    def draw(self, setting, rng, turn):
        return with_values(setting, rng.poisson)


class Noise(Resample):
    """Entries times uniform noise of up to 3%, which keeps zeros (Alexandrov and Vesselinov 2014)."""

    name, runs, between = "noise", "copies with noise of 3%", "copy to copy"

    def draw(self, setting, rng, turn):
        return with_values(setting, lambda values: values * rng.uniform(1 - NOISE, 1 + NOISE, len(values)))


@dataclass(frozen=True)
class Own(Resample):
    """A function of the user's, `(X, rng) -> X`; which rows of X it returns is not known. What is said of the entries
    of X is said of those of what it returns, too."""

    function: Callable[[Any, np.random.Generator], Any]
    X: Any = None
    counts: dict[str, Any] = field(default_factory=dict)

    runs, between = "resamples", "resample to resample"

    @property
    def name(self):
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def identity(self):
        return f"{self.name} {fingerprint(self.function)}"

    def draw(self, setting, rng, turn):
        drawn, shape = observed(self.function(self.X, rng), **self.counts), setting.shape
        if drawn.data.shape[1:] != shape[1:]:
            raise ValueError(
                f"resample={self.name} returned data of shape {drawn.data.shape}, and X has shape {shape}: only the "
                "number of rows may differ"
            )
        return drawn

    def rows(self, setting, rng, turn):
        return None


RESAMPLES: dict[str | None, Resample] = {kind.name: kind for kind in (Starts(), Rows(), Halves(), Counts(), Noise())}


def resample_of(spec, X, counts: dict[str, Any]) -> Resample:
    """What the user asks for: a name, None, or a function."""
    if callable(spec):
        return Own(spec, X, counts)
    if not isinstance(spec, str | None) or spec not in RESAMPLES:
        known = ", ".join(repr(name) for name in RESAMPLES if name)
        raise UnknownNameError(f"resample must be None, {known} or a function (X, rng) -> X; got {spec!r}")
    return RESAMPLES[spec]


def called(name: str | None) -> Resample:
    """The same by its name alone, for sentences."""
    return RESAMPLES.get(name) or Own(lambda X, rng: X)


# -- helpers -----------------------------------------------------------------------------------------


def observed_rows(given: Observed) -> np.ndarray:
    return np.flatnonzero(~given.unobserved(0))


def with_values(setting: Setting, change: Callable[[np.ndarray], np.ndarray]) -> Observed:
    """The data with other numbers in the places that are listed; where X is symmetric, so they are."""
    data = setting.given.data
    values, _ = data.listed_pair()
    first, own = first_places(data) if setting.symmetric else (slice(None), slice(None))
    changed = data.with_values(change(values[first])[own].astype(values.dtype))
    return setting.given._replace(data=changed)


def first_places(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Listed places with the same indices in any order are one: where each of these is first listed, and which of them
    each listed place is."""
    order, dim = len(data.shape), data.shape[0]
    numbers = np.arange(dim, dtype=np.float64)
    indices = [data.along([numbers if m == mode else None for m in range(order)]) for mode in range(order)]
    places = np.ravel_multi_index(tuple(np.sort(indices, axis=0).astype(np.int64)), data.shape)
    _, first, own = np.unique(places, return_index=True, return_inverse=True)
    return first, own.ravel()


def check_rows_may_change(resample: Resample, setting: Setting) -> None:
    """Whether what is asked of the factors makes sense for other rows of X than those seen."""
    if setting.symmetric:
        raise IncompatibleError(
            f"resample={resample.name!r} draws rows of X, and with symmetric={setting.symmetric!r} rows and columns "
            "are the same: use resample=None, 'noise' or 'counts'"
        )
    structure = setting.structures[0]
    if not structure.applies_to_new_rows:
        factor = factor_names(len(setting.shape))[0]
        raise IncompatibleError(
            f"resample={resample.name!r} draws rows of X, and the structure of {factor}, {structure}, speaks of the "
            "rows as they are: use resample=None, 'noise' or 'counts'"
        )
