"""Arrays of Dask's: the same bits on its threads and on any number of workers, whatever happens to these."""

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import kernels
from partwise.errors import IncompatibleError

dask = pytest.importorskip("dask", reason="for arrays of Dask's")
da = pytest.importorskip("dask.array", reason="for arrays of Dask's")
distributed = pytest.importorskip("distributed", reason="for clusters of Dask's")

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(3 * RNG.gamma(0.5, size=(90, 4)) @ RNG.gamma(0.5, size=(4, 20))).astype(float)
CHUNKS = (20, 1, 30, 25, 14)
IMPORTED = ["partwise", "partwise.kernels.cpu", "partwise.data.spread", "partwise.solvers", "tests.test_dask"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def spread(X=COUNTS, store=None):
    array = da.from_array(X, chunks=(CHUNKS, X.shape[1]))
    return array if store is None else array.map_blocks(store)


def fitted(X, loss="frobenius", **settings):
    settings = {"init": "random", "solver": "streamed", "random_state": 0, "max_iter": 12, "tol": 0.0} | settings
    return pw.factorize(X, 4, loss=loss, **settings)


def objectives(result):
    return [record.objective for record in result.history]


def same(found, expected):
    assert objectives(found) == objectives(expected)
    assert np.array_equal(found.H, expected.H)
    assert np.array_equal(np.asarray(found.W), np.asarray(expected.W))


def cluster(n_workers, processes=False, **settings):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=None, **settings
    )


@pytest.mark.slow_cases("^(?!kl-dense)")
@pytest.mark.parametrize("store", [None, sparse.csr_array, sparse.csr_matrix], ids=["dense", "array", "matrix"])
@pytest.mark.parametrize("loss", ["frobenius", "kl", 1.5])
def test_threads(loss, store):
    found = fitted(spread(store=store), loss)
    assert objectives(found) == pytest.approx(objectives(fitted(COUNTS, loss)), rel=1e-12)
    assert isinstance(found.W, da.Array)
    assert isinstance(found.H, np.ndarray)
    assert found.W.chunks == (CHUNKS, (4,))


def test_kernels_for_columns_and_units():
    A = np.where(np.arange(4) == 2, 0.0, np.random.default_rng(1).uniform(size=(90, 4)))
    D = spread(A)
    of = kernels.of(D)
    assert of.nonzero_columns(D).tolist() == [True, True, False, True]
    order, scales = np.array([3, 0]), np.array([2.0, 0.5])
    assert np.array_equal(of.columns(D, order, scales), A[:, order] * scales)
    assert np.array_equal(of.columns(D, order), A[:, order])
    small = of.ldexp(D, 130, np.dtype(np.float32), np.finfo(np.float32).max)
    assert (small.dtype, small.chunks) == (np.float32, D.chunks)
    assert np.asarray(small).max() == np.finfo(np.float32).max
    assert np.array_equal(of.ldexp(D, -3, D.dtype), A / 8)
    assert np.allclose(of.gradient(D, np.eye(4), D), 0)


def test_missing_entries_and_structures():
    X = COUNTS.copy()
    X[21:51][RNG.uniform(size=(30, 20)) < 0.3] = np.nan
    assert objectives(fitted(spread(X))) == pytest.approx(objectives(fitted(X)), rel=1e-12)
    stated = {"structure_W": "simplex('item')", "structure_H": "nonnegative & l2(0.1)"}
    assert objectives(fitted(spread(), **stated)) == pytest.approx(objectives(fitted(COUNTS, **stated)), rel=1e-9)


@pytest.mark.slow_cases("1|4")
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_number_of_workers_has_the_same_bits(n_workers):
    expected = [fitted(spread(), loss) for loss in ("frobenius", "kl")]
    with cluster(n_workers) as workers, distributed.Client(workers):
        for loss, threads in zip(("frobenius", "kl"), expected, strict=True):
            same(fitted(spread(), loss), threads)


def with_holes(X):
    """NaN in a block of it."""
    X = X.copy()
    X[21:51][np.random.default_rng(1).uniform(size=(30, 20)) < 0.3] = np.nan
    return X


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_every_loss_and_storage_has_the_same_bits(n_workers):
    cases = [
        (X, loss, store)
        for X in (COUNTS + 0.5, with_holes(COUNTS + 0.5))
        for loss in ("frobenius", "kl", 1.5, "itakura-saito", 2.5)
        for store in (None, sparse.csr_array)
    ]
    expected = [fitted(spread(X, store), loss) for X, loss, store in cases]
    with cluster(n_workers) as workers, distributed.Client(workers):
        for (X, loss, store), threads in zip(cases, expected, strict=True):
            same(fitted(spread(X, store), loss), threads)
            assert objectives(threads) == pytest.approx(objectives(fitted(X, loss)), rel=1e-9)


