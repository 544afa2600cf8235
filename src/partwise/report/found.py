"""What was found: each part by what weighs most in it, and by what is special to it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ..data.names import Mode
from ..metrics import sparsity
from ..result import Result
from ..result.forms import (
    CURVE,
    IMAGE,
    LIST,
    axis_of,
    distinctive,
    exclusive,
    form_of,
    heaviest,
    label_of,
    peaks,
)
from ..result.plots.base import BLUE, ORANGE, colour_of, picture_type
from ..result.plots.parts import draw_curve
from .pictures import image, svg

MOST_CARDS = 60  # parts that are shown one by one; the table has all
TOP, PEAKS = 12, 4  # names of a list, and places of a curve
SEARCHED = 600_000  # entries of a factor that go along, for the search
LEVELS = 2**16 - 1  # of them


class Looks:
    """A factor as cards show it: by size and, where it is nonnegative, by what is special to each part."""

    def __init__(self, mode: Mode, A: np.ndarray, image_shape, show: str | None):
        self.mode, self.A, self.image_shape = mode, A, image_shape
        self.form = form_of(A, mode.labels, image_shape, show)
        self.comparable = bool(A.min(initial=0) >= 0) and A.shape[1] > 1
        self.special = distinctive(A) if self.comparable else A
        self.share = exclusive(A) if self.comparable else np.full(A.shape, np.nan)
        self.place = axis_of(mode.labels)

    def card(self, k: int) -> dict[str, Any]:
        sides = [self.side(self.A[:, k], k, BLUE, "size")]
        if self.comparable:
            sides.append(self.side(self.special[:, k], k, ORANGE, "specificity"))
        return {"mode": self.mode.name, "form": self.form, "sides": sides}

    def side(self, values: np.ndarray, k: int, colour: str, by: str) -> dict[str, Any]:
        if self.form == LIST:
            return {"by": by, "entries": self.entries(values, k)}
        about = f"Part {k + 1}, {self.mode.name} by {by}"
        if self.form == IMAGE:
            return {"by": by, "image": image(values.reshape(self.image_shape)), "about": about}
        return {"by": by, "svg": svg(lambda: self.curve(values, colour), about), "peaks": self.peaks(values)}

    def entries(self, values: np.ndarray, k: int) -> list[dict[str, Any]]:
        """The heaviest, with a bar each."""
        top = heaviest(values, TOP)
        largest = float(np.abs(values[top]).max(initial=0)) or 1.0
        return [
            {
                "name": label_of(self.mode.labels, int(j)),
                "width": f"{abs(values[j]) / largest:.3f}",
                "weight": f"{self.A[j, k]:.3g}",
                "share": "" if np.isnan(self.share[j, k]) else f"{self.share[j, k]:.0%}",
            }
            for j in top
        ]

    def curve(self, values: np.ndarray, colour: str):
        fig = picture_type()(figsize=(3.2, 1.25))
        ax = fig.add_axes((0.04, 0.34, 0.92, 0.63))  # by hand: to find the room for labels takes as long as to draw
        draw_curve(ax, values, self.place, color=colour)
        ax.set_yticks([])
        ax.spines[["top", "right", "left"]].set_visible(False)
        if self.place is not None:
            ax.set_xlabel(self.mode.name, fontsize=7, parse_math=False)
        return fig

    def peaks(self, values: np.ndarray) -> str:
        """Where a curve is highest, where places have names."""
        if self.mode.labels is None or values.max(initial=0) <= 0:
            return ""
        return ", ".join(label_of(self.mode.labels, int(j)) for j in peaks(values, PEAKS))

    @property
    def heading(self) -> str:
        """What names in a table are."""
        return "highest at" if self.form == CURVE else "tells it apart" if self.comparable else "weighs most"

    def heaviest_names(self, k: int, count: int) -> str:
        """A few words for a table."""
        if self.form == LIST:
            return ", ".join(label_of(self.mode.labels, int(j)) for j in heaviest(self.special[:, k], count))
        return self.peaks(self.A[:, k]) if self.form == CURVE else ""


def telling(result: Result, modes: tuple[Mode, ...], image_shape, show: str | None) -> list[Looks]:
    """The modes that tell what a part is: all but the first, the samples; of a symmetric model one tells all."""
    pairs = list(zip(modes, result.factors, strict=True))
    return [Looks(mode, A, image_shape, show) for mode, A in (pairs[:1] if result.symmetric else pairs[1:])]


def found(result: Result, modes: tuple[Mode, ...], looks: list[Looks]) -> dict[str, Any]:
    """Parts in a table, one by one, and for the search."""
    return {
        "cards": [card(result, looks, k) for k in range(min(result.rank, MOST_CARDS))],
        "not_shown": max(0, result.rank - MOST_CARDS),
        "comparable": any(look.comparable for look in looks),
        "imaged": any(look.form == IMAGE for look in looks),
        "listed": any(look.form == LIST and look.comparable for look in looks),
        "table": part_table(result, modes, looks),
        "search": search(next((look for look in looks if look.form == LIST and look.mode.labels), None)),
    }


def card(result: Result, looks: list[Looks], k: int) -> dict[str, Any]:
    return {
        "part": k + 1,
        "share": f"{result.shares[k]:.1%}",
        "colour": colour_of(k),
        "modes": [look.card(k) for look in looks],
    }


def part_table(result: Result, modes: tuple[Mode, ...], looks: list[Looks]) -> dict[str, Any]:
    """One line a part: its share of the fit, how much of each mode it uses, how sparse it is, and what weighs most."""
    shares, sparse = result.shares, sparsity(result.factors[-1].T)
    lines: list[dict[str, Any]] = [
        {
            "part": k + 1,
            "share": f"{share:.1%}",
            "width": f"{share / max(shares.max(), 1e-300):.3f}",
            "used": [f"{np.mean(noticeable(A[:, k])):.1%}" for A in result.factors],
            "sparsity": "" if np.isnan(sparse[k]) else f"{sparse[k]:.2f}",
            "top": [look.heaviest_names(k, 6) for look in looks],
        }
        for k, share in enumerate(shares)
    ]
    named = [f"{look.heading}: {look.mode.name}" for look in looks]
    filled = [i for i in range(len(named)) if any(line["top"][i] for line in lines)]
    for line in lines:
        line["top"] = [line["top"][i] for i in filled]
    return {"modes": [mode.name for mode in modes], "named": [named[i] for i in filled], "lines": lines}


def noticeable(values: np.ndarray) -> np.ndarray:
    """Entries above 1% of the largest."""
    return np.abs(values) > 0.01 * np.abs(values).max()


def search(look: Looks | None) -> dict[str, Any] | None:
    """Names and weights for the search on the page: of many features, those with the largest shares of a part."""
    if look is None or look.mode.labels is None:
        return None
    A = np.abs(look.A.astype(np.float64))
    A = A / np.where(A.max(axis=0) > 0, A.max(axis=0), 1)
    used = np.flatnonzero(A.max(axis=1) > 0)
    most = SEARCHED // A.shape[1]
    kept = np.sort(used[np.argsort(-A[used].max(axis=1), kind="stable")[:most]])
    levels = np.ceil(A[kept] * LEVELS).astype("<u2")
    return {
        "mode": look.mode.name,
        "names": [str(look.mode.labels[j]) for j in kept],
        "weights": base64.b64encode(levels.tobytes()).decode("ascii"),
        "rank": A.shape[1],
        "signed": bool(look.A.min() < 0),
        "left_out": len(used) - len(kept),
        "unused": len(A) - len(used),
    }
