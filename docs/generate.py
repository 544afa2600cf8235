"""Make the parts of the documentation that come from the code; a test checks that they are current.

python docs/generate.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

import partwise as pw
from partwise import registry
from partwise import structures as s
from partwise.cli import parser
from partwise.data import as_data
from partwise.problem import pose

DOCS = Path(__file__).parent

EXAMPLES = {
    "nonnegative": s.NonNegative(),
    "free": s.Free(),
    "l1": s.L1(1.0),
    "l2": s.L2(1.0),
    "elastic": s.Elastic(1.0, 1.0),
    "box": s.Box(-1, 1),
    "fixed": s.Fixed(np.where(np.eye(3) > 0, 1.0, np.nan)),
}

HEADER = """# What goes with what

Generated from `supports` of each solver (`python docs/generate.py`). A structure stands for both factors here.
"with nonnegative": combined as `nonnegative & ...`, on nonnegative data. `auto` takes the leftmost solver that applies.

"""


def compatibility() -> str:
    """The table of losses, structures and solvers."""
    solvers = sorted(registry.SOLVERS, key=lambda name: -registry.SOLVERS[name]().prefer(None)[0])
    lines = [f"| loss | structure | {' | '.join(solvers)} |", "|---" * (len(solvers) + 2) + "|"]
    for loss, make_loss in registry.LOSSES.items():
        for name in registry.STRUCTURES:
            marks = [mark(registry.SOLVERS[solver](), make_loss(), EXAMPLES[name]) for solver in solvers]
            lines.append(f"| {loss} | `{name}` | {' | '.join(marks)} |")
    reasons = [f"- `{name}`: {registry.SOLVERS[name]().prefer(None)[1]}." for name in solvers]
    return HEADER + "\n".join(lines) + "\n\n" + "\n".join(reasons) + "\n"


def mark(solver, loss, structure) -> str:
    for text, stated in (("yes", structure), ("with nonnegative", s.NonNegative() & structure)):
        problem = pose(as_data(np.ones((3, 3))), loss, (stated, stated), 3)
        if solver.supports(problem) is None:
            return text
    return "no"


def command_line_help() -> str:
    """`partwise fit --help`, as it is printed 100 columns wide."""
    os.environ["COLUMNS"] = "100"
    fit = parser()._subparsers._group_actions[0].choices["fit"]
    return fit.format_help()


def guide() -> str:
    """The guide with its generated block renewed."""
    text = (DOCS / "guide.md").read_text(encoding="utf-8")
    begin, end = "<!-- generated: partwise fit --help -->\n", "<!-- end -->"
    before, rest = text.split(begin)
    return before + begin + "\n```text\n" + command_line_help() + "```\n\n" + end + rest.split(end)[1]


def contributing() -> str:
    """CONTRIBUTING.md with the files it quotes renewed."""

    def quote(match: re.Match) -> str:
        code = (DOCS.parent / match[1]).read_text(encoding="utf-8").strip()
        return f"```python\n# {match[1]}\n{code}\n```"

    text = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.sub(r"```python\n# (src/\S+)\n.*?```", quote, text, flags=re.DOTALL)


def digits_picture() -> None:
    digits = pw.datasets.load_digits()
    result = pw.factorize(digits.X, 16, init="random", n_init=3, random_state=0)
    result.plot.parts(digits.image_shape, columns=8).savefig(DOCS / "digits.png", dpi=100)


PAGES = {"compatibility.md": compatibility, "guide.md": guide, "../CONTRIBUTING.md": contributing}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
    digits_picture()
