"""Hold-out: which entries are hidden, that nothing else changes, and that scores tell the truth."""

import doctest
import tracemalloc
import warnings
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import partwise as pw
from partwise.errors import IncompatibleError

from .covering import EACH
from .trials.losses import Huber

module = import_module("partwise.holdout")
LOSSES = ["frobenius", "kl", "itakura-saito", 1.5, 0.5, "l1", "huber(0.5)", Huber(0.5)]
names = [str(loss) for loss in LOSSES]


def counts(shape, mean=1.0, seed=0):
    """Nonnegative data with many zeros."""
    return np.random.default_rng(seed).poisson(mean, shape).astype(float)


def tensor(array):
    coords = np.argwhere(array)
    return pw.SparseTensor(coords, array[tuple(coords.T)], array.shape)


def storages(X):
    """The same entries, zeros and all, in all ways to hold them."""
    if X.ndim == 2:
        yield from (sparse.csr_array(X), sparse.csc_array(X), sparse.coo_array(X), pd.DataFrame(X))
    yield from (X, np.asfortranarray(X), X.astype(np.float32), tensor(X), np.ma.masked_array(X))


def holey(X, share=0.3, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def same(a, b):
    return a.share == b.share and np.array_equal(a.places, b.places) and np.array_equal(a.values, b.values)


# -- which entries -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*every row and column keeps")
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("shape", [(30, 20), (3, 3), (12, 9, 7), (6, 5, 4, 3), (400, 2)])
def test_about_the_share_is_hidden_and_every_row_keeps_entries(shape, blocks):
    X = counts(shape)
    for share in (0.02, 0.1, 0.37, 0.5):
        held = pw.holdout(X, share, blocks)
        wanted = max(1, round(share * X.size))
        assert held.n_hidden == len(held.values) == len(held.places) == len(np.unique(held.places))
        assert held.share == held.n_hidden / X.size
        # one block is at most as large as what is wanted; where rows would lose all, fewer are hidden
        assert wanted * (0.5 if min(shape) <= 3 or blocks else 1) <= held.n_hidden <= wanted * (1.5 if blocks else 1)
        assert np.array_equal(X[held.hidden], held.values)
        assert held.mask.sum() == X.size - held.n_hidden
        for mode in range(X.ndim):
            assert np.moveaxis(held.mask, mode, 0).reshape(shape[mode], -1).any(axis=1).all()


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("shape", [(30, 20), (9, 8, 7)])
def test_the_same_entries_are_hidden_whatever_the_storage(shape, blocks):
    X = counts(shape)
    first = pw.holdout(X, 0.2, blocks, 3)
    for other in storages(X):
        assert same(pw.holdout(other, 0.2, blocks, 3), first)
    assert not np.array_equal(pw.holdout(X, 0.2, blocks, 4).places, first.places)
    generators = [np.random.default_rng(5) for _ in range(2)]
    assert same(*(pw.holdout(X, 0.2, blocks, generator) for generator in generators))


@pytest.mark.filterwarnings("ignore:.*every row and column keeps")
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_only_observed_entries_are_hidden_whichever_way_that_is_said(share, blocks):
    X = counts((40, 30))
    holes = holey(X, share)
    seen = ~np.isnan(holes)
    rows, columns = np.nonzero(seen)
    first = pw.holdout(holes, 0.2, blocks)
    assert seen[first.hidden].all()
    assert not np.isnan(first.values).any()
    ways = [
        pw.holdout(X, 0.2, blocks, mask=seen),
        pw.holdout(X, 0.2, blocks, mask=sparse.csr_array(seen)),
        pw.holdout(sparse.csr_array(X), 0.2, blocks, mask=seen),
        pw.holdout(sparse.csr_array(X), 0.2, blocks, mask=sparse.csr_array(seen)),
        pw.holdout(X, 0.2, blocks, weights=np.where(seen, 2.5, 0)),
        pw.holdout(sparse.coo_array((X[seen], (rows, columns)), shape=X.shape), 0.2, blocks, missing="zeros"),
    ]
    assert all(same(way, first) for way in ways)


def test_only_stored_entries_are_hidden_where_zeros_are_missing():
    X = sparse.random_array((300, 200), density=0.05, rng=np.random.default_rng(0)).tocsr()
    held = pw.holdout(X, 0.2, missing="zeros")
    assert held.n_hidden == round(0.2 * X.nnz)
    assert (held.values > 0).all()
    assert held.left.data.n_observed == X.nnz - held.n_hidden
    counted = pw.holdout(X, 0.2)  # zeros count, and most of what is hidden are zeros
    assert 0.9 < np.mean(counted.values == 0) < 1


def test_rows_and_columns_keep_their_last_entry():
    X = np.full((12, 12), np.nan)
    np.fill_diagonal(X, 1.0)
    with pytest.raises(ValueError, match="no entry of X can be hidden: 12 are observed"):
        pw.holdout(X, 0.5)
    X[0, :6] = 1.0  # the diagonal is all that the other rows have, so the first row alone can give entries away
    with pytest.warns(UserWarning, match="were to be hidden, and"):
        held = pw.holdout(X, 0.9)
    rows, columns = held.hidden
    assert (rows == 0).all()
    assert (columns > 0).all()
    with pytest.warns(UserWarning, match="every row and column keeps 1"):
        few = pw.holdout(np.ones((3, 3)), 0.85)
    assert few.mask.any(axis=0).all()
    assert few.mask.any(axis=1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pw.holdout(np.ones((3, 3)), 0.1, True).n_hidden == 1


def test_rows_without_observations_stay_so():
    X = counts((20, 15)) + 1
    X[4], X[:, 7] = np.nan, np.nan
    held = pw.holdout(X, 0.3)
    assert not np.isin(held.hidden[0], 4).any()
    with pytest.warns(UserWarning, match="nothing is observed in 1 row and 1 column"):
        result = held.fit(2, random_state=0)
    assert np.isfinite(held.score(result).value)


@pytest.mark.parametrize("blocks", [False, True])
def test_rows_that_count_nothing_are_not_hidden(blocks):
    X, rows, columns = counts((20, 15)), np.ones(20), np.linspace(1, 2, 15)
    rows[[3, 8]] = columns[2] = 0
    vectors = pw.holdout(X, 0.3, blocks, weights=(rows, columns))
    assert (vectors.weights > 0).all()
    assert vectors.n_hidden == pytest.approx(0.3 * 18 * 14, abs=30 if blocks else 0.5)
    assert vectors.share == vectors.n_hidden / (18 * 14)
    for storage in storages(X):
        assert same(pw.holdout(storage, 0.3, blocks, weights=(rows, columns)), vectors)
    if not blocks:
        assert same(pw.holdout(X, 0.3, weights=np.outer(rows, columns)), vectors)


def test_blocks_are_runs_of_neighbours():
    held = pw.holdout(np.ones((50, 40)), 0.1, blocks=True)
    hidden = ~held.mask
    assert (hidden.sum(axis=1) == 4).all()  # every row loses the same share, in one piece
    assert (hidden.sum(axis=0) == 5).all()
    assert (np.diff(hidden.astype(int), axis=1) == 1).sum() + hidden[:, 0].sum() == 50
    spectra = pw.holdout(np.ones((6, 200)), 0.25, blocks=True)
    assert spectra.mask.any(axis=0).all()
    assert 0.15 < spectra.share < 0.35


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 0.9])
def test_rows_and_columns_hang_together_beside_blocks(share):
    left = pw.holdout(np.ones((60, 60)), share, blocks=True).mask
    graph = sparse.block_array([[None, sparse.csr_array(left)], [sparse.csr_array(left.T), None]])
    assert sparse.csgraph.connected_components(graph)[0] == 1


