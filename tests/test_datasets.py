import numpy as np

from partwise import datasets


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
