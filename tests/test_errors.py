"""Errors and warnings as the user meets them: where they point, and how often they are said."""

import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_parts
from partwise.solvers import MU

X = make_parts(12, 8, 3, noise=0.1, random_state=0).X
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
}


@pytest.mark.parametrize("call", WARNS.values(), ids=WARNS)
def test_warnings_point_at_the_users_line(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, call.__code__.co_firstlineno)}


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
