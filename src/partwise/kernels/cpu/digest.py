"""A hash of large arrays, made as fast as memory is read."""

import numpy as np

from .. import threads
from .base import unrolled

LANES = 8  # sums side by side, which fill a vector register
CHUNK = 1 << 17  # words of 8 bytes of a task
ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: bits spread over the word
HALF = np.uint64(32)


@unrolled
def _digest(words, out):
    """Word after word into its lane: `h = (h ^ word) ODD`, its halves exchanged by a shift. Each step is one to one, in
    the word and in h, so that two arrays which differ in one word never end alike."""
    for k in range(LANES):
        out[k] = ODD
    for p in range(0, words.size - LANES + 1, LANES):
        for k in range(LANES):
            h = (out[k] ^ words[p + k]) * ODD
            out[k] = h ^ (h >> HALF)
    for k in range(words.size % LANES):
        out[k] = (out[k] ^ words[words.size - 1 - k]) * ODD


def digest(every):
    """A few bytes that stand for many."""
    whole = every.size // 8 * 8
    words = np.require(every[:whole], requirements="A").view(np.uint64)
    chunks = [*range(0, words.size, CHUNK), words.size]
    out = np.empty((len(chunks), LANES), np.uint64)
    threads.map_chunks(lambda i, j: _digest(words[i:j], out[i // CHUNK]), chunks)
    return out[: len(chunks) - 1].tobytes() + every[whole:].tobytes()
