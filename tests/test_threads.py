"""Threads: several fits at once, forks, and what is left behind."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_info

import partwise as pw
from partwise.datasets import make_parts

X = sparse.csr_array(make_parts(600, 500, 4, zeros=0.7, random_state=0).X)


def parts(seed):
    return pw.factorize(X, 4, init="random", random_state=seed, max_iter=20, tol=0).H


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_fits_in_several_threads_give_the_same_bits():
    alone = [parts(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(parts, range(6)))
    assert all(np.array_equal(A, B) for A, B in zip(alone, together))


def test_blas_gets_its_threads_back():
    before = blas_threads()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(parts, range(6)))
    with pytest.raises(ZeroDivisionError):
        pw.factorize(X, 4, callbacks=[lambda *_: 1 / 0])
    assert blas_threads() == before


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_fits_after_a_fork():
    expected = parts(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for forked in pool.map(parts, [0, 0]):
            assert np.array_equal(forked, expected)


def test_clones_share_nothing():
    model = pw.NMF(3, random_state=0, max_iter=5, tol=0)
    assert np.array_equal(clone(model).fit(X).components_, model.fit(X).components_)
