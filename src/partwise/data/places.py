"""Where blocks of rows are, and are worked on: in this process one after the other, or wherever Dask has them
(`data/spread.py`)."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any

import numpy as np

from ..run import interrupts

FAN_IN = 8  # sums that are added at a time
ATTEMPTS = 3  # to read a block

# of what is known of a block, the block and its rows of tall arrays: what it makes by row, and sums
Work = Callable[..., tuple[tuple, tuple]]


class BlockError(ValueError):
    """What is wrong with one block, in a sentence that names it."""


class Place(ABC):
    """Blocks of rows of one matrix."""

    heights: tuple[int, ...]  # of each block
    width: int
    dtype: np.dtype  # of what is stored

    array_type: type = np.ndarray  # of the tall arrays that go with it
    kind: str  # what such matrices are, in words

    @abstractmethod
    def run(self, work: Work, known: Sequence[Any], tall: Sequence[Any]) -> tuple[tuple, tuple]:
        """`work(known, block, *rows)` on every block while it is in memory: what is known of it, and its rows of the
        tall arrays. What it
        returns by row is put together; sums are added up in an order that follows from the number of blocks alone, so
        that they are the same bits however many work on them, and whoever is first."""

    @abstractmethod
    def beside(self, others: dict[str, Any]) -> Place:
        """Blocks of this matrix in tuples with those of others of its kind and shape, by name."""

    def rows_of(self, function: Callable[[Any], np.ndarray], rank: int, dtype: np.dtype) -> Any:
        """`function(block)`, (height, rank), of every block: at once here, when it is asked for where that is the way
        of the blocks."""
        return self.run(Alone(function), [None] * len(self.heights), ())[0][0]

    def spread(self, A: np.ndarray) -> Any:
        """A tall array of NumPy's as one that goes with these blocks."""
        return np.ascontiguousarray(A)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of each block, and the number of rows."""
        return (0, *accumulate(self.heights))

    def named(self, number: int) -> str:
        """A block as messages call it."""
        first, last = self.starts[number], self.starts[number + 1] - 1
        return f"block {number} of X (rows {first} to {last})"


@dataclass(frozen=True, eq=False)
class Alone:
    """A function of a block as work on it."""

    function: Callable[[Any], np.ndarray]

    def __call__(self, known: None, block: Any) -> tuple[tuple, tuple]:
        return (self.function(block),), ()


class Source(ABC):
    """A matrix that is read some rows at a time."""

    shape: tuple[int, int]
    dtype: np.dtype
    heights: tuple[int, ...]  # of the blocks that it is best read in

    ndim = 2

    @abstractmethod
    def read(self, start: int, stop: int, room: Any = None) -> Any:
        """Rows as a NumPy array or a SciPy CSR matrix; in `room`, where there is one."""

    def room(self) -> Any:
        """Memory for a block, to be used again and again; None where the source makes its own."""
        return None


class Together(Source):
    """Several matrices of one shape, whose blocks come together, in tuples."""

    def __init__(self, sources: Sequence[Source]):
        self.sources, first = tuple(sources), sources[0]
        self.shape, self.dtype, self.heights = first.shape, first.dtype, first.heights

    def read(self, start, stop, room=None):
        rooms = room or (None,) * len(self.sources)
        return tuple(source.read(start, stop, own) for source, own in zip(self.sources, rooms, strict=True))

    def room(self):
        first, *others = self.sources  # the first says how high blocks are, so that the others have no room for them
        return first.room(), *(None for _ in others)


class InProcess(Place):
    """Blocks of a `Source`: while one is worked on, by all threads, the next is read."""

    kind = "opened with partwise.open"

    def __init__(self, source: Source, heights: Sequence[int]):
        self.source, self.heights = source, tuple(heights)
        self.width, self.dtype = source.shape[1], source.dtype

    def beside(self, others):
        return InProcess(Together([self.source, *others.values()]), self.heights)

    def run(self, work, known, tall):
        kept, sums = Kept(self.starts), Sums()
        rooms = [self.source.room(), self.source.room()]  # of the block at work, and of the next
        with ThreadPoolExecutor(1, thread_name_prefix="partwise-read") as reader:
            ahead = reader.submit(self.read, 0, rooms[0])
            for number in range(len(self.heights)):
                block = ahead.result()
                if number + 1 < len(self.heights):
                    ahead = reader.submit(self.read, number + 1, rooms[(number + 1) % 2])
                interrupts.check()
                rows = slice(self.starts[number], self.starts[number + 1])
                by_row, own = work(known[number], block, *(A[rows] for A in tall))
                kept.put(number, by_row)
                sums.add(own)
        return kept.arrays, sums.total()

    def read(self, number: int, room: Any) -> Any:
        """A block; a disk or a network may fail once."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self.source.read(self.starts[number], self.starts[number + 1], room)
            except Exception as error:
                if attempt == ATTEMPTS:
                    raise BlockError(f"{self.named(number)} could not be read: {error}") from error
        raise AssertionError


class Kept:
    """Arrays by row, put together from those of the blocks without a second copy."""

    def __init__(self, starts: Sequence[int]):
        self.starts = starts
        self.arrays: tuple[np.ndarray, ...] = ()

    def put(self, number: int, by_row: tuple[np.ndarray, ...]) -> None:
        if not self.arrays:
            own = {id(A): np.empty((self.starts[-1], *A.shape[1:]), A.dtype) for A in by_row}
            self.arrays = tuple(own[id(A)] for A in by_row)
        for whole, A in zip(self.arrays, by_row, strict=True):
            whole[self.starts[number] : self.starts[number + 1]] = A


class Sums:
    """Sums of the blocks, added `FAN_IN` neighbours at a time, then `FAN_IN` of these, and so on, as they come in."""

    def __init__(self):
        self.levels: list[list] = [[0, None]]  # how many were added at each, and what they come to

    def add(self, sums: tuple, level: int = 0) -> None:
        if level == len(self.levels):
            self.levels.append([0, None])
        count, total = self.levels[level]
        self.levels[level] = [count + 1, sums if count == 0 else added([total, sums])]
        if count + 1 == FAN_IN:
            self.close(level)

    def close(self, level: int) -> None:
        """Hand on what there is at a level."""
        (count, total), self.levels[level] = self.levels[level], [0, None]
        if count:
            self.add(total, level + 1)

    def total(self) -> tuple:
        for level in range(len(self.levels)):
            if sum(count > 0 for count, _ in self.levels) > 1 or self.levels[level][0] > 1:
                self.close(level)
        (found,) = (total for count, total in self.levels if count)
        return found


def added(several: Sequence[tuple]) -> tuple:
    """Tuples of numbers, arrays or tuples, added one by one, in order."""
    return tuple(reduce(operator.add, column) for column in zip(*several, strict=True))
