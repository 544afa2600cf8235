"""The code of threads that work together, emitted instruction by instruction: to compile it from Python would take a
fifth of a second. It is called by ctypes, which lets go of the GIL, and never needs it.

Words of the record are read and written in one order, which all threads agree on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from llvmlite import binding, ir
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..compiling import STOPWATCH
from .calls import ARGUMENTS, FAILED, FLAG, FUNCTION, INT, ROOM, TASK, word

# Words of a record, beside those of `calls.py`: what is written often lies apart, each word in cache lines of its own.
TASKS, HELPERS, TURNS, LOCK, THREADS = 8, 9, 10, 11, 12
LEFT, INSIDE, WAITING = 16, 32, 48
# of threads: whether each is asleep, the lock on which it sleeps, the next of its own tasks, and where these end
PLACES, PLACE = ARGUMENTS + ROOM, 16
NEXT, END_OF_OWN = 2, 3
FAN = 4  # helpers that each thread wakes

SERVE, STEP, END = "partwise_serve", "partwise_step", "partwise_end"
ACQUIRE, RELEASE = "PyThread_acquire_lock", "PyThread_release_lock"  # functions of Python's that need no GIL
BYTES = ir.IntType(8).as_pointer()
ROUTINE = ir.FunctionType(INT, [INT, INT])  # of a record and a number
CALLED = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
PAUSES = {"x86_64": ("llvm.x86.sse2.pause", []), "aarch64": ("llvm.aarch64.hint", [1])}  # and their arguments
PAUSES["arm64"] = PAUSES["aarch64"]


class Code:
    """One routine as it is written."""

    def __init__(self, module: ir.Module, name: str):
        function = ir.Function(module, ROUTINE, name)
        self.record, self.number = function.args
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))

    def at(self, place):
        return word(self.builder, self.record, place if isinstance(place, ir.Value) else INT(place))

    def load(self, place):
        return self.builder.load_atomic(self.at(place), "seq_cst", 8)

    def swap(self, place, value: int | ir.Value):
        """Put a value into a word; what was there."""
        value = value if isinstance(value, ir.Value) else INT(value)
        return self.builder.atomic_rmw("xchg", self.at(place), value, "seq_cst")

    def add(self, place, value: int):
        """Add to a word; what was there."""
        return self.builder.atomic_rmw("add", self.at(place), INT(value), "seq_cst")

    def compare(self, left, sign: str, right: int | ir.Value):
        return self.builder.icmp_signed(sign, left, right if isinstance(right, ir.Value) else INT(right))

    def least(self, left, right):
        return self.builder.select(self.compare(left, "<", right), left, right)

    def when(self, condition):
        """A context for code that runs where the condition holds."""
        return self.builder.if_then(condition)

    @contextmanager
    def repeated(self, condition: Callable[[], ir.Value]) -> Iterator[None]:
        """A context for code that runs again as long as the condition, emitted here, holds."""
        head, body, done = (self.builder.append_basic_block(name) for name in ("head", "body", "done"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.builder.cbranch(condition(), body, done)
        self.builder.position_at_end(body)
        yield
        self.builder.branch(head)
        self.builder.position_at_end(done)

    def counter(self, start):
        """A number that changes: its address."""
        place = cgutils.alloca_once(self.builder, INT)
        self.builder.store(start, place)
        return place

    def change(self, counter, by: int):
        self.builder.store(self.builder.add(self.builder.load(counter), INT(by)), counter)

    def call(self, name: str, result: ir.Type, arguments: list) -> None:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), arguments)

    def pause(self) -> None:
        """A moment, in which what else runs on this core gets more of it."""
        processor = cpu_target.target_context.codegen().magic_tuple()[0].partition("-")[0]
        if processor in PAUSES:
            name, numbers = PAUSES[processor]
            self.call(name, ir.VoidType(), [FLAG(number) for number in numbers])

    def acquire(self, lock) -> None:
        """Wait for a lock of Python's."""
        lock = self.builder.inttoptr(lock, BYTES)
        self.call(ACQUIRE, FLAG, [lock, FLAG(1)])

    def release(self, lock) -> None:
        """Let who waits for it go on; any thread may."""
        lock = self.builder.inttoptr(lock, BYTES)
        self.call(RELEASE, ir.VoidType(), [lock])


def watch(code: Code, idle: Callable[[], ir.Value]) -> None:
    """Wait a little while nothing happens."""
    turns = code.counter(code.load(TURNS))
    with code.repeated(lambda: code.builder.and_(code.compare(code.builder.load(turns), ">", 0), idle())):
        code.pause()
        code.change(turns, -1)


def wake(code: Code, number) -> None:
    """Wake the helpers that the thread of this number is to wake, as far as there are tasks for them: the caller has
    number 0."""
    builder = code.builder
    first = builder.mul(number, INT(FAN))
    last = code.least(code.load(HELPERS), builder.sub(code.load(TASKS), INT(1)))
    last = code.least(last, builder.add(first, INT(FAN)))
    other = code.counter(builder.add(first, INT(1)))
    with code.repeated(lambda: code.compare(builder.load(other), "<=", last)):
        place = place_of(code, builder.load(other))
        with code.when(code.compare(code.load(place), "!=", 0)), code.when(code.compare(code.swap(place, 0), "!=", 0)):
            code.release(code.load(builder.add(place, INT(1))))
        code.change(other, 1)


