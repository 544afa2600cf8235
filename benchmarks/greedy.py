"""The greedy solver of Huang and Zhang (2015): how often a step is proved, what it is worth, and what a proof costs."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse

import partwise as pw
from docs import pictures
from partwise.datasets import make_parts
from partwise.oracles import cvx
from partwise.solvers import Greedy, greedy
from partwise.solvers.greedy import PathStep

from . import data
from .pages import ROOT
from .runs import Outcome, Table, Task, failures
from .runs import values as values_of
from .scale import sized
from .semf import median_of

SEEDS, STARTS = sized((3, 20), (1, 2))
SETTINGS = {"max_iter": sized(3000, 30)}
FACE = (112, 92)
STAGES = {"entries": "closed form", "closed form": "closed form", "nuclear": "nuclear", "doubly nonnegative": "dnn"}
SIDES, GRADIENTS = sized(((30, 60, 120), 2), ((10,), 1))
CAP = 20  # seconds for each answer of cvxpy
TOLERANCE = 1e-4  # of both its solvers; their bounds are then about as near as ours are asked to be
PEERS = {
    "SCS": {"solver": "SCS", "eps": TOLERANCE},
    "Clarabel": {"solver": "CLARABEL", "tol_gap_abs": TOLERANCE, "tol_gap_rel": TOLERANCE, "tol_feas": TOLERANCE},
}
DRAWN = sized(10, 2)  # random starts in the picture
FLOOR = 1e-8  # of the picture
BLOCKS = sized(10, 1)  # matrices of orthogonal parts
FAILED = 1e-3


class Kind(NamedTuple):
    name: str
    make: Callable[[int], np.ndarray]  # of a seed
    rank: int
    exact: bool = False  # whether parts fit without error


def planted(zeros: float, noise: float, seed: int) -> np.ndarray:
    return make_parts(60, 50, 8, zeros=zeros, noise=noise, random_state=seed).X


def patches(count: int, side: int, seed: int) -> np.ndarray:
    """Squares out of faces, one a row."""
    faces, rng = data.images("orl").reshape(-1, *FACE), np.random.default_rng(seed)
    places = zip(
        *(rng.integers(limit, size=count) for limit in (len(faces), FACE[0] - side, FACE[1] - side)), strict=True
    )
    return np.array([faces[k, i : i + side, j : j + side].ravel() for k, i, j in places])


def texts(seed: int) -> np.ndarray:
    """150 documents, and the 120 words that most of them have."""
    X = data.tf_idf("classic3")
    X = X[np.random.default_rng(seed).choice(X.shape[0], 150, replace=False)].toarray()
    X = X[:, np.argsort(-np.count_nonzero(X, axis=0), kind="stable")[:120]]
    return X[X.any(axis=1)]


def nothing(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=(40, 30))


KINDS = [
    Kind("planted, 30% zeros", partial(planted, 0.3, 0.0), 8, exact=True),
    Kind("planted, 80% zeros", partial(planted, 0.8, 0.0), 8, exact=True),
    Kind("planted, 50% zeros, 10% noise", partial(planted, 0.5, 0.1), 8),
    Kind("ORL, patches of 8 × 8", partial(patches, 60, 8), 8),
    Kind("ORL, patches of 10 × 10", partial(patches, 120, 10), 8),
    Kind("classic3, tf-idf", texts, 8),
    Kind("uniform noise", nothing, 6),
]


def tables() -> list[Table]:
    rough, fine = ([kind for kind in KINDS if kind.exact == exact] for exact in (False, True))
    return [
        Table("certificates", PROOFS, tasks(certificates, KINDS), 10, ABOUT_PROOFS),
        Table("quality", QUALITY, tasks(quality, rough), 8, ABOUT_QUALITY),
        Table("exact", EXACT, tasks(exact, fine), 8, ABOUT_EXACT),
        Table("cvxpy", SPEED, [Task(f"{side} × {side}", partial(speed, side)) for side in SIDES], 25, ABOUT_SPEED),
        Table("sizes", ["gradient", "time", "status", "gap"], [Task("10000 × 60", tall), Task("5000 × 5000", wide)], 15,
              "**Larger ones**, the fifth part."),
        Table("examples", ERRORS, [Task("examples", examples)], 20, "**Relative error at the true rank.**"),
        Table("texts", [], [Task("orthogonal parts", orthogonal), Task("bounds", bounds)], 10, write=sentences),
    ]  # fmt: skip


def tasks(measure: Callable, kinds: list[Kind]) -> list[Task]:
    return [Task(kind.name, partial(measure, kind)) for kind in kinds]


def sentences(outcomes: list[Outcome]) -> str:
    return "\n\n".join(values_of(outcomes).values()) + failures(outcomes)


# -- certificates --------------------------------------------------------------------------------------


@contextmanager
def watching() -> Iterator[list[tuple[float, str]]]:
    """The seconds of every step of the oracle that the solver takes, and the stage that its bound is from."""
    steps, oracle = [], greedy.next_atom

    def watched(*args):
        start = time.perf_counter()
        atom = oracle(*args)
        steps.append((time.perf_counter() - start, atom.stage))
        return atom

    with patch.object(greedy, "next_atom", watched):
        yield steps


def check(path: tuple[PathStep, ...], start: float) -> None:
    """That bounds are not below gains, and that each part lowered the loss by its gain at least."""
    before = start
    for step in path:
        assert step.bound >= step.gain, f"a bound below the gain: {step}"
        assert before - step.objective >= step.gain - 1e-12 * start, f"a part that gained less than it says: {step}"
        before = step.objective


def energy(X: np.ndarray) -> float:
    """The loss without any part."""
    return float(np.vdot(X, X)) / 2


def gap(step: PathStep) -> float:
    """How much larger than this part's `u' P v` another's may be, relative to it."""
    return float(np.sqrt(step.bound / step.gain) - 1)


PROOFS = ["data", "size", "parts", "steps", "closed", "open", "largest gap"]
PROOFS += ["by closed form, nuclear splitting, relaxation", "median step", "longest"]
ABOUT_PROOFS = f"**Steps that are proved**, of {SEEDS} runs each; the time is that of the oracle, without the polish."


def certificates(kind: Kind) -> list[list]:
    path: list[PathStep] = []
    pw.factorize(kind.make(0), 2, solver="greedy", random_state=0)  # compiles
    with watching() as steps:
        for seed in range(SEEDS):
            X = kind.make(seed)
            result = pw.factorize(X, kind.rank, solver="greedy", random_state=seed, **SETTINGS)
            check(result.path, energy(X))
            path += result.path
    return [[kind.name, " × ".join(map(str, X.shape)), kind.rank, *proofs(path, steps)]]


def proofs(path: list[PathStep], steps: list[tuple[float, str]]) -> list:
    """The cells that tell of these steps."""
    closed = sum(step.status == "closed" for step in path)
    stages = [STAGES[stage] for _, stage in steps]
    used = ", ".join(str(stages.count(name)) for name in ("closed form", "nuclear", "dnn"))
    times = [f"{1e3 * of([seconds for seconds, _ in steps]):.0f} ms" for of in (np.median, np.max)]
    return [len(path), closed, len(path) - closed, f"{max(map(gap, path)):.1e}", used, *times]


# -- quality -------------------------------------------------------------------------------------------


class Ends(NamedTuple):
    """Relative errors and seconds on one matrix."""

    greedy: float
    pure: float
    starts: np.ndarray
    seconds: float  # of greedy
    theirs: float  # of all starts
    bare: float  # of greedy without proofs


COSTS = [f"time over that of the {STARTS}", "over that of one", "the same without proofs"]
RUNS = {
    "greedy": {"solver": "greedy"},
    "starts": {"init": "random", "n_init": STARTS},
    "bare": {"solver": Greedy(certify=False)},
    "pure": {"solver": Greedy(polish=None)},
}


def ends(kind: Kind, seed: int, tol: float) -> Ends:
    """Greedy with and without polish, and alternating runs from random starts."""
    X, settings = kind.make(seed), {"random_state": seed, "tol": tol, **SETTINGS}
    times, results = {}, {}
    for name, options in RUNS.items():
        start = time.perf_counter()
        results[name] = pw.factorize(X, kind.rank, **options, **settings)
        times[name] = time.perf_counter() - start
    starts = np.sqrt(np.array(results["starts"].objectives) / energy(X))
    errors = results["greedy"].relative_error, results["pure"].relative_error, starts
    return Ends(*errors, times["greedy"], times["starts"], times["bare"])


QUALITY = ["data", "greedy", "greedy without polish", f"one start ({SEEDS * STARTS} of them)", *COSTS]
ABOUT_QUALITY = (
    f"**Relative error over the best of {STARTS} random starts** (HALS, `tol=1e-4`), {SEEDS} matrices each: median, "
    "and largest in brackets; and what greedy costs, medians."
)


def quality(kind: Kind) -> list[list]:
    ends(kind, 0, 1e-1)  # compiles
    runs = [ends(kind, seed, 1e-4) for seed in range(SEEDS)]
    return [[kind.name, *ratios(runs), *costs(runs)]]


def ratios(runs: list[Ends]) -> list[str]:
    cells = []
    for values in ([end.greedy for end in runs], [end.pure for end in runs], [end.starts for end in runs]):
        over = np.concatenate(
            [np.atleast_1d(value) / end.starts.min() for value, end in zip(values, runs, strict=True)]
        )
        cells.append(f"{np.median(over):.4f} ({over.max():.4f})")
    return cells


def costs(runs: list[Ends]) -> list[str]:
    """Time over that of all starts, of one, and of one without proofs."""
    share, bare = np.median([(end.seconds / end.theirs, end.bare / end.theirs) for end in runs], axis=0)
    return [f"{share:.2f}", f"{STARTS * share:.0f}", f"{STARTS * bare:.1f}"]


EXACT = ["data", "greedy", "greedy without polish", f"best of {STARTS} starts", "worst start", "starts above 1e-6"]
EXACT += COSTS
ABOUT_EXACT = (
    f"**Parts that fit exactly**, `tol=1e-8`: the largest relative error over {SEEDS} matrices, and what greedy costs, "
    "medians."
)


def exact(kind: Kind) -> list[list]:
    ends(kind, 0, 1e-1)  # compiles
    runs = [ends(kind, seed, 1e-8) for seed in range(SEEDS)]
    best, worst = (max(of(end.starts) for end in runs) for of in (np.min, np.max))
    errors = max(end.greedy for end in runs), max(end.pure for end in runs), best, worst
    missed = sum(int((end.starts > 1e-6).sum()) for end in runs)
    return [[kind.name, *(f"{error:.1e}" for error in errors), f"{missed} of {SEEDS * STARTS}", *costs(runs)]]


# -- speed ---------------------------------------------------------------------------------------------


def gradient(n: int, m: int, seed: int) -> np.ndarray:
    """After four parts of eight."""
    X = make_parts(n, m, 8, zeros=0.5, noise=0.1, random_state=seed).X
    result = pw.factorize(X, 4, solver="greedy", random_state=seed)
    return result.W @ result.H - X


def square(Q: np.ndarray) -> np.ndarray:
    n, m = Q.shape
    return np.block([[np.zeros((n, n)), -Q], [-Q.T, np.zeros((m, m))]])


def answer(pipe, B: np.ndarray, options: dict) -> None:
    """In a process of its own: the bound and the seconds, after a first call on little."""
    warnings.simplefilter("ignore")
    cvx.eigenvalue_bound(np.ones((3, 3)), **options)
    pipe.send("ready")
    start = time.perf_counter()
    bound = cvx.eigenvalue_bound(B, **options)
    pipe.send((bound, time.perf_counter() - start))


def capped(B: np.ndarray, options: dict) -> tuple[float, float] | None:
    """The bound of cvxpy and its seconds; None where it takes too long. A process that dies is an error, not slow."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=answer, args=(there, B, options))
    process.start()
    there.close()
    try:
        here.recv()
        return here.recv() if here.poll(CAP) else None
    except EOFError as error:
        raise RuntimeError(f"cvxpy ended without an answer: {options}") from error
    finally:
        process.kill()
        process.join()


SPEED = ["gradient", "partwise", "gap", "stage", *(cell for name in PEERS for cell in (name, "gap", "ratio"))]
ABOUT_SPEED = (
    "**A bound for the same gradient**: `oracles.rank_one` against the doubly nonnegative relaxation by cvxpy with a "
    f"tolerance of {TOLERANCE:.0e}; medians over {GRADIENTS} gradients, the largest gap that was left, and how many "
    f"times longer cvxpy takes, which is stopped after {CAP} s."
)


def speed(side: int) -> list[list]:
    if not find_spec("cvxpy"):
        raise data.Absent("cvxpy is not installed")
    gradients = [gradient(side, side, seed) for seed in range(GRADIENTS)]
    atoms = [pw.oracles.rank_one(Q) for Q in gradients]
    own = [median_of(partial(pw.oracles.rank_one, Q), 5) for Q in gradients]
    stages = ", ".join(dict.fromkeys(atom.stage for atom in atoms))
    line = [f"{side} × {side}", f"{1e3 * np.median(own):.0f} ms", f"{max(atom.gap for atom in atoms):.0e}", stages]
    for options in PEERS.values():
        line += against(options, list(zip(gradients, atoms, own, strict=True)))
    return [line]


def against(options: dict, cases: list[tuple]) -> list[str]:
    """Seconds, gap and ratio of one solver of cvxpy; the first gradient that takes too long is the last."""
    found = []
    for Q, atom, own in cases:
        known = capped(square(Q), options)
        if known is None:
            return [f"> {CAP} s", "", f"> {CAP / own:.0f}"]
        bound, seconds = known
        assert bound >= -atom.value * (1 - 1e-9), "the bound of cvxpy lies below a value"
        found.append((seconds, (bound + atom.value) / abs(atom.value), seconds / own))
    seconds, gaps, ratio = zip(*found, strict=True)
    return [f"{np.median(seconds):.1f} s", f"{max(gaps):.0e}", f"{np.median(ratio):.0f}"]


def tall() -> list[list]:
    """Where proofs end."""
    Q = gradient(sized(10_000, 100), 60, 0)
    atom, seconds = pw.oracles.rank_one(Q), median_of(partial(pw.oracles.rank_one, Q), 3)
    return [["10000 × 60, planted", f"{seconds:.2f} s", atom.status, f"{atom.gap:.0e}"]]


def wide() -> list[list]:
    n = sized(5000, 100)
    X = sparse.random_array((n, n), density=0.01, rng=np.random.default_rng(0), format="csr")
    with watching() as steps:
        result = pw.factorize(X, 5, solver="greedy", random_state=0)
    return [["5000 × 5000, 1% nonzero, uniform", f"{steps[4][0]:.2f} s", result.path[4].status, ""]]


# -- the examples of the slides ------------------------------------------------------------------------


class Example(NamedTuple):
    title: str
    X: np.ndarray
    rank: int  # the true one
    symmetric: bool


def blocks(seed: int) -> np.ndarray:
    """Eight parts that share no row and no column."""
    rng, shape = np.random.default_rng(seed), (40, 32)
    rows, columns = (rng.permutation(np.arange(dim) % 8) for dim in shape)
    weights = [rng.uniform(0.2, 1, dim) for dim in shape]
    return np.outer(*weights) * (rows[:, None] == columns)


def three() -> list[Example]:
    A = make_parts(60, 1, 10, zeros=0.6, random_state=0).W
    X = make_parts(30, 30, 8, zeros=0.5, random_state=0).X
    return [
        Example("(a) symmetric, 60 × 60, 10 parts", A @ A.T, 10, True),
        Example("(b) 30 × 30, 8 parts", X, 8, False),
        Example("(c) 40 × 32, 8 orthogonal parts", blocks(3), 8, False),
    ]


def curves(example: Example, ranks: range) -> dict[str, np.ndarray]:
    """Relative errors at each rank; of random starts a row for each."""
    settings = {"symmetric": example.symmetric, "tol": FLOOR, "random_state": 0, **SETTINGS}
    fit = partial(pw.factorize, example.X, **settings)
    path = fit(ranks[-1], solver=Greedy(polish=None, keep=True)).path
    check(path, energy(example.X))
    given = path + (path[-1],) * (len(ranks) - len(path))  # where nothing was left to find
    starts = [[fit(t, init="random", random_state=seed).relative_error for t in ranks] for seed in range(DRAWN)]
    return {
        "random": np.array(starts),
        "pure": np.array([step.relative_error for step in given]),
        "start": np.array([fit(step.rank, init=(step.W, step.H)).relative_error for step in given]),
        "each": np.array([fit(t, solver="greedy").relative_error for t in ranks]),
    }


ERRORS = ["data", *(f"greedy{how}" for how in (" without polish", ", then alternating", " with polish"))]
ERRORS += [f"{DRAWN} random starts"]


def examples() -> list[list]:
    """The lines, and the picture."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    lines, axes = [], figure.subplots(1, 3, sharey=True)
    for axis, example in zip(axes, three(), strict=True):
        ranks = range(1, example.rank + 3)
        errors = curves(example, ranks)
        draw(axis, example, ranks, errors)
        at = {name: values[..., example.rank - 1] for name, values in errors.items()}
        cells = [f"{at[name]:.1e}" for name in ("pure", "start", "each")]
        lines.append([example.title, *cells, f"{at['random'].min():.1e} to {at['random'].max():.1e}"])
    axes[0].set_ylabel("relative error")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=10)
    figure.savefig(ROOT / "docs" / "greedy_slides.png", dpi=110)
    pictures.stamp("greedy_slides.png")
    return lines


def draw(axis, example: Example, ranks: range, errors: dict[str, np.ndarray]) -> None:
    errors = {name: np.maximum(values, FLOOR) for name, values in errors.items()}
    axis.axvline(example.rank, color="#e2e8f0", lw=6, zorder=0)
    for row, values in enumerate(errors["random"]):
        axis.semilogy(ranks, values, color="#a0aec0", lw=1, label="" if row else f"{DRAWN} random starts")
    axis.semilogy(ranks, errors["pure"], "o-", color="#c05621", ms=5, label="greedy without polish")
    axis.semilogy(ranks, errors["start"], "s-", color="#2f855a", ms=7, mfc="none", label="greedy, then alternating")
    axis.semilogy(ranks, errors["each"], "x-", color="#2b6cb0", ms=6, label="greedy with polish")
    axis.set(xlabel="number of parts", ylim=(FLOOR / 3, 2), xticks=ranks[1::2])
    axis.set_title(example.title, fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)


def orthogonal() -> str:
    """How often random starts end at the true parts where they share nothing."""
    pure, failed = 0.0, 0
    for seed in range(BLOCKS):
        fit = partial(pw.factorize, blocks(seed), 8, tol=FLOOR, **SETTINGS)
        pure = max(pure, fit(solver=Greedy(polish=None), random_state=0).relative_error)
        failed += sum(fit(init="random", random_state=start).relative_error > FAILED for start in range(DRAWN))
    return (
        f"Orthogonal parts, {BLOCKS} matrices: greedy without polish ends with a relative error of {pure:.0e} at most; "
        f"{failed} of {BLOCKS * DRAWN} random starts end above {FAILED:g}."
    )


# -- what a bound says ---------------------------------------------------------------------------------

GAIN, CLOSED, OPEN, BARRED = "#90cdf4", "#2f855a", "#dd6b20", "#edf2f7"
WORDS = {
    "8 planted parts and 10% noise": "No ninth or tenth part can gain\nmore than {last:.0f}% of what is left.",
    "uniform noise, no parts to find": "Open: a better part, by the percentage\nat the mark at most, may exist or not.",
}
PROMISE = (
    "Promised: with the parts so far held, no one part gains more than its mark. "
    "Not promised: that all parts together are the best ones of that number."
)


def bounds() -> str:
    """One run where there are parts, and one where there is nothing."""
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    cases, told = [(KINDS[2].make(0), 10), (KINDS[6].make(1), 7)], []
    axes = figure.subplots(1, 2)
    for axis, title, (X, rank) in zip(axes, WORDS, cases, strict=True):
        path = pw.factorize(X, rank, solver="greedy", random_state=0, **SETTINGS).path
        check(path, energy(X))
        left = [energy(X), *(step.objective for step in path[:-1])]
        draw_bounds(axis, path[1:], 100 / np.array(left[1:]), title)
        most = ", ".join(
            f"{np.ceil(1000 * step.bound / before) / 10:.1f}%" for step, before in zip(path, left, strict=True)
        )
        told.append(f"{most} ({title})")
    axes[0].set_ylabel("gain, % of the loss that was left")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=10)
    figure.suptitle(PROMISE, fontsize=10.5, color="#4a5568")
    figure.savefig(ROOT / "docs" / "greedy_bounds.png", dpi=110)
    pictures.stamp("greedy_bounds.png")
    return "More of what was left than this no part could have gained, step by step: " + "; ".join(told) + "."


def draw_bounds(axis, path: tuple[PathStep, ...], share: np.ndarray, title: str) -> None:
    """A bar for the gain, a mark for the bound, and nothing above it. The first step would dwarf the others."""
    at = np.array([step.rank for step in path])
    gain, bound = (share * np.array([getattr(step, name) for step in path]) for name in ("gain", "bound"))
    closed, top = np.array([step.status == "closed" for step in path]), 1.5 * bound.max()
    axis.bar(at, top - bound, 1.0, bottom=bound, color=BARRED, label="no part gains this much: proved")
    axis.bar(at, gain, 0.6, color=GAIN, label="gain of the part that was found")
    for colour, mask, label in ((CLOSED, closed, "bound, closed"), (OPEN, ~closed, "bound, open")):
        axis.hlines(bound[mask], at[mask] - 0.45, at[mask] + 0.45, color=colour, lw=2.5, label=label)
    for x, y, step in zip(at[~closed], bound[~closed], (step for step in path if step.status != "closed"), strict=True):
        more = f"+{100 * (step.bound / step.gain - 1):.1g}%"
        axis.annotate(more, (x, y), (0, 4), textcoords="offset points", ha="center", color=OPEN, fontsize=9)
    words = WORDS[title].format(last=np.ceil(bound[-2:].max()))
    axis.text(at.mean(), 0.97 * top, words, ha="center", va="top", fontsize=10)
    axis.set(xlabel="part (the first is not drawn)", xticks=at, ylim=(0, top), xlim=(at[0] - 0.5, at[-1] + 0.5))
    axis.set_title(title, fontsize=12)
    axis.spines[["top", "right"]].set_visible(False)
