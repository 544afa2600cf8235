"""A dictionary for sparse representation, with scikit-learn's interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ..data.names import modes_of
from ..structures import NonNegative, Sparse, Structure, UnitNorm
from .base import MatrixModel, Model, counting
from .sklearn_private import Interval, fit_context


@dataclass(eq=False, repr=False, kw_only=True)
class Dictionary(MatrixModel):
    """Atoms of norm 1, of which every sample is a combination of a few::

        minimise 1/2 |X - W H|^2  over  |H[k, :]| = 1 and at most `nonzeros` nonzeros in each row of W.

    `transform` codes new samples by orthogonal matching pursuit, then exchanges atoms while that gains.

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
    target, ftol, time_limit : float, optional
        An objective at which to stop, a fall of the error that is too slow to go on, and seconds for `fit` to run at
        most, as in `partwise.factorize`.
    progress, checkpoint, resume, sort
        A bar, files to keep the state of `fit` in and to go on from, and whether atoms are ordered by their norm, as in
        `partwise.factorize`.
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
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
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

    n_components: int | None = field(default=None, kw_only=False)
    nonzeros: int = 3
    positive_code: bool = False
    positive_dict: bool = False
    n_init: int | None = 1
    max_iter: int = 2000

    _parameter_constraints: ClassVar[dict] = {
        **Model._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "nonzeros": [Interval(Integral, 1, None, closed="left")],
        "positive_code": ["boolean"],
        "positive_dict": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, mask: Any = None, weights: Any = None
    ) -> np.ndarray:
        """Learn the atoms and return the codes of X, (n_samples, n_components)."""
        checked = self._validated(X, mask, weights)
        atoms = UnitNorm(per="component")
        model = {
            "structure_W": self._codes,
            "structure_H": NonNegative() & atoms if self.positive_dict else atoms,
            "modes": modes_of(X),
            **counting(checked.shape, mask, weights, sample_weight),
        }
        return self._learn(self._fitted(checked, self.n_components or checked.shape[1], self.init, model))

    def _held(self, X):
        return (self.components_.T,), self._codes, self.result_.loss

    @property
    def _codes(self) -> Structure:
        """What is asked of the codes."""
        codes: Structure = Sparse(self.nonzeros, per="item")
        return NonNegative() & codes if self.positive_code else codes
