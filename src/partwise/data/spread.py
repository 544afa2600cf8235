"""Blocks of rows that Dask has: on its threads, in this process, or on the workers of whatever client is active."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from copy import copy
from dataclasses import dataclass, is_dataclass
from threading import Event
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from scipy.sparse import issparse

from .. import kernels
from ..errors import warn
from ..kernels.threads import limited
from ..run import interrupts
from .places import ATTEMPTS, FAN_IN, BlockError, Place, added

kernels.MODULES[da.Array] = ".spread"
ALIGNMENT = 16  # bytes: of arrays that NumPy makes
POLL = 0.05  # seconds between two looks at Ctrl-C and the time limit


class Spread(Place):
    """The chunks of an array of Dask's."""

    array_type = da.Array
    kind = "an array of Dask's"

    def __init__(self, X: da.Array, others: Sequence[da.Array] = ()):
        self.X, *self.others = map(optimised, (X, *others))
        self.heights, self.width, self.dtype = X.chunks[0], X.shape[1], X.dtype

    def beside(self, others):
        for name, array in others.items():
            if array.chunks != self.X.chunks:
                pairs = zip(array.chunks[0], self.heights, strict=False)
                odd = next((number for number, (a, b) in enumerate(pairs) if a != b), 0)
                raise BlockError(
                    f"block {odd} of {name} is not as large as that of X: rechunk it, {name}.rechunk(X.chunks)"
                )
        return Spread(self.X, list(others.values()))

    @classmethod
    def of(cls, X: da.Array) -> Spread:
        """The blocks of an array, once its chunks are known to be blocks of rows."""
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix where it is an array of Dask's, got {X.ndim} modes")
        if any(np.isnan(size) for sizes in X.chunks for size in sizes):
            raise ValueError("X has chunks of unknown size: call X.compute_chunk_sizes() first")
        if empty := [number for number, height in enumerate(X.chunks[0]) if height == 0]:
            raise BlockError(f"block {empty[0]} of X has no rows: leave it out, with X.rechunk for one")
        if 0 in X.shape:
            raise BlockError(f"X has no columns: its shape is {X.shape}")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must hold real numbers, got an array of {X.dtype}")
        if X.numblocks[1] > 1:
            warn(
                f"X has {X.numblocks[1]} chunks along its columns, and is rechunked into blocks of rows: rechunk it "
                "yourself, X.rechunk({1: -1}), and persist it where it fits"
            )
            X = X.rechunk({1: -1})
        return cls(X)

    def spread(self, A):
        return A if isinstance(A, da.Array) else da.from_array(A, chunks=(self.heights, A.shape[1:]))

    def run(self, work, known, tall):
        tall = [self.spread(A) for A in tall]  # those out of a file are NumPy's
        tall = [A.rechunk((self.heights, A.chunks[1])) if A.chunks[0] != self.heights else A for A in tall]
        for attempt in range(1, ATTEMPTS + 1):
            graph = Graph(self, work, known, tall)  # with names of its own: those of a failure may linger
            try:
                pieces, (meta, sums) = computed(graph)
                break
            except BlockError:
                raise
            except Exception as error:
                if attempt == ATTEMPTS:
                    raise BlockError(f"a block of X could not be worked on by Dask: {error}") from error
                try_again(tall)
        arrays = tuple(self.array(graph.name(j), pieces[j], *about) for j, about in enumerate(meta))
        return arrays, sums

    def array(self, name: str, pieces: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype) -> da.Array:
        """A tall array of pieces that are there already."""
        keys = [(name, number, *(0 for _ in shape)) for number in range(len(pieces))]
        chunks = self.heights, *((size,) for size in shape)
        return da.Array(dict(zip(keys, pieces, strict=True)), name, chunks, dtype=dtype)

    def rows_of(self, function, rank, dtype):
        about = {"dtype": dtype, "chunks": (self.heights, (rank,)), "meta": np.empty((0, 0), dtype)}
        return self.X.map_blocks(OneThread(function), name=f"partwise-rows-{uuid4().hex}", **about)


