"""How time and memory grow, for every loss and storage: an iteration with rows, columns, nonzeros and rank, and the
peak of memory beyond X."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

import partwise as pw
from partwise.bench import Contest, scikit_learn
from partwise.init import Random

from .data import Absent
from .runs import Table, Task
from .scale import sized

STEPS = sized(5, 2)  # iterations timed, after two that are not
DOUBLINGS = sized(3, 2)  # sizes in a series, each twice the one before


class Given(NamedTuple):
    """X as `factorize` takes it, and what else it is told."""

    X: Any
    settings: dict[str, Any]

    @property
    def n_bytes(self) -> int:
        return sum(map(array_bytes, (self.X, *self.settings.values())))


def array_bytes(X) -> int:
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return getattr(X, "nbytes", 0)


def full(m: int, n: int, nnz: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 1.1, size=(m, n))


def scattered(m: int, n: int, nnz: int) -> sparse.csr_array:
    """Uniform random numbers at random places."""
    X = sparse.random_array((m, n), density=nnz / m / n, format="csr", rng=0)
    X.data += 0.1
    return X


def holed(m: int, n: int, nnz: int) -> np.ndarray:
    X = full(m, n, nnz)
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.3] = np.nan
    return X


class Storage(NamedTuple):
    """How X comes, and what of its size can double."""

    make: Callable[[int, int, int], Given]
    doubled: tuple[str, ...]


FACTORS = ("rows", "columns", "rank")
STORAGES = {
    "dense": Storage(lambda *size: Given(full(*size), {}), FACTORS),
    "sparse": Storage(lambda *size: Given(scattered(*size), {}), (*FACTORS, "nonzeros")),
    "dense, 30% missing": Storage(lambda *size: Given(holed(*size), {}), FACTORS),
    "sparse, only stored entries observed": Storage(
        lambda *size: Given(scattered(*size), {"missing": "zeros"}), (*FACTORS, "nonzeros")
    ),
    "dense, weights": Storage(lambda *size: Given(full(*size), {"weights": full(*size)}), FACTORS),
}
LOSSES = {
    "least squares": "frobenius",
    "KL": "kl",
    "Itakura-Saito": "itakura-saito",
    "beta = 1.5": 1.5,
    "L1": "l1",
    "Huber": "huber",
}
RIVALS = ("least squares", "KL")  # where scikit-learn's iterations are timed too
EVERY_ENTRY = ("beta = 1.5", "Huber")  # count zeros one by one: their sparse data are as small as dense ones
TIMED = {"dense": (600, 600, 30_000, 10), "sparse": (10_000, 10_000, 500_000, 10)}  # rows, columns, nonzeros, rank
HELD = {"dense": (2000, 2000, 200_000, 10), "sparse": (20_000, 20_000, 2_000_000, 10)}
if sized(False, True):
    TIMED = HELD = {"dense": (60, 50, 300, 3), "sparse": (300, 200, 3000, 3)}
LITTLE = {"dense": (60, 50, 300), "sparse": (2000, 1000, 10_000)}
NAMES = ("rows", "columns", "nonzeros", "rank")


def tables() -> list[Table]:
    every = [(f"{loss}, {storage}", loss, storage) for loss, storage in product(LOSSES, STORAGES)]
    times = [Task(name, partial(time_lines, loss, storage)) for name, loss, storage in every]
    peaks = [Task(name, partial(memory_line, loss, storage)) for name, loss, storage in every]
    return [Table("time", TIME_HEADER, times, 5, TIME), Table("memory", MEMORY_HEADER, peaks, 3, MEMORY)]


def of_storage(sizes: dict[str, tuple], loss: str, storage: str) -> tuple:
    if storage == "sparse" and loss in EVERY_ENTRY:
        return sizes["dense"]
    return sizes["sparse" if storage.startswith("sparse") else "dense"]


# -- time --------------------------------------------------------------------------------------------------

TIME = (
    f"Milliseconds of an iteration at the default solver, from a random start, median of {STEPS}, while one size "
    "doubles and doubles again: dense data of 600 × 600, sparse data of 10000 × 10000 with 500000 nonzeros (beta = 1.5 "
    "and Huber, where every zero counts: 600 × 600 with 30000), rank 10. "
    "The exponent is the slope on logarithmic axes: 1 where twice the size takes twice the time. Asked: at most 1 in "
    "rows, columns and nonzeros, 2 in the rank."
)
TIME_HEADER = ["loss", "storage", "what doubles", "×1", "×2", "×4", "**exponent**", "scikit-learn's exponent"]


def time_lines(loss: str, storage: str) -> list[list]:
    """One line for each size that doubles."""
    make, doubled = STORAGES[storage]
    lines, base = [], dict(zip(NAMES, of_storage(TIMED, loss, storage), strict=True))
    for name in doubled:
        times, rivals = [], []
        for doubling in range(DOUBLINGS):
            *size, rank = (base | {name: base[name] * 2**doubling}).values()
            given = make(*size)
            try:
                times.append(an_iteration(given, rank, LOSSES[loss]))
            except ValueError as error:
                return [[loss, storage, f"refused: {error}"]]
            if loss in RIVALS and storage in ("dense", "sparse"):
                rivals.append(per_iteration(scikit_learn, Contest("", given.X, rank, loss=LOSSES[loss]), 3))
        cells = [f"{1e3 * t:.1f}" for t in times] + [""] * (3 - DOUBLINGS)
        lines.append([loss, storage, name, *cells, exponent(times), exponent(rivals) if rivals else ""])
    return lines


def exponent(times: list[float]) -> str:
    """The slope of log2(time) over doublings."""
    return f"{np.polyfit(np.arange(len(times)), np.log2(times), 1)[0]:.2f}"


def fitted(given: Given, rank: int, loss, n_iter: int, **settings) -> pw.Result:
    settings = {"init": "random", "random_state": 0, "tol": 0, **given.settings, **settings}
    return pw.factorize(given.X, rank, loss=loss, max_iter=n_iter, **settings)


def an_iteration(given: Given, rank: int, loss) -> float:
    """Seconds, the median."""
    marks: list[float] = []
    fitted(given, rank, loss, STEPS + 2, callbacks=[lambda *_: marks.append(time.perf_counter())])
    return float(np.median(np.diff(marks)[-STEPS:]))


def per_iteration(side, contest: Contest, steps: int = 8) -> float:
    """The median time of an iteration of a side of the race, after two that are not timed."""
    running, times = side(contest, *Random()(contest.problem, check_random_state(0))), []
    for _ in islice(running, 2):
        pass
    for _ in range(steps):
        start = time.perf_counter()
        next(running)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


# -- memory ------------------------------------------------------------------------------------------------

MEMORY = (
    "Peak memory beyond X (weights and the factors that are returned are counted as given), three iterations from a "
    "random start, rank 10: dense data of 2000 × 2000 numbers, sparse data of 20000 × 20000 with 2 million nonzeros "
    "(beta = 1.5 and Huber: 2000 × 2000 with 200000). What compiling takes is left out."
)
MEMORY_HEADER = [
    "loss",
    "storage",
    "X and weights, MB",
    "factors, MB",
    "peak beyond X, MB",
    "**as a multiple of X and factors**",
]


def memory_line(loss: str, storage: str) -> list[list]:
    make, _ = STORAGES[storage]
    *size, rank = of_storage(HELD, loss, storage)
    try:
        fitted(make(*of_storage(LITTLE, loss, storage)), rank, LOSSES[loss], 3)  # compiled, and read from disk
    except ValueError as error:
        return [[loss, storage, f"refused: {error}"]]
    given = make(*size)
    gc.collect()
    before = reset_peak()
    result = fitted(given, rank, LOSSES[loss], 3)
    beyond = peak() - before
    factors = result.W.nbytes + result.H.nbytes
    sizes = [f"{number / 1e6:.0f}" for number in (given.n_bytes, factors, beyond)]
    return [[loss, storage, *sizes, f"{beyond / (given.n_bytes + factors):.1f}"]]


def reset_peak() -> int:
    """Bytes in memory now; the peak is counted from here."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        raise Absent("peak memory is measured on Linux only") from error
    return status("VmRSS")


def peak() -> int:
    return status("VmHWM")


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])
