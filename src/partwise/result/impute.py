"""Missing entries of X, filled in by a model of it."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import issparse

from ..data.base import khatri_rao
from ..data.observed import checked_mask, checked_missing, places_of
from ..data.rows import BLOCK
from ..data.tensor import SparseTensor
from ..data.validation import checked_data
from ..problem import Factors

MOST_ENTRIES = 1 << 30  # of an array that is made here


def filled_in(factors: Factors, X, missing: str | None, mask):
    """X with its missing entries from the model, as a new array, or a frame of pandas where it is one."""
    checked_missing(missing)
    checked = checked_data(X, any_order=True, with_nan=missing is not None)
    shape = tuple(len(A) for A in factors)
    if checked.shape != shape:
        raise ValueError(
            f"X has shape {checked.shape}, but this result is of one of shape {shape}; for other samples use transform "
            "and inverse_transform of pw.NMF or pw.NTF"
        )
    values, holes = (by_entries if issparse(checked) or isinstance(checked, SparseTensor) else by_array)(
        checked, missing
    )
    if mask is not None:
        seen = checked_mask(mask, shape)
        holes |= ~(seen.toarray() if hasattr(seen, "toarray") else seen).astype(bool)
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        values = np.array(X)  # in its own precision
    fill(values, holes, factors)
    return X.where(~holes, values) if hasattr(X, "iloc") else values


def by_array(X: np.ndarray, missing: str | None) -> tuple[np.ndarray, np.ndarray]:
    """A copy of X, and where it is missing."""
    holes = np.isnan(X)
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
    values[places], holes[places] = stored, np.isnan(stored)
    return values.reshape(X.shape), holes.reshape(X.shape)


def fill(values: np.ndarray, holes: np.ndarray, factors: Factors) -> None:
    """Put the model where the holes are, some slices along the first mode at a time."""
    first, others = factors[0], khatri_rao(factors[1:]).T
    height = max(1, BLOCK // others.shape[1])
    for start in range(0, len(first), height):
        here = slice(start, start + height)
        if holes[here].any():
            model = (first[here] @ others).reshape(values[here].shape)
            values[here][holes[here]] = model[holes[here]]
