"""Every private name of scikit-learn that partwise uses, and nothing else: what may change without notice.

`tests/drop_in/test_private_names.py` has a test of each. Two more that scikit-learn reads from our estimators have to
stand in them: `_parameter_constraints`, which `fit_context` checks, and `_n_features_out`.
"""

from sklearn.base import BaseEstimator
from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

__all__ = ["Interval", "StrOptions", "check_parameters", "fit_context", "nmf_updates", "validate_params"]


def check_parameters(estimator: BaseEstimator) -> None:
    """An error where a parameter does not meet `_parameter_constraints`."""
    estimator._validate_params()


def nmf_updates():
    """scikit-learn's updates of W by coordinate descent, and of W and of H by multiplicative updates."""
    from sklearn.decomposition import _nmf  # noqa: PLC0415  # slow to import, and only `partwise bench` needs it

    return _nmf._update_coordinate_descent, _nmf._multiplicative_update_w, _nmf._multiplicative_update_h
