"""Measures of parts against their definitions."""

from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import metrics

from .covering import EACH

RNG = np.random.default_rng(0)
SHAPES = [(6, 5), (6, 5, 4), (5, 4, 3, 4), (1, 5, 4), (2, 5, 4)]


def planted(shape, rank=3, rng=RNG):
    return [rng.uniform(size=(n, rank)) for n in shape]


def model(factors):
    letters = "abcdef"[: len(factors)]
    return np.einsum(",".join(f"{c}z" for c in letters) + "->" + letters, *factors)


def balanced(factors):
    norms = np.array([np.linalg.norm(A, axis=0) for A in factors])
    common = np.prod(norms, axis=0) ** (1 / len(factors))
    return [A * common / norm for A, norm in zip(factors, norms, strict=True)]


def consistency_by_kronecker(T, factors):
    """The definition: least squares for the core, over a Kronecker product."""
    factors, rank = balanced(factors), factors[0].shape[1]
    core = np.linalg.lstsq(reduce(np.kron, factors), T.ravel(), rcond=None)[0]
    ideal = np.zeros((rank,) * T.ndim)
    ideal[(np.arange(rank),) * T.ndim] = 1
    return 100 * (1 - np.square(core - ideal.ravel()).sum() / rank)


def as_entries(T):
    """The nonzeros of an array, as a sparse tensor; of a matrix, as a sparse matrix."""
    return sparse.csr_array(T) if T.ndim == 2 else pw.SparseTensor(np.argwhere(T), T[np.nonzero(T)], T.shape)


STORES = {"dense": np.asarray, "by columns": np.asfortranarray, "sparse": as_entries}


@EACH
@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_core_consistency_is_its_definition(shape, store):
    factors = planted(shape)
    T = model(factors) + 0.3 * RNG.uniform(size=shape)
    T[RNG.uniform(size=shape) < 0.5] = 0
    expected = consistency_by_kronecker(T, factors)
    assert metrics.core_consistency(store(T), factors) == pytest.approx(expected, rel=1e-8, abs=1e-6)


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_core_consistency_of_the_truth_is_100_in_any_units(store):
    factors = planted((6, 5, 4))
    for unit in (1.0, 1e-250, 1e250):
        A, B, C = factors
        T = unit * model(factors)
        assert metrics.core_consistency(store(T), [unit * A, B, C]) == pytest.approx(100)
        assert metrics.core_consistency(store(T), [A, unit * B, C]) == pytest.approx(100)
    single = [A.astype(np.float32) for A in factors]
    assert metrics.core_consistency(store(model(single)), single) == pytest.approx(100, abs=0.01)


def test_core_consistency_falls_where_components_are_too_many():
    factors = planted((8, 7, 6), 2)
    T = model(factors) + 0.05 * RNG.standard_normal((8, 7, 6))
    split = [np.column_stack([A, A[:, 0] + 0.01 * RNG.uniform(size=len(A))]) for A in factors]
    assert metrics.core_consistency(T, factors) > 95
    assert metrics.core_consistency(T, split) < 50
    # the same column twice: there is no inverse
    assert metrics.core_consistency(T, [A[:, [0, 1, 1]] for A in factors]) < 70
    assert metrics.core_consistency(np.zeros((8, 7, 6)), factors) == pytest.approx(0)


