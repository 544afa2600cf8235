"""Data larger than memory: speed against that of the disk, memory, what Dask and our own code cost a block, workers,
and mini-batches beside scikit-learn's. PARTWISE_LARGE_GB: size of the file, PARTWISE_LARGE: the folder of the file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import MiniBatchNMF

import partwise as pw
from partwise import losses
from partwise.data import as_data
from partwise.data.places import InProcess
from partwise.problem import pose
from partwise.result.transform import projected_rows
from partwise.structures import NonNegative

from .data import images, stored
from .runs import Table, Task
from .scale import sized

COLUMNS, RANK = 2500, 10
HEIGHT, MANY = sized((16_000, 100), (200, 10))  # rows of a block for two workers, and blocks of one row
GIGABYTES = float(os.environ.get("PARTWISE_LARGE_GB", sized("4", "0.02")))
EVERY = {"missing": None, "mask": None, "weights": None}

WRITE = """
import sys
import numpy as np
path, rows, columns, rank = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(0)
parts = rng.gamma(0.5, size=(rank, columns)).astype(np.float32)
with open(path, "wb") as file:
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns)}
    np.lib.format.write_array_header_1_0(file, header)
    for start in range(0, rows, 10_000):
        height = min(10_000, rows - start)
        W = rng.gamma(0.5, size=(height, rank)).astype(np.float32)
        (W @ parts + rng.random((height, columns), dtype=np.float32)).tofile(file)
"""
FIT = """
import resource, sys, time
import numpy as np, partwise as pw
path, rank, n_iter = sys.argv[1], *map(int, sys.argv[2:])
pw.factorize(np.ones((50, 100), np.float32), 2, solver="streamed", max_iter=2, tol=0)  # kernels are compiled now
times = []
X = pw.open(path, memory="2GB")
pw.factorize(X, rank, init="random", random_state=0, max_iter=n_iter, tol=0,
             callbacks=[lambda record, factors: times.append(record.time) and False])
