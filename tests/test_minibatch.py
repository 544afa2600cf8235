"""MiniBatchNMF beside the batch solver, and its own promises; scikit-learn's tests are in tests/drop_in."""

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import losses
from partwise.data import as_data
from partwise.problem import pose
from partwise.structures import NonNegative

RNG = np.random.default_rng(0)
X = RNG.gamma(0.5, size=(400, 4)) @ RNG.gamma(0.5, size=(4, 30)) + 0.2 * RNG.uniform(size=(400, 30))
COUNTS = RNG.poisson(2 * RNG.gamma(0.5, size=(2000, 4)) @ RNG.gamma(0.5, size=(4, 30)) + 0.2).astype(float)


def objective(parts, loss=None, data=X):
    """With the best W for these parts."""
    loss = loss or losses.Frobenius()
    given = pw.factorize(data, len(parts), loss=loss, structure_H=pw.structures.Fixed(parts), tol=1e-5, init="random")
    return pose(as_data(data), loss, (NonNegative(),) * 2, len(parts)).precise_fit((given.W, parts.T.copy()))


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("beta_loss", "size"), [("frobenius", 50), ("kullback-leibler", 400)])
def test_three_passes_come_within_half_a_percent_of_the_batch_solver(beta_loss, size, fresh):
    """On counts, where noise is what is left in the end. Kullback-Leibler needs larger batches for that: it ends 0.53%
    above with 200 samples."""
    given = {"beta_loss": beta_loss, "init": "random", "random_state": 0}
    course = {"batch_size": size, "max_iter": 3, "tol": 0, "max_no_improvement": None, "fresh_restarts": fresh}
    model, batch = pw.MiniBatchNMF(4, **given, **course).fit(COUNTS), pw.NMF(4, **given, max_iter=300).fit(COUNTS)
    loss = pw.registry.resolve("loss", beta_loss)
    found, best = (objective(parts, loss, COUNTS) for parts in (model.components_, batch.components_))
    assert found < 1.005 * best
    assert (model.n_iter_, model.n_steps_) == (3, 3 * 2000 // size)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_passes_end_at_a_stationary_point():
    """Nothing is forgotten, so that statistics are those of all of X."""
    given = {"batch_size": 100, "forget_factor": 1.0, "tol": 0, "max_no_improvement": None}
    model = pw.MiniBatchNMF(4, max_iter=300, init="random", random_state=0, **given)
    W = model.fit_transform(X)
    problem = pose(as_data(X), losses.Frobenius(), (NonNegative(),) * 2, 4)
    assert problem.stationarity((W, model.components_.T.copy())) < 1e-4


@pytest.mark.parametrize("seed", [2, 3, 42])
def test_an_exact_fit_is_followed_to_its_end_whatever_the_storage(seed):
    """Where nothing is left of the objective, its rounding does not end the fit."""
    exact = np.abs(np.random.RandomState(seed).randn(10, 10)) * (np.arange(10) % 2)
    model = pw.MiniBatchNMF(5, init="random", random_state=0, tol=0, max_iter=200)
    dense, of_sparse = (model.fit_transform(kind(exact)) for kind in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(dense, of_sparse, atol=1e-12)


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler", 1.5])
def test_a_stream_is_learnt(beta_loss):
    model = pw.MiniBatchNMF(4, beta_loss=beta_loss, random_state=0, forget_factor=0.9)
    loss, seen = pw.registry.resolve("loss", beta_loss), []
    best = objective(pw.NMF(4, beta_loss=beta_loss, random_state=0, max_iter=500).fit(X).components_, loss)
    for number in range(8):
        model.partial_fit(X[50 * number : 50 * (number + 1)])
        seen.append(objective(model.components_, loss))
    assert model.n_steps_ == 8
    assert seen[0] > 1.05 * best  # one batch is not enough
    assert seen[-1] < 1.02 * best


def test_a_fit_is_its_batches():
    """One pass with W begun anew is `partial_fit` of the batches, if these are told what the whole is."""
    H = RNG.uniform(size=(4, 30))
    given = {"batch_size": 100, "init": "custom", "tol": 0, "forget_factor": 1.0}
    whole = pw.MiniBatchNMF(4, fresh_restarts=True, max_iter=1, **given).fit(X, W=np.ones((400, 4)), H=H)
    parts = pw.MiniBatchNMF(4, **given)
    for start in range(0, 400, 100):
        parts.partial_fit(X[start : start + 100], W=np.ones((100, 4)), H=H)
    assert np.allclose(whole.components_, parts.components_, rtol=1e-10)
    assert np.array_equal(H, H.copy())


def test_sparse_batches_are_dense_ones():
    models = [pw.MiniBatchNMF(4, batch_size=64, init="random", random_state=0, max_iter=2, tol=0) for _ in range(2)]
    counts = np.floor(X)
    W, V = (
        model.fit_transform(store(counts)) for model, store in zip(models, (np.asarray, sparse.csr_array), strict=True)
    )
    assert np.allclose(W, V, rtol=1e-7, atol=1e-9)


def test_blocks_are_told_what_to_do(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="call partial_fit with one block of X after the other"):
        pw.MiniBatchNMF(4).fit(pw.open(tmp_path / "x.npy"))


def test_a_stream_that_begins_with_zeros_is_learnt():
    model = pw.MiniBatchNMF(4, random_state=0).partial_fit(np.zeros((50, 30)))
    model.partial_fit(X)
    assert model.n_steps_ == 2
    assert objective(model.components_) < 1.5 * objective(pw.NMF(4, random_state=0).fit(X).components_)


def test_a_start_is_kept_while_a_stream_is_zero():
    """Whatever penalties would make of it."""
    W, H = RNG.uniform(size=(50, 4)), RNG.uniform(size=(4, 30))
    model = pw.MiniBatchNMF(4, init="custom", alpha_H=0.1).partial_fit(np.zeros((50, 30)), W=W, H=H)
    assert np.array_equal(model.components_, H)
    assert np.any(model.partial_fit(X).components_ != H)


def test_missing_entries_are_refused_in_words_of_this_class():
    holes = np.where(X > 1, np.nan, X)
    with pytest.raises(ValueError, match=r"Fill them in, or drop the rows or columns that hold them\.$"):
        pw.MiniBatchNMF(4).fit(holes)