def test_core_consistency_wants_factors_of_this_tensor():
    with pytest.raises(ValueError, match=r"T has shape \(4, 3, 2\), but the factors are of data of shape \(5, 3, 2\)"):
        metrics.core_consistency(np.ones((4, 3, 2)), planted((5, 3, 2)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_order_and_scale_do_not_matter_to_a_match(shape):
    factors = planted(shape)
    order = np.array([2, 0, 1])
    other = [3 * A[:, order] for A in factors]
    found = metrics.match_components(other, factors)
    assert np.array_equal(found, order) or shape[0] == 1
    for combine in ("mean", "product", "min"):
        assert metrics.factor_match(factors, other, combine=combine) == pytest.approx(1)
    again = metrics.aligned(factors, other)
    assert np.allclose(model(again), model(other))
    assert all(np.allclose(A, B) for A, B in zip(factors[1:], again[1:], strict=True))


def test_extreme_units_do_not_matter_to_a_match():
    A, B, C = factors = planted((6, 5, 4))
    other = [1e-200 * A, 1e200 * B, C]
    assert all(map(np.allclose, metrics.aligned(factors, other), factors))
    assert metrics.factor_match(factors, other, weights=True) == pytest.approx(1)


def test_factor_match_is_its_definition():
    one, other = planted((6, 5, 4)), planted((6, 5, 4))
    other[0][:, 0] *= -1  # signs are taken for scale
    cosines = np.ones((3, 3))
    for A, B in zip(one, other, strict=True):
        cosines *= np.abs(A.T @ B) / np.outer(np.linalg.norm(A, axis=0), np.linalg.norm(B, axis=0))
    assert metrics.similarity(one, other) == pytest.approx(cosines)
    permutations = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    best = max(permutations, key=lambda p: cosines[range(3), p].sum())
    assert tuple(metrics.match_components(one, other)) == best
    assert metrics.factor_match(one, other) == pytest.approx(cosines[range(3), best].mean())
    assert metrics.factor_match(one, other, combine="min") == pytest.approx(cosines[range(3), best].min())
    assert metrics.factor_match(one, other, combine="product") == pytest.approx(cosines[range(3), best].prod())


def test_weights_ask_for_the_scale_too():
    factors = planted((6, 5, 4))
    assert metrics.factor_match(factors, [2 * factors[0], *factors[1:]], weights=True) == pytest.approx(0.5)
    assert metrics.factor_match(factors, factors[:], weights=True) == pytest.approx(1)


def test_components_without_a_counterpart():
    factors = planted((6, 5, 4))
    fewer = [A[:, [2, 0]] for A in factors]
    assert metrics.match_components(factors, fewer).tolist() == [1, -1, 0]
    assert metrics.match_components(fewer, factors).tolist() == [2, 0]
    assert metrics.factor_match(factors, fewer) == pytest.approx(2 / 3)
    assert metrics.factor_match(fewer, factors, combine="min") == 0
    assert np.allclose(model(metrics.aligned(fewer, factors)), model(fewer))
    with pytest.raises(ValueError, match="the first has 3 components and the second only 2"):
        metrics.aligned(factors, fewer)


def test_components_of_zeros_match_nothing():
    factors = planted((6, 5, 4))
    zero = [A * [1, 1, 0] for A in factors]
    assert metrics.factor_match(factors, zero) == pytest.approx(2 / 3)
    assert metrics.factor_match(factors, zero, weights=True) == pytest.approx(2 / 3)
    assert np.all(np.isfinite(np.concatenate(metrics.aligned(factors, zero))))


def test_results_pairs_and_data_sets_are_taken_for_factors():
    data = pw.datasets.make_parts(20, 15, 3, random_state=0)
    result = pw.factorize(data.X, 3, random_state=0)
    assert metrics.factor_match(data, result) == metrics.factor_match((data.W, data.H), result.factors)
    assert metrics.factor_match(result, (result.W, result.H)) == pytest.approx(1)
    assert metrics.core_consistency(data.X, data) == pytest.approx(100)
    model = pw.NMF(3, random_state=0).fit(data.X)
    assert metrics.kruskal_ranks(model) == metrics.kruskal_ranks(model.result_) == (3, 3)


WRONG = {
    "an array": (np.ones((3, 2)), TypeError, "factors must be a Result, a list .* or a pair"),
    "one factor": ([np.ones((3, 2))], TypeError, "factors must be a Result"),
    "other ranks": ([np.ones((3, 2)), np.ones((4, 3)), np.ones((4, 3))], ValueError, r"got \(3, 2\), \(4, 3\)"),
    "missing values": ([np.full((3, 2), np.nan), np.ones((4, 2))], ValueError, "factors must be finite"),
}


@pytest.mark.parametrize("factors, error, message", WRONG.values(), ids=WRONG)
def test_what_is_no_list_of_factors(factors, error, message):
    for function in (metrics.kruskal_ranks, metrics.uniqueness, lambda A: metrics.factor_match(A, A)):
        with pytest.raises(error, match=message):
            function(factors)


def test_models_of_other_data_do_not_match():
    with pytest.raises(ValueError, match=r"different shape, \(6, 5, 4\) and \(6, 5, 3\)"):
        metrics.factor_match(planted((6, 5, 4)), planted((6, 5, 3)))
    with pytest.raises(ValueError, match="combine must be one of 'mean', 'product', 'min', got 'median'"):
        metrics.factor_match(planted((6, 5)), planted((6, 5)), combine="median")


def kruskal_by_definition(A):
    def independent(k):
        return all(np.linalg.matrix_rank(A[:, some], 1e-8) == k for some in combinations(range(A.shape[1]), k))

    return max(k for k in range(A.shape[1] + 1) if k == 0 or independent(k))


@pytest.mark.parametrize("seed", range(6))
def test_kruskal_ranks_are_their_definition(seed):
    rng = np.random.default_rng(seed)
    A, B, C = rng.uniform(size=(6, 5)), rng.uniform(size=(3, 5)), rng.uniform(size=(6, 5))
    C[:, 4] = C[:, :2] @ [1.0, 2.0] if seed % 2 else 3 * C[:, 1]
    D = rng.integers(0, 2, size=(4, 5)).astype(float)
    factors = [A, B, C, D]
    assert metrics.kruskal_ranks(factors) == tuple(map(kruskal_by_definition, factors))
    assert metrics.kruskal_ranks(factors)[:3] == (5, 3, 2 if seed % 2 else 1)


def test_kruskal_ranks_of_many_columns_are_a_lower_bound():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 40))  # any 30 are independent, and cannot all be tried
    (found, whole) = metrics.kruskal_ranks([A, rng.standard_normal((50, 40))])
    assert 3 <= found <= 30  # all sets of 3 are tried
    assert whole == 40


def test_uniqueness():
    three = metrics.uniqueness(planted((6, 5, 4)))
    assert three.unique
    assert "3 + 3 + 3 = 9 reach 2 rank + order - 1 = 8" in str(three)
    assert metrics.uniqueness(planted((2, 2, 2, 2))).unique is None  # 8 of 9
    assert "is not known" in str(metrics.uniqueness(planted((2, 2, 2, 2))))
    same = [A.copy() for A in planted((6, 5, 4))]
    for A in same[:2]:
        A[:, 2] = A[:, 0]
    assert metrics.uniqueness(same).unique is False
    assert "without A3 its components are linearly dependent" in str(metrics.uniqueness(same))
    assert metrics.uniqueness(planted((6, 5, 4), 1)).unique
    assert "one component" in str(metrics.uniqueness(planted((6, 5), 1)))
    assert metrics.uniqueness(planted((6, 5))).unique is None
    assert "says nothing of matrices" in str(metrics.uniqueness(planted((6, 5))))
    assert metrics.uniqueness([np.zeros((3, 2))] * 3).unique is False
