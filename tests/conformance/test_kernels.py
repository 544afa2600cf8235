"""Compiled updates against the same algorithms written out with NumPy."""

import time

import numpy as np
import pytest
from numba.core.errors import TypingError
from scipy import sparse

from partwise import kernels
from partwise.kernels import threads
from partwise.kernels.cpu import dense
from partwise.kernels.cpu.padding import padded
from partwise.kernels.records import EntryLoss, Others, Rows

from ..covering import EACH

RNG = np.random.default_rng(5)
DIM, RANK = 200, 6


@pytest.fixture(params=[1, 5], autouse=True)
def tasks(request, monkeypatch):
    """Every test with one task and with several."""
    monkeypatch.setattr(threads, "pieces", lambda *_: request.param)
    monkeypatch.setattr(threads, "count", lambda: 2)


def rows_of(S, scale=1.0):
    """The rows of a sparse matrix, times a number."""
    indptr, kind = S.indptr.astype(np.int64), S.data.dtype.type
    return Rows(0, indptr, S.indices.astype(np.int32), S.data, kind(scale), False, np.zeros(0, kind), 1.0)


def setting(l1=0.0, lower=0.0, upper=np.inf, dtype=np.float64, rank=RANK):
    B = RNG.uniform(size=(24 + rank, rank))
    gram = (B.T @ B).astype(dtype)
    A = np.clip(RNG.uniform(size=(DIM, rank)), lower, upper).astype(dtype)
    cross = (A @ gram + 3 * RNG.normal(size=A.shape)).astype(dtype)
    box = dtype(l1), np.full((1, rank), lower, dtype), np.full((1, rank), upper, dtype)
    return A, gram, cross, box


def best(a, g, d, l1, lower, upper):
    u = a - g / d
    return np.clip(np.sign(u) * np.maximum(np.abs(u) - l1 / d, 0), lower, upper)


BOXES = [
    {},
    {"l1": 0.5},
    {"upper": 0.6},
    {"lower": -np.inf, "l1": 0.7},
    {"lower": 0.2, "upper": 0.9, "l1": 0.1},
]
cases = pytest.mark.parametrize("box", BOXES, ids=str)


def swept(A, gram, cross, box, order):
    """A after one sweep in double precision, and half of `d step^2` of each component."""
    (l1, *bounds), A, moved = box, A.astype(np.float64), np.zeros(A.shape[1])
    lower, upper = (np.broadcast_to(bound, A.shape) for bound in bounds)
    for k in order:
        x = best(A[:, k], A @ gram[k] - cross[:, k], gram[k, k], l1, lower[:, k], upper[:, k])
        moved[k] = gram[k, k] * np.square(x - A[:, k]).sum() / 2
        A[:, k] = x
    return A, moved


@cases
def test_hals_is_cyclic_coordinate_descent(box):
    A, gram, cross, full = setting(**box)
    order, expected = np.array([2, 0, 1, 5, 4, 3]), A
    for _ in range(3):
        expected, _ = swept(expected, gram, cross, full, order)
    new, _ = kernels.of(A).hals(A, cross, gram, full, order, (3, 0.0), np.arange(DIM))
    assert np.allclose(new, expected, atol=1e-12)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank", [1, 2, 3, 20, 49, 101])
def test_hals_takes_any_number_of_components(rank, dtype):
    """They are taken two at a time. Bounds beyond 0, of all rows and of single entries; some of the rows."""
    A, gram, cross, (l1, lower, upper) = setting(0.4, 0.2, 0.9, dtype, rank)
    ends = RNG.uniform(0.3, 0.9, size=A.shape).astype(dtype)
    order, rows = RNG.permutation(rank), np.sort(RNG.permutation(DIM)[:150])
    close = {"atol": 1e-11} if dtype == np.float64 else {"atol": 1e-4, "rtol": 1e-4}
    for box in ((l1, lower, upper), (l1, ends / 2, ends)):
        begin = np.clip(A, *box[1:])
        expected, moved = swept(begin, gram, cross, box, order)
        again, _ = swept(expected, gram, cross, box, order)
        every = np.arange(DIM)
        new, told = kernels.of(A).hals(begin, cross, gram, box, order, (2, 0.0), every)
        assert new.dtype == dtype
        assert np.allclose(new, again, **close)
        assert np.allclose(told, moved, **close)
        some, _ = kernels.of(A).hals(begin, cross, gram, box, order, (2, 0.0), rows)
        assert np.array_equal(some[rows], new[rows])
        assert np.array_equal(np.delete(some, rows, axis=0), np.delete(begin, rows, axis=0))