def test_defaults_converge_and_are_certified():
    found, whole = pw.factorize(spread(), 4, random_state=0), pw.factorize(COUNTS, 4, random_state=0)
    assert found.status == "converged"
    assert found.objective == pytest.approx(whole.objective, rel=1e-2)
    assert found.certify(spread()).bound == pytest.approx(whole.certify(COUNTS).bound, rel=1e-9)


def test_transform_is_lazy():
    seen = []
    model = pw.NMF(4, random_state=0, max_iter=20).fit(spread())
    weights = model.transform(spread().map_blocks(lambda X: seen.append(0) or X, meta=np.empty((0, 0))))
    assert isinstance(weights, da.Array)
    assert not seen
    assert np.allclose(weights.compute(), model.transform(COUNTS), rtol=1e-9)
    assert len(seen) == len(CHUNKS)
    assert model.components_.shape == (4, 20)


def test_results_are_saved_and_resumed(tmp_path):
    path = tmp_path / "run.checkpoint"
    cut = fitted(spread(), checkpoint=(path, 0), callbacks=[lambda record, factors: record.n_iter == 7])
    assert cut.n_iter == 7
    same(fitted(spread(), resume=path), fitted(spread()))
    cut.save(tmp_path / "model.partwise")
    assert np.array_equal(pw.load(tmp_path / "model.partwise").W, np.asarray(cut.W))
    page = cut.report(tmp_path / "report.html", X=spread()).read_text()
    assert "<h3>Where the model fails</h3>" in page
    assert fitted(spread(), init=cut, max_iter=1).history[0].objective == pytest.approx(cut.objective)


@pytest.mark.parametrize(
    "bad, sentence",
    [
        (lambda X: X[X[:, 0] > 0], "chunks of unknown size: call X.compute_chunk_sizes"),
        (lambda X: da.Array(X.dask, X.name, ((20, 0, 70), (20,)), X.dtype), "block 1 of X has no rows"),
        (lambda X: da.concatenate([X, X.map_blocks(sparse.csr_array)]), r"block 5 of X .* is sparse, and block 0 is"),
        (lambda X: X.map_blocks(lambda block: block[:, :7], dtype=float), r"block \d of X .* has shape \(\d+, 7\)"),
        (lambda X: X.astype(complex), "X must hold real numbers"),
        (lambda X: X[:, :, None], "X must be a matrix"),
    ],
)
def test_bad_input_names_the_block(bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted(bad(spread()))


def test_masks_and_weights_have_the_chunks_of_x():
    rng = np.random.default_rng(1)
    weights, rows = rng.uniform(0, 2, size=COUNTS.shape), rng.uniform(0.5, 2, size=len(COUNTS))
    for said, beside in [
        ({"weights": weights, "mask": weights > 0.3}, {"weights": spread(weights), "mask": spread(weights > 0.3)}),
        ({"weights": (rows, None)}, {"weights": (rows, None)}),
    ]:
        found, whole = fitted(spread(), max_iter=4, **beside), fitted(COUNTS, max_iter=4, **said)
        assert objectives(found) == pytest.approx(objectives(whole), rel=1e-9)
        assert found.weighted
        assert np.allclose(found.W, whole.W)
    with pytest.raises(ValueError, match=r"block 2 of weights is not as large as that of X: rechunk it"):
        fitted(spread(), weights=da.from_array(weights, chunks=((20, 1, 25, 30, 14), 20)))
    with pytest.raises(ValueError, match="weights must come in blocks as X does, an array of Dask's"):
        fitted(spread(), weights=weights)
    with pytest.raises(ValueError, match=r"block 2 of weights \(rows 21 to 50\) must be >= 0"):
        fitted(spread(), weights=spread(np.where(np.arange(90)[:, None] == 30, -1.0, weights)))


def test_nan_names_the_block():
    X = COUNTS.copy()
    X[30, 3] = np.nan
    with pytest.raises(ValueError, match=r"block 2 of X \(rows 21 to 50\) contains 1 NaN entry"):
        fitted(spread(X), missing=None)
    with pytest.raises(IncompatibleError, match="needs all of X at once"):
        fitted(spread(), solver="gcd")


def test_chunks_of_columns_are_joined_with_a_warning():
    with pytest.warns(UserWarning, match="2 chunks along its columns"):
        found = fitted(spread().rechunk({1: 10}))
    same(found, fitted(spread()))


class FailsOnce:
    """A block that cannot be loaded the first time."""

    def __init__(self):
        self.failed = False

    def __call__(self, X):
        if not self.failed and len(X) == 30:
            self.failed = True
            raise OSError("the disk is busy")
        return X


def test_a_block_that_fails_once_is_loaded_again():
    same(fitted(spread().map_blocks(FailsOnce(), meta=np.empty((0, 0)))), fitted(spread()))
    with pytest.raises(ValueError, match="a block of X could not be worked on by Dask: the disk is gone"):
        fitted(spread().map_blocks(gone, meta=np.empty((0, 0))))


def gone(X):
    raise OSError("the disk is gone")


def slow(X):
    time.sleep(0.02)
    return X


@pytest.mark.slow
def test_ctrl_c_leaves_no_tasks_behind():
    with cluster(2) as workers, distributed.Client(workers) as client:
        press = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
        press.start()
        found = fitted(spread().map_blocks(slow), max_iter=100_000)
        assert found.status == "interrupted"
        del found
        gc.collect()
        wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))