def optimised(X: da.Array) -> da.Array:
    (fused,) = dask.optimize(X)
    return fused if dict(fused.__dask_graph__()) else X  # nothing is left of chunks that are on workers already


@dataclass(frozen=True, eq=False)
class OneThread:
    """A function of a block, with settings for one thread: Dask has the others."""

    function: Any

    def __call__(self, block):
        return self.function(block, n_threads=1)


class Graph:
    """The tasks of one pass: the work on each block, what it makes by row, and sums `FAN_IN` neighbours at a time."""

    def __init__(self, place: Spread, work, known, tall):
        self.makes = getattr(getattr(work, "work", None), "makes", 0)  # arrays by row
        self.token, n_blocks = uuid4().hex, len(place.heights)
        task, step = f"partwise-work-{self.token}", f"partwise-step-{self.token}"
        self.steps = [(step, number) for number in range(n_blocks)]
        self.tasks: dict[Any, Any] = {}
        for A in (place.X, *place.others, *tall):
            self.tasks.update(A.__dask_graph__())
        self.tasks[task] = work
        self.blocks = [(place.X.name, number, 0) for number in range(n_blocks)]
        for number, key in enumerate(self.steps):
            rows = [(A.name, number, *(0 for _ in A.shape[1:])) for A in tall]
            others = [(A.name, number, 0) for A in place.others]
            self.tasks[key] = (on_block, task, known[number], self.blocks[number], others, rows)
        self.meta = f"partwise-meta-{self.token}"
        self.tasks[self.meta] = (described, self.steps[0])
        self.sums = self.tree()

    def name(self, place: int) -> str:
        return f"partwise-rows{place}-{self.token}"

    def rows(self, n_arrays: int) -> list[list[tuple]]:
        """The keys of what is made by row, which become tasks."""
        keys = [[(self.name(j), number, 0) for number in range(len(self.steps))] for j in range(n_arrays)]
        for j, own in enumerate(keys):
            self.tasks |= {key: (picked, step, j) for key, step in zip(own, self.steps, strict=True)}
        return keys

    def tree(self) -> Any:
        """The key of the sums over all blocks."""
        level, keys, first = 0, self.steps, True
        while first or len(keys) > 1:
            groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
            name = f"partwise-sums{level}-{self.token}"
            made = [(name, number) for number in range(len(groups))]
            self.tasks |= {
                key: (sums_of_steps if first else added, list(group)) for key, group in zip(made, groups, strict=True)
            }
            keys, level, first = made, level + 1, False
        return keys[0]


def on_block(work, known, block, others, rows):
    """In one thread: Dask has the others. What came from another process is read-only, for which kernels would be
    compiled anew, and may lie at any byte, where sums are added up in another order."""
    work, rows = writable(work), [writable(A) for A in rows]
    block = (writable(block), *map(writable, others)) if others else writable(block)
    with limited(1), kernels.for_type(np.ndarray).alone():
        return work(known, block, *rows)


def writable(value):
    """With arrays that can be written to, copies where need be, in dataclasses and sparse matrices too."""
    if isinstance(value, np.ndarray):
        return value if is_plain(value) else unlocked(value)
    if issparse(value):
        return value if all(map(is_plain, (value.data, value.indices, value.indptr))) else value.copy()
    if is_dataclass(value) and not isinstance(value, type):
        own = {name: writable(item) for name, item in vars(value).items()}
        if any(own[name] is not item for name, item in vars(value).items()):
            value = copy(value)
            vars(value).update(own)
    return value


def unlocked(A: np.ndarray) -> np.ndarray:
    """The same memory under an array that may be written to, which nobody does; a copy where it begins at any byte."""
    if A.ctypes.data % ALIGNMENT:
        return A.copy(order="K")
    return np.asarray(Unlocked(A))


class Unlocked:
    """An array that offers its memory without saying that it is read-only."""

    def __init__(self, A: np.ndarray):
        self.kept = A  # as long as its memory is used
        self.__array_interface__ = {**A.__array_interface__, "data": (A.ctypes.data, False)}


