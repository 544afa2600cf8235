"""Result -> plain dictionary -> page. Nothing is computed in the template."""

from __future__ import annotations

import base64
import io
from importlib.resources import files

import numpy as np

from ..io.write import checked_file, checked_names, summary
from ..metrics import sparsity
from ..problem.parts import diagonal_weight, part_norms
from ..result import Result, plots
from ..result.certificate import Optimality

MOST_PARTS = 100  # pictures on one page
TOP_FEATURES = 10

ENDINGS = {
    "converged": "it reached the stationarity asked for",
    "max_iter": "it used up its iterations",
    "stalled": "its solver had nothing more to do",
    "target": "it reached the target objective",
    "time_limit": "its time was up",
    "callback": "a callback ended it",
    "interrupted": "it was interrupted",
}


def write_report(
    result: Result, path, *, title="Parts", image_shape=None, columns=None, feature_names=None, optimality=None
):
    """Write the page to `path` and return the path. It is one file and needs no network. `columns`: parts in a row."""
    try:
        from jinja2 import Environment  # noqa: PLC0415  # optional
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install 'partwise[report]'") from error
    path = checked_file(path)
    page = build(result, title, image_shape, columns, feature_names=feature_names, optimality=optimality)
    template = files(__package__).joinpath("template.html").read_text(encoding="utf-8")
    path.write_text(Environment(autoescape=True).from_string(template).render(page), encoding="utf-8")
    return path


def build(
    result: Result,
    title: str,
    image_shape=None,
    columns=None,
    *,
    feature_names=None,
    optimality: Optimality | None = None,
) -> dict:
    """Everything the page shows."""
    names = checked_names(feature_names, result)
    plots.check_image_shape(image_shape, result.H.shape[1])  # whether it shows them or not
    plots.check_columns(columns)
    if not isinstance(optimality, Optimality | None):
        raise TypeError(f"optimality must be what result.certify(X) returned, got {optimality!r}")
    about = summary(result, optimality)
    ignored = "" if diagonal_weight(result.symmetric) else "; the diagonal of X does not count"
    return {
        "title": title,
        "headline": f"{' × '.join(map(str, result.shape))} data in {result.rank} parts, {result.quality}",
        "facts": [
            ("loss", about["loss"]),
            *([("model", f"X ~ A A', A being W and H'{ignored}")] if result.symmetric else []),
            *((f"structure of {name}", structure) for name, structure in about["structures"].items()),
            ("solver", f"{result.solver}: {result.reason}"),
            (
                "ended",
                f"after {result.n_iter} iterations and {about['seconds']:.2f} s: {ENDINGS[result.status]}",
            ),
            ("objective", f"{result.objective:.8g}"),
            ("explained", f"{result.explained:.2%} of {result.loss.explains}"),
            ("starts", ", ".join(f"{f:.6g}" for f in result.objectives)),
        ],
        "certificate": str(result.certificate).splitlines() + (str(optimality).splitlines() if optimality else []),
        "good": result.certificate.feasible and result.certificate.stationary,
        "parts": png(plots.parts(result, image_shape, columns)) if result.rank <= MOST_PARTS else None,
        "rank": result.rank,
        "convergence": png(plots.convergence(result)),
        "path": png(plots.path(result)) if result.path else None,
        "steps": [str(step) for step in result.path],
        "table": part_table(result, names),
        "named": names is not None,
    }


def part_table(result: Result, feature_names: list[str] | None) -> list[dict]:
    """One line a part: its share of the fit and, where features have names, those that weigh most in it."""
    sizes = part_norms(result.factors, result.symmetric)
    shares = sizes / sizes.sum() if sizes.sum() > 0 else sizes
    lines = []
    for k, (part, share, sparse) in enumerate(zip(result.H, shares, sparsity(result.H), strict=True)):
        top = np.argsort(-part, kind="stable")[:TOP_FEATURES]
        names = [feature_names[j] for j in top if part[j] > 0] if feature_names is not None else []
        lines.append(
            {
                "part": k,
                "share": f"{share:.1%}",
                "width": f"{share / max(shares.max(), 1e-300):.3f}",
                "samples": f"{np.mean(noticeable(result.W[:, k])):.0%}",
                "features": f"{np.mean(noticeable(part)):.1%}",
                "sparsity": "" if np.isnan(sparse) else f"{sparse:.2f}",
                "top": ", ".join(names),
            }
        )
    return lines


def noticeable(values: np.ndarray) -> np.ndarray:
    """Entries above 1% of the largest."""
    return np.abs(values) > 0.01 * np.abs(values).max()


def png(figure) -> str:
    """A figure as a data address."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
