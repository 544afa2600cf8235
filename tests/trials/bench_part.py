"""A part of the benchmarks with rows that go wrong."""

import os
import time
from pathlib import Path

from benchmarks.data import Absent
from benchmarks.runs import Table, Task


def counted():
    """One more line in a file, so that a test sees how often it ran."""
    with Path(os.environ["PARTWISE_TRIAL"]).open("a") as file:
        file.write("x\n")
    return [["counted", 1.5]]


def absent():
    raise Absent("x.npz is not here")


def wrong():
    raise ValueError("no | such thing")


def killed():
    os.kill(os.getpid(), 9)


def tables():
    rows = {"counted": counted, "absent": absent, "wrong": wrong, "killed": killed, "slow": lambda: time.sleep(60)}
    return [Table("rows", ["name", "number"], [Task(name, measure) for name, measure in rows.items()], 1, "About.")]
