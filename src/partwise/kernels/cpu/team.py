"""Threads for compiled kernels. They never need the GIL: Python hands it from one thread to the next in 0.1 ms, and a
task may take less.

A team has a record, words of memory that its threads share (`calls.py`). The caller puts a kernel and its arguments
there and says how many tasks are left; whoever takes one away from that number has the task. Helpers watch the number
for a moment after they have run out of tasks, since the next kernel often comes soon, and then go to sleep. They wake
each other: the caller some, and each of these some more.
"""

import ctypes
import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...run import interrupts
from .. import threads
from .cache import compiler
from .calls import ALONE, BOUNDARIES, TaskCompiler
from .serving import FAILED, HELPERS, LOCK, PLACE, PLACES, TASKS, TURNS, routines
from .simd import WAY

WATCH = 2000  # turns of a loop that watches a word, 30 to 100 microseconds
NO_MEMORY = "there is not enough memory for what a kernel needs"


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


def enter(kernel: Any, arguments: Sequence, record: int) -> None:
    """Put the arguments of a kernel into a record (`TaskLower`)."""
    n_others = kernel.py_func.__code__.co_argcount - len(arguments) - 1
    kernel(*arguments, *[0] * n_others, record)


class Team:
    """A record, and the threads that serve it."""

    def __init__(self, count: int):
        self.count = count
        self.words = np.zeros(PLACES + PLACE * count, np.int64)
        self.record = self.words.ctypes.data
        self.words[HELPERS], self.words[LOCK] = count - 1, _new_lock()
        for number in range(1, count):
            self.words[PLACES + PLACE * number + 1] = _new_lock()
        if count > 1:
            self.begin()

    def begin(self) -> None:
        """Let helpers come. They are there for good, and so is the record."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.words))
        routines()  # before several threads want them
        for number in range(1, self.count):
            name = f"partwise-{number}"
            threading.Thread(target=_help, args=(self.record, number), name=name, daemon=True).start()

    def alone(self, kernel: Any, arguments: Sequence, ends: np.ndarray) -> None:
        """The one task of a kernel."""
        self.words[BOUNDARIES], self.words[ALONE] = ends.ctypes.data, 1
        enter(kernel, arguments, self.record)
        if self.words[ALONE]:
            raise MemoryError(NO_MEMORY)

    def together(self, kernel: Any, arguments: Sequence, ends: np.ndarray) -> None:
        """All tasks of a kernel. Between two of the caller's is where Ctrl-C and the time limit are looked at."""
        words, record, tasks = self.words, self.record, ends.size - 1
        words[BOUNDARIES], words[ALONE], words[TASKS], words[FAILED] = ends.ctypes.data, 0, tasks, 0
        # to watch is to keep a core from others: there has to be one for each
        words[TURNS] = WATCH if len(_busy) == 1 and self.count <= threads.cores() else 0
        enter(kernel, arguments, record)
        _, step, end = routines()
        try:
            more = step(record, tasks)
            while more:
                interrupts.check()
                more = step(record, 0)
        finally:  # helpers write to arrays of the caller
            failed = end(record, 0)
        if failed:
            raise MemoryError(NO_MEMORY)


_idle: defaultdict[int, list[Team]] = defaultdict(list)  # by their number of threads
_busy: set[Team] = set()  # those with several tasks


def _after_fork() -> None:
    """Threads do not survive a fork."""
    _idle.clear()
    _busy.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def _team(count: int) -> Iterator[Team]:
    """A team that nobody else has: several threads may work at the same time."""
    idle = _idle[count]
    try:
        team = idle.pop()
    except IndexError:
        team = Team(count)
    try:
        yield team
    finally:
        idle.append(team)


mapped = compiler(WAY, pipeline_class=TaskCompiler)  # compiles functions for `over`


def per_task(boundaries: Sequence[int], *shape: int) -> np.ndarray:
    """Room for what each task finds, a row of this shape or a number, in double precision."""
    return np.empty((len(boundaries) - 1, *shape))


def over(kernel: Any, boundaries: Sequence[int], *arguments) -> None:
    """`kernel(*arguments, start, stop)` over consecutive boundaries, in parallel, with `number` before these for a
    kernel that writes what it finds to a row of its task's. The arguments are arrays, numbers and tuples of these."""
    if interrupts.are_held():  # as in every run
        _over(kernel, boundaries, arguments)
        return
    with interrupts.held():
        _over(kernel, boundaries, arguments)


def _over(kernel: Any, boundaries: Sequence[int], arguments: Sequence) -> None:
    interrupts.check()
    ends = np.array(boundaries, np.int64)
    if ends.size == 2:
        with _team(1) as team:
            team.alone(kernel, arguments, ends)
    elif ends.size > 2:
        with _team(threads.count()) as team:
            _busy.add(team)
            try:
                team.together(kernel, arguments, ends)
            finally:
                _busy.discard(team)
