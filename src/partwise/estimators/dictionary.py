"""A dictionary for sparse representation, with scikit-learn's interface."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..data.names import modes_of
from ..factorize import factorize
from ..init import Init
from ..result import Result
from ..result.transform import projected_rows
from ..run.progress import print_line
from ..solvers import Solver
from ..structures import NonNegative, Sparse, Structure, UnitNorm
from .base import MISSING_CONSTRAINT, Model, counting, raise_if_interrupted
from .sklearn_private import Interval, fit_context


class Dictionary(Model):
    """Atoms of norm 1, of which every sample is a combination of a few:

        minimise 1/2 |X - W H|^2  over  |H[k, :]| = 1 and at most `nonzeros` nonzeros in each row of W.

    Parameters
    ----------
    n_components : int or None
        Number of atoms, which may exceed the number of features. None: the latter.
    nonzeros : int
        How many atoms a sample may use.
    positive_code, positive_dict : bool
        Whether weights and atoms are nonnegative.
    missing : "nan", "zeros" or None
        Which entries of X are missing, and do not count: NaN; for "zeros" also what a sparse X does not store, or what
        is 0 in an array; for None none may be.
    solver : str or Solver
        "auto" takes "admm"; "palm" is quicker and less thorough; or a configured solver.
    init : str, Init, (W, H), Result or None
        Where to start. None: at random.
    n_init : int or None
        Number of starts; the best is kept. None: up to 4, until one fits exactly.
    max_iter : int
        Iterations allowed for one start.
    tol : float
        Stationarity to reach (see "When a run stops" in the documentation).
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
    components_ : ndarray of shape (n_components, n_features)
        The atoms, H.
    n_components_ : int
        Number of atoms.
    n_iter_ : int
        Iterations of the best start.
    reconstruction_err_ : float
        `|X - W H|`.
    result_ : Result
        Everything known about the fit: history, certificate, why the run ended.
    n_features_in_ : int
        Features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has any.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> planted = pw.datasets.make_sparse_codes(300, 12, 20, nonzeros=2, random_state=0)
    >>> model = pw.Dictionary(20, nonzeros=2, random_state=0)
    >>> codes = model.fit_transform(planted.X)
    >>> int((codes != 0).sum(axis=1).max())
    2
    >>> bool(np.abs(codes @ model.components_ - planted.X).max() < 1e-3)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012  # scikit-learn reads this name
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "nonzeros": [Interval(Integral, 1, None, closed="left")],
        "positive_code": ["boolean"],
        "positive_dict": ["boolean"],
        "missing": MISSING_CONSTRAINT,
        "solver": [str, Solver],
        "init": [str, Init, tuple, list, Result, None],
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callbacks": [tuple, list],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components=None,
        *,
        nonzeros=3,
        positive_code=False,
        positive_dict=False,
        missing="nan",
        solver="auto",
        init=None,
        n_init=1,
        max_iter=2000,
        tol=1e-4,
        random_state=None,
        verbose=0,
        callbacks=(),
        n_threads=None,
    ):
        self.n_components = n_components
        self.nonzeros = nonzeros
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.missing = missing
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.n_threads = n_threads

    def fit(self, X, y=None, *, sample_weight=None, mask=None, weights=None):
        """Learn the atoms. `sample_weight`, `mask` and `weights` are those of `NMF.fit_transform`."""
        self.fit_transform(X, sample_weight=sample_weight, mask=mask, weights=weights)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None, *, sample_weight=None, mask=None, weights=None):
        """Learn the atoms and return the codes of X, (n_samples, n_components)."""
        checked = self._validated(X, mask, weights)
        atoms = UnitNorm(per="component")
        result = factorize(
            checked,
            self.n_components or checked.shape[1],
            structure_W=self._codes,
            structure_H=NonNegative() & atoms if self.positive_dict else atoms,
            solver=self.solver,
            init=self.init,
            n_init=self.n_init,
            callbacks=[*self.callbacks, *([print_line] if self.verbose else [])],
            missing=self.missing,
            **counting(checked.shape, mask, weights, sample_weight),
            **self._course,
            modes=modes_of(X),
            progress=False,
        )
        return self._learn(raise_if_interrupted(result))

    def transform(self, X, *, mask=None, weights=None):
        """The codes of X in the atoms, each row on its own, from what is observed of it: orthogonal matching pursuit,
        then exchanges of atoms while they gain."""
        check_is_fitted(self)
        X = self._validated(X, mask, weights, reset=False)
        counts = {"missing": self.missing, "mask": mask, "weights": weights}
        return projected_rows(X, (self.components_.T,), self._codes, self.result_.loss, counts, **self._course)

    @property
    def _codes(self) -> Structure:
        """What is asked of the codes."""
        codes: Structure = Sparse(self.nonzeros, per="item")
        return NonNegative() & codes if self.positive_code else codes

    @property
    def _course(self) -> dict[str, Any]:
        """How fits run."""
        return {name: getattr(self, name) for name in ("max_iter", "tol", "n_threads", "random_state")}
