"""Every storage of a tensor says what the array says, and a matrix is the tensor of order 2."""

import math

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise.data import Coordinates, Dense, SparseTensor, as_data
from partwise.data import dense as dense_storage
from partwise.data.rows import blocks_of
from partwise.data.spectrum import gram
from partwise.data.validation import checked_data
from partwise.init import Empty, Random
from partwise.kernels import threads
from partwise.losses import KL, L1, Beta, Frobenius
from partwise.problem import pose
from partwise.registry import choose, refusal
from partwise.solvers import Greedy
from partwise.structures import NonNegative

from ..covering import EACH
from .tables import INITS, LOSSES, SOLVERS, sparse_tensor

RANK = 3
SHAPES = {3: (6, 5, 4), 4: (4, 5, 3, 2), 5: (3, 2, 4, 2, 3), 6: (2, 3, 2, 2, 3, 2)}


def tensor(shape, density=0.6, seed=0):
    """Counts with a slice of zeros, exact in binary."""
    rng = np.random.default_rng(seed)
    T = rng.poisson(2.0, size=shape) * (rng.uniform(size=shape) < density) * 0.25
    if shape[0] > 2:
        T[1] = 0
    return T


def in_order(*axes):
    """An array whose axes lie so in memory."""
    return lambda T: np.ascontiguousarray(T.transpose(axes)).transpose(np.argsort(axes))


def disordered(T):
    """Coordinates in no order, some twice, with zeros among them."""
    S, rng = sparse_tensor(T), np.random.default_rng(1)
    order = rng.permutation(S.nnz)
    coords, values = S.coords[order], S.values[order] / 2
    nothing = np.zeros((1, T.ndim), int), np.zeros(1, T.dtype)
    return SparseTensor(np.vstack([coords, coords, nothing[0]]), np.concatenate([values, values, nothing[1]]), T.shape)


STORAGES = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "axes rolled": lambda T: in_order(*np.roll(range(T.ndim), 1))(T),
    "axes swapped": lambda T: in_order(1, 0, *range(2, T.ndim))(T),
    "strided": lambda T: np.repeat(T, 2, axis=1)[:, ::2],
    "coordinates": sparse_tensor,
    "disordered coordinates": disordered,
}
storages = pytest.mark.parametrize("store", STORAGES.values(), ids=STORAGES)
orders = pytest.mark.parametrize("shape", SHAPES.values(), ids=map(str, SHAPES))


@pytest.fixture
def small_pieces(monkeypatch):
    """Unfoldings in several blocks of rows."""
    monkeypatch.setattr(dense_storage, "LEAST_ROWS", 1)
    monkeypatch.setattr(dense_storage, "MOST_ENTRIES", 40)
    monkeypatch.setattr("partwise.data.coordinates.ENTRIES", 30)
    monkeypatch.setattr("partwise.data.coordinates.SPREAD", 30)
    monkeypatch.setattr("partwise.data.dense.BLOCK", 30)


def array_of(data):
    """Rows put together again, their columns in the order that the data say."""
    mode, width = data.natural, math.prod(data.shape) // data.shape[data.natural]
    entries = np.concatenate([block.entries for X in data.rows(mode) for block in blocks_of(X, width)])
    axes = [mode, *data.columns(mode)]
    return entries.reshape([data.shape[axis] for axis in axes]).transpose(np.argsort(axes))


def all_but(T, mode):
    return tuple(other for other in range(T.ndim) if other != mode)


def mttkrp(T, factors, mode):
    pairs = [item for other in all_but(T, mode) for item in (factors[other], [other, T.ndim])]
    return np.einsum(T, range(T.ndim), *pairs, [mode, T.ndim])


@EACH
@pytest.mark.slow_cases("float32")
@storages
@orders
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equals_the_array(store, shape, dtype, small_pieces):
    T = tensor(shape)
    data, Y = as_data(checked_data(store(T.astype(dtype)), any_order=True)).scaled(4.0), T / 4
    close = {"rtol": 1e-12 if dtype == np.float64 else 2e-6, "atol": 1e-12 if dtype == np.float64 else 1e-6}
    factors = [np.random.default_rng(2).uniform(size=(dim, RANK)).astype(dtype) for dim in shape]
    assert (data.shape, data.dtype, data.n_nonzeros) == (shape, dtype, np.count_nonzero(T))
    assert data.norm2 == pytest.approx(np.square(Y).sum())
    assert np.allclose(array_of(data.every_entry()), Y, **close)
    for mode in range(len(shape)):
        expected = mttkrp(Y, factors, mode)
        assert data.cross(factors, mode).dtype == dtype
        assert data.cross(factors, mode).flags.c_contiguous
        assert np.allclose(data.cross(factors, mode), expected, **close)
        assert np.allclose(data.map(data.kernels.product, factors, mode)[0][0], expected, **close)
        assert np.allclose(data.row_sums(mode, 2.0), np.square(Y).sum(axis=all_but(T, mode)), **close)
        assert np.array_equal(data.row_sums(mode, 0.0), np.count_nonzero(Y, axis=all_but(T, mode)))
        unfolded = np.moveaxis(Y, mode, 0).reshape(shape[mode], -1)
        assert np.allclose(gram(data, mode), unfolded @ unfolded.T, **close)


