"""Counts are held a second time in single precision, where X is large: the same bits come out."""

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise.data import sparse as storage
from partwise.data.sparse import Sparse, narrow_type


def counts():
    rng = np.random.default_rng(0)
    return sparse.csr_array(rng.poisson(rng.gamma(0.4, size=(90, 3)) @ rng.gamma(0.4, size=(3, 70))).astype(float))


# what reads X by columns: products, sums, rows of every kind of kernel
CALLS = {
    "least squares": {},
    "greedy coordinates": {"solver": "gcd"},
    "kl": {"loss": "kl"},
    "kl, multiplicative": {"loss": "kl", "solver": "mu"},
    "beta": {"loss": 1.5},
    "l1": {"loss": "l1"},
    "huber": {"loss": "huber(0.5)"},
    "ratings": {"missing": "zeros"},
    "spa": {"init": "spa"},
}


@pytest.mark.parametrize(
    "stated",
    [CALLS["least squares"], *(pytest.param(CALLS[name], marks=pytest.mark.slow) for name in CALLS)],
)
def test_the_same_bits(monkeypatch, stated):
    X = counts()
    plain = pw.factorize(X, 3, max_iter=5, tol=0, random_state=0, **stated)
    monkeypatch.setattr(storage, "NARROW_FROM", 0)
    narrow = pw.factorize(X, 3, max_iter=5, tol=0, random_state=0, **stated)
    assert np.array_equal(plain.W, narrow.W)
    assert np.array_equal(plain.H, narrow.H)
    assert plain.objective == narrow.objective


def test_only_numbers_that_are_the_same(monkeypatch):
    assert narrow_type(np.ones(3)) == np.float64  # few
    monkeypatch.setattr(storage, "NARROW_FROM", 0)
    assert Sparse.of(counts()).turned.dtype == np.float32
    assert Sparse.of(counts() * 0.1).turned.dtype == np.float64
    for value in (2.0**24 + 1, 1e39, 1e-50, 0.1):
        assert narrow_type(np.array([1.0, value])) == np.float64
    assert narrow_type(np.ones(3, np.float32)) == np.float32


@pytest.mark.parametrize("shape, density", [((300, 200), 0.1), ((1, 50), 0.5), ((50, 1), 0.5), ((3000, 2000), 0.3)])
def test_columns_are_those_of_scipy(shape, density, monkeypatch):
    monkeypatch.setattr("partwise.kernels.threads.CHUNK_WORK", 1000)  # so that there are several chunks
    X = sparse.random_array(shape, density=density, format="csr", rng=np.random.default_rng(0))
    turned, known = Sparse.of(X).turned, X.tocsc()
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(turned, name), getattr(known, name))
