"""Tasks that are products of BLAS, of which SciPy says where its code is: NumPy's would ask for the GIL, and its newest
versions keep it in some products.

BLAS takes columns for rows: to it an array in C order is its transpose. It reads numbers and letters from memory, here
from the words of a record.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import get_cython_function_address

from .. import threads
from .calls import ALONE, ARGUMENTS, BOUNDARIES, FLAG, FUNCTION, INT, ROOM, TASK
from .serving import BYTES, Code, built
from .team import over

PRODUCT = "partwise_product"
# Words that a product has: its code; where X is, B and the result, and how many bytes further for each row that a task
# begins later, or for each task; how many rows and columns X has, and how many of these for each row of a task; how far
# rows of X are apart; rows of B are columns for BLAS; the letters of X and B; 1 and 0 in their type
CODE, X_AT, X_STEP, B_AT, B_STEP, OUT_AT, OUT_STEP, PART_STEP = range(ARGUMENTS, ARGUMENTS + 8)
HEIGHT, HEIGHT_STEP, DEPTH, DEPTH_STEP, APART, RANK, LETTER, PLAIN, ONE, ZERO = range(ARGUMENTS + 8, ARGUMENTS + 18)
ONES = {"d": 0x3FF0000000000000, "f": 0x3F800000}  # 1 as bits, by the letters of types of NumPy's
LETTERS = {"d": "d", "f": "s"}  # of BLAS


def ends_of(code: Code) -> tuple[ir.Value, ir.Value]:
    """Where a task starts and stops."""
    ends = code.builder.inttoptr(code.load(BOUNDARIES), INT.as_pointer())
    start, stop = (code.builder.load(code.builder.gep(ends, [code.builder.add(code.number, INT(i))])) for i in (0, 1))
    return start, stop


def times(code: Code, place: int, step: int, count: ir.Value) -> ir.Value:
    """A word, and another so many times."""
    return code.builder.add(code.load(place), code.builder.mul(code.load(step), count))


def call_blas(code: Code, arguments: list) -> None:
    """All arguments of BLAS are addresses."""
    builder = code.builder
    kind = ir.FunctionType(ir.VoidType(), [BYTES] * len(arguments))
    routine = builder.inttoptr(code.load(CODE), kind.as_pointer())
    builder.call(routine, [builder.bitcast(value, BYTES) for value in arguments])
    builder.ret(FLAG(0))


def emit_product(code: Code) -> None:
    """X B, both cut as the words say."""
    builder, (start, stop) = code.builder, ends_of(code)
    many = builder.sub(stop, start)
    height, depth = (
        cgutils.alloca_once_value(builder, times(code, *places, many))
        for places in ((HEIGHT, HEIGHT_STEP), (DEPTH, DEPTH_STEP))
    )
    X, B = (builder.inttoptr(times(code, *places, start), BYTES) for places in ((X_AT, X_STEP), (B_AT, B_STEP)))
    address = builder.add(times(code, OUT_AT, OUT_STEP, start), builder.mul(code.load(PART_STEP), code.number))
    out = builder.inttoptr(address, BYTES)
    letter, plain, rank, apart, one, zero = map(code.at, (LETTER, PLAIN, RANK, APART, ONE, ZERO))
    call_blas(code, [plain, letter, rank, height, depth, one, B, rank, X, apart, zero, out, rank])


@cache
def tasks() -> dict[str, int]:
    """The addresses of the code of tasks, by name."""
    emitters = {PRODUCT: emit_product}
    library = built([(name, emit, TASK) for name, emit in emitters.items()])
    return {name: library.get_pointer_to_function(name) for name in emitters}


@cache
def routine(kind: str, name: str) -> int:
    """The address of a routine of BLAS for a type of NumPy's."""
    return get_cython_function_address("scipy.linalg.cython_blas", LETTERS[kind] + name)


def enter(record: int, task: str, name: str, kind: str, words: dict[int, int]) -> None:
    """Put a product into a record, as compiled kernels do with themselves."""
    room = (ctypes.c_int64 * (ARGUMENTS + ROOM)).from_address(record)
    assert not room[ALONE], "products of BLAS are for several tasks"
    room[FUNCTION], room[CODE] = tasks()[task], routine(kind, name)
    room[PLAIN], room[ONE], room[ZERO] = ord("N"), ONES[kind], 0
    for place, value in words.items():
        room[place] = value


def over_blas(task: Callable, boundaries: Sequence[int], *arguments: np.ndarray) -> None:
    """A product in several tasks, each by BLAS on one thread: its own would wait for more work on the cores that other
    libraries need."""
    with threads.blas.on_one_thread():
        over(task, boundaries, *arguments)


def enter_rows(X: np.ndarray, B: np.ndarray, out: np.ndarray, number: int, start: int, record: int) -> None:
    """Some rows of `X B`."""
    steps = {X_STEP: X.strides[0], B_STEP: 0, OUT_STEP: out.strides[0], PART_STEP: 0}
    counts = {HEIGHT: 0, HEIGHT_STEP: 1, DEPTH: X.shape[1], DEPTH_STEP: 0}
    enter(record, PRODUCT, "gemm", B.dtype.char, of_factors(X, B, out) | steps | counts)


def enter_columns(X: np.ndarray, B: np.ndarray, parts: np.ndarray, number: int, start: int, record: int) -> None:
    """Some columns of X, times the rows of B that go with them: a part for each task."""
    steps = {X_STEP: X.strides[1], B_STEP: B.strides[0], OUT_STEP: 0, PART_STEP: parts.strides[0]}
    counts = {HEIGHT: X.shape[0], HEIGHT_STEP: 0, DEPTH: 0, DEPTH_STEP: 1}
    enter(record, PRODUCT, "gemm", B.dtype.char, of_factors(X, B, parts) | steps | counts)


def of_factors(X: np.ndarray, B: np.ndarray, out: np.ndarray) -> dict[int, int]:
    """Words of a product whatever the tasks are."""
    by_rows = X.strides[1] == X.itemsize
    apart, least, letter = (X.strides[0], X.shape[1], "N") if by_rows else (X.strides[1], X.shape[0], "T")
    # of a single row NumPy may say anything, and BLAS refuses what is too little
    of_rows = {APART: max(apart // X.itemsize, least), RANK: B.shape[1], LETTER: ord(letter)}
    return of_rows | {X_AT: X.ctypes.data, B_AT: B.ctypes.data, OUT_AT: out.ctypes.data}
