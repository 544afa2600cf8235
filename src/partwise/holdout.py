"""Hold-out: hide some of the observed entries, fit the others, and see how well the model predicts the hidden ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .checks import is_number
from .data.foreign import kruskal_factors
from .data.hiding import Countable, Grid, countable, entries_at, without
from .data.names import Mode, factor_names, listed, modes_of
from .data.observed import Observed, is_among, listing, merged, observed
from .data.rows import BLOCK
from .data.units import exponent_of, times_power
from .data.validation import checked_random_state
from .errors import warn
from .factorize import factorize
from .kernels import threads
from .losses import Frobenius, Loss
from .losses.expansions import ratio
from .problem.problem import CONSTANT, Factors
from .problem.weights import mean_of
from .registry import resolve
from .result import Result
from .result.result import MOST_ENTRIES

MOST_HIDDEN = 5_000_000  # entries: enough for any score, and listed in little memory
MOST_SPARED = 0.9  # of the entries drawn: a warning says so where fewer can be hidden
KEPT = 1  # observations of each row and column that are never hidden
RUNS = 10  # along a mode, at least, where it is that long: blocks are cells of a grid of runs
MOST_CELLS = 1 << 20  # of that grid


@dataclass(frozen=True)
class Score:
    """How well a model predicts hidden entries, in the measure of a loss: means over the entries, by their weights."""

    value: float  # the mean loss of an entry
    null: float  # that of the null model: 0 for least squares and L1, else the mean of the entries that are not hidden
    error: float  # the root mean square error for least squares, the mean absolute error for L1, else sqrt(2 value)
    relative: float  # the error over that of the null model, as `Result.relative_error` is of a fit
    loss: Loss
    n_hidden: int
    unreached: int = 0  # positive entries with a model of 0, where the loss is infinite: it is counted as in a fit

    @property
    def explained(self) -> float:
        """`1 - value / null`: 1 where all is predicted, 0 where the null model does as well, below 0 where it does
        better; as `Result.explained` is of a fit."""
        return 1 - self.relative ** (1 / self.loss.error_power)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        told = (
            f"{self.loss} = {self.value:.4g} an entry over {self.n_hidden} hidden entries, the null model "
            f"{self.null:.4g}: {self.explained:.1%} of {self.loss.explains} explained"
        )
        if not self.unreached:
            return told
        entries = "1 positive entry has" if self.unreached == 1 else f"{self.unreached} positive entries have"
        return f"{told}; {entries} a model of 0, where this loss is infinite"


@dataclass(frozen=True, eq=False, repr=False)
class Holdout:
    """Data some of whose entries are hidden; `partwise.holdout` makes one.

    Attributes
    ----------
    left : Observed
        The data without the hidden entries.
    places : ndarray of int
        Where hidden entries are, in order, counted through X as an array, the last mode fastest.
    values : ndarray
        The entries of X there.
    weights : ndarray
        What they count, up to a factor that all share.
    share : float
        The share of the observed entries that is hidden.
    modes : tuple of Mode
        Names and labels of the modes of X, where they are known.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(40, 30, 3, noise=0.1, random_state=0).X
    >>> held = pw.holdout(X, share=0.1)
    >>> held.n_hidden, held.mask.shape
    (120, (40, 30))
    >>> held.score(held.fit(3)).explained > 0.9
    True
    """

    left: Observed  # the data without these entries
    places: np.ndarray  # of the hidden entries, in order, counted through X as an array, the last mode fastest
    values: np.ndarray  # of X there
    weights: np.ndarray  # what they count, up to a factor that all share
    share: float  # of the observed entries that is hidden
    modes: tuple[Mode, ...] = field(default=())

    @property
    def shape(self) -> tuple[int, ...]:
        """Of X."""
        return self.left.data.shape

    @property
    def n_hidden(self) -> int:
        """How many entries are hidden."""
        return len(self.places)

    @property
    def hidden(self) -> tuple[np.ndarray, ...]:
        """Where the hidden entries are: one array of indices for each mode, as `numpy.nonzero` gives them."""
        return np.unravel_index(self.places, self.shape)

    @property
    def mask(self) -> np.ndarray:
        """False where an entry is hidden, True everywhere else, as an array of the shape of X."""
        if math.prod(self.shape) > MOST_ENTRIES:
            raise ValueError(f"a mask of shape {self.shape} has too many entries: see hidden for the places of the few")
        mask = np.ones(self.shape, bool)
        mask[self.hidden] = False
        return mask

    def fit(self, rank: int, **settings: Any) -> Result:
        """`factorize` what is left, with any settings of that but `missing`, `mask` and `weights`, which are those of
        this object.

        Examples
        --------
        >>> import partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 3, noise=0.1, random_state=0).X
        >>> pw.holdout(X).fit(3).n_missing
        120
        """
        if said := [name for name in ("missing", "mask", "weights") if name in settings]:
            raise ValueError(f"fit has {listed(said)} from pw.holdout: state it there, and leave it out here")
        return factorize(self.left, rank, **{"modes": self.modes, **settings})

    def predict(self, model: Any) -> np.ndarray:
        """What a model says of the hidden entries, (n_hidden,), in O(n_hidden rank).

        `model` is a Result, an estimator that was fitted, or factors: (W, H), or those of a tensor, each (dim, rank).

        Examples
        --------
        >>> import numpy as np, partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 3, noise=0.1, random_state=0).X
        >>> held = pw.holdout(X)
        >>> predicted = held.predict(held.fit(3))
        >>> bool(np.corrcoef(predicted, X[held.hidden])[0, 1] > 0.9)
        True
        """
        return model_at(self.places, factors_of(model, self.shape))

    def score(self, model: Any, loss: Any = None) -> Score:
        """The loss of the hidden entries under a model.

        Parameters
        ----------
        model : Result, fitted estimator, factors, or array of shape (n_hidden,) or that of X
            As for `predict`, or predictions as that returns them, of any model, or such a model of all entries.
        loss : str, number or Loss, optional
            As for `factorize`. None: that of the Result, or least squares where there is none. Where fits estimate a
            parameter of their own, as the Huber loss does its delta, state one loss to compare them by.

        Examples
        --------
        >>> import partwise as pw
        >>> X = pw.datasets.make_parts(40, 30, 3, noise=0.1, random_state=0).X
        >>> held = pw.holdout(X)
        >>> few, enough = (held.score(held.fit(rank)) for rank in (1, 3))
        >>> few.value > enough.value, enough.n_hidden
        (True, 120)
        """
        model = getattr(model, "result_", model)
        loss = resolve("loss", loss) if loss is not None else getattr(model, "loss", Frobenius())
        predicted = self.checked(model) if isinstance(model, np.ndarray) else self.predict(model)
        if why := loss.refuses(float(self.values.min()), True):
            raise ValueError(f"{why}.")
        if predicted.min() < 0 and loss.refuses(1.0, False):
            raise ValueError(
                f"{loss} takes predictions >= 0, and the smallest is {predicted.min():g}: set those below 0 to a small "
                "positive number, or score by another loss, such as loss='frobenius'"
            )
        missed = np.count_nonzero((predicted <= 0) & (self.values > 0)) if loss.infinite_at_zero else 0
        return Score(*self.measured(predicted, loss), loss, self.n_hidden, int(missed))

    def measured(self, predicted: np.ndarray, loss: Loss) -> tuple[float, float, float, float]:
        """The numbers of a score, computed in units where the largest hidden entry is near 1."""
        exponent, total = exponent_of(float(np.abs(self.values).max())), float(self.weights.sum())
        own, power, data = loss.in_units(exponent), loss.error_power, loss.held(self.data, True).scaled(2.0**exponent)
        X = np.ldexp(self.values, -exponent)

        def mean(Y: np.ndarray) -> float:
            return sum_of_losses(own, X, Y, self.weights) / total

        def error(value: float) -> float:
            return (value / power) ** power

        value = mean(np.ldexp(predicted, -exponent))
        null = mean(np.full_like(X, own.null(math.ldexp(self.mean, -exponent))))
        size = own.size(data) / total**power
        if error(null) <= CONSTANT * size:
            null = power * size ** (1 / power)  # X is constant, and the null model has no error but rounding
        degree = loss.degree * exponent
        return (
            times_power(value, degree),
            times_power(null, degree),
            times_power(error(value), power * degree),
            float(ratio(error(value), error(null))),
        )

    @cached_property
    def mean(self) -> float:
        """Mean of the absolute values of the entries that are not hidden, by their weights."""
        return mean_of(self.left)

    @cached_property
    def data(self):
        """The hidden entries alone, as data."""
        return listing(self.shape, self.places, self.values, self.weights, 0.0)

    def checked(self, predicted: np.ndarray) -> np.ndarray:
        """Predictions of the hidden entries as the user gives them, of these or of all entries of X."""
        here = predicted[self.hidden] if predicted.shape == self.shape else predicted
        if here.shape != (self.n_hidden,) or here.dtype.kind not in "biuf" or not np.isfinite(here).all():
            raise ValueError(
                f"predictions must be {self.n_hidden} finite numbers, one for each hidden entry as predict returns "
                f"them, or an array of the shape of X, {self.shape}; got one of shape {predicted.shape} and type "
                f"{predicted.dtype}"
            )
        return here.astype(np.float64)

    def __repr__(self):
        return (
            f"<partwise hold-out: {self.n_hidden} entries of X, {' x '.join(map(str, self.shape))}, are hidden, "
            f"{self.share:.3g} of those observed>"
        )


def holdout(
    X: Any,
    share: float = 0.1,
    blocks: bool = False,
    random_state: Any = 0,
    *,
    missing: str | None = "nan",
    mask: Any = None,
    weights: Any = None,
) -> Holdout:
    """Hide a share of the observed entries of X, to see how well a model predicts what it was not fitted to.

    Which entries are hidden depends on the seed, the shape of X and which of its entries are observed: not on its
    storage, its type, the rank or the loss. Every row and column (in general: every index along a mode) that has an
    observation keeps at least one. At most 5 million entries are hidden. Where zeros of a sparse X count, hidden zeros
    are among them; nothing dense is made of it.

    Parameters
    ----------
    X : array-like, SciPy sparse matrix, or SparseTensor
        The data, as for `factorize`.
    share : float
        The share of the observed entries to hide, between 0 and 1.
    blocks : bool
        Hide blocks of neighbouring entries in place of single ones. Where neighbours along a mode are alike (spectra,
        images, time series), a single hidden entry can be told from those around it, noise and all, and parts that
        fit the noise seem to predict. Every mode is cut into contiguous runs, at least 10 where it is that long, and
        some cells of the grid of runs are hidden, spread evenly over rows and columns.
    random_state : int, RandomState, Generator or None
        The seed. Same seed, same entries.
    missing, mask, weights
        What of X is observed, and how much each entry counts, as for `factorize`.

    Returns
    -------
    Holdout
        `fit(rank, **settings)` factorizes what is left, `score(result)` is the mean loss of the hidden entries,
        `predict(result)` the model there; `hidden`, `values`, `n_hidden`, `share`, `mask`.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(60, 40, 4, noise=0.1, random_state=0).X
    >>> held = pw.holdout(X, share=0.1)
    >>> held
    <partwise hold-out: 240 entries of X, 60 x 40, are hidden, 0.1 of those observed>
    >>> scores = {rank: held.score(held.fit(rank, random_state=0)) for rank in (2, 4, 8)}
    >>> min(scores, key=lambda rank: scores[rank].value)
    4
    """
    if not is_number(share) or not 0 < share < 1:
        raise ValueError(f"share must be a number between 0 and 1, the part of X to hide; got {share!r}")
    if not isinstance(blocks, bool | np.bool_):
        raise ValueError(f"blocks must be True or False, got {blocks!r}")
    given = observed(X, missing, mask, weights)
    if math.prod(given.data.shape) >= 1 << 63:
        raise ValueError(f"hold-out needs fewer than 2^63 entries, and X has shape {given.data.shape}")
    grid = Grid.of(given)
    among = countable(given.data, grid)
    wanted = wanted_entries(among.n, share)
    draw = draw_blocks if blocks else draw_entries
    drawn = draw(among, wanted, checked_random_state(random_state))
    places = spare_last(among, drawn)
    if not len(places):
        raise ValueError(
            f"no entry of X can be hidden: {among.n} are observed, and every row and column keeps {KEPT} of its own"
        )
    if len(places) < MOST_SPARED * len(drawn):
        warn(
            f"{len(drawn)} entries of X were to be hidden, and {len(places)} are, {len(places) / among.n:.2g} of those "
            f"observed: every row and column keeps {KEPT} of its own."
        )
    places = np.sort(grid.out_of(places))
    left = given._replace(data=without(given.data, places))
    return Holdout(left, places, *entries_at(given, places), len(places) / among.n, modes_of(X))


# -- which entries -------------------------------------------------------------------------------------


def wanted_entries(n: int, share: float) -> int:
    """How many of n entries to hide."""
    wanted = max(1, round(share * n))
    if wanted >= n:
        raise ValueError(
            f"share={share:g} would hide all of the {n} observed entries of X: nothing would be left to fit. "
            "Take a smaller share."
        )
    if wanted > MOST_HIDDEN:
        warn(
            f"share={share:g} of the {n} observed entries are more than are hidden here: {MOST_HIDDEN} are, "
            f"{MOST_HIDDEN / n:.2g} of them."
        )
    return min(wanted, MOST_HIDDEN)


def draw_entries(among: Countable, wanted: int, rng: np.random.RandomState) -> np.ndarray:
    """Places of entries, in random order."""
    return among.at(distinct_numbers(wanted, among.n, rng))


def distinct_numbers(count: int, below: int, rng: np.random.RandomState) -> np.ndarray:
    """Different whole numbers >= 0 below a limit, in random order, in O(count) memory: repeated draws are left out."""
    if 2 * count > below:
        return rng.permutation(below)[:count]
    numbers = in_order = np.empty(0, np.int64)
    while len(numbers) < count:
        fresh = rng.randint(below, size=count - len(numbers), dtype=np.int64)
        fresh = fresh[np.sort(np.unique(fresh, return_index=True)[1])]
        fresh = fresh[~is_among(in_order, fresh)]
        numbers, in_order = np.append(numbers, fresh), merged(in_order, np.sort(fresh))
    return numbers


def draw_blocks(among: Countable, wanted: int, rng: np.random.RandomState) -> np.ndarray:
    """Places in some cells of a grid of contiguous runs.

    With runs along each mode numbered at random, from 0 to g - 1, a cell may be hidden if its numbers add up to less
    than k modulo g: k of g cells along every line of the grid. Two of g are left at least, or rows and columns would
    fall into groups that have no entry in common. Of these cells as many are taken as come nearest to what is wanted.
    """
    share = wanted / among.n
    runs = runs_along(among.shape, share)
    cuts = [np.arange(min(runs, dim) + 1) * dim // min(runs, dim) for dim in among.shape]
    numbers = [rng.permutation(np.arange(len(c) - 1) * runs // (len(c) - 1)) for c in cuts]
    most = min(math.ceil(share * runs), max(runs - 2, 1))
    sums = sum(np.ix_(*numbers)) % runs
    cells = rng.permutation(np.flatnonzero(sums < most))
    reached = np.cumsum(among.tally(cuts)[cells])
    last = max(int(np.argmin(np.abs(reached - wanted))), int(np.argmax(reached > 0)))
    if reached[last] > 2 * MOST_HIDDEN:
        raise ValueError(
            f"a block of X would have {reached[last]} entries, more than are hidden here ({MOST_HIDDEN}): hide single "
            "entries with blocks=False, or only those that are stored with missing='zeros'"
        )
    return among.within(cuts, cells[: last + 1])


def runs_along(shape: tuple[int, ...], share: float) -> int:
    """How many runs to cut the longest mode into: so many that a cell has no more than a share of all entries."""
    runs = max(RUNS, math.ceil(2 / (1 - share)))
    while runs < max(shape) and share * n_cells(shape, runs) < 1:
        runs *= 2
    while n_cells(shape, runs) > MOST_CELLS:
        runs //= 2
    return min(runs, max(shape))


def n_cells(shape: tuple[int, ...], runs: int) -> int:
    return math.prod(min(runs, dim) for dim in shape)


def spare_last(among: Countable, places: np.ndarray) -> np.ndarray:
    """The places without those whose loss would leave a row along some mode too few entries that count: the last of
    them in the order given."""
    for mode in range(len(among.shape)):
        rows = np.unravel_index(places, among.shape)[mode]
        places = places[position_in_group(rows) < (among.by_row(mode) - KEPT)[rows]]
    return places


def position_in_group(groups: np.ndarray) -> np.ndarray:
    """How many items of the same group come before each."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    positions = np.empty(len(groups), np.int64)
    positions[order] = np.arange(len(groups)) - np.searchsorted(sorted_groups, sorted_groups)
    return positions


