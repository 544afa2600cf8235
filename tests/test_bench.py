"""The race: honest sides, the same start, the right winner."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import non_negative_factorization
from sklearn.utils import check_random_state

from benchmarks import runs
from benchmarks.__main__ import PAGES
from benchmarks.pages import CODE, renew
from benchmarks.rows import KL_ROWS, ROWS
from partwise.bench import (
    Contest,
    Curve,
    Heat,
    partwise,
    race,
    record,
    scikit_learn,
    short_contests,
    summary,
    uninterrupted,
    warm_up,
)
from partwise.cli import main
from partwise.datasets import make_parts
from partwise.init import Random

pytestmark = pytest.mark.slow

X = make_parts(40, 30, 3, noise=0.1, random_state=0).X


def test_speed_up_is_the_ratio_of_first_times_at_the_target():
    slow = Curve([1.0, 2.0, 3.0, 4.0], [9.0, 7.0, 5.0, 4.0])
    fast = Curve([0.5, 1.0], [6.0, 4.5])
    heat = Heat(4.5, {"scikit-learn": slow, "partwise": fast, "late": Curve([1.0], [8.0])})
    assert heat.speed_up("partwise") == 4.0
    assert heat.speed_up("partwise", slack=1.5) == 3.0 / 0.5
    assert heat.speed_up("late") is None
    assert heat.final("partwise") == 4.5 / 4.0


def test_times_are_those_of_steps_alone(monkeypatch):
    """Of a run without the judge, whose clock ticks once a step here; a curve ends soon after the limit."""
    ticks = iter(range(1000))
    monkeypatch.setattr("partwise.bench.time.perf_counter", lambda: next(ticks) / 100)
    assert uninterrupted(lambda: iter(range(9)), 3) == pytest.approx([0.01, 0.02, 0.03])
    curve = Curve([1.0, 2.0, 3.0, 4.0], [9.0, 8.0, 7.0, 6.0])
    assert curve.until(2.0).times == [1.0, 2.0, 3.0] and curve.until(2.0).objectives == [9.0, 8.0, 7.0]


@pytest.mark.parametrize("l1", [0.0, 0.05])
def test_the_rival_is_what_scikit_learn_runs(l1):
    contest = Contest("x", X, 3, l1)
    W, H = Random()(contest.problem, check_random_state(0))
    curve = record(scikit_learn(contest, W, H), contest.problem, lambda _, f, n: n >= 7)
    penalties = {"alpha_W": l1 / X.shape[1], "alpha_H": l1 / X.shape[0], "l1_ratio": 1.0}
    public = non_negative_factorization(
        X, W.copy(), np.ascontiguousarray(H.T), n_components=3, init="custom", max_iter=7, tol=0, **penalties
    )
    assert curve.objectives[-1] == pytest.approx(contest.problem.objective((public[0], public[1].T)), rel=1e-10)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_all_sides_start_alike_and_get_to_the_target(store):
    contest = Contest("x", store(X), 3)
    warm_up(contest, {"partwise": partwise})
    start = Random()(contest.problem, check_random_state(0))
    firsts = [next(side(contest, *start))() for side in (scikit_learn, partial(partwise, solver="cd"))]
    assert all(np.allclose(A, B) for A, B in zip(*firsts, strict=True))  # the same start, and the same algorithm
    heat = race(contest, 0, {"partwise": partwise})
    rival, own = heat.curves["scikit-learn"], heat.curves["partwise"]
    assert len(rival.times) == 200
    assert heat.target == rival.objectives[-1]
    assert np.all(np.diff(rival.times) > 0)
    assert own.objectives[-1] <= 1.01 * heat.target
    assert "rank 3" in summary(contest, [heat])


def test_other_losses_race_against_multiplicative_updates():
    contest = Contest("x", X, 3, loss="kl", iterations=400)
    warm_up(contest, {"partwise": partwise})
    start = Random()(contest.problem, check_random_state(0))
    firsts = [next(side(contest, *start))() for side in (scikit_learn, partial(partwise, solver="mu"))]
    assert all(np.allclose(A, B) for A, B in zip(*firsts, strict=True))
    heat = race(contest, 0, {"partwise": partwise})
    assert len(heat.curves["scikit-learn"].times) == 400
    assert heat.target == heat.curves["scikit-learn"].objectives[-1]
    assert heat.curves["partwise"].objectives[-1] <= 1.01 * heat.target


def test_a_target_given_in_advance_ends_the_race():
    planted = make_parts(40, 30, 2, random_state=0).X
    heat = race(Contest("x", planted, 2, target=1e-2), 0, {"partwise": partwise})
    assert heat.target == pytest.approx(1e-2 * np.vdot(planted, planted) / 2)
    assert heat.curves["scikit-learn"].objectives[-1] <= heat.target < heat.curves["scikit-learn"].objectives[-2]


def test_the_short_form_has_dense_and_sparse_data():
    contests = short_contests()
    assert {sparse.issparse(contest.X) for contest in contests} == {True, False}
    assert 0.005 < contests[1].X.nnz / np.prod(contests[1].X.shape) < 0.05


def test_on_the_command_line(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["bench", str(tmp_path / "x.npy"), "--rank", "3", "--starts", "1"]) == 0
    out = capsys.readouterr().out
    assert "x.npy (40 × 30, rank 3), to scikit-learn's 200 iterations:" in out
    assert "cores, Python" in out
    assert main(["bench", str(tmp_path / "x.npy"), "--rank", "3", "--starts", "1", "--loss", "kl"]) == 0
    assert "x.npy (40 × 30, rank 3, KL())" in capsys.readouterr().out
    for loss, why in (("kl", "needs a file"), ("l1", "scikit-learn has no solver"), ("poisson", "unknown loss")):
        assert main(["bench", "--loss", loss]) == 2
        assert why in capsys.readouterr().err
    assert main(["bench", "--starts", "0"]) == 2
    assert "argument --starts: '0' is not a whole number >= 1" in capsys.readouterr().err


def test_the_table_has_every_row():
    page = (CODE / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for row in [*ROWS, *KL_ROWS]:
        assert f"| {row.name} |" in page


# -- all rows -------------------------------------------------------------------------------------------------


def test_rows_that_go_wrong_say_so_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("PARTWISE_TRIAL", str(tmp_path / "ran"))
    monkeypatch.setattr(runs, "LIMIT", 2.0)
    part = runs.Part("bench_part", "", "tests.trials")

    def measured(**options):
        run = runs.Run([part], tmp_path, [], **{"fresh": False, **options})
        return {outcome.name: outcome.failure for _, outcome in run.measure(part)}, run

    first = runs.Run([part], tmp_path, [], fresh=False)
    next(first.measure(part))  # stopped after one row
    found, run = measured()
    assert found["absent"] == "skipped: x.npz is not here"
    assert found["wrong"] == "failed: ValueError: no / such thing"
    assert found["killed"].startswith("failed: the process ended with code -9")
    assert found["slow"] == "stopped after 2 s"
    assert "counted" not in found
    text = part.text(run.kept[part.name])
    assert "| counted | 1.5 |" in text
    assert "| slow | stopped after 2 s |" in text
    assert "cores, Python" in text.splitlines()[0]
    found, _ = measured()  # only rows that have no value
    assert set(found) == {"wrong", "killed", "slow"}
    found, _ = measured(fresh=True)
    assert len(found) == 5
    assert len((tmp_path / "ran").read_text().split()) == 2


def test_a_block_is_renewed_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.pages.ROOT", tmp_path)
    page = "a\n<!-- generated: python -m benchmarks x -->\n\nold\n\n<!-- end -->\nb\n<!-- end -->\n"
    (tmp_path / "p.md").write_text(page)
    renew("p.md", "x", "new")
    assert (tmp_path / "p.md").read_text() == page.replace("old", "new")


def test_every_part_has_its_block():
    for name, page in PAGES.items():
        assert (CODE / page).read_text(encoding="utf-8").count(f"<!-- generated: python -m benchmarks {name} -->") == 1


@pytest.mark.parametrize("part", PAGES)
def test_every_part_runs_on_little_data(part, tmp_path):
    command, folder = [sys.executable, "-m", "benchmarks", part, "--quick"], os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=CODE, capture_output=True, text=True, check=False, timeout=600, env=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
