"""Every storage says what the dense array says."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_array

from partwise.data import Dense, Sparse, as_data, spectrum
from partwise.data.rows import blocks
from partwise.data.spectrum import gram, svd
from partwise.data.validation import SPARSE, checked_data
from partwise.init import Empty, Random
from partwise.losses import KL, L1, Beta, Frobenius
from partwise.problem import pose
from partwise.problem.symmetric import asymmetry_of, diagonal_of, without_diagonal
from partwise.registry import choose
from partwise.solvers import Greedy, SymmetricGN
from partwise.structures import Fixed, Free, NonNegative

from ..covering import EACH
from .tables import INITS, LOSSES, PLANTED, RANK, SOLVERS, STORAGES, problem_for

RNG = np.random.default_rng(8)
X = PLANTED.X * (np.random.default_rng(0).uniform(size=PLANTED.X.shape) < 0.5)
storages = pytest.mark.parametrize("store", STORAGES.values(), ids=STORAGES)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@EACH
@pytest.mark.slow_cases("float32")
@storages
@dtypes
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_equals_dense(store, dtype, scale):
    stored = store(X)
    data = as_data(checked_data(stored.astype(dtype))).scaled(scale)
    Y = X / scale
    close = {"rtol": 1e-12 if dtype == np.float64 else 2e-6, "atol": 1e-12 if dtype == np.float64 else 1e-6}
    rng = np.random.default_rng(1)
    W, H = (rng.uniform(size=(dim, RANK)).astype(dtype) for dim in X.shape)
    assert data.dtype == dtype
    assert data.shape == X.shape
    assert np.allclose(data.cross((W, H), 0), Y @ H, **close)
    assert np.allclose(data.cross((W, H), 1), Y.T @ W, **close)
    assert data.cross((W, H), 1).flags.c_contiguous
    assert data.cross((W, H), 0).dtype == dtype
    assert data.norm2 == pytest.approx(np.square(Y).sum(), rel=1e-6)
    assert data.n_nonzeros == np.count_nonzero(Y)
    assert data.density == np.mean(Y != 0)
    assert data.mean == pytest.approx(np.abs(Y).mean(), rel=1e-6)
    assert data.extremes == pytest.approx((Y.min(), Y.max()), rel=1e-6)
    assert Frobenius().direct_fit(data, (W, H)) == pytest.approx(0.5 * np.square(Y - W @ H.T).sum(), rel=1e-6)
    for mode, M in ((0, Y), (1, Y.T)):
        assert np.allclose(gram(data, mode), M @ M.T, **close)
        assert np.allclose(data.row_sums(mode, 2.0), np.square(M).sum(axis=1), **close)
        assert np.array_equal(data.row_sums(mode, 0.0), np.count_nonzero(M, axis=1))
        assert np.allclose(data.take(mode, slice(1, 3)), M[1:3], **close)
    U, s, V = svd(data, RANK, 0)
    full_U, full_s, full_Vt = np.linalg.svd(Y)
    assert np.allclose((U * s) @ V.T, (full_U[:, :RANK] * full_s[:RANK]) @ full_Vt[:RANK], atol=1e-4)


@dtypes
@pytest.mark.parametrize(("decay", "looks"), [(0.97, 8), (0.5, 14), (1e-3, 14)])
def test_singular_vectors_are_those_of_scikit_learn_whether_columns_stay_apart_or_not(decay, looks, dtype, monkeypatch):
    """Where they do they are looked at after every other product, but for the first of 14."""
    left, right = (np.linalg.qr(RNG.normal(size=(dim, 40)))[0] for dim in (300, 200))
    Y = ((left * decay ** np.arange(40.0)) @ right.T).astype(dtype)
    calls, conditioned = [], spectrum.conditioned
    monkeypatch.setattr(spectrum, "conditioned", lambda Q: calls.append(Q.shape) or conditioned(Q))
    U, s, V = svd(as_data(Y), 5, 0)
    expected, values, Vt = randomized_svd(Y, 5, random_state=0)
    assert len(calls) == looks
    assert np.allclose(s, values, rtol=0, atol=2e-6 * values[0])
    close = {"rtol": 1e-4, "atol": 1e-3 if dtype == np.float32 else 1e-8}
    well = values > 1e-4 * values[0]
    assert np.allclose(U[:, well], expected[:, well], **close)
    assert np.allclose((U * s) @ V.T, (expected * values) @ Vt, atol=1e-5)


@dtypes
def test_columns_whose_pivots_do_not_show_that_they_are_dependent_become_orthonormal(dtype):
    """The pivots of a Kahan matrix are all alike."""
    basis = np.linalg.qr(RNG.normal(size=(300, 60)))[0]
    Y = (basis @ (np.eye(60) - np.triu(np.ones((60, 60)), 1))).astype(dtype)
    Q, R = spectrum.orthonormal(Y)
    assert np.abs(Q.T @ Q - np.eye(60)).max() < 100 * np.finfo(dtype).eps
    assert np.allclose(Q @ R, Y, atol=1e3 * np.finfo(dtype).eps)


@storages
def test_extremes_follow_the_scale(store):
    data = as_data(checked_data(store(X + 1.0))).scaled(8.0)
    assert data.extremes == pytest.approx(((X.min() + 1) / 8, (X.max() + 1) / 8))


@pytest.mark.slow_cases("float32")
@storages
@dtypes
def test_the_diagonal_of_a_square(store, dtype):
    Y = X[:, :7].T @ X[:, :7] + np.diag(np.arange(7.0))
    Y[0, 3] = Y[3, 0] = 0
    Y[2, 5] += 0.5
    data = as_data(checked_data(store(Y).astype(dtype))).scaled(4.0)
    assert asymmetry_of(data) == pytest.approx(0.125, rel=1e-4)
    assert diagonal_of(data).dtype == np.float64
    assert np.allclose(diagonal_of(data), np.diag(Y) / 4, rtol=1e-6)
    bare, before = without_diagonal(data), [part.copy() for part in data.arrays]
    assert np.allclose(bare.take(0, slice(None)), (Y - np.diag(np.diag(Y))) / 4, rtol=1e-6)
    assert bare.extremes == pytest.approx((0, (Y - np.diag(np.diag(Y))).max() / 4), rel=1e-6)
    assert not diagonal_of(bare).any()
    assert without_diagonal(bare) is bare
    assert all(map(np.array_equal, data.arrays, before))


@EACH
@storages
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_every_loss_sees_the_same_problem(store, loss):
    """Objective, stationarity and one step of a solver; explicit zeros and long indices included."""
    Y = X + 0.1 * (loss.degree <= 0)
    rng = np.random.default_rng(2)
    factors = [rng.uniform(0.1, 1, size=(dim, RANK)) for dim in Y.shape]
    seen = []
    for M in (Y, store(Y)):
        problem = pose(as_data(checked_data(M)), loss, (NonNegative(), NonNegative()), RANK).normalized()
        start = problem.from_user(factors)
        solver = choose(problem, "auto")[0]
        state = solver.init(problem, start, 0.0, np.random.RandomState(0))
        seen.append([solver, *problem.measure(start), *(A for A in solver.step(problem, state).factors)])
    assert seen[1][0] == seen[0][0]
    assert seen[1][1:3] == pytest.approx(seen[0][1:3], rel=1e-10)
    assert all(np.allclose(A, B, atol=1e-10) for A, B in zip(seen[0][3:], seen[1][3:], strict=True))


def with_zeros(density):
    """Counts with ties and rows that are alike, 30 x 24, and rows and columns of zeros."""
    rng = np.random.default_rng(4)
    Y = rng.poisson(3.0, size=(30, 24)) * (rng.uniform(size=(30, 24)) < density) * 0.125  # exact, so that ties are
    Y[7], Y[11], Y[12], Y[:, 5] = 2 * Y[3], Y[4][::-1], 0, 0
    return Y


densities = pytest.mark.parametrize("density", [0.15, 0.3, 0.6])


@EACH
@densities
@pytest.mark.parametrize("start", INITS.values(), ids=INITS)
def test_every_start_is_the_same_for_every_storage(start, density):
    loss = L1() if start.name.endswith("l1") else Frobenius()
    found = {}
    for name, store in STORAGES.items():
        problem = pose(as_data(store(with_zeros(density))), loss, (NonNegative(), NonNegative()), RANK).normalized()
        found[name] = start(problem, np.random.RandomState(0))
    for factors in found.values():
        assert all(np.allclose(A, B, rtol=1e-9, atol=1e-9) for A, B in zip(factors, found["C order"], strict=True))


@densities
def test_a_factor_alone_starts_the_same_for_every_storage(density):
    Y, H = with_zeros(density), np.random.default_rng(0).uniform(size=(RANK, 24))
    found = {}
    for name, store in STORAGES.items():
        problem = pose(as_data(store(Y)), L1(), (NonNegative(), Fixed(H)), RANK).normalized()
        found[name] = INITS["smooth-l1"](problem, np.random.RandomState(0))[0]
    assert all(np.allclose(W, found["C order"], rtol=1e-9, atol=1e-9) for W in found.values())


@EACH
@densities
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_every_solver_goes_the_same_way_for_every_storage(solver, density):
    """A few iterations; tol is large, so that what follows convergence runs too."""
    found = {}
    for name in ("C order", "Fortran order", "csr", "disordered csr"):
        problem = problem_for(solver, with_zeros(density), RANK, store=STORAGES[name])
        start = (Empty() if isinstance(solver, Greedy) else Random())(problem, np.random.RandomState(0))
        state = solver.init(problem, start, 0.5, np.random.RandomState(0))
        for _ in range(4):
            step = solver.step(problem, state)
        found[name] = [*step.factors, step.objective]
    close = 1e-8 if isinstance(solver, SymmetricGN) else 1e-9  # its systems of equations enlarge rounding
    for factors in found.values():
        assert all(np.allclose(A, B, rtol=close, atol=close) for A, B in zip(factors, found["C order"], strict=True))


# -- which storage is taken -----------------------------------------------------------------------------

HELD = {  # the loss, structures, and the densities below which an array is held by its nonzeros
    "frobenius": (Frobenius(), NonNegative(), 1 / 5),
    "frobenius, signed": (Frobenius(), Free(), 1 / 5),
    "kl": (KL(), NonNegative(), 1 / 3),
    "l1": (L1(), NonNegative(), 1 / 3),
    "l1, signed": (L1(), Free(), 0),
    "l1, zeros count half": (L1(0.5), NonNegative(), 2),
    "beta": (Beta(1.5), NonNegative(), 0),
}


@pytest.mark.slow_cases("float32")
@dtypes
@pytest.mark.parametrize("loss, structure, limit", HELD.values(), ids=HELD)
def test_an_array_of_few_nonzeros_is_held_by_these(loss, structure, limit, dtype):
    """And takes no more than two thirds of its memory again; a sparse matrix stays one."""
    for nonzeros in (0, 100, 199, 200, 333, 334, 1000):
        Y = np.zeros((20, 50), dtype)
        Y.flat[RNG.permutation(1000)[:nonzeros]] = 1
        array, matrix = (pose(as_data(M), loss, (structure, structure), RANK).data for M in (Y, sparse.csr_array(Y)))
        assert isinstance(array, Sparse if nonzeros < limit * 1000 else Dense)
        assert isinstance(matrix, Sparse)
        if isinstance(array, Sparse):
            assert [(part.dtype, part.tolist()) for part in array.arrays] == [
                (part.dtype, part.tolist()) for part in matrix.arrays
            ]
            if limit < 1:
                assert sum(part.nbytes for part in array.arrays) < 2 / 3 * Y.nbytes + 100


@pytest.mark.parametrize("order", ["C", "F"])
def test_compressed(order, tmp_path):
    """Of read-only maps of files too; what is known of X in other units carries over."""
    np.save(tmp_path / "x.npy", np.array(X, order=order))
    for array in (np.array(X, order=order), np.load(tmp_path / "x.npy", mmap_mode="r")):
        data = as_data(array).scaled(4.0).compressed()
        assert (data.matrix != sparse.csr_array(X)).nnz == 0
        assert data.matrix.has_canonical_format
        assert data.scale == 4
        assert data.n_nonzeros == np.count_nonzero(X)
        assert data.compressed() is data


@storages
def test_the_callers_matrix_is_untouched(store):
    stored = store(X)
    before = stored.copy()
    data = as_data(checked_data(stored))
    data.cross((np.ones((X.shape[0], 1)), np.ones((X.shape[1], 1))), 0)
    if hasattr(stored, "indices"):
        assert np.array_equal(stored.indices, before.indices)
        assert np.array_equal(stored.data, before.data)
    dense, dense_before = (M if isinstance(M, np.ndarray) else M.toarray() for M in (stored, before))
    assert np.array_equal(dense, dense_before)


def test_blocks_cover_tall_data(monkeypatch):
    monkeypatch.setattr("partwise.data.rows.BLOCK", 20)
    for store in (np.asarray, STORAGES["csr"]):
        data = as_data(checked_data(store(X)))
        assert data.norm2 == pytest.approx(np.square(X).sum())
        assert np.vstack([block.entries for block in blocks(data)]) == pytest.approx(X)
        assert all(block.entries.size <= max(20, X.shape[1]) for block in blocks(data))
        for mode, M in ((0, X), (1, X.T)):
            assert np.allclose(gram(data, mode), M @ M.T)


def test_read_only_memory_map(tmp_path):
    np.save(tmp_path / "x.npy", X)
    data = as_data(checked_data(np.load(tmp_path / "x.npy", mmap_mode="r")))
    assert not data.array.flags.writeable
    assert np.allclose(data.cross((None, np.ones((X.shape[1], 1))), 0)[:, 0], X.sum(axis=1))


@pytest.mark.parametrize("order", ["C", "F"])
def test_contiguous_data_is_not_copied(order):
    A = np.array(X, order=order)
    assert np.shares_memory(as_data(checked_data(A)).array, A)


def test_sparse_formats_are_those_scikit_learn_takes():
    for store in STORAGES.values():
        check_array(store(X), accept_sparse=SPARSE)
