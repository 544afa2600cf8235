"""The L1 loss through the front doors: outliers, false zeros, 0/1 data, blocks, new data, trouble."""

import json

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog

import partwise as pw
from partwise import structures as s
from partwise.cli import main
from partwise.datasets import make_binary_parts, make_parts
from partwise.errors import IncompatibleError

SPOILT = make_parts(150, 120, 5, zeros=0.6, outliers=0.1, random_state=0)


def likeness(H, truth):
    """The mean cosine of the parts with those of the truth, in the best order."""
    H, truth = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (H, truth))
    cosines = H @ truth.T
    return cosines[linear_sum_assignment(-cosines)].mean()


def binary_data(seed, share=0.12):
    return make_binary_parts(120, 90, 4, share=share, flips=0.05, random_state=seed)[:3]


def same_parts(result, W, H):
    """Whether they are the planted ones, in some order."""
    found = {(w.tobytes(), h.tobytes()) for w, h in zip(np.ascontiguousarray(result.W.T), result.H.copy(), strict=True)}
    return found == {(w.tobytes(), h.tobytes()) for w, h in zip(np.ascontiguousarray(W.T), H, strict=True)}


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_parts_are_found_among_gross_errors_where_least_squares_fails(store):
    result = pw.factorize(store(SPOILT.X), 5, loss="l1", random_state=0)
    squares = pw.factorize(store(SPOILT.X), 5, random_state=0)
    assert likeness(result.H, SPOILT.H) > 0.99
    assert likeness(squares.H, SPOILT.H) < 0.7
    assert result.converged
    assert result.fit == pytest.approx(np.abs(SPOILT.X - result.W @ result.H).sum())
    assert result.relative_error == pytest.approx(result.fit / np.abs(SPOILT.X).sum())


@pytest.mark.parametrize("weight", [1.0, 0.4, 0.0])
def test_dense_and_sparse_are_one_algorithm(weight):
    X = SPOILT.X * (np.random.default_rng(1).uniform(size=SPOILT.X.shape) < 0.5)
    start = pw.factorize(X, 4, random_state=0, max_iter=5)
    settings = {"loss": pw.losses.L1(weight), "init": start, "max_iter": 6, "tol": 0, "normalize": None, "sort": False}
    one, two = (pw.factorize(M, 4, **settings) for M in (X, sparse.csr_array(X)))
    assert np.allclose(one.W, two.W, atol=1e-9)
    assert np.allclose(one.H, two.H, atol=1e-9)
    assert one.fit == pytest.approx(pw.losses.L1(weight).value(X, one.W @ one.H))


