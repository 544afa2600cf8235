from functools import reduce

import numpy as np
import pytest

from partwise import datasets, metrics


@pytest.mark.slow
def test_swimmer_is_what_the_literature_says():
    swimmer = datasets.make_swimmer()
    assert swimmer.X.shape == (256, 1024)
    assert np.array_equal(swimmer.X, swimmer.W @ swimmer.H)
    assert len(np.unique(swimmer.X, axis=0)) == 256
    assert set(np.unique(swimmer.X)) == {0, 1}
    assert set(swimmer.X.sum(axis=1)) == {37}
    assert sorted(swimmer.H.sum(axis=1)) == [5] * 16 + [17]
    assert (swimmer.H @ swimmer.H.T)[~np.eye(17, dtype=bool)].max() == 0
    assert np.linalg.matrix_rank(swimmer.X) == 13


def test_planted_parts():
    parts = datasets.make_parts(50, 40, 3, zeros=0.5, random_state=0)
    assert np.array_equal(parts.X, parts.W @ parts.H)
    assert 0.3 < (parts.H == 0).mean() < 0.7
    noisy = datasets.make_parts(50, 40, 3, noise=0.1, random_state=0)
    assert (noisy.X >= 0).all()
    assert 0.02 < np.linalg.norm(noisy.X - noisy.W @ noisy.H) / np.linalg.norm(noisy.X) < 0.12


def test_digits():
    digits = datasets.load_digits()
    assert digits.X.shape == (1797, 64)
    assert digits.image_shape == (8, 8)


@pytest.mark.parametrize("shape", [(6, 5), (12, 10, 8), (6, 5, 4, 3)], ids=str)
def test_planted_cp(shape):
    planted = datasets.make_cp(shape, 3, zeros=0.7, random_state=0)
    assert np.allclose(planted.X, np.add.reduce([outer(planted.factors, k) for k in range(3)]))
    assert all(A.any(axis=0).all() for A in planted.factors)
    listed = datasets.make_cp(shape, 3, zeros=0.7, sparse=True, random_state=0).X
    assert np.allclose(listed.toarray(), planted.X)
    assert listed.nnz == np.count_nonzero(planted.X)
    noisy = datasets.make_cp(shape, 3, zeros=0.2, noise=0.05, random_state=0)
    clean = datasets.make_cp(shape, 3, zeros=0.2, random_state=0)
    assert 0.03 < np.linalg.norm(noisy.X - clean.X) / np.linalg.norm(clean.X) <= 0.05 + 1e-12
    assert noisy.X.min() >= 0


def outer(factors, k):
    return reduce(np.multiply.outer, [A[:, k] for A in factors])


def test_fluorescence_is_of_three_analytes():
    data = datasets.make_fluorescence(noise=0, random_state=0)
    assert data.X.shape == (5, 201, 61) == tuple(map(len, data.factors))
    assert list(data.modes) == ["sample", "emission", "excitation"]
    assert np.linalg.matrix_rank(data.X.reshape(5, -1)) == 3
    assert metrics.core_consistency(data.X, data) == pytest.approx(100)
    assert metrics.uniqueness(data).unique
    assert np.array_equal(data.factors[0][:3], np.eye(3))  # pure samples
    assert all((np.diff(np.sign(np.diff(column))) != 0).sum() == 1 for column in data.factors[1].T)  # one peak


def test_contacts_are_between_people_of_a_group():
    data = datasets.make_contacts(random_state=0)
    X = data.X.toarray()
    assert X.shape == (60, 60, 40)
    assert np.array_equal(X, X.transpose(1, 0, 2))
    assert not X[range(60), range(60)].any()
    same = data.groups[:, None] == data.groups
    assert X[same].sum() > 0.85 * X.sum()
    assert np.array_equal(np.unique(data.groups, return_counts=True)[1], [12] * 5)
    busy = [X[np.ix_(data.groups == g, data.groups == g)].sum(axis=(0, 1)) for g in range(5)]
    assert all(np.corrcoef(times, data.schedule[:, g])[0, 1] > 0.9 for g, times in enumerate(busy))
    assert len(data.values) < 0.2 * X.size
