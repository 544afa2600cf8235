"""The rank-one oracle: points are what they say, bounds hold, and meet them where the problem is easy."""

import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from partwise import SparseTensor
from partwise.data import as_data
from partwise.datasets import make_parts
from partwise.oracles import doubly_nonnegative, matrices, nuclear, rank_one
from partwise.oracles.bounds import complementary, largest_eigenvalue, largest_singular_value

from .covering import seeds

HORN = np.array([[1, -1, 1, 1, -1], [-1, 1, -1, 1, 1], [1, -1, 1, -1, 1], [1, 1, -1, 1, -1], [-1, 1, 1, -1, 1]], float)


def masks(n):
    return np.array(list(product([0.0, 1.0], repeat=n)))[1:]


def best_single(Q):
    """`min u' Q u` by all supports: at the best point u is the leading eigenvector of its own submatrix."""
    P, supports = -Q, masks(len(Q))
    far = 10 * np.abs(P).sum()  # entries outside a support go where no leading eigenvector is
    M = P * supports[:, :, None] * supports[:, None, :] - far * (np.eye(len(Q)) * (1 - supports)[:, :, None])
    values, vectors = np.linalg.eigh(M)
    u = vectors[:, :, -1]
    return -values[(sign_of(u) * u >= -1e-9).all(axis=1), -1].max()


def sign_of(vectors):
    """Of the largest entry of each row."""
    largest = np.abs(vectors).argmax(axis=1)[:, None]
    return np.sign(np.take_along_axis(vectors, largest, axis=1))


def best_pair(Q):
    """`min u' Q v` by all pairs of supports; Q has a negative entry."""
    rows, columns = masks(Q.shape[0]), masks(Q.shape[1])
    best = 0.0
    for support in rows:
        M = -Q * support[:, None] * columns[:, None, :]
        U, s, Vt = np.linalg.svd(M)
        u, v = U[:, :, 0], Vt[:, 0]
        sign = sign_of(u)
        best = max(best, s[((sign * u >= -1e-9).all(axis=1)) & ((sign * v >= -1e-9).all(axis=1)), 0].max(initial=0))
    return -best


def gradient(shape=(40, 30), seed=0, noise=0.1):
    """Of a fit with too few parts."""
    made = make_parts(*shape, 5, noise=noise, random_state=seed)
    return made.W[:, :3] @ made.H[:3] - made.X


def product_with(Q, vectors):
    """`<Q, x_1 o ... o x_d>`."""
    for x in reversed(vectors):
        Q = Q @ x
    return Q


def check(atom, Q, symmetric=False):
    """What every answer must satisfy."""
    assert [len(x) for x in atom.vectors] == list(Q.shape)
    for x in atom.vectors:
        assert x.min() >= 0
        assert np.linalg.norm(x) == pytest.approx(1)
    assert atom.value == pytest.approx(product_with(Q, atom.vectors), abs=1e-9 * np.abs(Q).max())
    assert atom.bound <= atom.value
    assert not symmetric or np.array_equal(atom.u, atom.v)


def test_horn_matrix():
    """It is copositive, so the truth is 0, which the relaxation cannot see."""
    atom = rank_one(HORN, symmetric=True)
    check(atom, HORN, symmetric=True)
    assert atom.value == pytest.approx(0, abs=1e-12)
    assert atom.bound == pytest.approx(2 - np.sqrt(5), abs=1e-6)
    assert atom.bound <= 2 - np.sqrt(5)
    assert atom.status == "open"
    assert atom.gap > 1e9
    assert str(atom).endswith("(open, doubly nonnegative)")


@pytest.mark.parametrize("seed", seeds(200))
def test_symmetric_answers_against_all_supports(seed):
    Q = np.random.default_rng(seed).normal(size=(8, 8))
    Q = Q + Q.T
    atom, truth = rank_one(Q, symmetric=True), best_single(Q)
    check(atom, Q, symmetric=True)
    assert atom.bound <= truth * (1 + np.sign(truth) * 1e-9)
    assert atom.value >= truth - 1e-9 * abs(truth)
    assert atom.status != "closed" or atom.value == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("seed", seeds(40))
