"""The first call: whole processes, from the start of Python to its end, with no kernel compiled, and later ones. All
find byte code, as pip leaves it."""

from __future__ import annotations

import compileall
import math
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import partwise as pw

from .runs import Outcome, Table, Task, rows
from .scale import sized

PROGRAM = """
import numpy as np
from scipy import sparse
X = np.random.default_rng(0).uniform(size=(300, 200))
S = sparse.csr_array(X * (X > 0.8))
{fit}
"""
PEER = "scikit-learn's `NMF`"
DEFAULT, ANY = 3, 6  # seconds that are asked of the first fit: of the default path, and of any other
MORE = 0.3  # and of later processes beyond scikit-learn's
LATER = sized(2, 1)  # of which the least counts
HEADER = ["fit of", "the first, with nothing compiled", "asked at most", "later ones", "asked at most"]

QUICK = {
    "an array, least squares": "factorize(X, 5)",
    "the same by `pw.NMF`": "NMF(5).fit(X)",
}
OTHERS = {
    "an array in single precision, least squares": "factorize(X.astype(np.float32), 5)",
    "a sparse matrix, least squares": "factorize(S, 5)",
    "an array with missing entries, least squares": "factorize(np.where(X > 0.9, np.nan, X), 5, missing='nan')",
    "an array, KL": "factorize(X, 5, loss='kl')",
    "a sparse matrix, KL": "factorize(S, 5, loss='kl')",
    "an array, KL, 50 parts": "factorize(X, 50, loss='kl')",
    "an array, L1, 50 iterations": "factorize(X, 5, loss='l1', max_iter=50)",
    "a sparse matrix, L1": "factorize(S, 5, loss='l1')",
    "an array, parts of a given sparsity (`Hoyer`)": "factorize(X, 5, structure_H=pw.structures.Hoyer(0.6))",
    "an array, zeros and ones (`Binary`, `admm`)": "factorize(X, 5, structure_H=pw.structures.Binary())",
    "an array, Huber": "factorize(X, 5, loss=pw.losses.Huber(0.1))",
}
FITS = {PEER: "from sklearn.decomposition import NMF; NMF(5).fit(X)"}
FITS |= {name: f"import partwise as pw; pw.{fit}" for name, fit in (QUICK | OTHERS).items()}


def tables() -> list[Table]:
    return [Table("first", HEADER, [Task(name, partial(processes, name)) for name in FITS], 8, write=with_limits)]


def processes(name: str) -> list[list]:
    """Seconds of the first process and of later ones."""
    compileall.compile_dir(Path(pw.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as cache:
        first, *later = [seconds(PROGRAM.format(fit=FITS[name]), cache) for _ in range(1 + LATER)]
    asked = "" if name == PEER else DEFAULT if name in QUICK else ANY
    return [[name, f"{first:.2f}", asked, f"{min(later):.2f}"]]


def seconds(program: str, cache: str) -> float:
    began = time.perf_counter()
    command, environment = [sys.executable, "-W", "ignore", "-c", program], {**os.environ, "NUMBA_CACHE_DIR": cache}
    subprocess.run(command, env=environment, check=True)
    return time.perf_counter() - began


def with_limits(outcomes: list[Outcome]) -> str:
    """The table; what is asked of later processes follows from scikit-learn's."""
    peer = next(
        (float(outcome.value[0][3]) for outcome in outcomes if outcome.name == PEER and outcome.value), math.nan
    )
    limited = [
        outcome._replace(value=[[*line, f"{peer + MORE:.2f}"] for line in outcome.value])
        if outcome.value and outcome.name != PEER
        else outcome
        for outcome in outcomes
    ]
    return rows(HEADER, limited)
