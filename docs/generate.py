"""Make the parts of the documentation that come from the code; a test checks that they are current.

python docs/generate.py
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

import partwise as pw
from partwise import registry
from partwise import structures as s
from partwise.cli import parser
from partwise.compatibility import EXAMPLES, LOSSES, TIED, automatic, mark, takes_pairs

DOCS = Path(__file__).parent

HEADER = """# What goes with what

Generated from `supports` of each solver (`python docs/generate.py`), for matrices; it is the same for tensors of any
order. A structure stands for all factors here; "with nonnegative": combined as `nonnegative & ...`, which losses other
than least squares and Huber need. The last two columns say what `auto` takes, for a dense and for a sparse X, and below
is why; where a third of X is nonzero it takes `shared_newton` for KL with 20 parts or more, `newton` on large complete
data with 8 or more, and where a whole factor is fixed it takes `newton` for beta < 1. For a sparse X the L1 loss needs
nonnegative factors. Structures that tie entries to each other go with least squares, and stand there only; with Huber
they go by `palm`. `kullback-leibler` is another name for `kl`, and a number stands for the beta-divergence with that
beta: 2 is least squares, 1 is KL, 0 is
Itakura-Saito. `X ~ A A'`, which `symmetric=True` or `"off-diagonal"` states, goes with least squares and a nonnegative
factor, by {symmetric}. With missing entries or weights ([missing.md](missing.md)) all this holds but for `greedy` and
symmetric factors, which need every entry; `newton` then takes least squares, too.

