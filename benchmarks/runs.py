"""Tables whose rows are measured one by one, each in a process of its own, and kept until the page is written.

What one row leaves behind in the memory of a process makes others faster, up to twice for scikit-learn. So a server
process imports everything once, and a row is measured in a fork of it (in a new process where there is no fork). A row
that fails or takes too long says so in its table and does not stop the others.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from partwise.bench import hardware

from .data import Absent
from .pages import CODE, table
from .scale import sized

LIMIT = sized(240.0, 300.0)  # seconds for a row, after which it is stopped
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


class Task(NamedTuple):
    """A row: its name, and a function that returns its lines, or what the `write` of its table takes, as JSON (lines
    and more: a dict)."""

    name: str
    measure: Callable[[], Any]


class Outcome(NamedTuple):
    """What a row came to; `failure` says why there is no value."""

    name: str
    value: Any
    failure: str
    seconds: float
    date: str
    load: float
    code: str  # fingerprint of the library that was measured

    def lines(self, width: int) -> list[list]:
        """Of a table with so many columns; a row that failed says so."""
        found = self.value["lines"] if isinstance(self.value, dict) else self.value
        lines = [[self.name, self.failure]] if self.failure else found
        return [[*line, *[""] * (width - len(line))] for line in lines]


class Table(NamedTuple):
    """A table of a page, or a text that `write` makes of what its rows came to."""

    name: str
    header: list[str]
    tasks: list[Task]
    seconds: float  # that a row takes, about
    about: str = ""
    write: Callable[[list[Outcome]], str] | None = None

    def text(self, outcomes: list[Outcome]) -> str:
        body = self.write(outcomes) if self.write else rows(self.header, outcomes)
        return f"{self.about}\n\n{body}" if self.about else body


class Part(NamedTuple):
    """The tables of one generated block of a page."""

    name: str
    page: str
    package: str = "benchmarks"

    @property
    def module(self) -> str:
        return f"{self.package}.{self.name}"

    @property
    def tables(self) -> list[Table]:
        return importlib.import_module(self.module).tables()

    def text(self, kept: Kept) -> str:
        """The block: the machine and the day, and the tables."""
        tables = self.tables
        every = {one.name: [kept.outcomes[one.name, task.name] for task in one.tasks] for one in tables}
        about = measured([outcome for some in every.values() for outcome in some])
        return "\n\n".join([about, *(one.text(every[one.name]) for one in tables)])


def measured(outcomes: list[Outcome]) -> str:
    """On which machine, when, and beside what other work."""
    days = sorted({outcome.date for outcome in outcomes})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    load = sum(outcome.load for outcome in outcomes) / len(outcomes)
    return f"{hardware()}, {when}, mean load {load:.1f}; every row in a process of its own."


def rows(header: list[str], outcomes: list[Outcome]) -> str:
    """The lines of all outcomes as a table."""
    return table(header, [line for outcome in outcomes for line in outcome.lines(len(header))])


def values(outcomes: list[Outcome]) -> dict[str, Any]:
    """Of the rows that have one, by name."""
    return {outcome.name: outcome.value for outcome in outcomes if not outcome.failure}


def failures(outcomes: list[Outcome]) -> str:
    """A sentence for each row that has no value, for tables that do not show them row by row."""
    return "".join(f"\n\n{outcome.name}: {outcome.failure}." for outcome in outcomes if outcome.failure)


# -- a row, in its process -------------------------------------------------------------------------------


def attend(connection, part: Part, table_name: str, name: str) -> None:
    """In the process of a row: measure it, and send what it came to."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # so that what it starts can be stopped with it
    connection.send("ready")
    warnings.simplefilter("ignore")
    try:
        task = next(t for one in part.tables if one.name == table_name for t in one.tasks if t.name == name)
        sent = json.dumps(task.measure(), default=lambda number: number.tolist()), ""
    except Absent as error:
        sent = "null", f"skipped: {error}"
    except Exception as error:
        traceback.print_exc()
        sent = "null", f"failed: {type(error).__name__}: {error}"
    connection.send(sent)


