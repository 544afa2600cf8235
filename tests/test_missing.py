"""Missing values and weights, as `factorize` takes them: one model, `sum over observed entries of weight * loss`."""

import os
import signal
import tracemalloc
import warnings
from importlib import import_module
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import nnls

import partwise as pw
from partwise.data.base import khatri_rao
from partwise.data.observed import observed
from partwise.data.weighted import Weighted
from partwise.errors import IncompatibleError
from partwise.metrics import match_components

from .covering import EACH

RNG = np.random.default_rng(4)
RANK = 4
PLANTED = pw.datasets.make_parts(60, 40, RANK, zeros=0.3, noise=0.1, random_state=1)
X = PLANTED.X + 0.05
SEEN = RNG.uniform(size=X.shape) < 0.7
FITS = {
    "hals": "frobenius",
    "gcd": "frobenius",
    "newton": "huber(0.1)",
    "newton_kl": "kl",
    "mu": 1.5,
    "mu_extrapolated": "itakura-saito",
    "weighted_median": "l1",
    "palm": "frobenius",
    "admm": "frobenius",
}
OTHERS = ("gcd", "mu_extrapolated", "palm")  # which tests/conformance/test_missing.py has, too
each = pytest.mark.parametrize(
    "solver, loss",
    [pytest.param(*fit, id=fit[0], marks=pytest.mark.slow if fit[0] in OTHERS else ()) for fit in FITS.items()],
)


def fit(X, solver, loss, **settings):
    settings = {"max_iter": 30, "tol": 0, "random_state": 0, "init": "random"} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pw.factorize(X, RANK, solver=solver, loss=loss, **settings)


def holes(X, seen):
    return np.where(seen, X, np.nan)


def same(result, other, rtol=0.0):
    assert result.objective == pytest.approx(other.objective, rel=max(rtol, 1e-15))
    for A, B in zip(result.factors, other.factors, strict=True):
        assert np.allclose(A, B, rtol=rtol, atol=rtol * B.max())


# -- equalities ----------------------------------------------------------------------------------------


@EACH
@each
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_ones_change_nothing(solver, loss, store):
    plain = fit(store(X), solver, loss)
    for said in ({"mask": np.ones(X.shape, bool)}, {"weights": np.ones(X.shape)}, {"weights": (np.ones(60), None)}):
        same(fit(store(X), solver, loss, **said), plain, 1e-9)
    same(fit(X, solver, loss, missing=None), fit(X, solver, loss))


@each
def test_missing_hidden_and_weight_0_are_the_same(solver, loss):
    ways = [
        fit(holes(X, SEEN), solver, loss),
        fit(X, solver, loss, mask=SEEN),
        fit(X, solver, loss, mask=sparse.csr_array(SEEN)),
        fit(X, solver, loss, weights=SEEN.astype(float)),
        fit(np.where(SEEN, X, -7.0), solver, loss, weights=sparse.csr_array(SEEN, dtype=float)),
        fit(np.ma.array(X, mask=~SEEN), solver, loss),
        fit(np.where(SEEN, X, 0), solver, loss, missing="zeros"),
    ]
    for way in ways[1:]:
        same(way, ways[0])


@each
def test_the_storage_does_not_matter(solver, loss):
    few = SEEN & (RNG.uniform(size=X.shape) < 0.35)
    few[:, 0] = few[0] = True
    listed = sparse.csr_array((X[few], np.nonzero(few)), shape=X.shape)
    expected = fit(holes(X, few), solver, loss, max_iter=10)
    for way in (
        fit(listed, solver, loss, missing="zeros", max_iter=10),
        fit(listed.tocoo(), solver, loss, missing="zeros", max_iter=10),
        fit(listed, solver, loss, mask=few, max_iter=10),
        fit(np.asfortranarray(holes(X, few)), solver, loss, max_iter=10),
    ):
        same(way, expected, 1e-6)


