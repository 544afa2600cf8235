"""The function form of `NMF`, as scikit-learn has one."""

from typing import Any

import numpy as np

from ..data.validation import checked
from .base import counting
from .nmf import NMF
from .sklearn_private import check_parameters, validate_params


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "W": ["array-like", None],
        "H": ["array-like", None],
        "update_H": ["boolean"],
    },
    prefer_skip_nested_validation=False,
)
def non_negative_factorization(
    X: Any,
    W: Any = None,
    H: Any = None,
    n_components: Any = None,
    *,
    update_H: bool = True,
    mask: Any = None,
    weights: Any = None,
    **params: Any,
) -> tuple[np.ndarray, np.ndarray, int]:
    """`sklearn.decomposition.non_negative_factorization`: the function form of `NMF`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data, NaN where they are missing.
    W, H : array-like, optional
        The start, with init="custom"; with update_H=False, H is the parts to hold.
    n_components : int, "auto" or None
        As in `NMF`.
    update_H : bool
        Whether to learn H too, or only W for the given H.
    mask, weights
        Which entries of X are observed, and how much each counts, as in `NMF.fit_transform`.
    **params
        Any other parameter of `NMF`.

    Returns
    -------
    W, H, n_iter

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
    >>> W, H, n_iter = pw.non_negative_factorization(X, n_components=3, random_state=0)
    >>> W.shape, H.shape
    ((20, 3), (3, 12))
    """
    estimator = NMF(n_components=n_components, **params)
    check_parameters(estimator)
    X = checked(X, missing=estimator.missing)
    fitted = estimator._factorize if update_H else estimator._project
    result = fitted(X, W, H, counting(X.shape, mask, weights))
    return result.W, np.ascontiguousarray(result.H), result.n_iter
