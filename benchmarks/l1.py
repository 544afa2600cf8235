"""The L1 loss: what a sweep costs, and what is found among outliers, flips and words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

import partwise as pw
from partwise import structures as s
from partwise.bench import Contest, scikit_learn
from partwise.datasets import make_binary_parts, make_parts

from . import data
from .growth import per_iteration
from .runs import Table, Task
from .scale import sized

TEXTS: dict[str, Callable] = {
    "imdb": lambda: data.counts("imdb"),
    "rcv1": lambda: data.stored("rcv1_subsets").astype(np.float64),
    "k1b": lambda: data.counts("k1b"),
}
COUNTS = ["k1b", "classic3", "reuters21578", "tdt2", "news20", "pbmc3k", "email_eu_core"]
ARRAYS = {"zoo": "binary", "mushroom": "binary", "breast21": "counts", "cosmic_sbs": "signatures_v3_4"}
ARRAYS |= {"fevotte_spectrogram": "magnitude", "mary_spectrogram": "magnitude", "small_graphs": "les_miserables"}
EVERYTHING: dict[str, Callable] = (
    {name: lambda name=name: data.counts(name) for name in COUNTS}
    | {"rcv1": lambda: data.stored("rcv1_subsets").astype(np.float64)}
    | {name: lambda name=name: data.images(name) for name in ("swimmer", "orl", "cbcl")}
    | {"mnist, 5000 images": lambda: data.images("mnist")[:5000]}
    | {name: lambda name=name, key=key: data.array(name, key) for name, key in ARRAYS.items()}
    | {"samson": lambda: data.array("samson", "cube")}
)
SEEDS = sized(2, 1)
BINARY_SEEDS = sized(6, 1)
OUTLIERS = [(rank, share) for rank in (5, 10, 20) for share in (0.05, 0.1, 0.2)]
FLIPS = [(5, 0.1), (8, 0.1), (10, 0.08)]
STARTS = ["smooth-l1", "greedy-l1", "least squares", "random"]


def tables() -> list[Table]:
    return [
        Table(
            "costs", COST_HEADER, [Task(name, partial(costs, name)) for name in TEXTS], 15,
            "What a sweep over both factors costs.",
        ),
        Table(
            "outliers", ["rank", "outliers", "**L1**", "L1, 4 starts", "least squares"],
            [Task(f"rank {rank}, {share:.0%}", partial(outliers, rank, share)) for rank, share in OUTLIERS], 8,
            "Planted parts, 400 × 300, 70% zeros in both factors, a share of entries anything up to 5 times the "
            f"largest: mean cosine with the true parts over {SEEDS} seeds (and the worst seed). Asked: above 0.95.",
        ),
        Table(
            "flips", FLIP_HEADER,
            [Task(f"rank {rank}, {share:.0%}", partial(flips, rank, share)) for rank, share in FLIPS], 10,
            "Planted 0/1 parts, 500 × 400, their Boolean product with 5% of the entries flipped; `Binary()` on both "
            "factors, 3 starts.",
        ),
        Table(
            "words", ["rank", "**smooth-l1** (the default)", *STARTS[1:]],
            [Task(f"rank {rank}", partial(words, rank)) for rank in (6, 20)], 20,
            "Words of k1b: the relative L1 error from several starts.",
        ),
        Table(
            "all data", ["data", "size", "relative L1 error at rank 10", "parts that are zero"],
            [Task(name, partial(alive, name)) for name in EVERYTHING], 4,
            "The default start on all data, at most 20 iterations.",
        ),
    ]  # fmt: skip


def sweep_times(X, rank: int) -> tuple[list[float], int]:
    """The seconds of the start and of ten iterations, and how many parts are zero then."""
    marks: list[float] = []
    callbacks = [lambda record, factors: marks.append(record.time)]
    result = pw.factorize(X, rank, loss="l1", random_state=0, max_iter=10, tol=0, callbacks=callbacks)
    return marks[:1] + list(np.diff(marks)), len(result.certificate.zero_components)


COST_HEADER = [
    "data",
    "size",
    "rank",
    "ms a sweep",
    "ms of scikit-learn's cd",
    "**ratio (at most)**",
    "sweeps that the start costs",
    "parts that are zero",
]


def costs(name: str) -> list[list]:
    X = TEXTS[name]()
    rival = 1e3 * per_iteration(scikit_learn, Contest(name, X, 15))
    (start, *times), dead = sweep_times(X, 15)
    own = 1e3 * float(np.median(times))
    size = f"{X.shape[0]} × {X.shape[1]}, {X.nnz} nonzeros"
    return [[name, size, 15, f"{own:.0f}", f"{rival:.0f}", f"{own / rival:.2f} (5)", f"{1e3 * start / own:.0f}", dead]]


def likeness(H: np.ndarray, truth: np.ndarray) -> float:
    """The mean cosine of parts with those of the truth, in the best order."""
    H, truth = (A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300) for A in (H, truth))
    cosines = H @ truth.T
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def outliers(rank: int, share: float) -> list[list]:
    found: dict[str, list[float]] = {"l1": [], "several": [], "frobenius": []}
    ways: dict[str, dict] = {"l1": {"loss": "l1"}, "several": {"loss": "l1", "n_init": 4}, "frobenius": {}}
    for seed in range(SEEDS):
        planted = make_parts(400, 300, rank, zeros=0.7, outliers=share, random_state=seed)
        for name, options in ways.items():
            result = pw.factorize(planted.X, rank, random_state=0, **options)
            found[name].append(likeness(result.H, planted.H))
    return [[rank, f"{share:.0%}", *(f"{np.mean(values):.3f} ({min(values):.3f})" for values in found.values())]]


FLIP_HEADER = [
    "rank",
    "ones in a part",
    "**recovered exactly (asked)**",
    "seeds where parts were found that fit better than the truth",
]


def flips(rank: int, share: float) -> list[list]:
    exact = below = 0
    for seed in range(BINARY_SEEDS):
        X, W, H, _ = make_binary_parts(500, 400, rank, share=share, flips=0.05, random_state=seed)
        both = {"structure_W": s.Binary(), "structure_H": s.Binary()}
        result = pw.factorize(X, rank, loss="l1", n_init=3, random_state=0, **both)
        exact += pairs(result.W, result.H) == pairs(W, H)
        below += result.fit < np.abs(X - W @ H).sum()
    asked = round(0.9 * BINARY_SEEDS)
    return [[rank, f"{share:.0%}", f"{exact} of {BINARY_SEEDS} ({asked})", below]]


def pairs(W: np.ndarray, H: np.ndarray) -> set[tuple[bytes, bytes]]:
    """The parts, in no order."""
    return {(w.tobytes(), h.tobytes()) for w, h in zip(W.T.copy(), H.copy(), strict=True)}


def words(rank: int) -> list[list]:
    X = data.counts("k1b")
    squares = pw.factorize(X, rank, random_state=0)
    starts = [squares if init == "least squares" else init for init in STARTS]
    fits = [pw.factorize(X, rank, loss="l1", init=init, random_state=0) for init in starts]
    return [[rank, *(f"{fit.relative_error:.4f}" for fit in fits)]]


def alive(name: str) -> list[list]:
    """With the default start: parts that are zero at the end."""
    X = EVERYTHING[name]()
    result = pw.factorize(X, 10, loss="l1", random_state=0, max_iter=20)
    size = f"{X.shape[0]} × {X.shape[1]}" + (f", {X.nnz} nonzeros" if sparse.issparse(X) else "")
    return [[name, size, f"{result.relative_error:.4f}", len(result.certificate.zero_components)]]