def test_numbers_are_drawn_without_repetition_and_each_as_often_as_any_other():
    rng = np.random.RandomState(0)
    for count, below in ((3, 10), (5, 10), (9, 10)):
        tally = np.zeros(below)
        for _ in range(2000):
            numbers = module.distinct_numbers(count, below, rng)
            assert len(np.unique(numbers)) == count
            tally[numbers] += 1
        expected = 2000 * count / below
        assert np.abs(tally - expected).max() < 5 * np.sqrt(expected)  # five standard deviations
    places = module.distinct_numbers(1000, 1 << 62, rng)
    assert places.max() > 1 << 60


def test_of_huge_sparse_data_few_entries_are_hidden_and_nothing_dense_is_made(monkeypatch):
    monkeypatch.setattr(module, "MOST_HIDDEN", 20_000)
    X = sparse.random_array((40_000, 50_000), density=1e-5, rng=np.random.default_rng(0)).tocsr()
    for blocks in (False, True):
        tracemalloc.start()
        with pytest.warns(UserWarning, match=r"share=0\.1 of the 2000000000 observed entries .* 20000 are, 1e-05"):
            held = pw.holdout(X, 0.1, blocks)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 10_000 <= held.n_hidden <= 30_000
        assert held.share == held.n_hidden / 2e9
        assert peak < 50e6  # some arrays of 20000 entries; X itself would have 16 GB
        score = held.score((np.full((40_000, 1), 1e-3), np.full((1, 50_000), 1e-3)), "kl")
        assert np.isfinite(score.value)
    with pytest.raises(ValueError, match="too many entries"):
        _ = held.mask


