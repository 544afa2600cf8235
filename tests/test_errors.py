"""Errors and warnings as the user meets them: where they point, and how often they are said."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_parts
from partwise.solvers import MU

X = make_parts(12, 8, 3, noise=0.1, random_state=0).X
FRAME = pd.DataFrame(X, columns=list("abcdefgh"))
RESULT = pw.factorize(X, 2, tol=1e-2)
HALF = s.Projection(lambda A: A / 2, nonnegative=True)  # not idempotent

WARNS = {
    "factorize": lambda: pw.factorize(X, 3, max_iter=1),
    "NMF.fit": lambda: pw.NMF(3, max_iter=1).fit(X),
    "NMF.fit_transform": lambda: pw.NMF(3, max_iter=1).fit_transform(X),
    "transform": lambda: pw.NMF(3, max_iter=1, tol=0).fit(X).set_params(tol=1e-9).transform(X),
    "non_negative_factorization": lambda: pw.non_negative_factorization(X, n_components=3, max_iter=1),
    "Dictionary": lambda: pw.Dictionary(3, nonzeros=1, max_iter=1).fit(X),
    "pipeline": lambda: make_pipeline(pw.NMF(3, max_iter=1)).fit(X),
    "a start that is ignored": lambda: pw.NMF(3, tol=0, max_iter=1).fit(X, W=X[:, :3]),
    "multiplicative updates": lambda: pw.NMF(3, init="nndsvd", solver=MU(), tol=0, max_iter=1).fit(X),
    "a projection": lambda: pw.factorize(X, 3, structure_W=HALF, max_iter=1, tol=0, n_init=1),
    "greedy": lambda: pw.factorize(X, 3, init="random", solver="greedy", max_iter=1, tol=0),
    "NTF": lambda: pw.NTF(3, init="random", max_iter=1).fit(X),
    "score": lambda: pw.NMF(3, max_iter=1, tol=0).fit(X).set_params(tol=1e-9).score(X),
    "a frame": lambda: pw.NMF(3, max_iter=1).set_output(transform="pandas").fit_transform(FRAME),
    "columns of a frame": lambda: ColumnTransformer([("nmf", pw.NMF(3, max_iter=1), list("abcde"))]).fit(FRAME),
    "cross-validation": lambda: cross_val_score(pw.NMF(3, max_iter=1), X, cv=2),
    "a grid search": lambda: GridSearchCV(make_pipeline(pw.NMF(2, max_iter=1)), {"nmf__tol": [1e-9]}, cv=2).fit(X),
    "through map": lambda: list(map(pw.NMF(3, max_iter=1).fit, [X])),
    "nothing observed": lambda: pw.factorize(X, 3, tol=1e-2).transform(np.full((1, 8), np.nan)),
    "held parts": lambda: pw.non_negative_factorization(X, X[:, :2], X[:2], 2, update_H=False),
    "select_rank": lambda: pw.select_rank(X, 2, max_iter=1, n_repeats=1, n_starts=2),
    "stability": lambda: pw.stability(X, 2, max_iter=1, n_runs=2),
    "holdout": lambda: pw.holdout(np.eye(5) + 1, 0.9),
    "Holdout.fit": lambda: pw.holdout(X).fit(3, max_iter=1),
}


@pytest.mark.parametrize("call", WARNS.values(), ids=WARNS)
def test_warnings_point_at_the_users_line(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, call.__code__.co_firstlineno)}


def spoilt(value):
    return np.where(np.arange(X.size).reshape(X.shape) == 3, value, X)


NOT_DATA = {  # with what the sentence about it says
    "NaN": (spoilt(np.nan), "1 NaN entry"),
    "sparse NaN": (sparse.csr_array(spoilt(np.nan)), "1 NaN entry"),
    "a frame with NaN": (pd.DataFrame(spoilt(np.nan)), "1 NaN entry"),
    "infinite": (spoilt(np.inf), "1 infinite entry"),
    "complex": (X + 1j, "Complex data not supported"),
    "text": (np.array([["a", "b"]]), "array of <U1"),
    "text in a frame": (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "could not convert string"),
    "objects": (np.array([[1, "b"]], dtype=object), "array of text"),
    "one dimension": (X[0], "Expected 2D array, got 1D array instead. Reshape your data"),
    "a number": (3.0, "type float"),
    "nothing": (None, "NoneType"),
    "a path": ("data.csv", "read it first, such as with partwise.read"),
    "no samples": (X[:0], "0 sample"),
    "no features": (X[:, :0], "0 feature"),
    "ragged": ([[1.0, 2.0], [3.0]], "inhomogeneous"),
}
OF_OTHERS = re.compile(r"sklearn|scikit|HistGradient|imput|estimator|site-packages|src/|\.py\b|\n", re.I)
WITHOUT_HOLES = {
    "factorize": lambda given: pw.factorize(given, 2, missing=None),
    "NMF.fit": lambda given: pw.NMF(2, missing=None).fit(given),
    "NMF.transform": lambda given: pw.NMF(2, missing=None).fit(X).transform(given),
    "NMF.score": lambda given: pw.NMF(2, missing=None).fit(X).score(given),
    "NMF.inverse_transform": lambda given: pw.NMF(2).fit(X).inverse_transform(given),
    "Dictionary": lambda given: pw.Dictionary(2, missing=None).fit(given),
    "NTF": lambda given: pw.NTF(2, missing=None).fit(given),
    "non_negative_factorization": lambda given: pw.non_negative_factorization(given, n_components=2, missing=None),
    "pipeline": lambda given: make_pipeline(pw.NMF(2, missing=None)).fit_transform(given),
    "Result.transform": lambda given: RESULT.transform(given, missing=None),
    "select_rank": lambda given: pw.select_rank(given, 2, missing=None),
    "holdout": lambda given: pw.holdout(given, missing=None),
}


@pytest.mark.parametrize("call", WITHOUT_HOLES.values(), ids=WITHOUT_HOLES)
def test_what_is_no_matrix_gets_a_sentence_of_ours(call):
    """One line, which says what is wrong, and speaks of no other library and of none of our files."""
    for given, says in NOT_DATA.values():
        with pytest.raises(ValueError) as raised:
            call(given)
        told = str(raised.value)
        if "must be an array-like" not in told:  # scikit-learn's word for parameters of functions
            assert says in told
        assert not OF_OTHERS.search(told), told


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: pw.NMF(2).fit(-X), "Negative values in data passed to partwise.*factor of pw.factorize be"),
        (lambda: pw.NMF(2).fit(X).transform(-X), "Negative values in data passed to NMF: X goes down to"),
        (lambda: pw.NMF(2).fit(X).transform(X[:, :3]), "X has 3 features, but NMF is expecting 8"),
        (lambda: pw.NMF(2).fit(X[None]), "a tensor with 3 modes, which pw.NTF and pw.factorize take"),
        (lambda: pw.NTF(2).fit(X).transform(X[:, :3]), "X has 3 features, and the parts have 8"),
        (lambda: pw.NMF(2).transform(X), "This NMF instance is not fitted yet"),
        (lambda: pw.NMF(2, init="custom").fit(X, W=spoilt(np.nan)[:, 2:4], H=X[:2]), "NaN"),
        (lambda: pw.NMF(2).fit(X, sample_weight=np.full(12, np.nan)), "NaN"),
        (lambda: pw.NMF(2).fit(X, sample_weight=[1, 2]), "one number for each of the 12 samples"),
        (lambda: pw.NMF(2).fit(X, mask=np.ones((2, 2))), "mask"),
    ],
)
def test_what_cannot_be_fitted_gets_a_sentence_of_ours(call, says):
    with pytest.raises((ValueError, TypeError), match=says) as raised:
        call()
    assert not re.search("HistGradient|impute|site-packages", str(raised.value))


@pytest.mark.parametrize("action, times", [("default", 1), ("always", 6)])
def test_a_grid_search_warns_once(action, times):
    """Candidates are off by different amounts, and all of them are one warning of one line."""
    search = GridSearchCV(
        pw.NMF(max_iter=1, random_state=0),
        {"n_components": [2, 3, 4]},
        cv=2,
        refit=False,
        scoring=lambda model, X, y=None: -model.reconstruction_err_,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        search.fit(X)
    about = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert {warning.filename for warning in about} == {__file__}
    assert len(about) == times


def test_another_line_and_another_filter_are_told_again():
    def told():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for unit in (1, 2):
                pw.factorize(unit * X, 2, max_iter=1)
            pw.factorize(X, 2, max_iter=1)
        return len(caught)

    assert told() == told() == 2
    with warnings.catch_warnings(), pytest.raises(ConvergenceWarning):
        warnings.simplefilter("error")
        pw.factorize(X, 2, max_iter=1)


def test_every_warning_goes_the_same_way():
    package = Path(pw.__file__).parent
    direct = [path.name for path in package.rglob("*.py") if "warnings.warn" in path.read_text(encoding="utf-8")]
    assert direct == ["errors.py"]
