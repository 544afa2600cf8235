"""Pages with a block that is made by running something."""

import os
from pathlib import Path

from docs import pictures

CODE = Path(__file__).parents[1]
# where pages and pictures are written; a quick trial has a copy of them
ROOT = Path(os.environ.get("PARTWISE_BENCH_PAGES", CODE))
pictures.DOCS = ROOT / "docs"
END = "<!-- end -->"


def renew(page: str, block: str, text: str) -> None:
    """Replace what stands between the marks of a block."""
    path, begin = ROOT / page, f"<!-- generated: python -m benchmarks {block} -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def table(header: list[str], lines: list[list]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
