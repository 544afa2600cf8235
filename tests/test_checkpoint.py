"""Runs that are killed, interrupted or continued, and the files they leave."""

import errno
import json
import multiprocessing
import operator
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from functools import partial, reduce
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

import partwise as pw
from partwise import registry
from partwise import structures as s
from partwise.data import as_data
from partwise.datasets import make_cp, make_parts
from partwise.errors import ArchiveError
from partwise.init import Random
from partwise.io import archive
from partwise.io.archive import MACHINE, read_archive, write_archive
from partwise.io.codec import encode
from partwise.problem.symmetric import pose_as
from partwise.run import checkpoint

from .conformance.tables import PLANTED, SOLVERS, loss_for, sparse_tensor
from .conformance.tables import needed as tables_needed
from .covering import EACH
from .hostile import hostile

X = make_parts(60, 50, 4, noise=0.1, random_state=0).X
# what some solvers are for: others take least squares with nonnegative factors
NEEDED = {
    "newton": {"loss": "kl"},
    "shared_newton": {"loss": "kl"},
    "mu(": {"loss": "kl"},
    "weighted": {"loss": "l1"},
    "mixed_norm": {"structure_H": s.GroupSparsity([1, 3], [0.3, 0.6])},
    "symmetric": {"X": X @ X.T, "symmetric": True},
}
SETTINGS = {"init": "random", "n_init": 2, "tol": 1e-9, "max_iter": 40, "random_state": 0, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def same(A, B):
    return (
        all(map(np.array_equal, A.factors, B.factors))
        and A.status == B.status
        and A.objectives == B.objectives
        and [record._replace(time=0) for record in A.history] == [record._replace(time=0) for record in B.history]
    )


def run(*data, **changes):
    stated = {
        "X": X,
        "rank": 4,
        **SETTINGS,
        **needed(str(changes.get("solver"))),
        **dict(zip(["X", "rank"], data, strict=False)),
    }
    return pw.factorize(**{**stated, **changes})


def needed(solver):
    return next((stated for start, stated in NEEDED.items() if solver.startswith(start)), {})


class Stop(Exception):
    pass


def stop_after(n):
    """A callback that fails at its n-th call: no checkpoint is written then, other than those made before."""
    calls = iter(range(n))

    def callback(record, factors):
        if next(calls, None) is None:
            raise Stop

    return callback


def interrupted(path, n, **changes):
    """Leave the checkpoint of a run that ended in the middle: the last before the n-th iteration."""

    class Early(checkpoint.CheckpointWriter):
        def keep(self, snapshot):
            super().keep(snapshot)
            self.writing.result()  # so that the last one is that of the iteration before

        def close(self, snapshot):
            super().close(None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "CheckpointWriter", Early)
        with pytest.raises(Stop) as caught:
            run(checkpoint=(path, 0), callbacks=[stop_after(n)], **changes)
    assert caught.value.result.status == "callback"
    return path


@EACH
@pytest.mark.parametrize("n", [17, 79, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 41, 50))])
@pytest.mark.parametrize("solver", [*registry.SOLVERS, "hals(shuffle=True)", "admm(search=12)", "mu(True)"])
def test_a_resumed_run_has_the_bits_of_one_that_was_never_stopped(solver, n, tmp_path):
    calls = []
    whole = run(solver=solver, callbacks=[lambda record, factors: calls.append(record)])
    kept = interrupted(tmp_path / "run.partwise", min(n, len(calls) - 1), solver=solver)  # some see that they are done
    assert same(run(solver=solver, resume=kept, random_state=99), whole)


CUBE = make_cp((8, 7, 6), 3, noise=0.1, random_state=0).X
OF_TENSORS = {
    "mixed_norm": {"structures": [None, None, s.GroupSparsity(sparsity=0.4)]},
    "symmetric": {"X": sum(CUBE[:6, :6].transpose(axes) for axes in permutations(range(3))), "symmetric": True},
}


