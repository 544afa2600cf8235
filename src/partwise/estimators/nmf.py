"""scikit-learn's NMF."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_non_negative

from ..data.names import modes_of
from ..data.observed import place_of
from ..data.validation import Checked
from ..errors import warn
from ..losses import Loss
from ..registry import resolve
from ..result import Result
from ..result.transform import for_new_rows, projected
from ..solvers import HALS, MU, Solver
from ..structures import Elastic, NonNegative, Structure
from .base import MatrixModel, Model, counting, given_rank, raise_if_interrupted, select_if_open
from .sklearn_private import Interval, StrOptions, fit_context

SCIKIT_LEARNS = ("cd", "mu")  # its solvers: "cd" for least squares, "mu" for any loss
BETA_LOSSES = ("frobenius", "kullback-leibler", "itakura-saito")  # scikit-learn's names


@dataclass(eq=False, repr=False, kw_only=True)
class NMF(MatrixModel):
    """Nonnegative matrix factorization, a drop-in for `sklearn.decomposition.NMF`.

    Every parameter and attribute of scikit-learn's class is here with its meaning, but for three. `tol` is the
    stationarity at which a run ends whatever the solver (see "When a run stops" in the documentation).
    `n_components="auto"` finds the number of parts; in scikit-learn it is the number of features, with which X is
    its own parts, and which is called None here. `solver="cd"` and `"mu"` run the best solver for the loss.

    Minimises `D(X, W H) + alpha_W l1_ratio n_features |W|_1 + alpha_H l1_ratio n_samples |H|_1
    + 1/2 alpha_W (1 - l1_ratio) n_features |W|^2 + 1/2 alpha_H (1 - l1_ratio) n_samples |H|^2` over W, H >= 0, where D
    is the loss: `1/2 |X - W H|^2`, another beta-divergence, or the sum of absolute differences.

    Parameters
    ----------
    n_components : int, "auto" or None
        Number of parts. None: that of a given W or H, else the number of features. "auto": that of a given W or H, else
        as many as predict entries that were left out, and come again from other starts: `partwise.select_rank`, with
        the loss, structures and penalties of this class, in the time of some forty fits.
    init : str, Init, (W, H), Result or None
        "random", "nndsvd", "nndsvda", "nndsvdar", "spa", "greedy", "smooth-l1", "greedy-l1", or "custom" for W and H
        passed to `fit_transform`. None: "nndsvda" if n_components <= min(n_samples, n_features), else "random"; for the
        L1 loss "smooth-l1"; for solver="greedy" no parts at all.
    solver : str or Solver
        "auto" for the best that applies, "hals", "gcd", "newton_kl", "newton", "shared_newton", "mu_extrapolated",
        "weighted_median", "admm", "palm", "mixed_norm", "greedy", or a configured solver. scikit-learn's "cd" and "mu"
        say which losses may be minimised there, least squares or all, and stand for "auto" here, so that programs run
        faster as they are; `result_.solver` says what ran. Their very updates are
        `solvers.HALS(sweeps=1, extrapolate=False)` and `solvers.MU()`, which "mu" stands for with init="custom", where
        zeros of W and H are to stay zeros.
    beta_loss : str or float
        As in scikit-learn: "frobenius" (2), "kullback-leibler" (1), "itakura-saito" (0), or any number.
    tol : float
        Stationarity to reach. For solver="mu" a run also ends where scikit-learn's would: see `ftol`.
    max_iter : int
        Iterations allowed.
    random_state : int, RandomState or None
        Seed of random starts and of `shuffle`.
    alpha_W, alpha_H, l1_ratio : float
        Penalties as in the formula; `alpha_H="same"` takes the value of `alpha_W`.
    verbose : int
        Whether to print a line per iteration.
    shuffle : bool
        Whether cyclic coordinate descent takes components in a new order in each iteration.
    loss : str, number or Loss, optional
        Another way to say `beta_loss`, which also takes "kl", "l1" and loss objects; do not give both.
    structure_W, structure_H : Structure, optional
        What else is wanted of the factors, nonnegativity apart. See `partwise.structures`.
    missing : "nan", "zeros" or None
        Which entries of X are missing, and do not count: NaN; for "zeros" also what a sparse X does not store, or what
        is 0 in an array (ratings); for None none may be. D then is a sum over the entries observed.
    n_init : int or None
        Number of starts; the best is kept. None: 1, and where `admm` solves for sets that are not convex up to 4.
    normalize : "balanced", "W", "H", a pair of name and norm ("l1", "l2" or "max"), or None
        Where the scale of a part goes, as in `partwise.factorize`; None: where the run leaves it. With ("H", "l1")
        every part adds up to 1.
    sort : bool
        Whether to order parts by their norm.
    target, ftol, time_limit : float, optional
        An objective at which to stop; the fall of the error in ten iterations, as a share of the error of the start,
        below which `fit` ends (None: `tol` for solver="mu", as in scikit-learn, which 0 all but switches off, else no
        such limit); and seconds for `fit` to run at most. With n_components="auto" for its last fit.
    progress : bool or None
        Whether to draw a bar on standard error. None: if it is a terminal or a notebook.
    callbacks : sequence of callables
        Called as ``callback(record, factors)`` after every iteration; a true answer ends the run.
    checkpoint, resume : path, optional
        A file to keep the state of `fit` in, or a pair (path, seconds), and one to go on from; see
        `partwise.factorize`. Fits side by side, as in a grid search, need a file each.
    n_threads : int, optional
        Threads to use at most. None: the cores of this process, or what OMP_NUM_THREADS or threadpoolctl allow.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The parts, H.
    n_components_ : int
        Number of parts.
    reconstruction_err_ : float
        `sqrt(2 D(X, W H))`, that is `|X - W H|` for least squares; for L1 the sum of absolute differences; over the
        entries observed, by their weights.
    n_iter_ : int
        Iterations of the best start.
    result_ : Result
        Everything known about the fit: which solver ran, history, certificate, why the run ended.
    selection_ : RankSelection or None
        With n_components="auto", what speaks for this number: `sentence`, `table`, `plot.curve()`, `report(path)`.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, where X has any.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> model = pw.NMF(n_components=2, init="random", random_state=0)
    >>> W = model.fit_transform(X)
    >>> bool(np.abs(W @ model.components_ - X).max() < 0.01)
    True

    What is not known is NaN. `inverse_transform` gives all entries, from what is known of each row:

    >>> X = np.outer([1, 2, 3, 4], [1.0, 2.0, 1.0])
    >>> X[1, 2] = np.nan
    >>> model = pw.NMF(1, tol=1e-8).fit(X)
    >>> model.inverse_transform(model.transform([[np.nan, 10.0, np.nan]])).round(3)
    array([[ 5., 10.,  5.]])

    How many parts there are is found with "auto":

    >>> X = pw.datasets.make_parts(60, 40, 4, noise=0.1, random_state=0).X
    >>> model = pw.NMF("auto", random_state=0).fit(X)
    >>> model.n_components_, model.selection_.best, model.selection_.stability.n_runs
    (4, 4, 5)
    """

    n_components: int | str | None = field(default=None, kw_only=False)
    max_iter: int = 200
    normalize: Any = None
    sort: bool = False
    beta_loss: str | float = "frobenius"
    alpha_W: float = 0.0
    alpha_H: float | str = "same"
    l1_ratio: float = 0.0
    shuffle: bool = False
    loss: str | float | Loss | None = None
    structure_W: str | Structure | None = None
    structure_H: str | Structure | None = None

    _parameter_constraints: ClassVar[dict] = {
        **Model._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None, StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "beta_loss": [str, Real, Loss],  # names that are not scikit-learn's get our own sentence
        "alpha_W": [Interval(Real, 0, None, closed="left")],
        "alpha_H": [Interval(Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "normalize": [str, tuple, None],
        "shuffle": ["boolean"],
        "loss": [str, Real, Loss, None],
        "structure_W": [str, Structure, None],
        "structure_H": [str, Structure, None],
    }

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, mask: Any = None, weights: Any = None, **params: Any
    ) -> Self:
        """Learn the parts of X. The other parameters are those of `fit_transform`, W and H too.

        Returns
        -------
        self
        """
        self.fit_transform(X, sample_weight=sample_weight, mask=mask, weights=weights, **params)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        W: Any = None,
        H: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
        weights: Any = None,
    ) -> np.ndarray:
        """Learn the parts of X and return W, (n_samples, n_components).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data; on entries that are missing see the parameter `missing`.
        y : None
            Ignored.
        W, H : array-like, optional
            The start, with init="custom".
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts: one of weight 2 as much as the same sample twice.
        mask : array or sparse matrix of bool, optional
            True where an entry of X is observed; what a sparse one does not store is not.
        weights : array or sparse matrix, or pair of vectors, optional
            How much the loss of each entry counts, >= 0; what a sparse one does not store counts nothing. A pair is
            weights of rows and of columns, or None.
        """
        checked = self._validated(X, mask, weights)
        counts = counting(checked.shape, mask, weights, sample_weight)
        return self._learn(self._factorize(checked, W, H, counts, modes_of(X)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    # -- translation ---------------------------------------------------------------------------------------

    def _factorize(self, X, W, H, counts, modes=()) -> Result:
        """`counts`: the mask and the weights of entries."""
        rank, start = self._start(X, W, H)
        structure_W, structure_H = self._structures(X)
        model = {"loss": self._loss(), "structure_W": structure_W, "structure_H": structure_H, "modes": modes, **counts}
        rank, start, selection = select_if_open(self, X, rank, start, model)
        ftol = (self.tol or None) if self.ftol is None and self.solver == "mu" else self.ftol
        result = self._fitted(X, rank, start, {**model, "normalize": self.normalize, "ftol": ftol})
        self.selection_ = selection
        self._n_components = result.rank  # scikit-learn's name; solvers may need fewer parts than they may have
        if self.solver in SCIKIT_LEARNS and self._solver() == "auto":
            return dataclasses.replace(result, reason=f"solver={self.solver!r} asks for a loss: {result.reason}")
        return result

    def _project(self, X, W, H, counts) -> Result:
        """The fit with H held, with scikit-learn's rules for given W and H."""
        if W is not None:
            warn("When update_H=False, the provided initial W is not used.", RuntimeWarning)
        H = check_factor(H, (self._wanted(None), X.shape[1]), "NMF (input H)")
        if H.dtype != X.dtype:
            raise TypeError(f"H should have the same dtype as X. Got H.dtype = {H.dtype}.")
        counts = {"missing": self.missing, **counts}
        found = projected(X, (H.T,), self._structure_of_new(X), self._loss(), counts, **self._course)
        return raise_if_interrupted(found)

    def _held(self, X):
        lowest = 0.0 if place_of(X) is not None else lowest_of(X)
        if lowest < 0:
            raise ValueError(f"Negative values in data passed to NMF: X goes down to {lowest:g}. Clip it.")
        return (self.components_.T,), self._structure_of_new(X), self._fitted_loss

    @property
    def _fitted_loss(self) -> Loss:
        """With what was estimated in `fit`."""
        return self.result_.loss

    @property
    def _course(self) -> dict[str, Any]:
        return {**super()._course, "solver": self._solver()}

    def _loss(self) -> Loss:
        if self.loss is not None and self.beta_loss != "frobenius":
            raise ValueError(
                f"loss={self.loss!r} and beta_loss={self.beta_loss!r} say the same thing: give only one of them"
            )
        if not isinstance(self.beta_loss, Real) and self.beta_loss not in BETA_LOSSES:
            resolve("loss", self.beta_loss)  # it may be none at all
            raise ValueError(
                f"beta_loss takes what scikit-learn's does, a number or one of {', '.join(map(repr, BETA_LOSSES))}: "
                f"use loss={self.beta_loss!r}"
            )
        spec = self.beta_loss if self.loss is None else self.loss
        loss = resolve("loss", spec)
        if self.solver == "cd" and not loss.quadratic:
            raise ValueError(
                f"Invalid beta_loss parameter: solver {self.solver!r} does not handle beta_loss = {spec!r}"
            )
        return loss

    def _solver(self) -> Solver | str:
        if not isinstance(self.solver, str):
            return self.solver
        if self.solver == "mu" and self.init == "custom":
            return MU()  # zeros of the start stay zeros, which some users say with what they know of the parts
        if self.solver in ("auto", *SCIKIT_LEARNS):
            return HALS(shuffle=True) if self.shuffle and self._loss().quadratic else "auto"
        solver = resolve("solver", self.solver)
        if self.shuffle and isinstance(solver, HALS):
            return dataclasses.replace(solver, shuffle=True)
        return solver

    def _multiplicative(self) -> bool:
        """Whether zeros of a start stay zeros."""
        solver = self._solver()
        return isinstance(solver, MU) and not solver.extrapolate

    def _structures(self, X) -> tuple[Structure, Structure]:
        """What is wanted of W and H, with scikit-learn's penalties, which follow the size of X."""
        n_samples, n_features = X.shape
        alpha_H = self.alpha_W if self.alpha_H == "same" else self.alpha_H
        return (
            self._penalized(stated(self.structure_W), n_features * self.alpha_W),
            self._penalized(stated(self.structure_H), n_samples * alpha_H),
        )

    def _structure_of_new(self, X) -> Structure:
        """What is wanted of W for new samples."""
        structure = for_new_rows(stated(self.structure_W), "structure_W", "W to be nonnegative only")
        return self._penalized(structure, X.shape[1] * self.alpha_W)

    def _penalized(self, structure: Structure | None, alpha: float) -> Structure:
        structure = NonNegative() if structure is None else NonNegative() & structure
        return structure & Elastic(alpha * self.l1_ratio, alpha * (1 - self.l1_ratio)) if alpha else structure

    def _start(self, X, W, H) -> tuple[int | None, object]:
        """Number of parts, None where it is to be found, and `init` for `factorize`, with scikit-learn's rules for
        given W and H."""
        if self.init == "custom":
            return self._custom(X, W, H)
        if W is not None or H is not None:
            warn(
                "When init!='custom', provided W or H are ignored. Set  init='custom' to use them as initialization.",
                RuntimeWarning,
            )
        if self.init == "nndsvd" and self._multiplicative():
            warn(
                "The multiplicative update ('mu') solver cannot update zeros present in the initialization, and so "
                "leads to poorer results when used jointly with init='nndsvd'. You may try init='nndsvda' or "
                "init='nndsvdar' instead."
            )
        return self._wanted(given_rank(self.init) or (None if self.n_components == "auto" else X.shape[1])), self.init

    def _custom(self, X, W, H):
        if W is None or H is None:
            raise ValueError("init='custom' needs both W and H: pass them to fit or fit_transform")
        H = check_start(H, (self._wanted(None), X.shape[1]), "NMF (input H)")
        rank = H.shape[0]
        W = check_start(W, (X.shape[0], rank), "NMF (input W)")
        if H.dtype != X.dtype or W.dtype != X.dtype:
            raise TypeError(
                f"H and W should have the same dtype as X. Got H.dtype = {H.dtype} and W.dtype = {W.dtype}."
            )
        return rank, (W, H)

    def _wanted(self, automatic):
        """The number of parts asked for; `automatic` where the user leaves it open."""
        return automatic if self.n_components in ("auto", None) else self.n_components


def lowest_of(X: Checked) -> float:
    """The smallest entry that is not missing, if it is below 0."""
    if X.summary is not None:
        return min(X.summary.lowest, 0.0)
    return float(np.nanmin(X.data.data if issparse(X.data) else X.data, initial=0.0))


def stated(structure: Structure | str | None) -> Structure | None:
    return None if structure is None else resolve("structure", structure)


def check_start(A, shape, whom):
    """A factor to start from, with scikit-learn's sentences."""
    A = check_factor(A, shape, whom)
    if not A.any():
        raise ValueError(f"Array passed to {whom} is full of zeros.")
    return A


def check_factor(A, shape, whom):
    """A given factor against its shape (None: any size), with scikit-learn's sentences."""
    A = check_array(A)
    for axis, (expected, ordinal) in enumerate(zip(shape, ("first", "second"), strict=True)):
        if expected not in (None, A.shape[axis]):
            raise ValueError(
                f"Array with wrong {ordinal} dimension passed to {whom}. Expected {expected}, but got {A.shape[axis]}."
            )
    check_non_negative(A, whom)
    return A
