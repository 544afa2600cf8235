"""The page in a real browser: its controls work, nothing fails, and everybody can read it."""

import base64
import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import partwise as pw

from .browser import DARK, LIGHT, needs_browser, use

FILES = Path(__file__).parent / "files"
HOSTILE = [
    "</script><script>window.owned = 1</script>",
    '"><img src=x onerror="window.owned = 1">',
    "a & b <b>",
    "${1}",
]


def of_text():
    rng = np.random.default_rng(0)
    words = [*HOSTILE, *(f"word {j}" for j in range(200))]
    rates = rng.gamma(0.1, size=(5, len(words)))
    X = rng.poisson(rng.dirichlet(np.full(5, 0.2), 90) @ rates * 4)
    modes = {"documents": [f"<i>{i}</i>" for i in range(90)], "words": words}
    result = pw.factorize(X, 5, loss="kl", init="random", n_init=3, modes=modes, random_state=0)
    return result, {"X": X, "labels": ["<u>sport</u>", "art", "trade"] * 30}


def of_genes():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.3, size=(40, 24)) @ rng.gamma(0.1, size=(24, 500)))
    modes = {"cells": None, "genes": [f"GENE{j}" for j in range(500)]}
    return pw.factorize(X, 24, loss="kl", modes=modes, max_iter=30, tol=1e-2, random_state=0), {}


def of_images():
    digits = pw.datasets.load_digits()
    result = pw.factorize(digits.X[:300], 9, random_state=0)
    words = {"X": digits.X[:300], "image_shape": digits.image_shape, "optimality": result.certify(digits.X[:300])}
    return result, words


def of_spectra():
    rng = np.random.default_rng(0)
    nm = np.linspace(400, 700, 120)
    parts = np.exp(-np.square((nm - np.array([[450], [530], [640]])) / 40))
    X = rng.uniform(size=(60, 3)) @ parts
    modes = {"minutes": np.arange(60) / 2, "nm": nm}
    return pw.factorize(X, 3, modes=modes, random_state=0), {"X": X}


def of_a_tensor():
    T = pw.datasets.make_fluorescence(random_state=0).X
    modes = {"mixture": list("abcde"), "emission": range(T.shape[1]), "excitation": range(T.shape[2])}
    return pw.factorize(T, 3, modes=modes, random_state=0), {"X": T}


def of_a_network():
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(30, 30)) < 0.3).astype(float)
    names = [f"node {i}" for i in range(30)]
    modes = {"nodes": names, "same nodes": names}
    return pw.factorize(X + X.T, 3, symmetric=True, modes=modes, random_state=0), {}


def one_at_a_time():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 12))
    return pw.factorize(X, 3, solver="greedy", random_state=0), {"X": X}


KINDS = [of_text, of_genes, of_images, of_spectra, of_a_tensor, of_a_network, one_at_a_time]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    @functools.cache
    def made(kind):
        result, words = kind()
        return result.report(tmp_path_factory.mktemp("page") / "page.html", **words)

    return made


READABLE = (FILES / "readable.js").read_text(encoding="utf-8")


@needs_browser
@pytest.mark.parametrize(
    "kind, size, scheme",
    [
        pytest.param(kind, size, scheme, id=f"{kind.__name__}-{name}", marks=marks)
        for kind in KINDS
        for name, size, scheme in (("desk", (1100, 900), LIGHT), ("phone, dark", (500, 900), DARK))
        for marks in ([] if (kind, scheme) == (of_text, DARK) else [pytest.mark.slow],)
    ],
)
def test_everybody_can_read_it(page, kind, size, scheme):
    seen = use(page(kind), READABLE, size, scheme)
    assert seen["mistakes"] == []
    assert seen["faint"] == []
    assert seen["nameless"] == []
    assert seen["doubled"] == seen["dangling"] == seen["clipped"] == []
    assert seen["texts"] > 40
    assert seen["width"][0] <= seen["width"][1]
    assert seen["headings"][:2] == ["H1", "H2"]
    assert seen["owned"] == seen["unloaded"] == 0
    assert (seen["ink"] == "rgb(26, 32, 44)") == (scheme == LIGHT)


USED = (FILES / "used.js").read_text(encoding="utf-8")


@needs_browser
def test_controls(page):
    seen = use(page(of_text), USED)
    assert seen["mistakes"] == []
    falling = list(map(float, seen["falling"]))
    assert falling == sorted(falling, reverse=True)
    assert list(map(float, seen["rising"])) == sorted(falling)
    assert seen["sorted"] == "ascending"
    assert seen["pressed"] == ["false", "true", "false", "false", "false"]
    assert seen["faded"] == [f"codes-{k}" for k in (1, 3, 4, 5)]
    assert set(seen["picked"]) == {"2"}
    assert seen["after"] == 0
    assert seen["by_key"] == ["part-1"]
    assert (seen["specific"], seen["sides_after"]) == (0, 0)
    assert seen["specific_after"] == 5
    assert seen["one"][0][0] == "word 17"
    assert [row[0] for row in seen["hostile"]] == [HOSTILE[0]]
    assert seen["none"] == 0
    assert "no such word" in seen["said"]
    assert seen["many"] == 20
    assert seen["owned"] == 0


def test_weights_of_the_search_are_those_of_the_result(page):
    """What the page decodes: two bytes an entry, relative to the largest of its part."""
    result, _ = of_text()
    text = page(of_text).read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="search-data">(.*?)</script>', text, re.DOTALL)[1])
    found = np.frombuffer(base64.b64decode(data["weights"]), "<u2").reshape(-1, data["rank"]) / 65535
    kept = result.H.max(axis=0) > 0
    assert len(found) == np.count_nonzero(kept) == len(data["names"])
    relative = (result.H / result.H.max(axis=1, keepdims=True)).T[kept]
    assert found == pytest.approx(relative, abs=2e-5)


@needs_browser
def test_the_page_is_whole_without_scripts(page):
    """Parts, pictures and tables are in the page itself, and controls that need scripts do not show."""
    script = """(seen) => {
      const shown = (e) => e.getClientRects().length > 0, all = (query) => [...document.querySelectorAll(query)];
      seen.controls = all(".scripted").filter(shown).length;
      seen.images = all(".card img").filter(shown).length;
      document.querySelector('input[value="specificity"]').click();
      seen.special = all(".card div.specificity img").filter(shown).length;
      seen.pictures = all("main svg").filter(shown).length;
    }"""
    seen = use(page(of_images), script, scripts=False)
    assert seen["mistakes"] == []
    assert seen["controls"] == 0
    assert seen["images"] == seen["special"] == 9
    assert seen["pictures"] >= 2
