"""What the estimators share: settings of runs, results as scikit-learn's attributes, new rows and what they score."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from ..data.observed import MISSING, place_of, provisional
from ..data.validation import NEVER, checked, is_annotated, is_table
from ..factorize import factorize
from ..init import Init
from ..losses import Loss
from ..problem import Factors
from ..result import Result
from ..result.transform import data_from, projected, projected_rows
from ..run.progress import print_line
from ..run.records import Callback
from ..solvers import Solver
from ..structures import Structure
from .sklearn_private import Interval, StrOptions

if TYPE_CHECKING:
    from ..selection import RankSelection

Found = TypeVar("Found", Result, "RankSelection")
ALL_FITS = ("solver", "max_iter", "tol", "n_threads")  # what the fits of `transform` and of a search are told too
ONE_FIT = ("n_init", "target", "ftol", "time_limit", "progress", "checkpoint", "resume", "sort")


@dataclass(eq=False, repr=False, kw_only=True)
class Model(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A factorization as an estimator. The fields are its parameters, those that `factorize` has too."""

    init: Any = None
    solver: str | Solver = "auto"
    missing: str | None = "nan"
    tol: float = 1e-4
    max_iter: int | None = None
    target: float | None = None
    ftol: float | None = None
    time_limit: float | None = None
    n_init: int | None = None
    sort: bool = True
    random_state: Any = None
    verbose: int = 0
    progress: bool | None = False
    callbacks: Sequence[Callback] = ()
    checkpoint: Any = None
    resume: Any = None
    n_threads: int | None = None

    _parameter_constraints: ClassVar[dict] = {
        "init": [str, Init, tuple, list, Result, None],
        "solver": [str, Solver],
        "missing": [StrOptions({name for name in MISSING if name}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "target": [Real, None],
        "ftol": [Interval(Real, 0, None, closed="left"), None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "sort": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "progress": ["boolean", None],
        "callbacks": [tuple, list],
        "checkpoint": [str, os.PathLike, tuple, None],
        "resume": [str, os.PathLike, None],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    any_order: ClassVar[bool] = False  # of X

    @classmethod
    @cache
    def _get_param_names(cls):
        return super()._get_param_names()  # which looks at the signature anew each time, for as long as a small step

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, mask: Any = None, weights: Any = None) -> Self:
        """Learn the parts of X; the parameters are those of `fit_transform`.

        Returns
        -------
        self
        """
        self.fit_transform(X, sample_weight=sample_weight, mask=mask, weights=weights)
        return self

    def transform(self, X: Any, *, mask: Any = None, weights: Any = None) -> Any:
        """The weights of other samples with the parts held: each sample on its own, from what is observed of it, in the
        scale of `fit_transform`. Samples of a tensor are slices along its first mode.

        Parameters
        ----------
        X : array-like, sparse matrix or, for tensors, SparseTensor
            New samples, with the features of those that were fitted.
        mask, weights
            Which entries are observed, and how much each counts, as in `fit_transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            A sample of which nothing is observed is 0.
        """
        check_is_fitted(self)
        X = self._validated(X, mask, weights, reset=False)
        counts = {"missing": self.missing, "mask": mask, "weights": weights}
        return self._in_scale(projected_rows(X, *self._held(X), counts, **self._course))

    def score(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, mask: Any = None, weights: Any = None
    ) -> float:
        """The share of X that the parts explain, with the weights that `transform` finds: `1 - loss / null loss`, which
        is `1 - |X - W H|^2 / |X|^2` for least squares and the explained share of the deviance (D^2) for KL. 1 is best.

        It is `result_.explained` of other samples, in the measure of the loss that was fitted, over the entries
        observed and by their weights, penalties apart. Weights are found for the very entries that are scored, so it
        tells whether parts serve new samples, and compares penalties, losses of one kind or solvers; more parts score
        higher as a rule. For their number see n_components="auto", or score entries held out (`partwise.holdout`).

        Parameters
        ----------
        X : array-like, sparse matrix or, for tensors, SparseTensor
            Samples, with the features of those that were fitted.
        y : None
            Ignored.
        sample_weight, mask, weights
            How much samples and entries count, as in `fit_transform`.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        X = self._validated(X, mask, weights, reset=False)
        counts = {"missing": self.missing, **counting(X.shape, mask, weights, sample_weight)}
        return raise_if_interrupted(projected(X, *self._held(X), counts, **self._course)).explained

    def _held(self, X) -> tuple[Factors, Structure, Loss]:
        """What `transform` holds for new samples X: the parts, tall; what is asked of the weights; the loss."""
        raise NotImplementedError

    def _in_scale(self, rows: np.ndarray) -> np.ndarray:
        """Weights for the parts as they are held, in the scale that `fit_transform` returns."""
        return rows

    def _validated(self, X, mask, weights, reset: bool = True):
        """X as `factorize` takes it, `Checked` unless in blocks, with its sentences for what it does not take; the
        names and the number of features are remembered, or compared with those of `fit` unless `reset`."""
        if place_of(X) is not None:  # blocks are looked at when they are loaded
            return X
        missing = self.missing if "missing" in self._get_param_names() else NEVER
        return checked(X, any_order=self.any_order, missing=provisional(missing, mask, weights))

    def _fitted(self, X, rank: int, start, model: dict[str, Any]) -> Result:
        """`factorize` with all settings of this estimator, and what `model` says beyond."""
        settings = {name: getattr(self, name) for name in ONE_FIT}
        callbacks = [*self.callbacks, *([print_line] if self.verbose else [])]
        told = {**self._course, "missing": self.missing, **settings, **model}
        return raise_if_interrupted(factorize(X, rank, init=start, callbacks=callbacks, **told))

    @property
    def _course(self) -> dict[str, Any]:
        """How all fits run."""
        return {"random_state": self.random_state, **{name: getattr(self, name) for name in ALL_FITS}}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MatrixModel(Model):
    """A factorization of a matrix, whose parts are `components_`."""

    def _validated(self, X, mask, weights, reset=True):
        seen = super()._validated(X, mask, weights, reset)
        # the names of an AnnData object are the columns of a frame without rows
        named = X.var[[]].T if is_annotated(X) else seen.data if is_table(X) else X
        validate_data(self, named, skip_check_array=True, reset=reset)
        return seen

    def _learn(self, result: Result) -> np.ndarray:
        """Keep the result as attributes; returns W."""
        self.result_ = result
        self.components_ = np.ascontiguousarray(result.H)
        self.n_components_ = result.rank
        self.n_iter_ = result.n_iter
        self.reconstruction_err_ = result.relative_error * result.data_norm
        return result.W

    def inverse_transform(self, X: Any) -> Any:
        """`X @ components_`, for X of shape (n_samples, n_components)."""
        check_is_fitted(self)
        return data_from(X, (self.components_.T,))

    @property
    def _n_features_out(self):
        return self.components_.shape[0]


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
    estimator: Model, X, rank: int | None, start, model: dict[str, Any]
) -> tuple[int, Any, RankSelection | None]:
    """The number of parts and the start of the last fit: as they are or, where the number is None, as `select_rank`
    finds it for this model, from the best of its starts unless the user has something to say of starts."""
    if rank is not None:
        return rank, start, None
    from ..selection import select_rank  # noqa: PLC0415  # few ask for it, and to import it takes time

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last fit goes on from there, and says it itself
        told = {**estimator._course, "missing": estimator.missing, **model}
        found = raise_if_interrupted(select_rank(X, progress=estimator.progress, **told))
    return found.rank, found.result if start is None and estimator.n_init in (None, 1) else start, found


def raise_if_interrupted(result: Found) -> Found:
    """What was found, unless Ctrl-C cut it short: an estimator is fitted or it is not."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result
