"""What is said to be certain is true."""

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import structures as s
from partwise.datasets import make_parts
from partwise.result import certificate

X = make_parts(40, 25, 6, noise=0.3, random_state=0).X
STORES = [np.asarray, np.asfortranarray, sparse.csr_array, lambda X: np.ascontiguousarray(X.T).T]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("transpose", [False, True])
def test_eckart_young(store, transpose):
    Y = X.T if transpose else X
    result = pw.factorize(store(Y), 4, random_state=0)
    optimality = result.certify(store(Y))
    singular = np.linalg.svd(Y, compute_uv=False)
    best = np.sqrt(np.square(singular[4:]).sum() / np.square(singular).sum())
    assert optimality.rigorous
    assert best * (1 - 1e-9) <= optimality.bound <= best
    assert optimality.relative_error == pytest.approx(result.relative_error)
    assert optimality.excess == pytest.approx(result.relative_error / best - 1, rel=1e-6)
    assert f"at most {100 * optimality.excess:.3g}% above the best possible at rank 4" in str(optimality)


@pytest.mark.slow
def test_large_data_get_an_estimate_that_says_so(monkeypatch):
    exact = pw.factorize(X, 4, random_state=0).certify(X)
    monkeypatch.setattr(certificate, "FULL_SIDE", 10)
    for store in STORES:
        estimate = pw.factorize(store(X), 4, random_state=0).certify(store(X))
        assert not estimate.rigorous
        assert str(estimate).startswith("estimate: ")
        assert estimate.bound == pytest.approx(exact.bound, rel=1e-3)


def test_exact_fits_get_the_absolute_gap():
    planted = make_parts(20, 15, 3, random_state=0)
    result = pw.factorize(planted.X, 3, init=(planted.W, planted.H), max_iter=3)
    optimality = result.certify(planted.X)
    assert optimality.bound == 0
    assert "at rounding level" in str(optimality)
    assert optimality.gap < 1e-7


@pytest.mark.slow
def test_float32_bound_holds():
    result = pw.factorize(X.astype(np.float32), 4, random_state=0)
    singular = np.linalg.svd(X.astype(np.float32).astype(float), compute_uv=False)
    best = np.sqrt(np.square(singular[4:]).sum() / np.square(singular).sum())
    assert result.certify(X.astype(np.float32)).bound <= best


def test_all_zero_data():
    result = pw.factorize(np.zeros((4, 3)), 2)
    assert result.certify(np.zeros((4, 3))).gap == 0
    assert result.certificate.feasible
    assert result.certificate.stationary


def test_the_error_is_that_of_the_fit_not_of_the_penalised_objective():
    result = pw.factorize(
        X, 4, structure_W=s.NonNegative() & s.L2(1.0), structure_H=s.NonNegative() & s.L2(1.0), random_state=0
    )
    actual = np.linalg.norm(X - result.W @ result.H) / np.linalg.norm(X)
    assert result.certify(X).relative_error == pytest.approx(actual)
    assert result.objective > result.fit


def test_other_data_is_refused():
    result = pw.factorize(X, 2, random_state=0)
    with pytest.raises(ValueError, match=r"X has shape \(25, 40\), but this result is of one of shape \(40, 25\)"):
        result.certify(X.T)


def test_certificate_in_words():
    result = pw.factorize(X, 2, random_state=0)
    assert str(result.certificate).splitlines()[0] == "feasible: yes"
    assert "stationary: yes" in str(result.certificate)
    off = certificate.Certificate((0.0, 1e-3), 0.5, 1e-4, (), 3, False, None)
    assert "no, off by up to 1.0e-03" in str(off)
    assert "stationary: no" in str(off)