"""


def compatibility() -> str:
    """The table of losses, structures and solvers."""
    solvers = [name for name in registry.SOLVERS if takes_pairs(registry.resolve("solver", name))]
    header = ["loss", "structure", *(f"`{name}`" for name in solvers), "`auto`, dense", "`auto`, sparse"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    reasons = {}
    for loss in LOSSES:
        for name, structure in (EXAMPLES | TIED if loss == "frobenius" else EXAMPLES).items():
            marks = [mark(registry.resolve("solver", solver), loss, structure) for solver in solvers]
            chosen = []
            for X in (np.ones((3, 3)), sparse.csr_array(np.diag(np.ones(3)) + 0.0)):
                taken = automatic(X, loss, structure)
                chosen.append(f"`{taken[0]}`" if taken else "none")
                if taken:
                    reasons[f"`{taken[0]}`, {loss}"] = taken[1]
            lines.append(f"| `{loss}` | `{name}` | {' | '.join(marks + chosen)} |")
    told = [f"- {which}: {reason}." for which, reason in sorted(reasons.items())]
    header_text = HEADER.format(symmetric=", ".join(f"`{name}`" for name in symmetric_solvers()))
    return header_text + "\n".join(lines) + "\n\n" + "\n".join(told) + "\n"


def symmetric_solvers() -> list[str]:
    """Those that take `X ~ A A'`."""
    return [name for name in registry.SOLVERS if registry.resolve("solver", name).symmetric]


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
        path, _, name = match[1].partition(" ")
        code = (DOCS.parent / path).read_text(encoding="utf-8").strip()
        if name:  # one class of it
            code = re.search(rf"@dataclass[^\n]*\nclass {name}\(.*?(?=\n\n\n)", code, flags=re.DOTALL)[0]
        return f"```python\n# {match[1]}\n{code}\n```"

    text = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.sub(r"```python\n# ((?:src|tests)/[^\n]+)\n.*?```", quote, text, flags=re.DOTALL)


PICTURED = {
    "NonNegative()": s.NonNegative(),
    "Box(-0.5, 0.5)": s.Box(-0.5, 0.5),
    "Binary()": s.Binary(),
    "Sparse(2)": s.Sparse(2),
    'Sparse(4, per="component")': s.Sparse(4, per="component"),
    "EqualNonzeros(3)": s.EqualNonzeros(3),
    "Pattern([3, 2, 1], 1)": s.Pattern([3, 2, 1], 1),
    "UnitNorm()": s.UnitNorm(),
    "Simplex()": s.Simplex(),
    "Hoyer(0.7)": s.Hoyer(0.7),
    "GroupSparsity([2, 4], [0.1, 0.7])": s.GroupSparsity([2, 4], [0.1, 0.7]),
    "NonNegative() & OrthogonalTo(0)": s.NonNegative() & s.OrthogonalTo(0),
    "Orthogonal()": s.Orthogonal(),
    "NonNegative() & Orthogonal()": s.NonNegative() & s.Orthogonal(),
    "Monotone()": s.Monotone(),
    "Unimodal()": s.Unimodal(),
    "Smooth(3)": s.Smooth(3.0),
    "Fixed(first part)": s.Fixed(np.linspace(0, 1.5, 14)[:, None]),
    "Columns({5: Sparse(3, ...)})": s.Columns({5: s.Sparse(3, per="component")}),
    "Projection(np.round)": s.Projection(np.round),
}


def structures_picture() -> None:
    """A factor of 14 items and 6 components, and the nearest one of each structure."""
    A = np.random.default_rng(3).normal(scale=0.8, size=(14, 6))
    figure = Figure(figsize=(14, 6), layout="constrained")
    panels = {"some factor: 14 items, 6 components": A}
    panels |= {name: stated.bind(A.shape, False, "W").prox(A, 1.0) for name, stated in PICTURED.items()}
    for ax, (name, image) in zip(figure.subplots(3, 7).ravel(), panels.items(), strict=True):
        ax.imshow(np.where(image == 0, np.nan, image), cmap="RdBu_r", vmin=-1.5, vmax=1.5, aspect="auto")
        ax.set_facecolor("#eeeeee")
        ax.set_title(name, fontsize=7.5)
        ax.set(xticks=[], yticks=[])
    figure.savefig(DOCS / "structures.png", dpi=110)


def digits_picture() -> None:
    digits = pw.datasets.load_digits()
    result = pw.factorize(digits.X, 16, init="random", n_init=3, random_state=0)
    result.plot.parts(digits.image_shape, columns=8).savefig(DOCS / "digits.png", dpi=100)


def report_picture() -> None:
    """The beginning of a page, as a browser shows it; as it is where there is no browser."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("docs/report.png is left as it is: no Chromium on this machine")
        return
    digits = pw.datasets.load_digits()
    result = pw.factorize(digits.X, 10, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        page = result.report(
            Path(folder, "page.html"), title="Handwritten digits", X=digits.X, image_shape=digits.image_shape
        )
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/user"]
        options += ["--window-size=1100,1350", f"--screenshot={DOCS / 'report.png'}"]
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)


def unequal_parts() -> np.ndarray:
    """Eight parts, the strongest seven times as strong as the weakest, and noise of 30%."""
    rng = np.random.default_rng(1)
    signal = rng.gamma(0.5, size=(200, 8)) * np.geomspace(1, 0.15, 8) @ rng.gamma(0.5, size=(8, 100))
    E = rng.normal(size=signal.shape)
    return np.maximum(signal + 0.3 * np.linalg.norm(signal) / np.linalg.norm(E) * E, 0)


def without_zeros() -> np.ndarray:
    """Eight parts that are not unique."""
    rng = np.random.default_rng(1)
    W, H = rng.uniform(size=(100, 8)), rng.uniform(size=(8, 60))
    return W @ H + 0.1 * rng.normal(size=(100, 60))


def rank_pictures() -> None:
    """Searches for the number of parts; those that end differently are in examples/how_many_parts.py."""
    pw.select_rank(unequal_parts(), 13).plot.curve().savefig(DOCS / "rank_curve.png", dpi=100)
    substances = pw.datasets.make_fluorescence(random_state=0).X
    pw.select_rank(substances, 6).plot.stability().savefig(DOCS / "rank_stability.png", dpi=100)
    pw.stability(without_zeros(), 8).plot.parts().savefig(DOCS / "rank_parts.png", dpi=100)


PAGES = {"compatibility.md": compatibility, "guide.md": guide, "../CONTRIBUTING.md": contributing}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
