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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ...run import interrupts
from .. import threads
from .base import compiled, helper
from .cache import compiler
from .calls import ALONE, ARGUMENTS, BOUNDARIES, ROOM, acquire, add, enter, load, pause, release, run, swap
from .simd import WAY

# Words of a record, beside those of `calls.py`: what is written often lies apart, each word in cache lines of its own.
TASKS, FAILED, HELPERS, TURNS, LOCK = 3, 4, 5, 6, 7
LEFT, INSIDE, WAITING = 16, 32, 48
PLACES, PLACE = ARGUMENTS + ROOM, 16  # of helpers: whether each is asleep, and the lock on which it sleeps
FAN = 4  # helpers that each thread wakes
WATCH = 2000  # turns of a loop that watches a word, 30 to 100 microseconds
NO_MEMORY = "there is not enough memory for what a kernel needs"


@helper
def _wake(record, number):
    """Wake helpers that this thread is to wake, if there are tasks for them: the caller has number 0."""
    last = min(load(record, HELPERS), load(record, TASKS) - 1)
    for other in range(FAN * number + 1, min(FAN * (number + 1), last) + 1):
        place = PLACES + PLACE * other
        if load(record, place) and swap(record, place, 0):
            release(load(record, place + 1))


@helper
def _work(record):
    """Take a task and do it; whether there was one."""
    left = add(record, LEFT, -1)
    if left <= 0:
        return False
    if run(record, load(record, TASKS) - left):
        swap(record, FAILED, 1)
        swap(record, LEFT, 0)
    return True


@helper
def _leave(record):
    """The last helper that has no task any more wakes a caller who waits for that."""
    if add(record, INSIDE, -1) == 1 and load(record, WAITING) and swap(record, WAITING, 0):
        release(load(record, LOCK))


@compiled
def _serve(record, number):
    """What a helper does, for ever."""
    place = PLACES + PLACE * number
    while number > 0:
        turns = load(record, TURNS)
        while turns > 0 and load(record, LEFT) <= 0:
            pause()
            turns -= 1
        if load(record, LEFT) > 0:
            add(record, INSIDE, 1)  # before a task is taken: the caller sees one or the other
            _wake(record, number)
            while _work(record):
                pass
            _leave(record)
        else:
            swap(record, place, 1)
            if load(record, LEFT) <= 0 or not swap(record, place, 0):
                acquire(load(record, place + 1))


@compiled
def _step(record, begin):
    """One task of the caller's, after it has let helpers `begin` with so many; whether there was one."""
    if begin > 0:
        swap(record, LEFT, begin)
        _wake(record, 0)
    return _work(record)


@compiled
def _end(record):
    """Nobody begins another task, and all that were begun are done; whether one failed."""
    swap(record, LEFT, 0)
    turns = load(record, TURNS)
    while turns > 0 and load(record, INSIDE) > 0:
        pause()
        turns -= 1
    while load(record, INSIDE) > 0:
        swap(record, WAITING, 1)
        if load(record, INSIDE) > 0 or not swap(record, WAITING, 0):
            acquire(load(record, LOCK))
    return load(record, FAILED) != 0


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
    _serve(record, number)


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
        _serve(self.record, 0)  # gets it compiled, before several threads want it
        for number in range(1, self.count):
            name = f"partwise-{number}"
            threading.Thread(target=_help, args=(self.record, number), name=name, daemon=True).start()

    def alone(self, kernel: Callable, arguments: Sequence, ends: np.ndarray) -> None:
        """The one task of a kernel."""
        self.words[BOUNDARIES], self.words[ALONE] = ends.ctypes.data, 1
        kernel(self.record, *arguments)
        if self.words[ALONE]:
            raise MemoryError(NO_MEMORY)

    def together(self, kernel: Callable, arguments: Sequence, ends: np.ndarray) -> None:
        """All tasks of a kernel. Between two of the caller's is where Ctrl-C and the time limit are looked at."""
        words, record, tasks = self.words, self.record, ends.size - 1
        words[BOUNDARIES], words[ALONE], words[TASKS], words[FAILED] = ends.ctypes.data, 0, tasks, 0
        # to watch is to keep a core from others: there has to be one for each
        words[TURNS] = WATCH if len(_busy) == 1 and self.count <= threads.cores() else 0
        kernel(record, *arguments)
        try:
            more = _step(record, tasks)
            while more:
                interrupts.check()
                more = _step(record, 0)
        finally:  # helpers write to arrays of the caller
            failed = _end(record)
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


def mapped(function: Callable) -> Callable:
    """A decorator that compiles a function for `over`: its last parameters are `start` and `stop`, or `number`, `start`
    and `stop`."""
    kernel = compiler(WAY, inner=True, kept=False, _nrt=True)(function)

    def enters(record, *arguments):
        enter(kernel, record, arguments)

    enters.__module__, enters.__name__ = function.__module__, function.__name__
    enters.__qualname__ = f"{function.__qualname__}.enters"
    return compiled(enters)


def over(kernel: Callable, boundaries: Sequence[int], *arguments) -> None:
    """`kernel(*arguments, start, stop)` over consecutive boundaries, in parallel, with `number` before these for a
    kernel that writes what it finds to a row of its task's. The arguments are arrays, numbers and tuples of these."""
    if interrupts.are_held():  # as in every run
        _over(kernel, boundaries, arguments)
        return
    with interrupts.held():
        _over(kernel, boundaries, arguments)


def _over(kernel: Callable, boundaries: Sequence[int], arguments: Sequence) -> None:
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
