"""The greedy solver on tensors: the same promises as for matrices, and planted factors found."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import partwise as pw
from partwise import structures as s
from partwise.data import as_data
from partwise.data.base import khatri_rao
from partwise.datasets import make_cp
from partwise.losses import KL
from partwise.oracles import matrices
from partwise.problem import pose
from partwise.solvers import Greedy

from .covering import PAIRS


def planted(shape, rank, zeros, noise=0.05, seed=0):
    """Uniform factors with a share of zeros, each component with three entries at least, and normal noise of relative
    size `noise`, cut at 0; where most of the tensor is zero, on its other entries only."""
    rng = np.random.default_rng(seed)
    factors = [rng.uniform(size=(dim, rank)) * (rng.uniform(size=(dim, rank)) >= zeros) for dim in shape]
    for A in factors:
        for component in A.T:
            few = rng.permutation(len(component))[:3]
            component[few] = np.maximum(component[few], 0.5) if np.count_nonzero(component) < 3 else component[few]
    T = (factors[0] @ khatri_rao(factors[1:]).T).reshape(shape)
    deviation = rng.standard_normal(shape) * ((T > 0) | (zeros < 0.8))
    return factors, np.maximum(T + noise * np.linalg.norm(T) / np.linalg.norm(deviation) * deviation, 0)


def match(found, truth):
    """The factor match score of Acar, Dunlavy and Kolda (2011): the mean over components, matched at best, of the
    product over modes of cosines."""
    unit = [[A / np.linalg.norm(A, axis=0) for A in factors] for factors in (found, truth)]
    cosines = np.prod([A.T @ B for A, B in zip(*unit, strict=True)], axis=0)
    return cosines[linear_sum_assignment(-cosines)].sum() / truth[0].shape[1]


def as_sparse(T):
    return pw.SparseTensor(np.argwhere(T), T[T != 0], T.shape)


_, CUBE = planted((9, 8, 7), 3, 0.5)
_, FOUR = planted((6, 5, 4, 5), 3, 0.5)


def fit(T, rank=3, tol=1e-4, **options):
    return pw.factorize(T, rank, solver=Greedy(**options), random_state=0, tol=tol)


# -- what a run is ------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("float32")
@PAIRS
@pytest.mark.parametrize("polish", ["each", "end", None])
@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, as_sparse, np.float32])
@pytest.mark.parametrize("T", [CUBE, FOUR], ids=["order 3", "order 4"])
def test_every_step_gains_what_its_record_says(T, store, polish):
    result = fit(store(T), polish=polish)
    losses = [0.5 * np.square(T).sum(), *(step.objective for step in result.path)]
    slack = 1e-5 if store is np.float32 else 1e-9
    assert [step.rank for step in result.path] == [1, 2, 3]
    for before, after, step in zip(losses[:-1], losses[1:], result.path, strict=True):
        assert before - after >= step.gain - slack * losses[0]
        assert 0 < step.gain <= step.bound <= before * (1 + slack)
        assert step.status in ("closed", "open")
        assert step.relative_error == pytest.approx(np.sqrt(after / losses[0]), rel=1e-3)
    assert np.diff([record.objective for record in result.history]).max() <= slack * losses[0]


def apart(shape, rank, seed):
    """Parts that do not overlap."""
    rng = np.random.default_rng(seed)
    factors = [
        rng.uniform(0.1, 1, (dim, rank)) * (rng.permutation(dim)[:, None] % rank == range(rank)) for dim in shape
    ]
    return (factors[0] @ khatri_rao(factors[1:]).T).reshape(shape)


@pytest.mark.slow_cases("5")
@pytest.mark.parametrize("shape", [(12, 11, 10), (7, 6, 8, 6), (4, 4, 5, 4, 4)], ids=len)
def test_parts_that_do_not_overlap_are_found_by_the_pure_method(shape):
    result = fit(apart(shape, 4, 0), 6, polish=None)
    assert result.relative_error <= 1e-6
    assert result.rank == 4
    assert {step.status for step in result.path} == {"closed"}


RNG = np.random.default_rng(0)
ODD = {
    "zero": np.zeros((4, 3, 5)),
    "one entry": np.full((1, 1, 1), 3.0),
    "ones": np.ones((3, 4, 2)),
    "diagonal": np.einsum("ij,jk->ijk", np.eye(4), np.eye(4)),
    "a mode of size 1": RNG.uniform(size=(5, 1, 4)),
    "modes of size 1": RNG.uniform(size=(1, 6, 1)),
    "zero slices": RNG.uniform(size=(5, 4, 3)) * [0, 1, 1] * [[0], [1], [1], [1]],
    "order 5": RNG.uniform(size=(3, 2, 3, 2, 3)),
    "order 6": RNG.uniform(size=(2, 3, 2, 2, 2, 2)),
    "huge": 1e200 * RNG.uniform(size=(3, 3, 3)),
    "minute": 1e-200 * RNG.uniform(size=(3, 3, 3)),
}


WAYS = {"each": {}, "pure": {"polish": None}, "prune": {"polish": "end", "prune": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("T", ODD.values(), ids=ODD)
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_odd_tensors(T, options):
    """The rank is above the size of some mode, or of all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = fit(T, 5, **options)
    up = [step for step in result.path if step.status != "pruned"]
    assert all(step.gain <= step.bound for step in up)
    assert np.all(np.diff([step.relative_error for step in up]) <= 0)
    assert [A.shape for A in result.factors] == [(dim, result.rank) for dim in T.shape]
    assert result.relative_error <= 1
    assert result.certify(T, one_more=True).one_more.bound >= 0