def test_blocks_that_are_too_large_to_list_are_refused():
    T = pw.SparseTensor([[0] * 6, [9] * 6], [1.0, 2.0], (10_000,) * 5 + (10,))
    with pytest.raises(ValueError, match="fewer than 2\\^63"):
        pw.holdout(T)
    T = pw.SparseTensor([[0, 0, 0], [1, 1, 1]], [1.0, 2.0], (1 << 20, 1 << 20, 1 << 10))
    with pytest.raises(ValueError, match="a block of X would have"), pytest.warns(UserWarning, match="more than"):
        pw.holdout(T, 1e-3, blocks=True)


# -- what is left --------------------------------------------------------------------------------------


@EACH
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
@pytest.mark.parametrize("kind", ["plain", "holes", "weights", "vectors"])
@pytest.mark.parametrize("shape", [(20, 15), (8, 7, 6)])
def test_fits_are_those_of_x_with_the_hidden_entries_masked(shape, kind):
    X = counts(shape, 3.0)
    rng = np.random.default_rng(0)
    given = {
        "plain": {},
        "holes": {"mask": rng.random(shape) < 0.8},
        "weights": {"weights": rng.random(shape) + 0.1},
        "vectors": {"weights": tuple(rng.random(dim) + 0.1 for dim in shape)},
    }[kind]
    for storage in (X, np.asfortranarray(X), tensor(X)):
        held = pw.holdout(storage, 0.2, **given)
        settings = {"init": "random", "max_iter": 5, "tol": 0, "random_state": 0}
        found = held.fit(2, **settings)
        joined = {**given, "mask": held.mask & given.get("mask", True)}
        wanted = pw.factorize(X, 2, **joined, **settings)
        assert found.objective == pytest.approx(wanted.objective, rel=1e-9)  # rounding of sums in another order
        for A, B in zip(found.factors, wanted.factors, strict=True):
            np.testing.assert_allclose(A, B, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(20, 15), (8, 7, 6)])
def test_a_mask_may_lie_in_memory_in_another_order_than_x(shape):
    X, mask = counts(shape, 3.0), np.random.default_rng(0).random(shape) < 0.8
    settings = {"init": "random", "random_state": 0}
    first = pw.factorize(X, 2, mask=mask, **settings)
    turned = pw.factorize(X, 2, mask=np.asfortranarray(mask), **settings)
    assert turned.objective == first.objective
    assert turned.relative_error == first.relative_error


def test_hidden_entries_have_no_say_in_the_fit():
    X = counts((20, 15), 3.0)
    held = pw.holdout(X, 0.2)
    spoilt = X.copy()
    spoilt[held.hidden] = 1000.0
    fits = [pw.holdout(given, 0.2).fit(3, random_state=0) for given in (X, spoilt)]
    for A, B in zip(*(fit.factors for fit in fits), strict=True):
        np.testing.assert_array_equal(A, B)


