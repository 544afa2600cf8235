"""How the cost of an iteration grows with the rows, columns, nonzeros and rank of a problem."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from partwise.bench import Contest, partwise, scikit_learn
from partwise.init import Random

from .pages import table

STEPS = 8  # iterations timed, after two that are not


def dense(m=1000, n=1000, rank=20):
    return Contest("dense", np.random.default_rng(0).uniform(size=(m, n)), rank)


def scattered(m=20000, n=20000, nnz=1_000_000, rank=20):
    return Contest("sparse", sparse.random_array((m, n), density=nnz / m / n, format="csr", rng=0), rank)


SERIES = [
    ("dense 1000 × 1000, rank 20: rows", dense, "m", [1000, 2000, 4000, 8000]),
    ("dense 1000 × 1000, rank 20: columns", dense, "n", [1000, 2000, 4000, 8000]),
    ("dense 1000 × 1000: rank", dense, "rank", [10, 20, 40, 80]),
    ("sparse 20000 × 20000, 1e6 nonzeros, rank 20: rows", scattered, "m", [20000, 40000, 80000, 160000]),
    ("sparse 20000 × 20000, 1e6 nonzeros, rank 20: columns", scattered, "n", [20000, 40000, 80000, 160000]),
    ("sparse 20000 × 20000, rank 20: nonzeros", scattered, "nnz", [1_000_000, 2_000_000, 4_000_000, 8_000_000]),
    ("sparse 20000 × 20000, 1e6 nonzeros: rank", scattered, "rank", [10, 20, 40, 80]),
]


def per_iteration(side, contest: Contest) -> float:
    """The median time of an iteration."""
    steps, times = side(contest, *Random()(contest.problem, check_random_state(0))), []
    for _ in islice(steps, 2):
        pass
    for _ in range(STEPS):
        start = time.perf_counter()
        next(steps)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def run() -> str:
    lines = []
    for name, make, argument, values in SERIES:
        contests = [make(**{argument: value}) for value in values]
        own, rival = ([per_iteration(side, c) for c in contests] for side in (partwise, scikit_learn))
        cells = [f"{1e3 * o:.1f} / {1e3 * r:.1f}" for o, r in zip(own, rival, strict=True)]
        growth = [f"{times[-1] / times[0]:.1f}" for times in (own, rival)]
        lines.append([name, " → ".join(map(str, values)), *cells, " / ".join(growth)])
        print(lines[-1], flush=True)
    header = ["what grows", "values", "×1", "×2", "×4", "×8", "cost grows by"]
    return table(header, lines)
