"""The page says what the result says."""

import sys

import numpy as np
import pytest

import partwise as pw
from partwise.datasets import make_parts
from partwise.report import build

RESULT = pw.factorize(make_parts(30, 12, 3, random_state=0).X, 3, random_state=0)


def test_build_is_plain_facts():
    page = build(RESULT, "Title", image_shape=(3, 4), feature_names=[f"f{j}" for j in range(12)])
    assert page["headline"].startswith("30 × 12 data in 3 parts")
    assert page["good"]
    assert len(page["table"]) == 3
    heaviest = page["table"][0]["top"].split(", ")
    assert heaviest[0] == f"f{np.argmax(RESULT.H[0])}"
    assert sum(float(line["share"].rstrip("%")) for line in page["table"]) == pytest.approx(100, abs=0.3)


def test_page_is_one_file_and_escapes_names(tmp_path):
    names = ["<script>alert(1)</script>"] * 12
    path = RESULT.report(tmp_path / "page.html", title="A & B <b>", feature_names=names)
    text = path.read_text()
    assert "<script>" not in text
    assert "A &amp; B &lt;b&gt;" in text
    assert "http" not in text.replace("http-equiv", "")


def test_unfinished_runs_are_not_painted_green():
    with pytest.warns(match="Maximum number of iterations"):
        unfinished = pw.factorize(make_parts(30, 12, 3, noise=0.2, random_state=0).X, 3, max_iter=2, tol=1e-9)
    assert not build(unfinished, "Title")["good"]


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
