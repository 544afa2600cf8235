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
from partwise.run.progress import Bar, clock_face
from partwise.run.records import Record

X = make_parts(60, 50, 4, noise=0.1, random_state=0).X


def test_silent_where_nobody_looks(capsys):
    pw.factorize(X, 3, random_state=0)
    assert capsys.readouterr() == ("", "")


def test_what_the_bar_says(capsys):
    pw.factorize(X, 3, init="random", n_init=2, max_iter=400, tol=1e-12, time_limit=60, random_state=0, progress=True)
    text = capsys.readouterr().err
    assert "start 1 of 2" in text
    assert re.search(
        r"iterations \[.*it/s, objective [\d.e+-]+, stationarity [\d.e+-]+, tol 1e-12, at most .* left\]", text
    )
    assert text.endswith("\r")  # the line is wiped
    assert text.rsplit("\r", 2)[1].strip() == ""


def test_a_bar_for_one_start_does_not_count_starts(capsys):
    pw.factorize(X, 3, max_iter=50, tol=0, random_state=0, progress=True)
    assert "start" not in capsys.readouterr().err


def test_time_left_is_the_least_that_is_known():
    with Bar(Limits(time_limit=1000.0), 100, 1) as bar:
        assert bar.seconds_left(Record(10, 2.0, 1.0, 1.0)) == pytest.approx(18.0)  # 90 iterations of 0.2 s
        assert bar.seconds_left(Record(10, 500.0, 1.0, 1.0)) == pytest.approx(1000, abs=5)
    with Bar(Limits(), 100, 1) as bar:
        assert bar.seconds_left(Record(1, 2.0, 1.0, 1.0)) is None
    assert [clock_face(t) for t in (5, 65, 3725)] == ["00:05", "01:05", "1:02:05"]


def seen_in_a_terminal(command, folder):
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 150))
    with subprocess.Popen(command, cwd=folder, stdin=follower, stdout=follower, stderr=follower) as process:
        os.close(follower)
        seen = b""
        with suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(leader, 10_000):
                seen += piece
    os.close(leader)
    assert process.returncode == 0
    return seen.decode()


def test_in_a_terminal_and_in_a_log(tmp_path):
    """A process whose standard error is a terminal draws; one that writes to a file does not."""
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-m", "partwise", "fit", "x.npy", "--rank", "3", "--out", "out", "--tol", "1e-9"]
    drawn = seen_in_a_terminal(command, tmp_path)
    assert "partwise   0%|" in drawn
    assert "wrote" in drawn
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
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