def test_answers_against_all_supports(seed):
    compare_with_supports(np.random.default_rng(seed).normal(size=(5, 6)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_answers_against_all_supports_of_8_x_8(seed):
    compare_with_supports(np.random.default_rng(seed).normal(size=(8, 8)))


def compare_with_supports(Q):
    atom, truth = rank_one(Q), best_pair(Q)
    check(atom, Q)
    assert atom.bound <= truth * (1 - 1e-9)
    assert atom.value >= truth * (1 + 1e-9)
    assert atom.status != "closed" or atom.value == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("steps", [1, 3])
def test_bounds_hold_when_stopped_early(steps, monkeypatch):
    monkeypatch.setattr(doubly_nonnegative, "STEPS", (steps, steps))
    monkeypatch.setattr(nuclear, "STEPS", (steps, steps))
    for seed in range(20):
        Q = np.random.default_rng(seed).normal(size=(5, 5))
        assert rank_one(Q, gap=0).bound <= best_pair(Q) * (1 - 1e-9)
        assert rank_one(Q + Q.T, symmetric=True, gap=0).bound <= best_single(Q + Q.T) + 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_gradients_are_closed(seed, noise):
    Q = gradient(seed=seed, noise=noise)
    atom = rank_one(Q)
    check(atom, Q)
    assert atom.status == "closed"
    assert atom.gap <= 1e-4


def test_every_stage_is_needed_somewhere():
    stages = {rank_one(gradient(seed=seed)).stage for seed in range(8)}
    stages |= {rank_one(np.random.default_rng(seed).uniform(-1, 1, size=(12, 9))).stage for seed in range(8)}
    assert stages >= {"nuclear", "doubly nonnegative"}
    assert rank_one(-np.ones((4, 3))).stage == "closed form"


def test_where_nothing_descends_the_least_entry_is_the_answer():
    Q = np.random.default_rng(0).uniform(0.5, 1, size=(6, 4))
    atom = rank_one(Q)
    check(atom, Q)
    assert atom.value == atom.bound == Q.min()
    assert atom.status == "closed"


matrices_of = {
    elements: arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=drawn)
    for elements, drawn in {
        "hundredths": st.floats(-4, 4).map(lambda x: round(x, 2)),
        "few": st.sampled_from([-2.0, -1.0, 0.0, 1.0]),
        "any size": st.sampled_from([-1.0, 0.0, 1e-200, -1e-200, 1e-9, 3.0]),
    }.items()
}


@settings(max_examples=60, deadline=None)
@given(st.one_of(*matrices_of.values()))
@example(np.array([[-1, 3, 0, 1e-9, -1e-200], [3, 1e-9, -1, 1e-9, 1e-9], [1e-9, 1e-9, -1, 1e-9, -1]]))
def test_any_matrix_gets_a_true_answer(Q):
    for method in ("chain", "power"):
        atom = rank_one(Q, method=method)
        check(atom, Q)
        if Q.min() < 0:
            assert atom.bound <= best_pair(Q) * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(st.one_of(*matrices_of.values()))
def test_any_symmetric_matrix_gets_a_true_answer(Q):
    Q = Q @ Q.T - np.diag(Q[:, 0])
    atom = rank_one(Q, symmetric=True)
    check(atom, Q, symmetric=True)
    truth = best_single(Q)
    assert atom.bound <= truth + 1e-9 * abs(truth) + 1e-12 * np.abs(Q).max()  # the truth is rounded, too


@pytest.mark.parametrize(
    "Q", [np.eye(3), np.zeros((3, 3)), -np.eye(2), np.array([[-2.0]]), np.array([[1.0, -1], [-1, 1]])]
)
def test_symmetric_matrices_with_nothing_to_find(Q):
    atom = rank_one(Q, symmetric=True)
    check(atom, Q, symmetric=True)
    assert atom.value == pytest.approx(best_single(Q), abs=1e-12)
    assert atom.status == "closed"


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype, off", [(np.float64, 9e-11), (np.float32, 8e-6)])
def test_bounds_hold_where_symmetry_is_rounded(dtype, off):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Q = (-np.triu(off * rng.uniform(size=(6, 6)), 1)).astype(dtype)
        Q[0, 0] = 1
        whole = Q.astype(float)
        assert rank_one(Q, symmetric=True).bound <= best_single((whole + whole.T) / 2)


def test_a_matrix_of_few_values():
    compare_with_supports(np.array([[0.0, -1, -1], [-2, 0, 0], [0, -1, 0]]))


def test_the_largest_numbers():
    atom = rank_one([[1.7e308, -1.7e308], [1, 2]])
    assert atom.value == pytest.approx(-1.7e308)


@pytest.mark.parametrize("exponent", [-150, 0, 150])
def test_units_do_not_matter(exponent):
    Q = gradient() * 10.0**exponent
    atom, plain = rank_one(Q), rank_one(gradient())
    assert atom.status == plain.status
    assert atom.value == pytest.approx(plain.value * 10.0**exponent, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [False, True])
def test_sparse_and_float32_matrices(symmetric):
    Q = gradient((30, 30))
    Q = np.where(np.abs(Q) > 0.1, Q, 0) if not symmetric else np.where(np.abs(Q + Q.T) > 0.1, Q + Q.T, 0)
    dense = rank_one(Q, symmetric)
    for other in (sparse.csr_array(Q), Q.astype(np.float32), Q.tolist()):
        atom = rank_one(other, symmetric)
        assert atom.value == pytest.approx(dense.value, rel=1e-4)
        assert atom.status == dense.status


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("symmetric", [False, True])
def test_large_matrices_are_not_certified_and_not_filled(store, symmetric, monkeypatch):
    Q = gradient((30, 30)) if not symmetric else gradient((30, 30)) + gradient((30, 30)).T
    small = rank_one(Q, symmetric)
    monkeypatch.setattr(matrices, "ENTRIES", 100)
    monkeypatch.setattr(matrices.Residual, "array", None)
    atom = rank_one(store(Q), symmetric)
    check(atom, Q, symmetric)
    assert (atom.status, atom.bound) == ("not certified", -np.inf)
    assert atom.value == pytest.approx(small.value, rel=1e-6)


def test_sides_too_long_for_eigenvalues_are_not_certified(monkeypatch):
    monkeypatch.setattr(nuclear, "SIDE", 10)
    monkeypatch.setattr(doubly_nonnegative, "SIDE", 10)
    assert rank_one(gradient()).status == "not certified"


def test_power_alone_gives_no_bound():
    atom = rank_one(gradient(), method="power")
    assert (atom.status, atom.bound) == ("not certified", -np.inf)
    assert atom.value == pytest.approx(rank_one(gradient()).value)


@pytest.mark.parametrize("symmetric", [False, True])
def test_cvxpy_agrees(symmetric):
    pytest.importorskip("cvxpy")
    Q = gradient((12, 10)) if not symmetric else HORN
    ours, theirs = (rank_one(Q, symmetric, method=method, gap=1e-6) for method in ("chain", "cvxpy"))
    assert theirs.value == pytest.approx(ours.value, abs=1e-6)
    assert theirs.bound == pytest.approx(ours.bound, abs=2e-4)
    assert theirs.stage == "cvxpy"


def test_without_cvxpy_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"pip install 'partwise\[cvxpy\]'"):
        rank_one(gradient(), method="cvxpy")


