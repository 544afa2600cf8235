"""Methods of rank selection: what each predicts, and that it knows nothing of it."""

import math
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise.data.hiding import Grid
from partwise.data.observed import observed
from partwise.data.part import part
from partwise.holdout import model_at
from partwise.selection import base
from partwise.selection.base import Test as Entries  # pytest collects what is called Test
from partwise.selection.base import total
from partwise.selection.blocks import Blocks
from partwise.selection.rule import Window
from partwise.selection.setting import Setting
from partwise.selection.speckled import Speckled
from partwise.selection.thinning import Thinning
from partwise.structures import L2, Fixed, Free, NonNegative, Simplex, Smooth, UnitNorm

from .covering import EACH

METHODS = {"speckled": Speckled(), "blocks": Blocks(), "thinning": Thinning()}
LOSSES = [("speckled", "frobenius"), ("blocks", "frobenius"), *((name, "kl") for name in METHODS)]


def sum_of_parts(factors):
    return np.einsum("ir,jr->ij" if len(factors) == 2 else "ir,jr,kr->ijk", *factors)


def planted(shape=(40, 30), rank=3, mean=20.0, seed=0):
    """Counts of a sum of sparse parts."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(0.5, size=(dim, rank)) for dim in shape]
    model = sum_of_parts(factors)
    return rng.poisson(mean * model / model.mean()).astype(float)


def tensor(array):
    coords = np.argwhere(array)
    return pw.SparseTensor(coords, array[tuple(coords.T)], array.shape)


def setting(X, loss="kl", structures=(None, None, None), words=None, **counts):
    return Setting.of(X, loss, structures, counts, dict(words or {}))


def path(method, X, ranks, loss="kl", seed=0, **words):
    """Outcomes by rank, each from the last, with losses in the units of X."""
    problem = setting(X, loss, **words)
    assert METHODS[method].refuses(problem, 1) is None
    split, found, last = METHODS[method].split(problem, 0.1, seed), {}, None
    for rank in ranks:
        found[rank] = last = split.fit(rank, rank, found.get(1), last)
    unit = 2.0 ** (problem.exponent * problem.loss.degree)
    return {rank: replace(outcome, held_out=unit * outcome.held_out) for rank, outcome in found.items()}


def losses(outcomes):
    return np.array([outcome.held_out for outcome in outcomes.values()])


def arrays(outcome):
    return [A for factors in outcome.factors for A in factors]


# -- all of them ---------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(("method", "loss"), LOSSES)
def test_same_seed_same_bits(method, loss):
    X = planted((12, 9))
    one, again, other = (path(method, X, (1, 2), loss, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(losses(one), losses(again))
    assert all(map(np.array_equal, arrays(one[2]), arrays(again[2])))
    assert not np.array_equal(losses(one), losses(other))


@pytest.mark.slow_cases("blocks")
@EACH
@pytest.mark.parametrize(("method", "loss"), LOSSES)
def test_planted_rank_is_found(method, loss):
    X = planted()
    curves = [total(list(path(method, X, range(1, 7), loss, seed=seed).values())) for seed in range(2)]
    assert Window.of(dict(zip(range(1, 7), np.mean(curves, axis=0), strict=True))).near == 3


@pytest.mark.parametrize(("method", "loss"), LOSSES)
def test_what_is_fitted_is_told_in_the_units_of_what_is_predicted(method, loss):
    """A model of one part where there is no more: with a parameter for every 15 entries the one is 0.88 of the other
    on average, (1 - p) / (1 + p), in cells 0.8, and varies by 0.11 where 120 entries are predicted."""
    X = np.random.default_rng(0).poisson(50.0, (40, 30)).astype(float)
    (outcome,) = path(method, X, (1,), loss).values()
    fitted, predicted = outcome.training / outcome.n_training, outcome.held_out.sum() / outcome.counted.sum()
    assert 0.5 < fitted / predicted < 1.2  # three standard deviations


@EACH
@pytest.mark.parametrize("shape", [(20, 15), (6, 5, 5)])
@pytest.mark.parametrize("method", ["speckled", "blocks"])
def test_what_is_predicted_was_not_seen(method, shape):
    X = planted(shape)
    split = METHODS[method].split(setting(X), 0.1, 0)
    tests = [split.test] if method == "speckled" else list(split.tests.values())
    before = path(method, X, (1, 2))
    for number, test in list(enumerate(tests))[:2]:
        other = X.copy()
        other.flat[test.places[len(test.places) // 2]] += 1000
        after = path(method, other, (1, 2))
        again = METHODS[method].split(setting(other), 0.1, 0)
        same = again.test if method == "speckled" else list(again.tests.values())[number]
        np.testing.assert_array_equal(same.largest, test.largest)
        assert same.mean == test.mean
        for rank in (1, 2):
            assert all(map(np.array_equal, before[rank].factors[number], after[rank].factors[number]))
        assert after[2].held_out.sum() > before[2].held_out.sum() + 1000


@pytest.mark.slow_cases("blocks")
@EACH
@pytest.mark.parametrize(("method", "loss"), LOSSES)
def test_storage_does_not_matter(method, loss):
    """Few zeros are not stored here, and all of them are predicted."""
    X = planted((12, 9), mean=1.0)
    expected = path(method, X, (1, 2), loss)
    for other in (sparse.csr_array(X), np.asfortranarray(X), tensor(X)):
        found = path(method, other, (1, 2), loss)
        np.testing.assert_allclose(losses(found), losses(expected), rtol=1e-9, atol=1e-9 * losses(expected).max())
        np.testing.assert_array_equal(found[2].counted, expected[2].counted)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "loss"), LOSSES)
def test_tensors(method, loss):
    """Both ways to store one; halves are small, and any rank is fitted."""
    X = planted((10, 9, 8), rank=2)
    dense, listed = path(method, X, (1, 2, 3), loss), path(method, tensor(X), (1, 2), loss)
    np.testing.assert_allclose(losses(listed), losses(dense)[:2], rtol=1e-8, atol=1e-8 * losses(dense).max())
    assert Window.of({rank: outcome.held_out.sum() for rank, outcome in dense.items()}).near == 2


@EACH
@pytest.mark.parametrize("unit", [2.0**40, 1e-3])
@pytest.mark.parametrize(("method", "loss"), LOSSES[:-1])
def test_units_do_not_matter(method, loss, unit):
    X = planted((12, 9))
    expected = losses(path(method, X, (1, 2), loss)) * unit ** (2 if loss == "frobenius" else 1)
    np.testing.assert_allclose(losses(path(method, X * unit, (1, 2), loss)), expected, rtol=1e-6)


def degenerate():
    X = planted((20, 16))
    yield "empty rows and columns", np.where((np.arange(20) % 3 == 0)[:, None] | (np.arange(16) == 5), 0, X)
    yield "one entry", np.where(np.arange(64).reshape(8, 8) == 9, 5.0, 0.0)
    yield "an empty quarter", np.where(np.add.outer(np.arange(20) < 10, np.arange(16) < 8), X, 0.0)
    yield "constant", np.full((9, 8), 2.0)
    yield "fewer rows than parts", X[:5, :4]


@EACH
@pytest.mark.parametrize(("method", "loss"), LOSSES)
def test_degenerate_data(method, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, X in degenerate():
            outcomes = path(method, X, (1, 6), loss)
            assert np.isfinite(losses(outcomes)).all(), name
            assert np.isfinite([(o.chi_square, o.expected, o.training) for o in outcomes.values()]).all(), name


def holey(X):
    return np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)


COUNTS = planted((20, 15))
REFUSED = [
    ("blocks", setting(holey(COUNTS)), "missing"),
    ("blocks", setting(COUNTS, weights=(np.arange(1.0, 21), None)), "weights"),
    ("blocks", setting(COUNTS @ COUNTS.T, "frobenius", words={"symmetric": True}), "symmetric"),
    ("blocks", setting(COUNTS[:3]), r"\(3, 15\)"),
    ("blocks", setting(COUNTS, "frobenius", (UnitNorm(per="component"), None, None)), "UnitNorm"),
    ("blocks", setting(COUNTS, "frobenius", (None, NonNegative() & Smooth(1.0), None)), "rows of H"),
    ("blocks", setting(COUNTS, structures=(Fixed(np.ones((20, 1))), None, None)), "Fixed"),
    ("blocks", setting(pw.SparseTensor([[0, 0, 0]], [1.0], (1 << 30, 1 << 30, 1 << 30))), "2\\^63"),
    ("thinning", setting(COUNTS, "frobenius"), "loss='kl'"),
    ("thinning", setting(COUNTS / 2), "whole numbers"),
    ("thinning", setting(COUNTS * 2.0**60), "whole numbers"),
    ("thinning", setting(holey(COUNTS)), "missing"),
    ("thinning", setting(COUNTS, weights=(np.arange(1.0, 21), None)), "weights"),
]


@pytest.mark.parametrize(("method", "problem", "why"), REFUSED, ids=[f"{r[0]}: {r[2]}" for r in REFUSED])
def test_refusals_are_sentences(method, problem, why):
    with pytest.raises(ValueError, match=why):
        raise ValueError(METHODS[method].refuses(problem, 1))


def test_what_is_not_refused():
    """Structures of single rows, penalties, weights that are all the same."""
    stated = (Simplex(per="item"), NonNegative() & L2(0.1), None)
    assert Blocks().refuses(setting(COUNTS, "frobenius", stated), 1) is None
    assert Blocks().refuses(setting(COUNTS, weights=np.full(COUNTS.shape, 3.0)), 1) is None
    assert Thinning().refuses(setting(COUNTS.astype(int), 1.0), 1) is None


# -- blocks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(9, 8), (5, 6, 7)])
def test_cells_are_all_of_X(shape):
    X = planted(shape)
    split = Blocks().split(setting(X), 0.1, 0)
    places = np.concatenate([test.places for test in split.tests.values()])
    np.testing.assert_array_equal(np.sort(places), np.arange(X.size))
    for cell, test in split.tests.items():
        rows = np.ix_(*(pair[half] for pair, half in zip(split.halves, cell, strict=True)))
        np.testing.assert_array_equal(split.parts[cell].given.data.array, X[rows])
        np.testing.assert_array_equal(test.values, X[rows].ravel())
    assert {abs(len(one) - len(other)) for one, other in split.halves} <= {0, 1}


@pytest.mark.parametrize("shape", [(16, 12), (12, 12, 12)])
def test_cells_are_predicted_from_parts_without_noise(shape, monkeypatch):
    """Where X is a sum of parts, those of one cell give the others. Rows come several times, since nothing larger than
    what was seen is predicted; and other samples may have weights < 0 for parts >= 0."""
    X = sum_of_parts([np.tile([[1, 0], [0, 1], [1, 1], [1, 2]], (dim // 4, 1)) for dim in shape]).astype(float)
    free = (None, None, [Free()] * len(shape))
    monkeypatch.setattr("partwise.selection.setting.PATH_TOL", 1e-6)
    found = path("blocks", X, (1, 2), "frobenius", structures=free)
    assert found[2].held_out.sum() < 1e-4 * found[1].held_out.sum()


def test_penalties_weigh_as_much_in_a_cell_as_in_X():
    """Of constants: `a^2 = 1 - l2 / n` for n x n ones under an L2 penalty, whatever part of them is fitted."""
    n, penalty = 20, NonNegative() & L2(4.0)
    (outcome,) = path("blocks", np.ones((n, n)), (1,), "frobenius", structures=(penalty, penalty, None)).values()
    np.testing.assert_allclose(np.concatenate(arrays(outcome)) ** 2, 1 - 4.0 / n, rtol=0.01)  # tol is 1e-3
    np.testing.assert_allclose(outcome.held_out.sum(), n * n * (4.0 / n) ** 2 / 2, rtol=0.03)


def test_structures_hold_in_cells():
    X = planted((8, 6))
    outcome = path(
        "blocks", X, (1, 2), "frobenius", structures=(Simplex(per="item"), None, None), words={"max_iter": 50}
    )[2]
    for W, _ in outcome.factors:
        np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-9)


@pytest.mark.parametrize("loss", ["frobenius", "l1", "huber"])
def test_signed_data(loss):
    """Weights of any sign may all be >= 0 in a fit, and are held for parts >= 0 of data that are not."""
    X = planted((24, 18), rank=2) - 1
    outcomes = path("blocks", X, (1, 2), loss, structures=(Free(), None, None))
    assert outcomes[2].held_out.sum() < outcomes[1].held_out.sum()


def test_names_of_rows_are_no_hindrance():
    names = {"sample": [f"s{i}" for i in range(20)], "gene": [f"g{j}" for j in range(15)]}
    assert path("blocks", planted((20, 15)), (1,), words={"modes": names})[1].counted.sum() == 300


# -- thinning ------------------------------------------------------------------------------------------


def test_halves_add_up_and_are_independent():
    """The covariance of halves of Poisson counts is 0, and of n pairs within 4 / sqrt(n) of a standard deviation."""
    X = np.random.default_rng(0).poisson(3.0, (100, 100)).astype(float)
    split = Thinning().split(setting(X), 0.1, 0)
    one, other = (problem.given.data.array / 2 for problem in split.settings)
    np.testing.assert_array_equal(one + other, X)
    np.testing.assert_array_equal(split.tests[0].values, other.ravel())
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / 100


def test_halves_predict_counts_in_the_units_of_halves():
    """A matrix of one part: Pearson's chi-square is what it should be, and the factors are those of X."""
    X = np.random.default_rng(0).poisson(50.0, (40, 30)).astype(float)
    (outcome,) = path("thinning", X, (1,)).values()
    unit = 2.0 ** setting(X).exponent
    assert abs(unit * outcome.chi_square / outcome.expected - 1) < 0.3  # of halves twice, 2400 entries: four deviations
    W, H = outcome.factors[0]
    np.testing.assert_allclose((W @ H.T).mean(), 50, rtol=0.02)