@pytest.mark.parametrize("swept_ones", [[1], [3, 0], [5, 1, 2]])
def test_hals_sweeps_over_the_components_that_it_is_told_to(swept_ones):
    A, gram, cross, full = setting()
    order, expected = np.array(swept_ones), A
    for _ in range(2):
        expected, _ = swept(expected, gram, cross, full, order)
    new, told = kernels.of(A).hals(A, cross, gram, full, order, (2, 0.0), np.arange(DIM))
    assert np.allclose(new, expected, atol=1e-12)
    assert np.all(np.delete(told, order) == 0)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hals_gives_each_row_the_sweeps_it_needs(dtype):
    """A row ends when a sweep moves it by at most eps of its first one, whatever its neighbours do."""
    A, gram, cross, full = setting(dtype=dtype)
    eps, d = 0.1, np.diag(gram)
    expected, sweeps = A.astype(np.float64), np.zeros(DIM, int)
    for i in range(DIM):
        a, first = expected[i], None
        while sweeps[i] < 7:
            moved = 0.0
            for k in range(RANK):
                old = a[k]
                a[k] = best(old, a @ gram[k] - cross[i, k], d[k], 0.0, 0.0, np.inf)
                moved += d[k] * (a[k] - old) ** 2
            first = moved if first is None else first
            sweeps[i] += 1
            if moved <= eps * first:
                break
    new, _ = kernels.of(A).hals(A, cross, gram, full, np.arange(RANK), (7, eps), np.arange(DIM))
    assert len(set(sweeps)) > 2
    assert np.allclose(new, expected, atol=1e-12 if dtype == np.float64 else 1e-3)


def test_hals_tells_how_far_the_first_sweep_went():
    A, gram, cross, full = setting()
    _, moved = swept(A, gram, cross, full, np.arange(RANK))
    _, told = kernels.of(A).hals(A, cross, gram, full, np.arange(RANK), (4, 0.01), np.arange(DIM))
    assert np.allclose(told, moved)


@pytest.mark.parametrize("ends", ["lower", "upper", "both"])
def test_hals_takes_bounds_of_single_entries(ends):
    A, gram, cross, (l1, lower, upper) = setting()
    entries = RNG.uniform(0.1, 0.9, size=A.shape)
    lower = entries / 2 if ends in ("lower", "both") else lower
    upper = entries if ends in ("upper", "both") else upper
    lower, upper = np.array(lower), np.array(upper)  # as a box has them
    A = np.clip(A, lower, upper)
    expected, _ = swept(A, gram, cross, (l1, lower, upper), np.arange(RANK))
    new, _ = kernels.of(A).hals(A, cross, gram, (l1, lower, upper), np.arange(RANK), (1, 0.0), np.arange(DIM))
    assert np.allclose(new, expected)


@EACH
@cases
def test_gcd_takes_the_best_coordinate_of_each_row(box):
    A, gram, cross, full = setting(**box)
    l1, lower, upper = full
    expected, d = A.copy(), np.diag(gram)

    def candidates(a, i):
        g = a @ gram - cross[i]
        x = best(a, g, d, l1, lower[0], upper[0])
        s = x - a
        return x, -s * (g + d * s / 2) - l1 * (np.abs(x) - np.abs(a))

    limit = 1e-3 * max(candidates(expected[i], i)[1].max() for i in range(DIM))
    for i in range(DIM):
        for _ in range(500):
            x, gain = candidates(expected[i], i)
            if gain.max() <= limit:
                break
            expected[i, gain.argmax()] = x[gain.argmax()]
    gains = sum(candidates(A[i], i)[1] for i in range(DIM))
    new, told = kernels.of(A).gcd(A, cross, gram, full, np.arange(DIM), (500, 1e-3), shared=True)
    assert np.allclose(new, expected, atol=1e-10)
    assert np.allclose(told, gains)


