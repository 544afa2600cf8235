"""Losses other than least squares through the front doors: counts, spectra, new data, trouble."""

import warnings

import numpy as np
import pytest
import sklearn.decomposition
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import partwise as pw
from partwise import structures as s
from partwise.cli import main
from partwise.data import as_data
from partwise.problem import pose
from partwise.registry import resolve

from .covering import EACH, PAIRS

RNG = np.random.default_rng(0)
X = RNG.poisson(3 * RNG.gamma(0.5, size=(60, 4)) @ RNG.gamma(0.5, size=(4, 40))).astype(float)
X[5] = X[:, 9] = 0
SOLVERS = ["newton_kl", "newton", "mu", "mu_extrapolated"]
NAMES = {"kl": 1, "kullback-leibler": 1, "itakura-saito": 0, "frobenius": 2, "beta(1.5)": 1.5, "0.5": 0.5, 1: 1, 3: 3}


@pytest.mark.parametrize("name, beta", NAMES.items(), ids=map(str, NAMES))
def test_a_loss_by_its_name(name, beta):
    assert resolve("loss", name).beta == beta
    assert resolve("loss", pw.losses.Beta(beta)).beta == beta


@pytest.mark.parametrize("beta", [0, 1, 2])
def test_a_number_that_is_one_but_for_rounding_is_that(beta):
    for near in (np.nextafter(beta, 9), np.nextafter(beta, -9)):
        assert resolve("loss", float(near)) == resolve("loss", beta)
        assert resolve("loss", f"beta({float(near)!r})").beta == beta
    assert resolve("loss", beta + 1e-9).beta == beta + 1e-9


@pytest.mark.parametrize("name", ["kl(2)", "beta", "poisson", True, [1]])
def test_a_loss_that_is_none(name):
    with pytest.raises((ValueError, TypeError), match="loss"):
        resolve("loss", name)


@pytest.mark.parametrize("beta", [-1, 0, 0.3, 0.5, 0.99, 1, 1.01, 1.5, 1.9, 2.5, 3])
def test_a_divergence_near_an_exact_fit_has_its_digits(beta):
    """By its series in `d = x / y - 1`: `y^beta (d^2 / 2 + (beta - 2) d^3 / 6 + ...)`."""
    rng = np.random.default_rng(1)
    W, H, d = rng.gamma(1, size=(30, 1)) + 0.1, rng.gamma(1, size=(1, 20)) + 0.1, 1e-5 * rng.normal(size=(30, 20))
    close = (W @ H) * (1 + d)
    d = close / (W @ H) - 1
    expected = ((W @ H) ** beta * (d**2 / 2 + (beta - 2) * d**3 / 6)).sum()
    loss = pw.losses.Beta(beta)
    assert loss.value(close, W @ H) == pytest.approx(expected, rel=1e-8)
    posed = pose(as_data(close), loss, (s.NonNegative(), s.NonNegative()), 1)
    assert posed.objective((W, H.T)) == pytest.approx(expected, rel=1e-8)
    many = pose(as_data(close), loss, (s.NonNegative(), s.NonNegative()), 15)  # by BLAS
    wide = [np.hstack([A, np.zeros((len(A), 14))]) for A in (W, H.T)]
    assert many.objective(wide) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("beta", [5, 26, 30, 200])
def test_a_large_beta_has_room_for_entries_without_a_model(beta):
    loss, entries = pw.losses.Beta(beta), np.array([[1.0, 0.5], [0.25, 1.0]])
    expected = (entries**beta).sum() / (beta * (beta - 1))
    assert loss.value(entries, np.zeros((2, 2))) == pytest.approx(expected, rel=1e-6)
    posed = pose(as_data(entries), loss, (s.NonNegative(), s.NonNegative()), 1)
    assert posed.objective((np.zeros((2, 1)), np.zeros((2, 1)))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["itakura-saito", 0.5])
