"""What all tests share: one compile cache for all workers, and Ctrl-C as in a terminal."""

import re
import signal
import tempfile
import time
import warnings
from importlib import import_module
from itertools import groupby, product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import partwise as pw

from .covering import covering

LONGEST = 300  # seconds that a worker waits for the others
# fits that compile most of what tests need, for each of two workers: no kernel that takes long is in both
FITS = [
    [{"loss": "kl", "solver": "newton_kl"}, {"loss": "kl", "solver": "newton"}],
    [
        {"solver": "hals"},
        {"solver": "gcd"},
        {"solver": "admm"},
        {"structure_H": pw.structures.GroupSparsity(sparsity=0.4)},
        {"symmetric": True},
        {"loss": "l1", "solver": "weighted_median"},  # last: part of it is part of the others' work
    ],
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """`make test` leaves out the cases that their tests call slow, and those of which others show the same."""
    cases = [item for item in items if hasattr(item, "callspec")]
    for item in cases:
        if any(re.search(mark.args[0], item.callspec.id) for mark in item.iter_markers("slow_cases")):
            item.add_marker(pytest.mark.slow)
    quick = [item for item in cases if not item.get_closest_marker("slow")]
    marked = [item for item in quick if item.get_closest_marker("covering")]
    for _, group in groupby(marked, key=lambda item: item.nodeid.partition("[")[0]):
        leave_what_is_covered(list(group))


def leave_what_is_covered(items):
    """Cases of one test in which nothing meets that does not meet in others become slow."""
    shown = items[0].get_closest_marker("covering").kwargs["shown"]
    cases = {item: shown(item.callspec.id, **item.callspec.params) for item in items}
    for item in cases.keys() - covering(cases):
        item.add_marker(pytest.mark.slow)


def compile_kernels(fits):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 20)) * (rng.uniform(size=(20, 20)) < 0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for words, store in product(fits, (np.asarray, sparse.csr_array)):
            pw.factorize(store(X + X.T), 3, max_iter=2, tol=0, random_state=0, **words)


def pytest_sessionstart(session):
    """Each of several workers compiles a part, and waits for the rest: none compiles what another does."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    own, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    folder = Path(tempfile.gettempdir(), f"partwise-tests-{worker['testrunuid']}")
    for fits in FITS[own::count]:
        compile_kernels(fits)
    folder.mkdir(exist_ok=True)
    (folder / str(own)).touch()
    begun = time.monotonic()
    while len(list(folder.iterdir())) < count and time.monotonic() - begun < LONGEST:
        time.sleep(0.1)


@pytest.fixture
def plain_pictures(monkeypatch):
    """Nothing is drawn, which takes longer than most fits."""
    for page in ("found", "holders", "quality", "selection"):
        monkeypatch.setattr(import_module(f"partwise.report.{page}"), "svg", lambda draw, about: "<svg></svg>")


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_as_in_a_terminal():
    """Workers, and processes in the background, are started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
