"""The private names of scikit-learn that partwise uses: each is there, and does what `sklearn_private.py` relies on."""

import ast
import importlib
from numbers import Integral
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin

import partwise
from partwise.estimators import sklearn_private as private

CHANGED = f"scikit-learn {sklearn.__version__} changed {{}}: mend src/partwise/estimators/sklearn_private.py"

NAMES = {
    "sklearn.base": ["_fit_context", "BaseEstimator._validate_params"],
    "sklearn.utils._param_validation": ["Interval", "StrOptions", "validate_params"],
    "sklearn.decomposition._nmf": [
        "_update_coordinate_descent",
        "_multiplicative_update_w",
        "_multiplicative_update_h",
    ],
}

rng = np.random.default_rng(0)
X, W, H = rng.uniform(size=(6, 5)), rng.uniform(size=(6, 2)), rng.uniform(size=(2, 5))


@pytest.mark.parametrize("module, name", [(module, name) for module, names in NAMES.items() for name in names])
def test_the_name_is_there(module, name):
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        pytest.fail(CHANGED.format(f"{module}.{name}"))


def private_imports(path):
    """`module.name` of everything private that a file takes from scikit-learn."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "sklearn" in text or "_validate_params" in text else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
            full = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            full = [alias.name for alias in node.names if alias.name.startswith("sklearn")]
        else:
            full = ["sklearn._validate_params"] if getattr(node, "attr", None) == "_validate_params" else []
        yield from (name for name in full if any(part.startswith("_") for part in name.split(".")))


def test_private_names_are_in_one_file():
    package = Path(partwise.__file__).parent
    users = {path.name: names for path in package.rglob("*.py") if (names := list(private_imports(path)))}
    assert list(users) == ["sklearn_private.py"], f"private names of scikit-learn elsewhere: {users}"


def test_intervals():
    whole = private.Interval(Integral, 1, None, closed="left")
    assert [whole.is_satisfied_by(value) for value in (0, 1, 2.5)] == [False, True, False], CHANGED.format("Interval")


def test_options():
    words = private.StrOptions({"auto"})
    assert [words.is_satisfied_by(value) for value in ("auto", "x")] == [True, False], CHANGED.format("StrOptions")


def test_parameters_of_functions():
    check = private.validate_params({"flag": ["boolean"]}, prefer_skip_nested_validation=False)

    @check
    def function(flag):
        return flag

    assert function(True), CHANGED.format("validate_params")
    with pytest.raises(ValueError, match=r"'flag' parameter of .*function must be"):
        function("x")


class Estimator(ClassNamePrefixFeaturesOutMixin, BaseEstimator):
    _parameter_constraints = {"count": [private.Interval(Integral, 1, None, closed="left")]}  # noqa: RUF012
    _n_features_out = 2

    def __init__(self, count=1):
        self.count = count

    @private.fit_context(prefer_skip_nested_validation=True)
    def fit(self, X):
        return X


def test_parameters_of_estimators():
    assert Estimator().fit(5) == 5, CHANGED.format("_fit_context")
    for check in (lambda: Estimator(0).fit(5), lambda: private.check_parameters(Estimator(0))):
        with pytest.raises(ValueError, match="'count' parameter of Estimator must be"):
            check()


def test_names_of_features():
    assert list(Estimator().get_feature_names_out()) == ["estimator0", "estimator1"], CHANGED.format("_n_features_out")


def test_coordinate_descent_updates_in_place():
    update, _, _ = private.nmf_updates()
    new, Ht = W.copy(), np.ascontiguousarray(H.T)
    update(X, new, Ht, 0.0, 0.0, False, np.random.RandomState(0))
    assert np.square(X - new @ H).sum() < np.square(X - W @ H).sum(), CHANGED.format("_update_coordinate_descent")


def test_multiplicative_updates_return():
    _, update_w, update_h = private.nmf_updates()
    new, *_ = update_w(X, W.copy(), H, 2.0, 0.0, 0.0, 1.0)
    assert np.allclose(new, W * (X @ H.T) / (W @ H @ H.T)), CHANGED.format("_multiplicative_update_w")
    new = update_h(X, W, H.copy(), 2.0, 0.0, 0.0, 1.0)
    assert np.allclose(new, H * (W.T @ X) / (W.T @ W @ H)), CHANGED.format("_multiplicative_update_h")
