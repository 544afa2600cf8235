"""scikit-learn's own tests of NMF and MiniBatchNMF, run on ours: the module is loaded with our names in the place of
theirs.

Left out, and only these: what concerns private functions alone, and a test that compares an array with itself.
"""

import importlib.util

import pytest
import sklearn.decomposition

import partwise as pw

from ..covering import PAIRS

pytestmark = PAIRS

ITSELF = "scikit-learn's class writes to the H that it is given, which both models there are given"
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


SUITE = load_suite()
TESTS = {name: test for name, test in vars(SUITE).items() if name.startswith("test_")}
globals().update({name: test for name, test in TESTS.items() if name not in LEFT_OUT})


def test_the_suite_is_ours():
    assert SUITE.NMF is pw.NMF
    assert SUITE.MiniBatchNMF is pw.MiniBatchNMF
    assert SUITE.non_negative_factorization is pw.non_negative_factorization
    assert set(LEFT_OUT) <= set(TESTS), "scikit-learn renamed a test: look at the list again"
    assert len(TESTS) - len(LEFT_OUT) >= 28