def place_of(code: Code, number):
    """The word that says whether a helper is asleep; the next one is its lock."""
    return code.builder.add(INT(PLACES), code.builder.mul(number, INT(PLACE)))


def work(code: Code, number):
    """Take a task and do it, as the thread of this number; returns how many were left before."""
    builder = code.builder
    left = code.add(LEFT, -1)
    with code.when(code.compare(left, ">", 0)):
        task = builder.inttoptr(code.load(FUNCTION), TASK.as_pointer())
        failed = builder.call(task, [code.record, claimed(code, number)])
        with code.when(builder.icmp_signed("!=", failed, FLAG(0))):
            code.swap(FAILED, 1)
            code.swap(LEFT, 0)
    return left


def claimed(code: Code, number):
    """The number of a task, for a thread that is entitled to one: of its own as long as there are some, since what they
    work on may still lie in the cache of its core, then of the threads after it. One round finds one, since none is
    added on the way."""
    builder = code.builder
    whose, task = code.counter(number), code.counter(INT(0))

    def is_over():
        place = place_of(code, builder.load(whose))
        taken = code.add(builder.add(place, INT(NEXT)), 1)
        builder.store(taken, task)
        return code.compare(taken, ">=", code.load(builder.add(place, INT(END_OF_OWN))))

    with code.repeated(is_over):
        code.change(whose, 1)
        with code.when(code.compare(builder.load(whose), ">=", code.load(THREADS))):
            builder.store(INT(0), whose)
    return builder.load(task)


def emit_serve(code: Code) -> None:
    """What the helper of a number does, for ever."""
    builder = code.builder
    place = place_of(code, code.number)
    with code.repeated(lambda: ir.Constant(ir.IntType(1), 1)):
        watch(code, lambda: code.compare(code.load(LEFT), "<=", 0))
        with builder.if_else(code.compare(code.load(LEFT), ">", 0)) as (busy, idle):
            with busy:
                code.add(INSIDE, 1)  # before a task is taken: who sees that there is none left sees this
                wake(code, code.number)
                with code.repeated(lambda: code.compare(work(code, code.number), ">", 0)):
                    pass
                leave(code)
            with idle:
                code.swap(place, 1)
                # unless there is a task by now, and nobody has begun to wake this thread
                with builder.if_else(code.compare(code.load(LEFT), "<=", 0)) as (still, no_longer):
                    with still:
                        code.acquire(code.load(builder.add(place, INT(1))))
                    with no_longer, code.when(code.compare(code.swap(place, 0), "==", 0)):
                        code.acquire(code.load(builder.add(place, INT(1))))
    builder.ret(INT(0))


def leave(code: Code) -> None:
    """The last helper that has nothing left to do wakes a caller who waits for that."""
    with (
        code.when(code.compare(code.add(INSIDE, -1), "==", 1)),
        code.when(code.compare(code.load(WAITING), "!=", 0)),
        code.when(code.compare(code.swap(WAITING, 0), "!=", 0)),
    ):
        code.release(code.load(LOCK))


def emit_step(code: Code) -> None:
    """One task of the caller's, where the number is not 0 after helpers were told that there are so many; whether there
    was one."""
    with code.when(code.compare(code.number, ">", 0)):
        code.swap(LEFT, code.number)
        wake(code, INT(0))
    left = work(code, INT(0))
    code.builder.ret(code.builder.zext(code.compare(left, ">", 0), INT))


def emit_end(code: Code) -> None:
    """No task is begun any more, and those that were begun are done."""
    code.swap(LEFT, 0)
    watch(code, lambda: code.compare(code.load(INSIDE), ">", 0))
    with code.repeated(lambda: code.compare(code.load(INSIDE), ">", 0)):
        code.swap(WAITING, 1)
        with code.builder.if_else(code.compare(code.load(INSIDE), ">", 0)) as (still, no_longer):
            with still:
                code.acquire(code.load(LOCK))
            with no_longer, code.when(code.compare(code.swap(WAITING, 0), "==", 0)):
                code.acquire(code.load(LOCK))
    code.builder.ret(INT(0))


class AsWritten(JITCodeLibrary):
    """Code that is short, and called once a task: not worth the time to make it faster."""

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        pass


@global_compiler_lock
def built(routines: Mapping[str, Callable[[Code], None]]) -> AsWritten:
    """Code of routines, given by their names and what emits them, ready to run."""
    with STOPWATCH.running():
        for name in (ACQUIRE, RELEASE):
            binding.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
        made = AsWritten(cpu_target.target_context.codegen(), "partwise")
        module = made.create_ir_module("partwise")
        for name, emit in routines.items():
            emit(Code(module, name))
        made.add_ir_module(module)
        made.finalize()
    return made


@cache
def routines() -> tuple[Callable, ...]:
    """`serve`, `step` and `end`, each a function of the address of a record and a number."""
    library = built({SERVE: emit_serve, STEP: emit_step, END: emit_end})
    return tuple(CALLED(library.get_pointer_to_function(name)) for name in (SERVE, STEP, END))