def test_pruning_takes_the_least_parts_away():
    result = fit(CUBE, 5, prune=3)
    assert [step.rank for step in result.path] == [1, 2, 3, 4, 5, 4, 3]
    assert result.converged
    assert result.relative_error <= 1.01 * fit(CUBE).relative_error


def test_factors_of_every_rank_can_be_kept(tmp_path):
    result = fit(CUBE, keep=True)
    again = pw.load(result.save(tmp_path / "path.partwise"))
    for step, same in zip(result.path, again.path, strict=True):
        model = np.einsum("ir,jr,kr->ijk", *step.kept)
        assert np.linalg.norm(CUBE - model) / np.linalg.norm(CUBE) == pytest.approx(step.relative_error)
        assert all(np.array_equal(A, B) for A, B in zip(step.kept, same.kept, strict=True))
    with pytest.raises(ValueError, match=r"a pair of W and H is for matrices, and X has 3 modes: take \.kept"):
        result.path[0].W  # noqa: B018


@pytest.mark.parametrize("store", [np.asarray, as_sparse])
def test_killed_on_the_way_it_goes_on_to_the_same_bits(store, tmp_path):
    options = {"solver": Greedy(), "random_state": 0}
    whole = pw.factorize(store(CUBE), 4, **options)
    for stop in (2, 5):  # growing, polishing
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pw.factorize(store(CUBE), 4, max_iter=stop, checkpoint=tmp_path / "run", **options)
        rest = pw.factorize(store(CUBE), 4, resume=tmp_path / "run", **options)
        assert all(np.array_equal(A, B) for A, B in zip(rest.factors, whole.factors, strict=True))
        assert [str(step) for step in rest.path] == [str(step) for step in whole.path]


def test_large_sparse_tensors_stay_sparse(monkeypatch):
    T = as_sparse(np.where(np.median(CUBE) < CUBE, CUBE, 0))
    known = fit(T)
    monkeypatch.setattr(matrices, "ENTRIES", 100)
    monkeypatch.setattr(matrices.Residual, "entries", None)
    result = fit(T)
    assert {step.status for step in result.path} == {"not certified"}
    assert all(step.bound == np.inf for step in result.path)
    assert result.relative_error == pytest.approx(known.relative_error, rel=1e-2)


# -- planted factors ----------------------------------------------------------------------------------------

PLANTED = {
    "dense": ((30, 25, 20), 0.0),
    "half zeros": ((30, 25, 20), 0.5),
    "sparse": ((60, 50, 40), 0.9),
    "order 4": ((12, 11, 10, 9), 0.5),
}