def test_the_same_seed_gives_the_same_bits():
    one, two = rank_one(gradient()), rank_one(gradient())
    assert np.array_equal(one.u, two.u)
    assert one.bound == two.bound


@pytest.mark.parametrize(
    "Q, options, message",
    [
        (np.ones((3, 4)), {"symmetric": True}, "symmetric=True needs a square Q"),
        (np.arange(9.0).reshape(3, 3), {"symmetric": True}, r"Q is not symmetric.*Pass \(Q \+ Q.T\) / 2"),
        (np.full((3, 3), np.nan), {}, "Q contains 9 NaN entries"),
        (np.ones((3, 3)), {"method": "magic"}, "method must be one of 'chain', 'power', 'cvxpy'; got 'magic'"),
        (np.ones((3, 3)), {"gap": -1}, "gap must be a number >= 0"),
        (np.ones(3), {}, "Q must be a matrix"),
        (np.ones((3, 3, 3)), {"method": "cvxpy"}, "method='cvxpy' is for matrices, and X has 3 modes"),
    ],
)
def test_bad_input(Q, options, message):
    with pytest.raises(ValueError, match=message):
        rank_one(Q, **options)


def test_complementary_matrices():
    rng = np.random.default_rng(0)
    u, v = (np.maximum(rng.normal(size=n), 0) for n in (9, 7))
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    a, b = rng.uniform(size=9) * (u == 0), rng.uniform(size=7) * (v == 0)
    for S in (rng.uniform(size=(9, 7)), np.zeros((9, 7))):
        T = complementary(S, (u, v), (a, b))
        assert T.min() >= 0
        assert np.allclose(T @ v, a)
        assert np.allclose(T.T @ u, b)