# -- what they share -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30, 20), (8, 9, 7)])
def test_sampled_zeros_count_for_all(shape, monkeypatch):
    """Sums over a sample have the right mean: the average over many is near, by its own standard error."""
    X = planted(shape, mean=0.3)
    monkeypatch.setattr(base, "FEWEST", 20)
    problem = setting(tensor(X) if len(shape) > 2 else sparse.csr_array(X))
    data = problem.given.data
    grid = Grid(shape, tuple(np.arange(0, dim, 2) for dim in shape))
    cell = X[np.ix_(*grid.kept)]
    factors = [np.random.default_rng(1).uniform(size=(dim, 2)) for dim in shape]
    sums, counted = [], []
    for seed in range(200):
        test = Entries.drawn(data, grid, [data], problem, seed)
        assert np.all(np.diff(test.places) > 0) and len(test.places) < cell.size
        assert np.count_nonzero(test.values) == np.count_nonzero(cell)
        sums.append(test.losses(pw.losses.KL(), model_at(test.places, factors)).sum())
        counted.append(test.weights.sum())
    monkeypatch.setattr(base, "FEWEST", 10_000)
    test = Entries.drawn(data, grid, [data], problem, 0)
    assert math.isclose(test.weights.sum(), cell.size)
    exact = test.losses(pw.losses.KL(), model_at(test.places, factors)).sum()
    assert abs(np.mean(sums) - exact) < 4 * np.std(sums) / 200**0.5
    assert abs(np.mean(counted) - cell.size) < 4 * np.std(counted) / 200**0.5