def test_gcd_budget_is_kept():
    A, gram, cross, full = setting()
    new, _ = kernels.of(A).gcd(A, cross, gram, full, np.arange(DIM), (2, 0.0), shared=True)
    assert 0 < (new != A).sum(axis=1).max() <= 2


def test_mu_is_the_multiplicative_update():
    A, gram, cross, full = setting(l1=0.3)
    cross = np.abs(cross)
    for power in (1.0, 0.5):
        expected = A * (cross / (A @ gram + 0.3)) ** power
        assert np.allclose(kernels.of(A).mu(A, A @ gram, cross, power, np.zeros(RANK), full, np.arange(DIM)), expected)


@pytest.mark.parametrize("name", ["hals", "gcd", "mu", "newton_kl", "newton"])
def test_only_the_rows_asked_for_move(name):
    A, gram, cross, full = setting()
    X, B = sparse.csr_array(RNG.poisson(1.0, size=(DIM, 30)).astype(float)), RNG.uniform(size=(30, RANK))
    rows = np.array([3, 50, 199])
    call = {
        "hals": lambda k: k.hals(A, cross, gram, full, np.arange(RANK), (2, 0.0), rows)[0],
        "gcd": lambda k: k.gcd(A, cross, gram, full, rows, (50, 1e-3), shared=False)[0],
        "mu": lambda k: k.mu(A, A @ gram, np.abs(cross), 1.0, np.zeros(RANK), full, rows),
        "newton_kl": lambda k: k.newton_kl(rows_of(X), A, Others(B), full, 0.0, (2, 0.0), rows)[0][0],
        "newton": lambda k: k.newton(rows_of(X), A, Others(B), full, 0.0, EntryLoss(1.0), (1, 0.0, True), rows)[0][0],
    }
    assert set(np.flatnonzero((call[name](kernels.of(A)) != A).any(axis=1))) == set(rows)


def test_a_dead_partner_leaves_only_the_penalty():
    """gram[k, k] = 0: without a penalty the entry stays, with one it goes to the bound nearest to 0."""
    for l1, expected in ((0.0, None), (0.5, 0.2)):
        A, gram, cross, full = setting(l1=l1, lower=0.2)
        gram[2, :] = gram[:, 2] = cross[:, 2] = 0
        new, _ = kernels.of(A).hals(A, cross, gram, full, np.arange(RANK), (1, 0.0), np.arange(DIM))
        assert np.array_equal(new[:, 2], A[:, 2] if expected is None else np.full(DIM, expected))


@pytest.mark.slow
def test_bounds_are_met_exactly_in_float32():
    A, gram, cross, full = setting(upper=0.3, dtype=np.float32)
    new, _ = kernels.of(A).hals(A, cross, gram, full, np.arange(RANK), (5, 0.0), np.arange(DIM))
    assert new.max() <= np.float32(0.3)
    assert new.dtype == np.float32


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rank", [1, 8, 9, 20, 33, 49, 100])
def test_products(rank, dtype):
    """Ranks on both sides of whole vectors and whole tiles; empty rows; either memory order."""
    close = {"rtol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    S = sparse.random_array((300, 200), density=0.05, format="csr", dtype=dtype, rng=RNG)
    S.data[:] = RNG.normal(size=S.nnz)
    B = RNG.uniform(size=(200, rank)).astype(dtype)
    expected = 0.5 * (S.toarray() @ B)
    of = kernels.of(B)
    assert np.allclose(of.sparse_product(rows_of(S, 0.5), B), expected, **close)
    assert np.allclose(of.transposed_product(rows_of(S.T.tocsr(), 0.5), B, 300), expected, **close)
    for X in (S.toarray(), np.asfortranarray(S.toarray())):
        product = of.dense_product(X, B, 0.5)
        assert np.allclose(product, expected, **close)
        assert product.flags.c_contiguous
    assert np.allclose(of.gram(B), B.T @ B, **close)
    assert of.inner(B, B) == pytest.approx(float(np.vdot(B, B)), rel=1e-5)
    assert of.sum_abs(-B) == pytest.approx(float(B.sum()), rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 50_000), (50_000, 1), (3, 40_000), (20_000, 3), (700, 301)])
