"""The page says what the result says."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import partwise as pw
from partwise.cli import main
from partwise.cli.page import labels_in
from partwise.data.names import Mode
from partwise.datasets import make_parts, make_swimmer
from partwise.io import write_result
from partwise.report import build
from partwise.result.forms import distinctive

X = make_parts(30, 12, 3, random_state=0).X
RESULT = pw.factorize(X, 3, random_state=0)
WIDE = pw.factorize(X, 101, structure_H="nonnegative & l1(1)", max_iter=1, tol=0, random_state=0)


@pytest.mark.usefixtures("plain_pictures")
def test_build_is_plain_facts():
    page = build(RESULT, "Title", feature_names=[f"f{j}" for j in range(12)])
    assert page["headline"].startswith("30 × 12 data in 3 parts")
    assert page["quality"]["good"]
    lines = page["found"]["table"]["lines"]
    assert len(lines) == len(page["found"]["cards"]) == 3
    assert lines[0]["top"][0].split(", ")[0] == f"f{np.argmax(distinctive(RESULT.factors[1])[:, 0])}"
    first = page["found"]["cards"][0]["modes"][0]["sides"][0]["entries"][0]
    assert first["name"] == f"f{np.argmax(RESULT.H[0])}"
    assert sum(float(line["share"].rstrip("%")) for line in lines) == pytest.approx(100, abs=0.3)


def test_page_is_one_file_and_escapes_names(tmp_path):
    names = ["<script>alert(1)</script>"] * 12
    path = RESULT.report(tmp_path / "page.html", title="A & B <b>", feature_names=names)
    text = path.read_text()
    assert "<script>alert" not in text
    assert "A &amp; B &lt;b&gt;" in text
    assert "http" not in text.replace("http-equiv", "")


BAD = {
    "too few names": ({"feature_names": ["a"] * 3}, "must name every feature once: there are 12, and 3 names"),
    "too many names": ({"feature_names": ["a"] * 13}, "there are 12, and 13 names"),
    "names in one text": ({"feature_names": "abcdefghijkl"}, "must be a list of text"),
    "no names": ({"feature_names": 12}, "must be a list of text"),
    "not text": ({"feature_names": [*"abcdefghijk", None]}, "must be text, got None"),
    "pixels": ({"image_shape": (3, 5)}, r"\(3, 5\) has 15 pixels, a part has 12: height times width"),
    "three sides": ({"image_shape": (3, 2, 2)}, "pair of whole numbers"),
    "negative sides": ({"image_shape": (-3, -4)}, "pair of whole numbers"),
    "sides not whole": ({"image_shape": (3.0, 4.0)}, "pair of whole numbers"),
    "no columns": ({"columns": 0}, "columns, the parts in a row, must be a whole number >= 1"),
    "half columns": ({"columns": 1.5}, "columns, the parts in a row, must be a whole number >= 1"),
    "bound": ({"optimality": 0.5}, r"what result.certify\(X\) returned"),
}


@pytest.mark.parametrize("rank", [3, 101])  # of which only the first has a picture
@pytest.mark.parametrize("options, message", BAD.values(), ids=BAD)
def test_what_does_not_fit_the_result_is_refused(options, message, rank, tmp_path):
    result = RESULT if rank == 3 else WIDE
    with pytest.raises((ValueError, TypeError), match=message):
        result.report(tmp_path / "page.html", **options)
    assert not list(tmp_path.iterdir())
    if "feature_names" in options:
        with pytest.raises((ValueError, TypeError), match=message):
            write_result(result, tmp_path / "out", **options)
        assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("plain_pictures")
@pytest.mark.parametrize("names", [tuple("abcdefghijkl"), np.array([*"abcdefghijkl"]), pd.RangeIndex(12)], ids=str)
def test_names_as_people_have_them(names, tmp_path):
    write_result(RESULT, tmp_path, feature_names=names)
    modes = json.loads((tmp_path / "result.json").read_text())["modes"]
    assert modes[1]["labels"] == [str(name) for name in names]
    assert build(RESULT, "Title", feature_names=names)["found"]["table"]["named"] == ["tells it apart: features"]


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    places = {
        tmp_path / "none" / "page.html": "there is no folder .*, make it first",
        tmp_path: "it is a folder, name a file in it",
    }
    for path, message in places.items():
        with pytest.raises(ValueError, match=f"^cannot write .*: {message}"):
            RESULT.report(path)
    with pytest.raises(TypeError, match=r"a path must be text or a pathlib\.Path, got None"):
        RESULT.report(None)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is not a folder, or not one to write in"):
        write_result(RESULT, tmp_path / "file" / "out")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="you may not write there, name another place"):
        RESULT.report(tmp_path / "page.html")
    with pytest.raises(ValueError, match="not one to write in"):
        write_result(RESULT, tmp_path / "out")


@pytest.mark.usefixtures("plain_pictures")
def test_unfinished_runs_are_not_painted_green():
    with pytest.warns(match="Maximum number of iterations"):
        unfinished = pw.factorize(make_parts(30, 12, 3, noise=0.2, random_state=0).X, 3, max_iter=2, tol=1e-9)
    quality = build(unfinished, "Title")["quality"]
    assert not quality["good"]
    assert any("has not converged within the iterations allowed" in one["text"] for one in quality["statements"])


def test_pictures():
    assert len(RESULT.plot.parts(image_shape=(3, 4)).axes) >= 3
    assert len(RESULT.plot.parts().axes) == 3
    assert len(RESULT.plot.convergence().axes) == 2
    with pytest.raises(ValueError, match="has 9 pixels, a part has 12"):
        RESULT.plot.parts(image_shape=(3, 3))


@pytest.mark.parametrize("missing, message", [("jinja2", "report needs jinja2"), ("matplotlib", "pictures need")])
def test_missing_extras_name_the_install_line(missing, message, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=message) as caught:
        RESULT.report(tmp_path / "page.html")
    assert "pip install 'partwise[report]'" in str(caught.value)


def test_demo(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 0
    about = json.loads((tmp_path / "demo" / "result.json").read_text())
    assert about["shape"] == [256, 1024]
    assert about["relative_error"] < 1e-3
    assert "report.html" in capsys.readouterr().out
    parts, swimmer = np.load(tmp_path / "demo" / "H.npy"), make_swimmer()
    cosine = swimmer.H @ parts.T / np.outer(*(np.linalg.norm(A, axis=1) for A in (swimmer.H, parts)))
    assert (cosine.max(axis=1) > 0.99).all()  # every part is found
    place = cosine.argmax(axis=0)
    limbs = place[:16].reshape(4, 4) // 4
    assert (limbs == limbs[:, :1]).all()  # one limb in each group of four
    assert place[16] == 16  # the torso last


def test_no_line_is_drawn_where_a_solver_gives_no_stationarity():
    first, *_, last = RESULT.history
    unknown = [first._replace(n_iter=n, time=n / 10, stationarity=np.inf) for n in range(1, 60)]
    history = (first, *unknown, last._replace(n_iter=60, time=6.0))
    line = replace(RESULT, history=history).plot.convergence().axes[1].lines[0]
    assert np.isfinite(line.get_ydata()).sum() == 2
    assert len(line.get_ydata()) == 61
    assert line.get_marker() == "."


@pytest.mark.slow
def test_a_page_of_100000_samples_is_small(tmp_path):
    rng = np.random.default_rng(0)
    factors = rng.gamma(0.3, size=(100_000, 20)), rng.gamma(0.1, size=(30_000, 20))
    modes = (
        Mode("cells", tuple(f"cell {i}" for i in range(100_000))),
        Mode("genes", tuple(f"G{j}" for j in range(30_000))),
    )
    result = replace(RESULT, factors=factors, modes=modes)
    page = result.report(tmp_path / "page.html", labels=rng.integers(0, 8, 100_000))
    assert page.stat().st_size < 5e6
    assert "cell 9" in page.read_text()


NAMES = tuple(f"s{i}" for i in range(4))
LABELS = {
    "a line each": ("red\nblue\nred\nblue\n", None),
    "with a heading": ("colour\nred\nblue\nred\nblue\n", NAMES),
    "one of them empty": ("red\n\nred\nblue\n", None),
    "by name": ("s3,blue\ns2,red\ns1,blue\ns0,red\n", NAMES),
    "by name, with a heading": ("sample\tcolour\ns0\tred\ns1\tblue\ns2\tred\ns3\tblue", NAMES),
}


@pytest.mark.parametrize("text, names", LABELS.values(), ids=LABELS)
def test_labels_of_samples_in_files(text, names, tmp_path):
    (tmp_path / "labels.csv").write_text(text)
    expected = ["red", "" if "\n\n" in text else "blue", "red", "blue"]
    assert labels_in(str(tmp_path / "labels.csv"), 4, names) == expected


def test_a_page_is_whole_or_not_there(tmp_path, monkeypatch, plain_pictures):
    (tmp_path / "page.html").write_text("earlier")
    monkeypatch.setattr(Path, "write_text", lambda self, *_, **__: self.write_bytes(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        RESULT.report(tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_bytes() == b"earlier"


WRONG_LABELS = {
    "s0,red\ns2,blue\n": ("2 of 4 samples have no label, 's1' for one", NAMES),
    "s0,red\ns1,a\ns2,b\ns3,c\ns0,blue\n": ("a name stands more than once", NAMES),
    "a,red\nb,blue\nc,red\nd,blue\n": ("the samples of X have no names: list labels alone", None),
    "red\nblue\nred\nblue\nred\n": ("it has 5 labels, and there are 4 samples", None),
}


@pytest.mark.parametrize("text", WRONG_LABELS)
def test_labels_that_are_no_labels(text, tmp_path):
    message, names = WRONG_LABELS[text]
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        labels_in(str(tmp_path / "labels.csv"), 4, names)


def test_the_page_of_a_saved_result(tmp_path, monkeypatch, plain_pictures):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, index=[f"s{i}" for i in range(30)]).to_csv("x.csv")
    (tmp_path / "labels.csv").write_text("red\nblue\n" * 15)
    labels = ["--labels", "labels.csv"]
    assert main(["fit", "x.csv", "--rank", "3", "--out", "out", "--show", "list", *labels]) == 0
    group = '<th scope="row">blue</th><td class="number">15</td>'
    assert group in (tmp_path / "out" / "report.html").read_text()
    assert main(["report", "out/model.partwise", "x.csv", "--out", "again.html", *labels]) == 0
    page = (tmp_path / "again.html").read_text()
    assert group in page
    assert "Where the model fails" in page
    assert main(["report", "out/model.partwise", "--out", "brief.html"]) == 0
    assert "<h3>Where the model fails" not in (tmp_path / "brief.html").read_text()


@pytest.mark.parametrize(
    "text, message",
    [(b"red\n" * 7, "it has 7 labels, and there are 30 samples"), (b"\xff", "cannot be read as labels")],
)
def test_labels_that_do_not_fit_are_refused_before_the_fit(text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    (tmp_path / "labels.txt").write_bytes(text)
    assert main(["fit", "x.npy", "--rank", "3", "--out", "out", "--labels", "labels.txt"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