def test_auto_leaves_zeros_of_a_start(loss):
    """Below beta = 0.5 it takes multiplicative updates, which alone would never."""
    P = X[:, X.any(axis=0)][X.any(axis=1)] + 0.5
    good = pw.factorize(P, 4, loss=loss, random_state=0, max_iter=300)
    for start in ("nndsvd", (np.vstack([good.W[:-1], 0 * good.W[-1:]]), good.H)):
        result = pw.factorize(P, 4, loss=loss, init=start, random_state=0, max_iter=300)
        assert result.fit < 1.2 * good.fit
        assert result.certificate.unreached == 0


def test_beta_2_is_least_squares():
    one, two = (pw.factorize(X, 3, loss=loss, random_state=0, max_iter=20) for loss in ("frobenius", pw.losses.Beta(2)))
    assert one.solver == two.solver
    assert np.array_equal(one.W, two.W)
    assert two.certify(X).bound > 0


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_multiplicative_updates_are_scikit_learns(beta, store):
    rng = np.random.RandomState(0)
    W, H = rng.uniform(0.1, 1, size=(60, 3)), rng.uniform(0.1, 1, size=(3, 40))
    options = {"init": "custom", "solver": "mu", "beta_loss": beta, "max_iter": 9, "tol": 0}
    V = store(X + 0.01)
    theirs = sklearn.decomposition.non_negative_factorization(V, W.copy(), H.copy(), 3, **options)
    ours = pw.non_negative_factorization(V, W, H, 3, **options | {"solver": pw.solvers.MU()})
    assert np.allclose(ours[0] @ ours[1], theirs[0] @ theirs[1], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0, 1, 1.5])
def test_as_good_as_scikit_learn_after_long(beta):
    """From the same start, Newton's method in 100 iterations against multiplicative updates in 2000."""
    V = X + 0.1
    options = {"init": "random", "random_state": 0, "beta_loss": beta, "tol": 0}
    theirs = sklearn.decomposition.NMF(3, solver="mu", max_iter=2000, **options).fit(V)
    ours = pw.NMF(3, max_iter=400 if beta == 0 else 100, **options).fit(V)
    assert ours.reconstruction_err_ <= 1.002 * theirs.reconstruction_err_


@pytest.mark.slow_cases("float32")
@PAIRS
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-9, 1, 1e9])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_units_do_not_matter(solver, dtype, size, store):
    """Counts up to 1e11, in float32 too: the same course, in other units."""
    options = {"loss": "kl", "solver": solver, "init": "random", "random_state": 0, "max_iter": 25, "tol": 0}
    one, two = (pw.factorize(store((unit * X).astype(dtype)), 4, **options) for unit in (1, size))
    assert two.objective == pytest.approx(size * one.objective, rel=1e-9 if dtype == np.float64 else 1e-3)
    assert np.all(np.isfinite(two.W))
    truth = pw.losses.KL().value(size * X, two.W.astype(float) @ two.H.astype(float))
    assert two.objective == pytest.approx(truth, rel=1e-6)


