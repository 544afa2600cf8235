"""Threads: several fits at once, forks, and what is left behind."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info, threadpool_limits

import partwise as pw
from partwise.datasets import make_parts
from partwise.kernels import threads


@pytest.fixture
def _many_tasks(monkeypatch):
    """Enough tasks to need the threads, though the data is small."""
    monkeypatch.setattr(threads, "pieces", lambda *_: 8)


many_tasks = pytest.mark.usefixtures("_many_tasks")


X = sparse.csr_array(make_parts(600, 500, 4, zeros=0.7, random_state=0).X)


def parts(seed):
    return pw.factorize(X, 4, init="random", random_state=seed, max_iter=20, tol=0).H


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@many_tasks
def test_fits_in_several_threads_give_the_same_bits():
    alone = [parts(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(parts, range(6)))
    assert all(np.array_equal(A, B) for A, B in zip(alone, together, strict=True))


@many_tasks
def test_blas_gets_its_threads_back():
    before = blas_threads()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(parts, range(6)))
    with pytest.raises(ZeroDivisionError):
        pw.factorize(X, 4, callbacks=[lambda *_: 1 / 0])
    assert blas_threads() == before


@many_tasks
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_fits_after_a_fork():
    expected = parts(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for forked in pool.map(parts, [0, 0]):
            assert np.array_equal(forked, expected)


def test_clones_share_nothing():
    model = pw.NMF(3, random_state=0, max_iter=5, tol=0)
    assert np.array_equal(clone(model).fit(X).components_, model.fit(X).components_)


def threads_used(**options):
    seen = set()
    pw.factorize(X, 4, max_iter=3, tol=0, callbacks=[lambda *_: seen.add(threads.count())], **options)
    (number,) = seen
    return number


def test_a_limit_counts_while_something_is_worked_on(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 8)
    with threads.blas.on_one_thread():
        before = threads.count()
        with threads.limited(1), threads.blas.on_one_thread():
            assert threads.count() == 1
        assert threads.count() == before


@many_tasks
def test_n_threads_is_kept_and_changes_no_bit(monkeypatch):
    monkeypatch.setattr(threads, "_available", lambda setting: 8)
    with threadpool_limits(8, user_api="blas"):
        assert threads_used() > 1
        assert threads_used(n_threads=1) == 1
        assert threads_used(n_threads=2) == 2
    models = [pw.NMF(3, random_state=0, max_iter=5, tol=0, n_threads=n) for n in (None, 1, 2)]
    first, *others = [model.fit(X).components_ for model in models]
    assert all(np.array_equal(first, other) for other in others)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n_threads must be a whole number >= 1"):
            pw.factorize(X, 3, n_threads=wrong)


def test_threadpoolctl_is_obeyed():
    with threadpool_limits(1, user_api="blas"):
        assert threads_used() == 1


def test_omp_num_threads_is_obeyed(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_used() == 1


def count_in_worker(_):
    return threads.count()


@pytest.mark.slow_cases("loky")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_share_the_cores(backend):
    n_jobs = joblib.cpu_count()
    counts = joblib.Parallel(n_jobs, backend=backend)(joblib.delayed(count_in_worker)(i) for i in range(n_jobs))
    assert sum(counts) <= joblib.cpu_count()


@pytest.mark.slow
def test_grid_search_in_two_processes_gives_the_same_bits():
    grid = {"n_components": [2, 3], "max_iter": [10]}
    searches = [
        GridSearchCV(pw.NMF(random_state=0, init="random"), grid, scoring=lightness, cv=2, n_jobs=n).fit(X.toarray())
        for n in (1, 2)
    ]
    one, two = (search.best_estimator_.components_ for search in searches)
    assert np.array_equal(one, two)
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert np.array_equal(*scores)


def lightness(model, X, y=None):
    return -float(model.transform(X).sum())


@pytest.mark.parametrize("work", [1, 10, 17, 31, 45, 63, 64, 1000])
def test_cores_get_whole_rounds_of_tasks(work):
    count = threads.pieces(work * threads.CHUNK_WORK)
    assert count <= min(work, threads.MOST_TASKS)
    assert count == work if work <= threads.ROUND else count % threads.ROUND == 0


@pytest.mark.parametrize("first", [0, 12345])
def test_rows_are_split_by_their_entries(first):
    for n_rows, least in ((2000, 8000), (50_001, 200_000)):
        lengths = np.random.default_rng(0).poisson(np.linspace(0, 60, n_rows))
        lengths[50:60] += 40 * n_rows // 200  # of words that are in every document
        indptr = first + np.concatenate([[0], np.cumsum(lengths)])
        boundaries = threads.split_rows(indptr, 3, 7, least=least)
        exact = threads.split_by_work((lengths + 3) * 7, least=least)
        assert len(boundaries) == len(exact) > 10 and boundaries[-1] == n_rows
        assert boundaries == exact
    assert boundaries[0] == 0
    assert boundaries[-1] == lengths.size
    assert len(boundaries) > threads.ROUND