@pytest.mark.slow_cases("sparse|gcd|mu_extrapolated|^newton-|palm")
@pytest.mark.parametrize("store", [np.asarray, sparse_tensor], ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", sorted({*registry.SOLVERS} - {"symmetric_cd", "shared_newton", "streamed", "cd"}))
def test_runs_on_tensors_resume(solver, store, tmp_path):
    """The same of tensors, for every solver that takes them."""
    stated = next((stated for start, stated in OF_TENSORS.items() if solver.startswith(start)), needed(solver))
    changes = {"solver": solver, "rank": 3, **stated, "X": store(stated.get("X", CUBE)), "structure_H": None}
    calls = []
    whole = run(callbacks=[lambda record, factors: calls.append(record)], **changes)
    kept = interrupted(tmp_path / "run.partwise", min(30, len(calls) - 1), **changes)
    assert same(run(resume=kept, **changes | {"random_state": 99}), whole)
    with pytest.raises(ArchiveError, match="a checkpoint of something else: the contents of X"):
        run(resume=kept, **changes | {"X": store(2 * stated.get("X", CUBE))})


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize("store", [sparse.csr_array, lambda X: X.astype(np.float32)], ids=["sparse", "float32"])
def test_for_other_data_and_structures(store, tmp_path):
    changes = {"X": store(X), "structure_H": s.NonNegative() & s.L1(0.1), "structure_W": s.Box(0, 3)}
    kept = interrupted(tmp_path / "run.partwise", 30, **changes)
    assert same(run(resume=kept, **changes), run(**changes))


@pytest.mark.slow
@pytest.mark.parametrize("solver", registry.SOLVERS)
@pytest.mark.parametrize("max_iter", [1, 10, 11, 12, 13, 14, 15, 16])
def test_more_iterations_than_were_asked_for_at_first(max_iter, solver, tmp_path):
    """Also where the few that were asked for end at a point that is stationary already."""
    settings = {"n_init": 1, "tol": 1e-3, "solver": solver}
    path = tmp_path / "run.partwise"
    run(checkpoint=path, **{**settings, "max_iter": max_iter})
    assert same(run(resume=path, **settings), run(**settings))


def test_a_start_that_used_up_its_iterations_is_not_given_more(tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path, max_iter=10)
    with pytest.raises(ArchiveError, match="with max_iter=40: a start that is over used up its 10 iterations"):
        run(resume=path)
    assert same(run(resume=path, max_iter=10), run(max_iter=10))


def test_several_starts_that_ended_by_themselves_may_be_given_more_iterations(tmp_path):
    """The first two converge, the third is cut short: it goes on as it would have."""
    path, steps, settings = tmp_path / "run.partwise", [], {"n_init": 3, "tol": 1e-2}
    whole = run(**settings, max_iter=1000, callbacks=[lambda record, factors: steps.append(record.n_iter)])
    lengths = [a for a, b in zip(steps, [*steps[1:], 0], strict=True) if b == 0]
    assert len(lengths) == 3
    enough, most = max(lengths[:2]), max(lengths)
    with pytest.raises(Stop):
        run(**settings, max_iter=enough + 1, checkpoint=(path, 0), callbacks=[stop_after(sum(lengths[:2]) + 4)])
    assert same(run(**settings, max_iter=1000, resume=path), whole)
    assert same(run(**settings, max_iter=most, resume=path), run(**settings, max_iter=most))
    with pytest.raises(ArchiveError, match="iterations of a start are done"):
        run(**settings, max_iter=enough - 1, resume=path)


def test_fewer_iterations_than_are_done_are_refused(tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path, max_iter=10, n_init=1)
    with pytest.raises(ArchiveError, match="with max_iter=9: 10 iterations of a start are done"):
        run(resume=path, max_iter=9, n_init=1)


@pytest.mark.parametrize("ending", [{"target": 12.0}, {"ftol": 1e-2}], ids=str)
def test_a_run_that_ended_at_a_limit_of_the_objective_goes_on_without_it(ending, tmp_path):
    path = tmp_path / "run.partwise"
    assert run(checkpoint=path, n_init=1, **ending).status == next(iter(ending))
    assert same(run(resume=path, n_init=1), run(n_init=1))


@pytest.mark.parametrize("solver", registry.SOLVERS)
def test_every_solver_ends_where_its_error_hardly_falls(solver, tmp_path):
    """At the tenth iteration, whatever it does, and again when it is resumed."""
    ending = {"solver": solver, "ftol": 1e9, "n_init": 1, "tol": 0}
    first = run(checkpoint=tmp_path / "run.partwise", **ending)
    assert (first.status, first.n_iter) == ("ftol", 10) or (first.status == "stalled" and first.n_iter < 10)
    assert same(run(resume=tmp_path / "run.partwise", **ending), first)


OVER = [
    {"tol": 1e-3, "max_iter": 500},
    {"target": 12.0},
    {"target": 1e6},
    {"target": 1e6, "solver": "admm"},
    {"ftol": 1e-2},
    {"ftol": 1e-2, "tol": 1e9},  # both rules hold
]


@pytest.mark.parametrize("ending", OVER, ids=str)
def test_a_run_that_was_over_is_over(ending, tmp_path):
    path = tmp_path / "run.partwise"
    first = run(checkpoint=path, **ending)
    assert same(run(resume=path, **ending), first)


@pytest.mark.parametrize("init", ["nndsvda", "nndsvdar", "spa", (np.ones((60, 4)), np.eye(4, 50) + 0.1)], ids=str)
def test_from_other_starts_and_with_a_factor_held(init, tmp_path):
    for held, changes in enumerate(({}, {"structure_H": s.Fixed(make_parts(60, 50, 4, random_state=1).H)})):
        changes = {"init": init, "n_init": 1, **changes}  # noqa: PLW2901
        kept = interrupted(tmp_path / f"run{held}.partwise", 2, **changes)
        assert same(run(resume=kept, **changes), run(**changes))


@pytest.mark.parametrize("solver", registry.SOLVERS)
def test_what_is_kept_does_not_change_with_later_steps(solver):
    loss = registry.resolve("loss", needed(solver).get("loss", "frobenius"))
    parts = needed(solver).get("structure_H", s.NonNegative())
    data, symmetric = as_data(needed(solver).get("X", X)), needed(solver).get("symmetric", False)
    problem = pose_as(symmetric, data, loss, (s.NonNegative(), parts), 4).normalized()
    method, rng = registry.resolve("solver", solver), np.random.RandomState(0)
    state = method.init(problem, Random()(problem, rng), 1e-9, rng)
    method.step(problem, state)
    kept = method.kept(state)
    arrays, later = {}, {}
    before, copies = repr(encode(kept, arrays)), {name: A.copy() for name, A in arrays.items()}
    for _ in range(3):
        method.step(problem, state)
    assert repr(encode(kept, later)) == before
    assert all(later[name] is A and np.array_equal(A, copies[name]) for name, A in arrays.items())


def test_a_start_that_became_binary_goes_on_as_it_began(tmp_path):
    """Whether values are counted is decided by the start, not by where a run was stopped."""
    block = np.zeros((6, 6))
    block[:3, :3] = 1
    start = np.array([[0.9, 1, 1, 1, 0.1, 1]]).T, np.ones((1, 6))
    settings = {"solver": "weighted_median", "init": start, "n_init": 1, "tol": 0.0}
    whole = run(block, 1, max_iter=8, **settings)
    run(block, 1, max_iter=4, checkpoint=tmp_path / "run.partwise", **settings)
    assert same(run(block, 1, max_iter=8, resume=tmp_path / "run.partwise", **settings), whole)


def test_resuming_leaves_the_random_numbers_of_others_alone(tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path)
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    run(resume=path, random_state=None)
    assert np.random.rand() == expected


def child(path, solver):
    """Runs until it is killed: every iteration waits a little."""
    slow = {"callbacks": [lambda record, factors: time.sleep(0.01)], "max_iter": 100_000, "tol": 0, "n_init": 1}
    run(checkpoint=(path, 0.0), solver=solver, **slow)


def killed(path, solver, seconds):
    """Whether there is a checkpoint of a child that was killed after this time."""
    process = multiprocessing.get_context("fork").Process(target=child, args=(path, solver))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads
        process.start()
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the child ended by itself"
    return path.exists()


def check_kill(tmp_path, solver, seconds):
    path = tmp_path / "run.partwise"
    while not killed(path, solver, seconds):
        seconds *= 2  # not even the first checkpoint was there
    about, arrays = read_archive(path, "checkpoint")  # whole, whatever moment it was
    n_iter = len(arrays[about["snapshot"]["fields"]["history"]["history"]["array"]])
    settings = {"solver": solver, "max_iter": n_iter + 5, "tol": 0, "n_init": 1}
    assert same(run(resume=path, **settings), run(**settings))


@pytest.mark.slow
@pytest.mark.parametrize("solver", registry.SOLVERS)
def test_killed_at_some_moment(solver, tmp_path):
    check_kill(tmp_path, solver, np.random.default_rng().uniform(0.05, 0.3))


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(13))
@pytest.mark.parametrize("solver", registry.SOLVERS)
def test_killed_at_many_moments(solver, attempt, tmp_path):
    check_kill(tmp_path, solver, np.random.default_rng().uniform(0.02, 0.6))


