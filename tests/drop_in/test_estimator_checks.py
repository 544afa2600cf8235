"""scikit-learn's contract for estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import partwise as pw

# These compare two fits to seven digits, one with a sample of weight 2 and one with the sample twice, and by default
# that is 30 parts of 15 samples, begun at random: the two end at different ones of many optima. That runs from one
# start are the same is tested in tests/test_missing_surface.py.
REASON = "runs that begin at random with other numbers of samples end at other optima"
CHECKS = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]


# other types compile all kernels once more; other solvers and dictionaries have the code of NMF and MiniBatchNMF
@pytest.mark.slow_cases(
    r"^(Dictionary|NMF\(solver=)|check_estimators_dtypes|preserve_dtypes"
    r"|^MiniBatchNMF\(\)-check_(?!transformer_general)"
)
@parametrize_with_checks(
    [pw.NMF(), pw.NMF(solver="cd"), pw.NMF(solver="gcd"), pw.MiniBatchNMF(), pw.Dictionary(3, nonzeros=1, max_iter=40)],
    expected_failed_checks=lambda estimator: dict.fromkeys(CHECKS, REASON),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimator(estimator, check):
    check(estimator)
