"""What the site needs beyond Sphinx: files outside docs/ as pages, what examples wrote, formulas without scripts."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from docutils.nodes import SkipNode, math_block
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx_gallery.scrapers import figure_rst

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# files outside docs/ that are pages of the site
PAGES = {"benchmarks": "benchmarks/README.md", "contributing": "CONTRIBUTING.md", "changes": "CHANGELOG.md"}
PAGES |= {"security": "SECURITY.md"}
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)]*)?\))")


class Files:
    """What an example wrote: pictures, and sounds to be played on its page."""

    def __repr__(self) -> str:  # compared between builds
        return "Files"

    def __call__(self, block, block_vars, gallery_conf) -> str:
        folder, paths, sounds = Path(block_vars["src_file"]).parent, block_vars["image_path_iterator"], []
        pictures = []
        for path in sorted(folder.glob("*.png")):
            shutil.move(path, target := next(paths))
            pictures.append(target)
        for path in sorted(folder.glob("*.wav")):
            (DOCS / "_static" / "sounds").mkdir(exist_ok=True)
            shutil.move(path, DOCS / "_static" / "sounds" / path.name)
            sounds.append(f"<p>{path.name}<br><audio controls src='../_static/sounds/{path.name}'></audio></p>")
        played = "\n.. raw:: html\n\n    " + "\n    ".join(sounds) + "\n" if sounds else ""
        return (figure_rst(pictures, gallery_conf["src_dir"]) if pictures else "") + played


def on_site(text: str, folder: Path, page: Path) -> str:
    """Links of a file in `folder`, seen from the root, as links of `page`: what is a page goes by its name there."""
    pages = {ROOT / path: DOCS / f"{name}.md" for name, path in PAGES.items()}

    def linked(match: re.Match) -> str:
        target = Path(os.path.normpath(ROOT / folder / match[2]))
        target = pages.get(target, target)
        if target.parent == ROOT / "examples" and target.suffix == ".py":
            target = DOCS / "gallery" / f"{target.stem}.rst"
        up = "../" * (len(page.parts) - 1)
        inside = target.is_relative_to(DOCS)
        return (
            match[1] + up + (str(target.relative_to(DOCS)) if inside else f"../{target.relative_to(ROOT)}") + match[3]
        )

    return LINK.sub(linked, text)


def read(app, docname: str, source: list[str]) -> None:
    """Pages as files of the repository have them, with links for the site."""
    path = Path(app.env.doc2path(docname, base=False))
    if path.suffix != ".md":
        return
    origin = Path(PAGES.get(docname, Path("docs") / path))
    text = (ROOT / origin).read_text(encoding="utf-8") if docname in PAGES else source[0]
    if not app.config.autosummary_generate:
        text = re.sub(r"```{eval-rst}.*?```", "", text, flags=re.DOTALL)  # tables of names without their pages
    text = text.replace("\n\n```\n", "\n```\n")  # the empty line that ends a doctest
    source[0] = on_site(text, origin.parent, path)


def write_math(self, node) -> None:
    """Formulas as MathML, which browsers show without scripts from elsewhere."""
    self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, math_block)))
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
