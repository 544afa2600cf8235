"""What the documentation shows runs, and what is generated is current."""

import doctest
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
WITH_EXAMPLES = [str(path.relative_to(ROOT)) for path in DOCS if ">>> " in path.read_text(encoding="utf-8")]
QUICK = {"README.md", "docs/start/five_minutes.md", "docs/start/recipes.md"}
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"]
PAGES += [str(path.relative_to(ROOT)) for path in DOCS]


def quick_or_slow(page):
    """`make test` runs what a visitor tries first, `make test-all` all pages."""
    return page if page in QUICK else pytest.param(page, marks=pytest.mark.slow)


@pytest.mark.parametrize("page", [quick_or_slow(page) for page in ("README.md", *WITH_EXAMPLES)])
def test_examples_on_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failures, tests = doctest.testfile(str(ROOT / page), module_relative=False)
    assert failures == 0
    assert tests > 0


@pytest.mark.parametrize("page", ["compatibility.md", "guide.md", "../CONTRIBUTING.md"])
def test_generated_pages_are_current(page):
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == generate.PAGES[page](), "run make docs"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{page} links to {target}"
