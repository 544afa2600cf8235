"""The rows of the races: data, rank, what is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partwise.bench import ITERATIONS, Contest

from . import data
from .scale import sized


@dataclass(frozen=True)
class Row:
    """A contest, its data loaded when its turn comes, and what is asked of it."""

    name: str
    load: Callable[[], object]
    rank: int
    asked: float  # the speed-up asked for
    judged: str  # at "exact" or "0.1%" above the target
    l1: float = 0.0
    target: float | None = None
    loss: str = "frobenius"
    goals: tuple[int, ...] = (ITERATIONS,)  # iterations of scikit-learn, whose objectives there are the targets
    asked_last: float | None = None  # the speed-up asked for to the last of several goals
    starts: int = 2
    peers: bool = False  # whether scikit-learn's mu and nn-fac run too

    @property
    def title(self) -> str:
        """One of its own."""
        loss = "" if self.loss == "frobenius" else f", {self.loss}"
        return f"{self.name}{loss}, rank {self.rank}"

    def contest(self) -> Contest:
        rank = self.rank if self.target else sized(self.rank, min(self.rank, 5))
        return Contest(self.name, self.load(), rank, self.l1, self.target, self.loss, max(self.iterations))

    @property
    def iterations(self) -> tuple[int, ...]:
        return sized(self.goals, tuple(10 * n for n in range(1, len(self.goals) + 1)))


TEXTS = {
    "news20, tf-idf": (lambda: data.tf_idf("news20"), 0.02),
    "k1b, tf-idf": (lambda: data.tf_idf("k1b"), 0.02),
    "rcv1, float32": (lambda: data.stored("rcv1_subsets"), 0.01),
}
# 100 parts take scikit-learn so long that fewer iterations set the target
SETTINGS: dict[int, dict] = {20: {}, 100: {"starts": 1, "goals": (30,)}}


def texts() -> list[Row]:
    """Each with few and with many parts, without and with a penalty."""
    return [
        Row(name + (", L1" if l1 else ""), load, rank, 3, "0.1%", l1=l1, **settings)
        for name, (load, penalty) in TEXTS.items()
        for rank, settings in SETTINGS.items()
        for l1 in (0.0, penalty)
    ]


ROWS = [
    Row("orl", lambda: data.images("orl"), 25, 8, "exact", peers=True),
    Row("orl, float32", lambda: data.images("orl", np.float32), 25, 8, "exact"),
    Row("cbcl", lambda: data.images("cbcl"), 49, 8, "exact", starts=3, peers=True),
    Row("mnist, sparse", lambda: data.sparse_images("mnist"), 10, 8, "0.1%", starts=1),
    *texts(),
    Row("tdt2, tf-idf", lambda: data.tf_idf("tdt2"), 20, 3, "0.1%"),
    Row("planted, 30% zeros", lambda: data.planted(10, 0.3), 10, 3, "exact", target=1e-4, starts=5),
    Row("planted, 30% zeros", lambda: data.planted(30, 0.3), 30, 3, "exact", target=1e-4, starts=5),
    Row("planted, 80% zeros", lambda: data.planted(10, 0.8), 10, 3, "exact", target=1e-4, starts=5),
    Row("planted, 80% zeros", lambda: data.planted(30, 0.8), 30, 3, "exact", target=1e-4, starts=5),
]

# losses other than least squares, against scikit-learn's multiplicative updates
KL_ROWS = [
    Row(
        "cbcl, counts",
        lambda: data.counts("cbcl"),
        49,
        8,
        "exact",
        loss="kl",
        goals=(200, 1000),
        asked_last=15,
        starts=1,
    ),
    Row("spectrogram", lambda: data.power("fevotte_spectrogram"), 10, 5, "exact", loss="kl"),
    Row("spectrogram", lambda: data.power("fevotte_spectrogram"), 10, 3, "exact", loss="itakura-saito"),
    Row("classic3, counts", lambda: data.counts("classic3"), 20, 60, "exact", loss="kl"),
    Row("k1b, counts", lambda: data.counts("k1b"), 20, 60, "exact", loss="kl", starts=1),
    Row("pbmc3k, counts", lambda: data.counts("pbmc3k"), 10, 60, "exact", loss="kl", goals=(50,), starts=1),
    Row("news20, counts", lambda: data.counts("news20"), 20, 60, "exact", loss="kl", goals=(50,), starts=1),
]