def test_eigenvalues_are_not_below_the_truth():
    for seed in range(20):
        M = np.random.default_rng(seed).normal(size=(30, 12))
        exact = np.linalg.svd(M, compute_uv=False)[0]
        for N in (M, M.T):
            assert exact <= largest_singular_value(N) <= exact * (1 + 1e-10)
        assert exact**2 <= largest_eigenvalue(M.T @ M) <= exact**2 * (1 + 1e-10)


# -- tensors ------------------------------------------------------------------------------------------------


def best_of_three(Q, steps=200):
    """About `min <Q, x o y o z>` of a Q with two entries in its last mode: the exact matrix problem for many z. Between
    two of them the value changes by at most `|Q| pi / (4 steps)`."""
    angles = np.linspace(0, np.pi / 2, steps + 1)
    slices = (Q @ np.array([np.cos(t), np.sin(t)]) for t in angles)
    return min(best_pair(M) for M in slices), np.linalg.norm(Q) * np.pi / (4 * steps)


@pytest.mark.parametrize("seed", range(6))
def test_answers_of_tensors_against_the_truth(seed):
    Q = np.random.default_rng(seed).normal(size=(3, 3, 2))
    atom, (truth, off) = rank_one(Q), best_of_three(Q)
    check(atom, Q)
    assert atom.bound <= truth
    assert truth - off <= atom.value <= truth + 1e-9
    assert atom.status in ("closed", "open")
    assert atom.status != "closed" or atom.gap <= 1e-4


tensors_of = [
    arrays.arrays(np.float64, arrays.array_shapes(min_dims=3, max_dims=5, max_side=3), elements=drawn)
    for drawn in (st.floats(-4, 4).map(lambda x: round(x, 2)), st.sampled_from([-2.0, -1.0, 0.0, 1.0, 1e-9, -1e-200]))
]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.one_of(*tensors_of))
def test_any_tensor_gets_a_true_answer(Q):
    """Single entries, and what the power method finds from many more starts, are points too."""
    truth = min(Q.min(), *(rank_one(Q, method="power", random_state=seed).value for seed in range(1, 6)))
    for store in (np.asarray, as_sparse):
        atom = rank_one(store(Q))
        check(atom, Q)
        assert atom.bound <= truth + 1e-13 * np.linalg.norm(Q)  # products round, too
        assert atom.value <= Q.min() + 1e-12 * abs(Q.min())


def as_sparse(Q):
    return SparseTensor(np.argwhere(Q), Q[Q != 0], Q.shape)


def apart(shape, rank, rng):
    """A tensor of parts that do not overlap, and the norms of these."""
    factors = [rng.uniform(0.1, 1, size=(dim, rank)) * (np.arange(dim)[:, None] % rank == range(rank)) for dim in shape]
    return np.einsum(*(arg for m, A in enumerate(factors) for arg in (A, [m, 9])), range(len(shape))), factors


@pytest.mark.parametrize("shape", [(6, 5, 7), (4, 5, 4, 6), (4, 3, 4, 3, 4), (3, 4, 3, 3, 4, 3)], ids=len)
def test_parts_that_do_not_overlap_are_proved_to_be_best(shape):
    T, factors = apart(shape, 3, np.random.default_rng(0))
    atom = rank_one(-T)
    check(atom, -T)
    largest = np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0).max()
    assert -atom.value == pytest.approx(largest, rel=1e-6)
    assert atom.status == "closed"
    assert atom.stage.endswith("flattened")


@pytest.mark.parametrize("shape", [(7, 6, 1), (7, 1, 6), (1, 7, 6), (7, 1, 6, 1)])
def test_modes_of_size_1_change_nothing(shape):
    Q = np.random.default_rng(0).normal(size=(7, 6))
    matrix, tensor = rank_one(Q), rank_one(Q.reshape(shape))
    check(tensor, Q.reshape(shape))
    assert tensor.value == pytest.approx(matrix.value, rel=1e-7)
    assert tensor.bound == pytest.approx(matrix.bound, rel=1e-3)
    assert tensor.bound <= best_pair(Q)


STORES = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "mixed order": lambda Q: np.ascontiguousarray(Q.transpose(1, 2, 0)).transpose(2, 0, 1),
    "single precision": lambda Q: Q.astype(np.float32),
    "coordinates": as_sparse,
}


