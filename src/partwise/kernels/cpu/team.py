"""Threads for compiled kernels. They never need the GIL: Python hands it from one thread to the next in 0.1 ms, and a
task may take less.

A team has a record, words of memory that its threads share (`calls.py`). The caller puts a kernel and its arguments
there and says how many tasks are left; whoever takes one away from that number may do one. Each thread begins with its
own share of them, about the same rows of a factor in every kernel, and helps the others then. Helpers watch the number
for a moment after they have run out of tasks, since the next kernel often comes soon, and then go to sleep. They wake
each other: the caller some, and each of these some more.
"""

import ctypes
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...run import interrupts
from .. import threads
from .cache import compiler
from .calls import ALONE, BOUNDARIES, ENDS, FAILED, TaskCompiler
from .serving import END_OF_OWN, HELPERS, INSIDE, LOCK, NEXT, PLACE, PLACES, TASKS, THREADS, TURNS, routines
from .simd import WAY

WATCH = 5000  # turns of a loop that watches a word, 0.1 to 0.25 ms: Python takes less from one kernel to the next


def _new_lock() -> int:
    """The address of one of Python's locks, which is held."""
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    lock = python.PyThread_allocate_lock()
    python.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
    return lock


def _help(record: int, number: int) -> None:
    """What the thread of a helper runs."""
    threads.begin_thread()
    serve, _, _ = routines()
    serve(record, number)


@cache
def shares(n_tasks: int, count: int) -> np.ndarray:
    """Of each of so many threads: the first of its tasks, and the first of the next thread's. Where there are fewer
    tasks than threads they are those of the first threads, which are woken."""
    ends = np.minimum(np.arange(count + 1), n_tasks) * n_tasks // min(count, n_tasks)
    return np.stack([ends[:-1], ends[1:]], axis=1)


class Team:
    """A record, and the threads that serve it, if any: the caller is the first of its `count`."""

    def __init__(self, count: int):
        self.count = count
        kept = np.zeros(PLACES + PLACE * count, np.int64)
        self.record, self.words = kept.ctypes.data, kept.data
        self.words[BOUNDARIES], self.words[THREADS] = self.record + 8 * ENDS, count
        self.places = kept[PLACES:].reshape(count, PLACE)
        if count > 1:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # helpers are there for good, and so is the record
            self.begin()

    def begin(self) -> None:
        """Let helpers come."""
        routines()  # before several threads want them
        self.words[HELPERS], self.words[LOCK] = self.count - 1, _new_lock()
        for number in range(1, self.count):
            self.places[number, 1] = _new_lock()
            name = f"partwise-{number}"
            threading.Thread(target=_help, args=(self.record, number), name=name, daemon=True).start()

    def alone(self, kernel: Any, arguments: Sequence, start: int, stop: int) -> None:
        """The one task of a kernel, in one call."""
        words = self.words
        words[ENDS], words[ENDS + 1], words[ALONE] = start, stop, 1
        try:
            kernel(*arguments, 0, 0, self.record)  # `TaskLower`
        finally:
            words[ALONE] = 0
        self.judge()

    def together(self, kernel: Any, arguments: Sequence, boundaries: Sequence[int]) -> None:
        """All tasks of a kernel. Between two of the caller's is where Ctrl-C and the time limit are looked at."""
        words, record, (_, step, end) = self.words, self.record, routines()
        n_tasks = len(boundaries) - 1
        words[TASKS], words[FAILED] = n_tasks, 0
        self.places[:, NEXT : END_OF_OWN + 1] = shares(n_tasks, self.count)
        # to watch is to keep a core from others: there has to be one for each
        words[TURNS] = WATCH if len(_busy) == 1 and self.count <= threads.cores() else 0
        ends = np.array(boundaries, np.int64)
        words[BOUNDARIES] = ends.ctypes.data
        try:
            kernel(*arguments, 0, 0, self.record)  # `TaskLower`
            more = step(record, n_tasks)
            while more:
                interrupts.check()
                more = step(record, 0)
        finally:  # helpers write to arrays of the caller
            end(record, 0)
            words[BOUNDARIES] = record + 8 * ENDS
        self.judge()

    def judge(self) -> None:
        """Raise what a task has failed with, which is the only way for it to."""
        if self.words[FAILED]:
            raise MemoryError("there is not enough memory for what a kernel needs")


_idle: defaultdict[int, list[Team]] = defaultdict(list)  # by their number of threads
_busy: set[Team] = set()  # those with several tasks


def _after_fork() -> None:
    """The threads of teams do not survive a fork, in the middle of a map either: the caller does all that is left."""
    for team in _busy:
        team.words[HELPERS] = team.words[INSIDE] = 0
    _idle.clear()
    _busy.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


mapped = compiler(WAY, pipeline_class=TaskCompiler)  # for kernels that `over` calls


def per_task(boundaries: Sequence[int], *shape: int) -> np.ndarray:
    """Room for what each task finds, a row of this shape or a number, in double precision."""
    return np.empty((len(boundaries) - 1, *shape))


def over(kernel: Any, boundaries: Sequence[int], *arguments) -> None:
    """`kernel(*arguments, number, start, stop)` over consecutive boundaries, in parallel; a kernel that adds up writes
    to the row of its task's number. The arguments are arrays, numbers and tuples of these."""
    if interrupts.are_held():  # as in every run
        _over(kernel, boundaries, arguments)
        return
    with interrupts.held():
        _over(kernel, boundaries, arguments)


def _over(kernel: Any, boundaries: Sequence[int], arguments: Sequence) -> None:
    interrupts.check()
    if len(boundaries) == 2:
        run(kernel, *boundaries, *arguments)
    elif len(boundaries) > 2:
        team = _take(threads.count())
        _busy.add(team)
        try:
            team.together(kernel, arguments, boundaries)
        finally:
            _busy.discard(team)
            _idle[team.count].append(team)


def run(kernel: Any, start: int, stop: int, *arguments) -> None:
    """A kernel on one chunk of rows, in this thread, as a part of a task."""
    team = _take(1)
    try:
        team.alone(kernel, arguments, start, stop)
    finally:
        _idle[1].append(team)


def _take(count: int) -> Team:
    """A team of so many threads that nobody else has: callers may be in several threads."""
    try:
        return _idle[count].pop()
    except IndexError:
        return Team(count)