@st.composite
def counts(draw):
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    size = draw(st.sampled_from([1.0, 30.0, 1e9]))
    V = np.floor(size * rng.gamma(draw(st.sampled_from([0.05, 1.0])), size=shape))
    return V.astype(draw(st.sampled_from([np.float64, np.float32])))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    V=counts(),
    rank=st.integers(1, 5),
    solver=st.sampled_from(SOLVERS),
    beta=st.sampled_from([0.3, 1.0, 1.0, 1.7, 2.6]),
    as_sparse=st.booleans(),
    penalty=st.sampled_from([0.0, 0.5]),
)
def test_the_objective_never_rises(V, rank, solver, beta, as_sparse, penalty):
    beta = 1.0 if solver == "newton_kl" else beta
    structure = s.NonNegative() & s.Elastic(penalty, penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pw.factorize(
            sparse.csr_array(V) if as_sparse else V,
            rank,
            loss=beta,
            solver=solver,
            structure_W=structure,
            structure_H=structure,
            init="random",
            random_state=0,
            max_iter=15,
            tol=0,
        )
    objective = np.array([record.objective for record in result.history])
    assert np.all(np.isfinite(objective))
    rounding = 1e-12 if V.dtype == np.float64 else 3e-6
    assert np.diff(objective).max() <= rounding * (objective[0] + np.power(V[V > 0].astype(float), beta).sum())


def hostile(seed, beta, dtype):
    """Entries of any size from 1e-12 to 1e2, or rows of such sizes, with zeros where beta allows them; a wild start."""
    rng = np.random.default_rng(seed)
    m, n, rank = rng.integers(4, 20, size=3) // (1, 1, 3)
    V = 10.0 ** rng.uniform(-12, 2, size=(m, n))
    if seed % 2:
        V = rng.gamma(0.3, size=(m, rank)) @ rng.gamma(0.3, size=(rank, n)) * 10.0 ** rng.uniform(-12, 2, size=(m, 1))
    V = V * (rng.uniform(size=V.shape) < 0.7) if beta > 0 and seed % 3 else np.maximum(V, 1e-14)
    start = tuple(np.exp(rng.normal(0, 3, size=shape)).astype(dtype) for shape in ((m, rank), (rank, n)))
    return V.astype(dtype), int(rank), start


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("beta", [-3.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 4.0])
def test_no_iteration_raises_the_loss_of_hostile_data(beta, dtype):
    """As computed from the factors that a callback is shown, and as told."""
    loss = pw.losses.Beta(beta)
    names = {1.0: [*SOLVERS], 2.0: ["hals", "gcd", "mu", "mu_extrapolated"]}.get(beta, SOLVERS[1:])
    for seed in (0, 1, 2, 5, 20):
        V, rank, start = hostile(seed, beta, dtype)
        for solver in names:
            true = []
            result = pw.factorize(
                V,
                rank,
                loss=loss,
                solver=solver,
                init=start,
                max_iter=15,
                tol=0,
                callbacks=[lambda _, f: true.append(loss.value(V, f[0].astype(float) @ f[1].T.astype(float)))],  # noqa: B023
            )
            told = np.array([record.objective for record in result.history])
            size = np.power(V[V > 0].astype(float), beta).sum()
            rounding = 1e-13 if dtype == np.float64 else 3e-7
            for values in (np.array(true[: len(told)]), told):
                assert np.all(np.diff(values) <= rounding * (size + values[:-1]))
            assert result.fit == pytest.approx(
                loss.value(V, result.W.astype(float) @ result.H), abs=rounding * size, rel=1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "mu_extrapolated"])
def test_spectra_in_single_precision_are_as_good_as_in_double(solver):
    """Power spectra span fourteen orders of magnitude, and every one of them counts under Itakura and Saito's loss."""
    rng = np.random.default_rng(0)
    power = rng.gamma(0.5, size=(40, 4)) @ rng.gamma(0.5, size=(4, 30)) * 10.0 ** rng.uniform(-12, 2, size=(40, 1))
    V = (power * rng.exponential(size=power.shape) + 1e-13).astype(np.float32)
    options = {"loss": "itakura-saito", "solver": solver, "init": "random", "random_state": 0, "max_iter": 60, "tol": 0}
    one, two = (pw.factorize(V.astype(kind), 4, **options) for kind in (np.float32, np.float64))
    assert one.W.dtype == np.float32
    assert one.objective == pytest.approx(two.objective, rel=1e-3)
    assert one.certificate.stationarity == pytest.approx(two.certificate.stationarity, rel=0.1)
    assert np.isfinite(one.relative_error)


