"""Rows filled up to whole vectors."""

from contextlib import contextmanager

import numpy as np

from .. import threads
from .base import padded_to
from .simd import LINE, multiplied
from .team import mapped, over

KEPT = 1 << 24  # bytes of memory that is used again
_rooms: list[np.ndarray] = []  # memory that nobody uses now


@mapped
def _pad(B, rank, scales, out, number, start, stop):
    width = scales.size
    safe = min(stop, (B.size - width) // rank + 1)  # whole vectors from later rows on would go beyond the array
    for i in range(start, safe):
        multiplied(B, i * rank, scales, width, out, i * width)
        for k in range(rank, width):  # what comes next may not be finite
            out[i * width + k] = 0
    for i in range(max(start, safe), stop):
        for k in range(rank):
            out[i * width + k] = B[i * rank + k] * scales[k]
        out[i * width + rank : (i + 1) * width] = 0


def padded(B, scale, room=None):
    """`B * scale`, rows filled up with zeros to whole vectors, in memory of its own unless there is room for it."""
    (dim, rank), size = B.shape, size_padded(B)
    scales = np.zeros(padded_to(rank, B.itemsize), B.dtype)
    scales[:rank] = scale
    out = (fresh(size) if room is None else room)[:size].view(B.dtype)
    over(_pad, threads.split_evenly(dim, rank, threads.LIGHT_WORK), B.ravel(), rank, scales, out)
    return out.reshape(dim, scales.size)


def size_padded(B):
    """In bytes."""
    return B.shape[0] * padded_to(B.shape[1], B.itemsize) * B.itemsize


def fresh(size):
    """So many bytes, from the beginning of a cache line; as `aligned`, but not zeroed."""
    space = np.empty(size + LINE, np.uint8)
    skip = (-space.ctypes.data) % LINE
    return space[skip : skip + size]


@contextmanager
def room_for(size):
    """A context with so many bytes, or more. Fresh memory takes the system as long as a kernel needs to fill it, so
    what was used last is used again, unless it is large."""
    try:
        room = _rooms.pop()
    except IndexError:
        room = fresh(size)
    room = room if room.size >= size else fresh(size)
    try:
        yield room
    finally:
        if room.size <= KEPT:
            _rooms.append(room)