def alone(part: Part, table_name: str, name: str) -> Outcome:
    """A row, measured in a process of its own, which is stopped after `LIMIT` seconds."""
    context = multiprocessing.get_context(METHOD)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=attend, args=(there, part, table_name, name))
    process.start()
    there.close()
    value, failure, start = "null", f"stopped after {LIMIT:.0f} s", time.perf_counter()
    try:
        here.recv()  # everything is imported
        start = time.perf_counter()
        if here.poll(LIMIT):
            value, failure = here.recv()
            process.join(5)
    except EOFError:
        process.join(5)
        failure = f"failed: the process ended with code {process.exitcode}"
    finally:
        end(process)
    spent, load = time.perf_counter() - start, os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    failure = failure.replace("|", "/").replace("\n", " ")[:200]
    return Outcome(name, json.loads(value), failure, spent, date.today().isoformat(), load, library())


def end(process) -> None:
    """A process, and what it has started."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
    else:
        process.kill()
    process.join()


def library() -> str:
    """A fingerprint of the code of the library."""
    digest = sha256()
    for path in sorted((CODE / "src" / "partwise").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# -- all rows --------------------------------------------------------------------------------------------


class Kept:
    """The outcomes of a part, in a file."""

    def __init__(self, folder: Path, part: Part):
        self.path, self.outcomes = folder / f"{part.name}.json", {}
        if self.path.exists():
            read = json.loads(self.path.read_text(encoding="utf-8"))
            self.outcomes = {(name, outcome[0]): Outcome(*outcome) for name, outcome in read}

    def add(self, table_name: str, outcome: Outcome) -> None:
        self.outcomes[table_name, outcome.name] = outcome
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps([(key[0], one) for key, one in self.outcomes.items()]), encoding="utf-8")
        beside.replace(self.path)

    def clear(self) -> None:
        self.outcomes = {}
        self.path.unlink(missing_ok=True)

    def lacks(self, table_name: str, name: str, code: str) -> bool:
        """Whether a row is still to be measured: with this code of the library, and without failure."""
        known = self.outcomes.get((table_name, name))
        return known is None or known.code != code or known.failure.startswith(("failed", "stopped"))


class Run:
    """All rows of some parts; those measured before a run was stopped are not measured again."""

    def __init__(self, parts: list[Part], folder: Path, names: list[str], fresh: bool):
        self.kept = {part.name: Kept(folder, part) for part in parts}
        rows = [(part, one, task.name) for part in parts for one in part.tables for task in one.tasks]
        rows = [row for row in rows if not names or any(name in row[2] for name in names)]
        code = library()
        complete = not any(self.kept[part.name].lacks(one.name, name, code) for part, one, name in rows)
        if fresh or complete:  # the run before was not stopped
            for kept in self.kept.values():
                kept.clear()
        self.due = [row for row in rows if self.kept[row[0].name].lacks(row[1].name, row[2], code)]
        self.n_known, self.n_due, self.start = len(rows) - len(self.due), len(self.due), time.perf_counter()
        if METHOD == "forkserver":
            multiprocessing.get_context(METHOD).set_forkserver_preload([part.module for part in parts])

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.start

    def measure(self, part: Part) -> Iterator[tuple[Table, Outcome]]:
        """The rows of a part that are due; a line tells how far the run is."""
        while self.due and self.due[0][0] == part:
            left = sum(one.seconds for _, one, _ in self.due)
            place = f"row {self.n_due - len(self.due) + 1} of {self.n_due}"
            _, one, name = self.due.pop(0)
            told = f"[{clock(self.spent)} of about {clock(self.spent + left)}, {place}]"
            print(f"{told} {part.name}, {one.name}: {name}", flush=True)
            outcome = alone(part, one.name, name)
            print(f"    {outcome.seconds:.0f} s (about {one.seconds:.0f}) {outcome.failure}", flush=True)
            self.kept[part.name].add(one.name, outcome)
            yield one, outcome


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
