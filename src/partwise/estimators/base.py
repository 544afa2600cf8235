"""What the estimators share: results as scikit-learn's attributes, and the way back from weights to data."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data.observed import MISSING, place_of, provisional
from ..data.validation import checked_data, is_annotated
from ..result import Result
from ..result.transform import data_from
from ..selection import RankSelection, select_rank
from .sklearn_private import StrOptions

Found = TypeVar("Found", Result, RankSelection)
MISSING_CONSTRAINT: list[Any] = [StrOptions({name for name in MISSING if name}), None]  # of the parameter `missing`


class Model(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A factorization whose parts are `components_`."""

    missing: str | None  # as `factorize` has it

    def _validated(self, X, mask, weights, reset: bool = True):
        """X as `factorize` takes it, with its sentences for what it does not take; the names and the number of features
        are remembered, or compared with those of `fit` unless `reset`."""
        if place_of(X) is not None:  # blocks are looked at when they are loaded
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        checked = checked_data(X, missing=provisional(self.missing, mask, weights))
        # the names of an AnnData object are the columns of a frame without rows
        validate_data(self, X.var[[]].T if is_annotated(X) else X, skip_check_array=True, reset=reset)
        return checked

    def _learn(self, result: Result) -> np.ndarray:
        """Keep the result as attributes; returns W."""
        self.result_ = result
        self.components_ = np.ascontiguousarray(result.H)
        self.n_components_ = result.rank
        self.n_iter_ = result.n_iter
        self.reconstruction_err_ = result.relative_error * result.data_norm
        return result.W

    def inverse_transform(self, X):
        """`X @ components_`, for X of shape (n_samples, n_components)."""
        check_is_fitted(self)
        return data_from(X, (self.components_.T,))

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def counting(shape: tuple[int, ...], mask, weights, sample_weight=None) -> dict[str, Any]:
    """`mask` and `weights` as `factorize` takes them: weights of samples are those of rows along the first mode."""
    if sample_weight is None:
        return {"mask": mask, "weights": weights}
    if weights is not None:
        raise ValueError(
            "sample_weight and weights both say how much entries count: multiply each row of weights by that of its "
            "sample, and give only weights"
        )
    sample_weight = np.asarray(sample_weight)
    if sample_weight.shape != shape[:1]:
        raise ValueError(
            f"sample_weight must be one number for each of the {shape[0]} samples, got an array of shape "
            f"{sample_weight.shape}"
        )
    if not sample_weight.any():
        raise ValueError("sample_weight is zero for all samples, so that none counts: give some a positive one")
    return {"mask": mask, "weights": (sample_weight, *[None] * (len(shape) - 1))}


def given_rank(init) -> int | None:
    """The number of parts of a start that is a Result, or W or another first factor and the others; None if open."""
    if isinstance(init, Result):
        return init.rank
    return np.shape(init[0])[1] if isinstance(init, tuple | list) and np.ndim(init[0]) == 2 else None


def select_if_open(
    estimator, X, rank: int | None, start, model: dict[str, Any]
) -> tuple[int, Any, RankSelection | None]:
    """The number of parts and the start of the last fit: as they are or, where the number is None, as `select_rank`
    finds it for this model, from the best of its starts unless the user has something to say of starts."""
    if rank is not None:
        return rank, start, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last fit goes on from there, and says it itself
        found = raise_if_interrupted(select_rank(X, progress=False, random_state=estimator.random_state, **model))
    return found.rank, found.result if start is None and estimator.n_init in (None, 1) else start, found


def raise_if_interrupted(result: Found) -> Found:
    """What was found, unless Ctrl-C cut it short: an estimator is fitted or it is not."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result