@storages
def test_products_follow_their_factors(store):
    """What modes share is kept while the factors are the same, and no longer, whether they are replaced or written
    to."""
    T, rng = tensor((6, 5, 4, 3)), np.random.default_rng(3)
    data = as_data(checked_data(store(T), any_order=True))
    factors = [rng.uniform(size=(dim, RANK)) for dim in T.shape]
    for mode in (0, 1, 0, 2, 3, 1, 0, 3, 2):
        assert np.allclose(data.cross(factors, mode), mttkrp(T, factors, mode))
        assert np.allclose(data.map(data.kernels.product, factors, mode)[0][0], mttkrp(T, factors, mode))
        if mode == 1:
            factors[mode][:] = rng.uniform(size=factors[mode].shape)
        else:
            factors[mode] = rng.uniform(size=factors[mode].shape)


def test_an_iteration_takes_two_products_with_the_array(monkeypatch):
    data = as_data(np.random.default_rng(0).uniform(size=(7, 6, 5, 8)))
    calls, product = [], data.kernels.dense_product
    monkeypatch.setattr(data.kernels, "dense_product", lambda *args: calls.append(1) or product(*args))
    factors = [np.ones((dim, RANK)) for dim in data.shape]
    for _ in range(2):
        for mode in range(4):
            factors[mode] = data.cross(factors, mode)
    assert len(calls) == 4


@pytest.mark.parametrize("name", ["C order", "Fortran order", "axes rolled", "axes swapped"])
def test_arrays_are_not_copied(name, tmp_path):
    T = STORAGES[name](tensor((6, 5, 4)))
    assert np.shares_memory(as_data(checked_data(T, any_order=True)).array, T)
    np.save(tmp_path / "t.npy", tensor((6, 5, 4)))
    data = as_data(checked_data(np.load(tmp_path / "t.npy", mmap_mode="r"), any_order=True))
    assert not data.array.flags.writeable
    assert np.allclose(data.cross([np.ones((dim, 1)) for dim in data.shape], 1)[:, 0], T.sum(axis=(0, 2)))


@EACH
@storages
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_every_loss_sees_the_same_problem(store, loss, small_pieces):
    """Objective, stationarity and one step of a solver."""
    T, rng = tensor((6, 5, 4)) + 0.25 * (loss.degree <= 0), np.random.default_rng(2)
    factors, seen = [rng.uniform(0.1, 1, size=(dim, RANK)) for dim in T.shape], []
    for X in (T, store(T)):
        problem = pose(as_data(checked_data(X, any_order=True)), loss, [NonNegative()] * 3, RANK).normalized()
        start = problem.from_user(factors)
        solver = choose(problem, "auto")[0]
        state = solver.init(problem, start, 0.0, np.random.RandomState(0))
        seen.append([solver, *problem.measure(start), problem.null_error, *solver.step(problem, state).factors])
    assert seen[0][0] == seen[1][0]
    assert seen[1][1:4] == pytest.approx(seen[0][1:4], rel=1e-10)
    assert all(np.allclose(A, B, atol=1e-10) for A, B in zip(seen[0][4:], seen[1][4:], strict=True))
    model = np.einsum("ik,jk,lk->ijl", *factors)
    problem = pose(as_data(checked_data(store(T), any_order=True)), loss, [NonNegative()] * 3, RANK)
    assert problem.fit(factors) == pytest.approx(loss.value(T, model), rel=1e-10)


def test_l1_where_factors_may_be_negative():
    """Zeros then cost as much as other entries, and components that become zero are re-initialised."""
    T = np.zeros((6, 5, 4))
    T[0, 0, 0] = T[1, 1, 1] = T[2, 2, 2] = 1
    found = [
        pw.factorize(X, 4, loss="l1", structures=["l1(0.5)", None, None], random_state=0) for X in (T, sparse_tensor(T))
    ]
    assert found[0].objective == pytest.approx(found[1].objective)


def same_everywhere(found, tol=1e-9):
    first, *rest = found.values()
    for factors in rest:
        assert all(np.allclose(A, B, rtol=tol, atol=tol) for A, B in zip(first, factors, strict=True))


