"""The size of everything that is measured: as the pages show it, or so small that all of it runs in minutes."""

from __future__ import annotations

import os

QUICK = bool(os.environ.get("PARTWISE_BENCH_QUICK"))  # set by `python -m benchmarks --quick`


def sized(full, quick):
    """A setting of the pages, or of a quick trial of the code, whose figures mean nothing."""
    return quick if QUICK else full
