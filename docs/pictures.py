"""Pictures of the documentation, and the code that makes them: each carries a fingerprint of it, which a test compares.

python docs/pictures.py                    # renew those that are out of date, but for benchmarks
python docs/pictures.py topics.png         # renew this one
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

DOCS = Path(__file__).parent
ROOT = DOCS.parent
KEY = "Source"

# a script that writes the picture, or functions of one
SOURCES = {
    **{f"{name}.png": f"examples/{name}.py" for name in ("communities", "dictionary", "fluorescence", "holes")},
    **{
        f"{name}.png": f"examples/{name}.py" for name in ("how_many_parts", "robust_faces", "school_contacts", "topics")
    },
    "groups.png": "examples/groups_one_at_a_time.py",
    "digits.png": "docs/generate.py digits_picture",
    "report.png": "docs/generate.py report_picture",
    "structures.png": "docs/generate.py structures_picture PICTURED",
    "rank_curve.png": "docs/generate.py rank_pictures unequal_parts without_zeros",
    "rank_parts.png": "docs/generate.py rank_pictures unequal_parts without_zeros",
    "rank_stability.png": "docs/generate.py rank_pictures unequal_parts without_zeros",
    "defaults.png": "benchmarks/defaults.py draw",
    "race.png": "benchmarks/race.py draw",
    "race_kl.png": "benchmarks/race.py draw",
    "mixed_norm.png": "benchmarks/mixed_norm.py draw_faces",
    "mixed_norm_race.png": "benchmarks/mixed_norm.py draw",
    "greedy_slides.png": "benchmarks/greedy.py draw",
    "greedy_bounds.png": "benchmarks/greedy.py draw_bounds",
    "dictionaries.png": "benchmarks/semf.py draw",
    "swimmer.png": "benchmarks/semf.py draw_swimmers",
}


def fingerprint(name: str) -> str:
    """Of the code that makes a picture, comments and the text at the head of a script left out."""
    path, *names = SOURCES[name].split()
    text = (ROOT / path).read_text(encoding="utf-8")
    if names:
        defined = {n: node for node in ast.parse(text).body for n in names_of(node)}
        text = "\n".join(ast.get_source_segment(text, defined[name]) or "" for name in names)
    else:
        text = re.sub(r'\A""".*?"""', "", text, flags=re.DOTALL)
    lines = filter(None, (re.sub(r"(^|\s)# .*", "", line).rstrip() for line in text.splitlines()))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def names_of(node: ast.stmt) -> list[str]:
    """What a statement of a module defines."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def stamp_of(path: Path) -> str:
    """The fingerprint that a picture carries, "" where it has none."""
    with Image.open(path) as image:
        return image.info.get(KEY, "").rpartition(" ")[2]


def stamp(name: str, path: Path | None = None) -> None:
    """Write a picture to its place in docs/, from `path` or as it is there, with the fingerprint of its code."""
    info = PngInfo()
    info.add_text(KEY, f"{SOURCES[name]} {fingerprint(name)}")
    with Image.open(path or DOCS / name) as image:
        image.load()
        image.save(DOCS / name, pnginfo=info, optimize=True)


def renew(name: str) -> None:
    path, *names = SOURCES[name].split()
    if path.startswith("benchmarks/"):
        print(f"{name} is drawn from runs: python -m benchmarks {Path(path).stem}")
    elif names:
        spec = importlib.util.spec_from_file_location("generate", ROOT / path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        getattr(module, names[0])()
        for other, source in SOURCES.items():
            if source == SOURCES[name]:
                stamp(other)
    else:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, str(ROOT / path)], cwd=folder, check=True)
            shutil.copy(Path(folder, f"{Path(path).stem}.png"), DOCS / name)
        stamp(name)


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in SOURCES if stamp_of(DOCS / name) != fingerprint(name)]:
        if len(sys.argv) > 1 or stamp_of(DOCS / name) != fingerprint(name):
            renew(name)
