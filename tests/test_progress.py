"""The bar: there when a person looks, silent otherwise, and what it says."""

import os
import pty
import re
import subprocess
import sys
import termios
import types
from contextlib import suppress

import numpy as np
import pytest

import partwise as pw
from partwise.datasets import make_parts
from partwise.run.limits import Limits
from partwise.run.progress import Bar
from partwise.run.records import Record

X = make_parts(60, 50, 4, noise=0.1, random_state=0).X


def test_silent_where_nobody_looks(capsys):
    pw.factorize(X, 3, random_state=0)
    assert capsys.readouterr() == ("", "")


def test_what_the_bar_says(capsys):
    pw.factorize(X, 3, init="random", n_init=2, max_iter=400, tol=1e-12, time_limit=60, random_state=0, progress=True)
    text = capsys.readouterr().err
    assert "start 1/2" in text
    assert re.search(r"\[00:\d\d, \d+ it, objective [\d.e+-]+, \de-\d\d to 1e-12\]", text)
    assert text.endswith("\r")  # the line is wiped
    assert text.rsplit("\r", 2)[1].strip() == ""
    assert max(map(len, text.split("\r"))) < 80


def test_a_bar_for_one_start_does_not_count_starts(capsys):
    pw.factorize(X, 3, max_iter=50, tol=0, random_state=0, progress=True)
    assert "start" not in capsys.readouterr().err


def shares_done(bar, stationarities):
    records = [Record(n + 1, 0.0, 1.0, s) for n, s in enumerate(stationarities)]
    with bar:
        for record in records:
            bar(0, record)
            yield bar.done


def test_the_bar_fills_as_the_stationarity_falls_to_tol_and_never_empties():
    done = list(shares_done(Bar(Limits(tol=1e-4), 1000, 1), [1.0, 1e-1, 1e-2, 1e-1, 1e-3, 1e-4, 1e-5]))
    assert done == pytest.approx([0, 0.25, 0.5, 0.5, 0.75, 1, 1])


def test_the_bar_fills_with_iterations_where_no_stationarity_is_known():
    assert list(shares_done(Bar(Limits(tol=1e-4), 4, 1), [np.inf] * 3)) == pytest.approx([0.25, 0.5, 0.75])
    assert list(shares_done(Bar(Limits(tol=0), 4, 1), [1e-3] * 3)) == pytest.approx([0.25, 0.5, 0.75])


def test_the_bar_fills_with_time_where_that_is_up_first():
    bar = Bar(Limits(tol=1e-4, time_limit=100.0), 1000, 1)
    bar.begin -= 80
    assert list(shares_done(bar, [1.0, 1e-1])) == pytest.approx([0.8, 0.8], abs=0.01)


def test_the_longest_line_has_room_in_80_columns(capsys):
    with Bar(Limits(tol=1e-4), 100_000, 10) as bar:
        bar.drawn = -1.0
        bar(9, Record(99_999, 1.0, 1.2345678e06, 1.2345e-3))
    assert max(map(len, capsys.readouterr().err.split("\r"))) < 80


def seen_in_a_terminal(command, folder):
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    with subprocess.Popen(command, cwd=folder, stdin=follower, stdout=follower, stderr=follower) as process:
        os.close(follower)
        seen = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(leader, 10_000):
                seen += piece
    os.close(leader)
    assert process.returncode == 0
    return seen.decode()


@pytest.mark.slow
def test_in_a_terminal_and_in_a_log(tmp_path):
    """A process whose standard error is a terminal draws; one that writes to a file does not."""
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-m", "partwise", "fit", "x.npy", "--rank", "3", "--out", "out", "--tol", "1e-9"]
    drawn = seen_in_a_terminal(command, tmp_path)
    assert "partwise   0%|" in drawn
    assert "wrote" in drawn
    log = subprocess.run([*command, "--force"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "%|" not in log.stderr + log.stdout
    assert "\r" not in log.stderr + log.stdout


def test_in_a_notebook_one_text_is_renewed_and_none_is_left(monkeypatch, capsys):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    display = types.SimpleNamespace(display=lambda data, raw, display_id: Handle())
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    pw.factorize(X, 3, max_iter=50, tol=0, random_state=0)
    assert any(text.startswith("partwise   0%|") for text in shown)
    assert all("\r" not in text for text in shown)
    assert shown[-1] == ""
    assert capsys.readouterr() == ("", "")


def test_verbose_of_the_drop_in_prints_lines(capsys):
    pw.NMF(3, verbose=1, max_iter=3, tol=0, init="random", random_state=0).fit(X)
    out, err = capsys.readouterr()
    assert len(re.findall(r"^iteration +\d+  objective .*  stationarity .* s$", out, re.MULTILINE)) == 4
    assert err == ""