@pytest.mark.slow_cases("^(1.8|2.5)-")
@EACH
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("beta", [0.5, 1, 1.5, 1.8, 2.5, 3])
def test_new_data_on_old_parts(store, beta):
    model = pw.NMF(4, loss=beta, init="random", random_state=0, max_iter=2000).fit(store(X))
    W = model.transform(store(X))
    alone = np.vstack([model.transform(store(X[i : i + 1])) for i in range(12)])
    if beta == 1:
        assert np.allclose(W[:12], alone, rtol=1e-10, atol=1e-10)  # arrays of few rows may be held by their nonzeros
        assert np.array_equal(W[:12], alone) or store is np.asarray
    assert np.allclose(W[:12], alone, atol=1e-6)  # powers of numbers in other units are rounded otherwise
    assert np.all(W[5] == 0)  # a sample without counts
    assert np.all(W[X.sum(axis=1) > 0].sum(axis=1) > 0)
    loss, H = pw.losses.Beta(beta), model.components_
    if 1 <= beta <= 2:
        assert loss.value(X, W @ H) <= 1.001 * loss.value(X, model.result_.W @ H)
        squares = pw.factorize(X, 4, structure_H=s.Fixed(H)).W  # by least squares, it is another W
        assert loss.value(X, W @ H) < loss.value(X, np.maximum(squares, 1e-6) @ H)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0, 0.5, 1, 1.5])
def test_single_precision_with_a_wide_range(beta):
    """Entries down to 1e-15 of the largest: everything stays a number, the fit is as good as in double precision."""
    rng = np.random.default_rng(1)
    V = (rng.gamma(2.0, size=(40, 3)) @ rng.gamma(2.0, size=(3, 20))) * 10.0 ** rng.uniform(-15, 0, size=(40, 1))
    options = {"loss": beta, "init": "random", "random_state": 0, "max_iter": 200, "tol": 0}
    one, two = (pw.NMF(3, **options).fit(V.astype(kind)) for kind in (np.float64, np.float32))
    assert np.all(np.isfinite(two.components_))
    assert np.all(np.isfinite(two.transform(V.astype(np.float32))))
    size = np.sqrt(np.power(V, float(beta)).sum())
    assert two.reconstruction_err_ / size <= one.reconstruction_err_ / size + 0.05
    assert np.all(two.transform(V.astype(np.float32)).sum(axis=1) > 0)


def test_counts_out_of_reach_are_warned_of():
    model = pw.NMF(3, loss="kl", init="random", random_state=0).fit(X)
    new = X[:6].copy()
    new[1, 9], new[3, 9] = 4, 1  # a word that no training document had
    with pytest.warns(UserWarning, match="2 positive entries of X have a model of 0"):
        W = model.transform(new)
    known = np.delete(np.arange(40), 9)
    part = pw.NMF(3, loss="kl").fit(X[:, known])
    part.components_ = np.ascontiguousarray(model.components_[:, known])
    assert np.allclose(W, part.transform(new[:, known]), atol=1e-3)  # the others are explained as if it were not there
    held = pw.factorize(X + 1, 3, loss="kl", structure_H=s.Fixed(np.where(np.arange(40) == 9, 0.0, np.ones((3, 40)))))
    assert held.certificate.unreached == 60
    assert "positive entries of X with a model of 0: 60" in str(held.certificate)


def test_a_start_full_of_zeros_is_left():
    """Entries at 0 move again, unlike in multiplicative updates, and rows whose model is 0 are given mass."""
    good = pw.factorize(X, 4, loss="kl", init="random", random_state=0, max_iter=2000)
    W, H = good.W.copy(), good.H.copy()
    W[:30] = 0
    H[:, ::3] = 0
    for solver in ("newton_kl", "newton"):
        again = pw.factorize(X, 4, loss="kl", solver=solver, init=(W, H), max_iter=2000)
        assert again.objective == pytest.approx(good.objective, rel=0.02)
        assert again.certificate.unreached == 0