# -- models --------------------------------------------------------------------------------------------


def factors_of(model, shape: tuple[int, ...]) -> Factors:
    """Tall factors in double precision, of a model of data of some shape."""
    model, order = getattr(model, "result_", model), len(shape)
    if isinstance(model, Result):
        factors: Sequence = model.factors
    elif (known := kruskal_factors(model)) is not None:
        factors = known
    elif isinstance(model, tuple | list) and len(model) == order:
        factors = [np.asarray(A).T if name == "H" else A for A, name in zip(model, factor_names(order), strict=True)]
    else:
        if hasattr(model, "get_params"):
            from sklearn.exceptions import NotFittedError  # noqa: PLC0415  # slow to import

            raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call its fit first")
        wanted = "(W, H)" if order == 2 else f"{order} factors, each (dim, rank)"
        raise TypeError(f"a model is a Result, a fitted estimator, or {wanted}; got {type(model).__name__}")
    arrays = tuple(np.asarray(A, dtype=np.float64) for A in factors)
    shapes, rank = [A.shape for A in arrays], arrays[0].shape[-1:]
    if shapes != [(dim, *rank) for dim in shape]:
        raise ValueError(f"the model has factors of shapes {shapes}, tall, and X has shape {shape}: they do not fit")
    return arrays


def model_at(places: np.ndarray, factors: Factors) -> np.ndarray:
    """The model of tall factors at some places, (n_places,), in O(n_places rank) and double precision."""
    shape, step = tuple(map(len, factors)), max(1, BLOCK // max(factors[0].shape[1], 1))
    tall = [np.asarray(A, dtype=np.float64) for A in factors]

    def part(start: int, stop: int) -> np.ndarray:
        indices = np.unravel_index(places[start:stop], shape)
        product = tall[0][indices[0]]
        for A, index in zip(tall[1:], indices[1:], strict=True):
            product *= A[index]
        return product.sum(axis=1)

    return np.concatenate(threads.map_chunks(part, [*range(0, len(places), step), len(places)]))


def sum_of_losses(loss: Loss, X: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> float:
    def part(start: int, stop: int) -> float:
        here = slice(start, stop)
        return loss.value(X[here], Y[here], weights[here])

    return sum(threads.map_chunks(part, [*range(0, len(X), BLOCK), len(X)]))