@pytest.mark.slow
def test_a_time_limit_leaves_no_tasks_behind():
    with cluster(2) as workers, distributed.Client(workers) as client:
        found = fitted(spread().map_blocks(slow), max_iter=100_000, time_limit=1.0)
        assert found.status == "time_limit"
        del found
        gc.collect()
        wait_until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))


def test_time_limits_hold_on_threads():
    began = time.perf_counter()
    found = fitted(spread().map_blocks(slow), max_iter=100_000, time_limit=0.6)
    assert found.status == "time_limit"
    assert time.perf_counter() - began < 5


def wait_until(holds, seconds=10):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def processes():
    """A cluster of two processes, which tests share. They are forked from one that has imported what they need, so that
    there are new ones at once."""
    settings = {
        "distributed.scheduler.allowed-failures": 100,  # a task may be unlucky again and again
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    with dask.config.set(settings):
        distributed.utils.get_mp_context().set_forkserver_preload(["distributed", "dask.array", *IMPORTED])
        with cluster(2, processes=True) as workers:
            yield workers


def killing(workers, moments, rng):
    """A callback that kills a worker in the middle of the iterations that follow these."""

    def kill(record, factors):
        if record.n_iter in moments:
            pids = [worker.pid for worker in workers.workers.values() if worker.pid]
            threading.Timer(rng.uniform(0, 0.03), os.kill, (int(rng.choice(pids)), signal.SIGKILL)).start()

    return kill


def check_kills(workers, n_kills, n_iter):
    """A run in which workers are killed in the middle of iterations, beside one in peace."""
    X, rng = spread().map_blocks(slow), np.random.default_rng(n_kills)
    with distributed.Client(workers):
        moments = set(rng.choice(np.arange(2, n_iter - 1), n_kills, replace=False).tolist())
        found = fitted(X, max_iter=n_iter, callbacks=[killing(workers, moments, rng)])
    expected = fitted(spread(), max_iter=n_iter)
    assert objectives(found) == objectives(expected)
    assert np.array_equal(found.H, expected.H)


def test_two_killed_workers_change_nothing(processes):
    check_kills(processes, 2, n_iter=6)


@pytest.mark.slow
@pytest.mark.parametrize("n_kills", [5, 7, 8])
def test_twenty_killed_workers_change_nothing(processes, n_kills):
    check_kills(processes, n_kills, n_iter=24)


@pytest.mark.slow
def test_runs_on_a_cluster_are_resumed(processes, tmp_path):
    """On other workers than those of the first run, and one of them is killed in between."""
    path = tmp_path / "run.checkpoint"
    for loss in ("frobenius", "kl"):
        with distributed.Client(processes):
            cut = fitted(spread(), loss, checkpoint=(path, 0), callbacks=[lambda record, factors: record.n_iter == 7])
            assert (cut.status, cut.n_iter) == ("callback", 7)
            del cut
        os.kill(next(worker.pid for worker in processes.workers.values() if worker.pid), signal.SIGKILL)
        with distributed.Client(processes):
            same(fitted(spread(), loss, resume=path), fitted(spread(), loss))
        same(fitted(spread(), loss, resume=path), fitted(spread(), loss))  # and on threads


@pytest.mark.slow
def test_a_worker_may_join():
    with cluster(1) as workers, distributed.Client(workers):
        found = fitted(spread(), callbacks=[lambda record, factors: workers.scale(2) if record.n_iter == 4 else None])
        same(found, fitted(spread()))


def test_a_closed_client_is_said():
    with cluster(1) as workers, distributed.Client(workers) as client:
        X = client.persist(spread())
        found = fitted(X, max_iter=2)
    with pytest.raises(ValueError, match="block 0 of X is on a cluster of Dask whose client was closed"):
        fitted(X, max_iter=2)
    assert found.H.shape == (4, 20)
