"""Who has the parts: samples by their shares, those that have most of each, and means of groups."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from ..data.names import Mode
from ..result import Result, plots
from ..result.forms import LIST, contributions, heaviest, label_of
from ..result.plots.base import COLOURS, colour_of
from ..result.plots.codes import MOST_NAMED, Groups, are_courses, groups_of
from .found import MOST_CARDS, Looks
from .pictures import image, svg

Pixels = Callable[[np.ndarray], np.ndarray]  # numbers of samples -> (number, height, width)
TOP = 6  # samples of a part that are named


def holders(
    result: Result, modes: tuple[Mode, ...], looks: list[Looks], labels, pixels: Pixels | None
) -> dict[str, Any]:
    """`looks`: of what tells a part; `pixels`: gives samples as images, where they are such, and at hand."""
    groups = groups_of(labels, result.shape[0])
    shares = contributions(result.factors)
    named = modes[0]
    kind = "courses" if are_courses(result, groups) else "shares" if result.rank <= len(COLOURS) else "heat"
    return {
        "mode": named.name,
        "kind": kind,
        "picture": svg(lambda: plots.codes(result, labels), f"Which {named.name} have which parts"),
        "legend": [
            {"part": k + 1, "colour": colour_of(k), "names": names}
            for k, names in enumerate(names_of_parts(looks, result.rank) if kind == "shares" else ())
        ],
        "top": [top_samples(result, named, shares, k, pixels) for k in range(min(result.rank, MOST_CARDS))],
        "means": means(shares, groups) if groups else None,
    }


def names_of_parts(looks: list[Looks], rank: int) -> list[str]:
    """Each part by a few names, where it has such."""
    named = next((look for look in looks if look.form == LIST and look.mode.labels is not None), None)
    return [named.heaviest_names(k, 2) if named else "" for k in range(rank)]


def top_samples(result: Result, mode: Mode, shares: np.ndarray, k: int, pixels: Pixels | None) -> dict[str, Any]:
    """The samples with most of a part, and how much of their model it is."""
    column = result.factors[0][:, k]
    top = heaviest(column * shares[:, k], TOP)  # much of it, and little else
    images = map(image, pixels(top)) if pixels else repeat(None)
    samples = [
        {
            "name": label_of(mode.labels, int(i)),
            "weight": f"{column[i]:.3g}",
            "share": f"{shares[i, k]:.0%}",
            "image": shown,
        }
        for i, shown in zip(top, images, strict=False)
    ]
    leading = int(np.count_nonzero((shares.argmax(axis=1) == k) & (shares.max(axis=1) > 0)))
    return {"part": k + 1, "samples": samples, "leads": leading}


def means(shares: np.ndarray, groups: Groups) -> dict[str, Any]:
    """The mean share of each part in each group, of the largest groups where there are many."""
    sizes = np.bincount(groups.of, minlength=len(groups.names))
    kept = np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED])
    table = [shares[groups.of == g].mean(axis=0) for g in kept]
    return {
        "left_out": len(groups.names) - len(kept),
        "parts": list(range(1, shares.shape[1] + 1)),
        "lines": [
            {
                "name": groups.names[g],
                "size": int(sizes[g]),
                "cells": [{"text": f"{value:.0%}", "alpha": f"{0.75 * value:.2f}"} for value in row],
            }
            for g, row in zip(kept, table, strict=True)
        ],
    }
