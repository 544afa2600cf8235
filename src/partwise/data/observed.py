"""What of X is observed, and how much each entry counts, from what the user says: `missing`, `mask` and `weights`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from .. import kernels
from ..errors import NothingObservedError
from . import as_data
from .base import Data
from .blocks import Blocks
from .coordinates import Coordinates
from .dense import Dense
from .places import InProcess, Place, Source
from .rows import BLOCK
from .sparse import Sparse
from .summary import Summary
from .tensor import SparseTensor
from .validation import Checked, as_matrix, check_finite, checked, is_annotated
from .weighted import Weighted

MISSING = ("nan", "zeros", None)  # what `missing` may be
LISTED = 0.3  # share of entries that are observed: below, they are listed one by one


class Observed(NamedTuple):
    """Data, with what else there is to say of the weights of their entries."""

    data: Any  # Data, Weighted where they are not complete
    vectors: tuple[np.ndarray | None, ...]  # what rows along each mode count besides, None for 1; empty: none do
    exponent: float  # weights here times 2**this are those of the user

    @property
    def n_observed(self) -> int:
        """How many entries are neither missing nor have weight 0."""
        if not self.vectors:
            return self.data.n_observed
        counts = [None if v is None else v > 0 for v in self.vectors]
        every = math.prod(d if c is None else c.sum() for d, c in zip(self.data.shape, counts, strict=True))
        if self.data.complete:
            return int(every)
        if self.data.in_blocks:
            return self.data.n_observed if every == math.prod(self.data.shape) else self.counted_in_blocks(counts)
        _, weights = self.data.listed_pair()
        counted = self.data.along([None if c is None else c.astype(float) for c in counts]) > 0
        unlisted = every - np.count_nonzero(counted) if self.data.unlisted else 0
        return int(np.count_nonzero(counted & (weights > 0)) + unlisted)

    def counted_in_blocks(self, counts) -> int:
        """How many entries are observed in rows and columns that count."""
        rows, columns = (np.ones(d, bool) if c is None else c for d, c in zip(self.data.shape, counts, strict=True))
        return self.data.each(ObservedWithin(columns), rows[:, None])[1][0]

    def select(self, mode: int, index: np.ndarray) -> Observed:
        """Some rows along a mode with all that is said of them, in the order of the index, which may name one several
        times."""
        chosen = tuple(v if v is None or m != mode else v[index] for m, v in enumerate(self.vectors))
        return Observed(self.data.select(mode, index), chosen, self.exponent)

    def unobserved(self, mode: int) -> np.ndarray:
        """Of which rows along a mode no entry counts, (dim,)."""
        vector = self.vectors[mode] if self.vectors else None
        return self.data.unobserved(mode) | (False if vector is None else vector == 0)

    @property
    def weighted(self) -> bool:
        """Whether entries that are observed count differently."""
        if any(v is not None and not uniform(v) for v in self.vectors):
            return True
        if self.data.complete:
            return False
        if self.data.in_blocks:
            return self.data.weighted
        rest = [self.data.unlisted] if self.data.counts_zeros else []
        return not uniform(np.append(self.data.listed_pair()[1], rest))


class ObservedWithin(NamedTuple):
    """How many entries of a block are observed, in some rows and columns."""

    columns: np.ndarray

    def __call__(self, data: Data, rows: np.ndarray) -> tuple[tuple, tuple]:
        return (), (Observed(data, (rows[:, 0].astype(float), self.columns.astype(float)), 0.0).n_observed,)


def uniform(weights: np.ndarray) -> bool:
    """Whether all that are not 0 are the same."""
    positive = weights[weights > 0]
    return positive.size == 0 or bool(np.all(positive == positive[0]))


def observed(X, missing="nan", mask=None, weights=None) -> Observed:
    """Data of X as the user gives it, or made before."""
    if isinstance(X, Observed):
        return X
    checked_missing(missing)
    if (place := place_of(X)) is not None:
        return in_blocks(place, missing, mask, weights)
    if not isinstance(X, Checked):
        X = checked(X, any_order=True, missing=provisional(missing, mask, weights))
    counts, vectors, exponent = said_of_entries(mask, weights, X.shape)
    counts = [given for given in counts if not (isinstance(given, np.ndarray) and np.all(given == 1))]
    data = with_missing(X, missing, counts)
    given = Observed(data, vectors, exponent)
    if given.n_observed == 0:
        raise NothingObservedError("no entry of X is observed: all are missing, masked, or have weight 0")
    return given


def place_of(X) -> Place | None:
    """Where the blocks of X are, if it comes in blocks of rows: opened by `partwise.open`, or an array of Dask's, which
    an AnnData object may hold too."""
    inner: Any = getattr(X, "X", None) if is_annotated(X) else X
    if isinstance(inner, Source):
        return InProcess(inner, inner.heights)
    if type(inner).__module__.startswith("dask.array"):
        from .spread import Spread  # noqa: PLC0415  # optional

        return Spread.of(inner)
    return None


def in_blocks(place: Place, missing: str | None, mask, weights) -> Observed:
    """Data in blocks of rows; a mask and weights of entries are in such blocks, too."""
    shape, exponent = (sum(place.heights), place.width), 0.0
    vectors: tuple[np.ndarray | None, ...] = ()
    if isinstance(weights, tuple):
        vectors, exponent = checked_vectors(weights, shape)
        weights = None
    beside = {name: given for name, given in (("mask", mask), ("weights", weights)) if given is not None}
    for name, given in beside.items():
        if type(place_of(given)) is not type(place):
            raise ValueError(f"{name} must come in blocks as X does, {place.kind}; got {described(given)}")
        if np.shape(given) != shape:
            raise ValueError(f"{name} has shape {np.shape(given)}, and X has shape {shape}: give one number for each")
    data = Blocks.of(place.beside(beside) if beside else place, missing, tuple(beside))
    if "weights" in beside:
        exponent = math.log2(data.said.unit)
    found = Observed(data, vectors, exponent)
    if found.n_observed == 0:
        raise NothingObservedError("no entry of X is observed: all are missing, masked, or have weight 0")
    return found


def described(given) -> str:
    return f"an object of type {type(given).__name__}"


def check_unmasked(mask, weights) -> None:
    if mask is not None or weights is not None:
        raise ValueError("transform takes no mask and weights where X is in blocks of rows: put NaN into the blocks")


def complete(X) -> Data:
    """Data of X as the user gives it, in which nothing may be missing."""
    if (place := place_of(X)) is not None:
        return Blocks.of(place, None)
    X = checked(X, any_order=True)
    return as_data(X.data, X.summary)


# -- what the user says --------------------------------------------------------------------------------


def checked_missing(missing) -> None:
    if not (missing is None or (isinstance(missing, str) and missing in MISSING)):
        raise ValueError(f"missing must be 'nan', 'zeros' or None, got {missing!r}")


def provisional(missing: str | None, mask, weights) -> str | None:
    """How to take NaN before the mask and the weights are looked at: they may cover all that `missing` refuses."""
    return missing if mask is None and weights is None else "nan"


def said_of_entries(mask, weights, shape: tuple[int, ...]) -> tuple[list, tuple[np.ndarray | None, ...], float]:
    """What the mask and the weights say of each entry, what weights of rows along each mode do, and the binary
    logarithm of the largest weight."""
    counts = [] if mask is None else [checked_mask(mask, shape)]
    if weights is None:
        return counts, (), 0.0
    if isinstance(weights, tuple):
        return counts, *checked_vectors(weights, shape)
    if isinstance(weights, list) and is_list_of_vectors(weights, shape):
        raise ValueError(
            "weights of rows along each mode are given in a tuple, (row_weights, column_weights) say, with None for 1; "
            "got a list"
        )
    given, exponent = checked_weights(weights, shape)
    return [*counts, given], (), exponent


def is_list_of_vectors(weights: list, shape: tuple[int, ...]) -> bool:
    """Whether a list holds one vector for each mode, or None, and is no array of the shape of X."""
    if any(vector is None for vector in weights):
        return True
    sizes = [np.shape(vector) for vector in weights]
    return sizes == [(dim,) for dim in shape] and (len(sizes), *sizes[0]) != shape


def is_listed(X) -> bool:
    """Whether X is given by its nonzeros."""
    return issparse(X) or isinstance(X, SparseTensor)


def as_counts(given, name: str, shape: tuple[int, ...]):
    """A mask or weights as an array or by their nonzeros, of the shape of X."""
    found = as_matrix(given, name, any_order=True)
    found = found if is_listed(found) else np.asarray(found)
    if found.shape != shape:
        advice = "give one number for each entry of X"
        if name == "weights" and found.ndim == 1:
            advice += f", or a tuple of one vector for each mode: weights={' or '.join(tuples_for(found.size, shape))}"
        raise ValueError(f"{name} has shape {found.shape}, and X has shape {shape}: {advice}")
    return found


def tuples_for(size: int, shape: tuple[int, ...]) -> list[str]:
    """Ways to give a vector w of so many numbers: for the modes of that size, or for any where there is none."""
    modes = [mode for mode, dim in enumerate(shape) if dim == size] or range(len(shape))
    return [f"({', '.join('w' if m == mode else 'None' for m in range(len(shape)))})" for mode in modes]


def checked_mask(mask, shape: tuple[int, ...]):
    """True where an entry is observed: a boolean array, or the places that a sparse one stores as not 0."""
    mask = as_counts(mask, "mask", shape)
    check_mask(values_of(mask), "mask")
    if isinstance(mask, SparseTensor):
        coords = np.unique(mask.coords[mask.values != 0], axis=0)
        return SparseTensor(coords, np.ones(len(coords)), shape)
    return mask.astype(bool)


def values_of(given) -> np.ndarray:
    """The numbers that an array holds, or lists."""
    return given.data if issparse(given) else getattr(given, "values", given)


def check_mask(values: np.ndarray, name: str) -> None:
    if values.dtype != bool and not np.all((values == 0) | (values == 1)):
        raise ValueError(
            f"{name} says which entries of X are observed, by True and False, or 1 and 0; for other numbers use weights"
        )


def checked_weights(weights, shape: tuple[int, ...]):
    """Nonnegative weights, divided by the largest, and its binary logarithm."""
    weights = as_counts(weights, "weights", shape)
    values, exponent = moderate_weights(values_of(weights), "weights")
    if issparse(weights):
        return csr_array(type(weights)((values, weights.indices, weights.indptr), shape=shape)), exponent
    return (SparseTensor(weights.coords, values, shape) if isinstance(weights, SparseTensor) else values), exponent


def checked_vectors(weights: tuple, shape: tuple[int, ...]) -> tuple[tuple[np.ndarray | None, ...], float]:
    """The same for weights of rows along each mode; None or 1 where all count alike."""
    sizes = [None if vector is None else np.shape(vector) for vector in weights]
    wanted = [None if vector is None else (dim,) for vector, dim in zip(weights, shape, strict=False)]
    if len(weights) != len(shape) or sizes != wanted:
        raise ValueError(
            f"weights in a tuple are one vector for each mode of X, of {', '.join(map(str, shape))} numbers, or None; "
            f"got {len(weights)} of shapes {', '.join(str(size) for size in sizes)}"
        )
    found, total = [], 0.0
    for vector in weights:
        values, exponent = (None, 0.0) if vector is None else moderate_weights(np.asarray(vector), "weights")
        found.append(None if values is None or np.all(values == 1) else values)
        total += exponent
    return (tuple(found) if any(v is not None for v in found) else ()), total


def check_weights(values: np.ndarray, name: str) -> None:
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers >= 0, got an array of {values.dtype}")
    values = values.astype(np.float64, copy=False)
    if bad := int(np.count_nonzero(~np.isfinite(values))):
        raise ValueError(
            f"{name} must be finite numbers >= 0, and {bad} are NaN or infinite: use 0 for what is not to count"
        )
    if values.min(initial=0) < 0:
        raise ValueError(f"{name} must be >= 0, and the smallest is {values.min():g}: use 0 for what is not to count")


def moderate_weights(values: np.ndarray, name: str) -> tuple[np.ndarray, float]:
    """Weights as numbers of double precision, the largest 1, and the binary logarithm of what it was."""
    check_weights(values, name)
    values = values.astype(np.float64)
    largest = float(values.max(initial=0))
    if largest == 0:
        raise NothingObservedError(f"{name} are all 0, so that no entry of X counts: give some of them a positive one")
    return values / largest, math.log2(largest)


def with_missing(X: Checked, missing: str | None, counts: list) -> Data:
    """Data of an array or a sparse matrix of which some entries may be missing, or count as is said."""
    return (of_listed if is_listed(X.data) else of_array)(X.data, X.summary, missing, counts)


# -- X as an array -------------------------------------------------------------------------------------


def of_array(X: np.ndarray, summary: Summary | None, missing: str | None, counts: list) -> Data:
    weights: np.ndarray | None = None
    seen = [] if missing is None or summary or kernels.of(X).all_finite(X) else [~np.isnan(X)]
    seen += [X != 0] if missing == "zeros" else []
    for given in [*(s for s in seen if not s.all()), *counts]:
        array = given.toarray() if hasattr(given, "toarray") else given
        weights = array if weights is None else weights * array
    if missing is None and not summary:
        check_finite(X if weights is None else X[weights > 0], "X", X.ndim, missing)
    if weights is None or np.all(weights == 1):
        return as_data(X, summary)
    return of_weighted_array(X, weights.astype(X.dtype))


def of_weighted_array(X: np.ndarray, weights: np.ndarray) -> Weighted:
    """X by its entries where few of them count."""
    if np.count_nonzero(weights) < LISTED * X.size:
        places = np.flatnonzero(weights)
        return listing(X.shape, places, X.ravel()[places], weights.ravel()[places], 0.0)
    entries = Dense.of(np.where(weights > 0, X, X.dtype.type(0)))
    # in the order in which the entries lie in memory, whatever that of the weights given
    return Weighted(X.shape, X.dtype, 1.0, entries, entries.with_values(weights.transpose(entries.axes).ravel()))


# -- X by its nonzeros ---------------------------------------------------------------------------------


def of_listed(X, summary: Summary | None, missing: str | None, counts: list) -> Data:
    """Entries that are not stored are zeros, or unknown for missing="zeros"."""
    shape, unlisted = X.shape, float(missing != "zeros")
    if unlisted and not counts and (summary or not has_nan(X)):
        return as_data(X, summary)
    places, values = places_of(X)
    if math.prod(shape) >= 1 << 63:
        raise ValueError(f"missing entries, masks and weights need fewer than 2^63 entries, and X has shape {shape}")
    weights = np.ones(len(places))
    for given in counts:
        if unlisted:
            places, values, weights, unlisted = joined(shape, places, values, weights, given)
        else:
            weights = weights * looked_up(shape, places, given)
    if missing is None:
        check_finite(values[weights > 0], "X", len(shape), missing)
    weights[np.isnan(values)] = 0
    if not unlisted:
        kept = weights > 0
        places, values, weights = places[kept], values[kept], weights[kept]
    return listing(shape, places, values, weights, unlisted)


def has_nan(X) -> bool:
    """Whether some of the values of X by its nonzeros are NaN, with little memory."""
    values = X.data if issparse(X) else X.values
    blocks = (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    return not kernels.of(values).all_finite(values) and any(np.isnan(block).any() for block in blocks)


def joined(shape, places, values, weights, given) -> tuple:
    """Entries that are listed or that `given` speaks of, their values and weights, and what others count."""
    if not (is_listed(given)):
        least = given.min()  # what is not hidden, or counts as little as any, need not be listed
        uniform = given.max() if np.count_nonzero(given == given.max()) * 2 > given.size else least
        told = np.flatnonzero(given != uniform)
        every = merged(places, told)
        return every, found(every, places, values), found(every, places, weights, 1.0) * given.ravel()[every], uniform
    told, numbers = places_of(given)
    told, numbers = told[numbers != 0], numbers[numbers != 0]
    return told, found(told, places, values), found(told, places, weights, 1.0) * numbers, 0.0


def found(wanted: np.ndarray, places: np.ndarray, values: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """Values at the wanted places, `otherwise` where none is listed."""
    at, here = lookup(places, wanted)
    return np.where(here, values[at] if len(places) else otherwise, otherwise)


def lookup(places: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where wanted places are in a list in order, and whether they are there."""
    at = np.minimum(np.searchsorted(places, wanted), max(len(places) - 1, 0))
    return at, places[at] == wanted if len(places) else np.zeros(len(wanted), bool)


