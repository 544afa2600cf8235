"""Result -> plain dictionary -> page. Nothing is computed in the template."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Data
from ..data.names import Mode, counted, factor_names, matrix_only
from ..io.archive import replacing
from ..io.write import checked_file, with_names
from ..losses import Loss
from ..problem.parts import diagonal_weight
from ..result import Result
from ..result.certificate import Optimality
from ..result.plots.base import check_columns, named_modes
from ..result.plots.parts import check_image_shape
from ..result.residual import data_of
from ..structures import NonNegative
from .found import found, telling
from .holders import holders
from .quality import course, failures, quality


def write_report(result: Result, path, *, title: str = "Parts", **options) -> Path:
    """Write the page to `path` and return the path; the options are those of `build`, see `Result.report`."""
    return write_page(path, "result.html", lambda: {"title": title, "fit": build(result, title, **options)})


def write_page(path, template: str, page: Callable[[], dict]) -> Path:
    """A template of this folder, filled in with what `page` makes once it is clear that it can be written."""
    try:
        from jinja2 import Environment, FunctionLoader  # noqa: PLC0415  # optional
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install 'partwise[report]'") from error
    path = checked_file(path)
    loader = FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8"))
    environment = Environment(autoescape=True, loader=loader, trim_blocks=True, lstrip_blocks=True)
    filled = environment.get_template(template).render(page())
    with replacing(path) as unfinished:
        unfinished.write_text(filled, encoding="utf-8")
    return path


def build(  # noqa: PLR0913  # what `write_report` takes
    result: Result,
    title: str,
    *,
    X=None,
    missing: str | None = "nan",
    mask=None,
    weights=None,
    labels=None,
    image_shape=None,
    columns=None,
    show: str | None = None,
    feature_names=None,
    optimality: Optimality | None = None,
) -> dict[str, Any]:
    """Everything the page shows."""
    result = with_names(result, feature_names)
    modes = named_modes(result)
    check_pictures(result, image_shape, columns)
    if not isinstance(optimality, Optimality | None):
        raise TypeError(f"optimality must be what result.certify(X) returned, got {optimality!r}")
    looks = telling(result, modes, image_shape, show)
    given = None if X is None else data_of(result, X, missing, mask, weights)

    def pixels(samples: np.ndarray) -> np.ndarray:
        assert given is not None
        rows, place = np.unique(samples, return_inverse=True)
        return given.data.among_rows(rows, all_rows)[0][place].reshape(len(samples), *image_shape)

    return {
        "title": title,
        "headline": headline(result),
        "asked": asked(result, modes),
        "found": found(result, modes, looks),
        "columns": columns,
        "holders": holders(result, modes, looks, labels, None if given is None or not image_shape else pixels),
        "quality": quality(result, optimality),
        "failures": None if given is None else failures(result, modes, given, image_shape, show),
        "course": course(result),
        "provenance": provenance_facts(result),
    }


def all_rows(data: Data) -> tuple[np.ndarray]:
    return (data.take(0, slice(None)),)


def headline(result: Result) -> str:
    shape = " × ".join(f"{size:,}" for size in result.shape)
    explained = f"{result.explained:.1%} of {result.loss.explains} explained"
    return f"{shape} data{result.kind} in {counted(result.rank, 'part')}, {explained}"


def asked(result: Result, modes: tuple[Mode, ...]) -> list[tuple[str, str]]:
    """What the user stated."""
    sizes = " × ".join(f"{size:,} {mode.name}" for size, mode in zip(result.shape, modes, strict=True))
    wanted = zip(factor_names(len(modes)), modes, result.structures, strict=True)
    return [
        ("data", sizes),
        *([("entries", entries_that_count(result))] if result.observed else []),
        ("parts", str(result.rank)),
        ("loss", loss_in_words(result.loss)),
        *([("model", symmetric_model(result))] if result.symmetric else []),
        *((f"structure of {name} ({mode.name})", in_words(structure)) for name, mode, structure in wanted),
    ]


def loss_in_words(loss: Loss) -> str:
    parameters = "" if repr(loss).endswith("()") else f": {loss}"
    return f"{loss.says}{parameters}" if loss.says else str(loss)


def in_words(structure) -> str:
    return "nonnegative" if repr(structure) == repr(NonNegative()) else repr(structure)


def provenance_facts(result: Result) -> list[tuple[str, str]]:
    """How the result came about, and what tells its data from others."""
    if result.provenance is None:  # of an earlier version
        return []
    about = result.provenance
    data = ", ".join(f"{name} {value}" for name, value in about.data.items() if value is not None)
    settings = ", ".join(f"{name} {value}" for name, value in about.settings.items() if value is not None)
    options = {name: value for name, value in (about.options or {}).items() if value not in (None, False)}
    return [
        ("made by", f"partwise {about.version}, {about.date}"),
        ("call", about.call),
        ("seed", "none: it cannot be repeated to the bit" if about.seed is None else str(about.seed)),
        *([("options", ", ".join(f"{name} {value}" for name, value in options.items()))] if options else []),
        ("settings", settings),
        ("data", data),
    ]


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


def check_pictures(result: Result, image_shape, columns) -> None:
    """Whether parts can be shown so, whether they are shown or not."""
    for name, value in {"image_shape": image_shape, "columns": columns}.items():
        if value is not None and (why := matrix_only(name, len(result.shape))):
            raise ValueError(f"{why}: each mode is shown in its own way")
    if image_shape is not None:
        check_image_shape(image_shape, result.H.shape[1])
    check_columns(columns)
