"""The L1 loss: what a sweep costs, and what is found among outliers, flips and words."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import partwise as pw
from partwise import structures as s
from partwise.bench import Contest, machine, scikit_learn
from partwise.data import as_data
from partwise.datasets import make_binary_parts, make_parts
from partwise.init import Random
from partwise.losses import L1
from partwise.problem import pose
from partwise.solvers import WeightedMedian

from . import data
from .growth import per_iteration, scattered
from .pages import table

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
SERIES = [
    ("rows of X (and of W)", "m", [20000, 40000, 80000]),
    ("columns of X (and of H)", "n", [20000, 40000, 80000]),
    ("nonzeros", "nnz", [1_000_000, 2_000_000, 4_000_000]),
    ("rank", "rank", [10, 20, 40]),
]
SEEDS = 5
BINARY_SEEDS = 20


def run() -> str:
    warnings.simplefilter("ignore", ConvergenceWarning)
    blocks = [costs(), growth(), outliers(), flips(), words(), alive()]
    return f"{machine()}\n\n" + "\n\n".join(blocks)


def sweep_times(X, rank: int) -> tuple[list[float], int]:
    """The seconds of the start and of ten iterations, and how many parts are zero then."""
    marks: list[float] = []
    callbacks = [lambda record, factors: marks.append(record.time)]
    result = pw.factorize(X, rank, loss="l1", random_state=0, max_iter=10, tol=0, callbacks=callbacks)
    return marks[:1] + list(np.diff(marks)), len(result.certificate.zero_components)


def costs() -> str:
    lines = []
    for name, load in TEXTS.items():
        try:
            X = load()
        except data.Absent as error:
            lines.append([name, f"skipped: {error}", *[""] * 6])
            continue
        rival = 1e3 * per_iteration(scikit_learn, Contest(name, X, 15))
        (start, *times), dead = sweep_times(X, 15)
        own = 1e3 * float(np.median(times))
        size = f"{X.shape[0]} × {X.shape[1]}, {X.nnz} nonzeros"
        cells = f"{own:.0f}", f"{rival:.0f}", f"{own / rival:.2f} (5)", f"{1e3 * start / own:.0f}", dead
        lines.append([name, size, 15, *cells])
        print(lines[-1], flush=True)
    header = [
        "data",
        "size",
        "rank",
        "ms a sweep",
        "ms of scikit-learn's cd",
        "**ratio (at most)**",
        "sweeps that the start costs",
        "parts that are zero",
    ]
    return "What a sweep over both factors costs.\n\n" + table(header, lines)


def full_sweep(contest: Contest) -> float:
    """Seconds of a sweep over both factors in which every weight is visited and moves: the least of three."""
    problem = pose(as_data(contest.X), L1(), (s.NonNegative(), s.NonNegative()), contest.rank).normalized()
    factors, solver, rng = Random()(problem, np.random.RandomState(0)), WeightedMedian(), np.random.RandomState(0)
    times = []
    with problem.data.working():
        for _ in range(3):
            state = solver.init(problem, factors, 0.0, rng)
            begin = time.perf_counter()
            for mode, A in enumerate(factors):
                state.points[:] = factors
                solver.update(problem, mode, state, np.arange(len(A)))
            times.append(time.perf_counter() - begin)
    return min(times)


def growth() -> str:
    lines = []
    for name, argument, values in SERIES:
        times = [1e3 * full_sweep(scattered(**{argument: value})) for value in values]
        lines.append([name, " → ".join(map(str, values)), *(f"{t:.0f}" for t in times), f"{times[-1] / times[0]:.1f}"])
        print(lines[-1], flush=True)
    header = ["what grows", "values", "×1", "×2", "×4", "cost grows by"]
    intro = (
        "How that grows: milliseconds of a sweep from dense random factors, where every weight is visited, on uniform "
        "random data, 20000 × 20000 with a million nonzeros, rank 20."
    )
    return f"{intro}\n\n" + table(header, lines)


def likeness(H: np.ndarray, truth: np.ndarray) -> float:
    """The mean cosine of parts with those of the truth, in the best order."""
    H, truth = (A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300) for A in (H, truth))
    cosines = H @ truth.T
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def outliers() -> str:
    lines = []
    for rank in (5, 10, 20):
        for share in (0.05, 0.1, 0.2):
            found: dict[str, list[float]] = {"l1": [], "several": [], "frobenius": []}
            for seed in range(SEEDS):
                planted = make_parts(400, 300, rank, zeros=0.7, outliers=share, random_state=seed)
                for name, options in (
                    ("l1", {"loss": "l1"}),
                    ("several", {"loss": "l1", "n_init": 4}),
                    ("frobenius", {}),
                ):
                    result = pw.factorize(planted.X, rank, random_state=0, **options)
                    found[name].append(likeness(result.H, planted.H))
            means = {name: f"{np.mean(values):.3f} ({min(values):.3f})" for name, values in found.items()}
            lines.append([rank, f"{share:.0%}", *means.values()])
            print(lines[-1], flush=True)
    header = ["rank", "outliers", "**L1**", "L1, 4 starts", "least squares"]
    intro = (
        "Planted parts, 400 × 300, 70% zeros in both factors, a share of entries anything up to 5 times the largest: "
        f"mean cosine with the true parts over {SEEDS} seeds (and the worst seed). Asked: above 0.95."
    )
    return f"{intro}\n\n" + table(header, lines)


def flips() -> str:
    lines = []
    for rank, share in ((5, 0.1), (8, 0.1), (10, 0.08)):
        exact = below = 0
        for seed in range(BINARY_SEEDS):
            X, W, H, _ = make_binary_parts(500, 400, rank, share=share, flips=0.05, random_state=seed)
            both = {"structure_W": s.Binary(), "structure_H": s.Binary()}
            result = pw.factorize(X, rank, loss="l1", n_init=3, random_state=0, **both)
            truth = {(w.tobytes(), h.tobytes()) for w, h in zip(np.ascontiguousarray(W.T), H, strict=True)}
            exact += {
                (w.tobytes(), h.tobytes())
                for w, h in zip(np.ascontiguousarray(result.W.T), result.H.copy(), strict=True)
            } == truth
            below += result.fit < np.abs(X - W @ H).sum()
        lines.append([rank, f"{share:.0%}", f"{exact} of {BINARY_SEEDS} (18)", below])
        print(lines[-1], flush=True)
    header = [
        "rank",
        "ones in a part",
        "**recovered exactly (asked)**",
        "seeds where parts were found that fit better than the truth",
    ]
    intro = (
        "Planted 0/1 parts, 500 × 400, their Boolean product with 5% of the entries flipped; `Binary()` on both "
        "factors, 3 starts."
    )
    return f"{intro}\n\n" + table(header, lines)


def words() -> str:
    lines = []
    with suppress(data.Absent):
        X = data.counts("k1b")
        for rank in (6, 20):
            squares = pw.factorize(X, rank, random_state=0)
            starts = {"smooth-l1": "smooth-l1", "greedy-l1": "greedy-l1", "least squares": squares, "random": "random"}
            errors = [
                pw.factorize(X, rank, loss="l1", init=init, random_state=0).relative_error for init in starts.values()
            ]
            lines.append([rank, *(f"{error:.4f}" for error in errors)])
            print(lines[-1], flush=True)
    header = ["rank", "**smooth-l1** (the default)", "greedy-l1", "least squares", "random"]
    return "Words of k1b: the relative L1 error from several starts.\n\n" + table(header, lines)


def alive() -> str:
    """All data sets with the default start: parts that are zero at the end."""
    lines = []
    for name, load in EVERYTHING.items():
        with suppress(data.Absent):
            lines.append(outcome(name, load()))
    header = ["data", "size", "relative L1 error at rank 10", "parts that are zero"]
    return "The default start on all data, at most 20 iterations.\n\n" + table(header, lines)


def outcome(name: str, X) -> list:
    result = pw.factorize(X, 10, loss="l1", random_state=0, max_iter=20)
    size = f"{X.shape[0]} × {X.shape[1]}" + (f", {X.nnz} nonzeros" if sparse.issparse(X) else "")
    line = [name, size, f"{result.relative_error:.4f}", len(result.certificate.zero_components)]
    print(line, flush=True)
    return line
