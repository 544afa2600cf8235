"""Every loss: derivative, minimum, zeros, both float types, units."""

import numpy as np
import pytest
from sklearn.decomposition._nmf import _beta_divergence

from partwise.data import as_data
from partwise.losses import KL, Beta, Frobenius, ItakuraSaito

from .tables import LOSSES

losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
COUNTS = np.array([[0.0, 1.0, 2.5], [4.0, 0.0, 0.3]])
Y = np.array([[0.2, 1.5, 2.0], [3.0, 0.1, 0.6]])


def data_for(loss):
    """With zeros, where the loss takes them."""
    return COUNTS if loss.refuses(0.0, nonnegative=True) is None else COUNTS + 0.4


@losses
def test_gradient_is_the_derivative(loss):
    X, step = data_for(loss), 1e-6
    for index in np.ndindex(Y.shape):
        E = np.zeros_like(Y)
        E[index] = step
        slope = (loss.value(X, Y + E) - loss.value(X, Y - E)) / (2 * step)
        assert slope == pytest.approx(loss.gradient(X, Y)[index], rel=1e-6, abs=1e-8)


@losses
def test_smallest_where_equal(loss):
    P = COUNTS + 0.1
    assert loss.value(P, P) == pytest.approx(0, abs=1e-12)
    assert np.allclose(loss.gradient(P, P), 0)
    for E in np.random.default_rng(0).normal(size=(50, *COUNTS.shape)):
        assert loss.value(P, P + 0.01 * np.abs(E)) > 0


@pytest.mark.slow
@losses
def test_float32_is_summed_in_double_precision(loss):
    X = data_for(loss)
    assert loss.value(X.astype(np.float32), Y.astype(np.float32)) == pytest.approx(loss.value(X, Y), rel=1e-6)
    assert loss.gradient(X.astype(np.float32), Y.astype(np.float32)).dtype == np.float32


@losses
def test_degree_tells_how_it_follows_units(loss):
    X = data_for(loss)
    assert loss.in_units(-3).value(8 * X, 8 * Y) == pytest.approx(8**loss.degree * loss.value(X, Y), rel=1e-12)


def test_members_of_the_family_agree_at_their_limits():
    X, Y = COUNTS + 0.4, np.array([[0.2, 1.5, 2.0], [3.0, 0.1, 0.6]])
    for beta, loss in ((2, Frobenius()), (1, KL()), (0, ItakuraSaito())):
        assert Beta(beta).value(X, Y) == loss.value(X, Y)
        assert Beta(beta + 1e-7).value(X, Y) == pytest.approx(loss.value(X, Y), rel=1e-5)
        assert np.allclose(Beta(beta + 1e-7).gradient(X, Y), loss.gradient(X, Y), rtol=1e-5)


@pytest.mark.parametrize("beta", [0, 1, 2])
@pytest.mark.parametrize("distance", [1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
def test_values_are_continuous_in_beta(beta, distance):
    """In NumPy and compiled: to first order the value changes evenly to both sides, with all its digits."""
    X = COUNTS + 0.4 * (beta == 0)
    A, B = np.array([[0.5, 0.1], [1.5, 0.2]]), np.array([[1.0, 0.1], [0.3, 2.0], [2.0, 0.7]])
    middle = Beta(beta).value(X, A @ B.T)
    below, above = (Beta(beta + sign * distance) for sign in (-1, 1))
    for value in (lambda loss: loss.value(X, A @ B.T), lambda loss: loss.direct_fit(as_data(X), (A, B))):
        assert value(above) == pytest.approx(middle, rel=20 * distance + 1e-14)
        assert (value(below) + value(above)) / 2 == pytest.approx(middle, rel=100 * distance**2 + 1e-14)


def test_values_are_those_of_scikit_learn():
    X = COUNTS + 0.4
    W, H = np.array([[0.5], [1.5]]), np.array([[1.0, 0.3, 2.0]])
    for beta in (-1, 0, 0.5, 1, 1.5, 2, 3):
        assert Beta(beta).value(X, W @ H) == pytest.approx(_beta_divergence(X, W, H, beta), rel=1e-12)


def test_a_model_of_zero_is_held_above_it():
    """The loss is finite, and far above that of a model which is merely bad."""
    for loss in (KL(), ItakuraSaito()):
        assert np.isfinite(loss.value(np.ones((1, 1)), np.zeros((1, 1))))
        assert loss.value(np.ones((1, 1)), np.zeros((1, 1))) > loss.value(np.ones((1, 1)), np.full((1, 1), 1e-9)) + 5


@pytest.mark.parametrize("beta", [np.nan, np.inf, "1", True, None])
def test_beta_must_be_a_number(beta):
    with pytest.raises(ValueError, match="beta must be a finite number"):
        Beta(beta)
