"""Tensors of other libraries, where these are installed."""

from types import SimpleNamespace

import numpy as np
import pytest

import partwise as pw
from partwise import metrics
from partwise.data.foreign import foreign, kruskal_factors

RNG = np.random.default_rng(0)
T = RNG.uniform(size=(4, 3, 5)) * (RNG.uniform(size=(4, 3, 5)) < 0.4)
FACTORS = [RNG.uniform(size=(n, 2)) for n in T.shape]
WEIGHTS = np.array([2.0, 3.0])
MODEL = np.einsum("z,iz,jz,kz->ijk", WEIGHTS, *FACTORS)


def dense(found):
    if isinstance(found, np.ndarray):
        return found
    X = np.zeros(found.shape)
    np.add.at(X, tuple(found.coords.T), found.values)
    return X


def test_arrays_are_not_foreign():
    assert foreign(T) is None
    assert foreign([[1, 2]]) is None
    assert foreign(SimpleNamespace(coords=1, data=2)) is None
    assert kruskal_factors(FACTORS) is None


@pytest.mark.parametrize("kind", ["COO", "GCXS", "DOK"])
def test_sparse(kind):
    library = pytest.importorskip("sparse", reason="sparse is not installed")
    found = foreign(getattr(library, kind).from_numpy(T))
    assert found.coords.shape == (np.count_nonzero(T), 3)
    assert np.array_equal(dense(found), T)
    with pytest.raises(ValueError, match=r"X, of type sparse.COO, .* not listed are 1.0 there, and must be 0 here"):
        foreign(library.COO.from_numpy(T, fill_value=1.0))


def test_tensorly():
    library = pytest.importorskip("tensorly", reason="TensorLy is not installed")
    cp = library.cp_tensor.CPTensor((WEIGHTS, FACTORS))
    assert np.allclose(foreign(cp), MODEL)
    assert foreign(library.tensor(T)) is None  # it is NumPy's
    assert np.allclose(np.einsum("iz,jz,kz->ijk", *kruskal_factors(cp)), MODEL)
    assert metrics.factor_match(cp, FACTORS) == pytest.approx(1)
    assert metrics.core_consistency(MODEL, cp) == pytest.approx(100)
    tucker = library.tucker_tensor.TuckerTensor((np.eye(6)[:2, :4].reshape(2, 2, 2), FACTORS))
    assert np.allclose(foreign(tucker), tucker.to_tensor())


def test_pyttb():
    library = pytest.importorskip("pyttb", reason="pyttb is not installed")
    assert np.array_equal(foreign(library.tensor(T)), T)
    sparse = foreign(library.tensor(T).to_sptensor())
    assert sparse.coords.shape == (np.count_nonzero(T), 3)
    assert np.array_equal(dense(sparse), T)
    kruskal = library.ktensor(FACTORS, WEIGHTS)
    assert np.allclose(foreign(kruskal), MODEL)
    assert np.allclose(np.einsum("iz,jz,kz->ijk", *kruskal_factors(kruskal)), MODEL)


def test_all_of_them_are_factorized():
    library = pytest.importorskip("sparse", reason="sparse is not installed")
    tensorly = pytest.importorskip("tensorly", reason="TensorLy is not installed")
    pyttb = pytest.importorskip("pyttb", reason="pyttb is not installed")
    expected = pw.factorize(T, 2, random_state=0)
    for given in (library.COO.from_numpy(T), pyttb.tensor(T), pyttb.tensor(T).to_sptensor()):
        found = pw.factorize(given, 2, random_state=0)
        assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    cp = tensorly.cp_tensor.CPTensor((WEIGHTS, FACTORS))
    for model in (cp, pyttb.ktensor(FACTORS, WEIGHTS)):
        assert pw.factorize(model, 2, init=model, random_state=0).relative_error < 1e-8
    matrix = library.COO.from_numpy(T[0])
    assert np.allclose(
        pw.NMF(2, random_state=0).fit(matrix).components_, pw.NMF(2, random_state=0).fit(T[0]).components_
    )