@pytest.mark.slow_cases("float32")
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"X": X + 1}, "the contents of X is"),
        ({"X": X[:-1]}, "the shape of X is 60 x 50 there and 59 x 50 here"),
        ({"X": X.astype(np.float32)}, "the type of X is float64 there and float32 here"),
        ({"rank": 5}, "the rank is 4 there and 5 here"),
        ({"solver": "gcd"}, "the setting solver is HALS"),
        ({"loss": "kl", "solver": "mu"}, "the loss is Frobenius"),
        ({"tol": 1e-3}, "the setting tol is 1e-09 there and 0.001 here"),
        ({"X": np.asfortranarray(X)}, "the memory order of X is by rows there and by columns here"),
        ({"init": (np.ones((60, 4)), np.ones((4, 50))), "n_init": 1}, "the setting init is random there and custom"),
        ({"n_init": 5}, "the setting n_init is 2 there and 5 here"),
        ({"structure_H": s.NonNegative() & s.L1(0.5)}, "the structure of the factors is"),
        ({"X": X @ X.T, "symmetric": True, "solver": "symmetric_cd"}, "the symmetry is False there and True here"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(changes, sentence, tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path)
    with pytest.raises(ArchiveError, match=sentence):
        run(resume=path, **changes)


def test_one_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.partwise"
    run(checkpoint=path)
    monkeypatch.setattr(pw, "__version__", "9.9")
    with pytest.raises(ArchiveError, match=r"the version of partwise is 0\..* there and 9\.9 here"):
        run(resume=path)


def test_a_factor_of_another_shape_in_a_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path)
    about, arrays = read_archive(path, "checkpoint")
    small = {
        name: A[:2] if A.ndim == 2 and A.shape[1] == 4 and A.shape[0] in X.shape else A for name, A in arrays.items()
    }
    write_archive(path, "checkpoint", {name: about[name] for name in ("identity", "snapshot")}, small)
    with pytest.raises(ArchiveError, match="the checkpoint holds a factor that is not"):
        run(resume=path)


