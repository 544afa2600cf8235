"""What a fit costs besides its work, by counting: products with X, calls of kernels, looks at X."""

from collections import Counter

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import estimators, registry
from partwise.data import as_data
from partwise.data.summary import summarised
from partwise.datasets import make_parts
from partwise.fingerprint import LARGE, fingerprint
from partwise.kernels import cpu, threads
from partwise.kernels.cpu import all_finite, team
from partwise.problem import pose
from partwise.run import interrupts

from .conformance.tables import problem_for

X = make_parts(90, 70, 4, zeros=0.3, noise=0.1, random_state=0).X
STORED = {"dense": X, "sparse": sparse.csr_array(np.where(np.median(X) < X, X, 0))}
PRODUCTS = ("dense_product", "sparse_product", "transposed_product")


def counted(monkeypatch, module, *names):
    """How often these functions of a module are called from now on."""
    counts = Counter()

    def counting(name, function):
        def called(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        return called

    for name in names:
        monkeypatch.setattr(module, name, counting(name, getattr(module, name)))
    return counts


@pytest.mark.parametrize("store", STORED)
@pytest.mark.parametrize("n_iter", [2, 12])
def test_a_run_takes_two_products_an_iteration_and_one_more(monkeypatch, store, n_iter):
    """The first measure shares its product with the first step, the last one has all but one from the last step."""
    counts = counted(monkeypatch, cpu, *PRODUCTS)
    result = pw.factorize(STORED[store], 4, init="random", random_state=0, max_iter=n_iter, tol=0)
    assert result.n_iter == n_iter
    assert counts.total() == 2 * n_iter + 1


@pytest.mark.parametrize("store", STORED)
def test_codes_of_new_data_take_one_product(monkeypatch, store):
    """With the parts held it is the same in every iteration, and in the measures."""
    model = pw.NMF(4, init="random", random_state=0, max_iter=20, tol=0).fit(STORED[store])
    counts = counted(monkeypatch, cpu, *PRODUCTS)
    found = model.transform(STORED[store][:60])
    assert counts.total() == 1
    result = pw.factorize(STORED[store][:60], 4, structure_H=pw.structures.Fixed(model.components_), random_state=0)
    assert np.allclose(found, result.W, rtol=1e-3, atol=1e-4)


def test_parts_that_are_held_are_looked_at_once():
    """Their bounds are one array all the way."""
    H = np.arange(1.0, 13).reshape(3, 4)
    stated = pw.structures.Fixed(H)
    bound = stated.bind((4, 3), True, "H")
    moved = bound.rescaled(5, 3)
    assert all(s.upper is s.lower and s.fixed for s in (stated, bound, moved, moved.rounded(np.float32)))
    assert np.array_equal(moved.lower, H.T / 32) and moved.magnitudes == (12 / 32, 12 / 32)
    H[0, 0] = np.nan
    assert stated.lower[0, 0] == 1  # a copy
    partly = pw.structures.Fixed(H).bind((4, 3), True, "H")
    assert not partly.fixed and (partly.lower[0, 0], partly.upper[0, 0]) == (-np.inf, np.inf)
    fewer = stated.bind((4, 5), True, "H")
    assert not fewer.fixed and np.all(fewer.lower[:, 3:] == -np.inf) and np.all(fewer.upper[:, 3:] == np.inf)


@pytest.mark.parametrize("store", STORED)
def test_an_iteration_takes_ten_calls_of_kernels(monkeypatch, store):
    """For each factor a product, a Gram matrix, sweeps and extrapolation; a Gram matrix and a sum for the objective.
    Sparse data also have a factor padded for each product."""
    maps, kernels = counted(monkeypatch, threads, "map_chunks"), counted(monkeypatch, team, "_over")
    found = []
    for n_iter in (10, 20):
        maps.clear()
        kernels.clear()
        pw.factorize(STORED[store], 4, init="random", random_state=0, max_iter=n_iter, tol=0)
        found.append(maps.total() + kernels.total())
    assert found[1] - found[0] <= 10 * (10 if store == "dense" else 12)


@pytest.mark.parametrize("store", STORED)
def test_an_estimator_looks_at_X_once(monkeypatch, store):
    looks = [counted(monkeypatch, module, "checked") for module in (estimators.base, pw.data.observed)]
    passes = counted(monkeypatch, cpu, "statistics", "falls", "all_finite", "transpose")
    pw.NMF(4, init="random", random_state=0, max_iter=3, tol=0).fit(STORED[store])
    assert sum(map(Counter.total, looks)) == 1
    assert (passes["statistics"], passes["falls"], passes["all_finite"]) == (1, store == "sparse", 0)
    assert passes["transpose"] <= 1


def test_what_is_stated_is_looked_at_once(monkeypatch):
    pw.NMF(4, max_iter=2, tol=0).fit(X)
    pw.NMF(4, solver="hals", init="nndsvda", max_iter=2, tol=0).fit(X)
    before = registry.signature_of.cache_info().misses
    pw.NMF(4, solver="hals", init="nndsvda", max_iter=2, tol=0).fit(X)
    assert registry.signature_of.cache_info().misses == before


@pytest.mark.parametrize("solver", ["hals", "gcd", "palm", "mu", "mu_extrapolated"])
def test_measures_have_the_same_bits_with_what_a_solver_knows(solver):
    solver = registry.resolve("solver", solver)
    problem, rng = problem_for(solver, X, 4), np.random.RandomState(0)
    factors = pw.init.Random()(problem, rng)
    state, told = solver.init(problem, factors, 0.0, rng), []
    for _ in range(6):
        known = solver.known(problem, state, factors)
        assert problem.measure(factors, known) == problem.measure(factors)
        factors = solver.step(problem, state).factors
        told.append(set(known))
    assert told[0] == {0}  # the loss in W, which the first step needs
    assert {1} in told[1:] and all(modes <= {1} for modes in told[1:])  # in H, with W as it is


def test_multiplicative_updates_take_second_derivatives_in_every_fifth_iteration(monkeypatch):
    wanted, tangent = [], pw.losses.KL.tangent

    def watched(self, *given):
        wanted.append(given[-1].curvature)
        return tangent(self, *given)

    solver = registry.resolve("solver", "mu_extrapolated")
    problem = pose(as_data(X), pw.losses.KL(), (pw.structures.NonNegative(),) * 2, 4).normalized()
    state = solver.init(problem, pw.init.Random()(problem, np.random.RandomState(0)), 0.0, np.random.RandomState(0))
    monkeypatch.setattr(pw.losses.KL, "tangent", watched)
    told = [solver.step(problem, state).stationarity for _ in range(20)]
    assert len(wanted) == 41 and sum(wanted) == 2 * 5  # both modes in 1, 5, 10, 15 and 20, the first one for 21 too
    assert [n for n in range(2, 21) if told[n - 1] != told[n - 2]] == [5, 10, 15, 20]


def test_nothing_is_known_of_other_factors():
    solver = registry.resolve("solver", "hals")
    problem, rng = problem_for(solver, X, 4), np.random.RandomState(0)
    factors = pw.init.Random()(problem, rng)
    state = solver.init(problem, factors, 0.0, rng)
    solver.step(problem, state)
    assert not solver.known(problem, state, factors)
    assert solver.known(problem, state, state.factors)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_first_line_of_a_history_is_that_of_the_start(kind):
    stored = X.astype(kind)
    start = [np.abs(np.random.default_rng(0).normal(size=shape)).astype(kind) for shape in ((90, 4), (4, 70))]
    first = pw.factorize(stored, 4, init=start, max_iter=1, tol=0).history[0]
    assert first.objective == pytest.approx(0.5 * np.square(stored - start[0] @ start[1]).sum(), rel=1e-4)
    assert first.stationarity > 0


# -- fingerprints --------------------------------------------------------------------------------------


def test_fingerprints_of_large_arrays_tell_them_apart():
    values = np.random.default_rng(0).normal(size=LARGE // 8 + 3)
    others = [values, values[:-1], values.astype(np.float32), values.reshape(1, -1), np.zeros_like(values)]
    for place in (0, 7, 8, values.size // 2, values.size - 1):
        changed = values.copy()
        changed[place] = -changed[place]
        others.append(changed)
    for a, b in ((0, 8), (0, 1), (1 << 17, 0)):  # neighbours in a lane, in different lanes, in different chunks
        swapped, both = values.copy(), values.copy()
        swapped[[a, b]] = values[[b, a]]
        both[[a, b]] *= -1
        others += [swapped, both]
    odd = np.random.default_rng(0).integers(0, 255, LARGE + 13, dtype=np.uint8)
    others += [odd, np.append(odd[:-1], odd[-1] ^ 1)]
    assert len({fingerprint(other) for other in others}) == len(others)


def test_fingerprints_do_not_depend_on_threads_or_on_where_arrays_lie():
    values = np.random.default_rng(0).normal(size=LARGE // 2)
    with threads.limited(1):
        expected = fingerprint(values)
    assert fingerprint(values) == expected
    space = np.empty(values.nbytes + 8, np.uint8)
    shifted = space[3 : 3 + values.nbytes].view(np.float64)
    shifted[:] = values
    assert fingerprint(shifted) == expected


# -- small things --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [7, 2000])  # in one task, and in several
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_number_among_many_is_seen(bad, columns):
    values = np.random.default_rng(0).normal(size=(300, columns))
    assert all_finite(values)
    values[211, 3] = bad
    assert not all_finite(values)
    values[0, 0] = -bad
    assert not all_finite(values)
    assert np.flatnonzero(~cpu.finite_rows(values)).tolist() == [0, 211]


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1, 400_003])  # in one task, and in several
def test_statistics_tell_of_any_number_that_is_not_finite(size, kind):
    for place in {0, size // 2, size - 1}:
        for bad in (np.nan, -np.nan, np.inf, -np.inf):
            values = np.random.default_rng(0).normal(size=size).astype(kind)
            values[place] = bad
            assert not np.isfinite(cpu.statistics(values)[:2]).all()
            assert not summarised([values], size + 1, cpu).finite


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_every_fall_is_counted_once(kind):
    indices = np.arange(1_200_003, dtype=kind)
    boundaries = threads.split_evenly(indices.size - 1, 1)
    assert len(boundaries) > 2
    assert cpu.falls(indices) == cpu.falls(indices[:1]) == cpu.falls(indices[:0]) == 0
    assert cpu.falls(indices[::-1].copy()) == indices.size - 1
    for place in (1, *boundaries[1:-1], boundaries[1] + 1, indices.size - 1):
        for change in (0, -1):  # the same once more, and a step down
            changed = indices.copy()
            changed[place:] -= 1 - change
            assert cpu.falls(changed) == 1


def test_statistics_do_not_depend_on_threads():
    values = np.random.default_rng(0).normal(size=400_003)
    with threads.limited(1):
        expected = cpu.statistics(values)
    assert cpu.statistics(values) == expected


def test_numbers_whose_sum_is_too_large_are_finite_all_the_same():
    huge = np.full((4, 3), np.finfo(np.float64).max)
    assert cpu.finite_rows(huge).all()
    with pytest.raises(ValueError, match="1 infinite entry"):
        pw.factorize(np.where(np.eye(4, 3) * [1, 0, 0] > 0, np.inf, huge), 1)


@pytest.mark.parametrize("dim", [1, 31, 32, 33, 200])
def test_extremes_of_columns(dim):
    A = np.random.default_rng(dim).normal(size=(dim, 5))
    low, high = cpu.column_extremes(A)
    assert np.array_equal(low, A.min(axis=0))
    assert np.array_equal(high, A.max(axis=0))


@pytest.mark.parametrize("place", [0, 255, 256, 9999])
def test_columns_that_are_not_zero_throughout(place):
    A = np.zeros((10000, 30))
    A[:, 3], A[place, 7], A[place, 9] = 1, -5e-324, np.nan
    assert np.flatnonzero(cpu.nonzero_columns(A)).tolist() == [3, 7, 9]


@pytest.mark.parametrize("dim", [7, 20000])  # in one task, and in several
@pytest.mark.parametrize("kinds", [("f8", "f8"), ("f4", "f4"), ("f8", "f4"), ("f4", "f8")], ids=str)
@pytest.mark.parametrize("exponent", [0, 3, -3, 125, -125, 127, -140, 900, -1022, -1030, 1023, 1024, -2000])
def test_powers_of_two_round_as_they_do_for_numpy(dim, kinds, exponent):
    own, kind = map(np.dtype, kinds)
    A = np.random.default_rng(0).normal(size=(dim, 25)).astype(own)
    A[0] = [0.0, np.finfo(own).tiny, np.finfo(own).max, *A[0, 3:]]
    most = np.finfo(kind).max
    with np.errstate(all="ignore"):
        expected = np.ldexp(A.astype(np.promote_types(own, kind)), exponent).astype(kind)
    found = cpu.ldexp(A, exponent, kind)
    assert found.dtype == kind
    assert found is not A
    assert np.array_equal(found, expected)
    assert np.array_equal(cpu.ldexp(A, exponent, kind, most), np.clip(expected, -most, most))


def test_columns_are_taken_and_scaled_in_one_pass():
    A, order = np.random.default_rng(0).normal(size=(20000, 25)).astype(np.float32), np.arange(24, 3, -2)
    scales = np.linspace(0, 3, order.size)
    assert np.array_equal(cpu.columns(A, order), A[:, order])
    found = cpu.columns(A, order, scales)
    assert found.dtype == np.float32
    assert np.array_equal(found, A[:, order] * scales.astype(np.float32))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_products_with_small_matrices_in_several_tasks(kind):
    rng = np.random.default_rng(0)
    A, M, C = (rng.normal(size=shape).astype(kind) for shape in ((20000, 25), (25, 10), (20000, 10)))
    close = 1e-12 if kind == np.float64 else 1e-4
    for tall in (A, np.asfortranarray(A), np.repeat(A, 2, axis=0)[::2]):
        assert cpu.times(tall, M).dtype == kind
        assert np.allclose(cpu.times(tall, M), A @ M, atol=close)
        assert np.allclose(cpu.gradient(tall, M.T[:, ::-1].T[::-1], C), A @ M - C, atol=close)
    assert cpu.times(A.astype(np.float32), M.astype(np.float64)).dtype == np.float64


def test_signals_are_held_while_kernels_run():
    def seen():
        return threads.map_chunks(lambda i, j: interrupts.are_held(), [0, 1, 2])

    assert not interrupts.are_held()
    assert seen() == [True, True]
    with interrupts.held(), interrupts.at_once():  # in a function of the user's
        assert not interrupts.are_held()
        assert seen() == [True, True]
    assert not interrupts.are_held()


class OwnExpansion(pw.solvers.HALS):
    """A solver whose updates go by something else than the loss."""

    def expand(self, problem, mode, state):
        return super().expand(problem, mode, state)  # or a function above it


def test_nothing_is_taken_from_solvers_that_expand_in_their_own_way():
    solver = OwnExpansion()
    problem, rng = problem_for(solver, X, 4), np.random.RandomState(0)
    factors = pw.init.Random()(problem, rng)
    assert solver.known(problem, solver.init(problem, factors, 0.0, rng), factors) == {}
