"""What the estimators share: results as scikit-learn's attributes, and the way back from weights to data."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data.validation import checked_data, is_annotated
from ..result import Result


class Model(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A factorization whose parts are `components_`."""

    def _validated(self, X, reset: bool = True):
        """X as `factorize` takes it, with its sentences for what it does not take; the names and the number of features
        are remembered, or compared with those of `fit` unless `reset`."""
        checked = checked_data(X)
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
        if np.shape(X)[-1:] != (self.n_components_,):
            raise ValueError(
                f"inverse_transform takes weights of shape (n_samples, {self.n_components_}), as transform gives them; "
                f"got shape {np.shape(X)}"
            )
        return X @ self.components_

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def raise_if_interrupted(result: Result) -> Result:
    """The result, unless Ctrl-C cut it short: an estimator is fitted or it is not."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result
