"""Measure what the pages show: `python -m benchmarks [PART] [ROW ...] [--write] [--fresh] [--quick]`."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import traceback
from pathlib import Path

PAGES = {
    "defaults": "benchmarks/README.md",
    "race": "benchmarks/README.md",
    "kl": "benchmarks/README.md",
    "optima": "benchmarks/README.md",
    "l1": "benchmarks/README.md",
    "process": "benchmarks/README.md",
    "phases": "docs/speed.md",
    "outside": "docs/speed.md",
    "cores": "docs/speed.md",
    "first": "docs/speed.md",
    "growth": "docs/growth.md",
    "table2": "docs/table2.md",
    "table3": "docs/table3.md",
    "semf_costs": "docs/semf.md",
    "semf": "docs/semf.md",
    "mixed_norm": "docs/mixed_norm.md",
    "greedy": "docs/greedy.md",
    "tensors": "docs/tensors.md",
    "missing": "docs/missing.md",
    "rank": "docs/rank.md",
    "large": "docs/large.md",
}
HERE = Path(__file__).parent


def trial_folder() -> Path:
    """A copy of the pages and pictures, for a quick trial."""
    folder = Path(tempfile.mkdtemp(prefix="partwise-bench-"))
    shutil.copytree(HERE.parent / "docs", folder / "docs", ignore=shutil.ignore_patterns("api", "gallery", "*.py"))
    (folder / "benchmarks").mkdir()
    shutil.copy(HERE / "README.md", folder / "benchmarks")
    return folder


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=["all", *PAGES])
    parser.add_argument("names", nargs="*", help="rows whose name contains one of these (default: all)")
    parser.add_argument("--write", action="store_true", help="renew the pages and pictures here, not in a new folder")
    parser.add_argument("--fresh", action="store_true", help="measure again what a run that was stopped has measured")
    parser.add_argument("--quick", action="store_true", help="try all code on little data")
    options = parser.parse_args(arguments)
    if options.write and options.names:
        parser.error("--write renews whole tables: leave out the names")
    os.environ.setdefault("MPLBACKEND", "Agg")
    if options.quick:
        os.environ["PARTWISE_BENCH_QUICK"] = "1"
    if options.write and not options.quick:
        return measured(options, HERE / "results")
    if not options.names:
        os.environ["PARTWISE_BENCH_PAGES"] = str(trial_folder())
        print(f"pages and pictures of this trial: {os.environ['PARTWISE_BENCH_PAGES']}")
    with tempfile.TemporaryDirectory() as folder:
        return measured(options, Path(folder))


def measured(options: argparse.Namespace, folder: Path) -> int:
    """Measure, print and write; 1 where something failed, which stops nothing else."""
    from . import pages, runs  # noqa: PLC0415  # the sizes of a quick trial are read at import

    chosen = [runs.Part(name, PAGES[name]) for name in ([options.what] if options.what != "all" else PAGES)]
    run, failed = runs.Run(chosen, folder, options.names, options.fresh), []
    if run.n_known:
        print(f"{run.n_known} rows are known from a run that was stopped; --fresh measures them again")
    for part in chosen:
        for one, outcome in run.measure(part):
            if outcome.failure.startswith(("failed", "stopped")):
                failed.append(f"{part.name}, {one.name}, {outcome.name}: {outcome.failure}")
            if options.names:
                print(runs.rows(one.header, [outcome]) if one.header else outcome.value, flush=True)
        if options.names:
            continue
        try:
            text = part.text(run.kept[part.name])
            print(text, flush=True)
            pages.renew(part.page, part.name, text)
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{part.name}: {type(error).__name__}: {error}")
    print("\n".join([f"{run.n_due} rows in {runs.clock(run.spent)}", *failed]))
    return 1 if failed else 0


if __name__ == "__main__":  # not in the processes of rows
    raise SystemExit(main())
