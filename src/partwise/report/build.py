"""Result -> plain dictionary -> page. Nothing is computed in the template."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np

from ..data.names import SAMPLES_AND_FEATURES, Mode, counted, factor_names, matrix_only
from ..io.write import checked_file, summary, with_names
from ..metrics import sparsity
from ..problem.parts import diagonal_weight
from ..result import Result, plots
from ..result.certificate import Optimality

MOST_PARTS = 100  # pictures on one page
MOST_CURVES = 120  # in the picture of all modes
TOP_LABELS = 10

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

    def page() -> dict:
        fit = build(result, title, image_shape, columns, feature_names=feature_names, optimality=optimality)
        return {"title": title, "fit": fit}

    return write_page(path, "result.html", page)


def write_page(path, template: str, page: Callable[[], dict]) -> Path:
    """A template of this folder, filled in with what `page` makes once it is clear that it can be written."""
    try:
        from jinja2 import Environment, FunctionLoader  # noqa: PLC0415  # optional
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install 'partwise[report]'") from error
    path = checked_file(path)
    loader = FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8"))
    filled = Environment(autoescape=True, loader=loader).get_template(template).render(page())
    path.write_text(filled, encoding="utf-8")
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
    modes = named_modes(result, feature_names)
    check_pictures(result, image_shape, columns)
    if not isinstance(optimality, Optimality | None):
        raise TypeError(f"optimality must be what result.certify(X) returned, got {optimality!r}")
    about = summary(result, optimality)
    return {
        "title": title,
        "headline": f"{' × '.join(map(str, result.shape))} data{result.kind} in {counted(result.rank, 'part')}, "
        f"{result.quality}",
        "facts": [
            ("loss", about["loss"]),
            *([("model", symmetric_model(result))] if result.symmetric else []),
            *([("entries", entries_that_count(result))] if result.observed else []),
            *((f"structure of {name}", structure) for name, structure in about["structures"].items()),
            ("solver", f"{result.solver}: {result.reason}"),
            (
                "ended",
                f"after {result.n_iter} iterations and {about['seconds']:.2f} s: {ENDINGS[result.status]}",
            ),
            ("objective", f"{result.objective:.8g}"),
            ("explained", f"{result.explained:.2%} of {result.loss.explains}"),
            ("starts", ", ".join(f"{f:.6g}" for f in result.objectives)),
            *provenance_facts(result),
        ],
        "certificate": str(result.certificate).splitlines() + (str(optimality).splitlines() if optimality else []),
        "good": result.certificate.feasible and result.certificate.stationary,
        "parts": parts_picture(result, image_shape, columns),
        "rank": result.rank,
        "convergence": png(plots.convergence(result)),
        "path": png(plots.path(result)) if result.path else None,
        "steps": [str(step) for step in result.path],
        "modes": [mode.name for mode in modes],
        "named": [mode.name for mode in modes if mode.labels is not None],
        "matrix": len(modes) == 2,
        "table": part_table(result, modes),
    }


def provenance_facts(result: Result) -> list[tuple[str, str]]:
    """How the result came about, and what tells its data from others."""
    if result.provenance is None:  # of an earlier version
        return []
    data = ", ".join(f"{name} {value}" for name, value in result.provenance.data.items() if value is not None)
    return [("made by", result.provenance.sentence), ("data", data)]


def symmetric_model(result: Result) -> str:
    """What the factors are where they are one."""
    model = "X ~ A A', A being W and H'" if len(result.shape) == 2 else "X ~ [[A, ..., A]], A being all factors"
    return model + ("" if diagonal_weight(result.symmetric) else "; the diagonal of X does not count")


def entries_that_count(result: Result) -> str:
    """How many entries of X are observed, and whether weights say how much they count."""
    seen, every = result.n_observed, math.prod(result.shape)
    told = f"{seen:,} of {every:,} observed; the others are missing, and count neither in the fit nor in errors"
    weighted = "the loss of each is multiplied by its weight"
    return "; ".join([*([told] if result.n_missing else []), *([weighted] if result.weighted else [])])


def named_modes(result: Result, feature_names) -> tuple[Mode, ...]:
    """The modes as the page calls them, with labels where there are any."""
    usual = SAMPLES_AND_FEATURES if len(result.shape) == 2 else factor_names(len(result.shape))
    return with_names(result, feature_names).modes or tuple(map(Mode, usual))


def check_pictures(result: Result, image_shape, columns) -> None:
    """Whether parts can be shown so, whether they are shown or not."""
    for name, value in {"image_shape": image_shape, "columns": columns}.items():
        if value is not None and (why := matrix_only(name, len(result.shape))):
            raise ValueError(f"{why}: all modes are shown in one picture")
    if image_shape is not None:
        plots.check_image_shape(image_shape, result.H.shape[1])
    plots.check_columns(columns)


def parts_picture(result: Result, image_shape, columns) -> str | None:
    """The parts of a matrix, or all modes of a tensor, if they are not too many."""
    if len(result.shape) == 2:
        return png(plots.parts(result, image_shape, columns)) if result.rank <= MOST_PARTS else None
    return png(plots.modes(result)) if result.rank * len(result.shape) <= MOST_CURVES else None


def part_table(result: Result, modes: tuple[Mode, ...]) -> list[dict]:
    """One line a part: its share of the fit, how much of each mode it uses and, where modes have labels, those that
    weigh most in it."""
    shares = result.shares
    sparse = sparsity(result.factors[-1].T)
    labelled = [(mode.labels, A) for mode, A in zip(modes, result.factors, strict=True) if mode.labels is not None]
    return [
        {
            "part": k,
            "share": f"{share:.1%}",
            "width": f"{share / max(shares.max(), 1e-300):.3f}",
            "used": [f"{np.mean(noticeable(A[:, k])):.1%}" for A in result.factors],
            "sparsity": "" if np.isnan(sparse[k]) else f"{sparse[k]:.2f}",
            "top": [", ".join(heaviest(A[:, k], labels)) for labels, A in labelled],
        }
        for k, share in enumerate(shares)
    ]


def heaviest(part: np.ndarray, labels: tuple) -> list[str]:
    """The labels of the largest entries, of those that are positive; of numbers, whose neighbours say the same, one."""
    count = TOP_LABELS if any(isinstance(label, str) for label in labels) else 1
    return [str(labels[j]) for j in np.argsort(-part, kind="stable")[:count] if part[j] > 0]


def noticeable(values: np.ndarray) -> np.ndarray:
    """Entries above 1% of the largest."""
    return np.abs(values) > 0.01 * np.abs(values).max()


def png(figure) -> str:
    """A figure as a data address."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