@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
def test_settings_of_factorize_are_taken_and_data_are_stated_once():
    X = counts((20, 15), 3.0)
    held = pw.holdout(X, 0.2)
    one = held.fit(1, loss="kl", random_state=0, modes=["cell", "gene"])
    assert [mode.name for mode in one.modes] == ["cell", "gene"]
    more = held.fit(1, loss="kl", init=one, max_iter=1)
    assert more.fit <= one.fit * (1 + 1e-12)  # a warm start goes on from there
    for said in ({"mask": np.ones(X.shape, bool)}, {"missing": "zeros"}, {"missing": "nan"}, {"weights": None}):
        with pytest.raises(ValueError, match=f"fit has {next(iter(said))} from pw.holdout: state it there"):
            held.fit(2, **said)
    with pytest.raises(ValueError, match="rank must be a whole number"):
        held.fit(0)
    assert repr(held) == "<partwise hold-out: 60 entries of X, 20 x 15, are hidden, 0.2 of those observed>"


# -- scores --------------------------------------------------------------------------------------------


def brute(held, X, weights, factors, loss):
    """Mean losses of the hidden entries, from the whole model: of it, and of the null model."""
    loss = pw.registry.resolve("loss", loss)
    subscripts = ",".join(f"{letter}z" for letter in "abcd"[: X.ndim])
    Y = np.einsum(f"{subscripts}->{'abcd'[: X.ndim]}", *factors)
    hidden, left = ~held.mask, held.mask & (weights > 0)
    mean = np.sum(np.abs(X[left]) * weights[left]) / weights[left].sum()
    null = np.full(X.shape, loss.null(mean))
    x, w = X[hidden], weights[hidden]
    return (sum(loss.value(*one) for one in zip(x, model[hidden], w, strict=True)) / w.sum() for model in (Y, null))


@EACH
@pytest.mark.parametrize("loss", LOSSES, ids=names)
@pytest.mark.parametrize("shape", [(30, 20), (9, 8, 7)])
def test_scores_are_mean_losses_of_the_hidden_entries(shape, loss):
    rng = np.random.default_rng(0)
    X = counts(shape) + (1.0 if loss in ("itakura-saito", 0.5) else 0)  # the former is infinite at zeros
    factors = [rng.random((dim, 3)) + 0.1 for dim in shape]
    stated = [factors[0], factors[1].T] if len(shape) == 2 else factors
    weights, vectors = rng.random(shape) + 0.1, tuple(rng.random(dim) + 0.1 for dim in shape)
    along = vectors[0]
    for vector in vectors[1:]:
        along = np.multiply.outer(along, vector)
    for storage in storages(X):
        for given, counted in ((None, np.ones(shape)), (weights, weights), (vectors, along)):
            held = pw.holdout(storage, 0.2, weights=given)
            score = held.score(stated, loss)
            rel = 1e-6 if getattr(storage, "dtype", None) == np.float32 else 1e-11  # weights are float32, too
            value, null = brute(held, X, counted, factors, loss)
            assert score.value == pytest.approx(value, rel=rel)
            if null:
                assert score.null == pytest.approx(null, rel=rel)
                assert score.explained == pytest.approx(1 - value / null, rel=1e-5)
                assert score.relative == pytest.approx((value / null) ** score.loss.error_power, rel=1e-5)
            assert score.n_hidden == held.n_hidden
            assert float(score) == score.value


def test_a_score_is_that_of_the_loss_of_the_result_and_takes_any_model():
    X = counts((30, 20), 3.0)
    held = pw.holdout(X, 0.2)
    result = held.fit(2, loss="kl", random_state=0)
    score = held.score(result)
    assert score == held.score((result.W, result.H), "kl") == held.score(held.predict(result), pw.losses.KL())
    np.testing.assert_allclose(held.predict(result), (result.W @ result.H)[held.hidden], rtol=1e-12)
    assert held.score((result.W, result.H)).loss == pw.losses.Frobenius()
    least = held.score(result, "frobenius")
    assert least.error == pytest.approx(np.sqrt(np.mean(np.square(held.values - held.predict(result)))))
    assert least.relative == pytest.approx(least.error / np.sqrt(np.mean(np.square(held.values))))
    absolute = held.score(result, "l1")
    assert absolute.error == pytest.approx(np.abs(held.values - held.predict(result)).mean())
    model = pw.NMF(2, random_state=0).fit(X)
    assert held.score(model) == held.score(model.result_)
    assert str(score).startswith("KL() = ")
    assert "over 120 hidden entries, the null model" in str(score)
    assert str(score).endswith("of the deviance explained")


