"""Nonnegative tensor factorization in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data.names import factor_names
from ..data.units import product_of_norms
from ..factorize import stated_structure
from ..losses import Loss
from ..registry import resolve
from ..result import Result
from ..result.result import unit_factors
from ..result.transform import check_slices, data_from, for_new_rows
from ..structures import NonNegative, Structure
from .base import Model, counting, given_rank, select_if_open
from .sklearn_private import Interval, StrOptions, fit_context


@dataclass(eq=False, repr=False, kw_only=True)
class NTF(Model):
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
    normalize : bool, or as in `partwise.factorize`
        True: the columns of `factors_` have norm 1, as TensorLy has it, where their structure allows any scale; those
        on a simplex, say, or held, bounded or penalised, stay as they are. `weights_` are the norms taken out.
        False: `factors_` are those of `result_`, and `weights_` are 1; also for "balanced", which is the same, "A2",
        ("A2", "l1"), or None, which say where the scale of a part goes.
    modes : list of str, or dict of str to labels or None, optional
        Names of the modes in order, and what stands along them, for pictures and reports.
    random_state : int, RandomState or None
        The seed.
    verbose : int
        Whether to print a line per iteration.
    callbacks : sequence of callables
        Called as ``callback(record, factors)`` after every iteration; a true answer ends the run.
    target, ftol, time_limit : float, optional
        An objective at which to stop, a fall of the error that is too slow to go on, and seconds for `fit` to run at
        most, as in `partwise.factorize`.
    progress, checkpoint, resume, sort
        A bar, files to keep the state of `fit` in and to go on from, and whether parts are ordered by their norm, as in
        `partwise.factorize`.
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

    n_components: int | str = field(kw_only=False)
    loss: str | float | Loss = "frobenius"
    structures: Sequence[Structure | str | None] | None = None
    normalize: Any = True
    modes: Any = None

    _parameter_constraints: ClassVar[dict] = {
        **Model._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "init": "no_validation",  # `factorize` has a sentence for what is no start
        "loss": [str, Real, Loss],
        "structures": [tuple, list, None],
        "normalize": ["boolean", str, tuple, None],
        "modes": "no_validation",
    }

    any_order: ClassVar[bool] = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, mask: Any = None, weights: Any = None
    ) -> np.ndarray:
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
        shape = () if sample_weight is None else self._validated(X, mask, weights).shape
        model = {
            "loss": self.loss,
            "structures": self.structures
            and list(map(nonnegative, self.structures, factor_names(len(self.structures)))),
            "modes": self.modes,
            **counting(shape, mask, weights, sample_weight),
        }
        rank: Any = given_rank(self.init) if self.n_components == "auto" else self.n_components
        rank, start, selection = select_if_open(self, X, rank, self.init, model)
        scale = "balanced" if isinstance(self.normalize, bool | np.bool_) else self.normalize
        result = self._fitted(X, rank, start, {**model, "normalize": scale})
        self.selection_ = selection
        return self._learn(result)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Slices from weights of shape (n_samples, n_components), as `transform` gives them: an array of the order of
        the data."""
        check_is_fitted(self)
        return data_from(X, tuple(self.factors_[1:]))

    def _held(self, X):
        check_slices(X.shape, self.result_.shape)
        stated = self.structures[0] if self.structures else None
        first = None if stated is None else resolve("structure", stated)
        first = nonnegative(for_new_rows(first, "structures[0]", "it to be nonnegative only"), "A1")
        return self.result_.factors[1:], first, self.result_.loss  # with what was estimated in `fit`

    def _in_scale(self, rows):
        return rows * self._norms_taken_out(1).astype(rows.dtype)

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
        unit = isinstance(self.normalize, bool | np.bool_) and bool(self.normalize)
        return [structure.scalable(rank) & unit for structure in bound]

    def _norms_taken_out(self, first: int) -> np.ndarray:
        """What a part of the result is times that of `factors_`, in the modes from `first` on."""
        pairs = zip(self._scalable()[first:], self.result_.factors[first:], strict=True)
        return product_of_norms([np.where(free, A, np.eye(len(A), 1)) for free, A in pairs])

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = True
        return tags


def nonnegative(stated, name: str) -> Structure:
    """A structure of the factor of this name as `NTF` takes it, nonnegativity apart."""
    return NonNegative() if stated is None else NonNegative() & stated_structure(stated, name)
