"""Tensors: side by side with TensorLy and pyttb, how near products come to the machine's limit, and planted parts found
again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import partwise as pw
from partwise.data import as_data
from partwise.kernels.threads import blas, count
from partwise.metrics import core_consistency, factor_match
from partwise.problem import pose
from partwise.structures import NonNegative

from .data import Absent, archive
from .runs import Outcome, Table, Task, rows, values
from .scale import sized

STARTS = sized(2, 1)
MORE = 3  # times the iterations, for slower peers
SEEDS = sized(5, 1)
NOISE = 0.05


@dataclass(frozen=True)
class Row:
    """A tensor, the rank, the loss, and how many iterations of the peers set the target."""

    name: str
    load: Callable[[], object]
    rank: int
    loss: str
    iterations: int
    asked: int


def cube(n: int, rank: int) -> np.ndarray:
    """Planted parts, uniform, with noise."""
    return pw.datasets.make_cp((sized(n, 12),) * 3, rank, zeros=0.0, noise=NOISE, random_state=0).X


def amino() -> np.ndarray:
    with np.load(archive("amino")) as file:
        return np.maximum(file["X"], 0).astype(np.float64)


def contacts() -> pw.SparseTensor:
    """Counts of contacts, (person, person, time), both halves."""
    with np.load(archive("primary_school")) as file:
        coords, values, shape = file["coords"].astype(np.int64), file["counts"].astype(float), file["shape"].tolist()
    return pw.SparseTensor(np.vstack([coords, coords[:, [1, 0, 2]]]), np.tile(values, 2), tuple(shape))


def scattered() -> pw.SparseTensor:
    rng, shape = np.random.default_rng(0), (20000, 15000, 3000)
    coords = np.column_stack(
        [(rng.uniform(size=sized(2_000_000, 2000)) ** 2 * size).astype(np.int64) for size in shape]
    )
    return pw.SparseTensor(coords, rng.poisson(2.0, len(coords)) + 1.0, shape)


ROWS = [
    Row("planted, 150 x 150 x 150", lambda: cube(150, 10), 10, "frobenius", 30, 3),
    Row("planted, 300 x 300 x 300", lambda: cube(300, 20), 20, "frobenius", 10, 3),
    Row("amino acids, 5 x 201 x 61", amino, 3, "frobenius", 50, 3),
    Row("school contacts, 242 x 242 x 104, 89724 nonzeros", contacts, 10, "kl", 10, 20),
    Row("school contacts, 242 x 242 x 104, 89724 nonzeros", contacts, 13, "kl", 10, 20),
]


# -- the peers, each from the same factors ----------------------------------------------------------------


def tensorly_hals(T, start, n_iter):
    from tensorly.decomposition import non_negative_parafac_hals  # noqa: PLC0415  # optional

    return unpacked(non_negative_parafac_hals(T, start[0].shape[1], n_iter, init=packed(start), tol=0))


def tensorly_mu(T, start, n_iter):
    from tensorly.decomposition import non_negative_parafac  # noqa: PLC0415

    return unpacked(non_negative_parafac(T, start[0].shape[1], n_iter, init=packed(start), tol=0))


def cp_apr(T, start, n_iter):
    import pyttb  # noqa: PLC0415

    init = pyttb.ktensor([A.copy() for A in start], np.ones(start[0].shape[1]))
    X = pyttb.sptensor(T.coords, T.values[:, None], T.shape)
    model, _, _ = pyttb.cp_apr(X, start[0].shape[1], init=init, maxiters=n_iter, stoptol=0.0, printitn=0)
    return [model.factor_matrices[0] * model.weights, *model.factor_matrices[1:]]


def packed(start):
    from tensorly.cp_tensor import CPTensor  # noqa: PLC0415

    return CPTensor((np.ones(start[0].shape[1]), [A.copy() for A in start]))


def unpacked(model):
    weights, factors = model
    return [factors[0] * weights, *factors[1:]]


PEERS = {
    "frobenius": {"TensorLy, HALS": ("tensorly", tensorly_hals), "TensorLy, MU": ("tensorly", tensorly_mu)},
    "kl": {"pyttb, cp_apr": ("pyttb", cp_apr)},
}


# -- the race ------------------------------------------------------------------------------------------------


def heat(row: Row) -> list[list]:
    """The lines of one row. The target is 0.1% above the objective of the first peer, which
    is the fastest; others get `MORE` times as many iterations to come there."""
    T = row.load()
    pw.factorize(T, row.rank, loss=row.loss, init="random", random_state=1, max_iter=2, tol=0)  # compiled
    problem = pose(as_data(T), pw.registry.resolve("loss", row.loss), [NonNegative()] * T.ndim, row.rank)
    starts = [pw.init.Random()(problem, np.random.RandomState(seed)) for seed in range(STARTS)]
    lines, targets = [], [np.inf] * STARTS
    for name, (package, peer) in PEERS[row.loss].items():
        if not find_spec(package):
            continue
        n_iter = row.iterations * (MORE if lines else 1)
        known = [timed_peer(problem, partial(peer, T, start, n_iter)) for start in starts]
        found = [objective for objective, _ in known]
        targets = targets if lines else [1.001 * objective for objective in found]
        runs = [
            timed(row, T, start, seconds, aim) for start, (_, seconds), aim in zip(starts, known, targets, strict=True)
        ]
        there = [run for run in runs if run.reached]
        ratio = np.exp(np.mean([np.log(run.theirs / run.ours) for run in there])) if there else np.nan
        sign = "> " if min(np.divide(found, targets)) > 1 else ""  # it is not there yet
        n_ours = " ".join(str(run.n_iter) for run in there)
        lines.append(
            [
                row.name,
                row.rank,
                row.loss,
                name,
                n_iter,
                n_ours,
                f"{len(there)} of {STARTS}",
                f"**{sign}{ratio:.1f}**",
                row.asked,
            ]
        )
    return lines


class Timed(NamedTuple):
    """Seconds of a peer and of ours, and how ours went."""

    theirs: float
    ours: float
    reached: bool
    n_iter: int


def timed_peer(problem, theirs: Callable) -> tuple[float, float]:
    """The objective, and the seconds of the faster of two whole calls."""
    seconds = np.inf
    for _ in range(2):
        begun = time.perf_counter()
        factors = theirs()
        seconds = min(seconds, time.perf_counter() - begun)
    return problem.objective(factors), seconds


def timed(row: Row, T, start, theirs: float, target: float) -> Timed:
    """Ours, the faster of two whole calls, beside the seconds of a peer."""
    ours = np.inf
    for _ in range(2):
        begun = time.perf_counter()
        result = pw.factorize(T, row.rank, loss=row.loss, init=start, target=target, max_iter=300, tol=0)
        ours = min(ours, time.perf_counter() - begun)
    return Timed(theirs, ours, result.status == "target", result.n_iter)


CASES: dict[str, tuple[Callable[[], np.ndarray], int]] = {
    "planted, 150 x 150 x 150": (lambda: cube(150, 10), 10),
    "planted, 60 x 60 x 60 x 20": (
        lambda: pw.datasets.make_cp(sized((60, 60, 60, 20), (8, 7, 6, 5)), 5, noise=NOISE, random_state=0).X,
        5,
    ),
    "amino acids, 5 x 201 x 61": (amino, 3),
}
DEFAULTS = ["default settings", "rank", "**times faster than TensorLy, HALS**", "our relative error", "its"]


def defaults(name: str) -> list[list]:
    """Whole calls at the default settings of both, the fastest of three."""
    if not find_spec("tensorly"):
        raise Absent("tensorly is not installed")
    from tensorly.decomposition import non_negative_parafac_hals  # noqa: PLC0415  # optional

    load, rank = CASES[name]
    T = load()
    pw.factorize(T, rank, max_iter=2, tol=0)  # compiled
    theirs = fastest(lambda: non_negative_parafac_hals(T, rank, random_state=0), sized(3, 1))
    ours = fastest(lambda: pw.factorize(T, rank, random_state=0), sized(3, 1))
    problem = pose(as_data(T), pw.losses.Frobenius(), [NonNegative()] * T.ndim, rank)
    found = unpacked(non_negative_parafac_hals(T, rank, random_state=0))
    errors = pw.factorize(T, rank, random_state=0).relative_error, problem.relative_error(found)
    return [[name, rank, f"**{theirs / ours:.1f}**", *(f"{error:.5f}" for error in errors)]]


# -- phases --------------------------------------------------------------------------------------------------


def fastest(task: Callable[[], object], repeats: int = 7) -> float:
    best = np.inf
    for _ in range(repeats):
        begun = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - begun)
    return best


def bandwidth() -> float:
    """Bytes a second that all cores read together, from an array far larger than their caches."""
    data = as_data(np.ones((200, 1000, 200)))
    values = next(data.listed())
    return values.nbytes / fastest(lambda: data.kernels.statistics(values))


def multiplications() -> float:
    """Floating-point operations a second of a large square product."""
    A = np.random.default_rng(0).uniform(size=(2000, 2000))
    return 2 * 2000**3 / fastest(lambda: A @ A, 3)


def iteration(T, rank: int, loss: str, solver: str) -> float:
    """Seconds that one more iteration takes."""
    runs = []
    for n_iter in (5, 25):
        runs.append(
            fastest(
                lambda n=n_iter: pw.factorize(
                    T, rank, loss=loss, solver=solver, init="random", max_iter=n, tol=0, random_state=0
                ),
                3,
            )
        )
    return (runs[1] - runs[0]) / 20


def products(data, rank: int) -> tuple[float, float, float]:
    """Seconds of all products of an iteration, and the least that the machine could take for them: by its operations,
    and by the bytes of X and of what is written."""
    factors = [np.random.default_rng(m).uniform(size=(dim, rank)) for m, dim in enumerate(data.shape)]

    def all_modes():
        for mode in range(len(factors)):
            data.cross(factors, mode)
            factors[mode] = factors[mode].copy()

    all_modes()
    return fastest(all_modes), *least(data, rank)


def least(data, rank: int) -> tuple[float, float]:
    order = len(data.shape)
    if data.sparse:
        operations = 2 * order * data.n_nonzeros * rank
        size = (
            order * data.n_nonzeros * (8 + 4 * (order - 1) + 8 * rank)
        )  # each reads a row of the last factor, at least
    else:
        halves = data.halves if order > 2 else ((0,), (1,))
        operations = 4 * int(np.prod(data.shape)) * rank
        size = 2 * 8 * int(np.prod(data.shape)) + 2 * 8 * rank * sum(
            int(np.prod([data.shape[m] for m in h])) for h in halves
        )
    return operations, size


PHASED: dict[str, tuple[Callable[[], Any], int]] = {
    "150 x 150 x 150": (lambda: cube(150, 10), 10),
    "300 x 300 x 300": (lambda: cube(300, 20), 20),
    "60 x 60 x 60 x 60": (lambda: pw.datasets.make_cp((sized(60, 6),) * 4, 10, noise=NOISE, random_state=0).X, 10),
    "20000 x 15000 x 3000, 2 million nonzeros": (scattered, 10),
}
PHASES = ["tensor", "rank", "products, of an iteration", "GFLOP/s", "GB/s", "of the machine's limit"]


def phases(name: str) -> dict:
    """What products take of an iteration, and how near they are to the limits of the machine."""
    with blas.on_one_thread():
        speed = multiplications() * count()
    rate, (load, rank) = bandwidth(), PHASED[name]
    T = load()
    data = as_data(T)
    with data.working():
        seconds, operations, size = products(data, rank)
    whole = iteration(T, rank, "frobenius", "hals")
    limit = max(operations / speed, size / rate)
    bound = "operations" if operations / speed > size / rate else "memory"
    cells = f"{operations / seconds / 1e9:.1f}", f"{size / seconds / 1e9:.1f}", f"{limit / seconds:.0%} of {bound}"
    return {"lines": [[name, rank, f"{seconds / whole:.0%}", *cells]], "speed": speed, "rate": rate}


def write_phases(outcomes: list[Outcome]) -> str:
    known = list(values(outcomes).values())
    speed, rate = (max((one[key] for one in known), default=0.0) / 1e9 for key in ("speed", "rate"))
    about = f"The machine: {speed:.0f} GFLOP/s in large products, {rate:.1f} GB/s read by all cores together."
    return f"{rows(PHASES, outcomes)}\n\n{about}"


# -- planted parts -------------------------------------------------------------------------------------------

PLANTED = {
    "dense, 40 x 30 x 20": {"shape": (40, 30, 20), "zeros": 0.0},
    "dense, half of the entries of factors 0": {"shape": (40, 30, 20), "zeros": 0.5},
    "sparse, 85% of the entries of factors 0": {"shape": (120, 100, 80), "zeros": 0.85, "sparse": True},
}


def recovery(name: str, rank: int) -> list[list]:
    """In how many of the seeds all planted parts are found, from a greedy and from a random start."""
    hits = {"greedy": 0, "random": 0}
    for seed in range(SEEDS):
        truth = pw.datasets.make_cp(rank=rank, noise=NOISE, random_state=seed, **PLANTED[name])
        for init in hits:
            result = pw.factorize(truth.X, rank, init=init, random_state=seed, tol=1e-5, max_iter=sized(3000, 20))
            hits[init] += factor_match(result.factors, truth.factors) >= 0.99
    return [[name, rank, f"**{hits['greedy']}**", hits["random"], round(0.95 * SEEDS)]]


ZEROS = {"uniform factor": 0.0, "30% of its entries 0": 0.3}
SYMMETRIC = ["symmetric, order 4, n = 20, rank 5", "steps closed to 1e-4 (asked: all)"]
SYMMETRIC += ["seeds with all parts found (asked: all)", "smallest cosine (asked: 0.999)"]


def symmetric(name: str) -> list[list]:
    """Fourth-order symmetric tensors: which steps are proved, and which parts are found."""
    closed, steps, found, least_cosine = 0, 0, 0, 1.0
    for seed in range(SEEDS):
        A, result = symmetric_run(seed, ZEROS[name])
        closed, steps = closed + sum(step.status == "closed" for step in result.path), steps + len(result.path)
        cosines = np.abs(unit(A).T @ unit(result.factors[0])).max(axis=1)
        least_cosine, found = min(least_cosine, float(cosines.min())), found + bool(cosines.min() >= 0.999)
    return [[name, f"{closed} of {steps}", f"**{found}** of {SEEDS}", f"{least_cosine:.6f}"]]


def symmetric_run(seed: int, zeros: float) -> tuple[np.ndarray, pw.Result]:
    rng = np.random.default_rng(seed)
    A = rng.uniform(size=(20, 5)) * (rng.uniform(size=(20, 5)) >= zeros)
    T = np.einsum("ak,bk,ck,dk->abcd", A, A, A, A, optimize=True)
    return A, pw.factorize(T, 5, symmetric=True, solver="greedy", random_state=seed)


def unit(A: np.ndarray) -> np.ndarray:
    return A / np.linalg.norm(A, axis=0)


def fluorescence() -> list[list]:
    """Amino acids at rank 3: core consistency, and concentrations against the truth."""
    with np.load(archive("amino")) as file:
        truth = file["concentrations"]
    T = amino()
    result = pw.factorize(T, 3, random_state=0, tol=1e-6)
    found = result.factors[0]
    correlations = np.corrcoef(found.T, truth.T)[:3, 3:].max(axis=0)
    free = pw.factorize(T, 3, structures=["free"] * 3, random_state=0, tol=1e-6, max_iter=5000).factors[0]
    unconstrained = np.abs(np.corrcoef(free.T, truth.T)[:3, 3:]).max(axis=0)
    lines = [["core consistency at rank 3", f"{core_consistency(T, result.factors):.2f}", "above 95"]]
    for name, own, other in zip(("tryptophan", "tyrosine", "phenylalanine"), correlations, unconstrained, strict=True):
        lines.append(
            [f"concentrations of {name}, correlation", f"{own:.5f} (without constraints {other:.5f})", "0.999"]
        )
    return lines


RACE = ["tensor", "rank", "loss", "peer", "its iterations", "ours to its objective + 0.1%", "starts that got there"]
RACE += ["**times faster**", "asked"]
FOUND = ["planted, 5% noise", "rank", f"greedy start, of {SEEDS}", f"random start, of {SEEDS}", "asked"]


def tables() -> list[Table]:
    kinds = list(product(PLANTED, (5, 10)))
    planted = [Task(f"{name}, rank {rank}", partial(recovery, name, rank)) for name, rank in kinds]
    races = [Task(f"{row.name}, rank {row.rank}", partial(heat, row)) for row in ROWS]
    return [
        Table("race", RACE, races, 20),
        Table("default settings", DEFAULTS, [Task(name, partial(defaults, name)) for name in CASES], 6),
        Table("phases", PHASES, [Task(name, partial(phases, name)) for name in PHASED], 6, write=write_phases),
        Table("planted", FOUND, planted, 6),
        Table("symmetric", SYMMETRIC, [Task(name, partial(symmetric, name)) for name in ZEROS], 6),
        Table("amino acids", ["amino acids", "measured", "asked"], [Task("amino acids", fluorescence)], 4),
    ]
