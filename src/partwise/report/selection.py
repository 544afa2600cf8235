"""The page about a number of parts, and the fit that has them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..data.names import counted
from .build import build, write_page
from .pictures import svg

if TYPE_CHECKING:
    from ..selection.selected import RankSelection

READINGS = {  # how to read columns that not every table has
    "IC1": "IC1: the information criterion of Bai and Ng (2002), lower is better.",
    "core consistency": "Core consistency: of the CP model, in percent; far below 100 there are too many parts.",
}


def write_selection_report(selection: RankSelection, path, *, title="How many parts?", **options) -> Path:
    """Write the page to `path` and return the path; the options are those of `write_report`, for the fit."""
    return write_page(path, "selection.html", lambda: build_selection(selection, title, **options))


def build_selection(selection: RankSelection, title: str, **options) -> dict:
    """Everything the page shows; `options` are those of `build`."""
    headings = [heading for heading, _ in selection.columns]
    lines = zip(*(cells for _, cells in selection.columns), strict=True)
    stability, result = selection.stability, selection.result
    return {
        "title": title,
        "headline": headline(selection),
        "sentence": selection.sentence,
        "curve": svg(
            selection.plot.curve, "Loss of entries left out, and of those fitted, against the number of parts"
        ),
        "stability": svg(selection.plot.stability, "Silhouettes of the parts of random starts, by rank")
        if was_compared(selection)
        else None,
        "not_compared": not_compared(selection),
        "n_starts": selection.n_starts,
        "parts": svg(stability.plot.parts, "Share of each part, coloured by how many starts found it")
        if stability
        else None,
        "verdict": f"With {counted(selection.rank, 'part')}: {stability.sentence}" if stability else None,
        "headings": headings,
        "lines": [
            {"picked": rank == selection.picked, "cells": cells}
            for rank, cells in zip(selection.ranks, lines, strict=True)
        ],
        "reading": " ".join(text for heading, text in READINGS.items() if heading in headings),
        "quote": quote(selection),
        "facts": facts(selection),
        "fit": build(result, f"The fit with {counted(selection.rank, 'part')}", **options) if result else None,
    }


def headline(selection: RankSelection) -> str:
    tried = f"{counted(len(selection.ranks), 'rank')} tried, up to {selection.ranks[-1]}"
    return f"{' × '.join(map(str, selection.shape))} data, {tried}, in the time of {selection.n_fits:.3g} fits"


def not_compared(selection: RankSelection) -> str:
    if selection.status == "interrupted":
        return "The search was interrupted before parts of random starts were compared."
    return "There is nothing to compare: one part is the same from every start."


def quote(selection: RankSelection) -> str | None:
    """How the number was found, for a section on methods; None where the search did not come to its end."""
    if selection.status == "interrupted":
        return None
    starts = counted(selection.n_starts, "random start")
    compared = f", and parts of {starts} compared at ranks that predict about as well as the best"
    return (
        f"The number of parts was chosen with partwise {__version__} (select_rank): entries left out "
        f"{counted(len(selection.curves), 'time')} and predicted ({selection.method}), under the loss {selection.loss}"
        f"{compared if was_compared(selection) else ''}; seed {seed(selection)}. {selection.sentence}"
    )


def seed(selection: RankSelection) -> str:
    return "not fixed" if selection.random_state is None else str(selection.random_state)


def was_compared(selection: RankSelection) -> bool:
    """Whether parts of random starts were, at any rank."""
    return any(row.weakest == row.weakest for row in selection.table)


def facts(selection: RankSelection) -> list[tuple[str, str]]:
    result = selection.result
    return [
        ("method", selection.method),
        ("loss", str(selection.loss)),
        *([("solver", result.solver)] if result else []),
        ("share left out", f"{selection.share:g}"),
        ("repeats", str(len(selection.curves))),
        ("random starts", str(selection.n_starts)),
        ("window", ", ".join(map(str, selection.window))),
        *([("dispersion", f"{selection.dispersion:.3g}")] if selection.dispersion == selection.dispersion else []),
        ("seed", seed(selection)),
        ("version", f"partwise {__version__}"),
    ]
