"""Run the benchmarks and renew the table: `python -m benchmarks [--starts 5] [NAME ...]`."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

from . import data
from .race import Curve, Row, one_start, ours
from .rows import ROWS

PAGE = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- generated: python -m benchmarks -->", "<!-- end -->"
HEADER = (
    "| data | size | rank | speed-up, exact | speed-up, 0.1% | starts that got there | final objective, "
    "ours / scikit-learn's | asked |\n|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="rows whose name contains one of these (default: all)")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--write", action="store_true", help="renew the table in benchmarks/README.md")
    options = parser.parse_args()
    lines = []
    for row in ROWS:
        if options.names and not any(name in row.name for name in options.names):
            continue
        try:
            lines.append(measure(row, options.starts, options.solver))
        except data.Absent as error:
            lines.append(f"| {row.name} | skipped: {error} |" + " |" * 6)
        print(lines[-1], flush=True)
    table = "\n".join([machine(), "", HEADER, *lines, "", *process_costs()])
    if options.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    else:
        print(table)


def measure(row: Row, n_starts: int, solver: str) -> str:
    """A line of the table: geometric means over the starts."""
    X = row.load()
    sides = {"partwise": lambda *args: ours(*args, solver=solver)}
    one_start(X[:50], row, 0, sides)  # compile
    starts = [one_start(X, row, seed, sides) for seed in range(n_starts)]
    exact = [speed_up(curves, row, 1.0) for curves in starts]
    near = [speed_up(curves, row, 1.001) for curves in starts]
    finals = [curves["partwise"].objectives[-1] / curves["scikit-learn"].objectives[-1] for curves in starts]
    size = " × ".join(map(str, X.shape)) + (f", {X.nnz / np.prod(X.shape):.2%} nonzero" if hasattr(X, "nnz") else "")
    reached = [sum(ratio is not None for ratio in ratios) for ratios in (exact, near)]
    cells = [
        row.name,
        size,
        row.rank,
        mean(exact),
        mean(near),
        f"{reached[0]} and {reached[1]} of {n_starts}",
        f"{np.exp(np.mean(np.log(finals))):.4f}",
        f"{row.asked:g} ({row.judged})",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def speed_up(curves: dict[str, Curve], row: Row, slack: float) -> float | None:
    rival, own = curves["scikit-learn"], curves["partwise"]
    target = slack * rival.objectives[-1]
    theirs, mine = rival.reaches(target), own.reaches(target)
    return None if mine is None else theirs / mine


def mean(ratios: list[float | None]) -> str:
    good = [ratio for ratio in ratios if ratio is not None]
    return f"{np.exp(np.mean(np.log(good))):.1f}" if good else "never"


def machine() -> str:
    load = os.getloadavg()[0]
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} at the end."
    )


def process_costs() -> list[str]:
    """What a process pays before it works: import time against scikit-learn's."""

    def seconds(statement: str) -> float:
        program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        runs = [
            subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            for _ in range(5)
        ]
        return min(float(run.stdout) for run in runs)

    ratio = seconds("import partwise") / seconds("import sklearn.decomposition")
    return [f"Importing partwise takes {ratio:.2f} times as long as importing `sklearn.decomposition` (asked: 1.5)."]


main()