def test_products_in_several_tasks(shape, dtype, monkeypatch):
    """Cut by rows or by columns, of any form, in either memory order, by gaps too; the same bits for any threads."""
    monkeypatch.setattr(threads, "BLAS_WORK", 20_000)
    monkeypatch.setattr(threads, "TILE_WORK", 20_000)
    monkeypatch.setattr(dense, "SHORT", 1)
    X, B = RNG.normal(size=shape).astype(dtype), RNG.normal(size=(shape[1], 7)).astype(dtype)
    expected, of = X.astype(np.float64) @ B * 2, kernels.of(B)
    wide = np.zeros((shape[0], 2 * shape[1]), dtype)
    wide[:, ::2] = X
    for stored in (X, np.asfortranarray(X), np.ascontiguousarray(X.T).T, wide[:, ::2], np.repeat(X, 2, axis=0)[::2]):
        found = []
        for n_threads in (1, 2, 5):
            with threads.limited(n_threads):
                found.append(of.dense_product(stored, B, 2.0))
        assert np.allclose(found[0], expected, atol=2e4 * np.finfo(dtype).eps)
        assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("order", ["C", "F"])
def test_long_sums_keep_their_digits_in_single_precision(order):
    """Of positive numbers, whose rounding goes one way."""
    X = np.asarray(50 + RNG.random((64, 400_000), dtype=np.float32), order=order)
    B = RNG.random((X.shape[1], 3), dtype=np.float32)
    exact = X.astype(np.float64) @ B.astype(np.float64)
    assert np.abs(kernels.of(B).dense_product(X, B, 1) / exact - 1).max() < 2.5e-6  # of BLAS, in one task, 1.7e-6


def test_rows_are_filled_up_with_zeros_whatever_comes_next():
    B = np.ones((6, 3))
    B[2:, 0] = np.inf
    assert not padded(B, 1.0)[:, 3:].any()


@pytest.mark.slow_cases("transposed")
@EACH
@pytest.mark.parametrize("kernel", ["sparse_product", "transposed_product"])
def test_sparse_products_with_long_indices_and_read_only_arrays(kernel):
    S = sparse.random_array((300, 200), density=0.05, format="csr", rng=RNG)
    rows = rows_of(S)
    rows = rows._replace(indices=rows.indices.astype(np.int64))
    for part in (rows.indptr, rows.indices, rows.values):
        part.flags.writeable = False
    turned = kernel == "transposed_product"
    B = RNG.uniform(size=(300 if turned else 200, 5))
    product = getattr(kernels.of(B), kernel)(rows, B, *([200] if turned else []))
    assert np.allclose(product, (S.T if turned else S) @ B)


@pytest.mark.slow
def test_memory_with_gaps_is_refused_not_misread():
    S = sparse.random_array((30, 20), density=0.2, format="csr", rng=RNG)
    gaps = np.zeros(2 * S.nnz)[::2]
    gaps[:] = S.data
    B = RNG.uniform(size=(20, 3))
    with pytest.raises(TypingError, match="contiguous and of one type"):
        kernels.of(B).sparse_product(rows_of(S)._replace(values=gaps), B)
    with pytest.raises(TypingError, match="contiguous and of one type"):
        kernels.of(B).sparse_product(rows_of(S), B.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 9, 40])
def test_numbers_of_single_precision_are_multiplied_in_double(rank):
    S = sparse.random_array((30, 20), density=0.2, format="csr", rng=RNG).astype(np.float32)
    B, C = RNG.uniform(size=(20, rank)), RNG.uniform(size=(30, rank))
    rows, exact = rows_of(S, 2.0), S.toarray().astype(np.float64)
    assert np.allclose(kernels.of(B).sparse_product(rows, B), 2 * exact @ B, rtol=1e-14)
    assert np.allclose(kernels.of(B).transposed_product(rows, C, 20), 2 * exact.T @ C, rtol=1e-14)
    assert np.allclose(kernels.of(B).dense_product(S.toarray(), B, 2.0), 2 * exact @ B, rtol=1e-14)


