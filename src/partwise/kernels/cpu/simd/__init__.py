"""Sums over vectors. There are two ways to compile them: `llvm` emits code for vector registers, `plain` leaves it to
Numba. The first needs an x86 processor with multiply-add, and parts inside of Numba and llvmlite that may change: it is
taken with the versions of Numba that partwise allows, and with others where it gives the right sums.
PARTWISE_SIMD=plain or =llvm takes one or the other in any case."""

import os
from importlib import import_module
from types import ModuleType

import numba
import numpy as np

from ....errors import warn
from ..cache import compiler
from .sizes import BLOCK, FLOOR, HAS, HEIGHTS, HIGH, HUGE, LINE, TILE, TINY, TRIPLE, VECTOR, VECTORS, WIDE

CHOICES = ("llvm", "plain")
ALLOWED = (0, 61), (0, 68)  # the first and the last version of Numba in `pyproject.toml`


def chosen() -> str:
    """Which way to take."""
    wanted = os.environ.get("PARTWISE_SIMD")
    if wanted:
        if wanted not in CHOICES:
            raise ValueError(f"the environment variable PARTWISE_SIMD is {wanted!r}: it may be 'llvm' or 'plain'")
        return wanted
    if not (TRIPLE.startswith("x86_64") and "+fma" in HAS):
        return "plain"
    if ALLOWED[0] <= numba.version_info.short <= ALLOWED[1]:  # to try it would take a quarter of a second
        return "llvm"
    try:
        check(import_module(".llvm", __name__))
    except Exception as error:
        warn(
            f"partwise uses plain loops, which are slower, since its vector code does not work with this version of "
            f"Numba ({type(error).__name__}: {error})",
            RuntimeWarning,
        )
        return "plain"
    return "llvm"


def check(code: ModuleType) -> None:
    """Raise an error unless code compiles and gives the right sums: each kind of loop, load, store and result once."""
    gather, dots, moments, bits_of = code.gather, code.dots, code.moments, code.bits_of

    @compiler("llvm")
    def sums(x, order, out):
        gather(2, x, order, 0, order.size, x, 0, 1, out.size - 1, out)
        dots(1, x, x, 0, 0, x.size, out, 0)
        return moments(x, x, x, 0, x.size), bits_of(1.0)

    lanes = VECTOR // 8
    x, order, out = np.arange(4.0 * lanes), np.arange(2 * lanes), np.zeros(2 * lanes)
    found, bits = sums(x, order, out)
    expected = [sum(x[p] * x[p + k] for p in order) for k in range(2 * lanes - 1)]
    if list(out) != [np.sum(x**2), *expected[1:], 0] or found != (np.sum(x**2), np.sum(x**3)) or bits != 1023 << 52:
        raise ArithmeticError("wrong sums")


WAY = chosen()
_code = import_module(f".{WAY}", __name__)
panel, gather, scatter, moments, dots = _code.panel, _code.gather, _code.scatter, _code.moments, _code.dots
combine, renew, pull, tile, outer = _code.combine, _code.renew, _code.pull, _code.tile, _code.outer
bits_of, number_of, multiplied = _code.bits_of, _code.number_of, _code.multiplied
# without vector code BLAS is faster
row_tile, column_tile = (_code.row_tile, _code.column_tile) if WAY == "llvm" else (None, None)

__all__ = [
    "BLOCK",
    "FLOOR",
    "HEIGHTS",
    "HIGH",
    "HUGE",
    "LINE",
    "TILE",
    "TINY",
    "VECTOR",
    "VECTORS",
    "WAY",
    "WIDE",
    "bits_of",
    "column_tile",
    "combine",
    "dots",
    "gather",
    "moments",
    "multiplied",
    "number_of",
    "outer",
    "panel",
    "pull",
    "renew",
    "row_tile",
    "scatter",
    "tile",
]