@EACH
@pytest.mark.parametrize("field", ["random", "factors", "history", "state", "best", "objectives", "correction"])
@pytest.mark.parametrize("value", [3, "x", None, {"list": []}, {"tuple": ["x"]}])
def test_nonsense_in_a_checkpoint_is_refused(field, value, tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path, n_init=1)
    about, arrays = read_archive(path, "checkpoint")
    if about["snapshot"]["fields"][field] == value or (field, value) in (
        ("objectives", {"list": []}),
        ("correction", 3),
    ):
        pytest.skip("that is no nonsense there")
    about["snapshot"]["fields"][field] = value
    write_archive(path, "checkpoint", {name: about[name] for name in ("identity", "snapshot")}, arrays)
    with pytest.raises(ArchiveError):
        run(resume=path, n_init=1)


@EACH
@pytest.mark.parametrize("field", ["points", "origins", "momentum", "objective", "stationarity", "factors"])
@pytest.mark.parametrize("value", [3, "x", {"list": []}, {"list": ["x", "y"]}])
def test_nonsense_in_the_state_of_a_solver_is_refused(field, value, tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path, n_init=1)
    about, arrays = read_archive(path, "checkpoint")
    about["snapshot"]["fields"]["state"]["fields"][field] = value
    write_archive(path, "checkpoint", {name: about[name] for name in ("identity", "snapshot")}, arrays)
    with pytest.raises(ArchiveError):
        run(resume=path, n_init=1)


