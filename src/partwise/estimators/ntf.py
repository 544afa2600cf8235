"""Nonnegative tensor factorization in scikit-learn's manner."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..data.names import factor_names
from ..data.observed import provisional
from ..data.units import product_of_norms
from ..data.validation import checked_data
from ..factorize import factorize, stated_structure
from ..losses import Loss
from ..registry import resolve
from ..result import Result
from ..result.result import unit_factors
from ..result.transform import check_slices, data_from, for_new_rows, projected_rows
from ..run.progress import print_line
from ..solvers import Solver
from ..structures import NonNegative, Structure
from .base import (
    MISSING_CONSTRAINT,
    counting,
    given_rank,
    raise_if_interrupted,
    select_if_open,
)
from .sklearn_private import Interval, StrOptions, fit_context


class NTF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Nonnegative tensor factorization, also called nonnegative CP or PARAFAC: a tensor of any order >= 2 is taken for
    a sum of outer products,

        X ~ sum_k weights_[k] factors_[0][:, k] o factors_[1][:, k] o ... o factors_[d-1][:, k]

    with nonnegative factors. The first mode are the samples: `fit_transform` returns one row for each of them, and
    `transform` those of other samples on the same parts, which are the other factors.

    Parameters
    ----------
    n_components : int or "auto"
        Number of parts. "auto": that of factors given as `init`, else as many as predict entries that were left out,
        and come again from other starts: `partwise.select_rank`, in the time of some forty fits.
    init : str, Init, list of factors, Result or None
        Where to start, as `partwise.factorize` takes it.
    solver : str or Solver
        "auto" for the best that applies, a name such as "hals", "newton_kl" or "greedy", or a configured solver.
    loss : str, number or Loss
        "frobenius" for `1/2 |X - model|^2`, "kl" for counts, another beta-divergence, or "l1".
    structures : list of Structure, optional
        What else is wanted of each factor, nonnegativity apart, one for each mode; None where nothing is. See
        `partwise.structures`.
    missing : "nan", "zeros" or None
        Which entries of X are missing, and do not count: NaN; for "zeros" also what a sparse X does not store, or what
        is 0 in an array; for None none may be. The loss then is a sum over the entries observed.
    tol : float
        Stationarity to reach (see "When a run stops" in the documentation).
    max_iter : int or None
        Iterations allowed for one start; None: as many as suit the solver.
    n_init : int or None
        Number of starts; the best is kept. None: 1, and where `admm` solves for sets that are not convex up to 4.
    normalize : bool
        True: the columns of `factors_` have norm 1, as TensorLy has it, where their structure allows any scale; those
        on a simplex, say, or held, bounded or penalised, stay as they are. `weights_` are the norms taken out.
        False: `factors_` are those of `result_`, and `weights_` are 1.
    modes : list of str, or dict of str to labels or None, optional
        Names of the modes in order, and what stands along them, for pictures and reports.
    random_state : int, RandomState or None
        The seed.
    verbose : int
        Whether to print a line per iteration.
    callbacks : sequence of callables
        Called as ``callback(record, factors)`` after every iteration; a true answer ends the run.
    n_threads : int, optional
        Threads to use at most.

    Attributes
    ----------
    factors_ : list of ndarray, each of shape (dim, n_components)
        One for each mode.
    weights_ : ndarray of shape (n_components,)
        The product of the norms taken out of each part: its size, where all factors allow any scale.
    n_components_ : int
        Number of parts.
    n_iter_ : int
        Iterations of the best start.
    reconstruction_err_ : float
        `sqrt(2 loss)`, that is `|X - model|` for least squares; for L1 the sum of absolute differences; over the
        entries observed, by their weights.
    result_ : Result
        Everything known about the fit: history, certificate, why the run ended.
    selection_ : RankSelection or None
        With n_components="auto", what speaks for this number: `sentence`, `table`, `plot.curve()`, `report(path)`.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_cp((20, 15, 10), 3, random_state=0)
    >>> model = pw.NTF(3, random_state=0)
    >>> A = model.fit_transform(planted.X)
    >>> A.shape, [B.shape for B in model.factors_]
    ((20, 3), [(20, 3), (15, 3), (10, 3)])
    >>> pw.metrics.factor_match(planted, model.result_) > 0.99
    True
    >>> model.transform(planted.X[:5]).shape
    (5, 3)
    """

    _parameter_constraints: dict = {  # noqa: RUF012  # scikit-learn reads this name
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "init": "no_validation",  # `factorize` has a sentence for what is no start
        "solver": [str, Solver],
        "loss": [str, Real, Loss],
        "structures": [tuple, list, None],
        "missing": MISSING_CONSTRAINT,
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "normalize": ["boolean"],
        "modes": "no_validation",
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callbacks": [tuple, list],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components,
        *,
        init=None,
        solver="auto",
        loss="frobenius",
        structures=None,
        missing="nan",
        tol=1e-4,
        max_iter=None,
        n_init=None,
        normalize=True,
        modes=None,
        random_state=None,
        verbose=0,
        callbacks=(),
        n_threads=None,
    ):
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.loss = loss
        self.structures = structures
        self.missing = missing
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.normalize = normalize
        self.modes = modes
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_threads = n_threads

    def fit(self, X, y=None, *, sample_weight=None, mask=None, weights=None):
        """Learn the parts of X, an array of any order >= 2 or a `SparseTensor`; the rest as in `fit_transform`."""
        self.fit_transform(X, sample_weight=sample_weight, mask=mask, weights=weights)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None, *, sample_weight=None, mask=None, weights=None):
        """Learn the parts of X and return the first factor with the weights, `factors_[0] * weights_`.

        Parameters
        ----------
        X : array-like, sparse matrix or SparseTensor
            The data; on entries that are missing see the parameter `missing`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            How much each slice along the first mode counts: one of weight 2 as much as the same slice twice.
        mask : array, sparse matrix or SparseTensor of bool, optional
            True where an entry of X is observed; what a sparse one does not store is not.
        weights : array, sparse matrix or SparseTensor, or tuple of vectors, optional
            How much the loss of each entry counts, >= 0; what a sparse one does not store counts nothing. A tuple has
            one vector for each mode, or None.
        """
        shape = () if sample_weight is None else self._checked(X, mask, weights).shape
        model = {
            "loss": self.loss,
            "structures": self.structures
            and list(map(nonnegative, self.structures, factor_names(len(self.structures)))),
            "solver": self.solver,
            "modes": self.modes,
            **counting(shape, mask, weights, sample_weight),
        }
        rank = given_rank(self.init) if self.n_components == "auto" else self.n_components
        rank, start, selection = select_if_open(self, X, rank, self.init, {**self._shared, **model})
        callbacks = [*self.callbacks, *([print_line] if self.verbose else [])]
        result = self._factorize(X, rank, **model, init=start, n_init=self.n_init, callbacks=callbacks)
        self.selection_ = selection
        return self._learn(result)

    def transform(self, X, *, mask=None, weights=None):
        """The first factor for other slices along the first mode, with the other factors held: each slice on its own,
        from what is observed of it, in the scale of `fit_transform`. A slice of which nothing is observed is 0."""
        check_is_fitted(self)
        X = self._checked(X, mask, weights)
        check_slices(X.shape, self.result_.shape)
        stated = self.structures[0] if self.structures else None
        first = None if stated is None else resolve("structure", stated)
        first = nonnegative(for_new_rows(first, "structures[0]", "it to be nonnegative only"), "A1")
        counts = {"missing": self.missing, "mask": mask, "weights": weights}
        settings = {name: value for name, value in self._shared.items() if name != "missing"}
        loss = self.result_.loss  # with what was estimated in `fit`
        found = projected_rows(
            X,
            self.result_.factors[1:],
            first,
            loss,
            counts,
            solver=self.solver,
            random_state=self.random_state,
            **settings,
        )
        return found * self._norms_taken_out(1).astype(X.dtype)

    def inverse_transform(self, X):
        """Slices from weights of shape (n_samples, n_components), as `transform` gives them: an array of the order of
        the data."""
        check_is_fitted(self)
        return data_from(X, tuple(self.factors_[1:]))

    def _checked(self, X, mask, weights):
        return checked_data(X, any_order=True, missing=provisional(self.missing, mask, weights))

    def _learn(self, result: Result) -> np.ndarray:
        """Keep the result as attributes; returns the first factor, with the weights."""
        self.result_ = result
        scalable = self._scalable()
        self.factors_ = [
            np.where(free, unit, A)
            for free, unit, A in zip(scalable, unit_factors(result.factors), result.factors, strict=True)
        ]
        kind = result.factors[0].dtype
        self.weights_ = self._norms_taken_out(0).astype(kind)
        self.n_components_ = result.rank
        self.n_iter_ = result.n_iter
        self.reconstruction_err_ = result.relative_error * result.data_norm
        return result.factors[0] * self._norms_taken_out(1).astype(kind)

    def _scalable(self) -> list[np.ndarray]:
        """Which columns of each factor have norm 1 in `factors_`, (rank,)."""
        names, rank = factor_names(len(self.result_.shape)), self.result_.rank
        bound = (
            stated.bind(A.shape, transposed=name == "H", name=name)
            for stated, A, name in zip(self.result_.structures, self.result_.factors, names, strict=True)
        )
        return [structure.scalable(rank) & self.normalize for structure in bound]

    def _norms_taken_out(self, first: int) -> np.ndarray:
        """What a part of the result is times that of `factors_`, in the modes from `first` on."""
        pairs = zip(self._scalable()[first:], self.result_.factors[first:], strict=True)
        return product_of_norms([np.where(free, A, np.eye(len(A), 1)) for free, A in pairs])

    def _factorize(self, X, rank, **settings) -> Result:
        result = factorize(
            X,
            rank,
            **self._shared,
            progress=False,
            random_state=self.random_state,
            **settings,
        )
        return raise_if_interrupted(result)

    @property
    def _shared(self) -> dict[str, Any]:
        """What all fits are told, those of a search too."""
        names = ("missing", "max_iter", "tol", "n_threads")
        return {name: getattr(self, name) for name in names}

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing is not None
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def nonnegative(stated, name: str) -> Structure:
    """A structure of the factor of this name as `NTF` takes it, nonnegativity apart."""
    return NonNegative() if stated is None else NonNegative() & stated_structure(stated, name)
