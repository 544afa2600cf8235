"""Run benchmarks: `python -m benchmarks [race | kl | l1 | growth | phases | ... | all] [--write]`."""

from __future__ import annotations

import argparse

from . import (
    greedy,
    growth,
    l1,
    large,
    missing,
    mixed_norm,
    pages,
    phases,
    process,
    race,
    rank,
    semf,
    table2,
    table3,
    tensors,
)

PAGES = {
    "race": "benchmarks/README.md",
    "kl": "benchmarks/README.md",
    "l1": "benchmarks/README.md",
    "process": "benchmarks/README.md",
    "growth": "benchmarks/README.md",
    "phases": "docs/speed.md",
    "outside": "docs/speed.md",
    "table2": "docs/table2.md",
    "table3": "docs/table3.md",
    "semf": "docs/semf.md",
    "semf_costs": "docs/semf.md",
    "mixed_norm": "docs/mixed_norm.md",
    "greedy": "docs/greedy.md",
    "tensors": "docs/tensors.md",
    "missing": "docs/missing.md",
    "rank": "docs/rank.md",
    "large": "docs/large.md",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=["all", *PAGES])
    parser.add_argument("names", nargs="*", help="race, kl: rows whose name contains one of these (default: all)")
    parser.add_argument("--starts", type=int, default=5, help="race, kl: random starts a row")
    parser.add_argument("--solver", default="auto", help="race, kl: the solver of partwise")
    parser.add_argument("--no-peers", action="store_true", help="race: scikit-learn's cd alone")
    parser.add_argument("--write", action="store_true", help="renew the pages")
    options = parser.parse_args()
    if options.write and options.names:
        parser.error("--write renews whole tables: leave out the names")
    blocks = {
        "race": lambda: race.run(options.names, options.starts, options.solver, not options.no_peers),
        "kl": lambda: race.run_kl(options.names, options.starts, options.solver),
        "l1": l1.run,
        "process": process.run,
        "growth": growth.run,
        "phases": phases.run,
        "outside": phases.outside,
        "table2": table2.run,
        "table3": table3.run,
        "semf": semf.run,
        "semf_costs": semf.run_costs,
        "mixed_norm": mixed_norm.run,
        "greedy": greedy.run,
        "tensors": tensors.run,
        "missing": missing.run,
        "rank": rank.run,
        "large": large.run,
    }
    for name in blocks if options.what == "all" else [options.what]:
        text = blocks[name]()
        print(text, flush=True)
        if options.write:
            pages.renew(PAGES[name], name, text)


if __name__ == "__main__":  # not in the processes of the race
    main()