def settings_for(solver):
    """A small problem that a solver is for."""
    loss, structure = loss_for(solver), tables_needed(solver)
    about = {"symmetric": True} if loss is None else {"loss": loss, "structure_W": structure}
    start = {} if solver.default_init else {"n_init": 2, "init": "random"}
    limits = {"progress": False, "max_iter": 8, "tol": 0.0}
    data = {"X": PLANTED.X @ PLANTED.X.T if loss is None else PLANTED.X, "rank": 3}
    return {**data, "solver": solver, **about, **start, **limits}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("share", [30, 1])
@pytest.mark.parametrize("name", SOLVERS)
def test_a_hostile_checkpoint_is_refused_or_harmless(name, share, tmp_path):
    path, settings = tmp_path / "run.partwise", settings_for(SOLVERS[name])
    pw.factorize(checkpoint=path, **settings, random_state=0, callbacks=[stop_gently(13)])
    about, arrays = read_archive(path, "checkpoint")
    tried = refused = 0
    for tree, changed in hostile(about["snapshot"], arrays, share):
        write_archive(path, "checkpoint", {"identity": about["identity"], "snapshot": tree}, changed)
        tried += 1
        try:
            result = pw.factorize(resume=path, **settings)
        except ArchiveError:
            refused += 1
        else:
            assert all(np.all(np.isfinite(A)) for A in result.factors)
            assert result.certificate.feasible
            assert str(result.certificate)
    assert refused > tried / 2


