"""scikit-learn's contract for estimators, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import partwise as pw


@parametrize_with_checks(
    [pw.NMF(), pw.NMF(solver="cd"), pw.NMF(solver="gcd"), pw.Dictionary(3, nonzeros=1, max_iter=40)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimator(estimator, check):
    check(estimator)
