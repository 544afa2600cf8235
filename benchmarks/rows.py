"""The lines of the table: data, rank, what is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partwise.bench import ITERATIONS, Contest

from . import data


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
    iterations: int = ITERATIONS  # of scikit-learn, whose objective there is the target

    def contest(self) -> Contest:
        return Contest(self.name, self.load(), self.rank, self.l1, self.target, self.loss, self.iterations)


ROWS = [
    Row("orl", lambda: data.images("orl"), 25, 5, "exact"),
    Row("orl, float32", lambda: data.images("orl", np.float32), 25, 5, "exact"),
    Row("cbcl", lambda: data.images("cbcl"), 49, 4, "exact"),
    Row("mnist, sparse", lambda: data.sparse_images("mnist"), 10, 4, "0.1%"),
    Row("news20, tf-idf", lambda: data.tf_idf("news20"), 20, 3, "0.1%"),
    Row("tdt2, tf-idf", lambda: data.tf_idf("tdt2"), 20, 3, "0.1%"),
    Row("rcv1, float32", lambda: data.stored("rcv1_subsets"), 20, 3, "0.1%"),
    Row("k1b, tf-idf, L1", lambda: data.tf_idf("k1b"), 20, 3, "0.1%", l1=0.02),
    Row("rcv1, float32, L1", lambda: data.stored("rcv1_subsets"), 20, 3, "0.1%", l1=0.01),
    Row("planted, 30% zeros", lambda: data.planted(10, 0.3), 10, 4, "exact", target=1e-4),
    Row("planted, 30% zeros", lambda: data.planted(30, 0.3), 30, 4, "exact", target=1e-4),
    Row("planted, 80% zeros", lambda: data.planted(10, 0.8), 10, 4, "exact", target=1e-4),
    Row("planted, 80% zeros", lambda: data.planted(30, 0.8), 30, 4, "exact", target=1e-4),
]

# losses other than least squares, against scikit-learn's multiplicative updates
KL_ROWS = [
    Row("cbcl, counts", lambda: data.counts("cbcl"), 49, 3, "exact", loss="kl"),
    Row("cbcl, counts", lambda: data.counts("cbcl"), 49, 8, "exact", loss="kl", iterations=1000),
    Row("spectrogram", lambda: data.power("fevotte_spectrogram"), 10, 5, "exact", loss="kl"),
    Row("spectrogram", lambda: data.power("fevotte_spectrogram"), 10, 3, "exact", loss="itakura-saito"),
    Row("classic3, counts", lambda: data.counts("classic3"), 20, 60, "exact", loss="kl"),
    Row("k1b, counts", lambda: data.counts("k1b"), 20, 60, "exact", loss="kl"),
    Row("pbmc3k, counts", lambda: data.counts("pbmc3k"), 10, 60, "exact", loss="kl"),
    Row("news20, counts", lambda: data.counts("news20"), 20, 60, "exact", loss="kl"),
]
