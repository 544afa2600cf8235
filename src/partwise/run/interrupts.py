"""Ctrl-C and time limits: a run stops between two pieces of work, never inside one.

An exception that a signal handler raises while compiled code runs comes out of it as a SystemError, and in the middle
of a clean-up it leaves that half done. So handlers are `held` back while partwise works, and `check`, which the loops
and `kernels.threads.map_chunks` call, lets them speak. What they raise, and `TimeIsUp`, ends a run with the best so
far.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGALRM")  # what people end a run with, or a timer of theirs
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
PATIENCE = 3  # presses of Ctrl-C in one call, from which on shields no longer hold


class TimeIsUp(BaseException):
    """The time limit has passed."""


class _Signals:
    """The handlers that are held back; they belong to the main thread."""

    def __init__(self):
        self.depth = self.presses = self.at_once = self.finishing = 0
        self.handlers: dict[int, Callable] = {}  # the user's, as last seen
        self.pending: dict[int, Any] = {}  # signal -> frame

    def hold(self) -> None:
        self.depth += 1  # first: from here on `note` only notes
        if self.depth > 1:
            return
        try:
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):  # not the defaults of the system, which do not come back
                    if handler != self.note:  # which somebody may have put back after the last call
                        self.handlers[number] = handler
                    signal.signal(number, self.note)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self.depth > 1:
            self.depth -= 1
            return
        self.presses = self.at_once = self.finishing = 0
        try:
            self.restore()
        finally:  # the user's handlers may speak as soon as they are back
            self.depth = 0
        try:
            self.deliver()
        finally:
            self.pending.clear()

    def restore(self) -> None:
        for number, handler in reversed(self.handlers.items()):
            if signal.getsignal(number) == self.note:  # not one that the user's code has set in the meantime
                signal.signal(number, handler)

    def note(self, number: int, frame) -> None:
        self.pending[number] = frame
        self.presses += number == signal.SIGINT
        if self.depth == 0 or (self.at_once and (not self.finishing or self.insistent)):
            self.deliver()

    @property
    def insistent(self) -> bool:
        """Whether Ctrl-C was pressed so often that it counts whatever is lost."""
        return self.presses >= PATIENCE

    def deliver(self) -> None:
        while self.pending:
            number, frame = self.pending.popitem()
            self.handlers[number](number, frame)

    def forget(self) -> None:
        """In a process that was forked while handlers were held back."""
        self.restore()
        self.__init__()  # type: ignore[misc]


_signals = _Signals()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_signals.forget)


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def are_held() -> bool:
    """Whether signals wait already, for `check` or for the end of what surrounds this."""
    return _signals.depth > 0 and not _signals.at_once


class held:  # named as the context it is
    """A context in which signals wait for `check`, or for its end."""

    def __enter__(self):
        self.active = _in_main_thread()
        if self.active:
            _signals.hold()
            self.at_once, _signals.at_once = _signals.at_once, 0  # the user's function called us

    def __exit__(self, *_):
        if self.active:
            _signals.at_once = self.at_once
            _signals.release()


@contextmanager
def _counted(name: str) -> Iterator[None]:
    """A context that counts in a field of `_signals`, which the end of a call sets back to 0."""
    if not _in_main_thread():
        yield
        return
    setattr(_signals, name, getattr(_signals, name) + 1)
    try:
        yield
    finally:
        setattr(_signals, name, max(getattr(_signals, name) - 1, 0))


def at_once():
    """A context for the user's own functions, which may never come back: signals are delivered as they come."""
    return _counted("at_once")


def finishing():
    """A context in which a result is put together: functions of the user's are not interrupted here either."""
    return _counted("finishing")


@dataclass
class _Work:
    over: Callable[[], bool]  # whether the time is up
    shielded: bool
    stop: BaseException | None = None  # what `check` raised, and will again


_work: ContextVar[_Work | None] = ContextVar("partwise_work", default=None)


@contextmanager
def stoppable(over: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """A context for work that `check` may stop: at a signal, or once `over()`."""
    outer = _work.get()
    with held():
        token = _work.set(_Work(over, outer is not None and outer.shielded))
        try:
            yield
        finally:
            _work.reset(token)


def check() -> None:
    """Stop here if that was asked for; called where it is safe to stop."""
    work = _work.get()
    if work is None:
        return
    if work.shielded:
        if _signals.insistent and _in_main_thread():
            _signals.deliver()
        return
    if work.stop is None:
        try:
            if _signals.pending and _in_main_thread():
                _signals.deliver()
            if work.over():
                raise TimeIsUp
        except BaseException as stop:
            work.stop = stop
    if work.stop is not None:
        raise work.stop


@contextmanager
def _shield(up: bool) -> Iterator[None]:
    work = _work.get()
    if work is None:
        yield
        return
    before, work.shielded = work.shielded, up
    try:
        yield
    finally:
        work.shielded = before


def shielded():
    """A context in which work is not stopped, but where `exposed`: what is asked for waits."""
    return _shield(True)


def exposed():
    """A context in which work may be stopped, though what surrounds it is shielded."""
    return _shield(False)


@contextmanager
def yielding() -> Iterator[None]:
    """An exposed context that is left early, without an exception, where work is to stop: what there is by then counts.
    The next `check` stops again."""
    try:
        with exposed():
            yield
    except BaseException as error:
        work = _work.get()
        if work is None or error is not work.stop:
            raise


def again() -> None:
    """Let Ctrl-C, which ended a part of the work, speak once more, to what follows it."""
    if _in_main_thread() and signal.SIGINT in _signals.handlers:
        _signals.pending[signal.SIGINT] = None


def came() -> bool:
    """Whether Ctrl-C was pressed and not acted upon yet; then it has been now."""
    try:
        if _in_main_thread():
            _signals.deliver()
    except KeyboardInterrupt:
        return True
    return False
