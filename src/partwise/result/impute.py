"""Missing entries of X, filled in by a model of it."""

from __future__ import annotations

import math

import numpy as np

from ..data.base import khatri_rao
from ..data.observed import checked_missing, is_listed, places_of, provisional, said_of_entries
from ..data.rows import BLOCK
from ..data.validation import check_finite, checked_data
from ..problem import Factors

MOST_ENTRIES = 1 << 30  # of an array that is made here


def filled_in(factors: Factors, X, missing: str | None, mask, weights):
    """X with its missing entries from the model, as a new array, or a frame of pandas where it is one; and how many."""
    checked_missing(missing)
    checked = checked_data(X, any_order=True, missing=provisional(missing, mask, weights))
    shape = tuple(len(A) for A in factors)
    if checked.shape != shape:
        raise ValueError(
            f"X has shape {checked.shape}, but this result is of one of shape {shape}; for other samples use transform "
            "and inverse_transform"
        )
    values, holes = (by_entries if is_listed(checked) else by_array)(checked, missing)
    holes |= uncounted(mask, weights, shape)
    if missing is None:
        check_finite(values[~holes], "X", len(shape), missing)
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        values = np.array(X)  # in its own precision
    fill(values, holes, factors)
    return (in_frame(X, values, holes) if hasattr(X, "iloc") else values), int(np.count_nonzero(holes))


def uncounted(mask, weights, shape: tuple[int, ...]) -> np.ndarray:
    """Where a mask is False or weights are 0; an array that can be broadcast to the shape."""
    counts, vectors, _ = said_of_entries(mask, weights, shape)
    holes = np.zeros([1] * len(shape), bool)
    for given in counts:
        holes = holes | ((given.toarray() if hasattr(given, "toarray") else given) == 0)
    for mode, vector in enumerate(vectors):
        if vector is not None:
            holes = holes | (vector == 0).reshape([-1 if m == mode else 1 for m in range(len(shape))])
    return holes


def by_array(X: np.ndarray, missing: str | None) -> tuple[np.ndarray, np.ndarray]:
    """A copy of X, and where it is missing."""
    holes = np.isnan(X) if missing is not None else np.zeros(X.shape, bool)
    return np.array(X), holes | (X == 0) if missing == "zeros" else holes


def by_entries(X, missing: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The same of X by its nonzeros: what is not stored is 0, or missing."""
    if math.prod(X.shape) > MOST_ENTRIES:
        raise ValueError(
            f"X with its missing entries filled in has {math.prod(X.shape):.3g} entries, more than are made into an "
            "array here: compute those that you need from result.factors"
        )
    places, stored = places_of(X)
    values, holes = np.zeros(math.prod(X.shape), X.dtype), np.full(math.prod(X.shape), missing == "zeros")
    values[places], holes[places] = stored, np.isnan(stored) & (missing is not None)
    return values.reshape(X.shape), holes.reshape(X.shape)


def in_frame(X, values: np.ndarray, holes: np.ndarray):
    """A frame of pandas with these values in its holes; columns of whole numbers that have any become real numbers."""
    kinds = {
        name: "float64" if isinstance(kind, np.dtype) else "Float64"  # a type of pandas, as before
        for name, kind, holed in zip(X.columns, X.dtypes, np.any(holes, axis=0).tolist(), strict=True)
        if holed and kind.kind in "iub"
    }
    return X.astype(kinds).where(~holes, values)


def fill(values: np.ndarray, holes: np.ndarray, factors: Factors) -> None:
    """Put the model where the holes are, some slices along the first mode at a time."""
    first, others = factors[0], khatri_rao(factors[1:]).T
    height = max(1, BLOCK // others.shape[1])
    for start in range(0, len(first), height):
        here = slice(start, start + height)
        if holes[here].any():
            model = (first[here] @ others).reshape(values[here].shape)
            values[here][holes[here]] = model[holes[here]]
