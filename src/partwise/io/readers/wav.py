"""Sound, .wav, as a magnitude spectrogram: a row for each frame in time, a column for each frequency."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import scipy

from ...data.names import Mode
from .base import Reader, Request, Table, UnreadableError, check_size

SECONDS = 0.046  # of sound in a window: 2048 samples at 44.1 kHz, 1024 at 22 kHz
SHORTEST, LONGEST = 64, 1 << 14  # samples in a window


def read(path: Path, request: Request) -> Table:
    rate, samples = scipy.io.wavfile.read(path)
    samples = np.atleast_1d(samples)
    if rate < 1 or samples.shape[0] < SHORTEST:
        raise UnreadableError(f"it has {samples.shape[0]} samples at {rate} Hz: too few for a spectrogram")
    middle = 128 if samples.dtype == np.uint8 else 0
    largest = 1.0 if samples.dtype.kind == "f" else float(np.iinfo(samples.dtype).max)
    sound = (samples.astype(np.float64).reshape(len(samples), -1).mean(axis=1) - middle) / largest
    length = min(max(2 ** math.floor(math.log2(rate * SECONDS) + 0.5), SHORTEST), LONGEST, len(sound))
    check_size(len(sound) // max(length // 4, 1) * (length // 2 + 1) * 16, path.stat().st_size)
    hertz, seconds, Z = scipy.signal.stft(sound, rate, nperseg=length, noverlap=length - max(length // 4, 1))
    X = np.abs(Z).T
    return Table(
        np.ascontiguousarray(X),
        [f"{second:.3f} s" for second in seconds],
        [f"{frequency:g} Hz" for frequency in hertz],
        (Mode("time", tuple(seconds.tolist())), Mode("frequency", tuple(hertz.tolist()))),
        found=f"{len(sound) / rate:.3g} s of sound at {rate} Hz, as magnitudes in windows of {length} samples "
        "(Hann, three quarters shared)",
    )


READER = Reader((".wav",), read)