def score(kind, rank, seed):
    shape, zeros = PLANTED[kind]
    truth, T = planted(shape, rank, zeros, seed=seed)
    X = as_sparse(T) if kind == "sparse" else T
    return match(pw.factorize(X, rank, init="greedy", solver="hals", tol=1e-5, random_state=seed).factors, truth)


@pytest.mark.slow
@pytest.mark.parametrize("kind, rank", list(product(PLANTED, (5, 10))))
def test_planted_factors_are_found_in_19_of_20_seeds(kind, rank):
    scores = [score(kind, rank, seed) for seed in range(20)]
    assert np.count_nonzero(np.array(scores) >= 0.99) >= 19, scores


def test_where_random_starts_fail():
    """Of ten components with few nonzeros, random starts miss one more often than not."""
    missed = 0
    for seed in range(4):
        truth = make_cp((40, 35, 30), 10, zeros=0.85, noise=0.05, sparse=True, random_state=seed)
        greedy, random = (pw.factorize(truth.X, 10, init=init, random_state=0) for init in ("greedy", "random"))
        assert pw.metrics.factor_match(truth, greedy) >= 0.99
        if pw.metrics.factor_match(truth, random) < 0.95:
            missed += 1
            assert greedy.relative_error < 0.8 * random.relative_error
    assert missed >= 3


# -- as a start ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [np.asarray, as_sparse])
def test_as_a_start_of_other_losses_it_has_no_zeros(store):
    counts = np.random.default_rng(0).poisson(20 * planted((12, 11, 10), 3, 0.5)[1]).astype(float)
    problem = pose(as_data(store(counts)), KL(), (s.NonNegative(),) * 3, 3).normalized()
    assert min(A.min() for A in pw.init.GreedyLS()(problem, np.random.RandomState(0))) > 0
    result = pw.factorize(store(counts), 3, loss="kl", init="greedy", random_state=0)
    others = pw.factorize(store(counts), 3, loss="kl", init="random", n_init=3, random_state=0)
    assert result.objective <= 1.02 * others.objective


# -- certificates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [np.asarray, np.asfortranarray, as_sparse])
@pytest.mark.parametrize("T", [CUBE, FOUR], ids=["order 3", "order 4"])
def test_the_best_bound_of_the_unfoldings(T, store):
    known = pw.factorize(store(T), 2, random_state=0).certify(store(T))
    tails = []
    for mode in range(T.ndim):
        values = np.linalg.svd(np.moveaxis(T, mode, 0).reshape(T.shape[mode], -1), compute_uv=False)
        tails.append(np.linalg.norm(values[2:]) / np.linalg.norm(T))
    assert known.bound == pytest.approx(max(tails), rel=1e-9)
    assert known.bound <= max(tails)
    assert known.rigorous
    assert f"against {known.bound:.6g}, the Eckart-Young bound of the unfoldings of X" in str(known)


def test_modes_smaller_than_the_rank_prove_nothing_and_others_do():
    _, T = planted((12, 2, 10), 4, 0.0, noise=0.2)
    known = pw.factorize(T, 3, random_state=0).certify(T)
    assert 0 < known.bound < known.relative_error
    full = pw.factorize(CUBE, 9, random_state=0).certify(CUBE)
    assert full.bound == 0
    assert "no bound above 0 is known from the unfoldings of X" in str(full)


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_one_more_part_could_gain(dtype):
    T = CUBE.astype(dtype)
    result = pw.factorize(T, 2, random_state=0)
    more = result.certify(T, one_more=True).one_more
    left = T - np.einsum("ir,jr,kr->ijk", *result.factors)
    assert more.loss == pytest.approx(0.5 * np.square(left).sum(), rel=1e-4)
    assert more.gain <= more.bound <= more.loss
    rng = np.random.default_rng(0)
    for _ in range(50):
        x, y, z = (rng.uniform(size=dim) ** 4 for dim in T.shape)
        product = max(left @ z @ y @ x, 0) / (np.linalg.norm(x) * np.linalg.norm(y) * np.linalg.norm(z))
        assert product**2 / 2 <= more.gain * (1 + 1e-5)  # the best that was found beats what is drawn at random
    assert f"any one more part lowers the loss by at most {more.bound:.6g}" in str(more)
