import os

import pytest

from partwise.kernels import threads


@pytest.fixture
def n_threads(monkeypatch):
    """Sets how many threads kernels use."""

    def set_threads(count):
        monkeypatch.setattr(threads, "count", lambda: count)
        monkeypatch.setattr(threads, "CHUNK_WORK", 50)  # so that small problems are split too

    return set_threads


@pytest.fixture(autouse=True)
def no_browser_or_display():
    os.environ.setdefault("MPLBACKEND", "agg")