def test_predictions_are_made_in_blocks(monkeypatch):
    held = pw.holdout(counts((30, 20), 3.0), 0.2)
    result = held.fit(3, random_state=0)
    whole = held.score(result, "kl")
    monkeypatch.setattr(module, "BLOCK", 7)
    assert held.score(result, "kl").value == pytest.approx(whole.value, rel=1e-12)


def test_infinite_losses_are_floored_and_counted():
    X = counts((30, 20), 3.0) + 1
    held = pw.holdout(X, 0.2)
    W, H = np.ones((30, 1)), np.ones((1, 20))
    W[held.hidden[0][:1]] = 0
    n_zero = np.count_nonzero(held.hidden[0] == held.hidden[0][0])
    score = held.score((W, H), "kl")
    assert np.isfinite(score.value)
    assert score.unreached == n_zero
    assert f"{n_zero} positive entries have a model of 0" in str(score)
    assert held.score((W, H)).unreached == 0


@pytest.mark.parametrize("loss", ["frobenius", "kl", "l1"])
def test_scores_follow_the_units_of_x_however_extreme(loss):
    X = counts((30, 20), 3.0)
    factors = np.random.default_rng(1).random((30, 2)), np.random.default_rng(2).random((2, 20))
    one = pw.holdout(X).score(factors, loss)
    for exponent in (-900, 900):
        unit = 2.0**exponent
        score = pw.holdout(X * unit).score((factors[0] * unit, factors[1]), loss)
        assert score.relative == pytest.approx(one.relative, rel=1e-12)
        assert score.error == pytest.approx(one.error * unit ** (score.loss.degree * score.loss.error_power), rel=1e-12)


@pytest.mark.parametrize("loss", ["frobenius", "kl", "l1"])
def test_constant_data_are_predicted_whole(loss):
    held = pw.holdout(np.full((12, 10), 3.0))
    score = held.score((np.full((12, 1), 3.0), np.ones((1, 10))), loss)
    assert score.relative < 1e-7
    assert score.explained == pytest.approx(1)
    zeros = pw.holdout(np.zeros((12, 10)))
    score = zeros.score((np.zeros((12, 1)), np.zeros((1, 10))))
    assert (score.value, score.relative, score.explained) == (0, 0, 1)


# -- scores tell the truth -----------------------------------------------------------------------------


def planted(shape, rank, background, seed=0):
    """A model of `rank + 1` parts, one of them constant, so that noise need not be cut at 0; and what noise is from."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(0.5, size=(dim, rank)) for dim in shape]
    modes = "abc"[: len(shape)]
    return background + np.einsum(f"{','.join(mode + 'z' for mode in modes)}->{modes}", *factors), rng


def curve(held, ranks, **settings):
    return {rank: held.score(held.fit(rank, random_state=0, **settings)).value for rank in ranks}


# A fit of n entries by p parameters predicts others with `1 + p / n` times the noise: 2% here for the planted rank. The
# noise of n hidden entries is known to `sqrt(2 / n)`, 1%.


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [False, True])
def test_least_squares_scores_are_the_noise_at_the_planted_rank(blocks):
    signal, rng = planted((400, 300), 2, 1.0)
    scores = curve(pw.holdout(signal + 0.1 * rng.standard_normal(signal.shape), 0.1, blocks), (2, 3, 15))
    assert 2 * scores[3] == pytest.approx(0.01, rel=0.05)
    assert scores[2] > 1.2 * scores[3]
    assert scores[15] > 1.05 * scores[3]


@pytest.mark.slow
def test_scores_of_counts_are_lowest_at_the_planted_rank():
    signal, rng = planted((300, 200), 2, 0.2)
    signal *= 3
    held = pw.holdout(sparse.csr_array(rng.poisson(signal).astype(float)), 0.1)
    scores = curve(held, (1, 3, 15), loss="kl")
    assert scores[3] == pytest.approx(held.score(signal[held.hidden], "kl").value, rel=0.05)
    assert scores[1] > 1.2 * scores[3]
    assert scores[15] > 1.05 * scores[3]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
def test_scores_of_absolute_differences_are_the_noise_at_the_planted_rank():
    signal, rng = planted((200, 150), 1, 1.0)
    held = pw.holdout(signal + rng.laplace(scale=0.1, size=signal.shape), 0.1)
    scores = curve(held, (1, 2, 8), loss="l1", max_iter=60)
    assert scores[2] == pytest.approx(0.1, rel=0.05)  # the mean of |x| under Laplace noise is its scale
    assert scores[1] > 1.2 * scores[2]
    assert scores[8] > 1.02 * scores[2]


def test_scores_of_tensors_are_the_noise_at_the_planted_rank():
    signal, rng = planted((40, 35, 30), 2, 0.5)
    held = pw.holdout(signal + 0.1 * rng.standard_normal(signal.shape), 0.1)
    scores = curve(held, (2, 3, 12))
    assert 2 * scores[3] == pytest.approx(0.01, rel=0.05)
    assert scores[2] > 1.2 * scores[3]
    assert scores[12] > 1.02 * scores[3]


def test_blocks_are_not_predicted_by_neighbours():
    """Noise that neighbours share: single entries are predicted better the more parts there are, blocks are not."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 160)
    parts = np.array([np.exp(-((x - c) ** 2) / 0.01) for c in (0.2, 0.5, 0.8)])
    noise = rng.standard_normal((120, 160 + 9))
    smooth = sum(noise[:, k : k + 160] for k in range(10)) / np.sqrt(10)
    X = rng.gamma(1.0, size=(120, 3)) @ parts + 1 + 0.2 * smooth
    single, blocks = (curve(pw.holdout(X, 0.1, way), (4, 20)) for way in (False, True))
    assert single[20] < 0.6 * single[4]
    assert blocks[20] > blocks[4]