def is_plain(A: np.ndarray) -> bool:
    """Whether an array is as NumPy makes them."""
    return A.flags.writeable and A.ctypes.data % ALIGNMENT == 0


def described(step):
    return [(A.shape[1:], A.dtype) for A in step[0]]


def picked(step, place):
    return step[0][place]


def sums_of_steps(steps):
    return added([sums for _, sums in steps])


# -- where graphs are computed ---------------------------------------------------------------------------


def active_client() -> Any:
    """The client of dask.distributed that is to be used, if one is."""
    if "distributed" not in sys.modules:
        return None
    import distributed  # noqa: PLC0415  # optional

    owner = getattr(dask.base.get_scheduler(), "__self__", None)
    return owner if isinstance(owner, distributed.Client) else None


def computed(graph: Graph) -> tuple[list[list[Any]], tuple]:
    """The pieces of each array, where they are, and what was described and added up."""
    client = active_client()
    if client is None:
        check_here(graph)
    return on_threads(graph) if client is None else on_workers(graph, client)


def try_again(tall: Sequence[da.Array]) -> None:
    """Let tasks be run once more that Dask gave up because workers died that ran them."""
    if client := active_client():
        pieces = [piece for A in tall for piece in dict(A.__dask_graph__()).values()]
        failed = [piece for piece in pieces if getattr(piece, "status", None) == "error"]
        if failed:
            client.retry(failed)


def check_here(graph: Graph) -> None:
    """Whether nothing is on a cluster that is gone."""
    lost = [number for number, key in enumerate(graph.blocks) if type(graph.tasks[key]).__name__ == "Future"]
    if lost:
        raise BlockError(
            f"block {lost[0]} of X is on a cluster of Dask whose client was closed: connect to it again, or make X anew"
        )


def on_threads(graph: Graph) -> tuple[list[list[Any]], tuple]:
    """By the schedulers that Dask has for one machine. They run in a thread of their own, so that Ctrl-C is seen."""
    get, stop = dask.base.get_scheduler() or dask.threaded.get, Event()
    with ThreadPoolExecutor(1, thread_name_prefix="partwise-dask") as pool:
        keys = [graph.steps, graph.meta, graph.sums]
        running = pool.submit(get, stoppable(graph, stop), keys)
        try:
            while True:
                try:
                    steps, meta, sums = running.result(timeout=POLL)
                    break
                except NotYet:
                    interrupts.check()
        except BaseException:
            stop.set()
            raise
    return [[rows[j] for rows, _ in steps] for j in range(len(meta))], (meta, sums)


def stoppable(graph: Graph, stop: Event) -> dict:
    """The tasks, of which none begins once the run is to stop."""

    def checked(function, *arguments):
        if stop.is_set():
            raise Stopped
        return function(*arguments)

    return graph.tasks | {key: (checked, *graph.tasks[key]) for key in graph.steps}


class Stopped(RuntimeError):
    """A run that was cancelled."""


def on_workers(graph: Graph, client: Any) -> tuple[list[list[Any]], tuple]:
    """By a cluster: what is made by row stays where it was made, and is made again if a worker is lost."""
    from distributed import wait  # noqa: PLC0415  # optional

    if client.status not in ("running", "connecting", "newly-created"):
        raise BlockError(f"the client of Dask is {client.status}: start one, and run again or resume")
    keys = graph.rows(graph.makes)
    wanted = [graph.meta, *(key for own in keys for key in own), graph.sums]
    futures = client.get(graph.tasks, wanted, sync=False, retries=ATTEMPTS)
    try:
        awaited(futures, wait)
        meta, total = client.gather([futures[0], futures[-1]])
    except BaseException:
        client.cancel(futures)
        raise
    n_blocks, pieces = len(graph.steps), futures[1:-1]
    return [pieces[j * n_blocks : (j + 1) * n_blocks] for j in range(len(meta))], (meta, total)


def awaited(futures: list[Any], wait: Any) -> None:
    """Until all are there, or Ctrl-C is pressed, or the time is up."""
    while True:
        try:
            wait(futures, timeout=POLL)
            return
        except (NotYet, TimeoutError):
            interrupts.check()
