"""Every loss: derivative, minimum, zeros, both float types, units."""

import numpy as np
import pytest

from .tables import LOSSES

losses = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
X = np.array([[0.0, 1.0, 2.5], [4.0, 0.0, 0.3]])
Y = np.array([[0.2, 1.5, 2.0], [3.0, 0.1, 0.6]])


@losses
def test_gradient_is_the_derivative(loss):
    step = 1e-6
    for index in np.ndindex(Y.shape):
        E = np.zeros_like(Y)
        E[index] = step
        slope = (loss.value(X, Y + E) - loss.value(X, Y - E)) / (2 * step)
        assert slope == pytest.approx(loss.gradient(X, Y)[index], rel=1e-6, abs=1e-8)


@losses
def test_smallest_where_equal(loss):
    P = X + 0.1
    assert loss.value(P, P) == pytest.approx(0, abs=1e-12)
    assert np.allclose(loss.gradient(P, P), 0)
    for E in np.random.default_rng(0).normal(size=(50, *X.shape)):
        assert loss.value(P, P + 0.01 * np.abs(E)) > 0


@losses
def test_float32_is_summed_in_double_precision(loss):
    assert loss.value(X.astype(np.float32), Y.astype(np.float32)) == pytest.approx(loss.value(X, Y), rel=1e-6)
    assert loss.gradient(X.astype(np.float32), Y.astype(np.float32)).dtype == np.float32


@losses
def test_degree_tells_how_it_follows_units(loss):
    assert loss.value(8 * X, 8 * Y) == pytest.approx(8**loss.degree * loss.value(X, Y), rel=1e-12)