@pytest.mark.slow_cases("blocks")
@pytest.mark.parametrize("method", ["blocks", "thinning"])
def test_sparse_data_stay_sparse(method):
    """Of 20 000 x 20 000 entries, 3 GB as an array, 20 000 are stored."""
    X = sparse.random_array((20_000, 20_000), density=5e-5, format="csr", rng=np.random.default_rng(0))
    X.data = np.ceil(3 * X.data)
    tracemalloc.start()
    try:
        outcome = path(method, X, (1,), words={"max_iter": 3})[1]
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    expected = (2 if method == "thinning" else 1) * 4e8
    assert math.isclose(outcome.counted.sum(), expected, rel_tol=0.1)  # 2000 draws or more stand for most of them


@pytest.mark.parametrize("shape", [(9, 8), (5, 6, 7)])
def test_part_of_data(shape):
    X = planted(shape, mean=1.0)
    grid = Grid(shape, tuple(np.sort(np.random.default_rng(0).permutation(dim)[: dim // 2]) for dim in shape))
    wanted = X[np.ix_(*grid.kept)]
    for stored in (X, tensor(X), *([sparse.csc_array(X)] if X.ndim == 2 else [])):
        found = part(observed(stored).data, grid)
        assert found.complete and found.sparse == (not isinstance(stored, np.ndarray))
        array = np.zeros(found.shape)
        array.flat[found.places() if found.sparse else slice(None)] = next(iter(found.listed()))
        np.testing.assert_array_equal(array, wanted)


def test_no_prediction_is_larger_than_what_was_seen():
    """A part that rests on entries left out alone may say anything of them."""
    X = planted((6, 5))
    test = Speckled().split(setting(X, "frobenius"), 0.2, 0).test
    hidden = np.isin(np.arange(30), test.places).reshape(X.shape)
    seen = np.where(hidden, 0, X)
    capped = 3 * np.maximum(seen.max(axis=1)[:, None], seen.max(axis=0)).ravel()[test.places]
    wild = np.full((6, 1), 1e6), np.ones((5, 1))
    expected = test.losses(pw.losses.Frobenius(), capped)
    np.testing.assert_array_equal(test.judged(pw.losses.Frobenius(), wild, wild)[0], expected)