# -- sentences -----------------------------------------------------------------------------------------


def test_predictions_of_all_entries_are_taken_where_they_are_hidden():
    X = np.random.default_rng(0).uniform(size=(12, 8))
    held = pw.holdout(X, 0.2)
    result = held.fit(2, random_state=0)
    assert held.score(result.reconstruct()).value == pytest.approx(held.score(result).value, rel=1e-12)
    assert held.score(X).value == 0


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, np.nan, "0.1", None, True])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="share must be a number between 0 and 1"):
        pw.holdout(np.ones((4, 4)), share)


def test_what_cannot_be_is_said():
    X = np.ones((4, 4))
    with pytest.raises(ValueError, match="blocks must be True or False"):
        pw.holdout(X, 0.1, 3)
    with pytest.raises(ValueError, match="would hide all of the 16 observed entries"):
        pw.holdout(X, 0.99)
    with pytest.raises(ValueError, match="would hide all of the 1 observed entries"):
        pw.holdout([[1.0]])
    with pytest.raises(ValueError, match="no entry of X can be hidden"):
        pw.holdout(np.ones((1, 9)))
    with pytest.raises(ValueError, match="no entry of X is observed"):
        pw.holdout(np.full((3, 3), np.nan))
    held = pw.holdout(X)
    with pytest.raises(ValueError, match=r"factors of shapes \[\(4, 2\), \(5, 2\)\], tall, and X has shape \(4, 4\)"):
        held.score((np.ones((4, 2)), np.ones((2, 5))))
    with pytest.raises(TypeError, match=r"a model is a Result, a fitted estimator, or \(W, H\); got str"):
        held.score("nmf")
    with pytest.raises(ValueError, match="predictions must be 2 finite numbers"):
        held.score(np.ones(3))
    for model in ((-np.ones((4, 1)), np.ones((1, 4))), -np.ones((4, 4))):
        with pytest.raises(ValueError, match=r"KL.* takes predictions >= 0, and the smallest is -1: set"):
            held.score(model, "kl")
    with pytest.raises(ValueError, match=r"this NMF is not fitted yet: call its fit first"):
        held.score(pw.NMF(2))
    with pytest.raises(ValueError, match=r"or an array of the shape of X, \(4, 4\); got one of shape \(4, 5\)"):
        held.score(np.ones((4, 5)))
    with pytest.raises(ValueError, match="no value before its delta is estimated"):
        held.score((np.ones((4, 1)), np.ones((1, 4))), "huber")
    with pytest.raises(IncompatibleError, match="zero_weight, is one more way to say what entries count"):
        held.score((np.ones((4, 1)), np.ones((1, 4))), pw.losses.L1(zero_weight=0.5))


def test_the_example_runs():
    failures, tests = doctest.testmod(module)
    assert failures == 0
    assert tests > 0