SPOILED = {
    "a point of one entry": ("symmetric_cd", ("state", "fields", "point"), lambda A: np.zeros((1, 1))),
    "a negative point": ("symmetric_cd", ("state", "fields", "point"), lambda A: -A),
    "a negative factor": ("hals", ("factors", "tuple", 1), lambda A: A - 1),
    "factors that differ": ("symmetric_cd", ("factors", "tuple", 1), lambda A: 2 * A),
    "a factor of NaN": ("hals", ("factors", "tuple", 0), lambda A: A * np.nan),
    "the place among the random numbers": ("hals", ("random", "tuple"), lambda items: [*items[:2], 10**9, *items[3:]]),
    "a copy of NaN": ("admm", ("state", "fields", "splits", "tuple", 0, "fields", "dual"), lambda A: A * np.nan),
    "a penalty below 0": ("admm", ("state", "fields", "splits", "tuple", 0, "fields", "penalty"), lambda value: -1.0),
    "parts beyond the rank": ("greedy", ("state", "fields", "count"), lambda value: 4),
    "a step that grows": ("hals", ("state", "fields", "momentum", "fields", "beta"), lambda value: 1e9),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_would_crash_a_kernel_or_spoil_a_result_is_refused(what, tmp_path):
    name, place, spoil = SPOILED[what]
    path, settings = tmp_path / "run.partwise", settings_for(SOLVERS[name])
    pw.factorize(checkpoint=path, **settings, random_state=0, callbacks=[stop_gently(13)])
    about, arrays = read_archive(path, "checkpoint")
    *outer, last = place
    inside = reduce(operator.getitem, outer, about["snapshot"]["fields"])
    if isinstance(inside[last], dict):
        arrays[inside[last]["array"]] = spoil(arrays[inside[last]["array"]])
    else:
        inside[last] = spoil(inside[last])
    write_archive(path, "checkpoint", {name: about[name] for name in ("identity", "snapshot")}, arrays)
    with pytest.raises(ArchiveError):
        pw.factorize(resume=path, **settings)


def stop_gently(n):
    """A callback that ends the run at its n-th call, with a checkpoint."""
    calls = iter(range(n))
    return lambda record, factors: next(calls, None) is None


def test_settings_may_be_numbers_of_numpy(tmp_path):
    path = tmp_path / "run.partwise"
    settings = {"n_init": np.int64(2), "tol": np.float32(1e-3), "max_iter": np.int32(30)}
    assert same(run(checkpoint=path, **settings), run(**settings))
    assert path.exists()


def test_a_state_that_cannot_be_kept_does_not_cost_the_run(tmp_path):
    class Own(pw.solvers.GCD):
        def kept(self, state):
            return object()

    with pytest.warns(RuntimeWarning, match="could not be written .object cannot be saved.; the run goes on"):
        result = run(solver=Own(), checkpoint=tmp_path / "run.partwise")
    assert np.array_equal(result.W, run(solver="gcd").W)


def test_a_disk_that_fails_does_not_end_the_run(tmp_path, monkeypatch):
    folder = tmp_path / "there"
    folder.mkdir()

    def vanish(record, factors):
        if record.n_iter >= 3:
            shutil.rmtree(folder, ignore_errors=True)

    with pytest.warns(RuntimeWarning, match="could not be written .*; the run goes on without it"):
        result = run(checkpoint=(folder / "run.partwise", 0), callbacks=[vanish])
    assert same(result, run())


def test_a_checkpoint_that_cannot_be_is_refused_at_once(tmp_path):
    with pytest.raises(ValueError, match="is not a folder"):
        run(checkpoint=tmp_path / "nowhere" / "run.partwise")
    with pytest.raises(ValueError, match="checkpoint must be a path, or a pair"):
        run(checkpoint=("run.partwise", -1))
    for wrong in (("a", 1, 2), ("a", np.nan), 3):
        with pytest.raises(ValueError, match="checkpoint must be a path, or a pair"):
            run(checkpoint=wrong)
    with pytest.raises(ValueError, match="is a folder: name a file"):
        run(checkpoint=tmp_path)
    with pytest.raises(ArchiveError, match="no such file"):
        run(resume=tmp_path / "nothing.partwise")


def test_what_a_killed_writer_left_is_cleared_away_and_nothing_else(tmp_path):
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    ended, running = int(child.stdout), os.getpid()
    left = f"run.partwise.{MACHINE}-{ended}-4.unfinished"
    others = {
        f"run.partwise.{MACHINE}-{running}-4.unfinished",  # it is being written
        f"run.partwise.00000000-{ended}-4.unfinished",  # on another machine
        f"other.partwise.{MACHINE}-{ended}-4.unfinished",
        "run.partwise.notes.unfinished",
        "run.partwise.123-4.unfinished",
        f"{left}.unfinished",
    }
    for name in (left, *others):
        (tmp_path / name).write_bytes(b"part")
    run(checkpoint=tmp_path / "run.partwise", max_iter=2, n_init=1)
    assert {file.name for file in tmp_path.iterdir()} == {"run.partwise", *others}


def test_a_checkpoint_replaces_checkpoints_alone(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="would replace another kind of file"):
        run(checkpoint=path)
    assert path.read_bytes() == before
    run(max_iter=2).save(tmp_path / "result.partwise")
    with pytest.raises(ValueError, match="would replace another kind of file"):
        run(checkpoint=tmp_path / "result.partwise")
    (tmp_path / "empty").touch()
    run(checkpoint=tmp_path / "empty", max_iter=2, n_init=1)
    run(checkpoint=tmp_path / "empty", max_iter=3, n_init=1)
    assert len(read_archive(tmp_path / "empty", "checkpoint")[0]["snapshot"]["fields"]) > 5


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there are no devices in this file system")
@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_devices_are_left_alone(device, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink(device, tmp_path / "link")
    for path in (device, tmp_path / "pipe", tmp_path / "link"):
        with pytest.raises(ValueError, match="no regular file"):
            run(checkpoint=path)
        with pytest.raises(ValueError, match="no regular file"):
            run(max_iter=2).save(path)
    assert stat.S_ISCHR(os.stat(device).st_mode)


def test_links_lead_to_the_file(tmp_path):
    (tmp_path / "there").mkdir()
    path, link = tmp_path / "there" / "run.partwise", tmp_path / "link"
    link.symlink_to(path)
    run(checkpoint=link, max_iter=2, n_init=1)
    run(checkpoint=link, max_iter=3, n_init=1)
    assert link.is_symlink()
    assert path.is_file()
    assert same(run(resume=link, n_init=1), run(n_init=1))
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(ValueError, match=r"leads nowhere|no regular file|is not a folder"):
        run(checkpoint=tmp_path / "round" / "run.partwise")


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(ValueError, match="is not a folder to write in"):
        run(checkpoint=tmp_path / "run.partwise")


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.partwise"
    run(checkpoint=path, max_iter=5, n_init=1)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(archive.npy, "write_array", full)
        with pytest.warns(
            RuntimeWarning, match=r"run\.partwise could not be written.*No space left.*goes on without it"
        ):
            result = run(checkpoint=(path, 0), n_init=1)
        with pytest.raises(OSError, match=r"No space left on device: .*/result\.partwise"):
            result.save(tmp_path / "result.partwise")
    assert same(result, run(n_init=1))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.partwise"]


def clipped(top, offset=None):
    def projection(H):
        return np.clip(H, 0, top) if offset is None else np.maximum(H, offset)

    return projection


def test_another_function_in_a_projection_is_refused(tmp_path):
    def changed(function):
        return {"structure_H": s.Projection(function, name="mine"), "solver": "palm", "n_init": 1}

    for number, (first, second) in enumerate(
        [
            (clipped(1.0), clipped(2.0)),
            (clipped(1.0, np.zeros(50)), clipped(1.0, np.full(50, 0.1))),
            (lambda H: np.maximum(H, 0), lambda H: np.maximum(H, 1)),
            (partial(np.clip, a_min=0, a_max=1), partial(np.clip, a_min=0, a_max=2)),
        ]
    ):
        path = tmp_path / f"{number}.partwise"
        run(checkpoint=path, max_iter=3, **changed(first))
        with pytest.raises(ArchiveError, match="the code of the projections is"):
            run(resume=path, max_iter=6, **changed(second))
    again = changed(clipped(1.0))
    run(checkpoint=tmp_path / "same", max_iter=3, **again)
    assert same(run(resume=tmp_path / "same", max_iter=6, **changed(clipped(1.0))), run(max_iter=6, **again))


def test_a_callback_that_fails_at_once_is_not_called_again():
    calls = []

    def fail(record, factors):
        calls.append(record.n_iter)
        raise Stop

    with pytest.raises(Stop) as caught:
        run(callbacks=[fail])
    assert calls == [0]
    assert caught.value.result.n_iter == 0


def test_ctrl_c_while_the_end_is_written_returns_the_result(tmp_path, monkeypatch):
    def pressed(self, snapshot):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.CheckpointWriter, "close", pressed)
    result = run(checkpoint=tmp_path / "run.partwise")
    assert result.status == "interrupted"
    assert np.array_equal(result.W, run().W)


def test_ctrl_c_returns_the_best_so_far(tmp_path):
    def press(record, factors):
        if record.n_iter == 7:
            signal.raise_signal(signal.SIGINT)

    result = run(callbacks=[press], checkpoint=tmp_path / "run.partwise")
    assert result.status == "interrupted"
    assert result.n_iter in (6, 7)
    assert np.isfinite(result.objective)
    assert same(run(resume=tmp_path / "run.partwise"), run())
    with pytest.raises(KeyboardInterrupt):
        pw.NMF(3, callbacks=[press], init="random", tol=0).fit(X)


def test_ctrl_c_in_the_middle_of_a_step_leaves_a_whole_checkpoint(tmp_path, monkeypatch):
    """Between the updates of W and H: the first is undone, not done twice."""
    updates, original = iter(range(25)), pw.solvers.HALS.update

    def update(*arguments):
        if next(updates, None) is None:
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(pw.solvers.HALS, "update", update)
        result = run(checkpoint=tmp_path / "run.partwise", solver="hals(shuffle=True)")
    assert result.status == "interrupted"
    assert result.n_iter == 12
    assert same(run(resume=tmp_path / "run.partwise", solver="hals(shuffle=True)"), run(solver="hals(shuffle=True)"))


def test_ctrl_c_in_a_later_start_keeps_the_earlier_one():
    calls = iter(range(60))

    def press(record, factors):
        if next(calls, None) is None:
            signal.raise_signal(signal.SIGINT)

    result = run(callbacks=[press], max_iter=40)
    assert result.status == "interrupted"
    assert len(result.objectives) == 2


def test_a_failing_callback_hands_over_the_result():
    with pytest.raises(Stop) as caught:
        run(callbacks=[stop_after(6)])
    result = caught.value.result
    assert result.status == "callback"
    assert result.n_iter == 6
    assert np.array_equal(result.W, run(max_iter=6, n_init=1).W)


def test_checkpoints_are_arrays_and_json(tmp_path):
    path = tmp_path / "run.partwise"
    run(checkpoint=path)
    about, arrays = read_archive(path, "checkpoint")
    assert json.dumps(about)
    assert all(A.dtype.kind in "fiu" for A in arrays.values())
    assert list(tmp_path.iterdir()) == [path]  # nothing unfinished is left