def test_structures_hold_under_kl():
    known = np.maximum(pw.factorize(X, 4, loss="kl", random_state=0).H[:2], 0.01)
    result = pw.factorize(
        sparse.csr_array(X),
        4,
        loss="kl",
        structure_W=s.Box(0.05, 2),
        structure_H=s.NonNegative() & s.Fixed(known) & s.L1(0.1),
        random_state=0,
        max_iter=5000,
    )
    assert result.converged
    assert np.array_equal(result.H[:2], known)
    assert result.W.min() >= 0.05
    assert result.W.max() <= 2
    sparser = pw.factorize(X, 4, loss="kl", structure_H=s.NonNegative() & s.L1(5.0), random_state=0, max_iter=5000)
    assert sparser.converged


@pytest.mark.parametrize(
    "data, options, sentence",
    [
        (X, {"loss": "itakura-saito"}, "When beta_loss <= 0 and X contains zeros"),
        (X - 1, {"loss": "kl"}, "Negative values in data"),
        (X, {"loss": "kl", "structure_H": s.Free()}, "needs nonnegative factors: add structures.NonNegative"),
        (X, {"loss": "kl", "solver": "gcd"}, "GCD minimises least squares only, got the loss KL"),
        (X, {"loss": 1.5, "solver": "newton_kl"}, "NewtonKL minimises KL only, got the loss Beta"),
        (X, {"solver": "newton"}, "Newton takes beta-divergences, Huber, and least squares with missing entries only"),
    ],
)
def test_what_does_not_go_together(data, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        pw.factorize(data, 3, **options)


def test_no_bound_is_claimed_for_other_losses():
    with pytest.raises(ValueError, match="a bound for least squares only"):
        pw.factorize(X, 3, loss="kl", max_iter=5).certify(X)


def test_results_are_kept(tmp_path):
    for loss in ("kl", "itakura-saito", 1.5):
        result = pw.factorize(X + 0.1, 3, loss=loss, random_state=0, max_iter=5)
        same = pw.load(result.save(tmp_path / "result.partwise"))
        assert same.loss == result.loss
        assert same.certificate == result.certificate


@pytest.mark.slow_cases(r"1\.5")
@pytest.mark.usefixtures("plain_pictures")
@pytest.mark.parametrize("loss", ["kl", "1.5", "beta(0.5)"])
def test_on_the_command_line(loss, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["fit", str(tmp_path / "x.npy"), "--rank", "3", "--loss", loss, "--out", str(tmp_path / "out")]) == 0
    assert f"{resolve('loss', loss)} = " in capsys.readouterr().out
    words = ["--rank", "3", "--loss", "0", "--out", str(tmp_path / "other")]
    assert main(["fit", str(tmp_path / "x.npy"), *words]) == 2
    assert "X contains zeros" in capsys.readouterr().err


def test_a_penalty_of_each_kind_has_its_exponent():
    """The multiplicative update goes to the minimum of its majorizer, so it descends from anywhere."""
    for beta in (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0):
        for penalty in (s.L1(2.0), s.L2(2.0)):
            structure = s.NonNegative() & penalty
            options = {"structure_W": structure, "structure_H": structure, "init": "random", "random_state": 1}
            result = pw.factorize(X + 0.2, 3, loss=beta, solver="mu", max_iter=60, tol=0, **options)
            assert np.diff([record.objective for record in result.history]).max() <= 1e-9 * result.history[0].objective


@pytest.mark.parametrize("l2", [0.12, 1e-3])
def test_kl_with_a_ridge_is_solved_from_any_start(l2):
    """A weight that has far to go is not held back by the ridge: many entries are small at the start, and are not
    in the end. The objective is that of whole-row Newton steps, and so is the order of the number of iterations."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.poisson(5 * rng.gamma(0.5, size=(20, 2)) @ rng.gamma(0.5, size=(2, 12))).astype(float)
        stated = {"structure_W": s.NonNegative() & s.L2(l2), "structure_H": s.NonNegative() & s.L2(l2)}
        one, other = (
            pw.factorize(X, 2, loss="kl", solver=name, init="random", random_state=0, **stated)
            for name in ("newton_kl", "newton")
        )
        assert one.converged and one.n_iter < 150
        assert one.objective < other.objective * 1.001
