"""What is paid besides the work: import, compilation, reading the compiled code back, and the loop around the steps."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr
from functools import partial

import numpy as np

import partwise as pw
from partwise import solvers

from .runs import Table, Task
from .scale import sized

LOOPS = sized(10_000, 200)

FITS = """
import time, numpy as np, partwise as pw
X = np.random.default_rng(0).uniform(size=(60, 50)).astype("{dtype}")
{make}
def fit():
    start = time.perf_counter()
    pw.NMF(4, init="random", random_state=0, max_iter=5, tol=0).fit(X)
    return time.perf_counter() - start
first = fit()
print(first - min(fit() for _ in range(3)))
"""
SPARSE = "from scipy import sparse; X = sparse.csr_array(X)"


class Idle(solvers.GCD):
    """Steps that take no time: what is left is the loop."""

    def step(self, problem, state):
        return solvers.Step(state.factors, 1.0, 1.0)


def loop_cost(watched: bool = False) -> float:
    """Seconds an iteration that are not in the step: what twice as many cost more."""

    def run(n_iter: int) -> float:
        with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
            checkpoint = (f"{folder}/run.partwise", 1.0) if watched else None
            start = time.perf_counter()
            pw.factorize(
                np.ones((50, 40)), 4, solver=Idle(), max_iter=n_iter, tol=0, progress=watched, checkpoint=checkpoint
            )
            return time.perf_counter() - start

    run(100)
    return (run(2 * LOOPS) - run(LOOPS)) / LOOPS


def seconds(program: str, **environment: str) -> float:
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return float(done.stdout)


def importing() -> list[list]:
    """The least of some imports of each, in turn."""
    program = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    statements = "import partwise", "import sklearn.decomposition"
    times = [[seconds(program.format(statement)) for statement in statements] for _ in range(sized(5, 1))]
    own, theirs = np.min(times, axis=0)
    return [["import, against `import sklearn.decomposition`", f"{own / theirs:.2f} times", "1.5 times"]]


def first_fits(name: str, dtype: str, make: str) -> list[list]:
    """With nothing compiled, and in a new process."""
    program = FITS.format(dtype=dtype, make=make)
    with tempfile.TemporaryDirectory() as cache:
        ever = seconds(program, NUMBA_CACHE_DIR=cache)
        again = min(seconds(program, NUMBA_CACHE_DIR=cache) for _ in range(sized(3, 1)))
    return [
        [f"first fit ever, {name} {dtype}, over later ones", f"{ever:.1f} s more", "15 s"],
        [f"first fit in a new process, {name} {dtype}", f"{again:.2f} s more", "1 s"],
    ]


def loops() -> list[list]:
    ways = {"": False, ", with a bar and checkpoints": True}
    return [
        [f"the loop around a step of 1 ms{name}", f"{loop_cost(watched) / 1e-3:.1%}", "2%"]
        for name, watched in ways.items()
    ]


def tables() -> list[Table]:
    kinds = [("dense", "float64", ""), ("dense", "float32", ""), ("sparse", "float64", SPARSE)]
    tasks = [Task("import", importing)]
    tasks += [Task(f"first fit, {name} {dtype}", partial(first_fits, name, dtype, make)) for name, dtype, make in kinds]
    return [Table("costs", ["cost", "measured", "asked at most"], [*tasks, Task("the loop", loops)], 15)]
