"""Starts: feasible, of the right size, and right where a right answer is known."""

import re

import numpy as np
import pytest
from scipy import sparse

from partwise import init
from partwise import structures as s
from partwise.data import as_data
from partwise.datasets import make_parts
from partwise.losses import KL, Frobenius
from partwise.problem import pose

from .conformance.tables import INITS
from .trials.data import Tensor

X = make_parts(25, 18, 4, noise=0.1, random_state=0).X


def problem_of(X, W=s.NonNegative(), H=s.NonNegative(), rank=4, loss=Frobenius()):  # noqa: B008
    return pose(as_data(X), loss, (W, H), rank).normalized()


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("start", INITS.values(), ids=INITS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_feasible(start, dtype):
    problem = problem_of(X.astype(dtype), s.Box(0, 0.9), s.NonNegative() & s.Fixed(X[:1]))
    factors = start(problem, np.random.RandomState(0))
    assert [A.shape for A in factors] == [(25, 4), (18, 4)]
    assert all(A.dtype == dtype and A.flags.c_contiguous for A in factors)
    assert [st.violation(A) for st, A in zip(problem.structures, factors, strict=True)] == [0, 0]


@pytest.mark.parametrize("name", ["nndsvd", "nndsvda", "spa", "greedy"])
def test_good_starts_beat_random_ones(name):
    problem, rng = problem_of(X), np.random.RandomState(0)
    start = INITS[name](problem, rng)
    assert problem.objective(start) < problem.objective(init.Random()(problem, rng))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_spa_finds_pure_samples(store):
    """Separable data: every part occurs alone in some sample. SPA is then exact."""
    rng = np.random.default_rng(0)
    H = rng.uniform(size=(4, 18))
    W = np.vstack([rng.dirichlet(np.ones(4), size=30), np.diag([3.0, 0.5, 10.0, 1.0])])
    problem = problem_of(store(W @ H))
    factors = init.SPA()(problem, np.random.RandomState(0))
    assert problem.relative_error(factors) < 1e-3
    ratios = factors[1].T[:, None, :] / H[None]
    assert (ratios.std(axis=2) < 1e-10 * ratios.mean(axis=2)).sum() == 4


def test_spa_with_fewer_directions_than_parts():
    X = np.outer(np.arange(1.0, 6), np.ones(5))
    factors = init.SPA()(problem_of(X, rank=3), np.random.RandomState(0))
    assert all(np.isfinite(A).all() for A in factors)
    assert problem_of(X, rank=3).relative_error(factors) < 1e-2


def test_signed_factors_start_signed():
    factors = init.Random()(problem_of(X - X.mean(), H=s.Free()), np.random.RandomState(0))
    assert (factors[0] >= 0).all()
    assert (factors[1] < 0).any()


@pytest.mark.parametrize("start", [init.NNDSVD(), init.SPA()])
def test_starts_that_need_nonnegative_data_say_so(start):
    with pytest.raises(ValueError, match="Negative values in data passed to NMF initialization"):
        start(problem_of(X - X.mean(), H=s.Free()), np.random.RandomState(0))


def test_the_greedy_start_has_no_zeros_for_losses_that_cannot_leave_them():
    Y = make_parts(25, 18, 4, zeros=0.6, random_state=0).X
    for A in init.GreedyLS()(problem_of(Y, loss=KL()), np.random.RandomState(0)):
        assert 0 < A.min() <= 0.011 * A.mean()


# -- data with three modes -------------------------------------------------------------------------------------


def tensor_problem(dims=(6, 5, 4), rank=3):
    return pose(Tensor.of(np.full(dims, 8.0)), Frobenius(), [s.NonNegative(), s.Free(), s.NonNegative()], rank)


def test_random_starts_of_three_factors():
    factors = init.Random()(tensor_problem(), np.random.RandomState(0))
    assert [A.shape for A in factors] == [(6, 3), (5, 3), (4, 3)]
    assert (factors[0] >= 0).all() and (factors[1] < 0).any() and (factors[2] >= 0).all()
    drawn = np.random.RandomState(0).standard_normal((3, 4)).T  # the last factor first, and lying down
    assert np.allclose(factors[2], np.abs(drawn) * (8 / 3) ** (1 / 3), rtol=1e-14)
    assert [A.shape for A in init.Empty()(tensor_problem(), None)] == [(6, 3), (5, 3), (4, 3)]


@pytest.mark.parametrize("name", ["nndsvd", "spa"])
def test_starts_for_matrices_say_so(name):
    told = f"init='{name}' is for matrices, and X has 3 modes: use init='greedy' or 'random'"
    with pytest.raises(ValueError, match=told):
        INITS[name](tensor_problem(), np.random.RandomState(0))


def test_given_factors_are_checked_against_their_number():
    given = init.Random()(tensor_problem(), np.random.RandomState(0))
    again = init.Given(given)(tensor_problem(), np.random.RandomState(0))
    assert all(map(np.array_equal, given, again))
    with pytest.raises(ValueError, match="the start has 2 factors, and X has 3 modes"):
        init.Given(given[:2])(tensor_problem(), np.random.RandomState(0))
    with pytest.raises(ValueError, match=r"the initial A2 has shape \(4, 3\), but this X and rank need \(5, 3\)"):
        init.Given((given[0], given[2], given[1]))(tensor_problem(), np.random.RandomState(0))


class Own(init.Init):
    name = "own"

    def __init__(self, factors):
        self.factors = factors

    def raw(self, problem, rng):
        return self.factors


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_a_start_of_other_shapes_is_refused(store):
    problem = pose(as_data(store(make_parts(30, 20, 3, random_state=0).X)), Frobenius(), (s.NonNegative(),) * 2, 3)
    made = {
        "factors of shapes (31, 3) and (21, 3)": (np.ones((31, 3)), np.ones((21, 3))),
        "factors of shapes (30, 3)": [np.ones((30, 3))],
        "factors of shapes () and ()": (None, None),
        "NoneType": None,
        "ndarray": np.ones((30, 3)),
    }
    for told, factors in made.items():
        with pytest.raises(ValueError, match=re.escape(f"init='own' made {told}; for X of shape (30, 20) and rank 3")):
            Own(factors)(problem, np.random.RandomState(0))
    lists = Own((np.ones((30, 3)).tolist(), np.full((20, 3), 2).tolist()))(problem, np.random.RandomState(0))
    assert [A.dtype for A in lists] == [np.float64] * 2 and np.all(lists[1] == 2)