def is_among(places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return lookup(places, wanted)[1]


def merged(places: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The union of two lists in order, each of different places."""
    return np.sort(np.concatenate([places, others[~is_among(places, others)]]), kind="stable")  # merges two runs


def looked_up(shape, places: np.ndarray, given) -> np.ndarray:
    """What `given` says at some places."""
    if is_listed(given):
        return found(places, *places_of(given))
    return given.ravel()[places]


def places_of(X) -> tuple[np.ndarray, np.ndarray]:
    """Where entries are stored, zeros too, counted through X as an array, in order; and their values."""
    if isinstance(X, SparseTensor):
        data = Coordinates.of(X, keep_zeros=True)
        if math.prod(X.shape) >= 1 << 63:
            return np.arange(len(data.values)), data.values
        return data.places(), data.values
    matrix = Sparse.of(X, keep_zeros=True)
    return matrix.places(), matrix.matrix.data


def listing(shape, places: np.ndarray, values: np.ndarray, weights: np.ndarray, unlisted: float) -> Weighted:
    """Data by some of their entries, at places counted through X as an array, in order."""
    kind = values.dtype
    values, excess = np.where(weights > 0, values, kind.type(0)), (weights - unlisted).astype(kind)
    if len(shape) == 2:
        rows, columns = np.divmod(places, shape[1])
        ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        entries: Data = Sparse.of(csr_array((values, columns, ends), shape=shape), keep_zeros=True)
    else:
        coords = np.column_stack(np.unravel_index(places, shape))
        entries = Coordinates.of(SparseTensor(coords, values, shape), keep_zeros=True)
    return Weighted(shape, kind, 1.0, entries, entries.with_values(excess), float(unlisted))
