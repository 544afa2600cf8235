"""Real data whose number of parts is known, or rather the number of something: ours beside other rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import partwise as pw
from partwise.selection import RankSelection, Speckled
from partwise.selection.setting import Setting, silence

from .data import archive, array, counts, few
from .pages import table
from .rank_planted import path_of
from .rank_rules import Curves, of_starts, picks
from .runs import Outcome, Table, Task, failures, values
from .scale import sized

N_SEARCHES = 1  # seeds


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
    with np.load(archive("swimmer")) as file:
        return few(file["images"].reshape(256, -1).astype(float))


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
    """Counts of the words that stand in so many documents, of every other document."""
    X = counts(name)[::2]
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
        "notes, hammer, noise",
        15,
        alike=True,
    ),
    Row("classic3, half of the documents", lambda: words("classic3"), "kl", (3,), "collections", 10),
    Row("k1b, half of the documents", lambda: words("k1b"), "kl", (6,), "classes", 12),
    Row("primary school", pupils, "kl", (10, 11), "classes, and teachers", 16),
    Row("primary school, by time", contacts, "kl", (10, 11), "classes, and teachers", 12),
    Row("football", football, "kl", (11, 12), "conferences, and independents", 16),
    Row("zoo", zoo, "frobenius", (7,), "types of animals"),
    Row("pbmc3k, half of the cells, 1000 genes", cells, "kl", (8, 9), "types of cells", 16),
]


# -- what is found -----------------------------------------------------------------------------------------


class Search(NamedTuple):
    """What the page shows of one."""

    rank: int
    best: int
    no_end: bool
    window: tuple[int, ...]
    shape: tuple[int, ...]
    sentence: str

    @classmethod
    def of(cls, found: RankSelection) -> Search:
        return cls(found.rank, found.best, found.no_end, tuple(found.window), tuple(found.shape), str(found))


class Measured(NamedTuple):
    row: Row
    searches: list[Search]  # one for each seed
    by_blocks: list[Search]  # with neighbours left out together; none where these are not alike
    picks: dict[str, int]


def measured(row: Row) -> list:
    """The fields of `Measured` after the row."""
    X, most = row.load(), sized(row.most, 3)
    with silence():
        searches = [searched(row, X, "auto", seed) for seed in range(N_SEARCHES)]
        by_blocks = [searched(row, X, Speckled(blocks=True), seed) for seed in range(N_SEARCHES) if row.alike]
        setting = Setting.of(X, row.loss, (None, None, None), {}, {})
        curves = Curves(searches[0], path_of(setting, most), of_starts(setting, most))
    return [[Search.of(found) for found in searches], [Search.of(found) for found in by_blocks], picks(curves)]


def searched(row: Row, X, method, seed: int) -> RankSelection:
    return pw.select_rank(X, sized(row.most, 3), loss=row.loss, method=method, progress=False, random_state=seed)


OTHERS = ("silhouette of starts", "elbow", "cophenetic, largest", "IC1", "BIC")
HEADER = ["data", "size", "loss", "known", "**select_rank**", "by blocks", "predicts best", "window"]
ABOUT = (
    f"Data with a known number of something; right numbers are bold. `select_rank` with {N_SEARCHES} seed. Where "
    "neighbours are alike, also with blocks of them left out, `Speckled(blocks=True)`."
)


def told(pick: int, known: tuple[int, ...]) -> str:
    return f"**{pick}**" if pick in known else str(pick)


def line(found: Measured) -> list:
    row, first = found.row, found.searches[0]
    known = f"{row.known[0]} to {row.known[-1]}" if len(row.known) > 1 else str(row.known[0])
    own = [", ".join(told(search.rank, row.known) for search in some) for some in (found.searches, found.by_blocks)]
    best = f"{first.best}, the largest tried" if first.no_end else str(first.best)
    return [
        row.name,
        " × ".join(map(str, first.shape)),
        row.loss,
        f"{known} {row.of}",
        *own,
        best,
        f"{first.window[0]} to {first.window[-1]}",
        *(told(found.picks[rule], row.known) for rule in OTHERS),
    ]


def right(every: list[Measured]) -> list:
    """A last line: how many are right, with each seed."""
    own = [[found.searches[seed].rank in found.row.known for found in every] for seed in range(N_SEARCHES)]
    blocks = [
        [found.by_blocks[seed].rank in found.row.known for found in every if found.by_blocks]
        for seed in range(N_SEARCHES)
    ]
    counts = [", ".join(str(sum(hits)) for hits in some) for some in (own, blocks)]
    others = [sum(found.picks[rule] in found.row.known for found in every) for rule in OTHERS]
    return ["right", "", "", f"of {len(every)} (by blocks: {len(blocks[0])})", *counts, "", "", *others]


def written(outcomes: list[Outcome]) -> str:
    known = values(outcomes)
    every = [
        Measured(row, [Search(*one) for one in known[row.name][0]], [Search(*one) for one in known[row.name][1]],
                 known[row.name][2])
        for row in ROWS
        if row.name in known
    ]  # fmt: skip
    first = [(found.row.name, (found.by_blocks or found.searches)[0]) for found in every]
    sentences = "\n".join(f"- {name}: *{search.sentence}*" for name, search in first)
    heading = "What it says of them, by blocks where these were left out:"
    lines = [*map(line, every), *([right(every)] if every else [])]
    return "\n\n".join([table([*HEADER, *OTHERS], lines), heading, sentences]) + failures(outcomes)


def known_table() -> Table:
    return Table("known numbers", [], [Task(row.name, partial(measured, row)) for row in ROWS], 12, ABOUT, written)
