"""How the site is built: `make site`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from site_extension import Files  # noqa: E402

project, author, copyright = "partwise", "The partwise developers", "2026, the partwise developers"
version = release = re.search('__version__ = "(.+)"', (DOCS.parent / "src/partwise/__init__.py").read_text())[1]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "site_extension",
]
templates_path = ["_templates"]
html_static_path = ["_static"]
exclude_patterns = ["sg_execution_times.rst", "gallery/sg_execution_times.rst"]
root_doc = "index"
language = "en"
default_role = "py:obj"  # single backticks in docstrings: a link where there is a page

# pages: Markdown, with anchors as a forge makes them
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# reference: one page for each public name; methods only where users call them
quick = tags.has("quick")  # noqa: F821  # `sphinx -t quick`: without the pages of single names
autosummary_generate = not quick
autosummary_context = {
    "with_members": {
        f"partwise.{name}"
        for name in (
            *("NMF", "NTF", "Dictionary", "MiniBatchNMF", "Result", "RankSelection", "Stability", "Holdout"),
            *("Table", "LazyMatrix", "SparseTensor", "losses.Loss", "structures.Structure", "solvers.Solver"),
            *("init.Init", "selection.Method", "selection.Split"),
        )
    },
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "partwise"
html_css_files = ["partwise.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "benchmarks": [], "contributing": [], "api": []}


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "image_scrapers": (Files(),),
    "reset_modules": (),
    "within_subsection_order": "ExampleTitleSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": True,
    "min_reported_time": 0,
    "thumbnail_size": (400, 280),
    "default_thumb_file": str(DOCS / "digits.png"),
}