def thinned(seed=0, shape=(8, 7, 6)):
    """A tensor of any sign, half of it zero, with a part in it that stands out."""
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=shape) * (rng.uniform(size=shape) < 0.5)
    Q[:3, :3, :3] -= 2
    return Q


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_storage_of_tensors_does_not_matter(store):
    Q = thinned()
    plain, atom = rank_one(Q), rank_one(store(Q))
    assert atom.value == pytest.approx(plain.value, rel=1e-6)
    assert atom.bound == pytest.approx(plain.bound, rel=1e-4)  # the gap at which it stops
    assert all(np.allclose(x, y, atol=1e-4) for x, y in zip(atom.vectors, plain.vectors, strict=True))


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.parametrize("small", [True, False])
def test_the_least_entry_of_a_tensor_without_descent(store, small, monkeypatch):
    Q = np.random.default_rng(0).uniform(0.5, 1, size=(4, 3, 5))
    Q[3, 1, 2] = 0.25
    monkeypatch.setattr(matrices, "ENTRIES", matrices.ENTRIES if small else 10)
    atom = rank_one(store(Q))
    check(atom, Q)
    assert [int(x.argmax()) for x in atom.vectors] == [3, 1, 2]
    assert atom.value == 0.25
    seen = small or isinstance(store(Q), np.ndarray)
    assert atom.bound == (0.25 if seen else 0)
    assert atom.status == ("closed" if seen else "open")


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_a_single_descent_is_found_where_starts_see_none(store, monkeypatch):
    monkeypatch.setattr(matrices, "ENTRIES", 10)
    monkeypatch.setattr("partwise.oracles.chain.STARTS", 1)
    Q = np.full((9, 8, 7), 1.0)
    Q[5, 6, 2] = -0.5
    atom = rank_one(store(Q))
    check(atom, Q)
    assert atom.value == -0.5


@pytest.mark.parametrize("store", [np.asarray, as_sparse])
def test_large_tensors_are_not_certified_and_not_filled(store, monkeypatch):
    Q = thinned()
    small = rank_one(Q)
    monkeypatch.setattr(matrices, "ENTRIES", 100)
    monkeypatch.setattr(matrices.Residual, "entries", None)
    atom = rank_one(store(Q))
    check(atom, Q)
    assert (atom.status, atom.bound) == ("not certified", -np.inf)
    assert atom.value == pytest.approx(small.value, rel=1e-6)


def test_sparse_tensors_of_zeros():
    for shape in ((3, 4, 2), (5_000,) * 3):
        atom = rank_one(SparseTensor(np.zeros((0, 3), int), np.zeros(0), shape))
        assert (atom.value, atom.status) == (0, "closed")
        assert [len(x) for x in atom.vectors] == list(shape)


def test_a_sparse_tensor_that_would_never_fit_in_memory():
    """Only products, which see the nonzeros alone."""
    rng = np.random.default_rng(0)
    coords = np.concatenate([rng.integers(5_000, size=(3000, 3)), np.argwhere(np.ones((10, 10, 10)))])
    atom = rank_one(SparseTensor(coords, -np.ones(len(coords)), (5_000,) * 3))
    assert atom.status == "not certified"
    assert -atom.value == pytest.approx(10**1.5, rel=1e-2)  # the norm of a cube of ones
    assert all(set(np.flatnonzero(x > 1e-3)) == set(range(10)) for x in atom.vectors)


def test_products_with_what_is_left_of_a_tensor():
    rng = np.random.default_rng(0)
    T, factors = rng.uniform(size=(5, 4, 6)), [rng.uniform(size=(dim, 2)) for dim in (5, 4, 6)]
    left = T - np.einsum("ir,jr,kr->ijk", *factors)
    vectors = [rng.normal(size=(dim, 3)) for dim in T.shape]
    for data in map(as_data, (T, np.asfortranarray(T), as_sparse(T))):
        P = matrices.Residual(data, factors)
        assert np.allclose(P.entries(), left)
        place, largest = P.largest()
        assert largest == pytest.approx(left.max())
        assert left[place] == left.max()
        for mode, letters in enumerate(("jk", "ik", "ij")):
            others = [V for m, V in enumerate(vectors) if m != mode]
            truth = np.einsum(f"ijk,{letters[0]}r,{letters[1]}r->{'ijk'[mode]}r", left, *others)
            assert np.allclose(P.contract(vectors, mode), truth)
