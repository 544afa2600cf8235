"""The site builds without a warning, every page can be reached, and no picture is older than the code that makes it."""

import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import partwise as pw
from docs import pictures

ROOT = Path(__file__).parent.parent
SECTIONS = [
    "start/index",
    "guides/index",
    "gallery/index",
    "api",
    "how/index",
    "benchmarks",
    "coming/index",
    "contributing",
]
ASKED = {
    *("faces", "swimmer", "topics", "cells", "mutational_signatures", "notes", "hyperspectral", "communities"),
    *("robust_faces", "patches", "ratings", "fluorescence", "compression", "rank_counts", "certificates"),
}


def build(folder: Path, *options: str) -> Path:
    """The site, of a copy of what it is made of: examples are not run, and nothing is left in the checkout."""
    copied = shutil.ignore_patterns("api", "gallery", "sounds", "__pycache__")
    for name in ("docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=copied)
    for path in (*ROOT.glob("*.md"), ROOT / "LICENSE"):
        shutil.copy(path, folder)
    for name in ("src", "tests"):
        (folder / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-D", "plot_gallery=0", *options]
    done = subprocess.run([*command, "docs", "site"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


class Links(HTMLParser):
    """Where a page leads, and the anchors on it."""

    def __init__(self, page: Path):
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value and not re.match(r"[a-z]+:|//", value):
                self.targets.add(value)
            if name == "id" and value:
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    pages = {page: Links(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            path, _, anchor = target.partition("#")
            goal = (page.parent / path.partition("?")[0]).resolve() if path else page
            known = goal in pages
            if not goal.exists() or (known and anchor and anchor not in pages[goal].anchors):
                broken.append(f"{page.relative_to(site)}: {target}")
    return broken


def test_pages_build_without_a_warning(tmp_path):
    """No broken link or anchor, no page outside the table of contents, no picture that is not there: all of these are
    warnings. Quickly: nothing is written, and the pages of single names are left to the next test."""
    build(tmp_path, "--builder", "dummy", "--tag", "quick")


@pytest.mark.slow
def test_the_site_builds_and_links_hold(tmp_path):
    site = build(tmp_path, "--jobs", "auto")
    assert not broken_links(site)
    assert (site / "api" / "partwise.factorize.html").is_file()
    assert {f"{section}.html" for section in SECTIONS} <= Links(site / "index.html").targets


def test_a_broken_link_is_seen(tmp_path):
    (tmp_path / "one.html").write_text("<a href='two.html'></a><a href='#there'></a>", encoding="utf-8")
    assert len(broken_links(tmp_path)) == 2


def test_every_public_name_is_in_the_reference():
    listed = set(
        re.findall(r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    modules = {name for name in pw.__all__ if isinstance(getattr(pw, name), type(re))}
    names = set(pw.__all__) - modules
    for module in modules:
        inside = getattr(pw, module)
        names |= {f"{module}.{name}" for name in inside.__all__ if getattr(pw, name, None) is not getattr(inside, name)}
    assert listed == names


def test_what_was_asked_for_is_in_the_gallery():
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} >= ASKED


@pytest.mark.parametrize("name", sorted(pictures.SOURCES))
def test_pictures_are_as_new_as_their_code(name):
    assert pictures.stamp_of(ROOT / "docs" / name) == pictures.fingerprint(name), f"python docs/pictures.py {name}"


def test_every_picture_has_code_that_makes_it():
    assert {path.name for path in (ROOT / "docs").glob("*.png")} == set(pictures.SOURCES)


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert project["version"] == pw.__version__ == re.search(r"^version: (.+)$", citation, flags=re.MULTILINE)[1]
    released = re.search(r"^date-released: (.+)$", citation, flags=re.MULTILINE)[1]
    assert f"## {pw.__version__} ({released})" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
