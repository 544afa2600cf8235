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


SINGLE = re.compile("float32|single_precision")
SAMPLE = re.compile(r"\[(nonnegative|0.3)-hals\]|drop_in|test_same_bits|gather")


# processes of their own, and searches among tied entries, of which the others run
LONG = re.compile(
    r"test_memory|test_bench|in_a_terminal|start_at_once|killed_at_some|more_iterations_than|loky"
    r"|(Dictionary|gcd).*check_|check_estimators_dtypes|preserve_dtypes"
    r"|large_data_get_an_estimate|grid_search_in_two|own_projection_has_the_last_word"
    r"|a_smooth_part_is_smoother|recovered_from_few_noisy|groups_of_samples|swimmer_is_taken_apart"
    r"|plain_loops_are_vector_code(?!.*gather)|exact_dictionary|structureless_noise|small_losses_beside|never_rises$"
    r"|test_converges.*\[order|promises\[order 4(?!: (frobenius|kl|l1)-nonnegative-)"
    r"|promises\[order 3: (?!(frobenius|kl|l1|beta)-nonnegative-|frobenius-(box|fixed|simplex|pattern).*palm\])"
    r"|test_converges.*(plain|shuffled|-cd|-mu|mu_extrapolated|thorough)\]"  # of solvers that run in another variant
    r"|promises.*(?<!-nonnegative)-(hals, shuffled|cd|gcd, plain|newton, plain|newton_kl, plain)\]"
    r"|planted_factors_are_found_in_19.*(10|sparse)|test_command_line\[words"
    r"|observed_entries_only\[mu|early_it_stops\[None-5|entries_count\[PALM"
    r"|promises\[.*sparse & (orthogonal|hoyer)-palm|optimiser_finds.*hoyer & sparse"
    r"|on_the_command_line\[1.5|worse_than_the_mean_is_below"
    r"|scikit_learn_suite.*cs[rc]_matrix|degenerate_factors\[(sparse|equal nonzeros of) items &"
    r"|promises\[order 3, mode|tensors_resume\[.*sparse"
    r"|test_select.py.*(units_do_not_matter|every_loss\[(?!kl)|poor_data|counts_that_vary|skewed_data|next_to_nothing)"
    r"|test_methods.py.*test_tensors|settled_points_are|units_are_followed|composites_of_extreme|hostile_checkpoint"
    r"|odd_tensors|test_dask.py.*(threads\[(?!kl-dense)|ctrl_c)|zero_rows_and_tiny|best_of_all_breakpoints"
    r"|damage_gives|as_good_a_fit_as|any_tensor_gets|MiniBatchNMF\(\)-check_(?!transformer_general)|lowest_at_the_planted"
    r"|clones_copies|bounds_set_the_unit|ctrl_c_writes|new_rows_are_projected_by_the_same_loss|swimmer_is_what"
    r"|number_of_workers.*\[[14]\]|worker_may_join|test_narrow.*stated1|page_of_100000"
    r"|(promises|converges).*(?<!-nonnegative)-streamed|(promises|converges).*streamed, plain"
    r"|test_converges.*(orthogonal|hoyer|unimodal|group_sparsity|equal_nonzeros).*admm|test_degenerate_data\[.*60"
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Single precision compiles all kernels once more: `make test` takes a sample of it, `make test-all` the whole. So
    does it with what takes seconds, and with combinations that cover each other."""
    for item in items:
        single = SINGLE.search(item.nodeid) and not SAMPLE.search(item.nodeid)
        if single or LONG.search(item.nodeid):
            item.add_marker(pytest.mark.slow)
    quick = [item for item in items if hasattr(item, "callspec") and not item.get_closest_marker("slow")]
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


@pytest.fixture(autouse=True)
def _ctrl_c_as_in_a_terminal():
    """Workers, and processes in the background, are started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