print(np.median(np.diff(times)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, len(X.heights))
"""


def program(code: str, *arguments) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def out_of_core() -> list[list]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("PARTWISE_LARGE")) as folder:
        return from_file(Path(folder, "large.npy"))


def from_file(path: Path) -> list[list]:
    program(WRITE, path, int(GIGABYTES * 1e9 / (4 * COLUMNS)), COLUMNS, RANK)
    X = pw.open(path, memory="2GB")
    place, passes = InProcess(X, X.heights), []
    for _ in range(3):
        began = time.perf_counter()
        place.run(untouched, X.heights, ())
        passes.append(time.perf_counter() - began)
    an_iteration, peak, n_blocks = map(float, program(FIT, path, RANK, 6).split())
    deliver = min(passes[1:])
    shape = f"{X.shape[0]} x {COLUMNS}, float32, rank {RANK}"
    return [
        [f"{shape}: delivering the blocks", f"{GIGABYTES / deliver:.2f} GB/s", ""],
        [f"an iteration, in {n_blocks:.0f} blocks", f"{GIGABYTES / an_iteration:.2f} GB/s", ""],
        ["of the speed at which blocks are delivered", f"{deliver / an_iteration:.0%}", "70%"],
        ["largest memory", f"{peak / 1e9:.2f} GB", "2 GB"],
    ]


def untouched(known, block):
    """No work on a block: what is measured is how fast they come."""
    return (), (0.0,)


def seconds_an_iteration(X, n_iter: int = 8, **settings) -> float:
    times: list[float] = []
    settings = {"init": "random", "random_state": 0, "max_iter": n_iter, "tol": 0, **settings}
    watch = lambda record, factors: times.append(record.time) and False  # noqa: E731
    pw.factorize(X, RANK, solver="streamed", callbacks=[watch], **settings)
    return float(np.median(np.diff(times)))


def generated(block_info=None) -> np.ndarray:
    """A block of random numbers."""
    number = block_info[None]["chunk-location"][0]
    return np.random.default_rng(number).random((HEIGHT, COLUMNS), dtype=np.float32)


class InMemory(pw.data.places.Source):
    """A matrix in memory, in blocks."""

    def __init__(self, X, n_blocks: int):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype
        self.heights = (X.shape[0] // n_blocks,) * n_blocks

    def read(self, start, stop, room=None):
        return self.X[start:stop]


def a_block(n_blocks: int = 6) -> list[list]:
    """What our own code and Dask cost a block, from blocks of one row, on which there is hardly any work; and what a
    second worker brings where there is."""
    import dask.array as da  # noqa: PLC0415  # optional
    import distributed  # noqa: PLC0415

    X = np.random.default_rng(0).random((MANY, COLUMNS), dtype=np.float32)
    D = da.from_array(X, chunks=(1, COLUMNS))
    costs = {"our own code": (seconds_an_iteration(InMemory(X, MANY), n_threads=1) / MANY, "2%")}
    costs["with Dask's threads"] = seconds_an_iteration(D.persist()) / MANY, "10%"
    large = da.map_blocks(generated, chunks=((HEIGHT,) * n_blocks, (COLUMNS,)), dtype=np.float32)
    times = {}
    for n_workers in (1, 2):
        cluster = distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, distributed.Client(cluster) as client:
            if n_workers == 1:
                costs["with a worker in another process"] = seconds_an_iteration(client.persist(D)) / MANY, "10%"
            times[n_workers] = seconds_an_iteration(client.persist(large), n_iter=12)
    lines = [
        [f"cost of a block, {name}, of 100 ms", f"{1e3 * cost:.2f} ms, {cost / 0.1:.1%}", asked]
        for name, (cost, asked) in costs.items()
    ]
    return [*lines, ["two workers of one thread, over one", f"{times[1] / times[2]:.2f} times", "1.8 times"]]


def planted() -> np.ndarray:
    rng = np.random.default_rng(0)
    m, n = sized((20_000, 500), (200, 60))
    return rng.gamma(0.5, size=(m, 20)) @ rng.gamma(0.5, size=(20, n)) + rng.random((m, n))


def planted_counts() -> sparse.csr_array:
    rng = np.random.default_rng(0)
    m, n = sized((12_000, 4000), (300, 80))
    rates = 0.05 * rng.gamma(0.3, size=(m, 20)) @ rng.gamma(0.3, size=(20, n))
    return sparse.csr_array(rng.poisson(rates).astype(float))


STREAMS = {
    "generated": planted,
    "generated counts": planted_counts,
    "mnist, 20000 images": lambda: images("mnist")[:20_000],
    "news20": lambda: stored("news20").astype(float),
}
LOSSES = {"frobenius": losses.Frobenius(), "kullback-leibler": losses.KL()}


def objective(X, parts: np.ndarray, loss) -> float:
    """With the best W for these parts, (rank, n_features)."""
    W = projected_rows(X, (parts.T,), NonNegative(), loss, EVERY, tol=1e-3, max_iter=100)
    problem = pose(as_data(X), loss, (NonNegative(),) * 2, parts.shape[0])
    return problem.precise_fit((W, np.ascontiguousarray(parts.T)))


SEEDS = 1
BATCH = sized(100, 3)  # iterations of the batch solver, which takes a minute for 300 under Kullback-Leibler


def timed(function) -> tuple:
    began = time.perf_counter()
    return function(), time.perf_counter() - began


def reaching(X, target: float, loss, **settings) -> float:
    """Seconds until the parts are as good as a target, by batches as `fit` takes them; infinite after three passes."""
    model, seconds = pw.MiniBatchNMF(RANK * 2, **settings), 0.0
    for _ in range(3):
        for start in range(0, X.shape[0], model.batch_size):
            batch = X[start : start + model.batch_size]
            _, spent = timed(lambda batch=batch: model.partial_fit(batch))
            seconds += spent
            if objective(X[::20], model.components_, loss) * 20 <= target:
                return seconds
    return float("inf")


def mini_batch(X, loss, **given) -> list[float]:
    """scikit-learn's class after its defaults, and ours: seconds of theirs; of ours to that objective; how far three
    passes of ours end above the batch solver; seconds of ours after its defaults; how far these end above it."""
    theirs, their_time = timed(lambda: MiniBatchNMF(RANK * 2, **given).fit(X))
    ours = reaching(X, objective(X, theirs.components_, loss), loss, **given)
    three = pw.MiniBatchNMF(RANK * 2, **given, max_no_improvement=None, tol=0, max_iter=3).fit(X)
    default, our_time = timed(lambda: pw.MiniBatchNMF(RANK * 2, **given).fit(X))
    best = objective(X, pw.NMF(RANK * 2, **given, max_iter=BATCH).fit(X).components_, loss)
    above = [objective(X, model.components_, loss) / best - 1 for model in (three, default, theirs)]
    return [their_time, ours, above[0], our_time, above[1], above[2]]


def mini_batches(name: str, beta_loss: str) -> list[list]:
    """Of all seeds the median time, and the least good objective of ours."""
    X, loss = STREAMS[name](), LOSSES[beta_loss]
    pw.MiniBatchNMF(RANK * 2, beta_loss=beta_loss, init="random", max_iter=1).fit(X[:3000])  # compiles kernels
    settings = {"beta_loss": beta_loss, "init": "random"}
    runs = [mini_batch(X, loss, random_state=seed, **settings) for seed in range(SEEDS)]
    theirs, ours, _, whole, _, other = np.median(runs, axis=0)
    three, default = np.max(runs, axis=0)[[2, 4]]
    times = [f"{theirs:.2f} s", f"{ours:.2f} s" if np.isfinite(ours) else "never", f"{theirs / ours:.1f}"]
    return [[name, beta_loss, *times, f"{three:.2%}", f"{whole:.2f} s", f"{default:.2%}", f"{other:.2%}"]]


HEADER = ["data", "loss", "scikit-learn", "ours, to that objective", "times faster", "three passes, over the batch"]
HEADER += ["our defaults", "over the batch", "scikit-learn's"]


def tables() -> list[Table]:
    kinds = [(name, beta_loss) for name in STREAMS for beta_loss in LOSSES]
    streams = [Task(f"{name}, {beta_loss}", partial(mini_batches, name, beta_loss)) for name, beta_loss in kinds]
    about = f"Mini-batches, {SEEDS} seed; the batch solver has {BATCH} iterations."
    return [
        Table("out of core", ["out of core", "measured", "asked"], [Task("a file", out_of_core)], 45),
        Table("blocks", ["blocks", "measured", "asked"], [Task("blocks", a_block)], 30),
        Table("streams", HEADER, streams, 20, about),
    ]
