"""Rows filled up to whole vectors."""

from contextlib import contextmanager

import numpy as np

from .. import threads
from .base import padded_to
from .simd import LINE
from .team import mapped, over

KEPT = 1 << 24  # bytes of memory that is used again
_rooms: list[np.ndarray] = []  # memory that nobody uses now


@mapped
def _pad(B, scale, out, number, start, stop):
    for i in range(start, stop):
        for k in range(B.shape[1]):
            out[i, k] = B[i, k] * scale
        out[i, B.shape[1] :] = 0


def padded(B, scale, room=None):
    """`B * scale`, rows filled up with zeros to whole vectors, in memory of its own unless there is room for it."""
    width, size = padded_to(B.shape[1], B.itemsize), size_padded(B)
    out = (fresh(size) if room is None else room)[:size].view(B.dtype).reshape(B.shape[0], width)
    over(_pad, threads.split_evenly(*B.shape, threads.LIGHT_WORK), B, scale, out)
    return out


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
