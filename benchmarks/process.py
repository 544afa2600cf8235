"""What is paid besides the work: import, and the loop around the steps. `first` has what it takes to compile."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr

import numpy as np

import partwise as pw
from partwise import solvers

from .runs import Table, Task
from .scale import sized

LOOPS = sized(10_000, 200)


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


def seconds(program: str) -> float:
    """That a program prints."""
    command = [sys.executable, "-W", "ignore", "-c", program]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def importing() -> list[list]:
    """The least of some imports of each, in turn."""
    program = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    statements = "import partwise", "import sklearn.decomposition"
    times = [[seconds(program.format(statement)) for statement in statements] for _ in range(sized(5, 1))]
    own, theirs = np.min(times, axis=0)
    return [["import, against `import sklearn.decomposition`", f"{own / theirs:.2f} times", "1.5 times"]]


def loops() -> list[list]:
    ways = {"": False, ", with a bar and checkpoints": True}
    return [
        [f"the loop around a step of 1 ms{name}", f"{loop_cost(watched) / 1e-3:.1%}", "2%"]
        for name, watched in ways.items()
    ]


def tables() -> list[Table]:
    tasks = [Task("import", importing), Task("the loop", loops)]
    return [Table("costs", ["cost", "measured", "asked at most"], tasks, 15)]
