"""scikit-learn's own tests of NMF, run on ours: the module is loaded with our names in the place of theirs.

Left out, and only these: what concerns `MiniBatchNMF` or private functions alone.
"""

import importlib.util

import pytest
import sklearn.decomposition
from sklearn.decomposition import MiniBatchNMF

import partwise as pw

from ..covering import PAIRS

pytestmark = PAIRS

MINI_BATCH = "tests MiniBatchNMF alone"
PRIVATE = "tests private functions of scikit-learn alone"

LEFT_OUT = {
    "test_initialize_nn_output": PRIVATE,
    "test_initialize_close": PRIVATE,
    "test_initialize_variants": PRIVATE,
    "test_beta_divergence": PRIVATE,
    "test_special_sparse_dot": PRIVATE,
    "test_nmf_underflow": PRIVATE,
    "test_minibatch_nmf_transform": MINI_BATCH,
    "test_mbnmf_inverse_transform": MINI_BATCH,
    "test_minibatch_nmf_negative_beta_loss": MINI_BATCH,
    "test_minibatch_nmf_partial_fit": MINI_BATCH,
    "test_minibatch_nmf_verbose": MINI_BATCH,
    "test_nmf_minibatchnmf_equivalence": MINI_BATCH,
}


def load_suite():
    """The test module with our class and function under scikit-learn's names."""
    spec = importlib.util.find_spec("sklearn.decomposition.tests.test_nmf")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.decomposition, "NMF", pw.NMF)
        patch.setattr(sklearn.decomposition, "non_negative_factorization", pw.non_negative_factorization)
        spec.loader.exec_module(module)
    return module


def with_our_rows(test):
    """The test without the rows of its tables that name MiniBatchNMF."""
    for mark in getattr(test, "pytestmark", []):
        if mark.name == "parametrize":
            names, rows = mark.args[:2]
            kept = [row for row in rows if (row[0] if isinstance(row, list) else row) is not MiniBatchNMF]
            object.__setattr__(mark, "args", (names, kept, *mark.args[2:]))
    return test


SUITE = load_suite()
TESTS = {name: test for name, test in vars(SUITE).items() if name.startswith("test_")}
globals().update({name: with_our_rows(test) for name, test in TESTS.items() if name not in LEFT_OUT})


def test_the_suite_is_ours():
    assert SUITE.NMF is pw.NMF
    assert SUITE.non_negative_factorization is pw.non_negative_factorization
    assert set(LEFT_OUT) <= set(TESTS), "scikit-learn renamed a test: look at the list again"
    assert len(TESTS) - len(LEFT_OUT) >= 23
