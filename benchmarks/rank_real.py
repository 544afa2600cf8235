"""Real data whose number of parts is known, or rather the number of something: ours beside other rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import partwise as pw
from partwise.selection import RankSelection, Speckled
from partwise.selection.setting import Setting, silence

from .data import archive, array, counts
from .pages import table
from .rank_planted import path_of
from .rank_rules import Curves, of_starts, picks


@dataclass(frozen=True)
class Row:
    name: str
    load: Callable[[], Any]
    loss: str
    known: tuple[int, ...]  # numbers that would be right
    of: str  # what there are so many of
    most: int = 12
    alike: bool = False  # neighbours, so that they are to be left out together


# -- data --------------------------------------------------------------------------------------------------


def swimmer() -> np.ndarray:
    return array("swimmer", "images").reshape(256, -1)


def samson() -> np.ndarray:
    """Every fourth pixel."""
    return array("samson", "cube")[::4]


def amino() -> np.ndarray:
    with np.load(archive("amino")) as file:
        return np.maximum(file["X"].astype(float), 0)


def frames(name: str) -> np.ndarray:
    """Magnitudes, a frame a row."""
    return array(name, "magnitude").T


def tumours() -> np.ndarray:
    return array("breast21", "counts").T


def words(name: str, least: int = 20) -> sparse.csr_array:
    """Counts of the words that stand in so many documents."""
    X = counts(name)
    return X[:, np.flatnonzero(X.astype(bool).sum(axis=0) >= least)]


def pupils() -> np.ndarray:
    """How often any two were together over both days."""
    with np.load(archive("primary_school")) as file:
        i, j, n = *file["coords"][:, :2].T.astype(int), file["counts"].astype(float)
    X = np.zeros((242, 242))
    np.add.at(X, (i, j), n)
    return X + X.T


def contacts() -> pw.SparseTensor:
    """The same by ten minutes, person x person x time."""
    with np.load(archive("primary_school")) as file:
        coords, n = file["coords"].astype(int), file["counts"].astype(float)
    return pw.SparseTensor(np.vstack([coords, coords[:, [1, 0, 2]]]), np.tile(n, 2), shape=(242, 242, 104))


def football() -> np.ndarray:
    return array("small_graphs", "football")


def zoo() -> np.ndarray:
    return array("zoo", "binary")


def cells() -> sparse.csr_array:
    """The 1000 genes counted most, every other cell."""
    X = counts("pbmc3k")[::2]
    return X[:, np.sort(np.argsort(-X.sum(axis=0))[:1000])]


ROWS = [
    Row("swimmer", swimmer, "frobenius", (16, 17), "limbs, with or without the torso", 20),
    Row("samson, a quarter of the pixels", samson, "frobenius", (3,), "materials", alike=True),
    Row("amino acids", amino, "frobenius", (3,), "substances", 8, alike=True),
    Row("breast21", tumours, "kl", (4,), "signatures in the paper", 10),
    Row("mary, piano", lambda: frames("mary_spectrogram"), "kl", (3, 4), "notes, and the hammer", alike=True),
    Row(
        "fevotte, piano",
        lambda: frames("fevotte_spectrogram"),
        "kl",
        (4, 5, 6),
        "notes, hammer and pedal",
        15,
        alike=True,
    ),
    Row("classic3", lambda: words("classic3"), "kl", (3,), "collections", 16),
    Row("k1b", lambda: words("k1b"), "kl", (6,), "classes", 16),
    Row("primary school", pupils, "kl", (10, 11), "classes, and teachers", 16),
    Row("primary school, by time", contacts, "kl", (10, 11), "classes, and teachers", 16),
    Row("football", football, "kl", (11, 12), "conferences, and independents", 16),
    Row("zoo", zoo, "frobenius", (7,), "types of animals"),
    Row("pbmc3k, half of the cells, 1000 genes", cells, "kl", (8, 9), "types of cells", 16),
]


# -- what is found -----------------------------------------------------------------------------------------


class Measured(NamedTuple):
    row: Row
    shape: tuple[int, ...]
    selection: RankSelection
    together: RankSelection | None  # with neighbours left out together
    picks: dict[str, int]


def measured(row: Row, X) -> Measured:
    with silence():
        selection = pw.select_rank(X, row.most, loss=row.loss, progress=False)
        together = by_blocks(row, X) if row.alike else None
        setting = Setting.of(X, row.loss, (None, None, None), {}, {})
        curves = Curves(selection, path_of(setting, row.most), of_starts(setting, row.most))
    return Measured(row, selection.shape, selection, together, picks(curves))


def by_blocks(row: Row, X) -> RankSelection:
    return pw.select_rank(X, row.most, loss=row.loss, method=Speckled(blocks=True), progress=False)


OTHERS = ("silhouette of starts", "elbow", "cophenetic, largest", "IC1", "BIC")
HEADER = ["data", "size", "loss", "known", "**select_rank**", "by blocks", "predicts best", "window"]
ABOUT = (
    "Data with a known number of something. Right numbers are bold. Where neighbours are alike, the search was "
    "done once more with blocks of them left out, `Speckled(blocks=True)`."
)


def told(pick: int, known: tuple[int, ...]) -> str:
    return f"**{pick}**" if pick in known else str(pick)


def line(found: Measured) -> list:
    row, selection = found.row, found.selection
    known = f"{row.known[0]} to {row.known[-1]}" if len(row.known) > 1 else str(row.known[0])
    size = " × ".join(map(str, found.shape))
    best = f"{selection.best}, the largest tried" if selection.no_end else str(selection.best)
    window = f"{selection.window[0]} to {selection.window[-1]}"
    together = told(found.together.rank, row.known) if found.together else ""
    others = [told(found.picks[rule], row.known) for rule in OTHERS]
    return [
        row.name,
        size,
        row.loss,
        f"{known} {row.of}",
        told(selection.rank, row.known),
        together,
        best,
        window,
        *others,
    ]


def hits(every: list[Measured]) -> list:
    """A last line: how many are right."""
    right = [sum(found.picks[rule] in found.row.known for found in every) for rule in OTHERS]
    own = sum(found.selection.rank in found.row.known for found in every)
    blocks = [found.together.rank in found.row.known for found in every if found.together]
    return ["right", "", "", f"of {len(every)}", own, f"{sum(blocks)} of {len(blocks)}", "", "", *right]


def as_text(every: list[Measured]) -> str:
    sentences = "\n".join(f"- {found.row.name}: *{found.together or found.selection}*" for found in every)
    lines = [*map(line, every), hits(every)]
    return "\n\n".join(
        [
            ABOUT,
            table([*HEADER, *OTHERS], lines),
            "What it says of them, by blocks where these were left out:",
            sentences,
        ]
    )
