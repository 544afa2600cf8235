"""Sizes that all kernels share, and the processor that Numba compiles for."""

from numba.core.registry import cpu_target

from ....losses.beta import FLOOR

# what Numba is told, which is not always the processor of this machine: NUMBA_CPU_NAME, NUMBA_CPU_FEATURES
TRIPLE, _, FEATURES = cpu_target.target_context.codegen().magic_tuple()
HAS = frozenset(FEATURES.split(","))

LINE = 64  # bytes of a cache line
VECTOR = 64 if "+avx512f" in HAS else 32  # bytes
# in a row of `panel`, whose two sums fill most registers where there are 16; with 100 parts more of them would not stay
# in the first-level cache, and take up to twice as long
VECTORS = 6

BLOCK = 4  # vectors that `combine` sums at once
TILE = 4 if VECTOR == 64 else 3  # rows and columns of `tile`: their products fill most registers
HIGH, WIDE = (8, 3) if VECTOR == 64 else (4, 3)  # rows, and vectors in each, of `outer`: the same
HEIGHTS = (16, 12, 8, 6) if VECTOR == 64 else (12, 6, 4)  # rows of tiles of 1, 2, ... vectors: the same
TINY = {8: 2.0**-200, 4: 2.0**-100}  # what a model is held above where X is 0, by bytes: its powers are numbers
HUGE = {8: 2.0**800, 4: 2.0**80}  # what second derivatives are held below, so that sums of them are numbers

__all__ = ["BLOCK", "FLOOR", "HEIGHTS", "HIGH", "HUGE", "LINE", "TILE", "TINY", "VECTOR", "VECTORS", "WIDE"]