@pytest.mark.parametrize("start", INITS.values(), ids=INITS)
def test_every_start_is_the_same_for_every_storage(start):
    loss = L1() if start.name.endswith("l1") else Frobenius()
    found = {}
    for name, store in STORAGES.items():
        data = as_data(checked_data(store(tensor((6, 5, 4))), any_order=True))
        problem = pose(data, loss, [NonNegative()] * 3, RANK).normalized()
        if start.matrix_only:
            with pytest.raises(ValueError, match="is for matrices, and X has 3 modes"):
                start(problem, np.random.RandomState(0))
            return
        found[name] = start(problem, np.random.RandomState(0))
    same_everywhere(found)


PROBLEMS = {
    f"{name}-{what}": (solver, loss)
    for name, solver in SOLVERS.items()
    for what, loss in (("frobenius", Frobenius()), ("kl", KL()), ("beta", Beta(1.5)), ("l1", L1()))
    if refusal(solver, pose(as_data(tensor((6, 5, 4))), loss, [NonNegative()] * 3, RANK)) is None
}


@pytest.mark.parametrize("solver, loss", PROBLEMS.values(), ids=PROBLEMS)
def test_every_solver_goes_the_same_way_for_every_storage(solver, loss):
    found = {}
    for name, store in STORAGES.items():
        data = as_data(checked_data(store(tensor((6, 5, 4))), any_order=True))
        problem = pose(data, loss, [NonNegative()] * 3, RANK).normalized()
        start = (Empty() if isinstance(solver, Greedy) else Random())(problem, np.random.RandomState(0))
        state = solver.init(problem, start, 0.5, np.random.RandomState(0))
        for _ in range(4):
            step = solver.step(problem, state)
        found[name] = [*step.factors, step.objective]
    same_everywhere(found, 1e-6 if isinstance(solver, Greedy) else 1e-9)  # its rounds of alternation add up


@EACH
@pytest.mark.parametrize("solver, loss", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("store", [np.asarray, sparse_tensor], ids=["dense", "sparse"])
def test_same_bits_for_any_number_of_threads(solver, loss, store, monkeypatch):
    shape = (8, 7, 6) if isinstance(solver, Greedy) else (16, 15, 14)  # bounds take their time
    problem = pose(as_data(store(tensor(shape))), loss, [NonNegative()] * 3, RANK).normalized()
    monkeypatch.setattr(threads, "pieces", lambda *_: 8)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        start = (Empty() if isinstance(solver, Greedy) else Random())(problem, np.random.RandomState(0))
        state = solver.init(problem, start, 0.0, np.random.RandomState(0))
        for _ in range(4):
            step = solver.step(problem, state)
        found.append(step.factors)
    assert all(np.array_equal(A, B) for A, B in zip(*found, strict=True))


@pytest.mark.parametrize("loss", ["frobenius", "kl", "l1", 1.5])
def test_a_tensor_of_order_2_is_a_matrix(loss):
    """To the bit, however it comes."""
    X = tensor((20, 15))
    for one, other in ((X, X), (sparse_tensor(X), sparse.csr_array(X))):
        results = [
            pw.factorize(one, RANK, loss=loss, structures=[None, "nonnegative & l2(0.1)"], random_state=0),
            pw.factorize(other, RANK, loss=loss, structure_H="nonnegative & l2(0.1)", random_state=0),
        ]
        assert results[0].objective == results[1].objective
        assert all(np.array_equal(A, B) for A, B in zip(*(result.factors for result in results), strict=True))


HELD = {"frobenius": (Frobenius(), 1 / 5), "kl": (KL(), 1 / 3), "l1": (L1(), 1 / 3), "beta": (Beta(1.5), 0)}


@pytest.mark.parametrize("loss, limit", HELD.values(), ids=HELD)
def test_an_array_of_few_nonzeros_is_held_by_these(loss, limit):
    for density in (0.1, 0.25, 0.5):
        T = np.zeros(1000)
        T[: int(1000 * density)] = 1
        held = pose(as_data(T.reshape(10, 10, 10)), loss, [NonNegative()] * 3, RANK).data
        assert isinstance(held, Coordinates if density < limit else Dense)


def test_losses_that_look_at_every_zero_say_so():
    T = SparseTensor([[0, 0, 0], [99999, 99999, 9]], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"looks at every entry of X, zeros too, and there are 1e\+11 of them"):
        pw.factorize(T, 2, loss=1.5)
    assert pw.factorize(T, 2, loss="kl", random_state=0, max_iter=3, tol=1.0).shape == (100000, 100000, 10)