def test_extrapolation_stays_within_the_bounds():
    new, old = RNG.uniform(size=(DIM, RANK)), RNG.uniform(size=(DIM, RANK))
    box = 0.0, np.full((1, RANK), 0.1), np.full((1, RANK), 0.8)
    expected = np.clip(new + 0.7 * (new - old), 0.1, 0.8)
    for stored in (new, np.asfortranarray(new)):  # as solvers of users return it
        assert np.allclose(kernels.of(new).extrapolate(stored, old, 0.7, box), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_product_of_arrays_that_do_not_go_together_is_refused(order):
    X = np.ones((600, 500), order=order)
    for height in (400, 600):
        with pytest.raises(ValueError, match="product of 600 x 500"):
            kernels.of(X).dense_product(X, np.ones((height, 8)), 1)


@pytest.mark.parametrize("error", [0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0])
def test_itakura_saito_keeps_its_digits_where_models_are_near(error):
    """`r - log r - 1`, also where that is below the rounding of its terms."""
    A, B = RNG.uniform(0.5, 1, size=(40, RANK)), RNG.uniform(0.5, 1, size=(1300, RANK))
    X = (A @ B.T) * np.exp(error * RNG.normal(size=(40, 1300)))
    rows = Rows(0, 1300 * np.arange(41), np.zeros(0, np.int32), X.ravel(), 1.0, True, np.zeros(0), 1.0)
    (found,), _ = kernels.of(A).losses(rows, A, Others(B, (B,)), EntryLoss(0.0))
    ratio = X.astype(np.longdouble) / (A.astype(np.longdouble) @ B.T.astype(np.longdouble)) - 1
    exact = (ratio - np.log1p(ratio)).sum(axis=1).astype(float)
    assert np.all(found >= 0) and np.allclose(found, exact, rtol=1e-6, atol=1e-26)


@pytest.mark.parametrize("where", [0, 7])
def test_an_error_in_a_task_is_raised_when_all_others_are_done(where):
    done = []

    def task(start, stop):
        if start == where:
            raise IndexError("out")
        time.sleep(0.001)
        done.append(start)

    with pytest.raises(IndexError, match="out"):
        threads.map_chunks(task, list(range(9)))
    number = len(done)
    time.sleep(0.02)
    assert len(done) == number


def test_tasks_may_have_tasks_of_their_own():
    def outer(i, j):
        return sum(threads.map_chunks(lambda a, b: b - a, list(range(0, 40, 4))))

    assert threads.map_chunks(outer, list(range(7))) == [36] * 6


def test_unknown_arrays_are_named():
    with pytest.raises(TypeError, match="no kernels for arrays of type list"):
        kernels.of([1.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@cases
def test_gains_of_a_quadratic_are_those_at_its_gradient(box, dtype):
    A, gram, cross, (l1, lower, upper) = setting(**box, dtype=dtype)
    gram[1], gram[:, 1] = 0, 0  # a component that is zero in the other factor, where rounding may leave a slope
    lower, upper = np.tile(lower, (DIM, 1)), np.tile(upper, (DIM, 1))
    lower[::3], upper[::3] = A[::3], A[::3]  # rows that are held
    full, G, of = (l1, lower, upper), A @ gram - cross, kernels.of(A)
    gains, size = of.quadratic_gains(A, gram, cross, full)
    close = 1e-12 if dtype == np.float64 else 1e-4
    assert np.allclose(gains, of.gain_columns(A, G, np.diag(gram)[None], full), rtol=close)
    assert gains[0] > 0
    assert size == pytest.approx(np.abs(G.astype(float)).sum(), rel=close)
    turned = (l1, lower[:, ::-1], upper[:, ::-1])
    found, _ = of.quadratic_gains(A[:, ::-1], gram[::-1, ::-1], cross[:, ::-1], turned)
    assert np.allclose(found, gains[::-1], rtol=close)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_no_number_is_seen(bad):
    A, gram, cross, full = setting(upper=0.6)
    cross[137, 2] = bad
    assert not np.isfinite(kernels.of(A).quadratic_gains(A, gram, cross, full)[1])