def test_zeros_of_weight_0_are_missing():
    """Half of the entries are lost as zeros: the rest is enough, and says what they were."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.1, 1, size=(80, 3)) @ rng.uniform(0.1, 1, size=(3, 60))
    X = np.where(rng.uniform(size=truth.shape) < 0.5, truth, 0)
    errors = {}
    for weight in (0.0, 1.0):
        result = pw.factorize(sparse.csr_array(X), 3, loss=pw.losses.L1(zero_weight=weight), random_state=0)
        errors[weight] = np.abs(result.W @ result.H - truth).sum() / truth.sum()
    assert errors[0.0] < 0.01
    assert errors[1.0] > 0.3


@pytest.mark.parametrize("weight", [-0.1, 1.5, "1", True, np.nan])
def test_a_zero_weight_that_is_none(weight):
    with pytest.raises(ValueError, match="zero_weight must be a number between 0 and 1"):
        pw.losses.L1(zero_weight=weight)


# -- 0/1 data ----------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("unit", [1.0, 12.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_binary_data_with_a_binary_start_stay_binary(store, unit, dtype):
    X, _, _ = binary_data(3)
    seen = []
    result = pw.factorize(
        store((unit * X).astype(dtype)),
        5,
        loss="l1",
        init="greedy-l1",
        normalize=None,
        callbacks=[lambda record, factors: seen.append([np.unique(A[A > 0]).size for A in factors])],
    )
    assert len(seen) > 1
    assert max(map(max, seen)) == 1  # one value besides 0, in every iteration
    if unit == 1:
        assert set(np.unique(result.W)) == set(np.unique(result.H)) == {0, 1}
        assert result.fit == int(np.abs(X - result.W @ result.H).sum())


@pytest.mark.slow
def test_binary_parts_are_told_apart_exactly():
    recovered = 0
    for seed in range(5):
        X, W, H, _ = make_binary_parts(300, 200, 5, share=0.1, flips=0.05, random_state=seed)
        result = pw.factorize(X, 5, loss="l1", structure_W=s.Binary(), structure_H=s.Binary(), n_init=3, random_state=0)
        assert set(np.unique(result.W)) | set(np.unique(result.H)) <= {0, 1}
        assert result.certificate.feasible
        assert result.fit <= np.abs(X - W @ H).sum()  # never worse than the truth
        recovered += same_parts(result, W, H)
    assert recovered >= 4


@pytest.mark.parametrize("structure", [s.NonNegative() & s.L1(0.5), s.Box(0, 1), "fixed"], ids=str)
def test_binary_data_stay_binary_with_penalties_bounds_and_fixed_parts(structure):
    X, _, _ = binary_data(3)
    start = pw.factorize(X, 5, loss="l1", init="greedy-l1", max_iter=1)
    held = s.NonNegative() & s.Fixed(start.H[:2]) if structure == "fixed" else structure
    result = pw.factorize(X, 5, loss="l1", structure_H=held, init=start)
    assert set(np.unique(result.W)) | set(np.unique(result.H)) <= {0, 1}
    assert result.fit <= start.fit + 1e-9


def test_disagreements_are_those_of_the_sum_and_of_the_boolean_product():
    X, _, _ = binary_data(1, share=0.25)
    result = pw.factorize(sparse.csr_array(X), 4, loss="l1", structure_W="binary", structure_H="binary", random_state=0)
    Y = result.W @ result.H
    assert Y.max() > 1
    assert result.certificate.disagreements == (np.count_nonzero(Y != X), np.count_nonzero((Y > 0) != X))
    assert "not the Boolean product" in str(result.certificate)
    assert pw.factorize(X, 4, loss="l1", random_state=0).certificate.disagreements is None  # its parts are not 0/1


def test_one_factor_may_be_binary_and_the_other_not():
    rng = np.random.default_rng(0)
    W, H = (rng.uniform(size=(60, 3)) < 0.4).astype(float), rng.uniform(1, 2, size=(3, 40))
    result = pw.factorize(W @ H, 3, loss="l1", structure_W=s.Binary(), n_init=3, random_state=0)
    assert set(np.unique(result.W)) == {0, 1}
    assert result.relative_error < 1e-10


# -- what coordinate descent can and cannot do ---------------------------------------------------------------


def test_a_random_start_collapses_and_is_mended():
    """From random factors nearly all entries go to 0 in the first sweep; no part ends so."""
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (80, 60), density=0.05, random_state=rng, data_sampler=lambda size: 1 + rng.poisson(2, size)
    )
    result = pw.factorize(X, 6, loss="l1", init="random", random_state=0)
    assert result.certificate.zero_components == ()
    assert result.fit < np.abs(X).sum()


def test_dead_parts_are_told():
    """Nothing is left to explain for the second part."""
    w, h = np.array([[1.0], [2], [3]]), np.array([[1.0, 0, 2, 1]])
    start = np.hstack([w, 0 * w]), np.vstack([h, 0 * h])
    result = pw.factorize(w @ h, 2, loss="l1", init=start)
    assert result.fit == 0
    assert result.certificate.zero_components == (1,)
    assert "parts that are zero, from 1: 2" in str(result.certificate)


def row_optimum(x, H, cost=0.0, low=0.0, high=None):
    """`min_a |x - a H|_1 + cost sum a` within bounds, as a linear program with one variable for each difference."""
    r, n = H.shape
    matrix = np.block([[-H.T, -np.eye(n)], [H.T, -np.eye(n)]])
    bounds = [(low, high)] * r + [(0, None)] * n
    return linprog(np.r_[np.full(r, cost), np.ones(n)], A_ub=matrix, b_ub=np.r_[-x, x], bounds=bounds).fun


@pytest.mark.slow_cases("sparse")
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_exact_blocks_are_those_of_linear_programs(store):
    X = SPOILT.X[:40, :30] * (np.random.default_rng(2).uniform(size=(40, 30)) < 0.7)
    stuck = pw.solvers.WeightedMedian(extrapolate=False)
    plain = pw.factorize(store(X), 4, loss="l1", init="random", solver=stuck, random_state=0)
    exact = pw.factorize(
        store(X), 4, loss="l1", init=plain, solver=pw.solvers.WeightedMedian(exact_blocks=True), random_state=0
    )
    assert exact.converged
    assert exact.fit <= plain.fit
    assert exact.details["gained"] > 0.001 * plain.fit
    assert exact.details["passes"] >= 2
    assert exact.details["left"] <= 1e-4 * exact.fit
    for rows, A, B in ((X, exact.W, exact.H), (X.T, exact.H.T, exact.W.T)):
        values = np.abs(rows - A @ B).sum(axis=1)
        best = [row_optimum(x, B) for x in rows]
        assert values.sum() <= sum(best) + exact.details["left"] + 1e-6
    assert plain.details == {}
    assert exact.certificate.blocks == (exact.details["gained"], exact.details["left"])
    assert "rows solved as linear programs gained" in str(exact.certificate)


def test_exact_blocks_leave_empty_rows_alone():
    X = SPOILT.X[:20, :15].copy()
    X[3] = X[:, 4] = 0
    for weight in (0.0, 0.5):
        loss, solver = pw.losses.L1(weight), pw.solvers.WeightedMedian(exact_blocks=True)
        result = pw.factorize(sparse.csr_array(X), 2, loss=loss, solver=solver, random_state=0)
        assert result.fit == pytest.approx(loss.value(X, result.W @ result.H))


@pytest.mark.slow
def test_exact_blocks_in_float32():
    X = SPOILT.X[:40, :30].astype(np.float32)
    result = pw.factorize(X, 4, loss="l1", solver=pw.solvers.WeightedMedian(exact_blocks=True), random_state=0)
    assert result.W.dtype == result.H.dtype == np.float32
    best = sum(row_optimum(x, result.H.astype(float)) for x in X.astype(float))
    assert best <= result.fit <= (1 + 2e-4) * best


def test_exact_blocks_with_a_penalty_and_bounds():
    X = SPOILT.X[:30, :25]
    held = pw.factorize(X, 3, random_state=0).H
    result = pw.factorize(
        X,
        3,
        loss="l1",
        structure_W=s.NonNegative() & s.L1(0.5) & s.Box(0.05, 0.6),
        structure_H=s.Fixed(held),
        solver=pw.solvers.WeightedMedian(exact_blocks=True),
    )
    for x, w in zip(X, result.W, strict=True):
        best = row_optimum(x, held, 0.5, 0.05, 0.6)
        assert np.abs(x - w @ held).sum() + 0.5 * w.sum() == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("structure", [s.Binary(), s.NonNegative() & s.L2(0.1), s.Free()], ids=str)
def test_exact_blocks_say_what_they_cannot(structure):
    with pytest.raises(IncompatibleError, match="exact_blocks solves linear programs"):
        pw.factorize(SPOILT.X, 3, loss="l1", structure_H=structure, solver=pw.solvers.WeightedMedian(exact_blocks=True))


def test_the_certificate_speaks_of_entries():
    result = pw.factorize(SPOILT.X, 5, loss="l1", random_state=0)
    count, total = result.certificate.n_suboptimal
    assert total == result.W.size + result.H.size
    assert count <= 1e-4 * total
    assert f"entries at their exact minimiser, the others held: {total - count} of {total}" in str(result.certificate)
    assert "several at once might still gain" in str(result.certificate)
    with pytest.raises(ValueError, match="least squares only"):
        result.certify(SPOILT.X)


# -- the rest of the house -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_new_rows_are_projected_by_the_same_loss_each_on_its_own(store):
    model = pw.NMF(5, loss="l1", random_state=0).fit(store(SPOILT.X))
    W = model.transform(store(SPOILT.X))
    alone = model.transform(store(SPOILT.X[7:9]))
    assert np.allclose(alone, W[7:9], rtol=1e-12, atol=1e-12)  # arrays of few rows may be held by their nonzeros
    assert np.array_equal(alone, W[7:9]) or store is np.asarray
    values = np.abs(SPOILT.X - W @ model.components_).sum(axis=1)
    best = np.array([row_optimum(x, model.components_) for x in SPOILT.X])
    assert values.sum() <= 1.001 * best.sum()
    exact = pw.NMF(5, loss="l1", random_state=0, solver=pw.solvers.WeightedMedian(exact_blocks=True))
    exact.fit(store(SPOILT.X))
    W = exact.transform(store(SPOILT.X[:20]))
    best = [row_optimum(x, exact.components_) for x in SPOILT.X[:20]]
    assert np.abs(SPOILT.X[:20] - W @ exact.components_).sum() <= (1 + 1e-6) * sum(best)


@pytest.mark.slow_cases("exact blocks")
@pytest.mark.parametrize(
    "options",
    [{"solver": pw.solvers.WeightedMedian(exact_blocks=True)}, {"structure_W": s.Binary()}],
    ids=["exact blocks", "binary"],
)
def test_rows_are_projected_alone_with_all_options(options):
    model = pw.NMF(4, loss="l1", random_state=0, **options).fit(SPOILT.X[:60])
    together = model.transform(SPOILT.X[60:90])
    alone = np.vstack([model.transform(x[None]) for x in SPOILT.X[60:90]])
    assert np.allclose(together, alone, rtol=1e-12, atol=1e-12)  # rows of few nonzeros are held by these


def test_signed_factors_need_a_dense_array():
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40))
    X = clean.copy()
    X[rng.uniform(size=X.shape) < 0.05] = 50
    settings = {"loss": "l1", "structure_W": s.Free(), "structure_H": s.Free(), "random_state": 0}
    result = pw.factorize(X, 3, n_init=3, **settings)
    assert result.fit < 1.02 * np.abs(X - clean).sum()
    with pytest.raises(IncompatibleError, match=r"X.toarray\(\)"):
        pw.factorize(sparse.csr_array(X), 3, **settings)
    with pytest.raises(ValueError, match="needs nonnegative factors"):
        pw.factorize(X, 3, **settings | {"loss": pw.losses.L1(0.5)})


def test_other_solvers_say_what_can():
    with pytest.raises(IncompatibleError, match="These can: weighted_median"):
        pw.factorize(SPOILT.X, 3, loss="l1", solver="hals")
    with pytest.raises(IncompatibleError, match=r"not Binary\(\) for W: use loss='frobenius' or 'l1'") as error:
        pw.factorize(SPOILT.X, 3, loss="kl", structure_W=s.Binary())
    assert "gcd" not in str(error.value)  # which has nothing to do with it


@pytest.mark.usefixtures("plain_pictures")
def test_on_the_command_line(tmp_path, capsys):
    X, _, _ = binary_data(0)
    np.save(tmp_path / "x.npy", X)
    run = ["fit", str(tmp_path / "x.npy"), "--rank", "4", "--out", str(tmp_path / "out")]
    assert main([*run, "--loss", "l1(zero_weight=0.5)", "--structure-w", "binary", "--structure-h", "binary"]) == 0
    assert "not the Boolean product" in capsys.readouterr().out
    about = json.loads((tmp_path / "out" / "result.json").read_text())
    assert about["loss"] == "L1(zero_weight=0.5)"
    assert about["certificate"]["disagreements"][0] >= about["certificate"]["disagreements"][1] > 0


def test_warm_starts_and_several_starts():
    one = pw.factorize(SPOILT.X, 5, loss="l1", random_state=0, n_init=3)
    assert len(one.objectives) == 3
    assert len(set(one.objectives)) > 1
    again = pw.factorize(SPOILT.X, 5, loss="l1", init=one)
    assert again.fit <= one.fit * (1 + 1e-12)


@pytest.mark.parametrize("unit", [2.0**30, 1e-150, 1e150])
def test_units_do_not_matter(unit):
    one = pw.factorize(SPOILT.X, 5, loss="l1", random_state=0)
    two = pw.factorize(unit * SPOILT.X, 5, loss="l1", random_state=0)
    assert two.fit == pytest.approx(unit * one.fit, rel=1e-3)
    assert two.relative_error == pytest.approx(one.relative_error, rel=1e-3)
    assert two.data_norm == pytest.approx(unit * one.data_norm)


def test_saved_and_loaded(tmp_path):
    solver = pw.solvers.WeightedMedian(exact_blocks=True)
    result = pw.factorize(SPOILT.X[:20, :15], 2, loss=pw.losses.L1(0.5), solver=solver, random_state=0)
    loaded = pw.load(result.save(tmp_path / "parts.partwise"))
    assert loaded.details == result.details
    assert loaded.loss == result.loss
    assert loaded.certificate == result.certificate