@each
def test_zeros_that_are_not_stored_count(solver, loss):
    if loss == "itakura-saito":
        pytest.skip("it takes no zeros")
    sparser = np.where(X > 0.4, X, 0.0)
    a, b = (fit(store(sparser), solver, loss, mask=SEEN, max_iter=10) for store in (sparse.csr_array, np.asarray))
    same(a, b, 1e-6)


def test_a_stored_zero_is_an_observation():
    table = sparse.csr_array((np.array([0.0, 2.0, 3.0]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    data = observed(table, "zeros").data
    assert (data.n_observed, data.n_nonzeros) == (3, 2)
    assert observed(table.toarray(), "zeros").data.n_observed == 2


@each
def test_weights_of_rows_are_repeated_rows(solver, loss):
    """Step by step; what takes its steps by the size of gains, or among equally good ones, to the end with W held."""
    times, (W, H) = RNG.integers(1, 4, size=60), (PLANTED.W + 0.3, PLANTED.H + 0.2)
    to_the_end = solver in ("gcd", "weighted_median")
    solvers = {"hals": pw.solvers.HALS(sweeps=7), "weighted_median": pw.solvers.WeightedMedian(exact_blocks=True)}
    settings = {"max_iter": 2000, "tol": 1e-7} if to_the_end else {"max_iter": 5}
    found = []
    for data, start, weights in (
        (X, W, (times, None)),
        (X, W, np.repeat(times[:, None] * 1.0, 40, axis=1)),
        (np.repeat(X, times, axis=0), np.repeat(W, times, axis=0), None),
    ):
        held = {"structure_W": pw.structures.Fixed(start)} if to_the_end else {}
        said = settings | held | {"init": (start, H), "normalize": None, "sort": False, "weights": weights}
        found.append(fit(data, solvers.get(solver, solver), loss, **said))
    units, entries, repeated = found
    for weighted in (units,) if solver in ("hals", "palm", "admm") else (units, entries):  # which go other ways there
        assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)
        assert weighted.relative_error == pytest.approx(repeated.relative_error, rel=1e-6)
        assert np.allclose(np.repeat(weighted.W, times, axis=0), repeated.W, rtol=1e-4, atol=1e-6)


@EACH
@each
@pytest.mark.parametrize("constant, n_iter", [(2.0**-60, 30), (3.0, 3), (1e200, 3)])
def test_a_constant_times_weights_gives_the_same_parts(solver, loss, constant, n_iter):
    """After some steps: rounding differs, but for a power of two, and some solvers take it far."""
    weights = RNG.uniform(size=X.shape) * SEEN
    for said in (weights, (weights[:, 0] + 0.1, None)):
        scaled = (constant * said[0], None) if isinstance(said, tuple) else constant * said
        a, b = (fit(X, solver, loss, weights=w, max_iter=n_iter) for w in (said, scaled))
        assert b.objective / constant == pytest.approx(a.objective, rel=1e-6)
        assert b.relative_error == pytest.approx(a.relative_error, rel=1e-6)
        for A, B in zip(a.factors, b.factors, strict=True):
            assert np.allclose(A, B, rtol=1e-4, atol=1e-6)


@EACH
@pytest.mark.parametrize("loss", ["frobenius", "kl", 1.5, "l1"])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_weights_of_rows_and_columns_are_those_of_entries(loss, store):
    rows, columns = RNG.uniform(0.5, 2, size=60), RNG.uniform(0.5, 2, size=40)
    rows[3] = 0
    structures = {"structure_W": pw.structures.Box(0, 0.9), "structure_H": pw.structures.NonNegative()}
    settings = {"max_iter": 300, "tol": 1e-6, "init": (PLANTED.W, PLANTED.H), **structures}
    a = fit(store(X), "auto", loss, weights=(rows, columns), **settings)
    b = fit(X, "auto", loss, weights=np.outer(rows, columns), **settings)
    near = 1e-2 if loss == "l1" else 1e-3  # medians go where rounding leads them
    assert a.objective == pytest.approx(b.objective, rel=near)
    assert a.relative_error == pytest.approx(b.relative_error, rel=near)
    assert a.W.max() <= 0.9
    assert not a.W[3].any()


def test_weights_that_are_no_change_of_units():
    """Penalties and ties see them: every entry then has its own weight."""
    rows = RNG.uniform(0.5, 2, size=60)
    for structure in (pw.structures.NonNegative() & pw.structures.L1(0.1), pw.structures.Simplex()):
        a, b = (
            fit(X, "auto", "frobenius", weights=said, structure_W=structure)
            for said in ((rows, None), np.repeat(rows[:, None], 40, axis=1))
        )
        same(a, b, 1e-6)
        with pytest.raises(IncompatibleError, match="pass X as an array"):
            fit(sparse.csr_array(X), "auto", "frobenius", weights=(rows, None), structure_W=structure)
    held = fit(sparse.csr_array(X), "auto", "frobenius", weights=(rows, None), structure_H=pw.structures.Simplex())
    assert held.certificate.feasible


# -- what is found -------------------------------------------------------------------------------------


def noisy(loss, rng, shape, rank=5):
    """Planted parts under the noise that a loss is made for, and a measure of the latter for hidden entries."""
    W, H = rng.gamma(0.6, size=(shape[0], rank)), rng.gamma(0.6, size=(rank, shape[1]))
    Y = W @ H
    if loss == "kl":
        W, Y = 20 * W, 20 * Y
        return W, H, Y, rng.poisson(Y).astype(float)
    noise = rng.standard_normal(Y.shape) if loss == "frobenius" else rng.laplace(size=Y.shape)
    return W, H, Y, np.maximum(Y + 0.05 * Y.std() * noise, 0)


def segments(shape, rng):
    """Half of a third of the rows is hidden, in one piece."""
    seen = np.ones(shape, bool)
    for i in rng.choice(shape[0], shape[0] // 3, replace=False):
        start = rng.integers(shape[1] // 2)
        seen[i, start : start + shape[1] // 2] = False
    return seen


def blocks(shape, rng):
    seen = np.ones(shape, bool)
    for _ in range(20):
        i, j = rng.integers(shape[0] - 20), rng.integers(shape[1] - 15)
        seen[i : i + 20, j : j + 15] = False
    return seen


HIDDEN = {
    **{f"{share:.0%}": lambda shape, rng, share=share: rng.uniform(size=shape) >= share for share in (0.1, 0.3, 0.5)},
    "segments": segments,
    "blocks": blocks,
}


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("loss", ["frobenius", "kl", pytest.param("l1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN)
def test_planted_parts_are_found_and_hidden_entries_predicted(loss, hide):
    rng = np.random.default_rng(0)
    W, H, Y, X = noisy(loss, rng, (400, 350) if loss == "l1" else (300, 250))
    seen = hide(X.shape, rng)
    result = pw.factorize(holes(X, seen), 5, loss=loss, random_state=0, tol=1e-4, max_iter=3000)
    order = match_components((W, H.T), result)
    for A, B in ((W, result.W[:, order]), (H.T, result.H[order].T)):
        cosines = np.sum(A * B, axis=0) / np.linalg.norm(A, axis=0) / np.linalg.norm(B, axis=0)
        assert cosines.min() >= 0.99
    model, measure = result.W @ result.H, pw.registry.resolve("loss", loss)
    found, floor = (measure.value(X[~seen], M[~seen]) for M in (model, Y))
    # a loss that grows with the square of errors, near its minimum, and what follows from 5% more of these
    assert found <= (1.05 if loss == "l1" else 1.05**2) * floor


def test_rows_are_those_of_their_own_least_squares():
    H = PLANTED.H
    result = fit(holes(X, SEEN), "auto", "frobenius", structure_H=pw.structures.Fixed(H), tol=1e-8, max_iter=1000)
    expected = [nnls(H[:, seen].T, x[seen])[0] for x, seen in zip(X, SEEN, strict=True)]
    assert np.allclose(result.W, expected, atol=1e-6)


def test_tensors_with_holes():
    planted = pw.datasets.make_cp((14, 12, 10), 3, noise=0.01, random_state=0)
    T = planted.X
    seen = RNG.uniform(size=T.shape) < 0.6
    result = pw.factorize(holes(T, seen), 3, random_state=0, n_init=3)
    model = (result.factors[0] @ khatri_rao(result.factors[1:]).T).reshape(T.shape)
    assert np.linalg.norm((model - T)[~seen]) <= 0.03 * np.linalg.norm(T[~seen])
    coords = np.argwhere(seen)
    listed = pw.SparseTensor(coords, T[seen], T.shape)
    same(
        pw.factorize(listed, 3, missing="zeros", init=result, max_iter=5, tol=0),
        pw.factorize(T, 3, mask=seen, init=result, max_iter=5, tol=0),
        1e-6,
    )


# -- rows and columns of which nothing is known --------------------------------------------------------


@each
def test_rows_without_observations_are_0(solver, loss):
    seen = SEEN.copy()
    seen[[5, 9]] = seen[:, 7] = False
    with pytest.warns(UserWarning, match="nothing is observed in 2 rows and 1 column of X"):
        result = pw.factorize(holes(X, seen), RANK, solver=solver, loss=loss, max_iter=20, tol=0, random_state=0)
    assert not result.W[[5, 9]].any()
    assert not result.H[:, 7].any()
    assert all(np.isfinite(A).all() for A in result.factors)
    again = fit(holes(X, seen), solver, loss, init=result, max_iter=1)
    assert again.objective <= result.objective * (1 + 1e-9)


def test_models_that_nothing_holds_back():
    """A row with one observation, of an entry that its parts hardly reach: the model is huge in its holes, sums over
    all entries drown those that count, and yet the objective is right, and falls."""
    rng = np.random.default_rng(0)
    W, H = rng.uniform(size=(30, 3)), rng.uniform(size=(3, 20)) * (rng.uniform(size=(3, 20)) < 0.5)
    X, seen = W @ H, rng.uniform(size=(30, 20)) < 0.7
    seen[0] = np.arange(20) == 3
    X[0, 3], H[:, 3], X[1:, 3] = 1.0, 1e-9, 1e-9
    with pytest.warns(UserWarning, match="predictions are worth nothing"):
        result = pw.factorize(holes(X, seen), 3, init=(W, H), random_state=0)
    assert np.diff([record.objective for record in result.history]).max() <= 1e-9
    brute = 0.5 * np.sum(np.square((X - result.W @ result.H)[seen]))
    assert result.objective == pytest.approx(brute, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("solver", ["auto", "hals", "gcd", "newton"])
@pytest.mark.parametrize("small", [1e-5, 1e-9])
def test_rows_that_are_seen_in_small_entries_alone(solver, small):
    """With the parts held they are fitted as well as any: sums over all columns would drown them."""
    rng = np.random.default_rng(0)
    H = rng.uniform(0.1, 1, size=(RANK, 30))
    H[:, :8] *= small
    X, seen = rng.uniform(size=(20, RANK)) @ H, rng.uniform(size=(20, 30)) < 0.8
    seen[0] = np.arange(30) < 8
    result = fit(holes(X, seen), solver, "frobenius", structure_H=pw.structures.Fixed(H), tol=1e-8, max_iter=2000)
    assert np.linalg.norm((result.W @ result.H - X)[0, :8]) <= 1e-6 * np.linalg.norm(X[0, :8])


@pytest.mark.slow_cases("float32")
@EACH
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["frobenius", "kl", 1.5, "l1"])
@pytest.mark.parametrize("tiny", [1e-320, 1e-60, 1e-30])
def test_tiny_weights_of_rows(loss, kind, tiny):
    """The row has no say in the parts, and is fitted by them."""
    weights = np.ones(60)
    weights[3] = tiny
    result = fit(X.astype(kind), "auto", loss, weights=(weights, None), init="nndsvda", max_iter=200)
    assert all(np.isfinite(A).all() for A in result.factors)
    model, others = result.W @ result.H, np.arange(60) != 3
    assert np.linalg.norm((model - X)[3]) <= 3 * np.linalg.norm((model - X)[others]) / np.sqrt(59)


def test_codes_of_rows_with_holes_are_the_best_there_are():
    """At most two atoms each, against all pairs."""
    planted = pw.datasets.make_sparse_codes(60, 12, 6, nonzeros=2, random_state=0)
    model = pw.Dictionary(6, nonzeros=2, random_state=0).fit(planted.X)
    noisy = planted.X[:15] + 0.1 * RNG.standard_normal((15, 12))
    seen = RNG.uniform(size=noisy.shape) < 0.7
    codes = model.transform(holes(noisy, seen))
    for x, shown, code in zip(noisy, seen, codes, strict=True):
        atoms = model.components_[:, shown].T
        best = min(
            np.linalg.norm(x[shown] - A @ np.linalg.lstsq(A, x[shown])[0]) for A in map(atoms.__getitem__, PAIRS)
        )
        assert np.linalg.norm(x[shown] - atoms @ code) <= 1.001 * best + 1e-9


PAIRS = [(slice(None), list(pair)) for pair in combinations(range(6), 2)]


def test_small_weights_lead_medians_no_worse():
    """With the parts held, rows whose entries all count little are fitted as those that count fully."""
    weights = np.where(np.arange(60) % 2, 1.0, 1e-3)
    held = {"structure_H": pw.structures.Fixed(PLANTED.H), "init": None, "max_iter": 500, "tol": 1e-4}
    plain = fit(X, "auto", "l1", **held)
    weighted = fit(X, "auto", "l1", weights=np.repeat(weights[:, None], 40, axis=1), **held)
    errors = [np.abs(X - result.W @ result.H).sum(axis=1) for result in (plain, weighted)]
    assert np.max(errors[1] / errors[0]) < 1.03


def test_parts_that_greedy_does_not_need_are_left_out_with_weights_too():
    exact, rows = PLANTED.W @ PLANTED.H, RNG.uniform(0.5, 2, size=60)
    for weights in (None, (rows, None)):
        result = pw.factorize(exact, 8, solver="greedy", weights=weights, random_state=0)
        assert not result.certificate.zero_components
        assert result.rank == len(result.weights)


@pytest.mark.slow
def test_what_counts_nothing_is_not_observed_in_float32_either():
    weights = np.where(RNG.uniform(size=X.shape) < 0.5, 0.7, 1.0)
    spoilt = sparse.csr_array(np.where(X > 0.4, X, 0).astype(np.float32))
    spoilt.data[::3] = np.nan
    assert fit(spoilt, "auto", "frobenius", weights=weights).n_missing == np.isnan(spoilt.data).sum()


def test_a_place_that_a_mask_names_twice_is_one():
    T = pw.datasets.make_cp((6, 5, 4), 2, random_state=0).X
    coords = np.argwhere(RNG.uniform(size=T.shape) < 0.8)
    masks = [pw.SparseTensor(c, np.ones(len(c)), T.shape) for c in (coords, np.vstack([coords, coords[:5]]))]
    one, other = (pw.factorize(T, 2, mask=mask, random_state=0, max_iter=5, tol=0) for mask in masks)
    same(one, other)
    assert not other.weighted


def test_ctrl_c_ends_a_run_whose_scale_is_being_estimated(monkeypatch):
    module, calls = import_module("partwise.run.scale"), []

    def interrupted(*arguments):
        calls.append(os.kill(os.getpid(), signal.SIGINT))
        return solve(*arguments)

    solve = module.solve
    monkeypatch.setattr(module, "solve", interrupted)
    result = pw.factorize(holes(X, SEEN), RANK, loss="huber", random_state=0)
    assert (result.status, len(calls)) == ("interrupted", 1)


def test_large_columns_that_are_hidden_are_no_alarm():
    """Where they are right, as far as rows and columns tell; and with the parts held nothing can explode."""
    rng = np.random.default_rng(0)
    rows, columns = rng.uniform(0.2, 1, 40), rng.uniform(0.2, 1, 12) * np.where(np.arange(12) < 6, 1000, 1)
    full, seen = np.outer(rows, columns), rng.uniform(size=(40, 12)) < 0.7
    seen[:, :6] = rows[:, None] < 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = pw.factorize(full, 1, mask=seen, random_state=0, tol=1e-8)
        pw.NMF(1, random_state=0).fit(full).transform(full[rows > 0.3], mask=seen[rows > 0.3])
    assert np.allclose(result.reconstruct(), full, rtol=1e-2)


def test_warnings_name_the_modes_of_tensors():
    cube = np.random.default_rng(0).uniform(size=(4, 5, 6))
    cube[:, 2:4] = np.nan
    for modes, told in ((None, "2 slices along mode 2 of"), (["x", "y", "z"], "2 slices along mode y of")):
        with pytest.warns(UserWarning, match=told):
            pw.factorize(cube, 1, modes=modes, random_state=0)


def test_entries_that_are_not_listed_have_no_loss():
    """Under Itakura-Saito that of a 0 is infinite, and counts nothing here."""
    stored = sparse.csr_array(np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.5, X + 0.1, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = pw.factorize(stored, 3, loss="itakura-saito", missing="zeros", random_state=0, tol=1e-2)
    assert 0 < result.relative_error < 1


def test_a_mask_may_cover_all_that_is_refused():
    seen = np.random.default_rng(0).uniform(size=X.shape) < 0.7
    holed = np.where(seen, X, np.nan)
    expected = pw.factorize(holed, 3, random_state=0)
    for store in (np.asarray, sparse.csr_array):
        found = pw.factorize(store(holed), 3, missing=None, mask=seen, random_state=0)
        assert np.allclose(found.reconstruct(), expected.reconstruct(), atol=1e-2)
        for model in (pw.NMF(3, missing=None, random_state=0, tol=0.1), pw.NTF(3, missing=None, tol=0.1)):
            assert np.isfinite(model.fit(store(holed), mask=seen).transform(store(holed[:5]), mask=seen[:5])).all()
        with pytest.raises(ValueError, match=r"X contains 1 NaN entry: .*missing=None was passed"):
            pw.factorize(store(holed), 3, missing=None, mask=seen | (np.cumsum(~seen).reshape(X.shape) == 1))


# -- what cannot be ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said, sentence",
    [
        ({"weights": np.zeros(X.shape)}, "weights are all 0, so that no entry of X counts"),
        ({"mask": np.zeros(X.shape, bool)}, "no entry of X is observed"),
        ({"mask": np.ones((3, 4), bool)}, r"mask has shape \(3, 4\), and X has shape \(60, 40\)"),
        ({"mask": np.full(X.shape, 2)}, "for other numbers use weights"),
        ({"weights": np.ones((60, 3))}, r"weights has shape \(60, 3\)"),
        ({"weights": -np.ones(X.shape)}, "weights must be >= 0, and the smallest is -1"),
        ({"weights": np.full(X.shape, np.nan)}, "2400 are NaN or infinite: use 0"),
        ({"weights": np.full(X.shape, np.inf)}, "2400 are NaN or infinite: use 0"),
        ({"weights": (np.ones(60), np.ones(60))}, "one vector for each mode of X, of 60, 40 numbers"),
        ({"weights": [np.ones(60), None]}, "given in a tuple"),
        ({"weights": [np.ones(60), np.ones(40)]}, "given in a tuple"),
        ({"X": np.where(SEEN, X, -999)}, r"X goes down to -999, .* that an entry is missing, put NaN in their place"),
        ({"X": np.where(SEEN, X, -999), "loss": "kl"}, r"KL.* needs X >= 0; if such values mean that an entry is miss"),
        ({"weights": np.ones(40)}, r"or a tuple of one vector for each mode: weights=\(None, w\)$"),
        ({"weights": np.ones(7)}, r"weights=\(w, None\) or \(None, w\)$"),
        ({"weights": (np.ones(60),)}, "one vector for each mode of X"),
        ({"weights": (-np.ones(60), None)}, "weights must be >= 0"),
        ({"weights": (np.zeros(60), None)}, "weights are all 0"),
        (
            {"weights": (np.eye(60)[0], None), "mask": np.arange(60)[:, None] > np.zeros(40)},
            "no entry of X is observed",
        ),
        ({"missing": "none"}, "missing must be 'nan', 'zeros' or None, got 'none'"),
        ({"init": "spa", "mask": SEEN}, "init='spa' needs X without missing entries"),
        ({"init": "greedy", "mask": SEEN}, "init='greedy' needs X without missing entries"),
        ({"solver": "greedy", "mask": SEEN}, "Greedy needs data without missing entries"),
        ({"loss": pw.losses.L1(zero_weight=0.5), "mask": SEEN}, "state all of it in weights"),
    ],
)
def test_what_cannot_be_is_said(said, sentence):
    with pytest.raises(ValueError, match=sentence):
        pw.factorize(**{"X": X, "rank": RANK} | said)


def test_what_is_no_number_is_said():
    spoilt = X.copy()
    spoilt[0, 0] = np.inf
    with pytest.raises(ValueError, match=r"X contains 1 infinite entry.*Put NaN in their place"):
        pw.factorize(spoilt, RANK)
    with pytest.raises(ValueError, match=r"X contains 735 NaN entries.*missing='nan'"):
        pw.factorize(holes(X, SEEN), RANK, missing=None)
    with pytest.raises(ValueError, match="no entry of X is observed"):
        pw.factorize(np.full((3, 3), np.nan), 1)
    with pytest.raises(IncompatibleError, match="symmetric=True needs X without missing entries"):
        square = X[:40] @ X[:40].T
        square[0, 1] = square[1, 0] = np.nan
        pw.factorize(square, 2, symmetric=True)


def test_entries_that_do_not_count_are_not_looked_at():
    """Not even where they could not be: negative, or zeros under a loss that takes none."""
    for loss, value in (("kl", -3.0), ("itakura-saito", 0.0)):
        result = fit(np.where(SEEN, X, value), "auto", loss, mask=SEEN)
        same(result, fit(holes(X, SEEN), "auto", loss))


# -- how data are held ---------------------------------------------------------------------------------


def test_data_are_held_by_what_is_observed():
    few, many = (observed(holes(X, RNG.uniform(size=X.shape) < share)).data for share in (0.1, 0.9))
    assert isinstance(few, Weighted)
    assert few.entries.matrix.nnz == few.n_observed
    assert many.entries.array.shape == X.shape
    assert many.beyond[0] == 1
    assert many.beyond[1].matrix.nnz == X.size - many.n_observed
    hidden = observed(sparse.csr_array(np.where(X > 0.4, X, 0)), mask=SEEN).data
    assert hidden.sparse
    assert hidden.entries.matrix.nnz == np.count_nonzero((X > 0.4) | ~SEEN)
    assert hidden.beyond[1].matrix.nnz == np.count_nonzero(~SEEN)
    assert hidden.n_observed == np.count_nonzero(SEEN)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "kl", "l1", "huber(0.5)", 1.5])
def test_memory_follows_the_observations(loss):
    shape, n = (20000, 5000), 100_000
    rng = np.random.default_rng(0)
    ratings = sparse.coo_array((rng.integers(1, 6, size=n) * 1.0, [rng.integers(dim, size=n) for dim in shape]), shape)
    ratings = sparse.csr_array(ratings)
    fit(ratings[:100], "auto", loss, missing="zeros", max_iter=2)
    tracemalloc.start()
    try:
        fit(ratings, "auto", loss, missing="zeros", max_iter=3)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 500 * n + 30 * 8 * RANK * sum(shape)  # bytes; an array of X takes 800 million
