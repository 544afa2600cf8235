"""Missing values: time to the masked objective of multiplicative updates, held-out entries beside what users do today,
planted parts found again, and what an iteration costs by either way to write it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF

import partwise as pw
from partwise import kernels
from partwise.data.observed import observed
from partwise.kernels.records import PerRow
from partwise.metrics import match_components
from partwise.problem.weights import pose_observed
from partwise.registry import resolve
from partwise.solvers import HALS, MU, Newton
from partwise.solvers.block import BlockDescent, Update
from partwise.structures import NonNegative

from .data import archive, few
from .runs import Table, Task
from .scale import sized

SEEDS = sized(3, 1)
STARTS = sized(2, 1)
ROUNDS = sized(20, 1)  # of imputation around scikit-learn's NMF
STEPS = {"masked MU": sized(200, 3), "ours": sized(1000, 5)}
PATIENCE = sized(5.0, 0.2)  # seconds of each way to write an iteration


# -- data ------------------------------------------------------------------------------------------------


class Holed(NamedTuple):
    """X with holes as `factorize` takes it, and further entries that were taken out: places and values."""

    X: Any
    missing: str
    places: tuple[np.ndarray, np.ndarray]
    values: np.ndarray


def ratings(rank: int = 10, shape: tuple[int, int] = sized((20000, 5000), (300, 200)), share: float = 0.01) -> Holed:
    """A hundredth of the entries of a planted matrix, with noise, about 1 to 10; a tenth of these is held out."""
    rng = np.random.default_rng(0)
    W, H = (rng.gamma(1.0, size=(dim, rank)) for dim in shape)
    places = np.unique(rng.integers(shape[0] * shape[1], size=int(share * shape[0] * shape[1])))
    i, j = np.divmod(places, shape[1])
    x = np.einsum("ik,ik->i", W[i], H[j])
    x = np.maximum(3 * x / x.mean() + 0.5 * rng.standard_normal(x.size), 0.1)
    out = rng.uniform(size=x.size) < 0.1
    X = sparse.csr_array((x[~out], (i[~out], j[~out])), shape=shape)
    return Holed(X, "zeros", (i[out], j[out]), x[out])


def holed(X: np.ndarray, share: float = 0.3) -> Holed:
    """An array of which a share is missing, another tenth of all held out."""
    drawn = np.random.default_rng(0).uniform(size=X.shape)
    out = np.nonzero((drawn >= share) & (drawn < share + 0.1))
    return Holed(np.where(drawn < share + 0.1, np.nan, X), "nan", out, X[out])


def faces() -> Holed:
    with np.load(archive("cbcl")) as file:
        return holed(few(file["faces"].reshape(len(file["faces"]), -1) / 255))


def cells() -> Holed:
    """Counts of the 2000 genes seen most."""
    with np.load(archive("pbmc3k")) as file:
        counts = sparse.csr_array((file["data"].astype(float), file["indices"], file["indptr"]), shape=file["shape"])
    most = np.sort(np.argsort(-counts.sum(axis=0))[:2000])
    return holed(few(counts[:, most].toarray()))


@dataclass(frozen=True)
class Row:
    name: str
    load: Callable[[], Holed]
    rank: int
    loss: str


ROWS = [
    Row("ratings, 20000 x 5000, 1% observed", ratings, 10, "frobenius"),
    Row("faces, 2429 x 361, 30% holes", faces, 49, "frobenius"),
    Row("cells, 2700 x 2000 counts, 30% holes", cells, 10, "kl"),
]


# -- what users do today ---------------------------------------------------------------------------------


def dense(given: Holed) -> tuple[np.ndarray, np.ndarray]:
    """X with zeros for holes, and what is seen."""
    if sparse.issparse(given.X):
        return given.X.toarray(), given.X.astype(bool).toarray()
    seen = ~np.isnan(given.X)
    return np.where(seen, given.X, 0), seen


def sklearn_fit(X, row: Row, init=None, **settings):
    settings |= {"solver": "cd"} if row.loss == "frobenius" else {"solver": "mu", "beta_loss": "kullback-leibler"}
    model = NMF(row.rank, init="custom" if init else "random", random_state=0, **settings)
    start = {"W": init[0], "H": init[1]} if init else {}
    return model.fit_transform(X, **start), model.components_


def zero_fill(given: Holed, row: Row):
    return sklearn_fit(given.X if sparse.issparse(given.X) else dense(given)[0], row)


def imputation(given: Holed, row: Row):
    """scikit-learn's NMF of X with its holes filled in by the model before, time and again."""
    X, seen = dense(given)
    W, H = sklearn_fit(np.where(seen, X, X.sum() / seen.sum()), row, max_iter=50)
    for _ in range(ROUNDS):
        W, H = sklearn_fit(np.where(seen, X, W @ H), row, (W, H), max_iter=10)
    return W, H


def masked_mu(given: Holed, row: Row):
    """Multiplicative updates of observed entries, as NumPy has them."""
    X, seen = dense(given)
    seen, rng = seen.astype(float), np.random.default_rng(0)
    scale = np.sqrt(X.sum() / seen.sum() / row.rank)
    W, H = (scale * np.abs(rng.standard_normal(shape)) for shape in ((len(X), row.rank), (row.rank, X.shape[1])))
    for _ in range(STEPS["masked MU"]):
        for turned in (False, True):
            model = W @ H + 1e-12
            up, down = (X, seen * model) if row.loss == "frobenius" else (X / model, seen)
            if turned:
                H = H * (W.T @ up) / (W.T @ down + 1e-12)
            else:
                W = W * (up @ H.T) / (down @ H.T + 1e-12)
    return W, H


def tensorly_masked(given: Holed, row: Row):
    from tensorly.decomposition import non_negative_parafac  # noqa: PLC0415  # optional

    X, seen = dense(given)
    weights, (W, H) = non_negative_parafac(
        X, row.rank, n_iter_max=STEPS["masked MU"], mask=seen.astype(float), init="random", random_state=0, tol=0
    )
    return W * weights, H.T


def ours(given: Holed, row: Row):
    result = pw.factorize(given.X, row.rank, loss=row.loss, missing=given.missing, random_state=0)
    return result.W, result.H


def bounded(given: Holed, row: Row):
    """With factors that are nowhere 0, so that under KL no entry is impossible."""
    floor = pw.structures.Box(1e-3, None)
    stated = {"structure_W": floor, "structure_H": floor}
    result = pw.factorize(given.X, row.rank, loss=row.loss, missing=given.missing, random_state=0, **stated)
    return result.W, result.H


OWN = {"partwise, default": ours, "partwise, factors >= 0.001": bounded}
WAYS = OWN | {
    "scikit-learn, holes as zeros": zero_fill,
    f"scikit-learn, imputation, {ROUNDS} rounds": imputation,
    "masked MU in NumPy, 200 iterations": masked_mu,
    "TensorLy, masked, 200 iterations": tensorly_masked,
}
MOST_DENSE = 10_000_000  # entries of arrays that are made dense for peers


def held_out(given: Holed, W, H, row: Row) -> float:
    """The root mean square error of the entries taken out, or under KL their mean deviance."""
    model = np.einsum("ik,ki->i", W[given.places[0]], H[:, given.places[1]])
    mean = 2 * resolve("loss", row.loss).value(given.values, model) / len(model)
    return float(np.sqrt(mean)) if row.loss == "frobenius" else mean


def hold_out(row: Row) -> list[list]:
    """One row: every way as a whole call."""
    given = row.load()
    ours(given, row)  # compiled
    found = {}
    for name, way in WAYS.items():
        if not applies(way, given, row):
            continue
        begun = time.perf_counter()
        W, H = way(given, row)
        seconds = time.perf_counter() - begun
        found[name] = seconds, seconds / to_objective(given, W, H, row), held_out(given, W, H, row)
    base = found["partwise, default"][0]
    return [
        [row.name, row.rank, row.loss, name, f"{error:.4g}", f"{t / base:.2g}", "" if name in OWN else f"{faster:.2g}"]
        for name, (t, faster, error) in found.items()
    ]


def applies(way: Callable, given: Holed, row: Row) -> bool:
    if way is tensorly_masked and not (find_spec("tensorly") and row.loss == "frobenius"):
        return False
    if way is bounded:
        return row.loss != "frobenius"
    return way in (ours, zero_fill) or np.prod(given.X.shape) <= MOST_DENSE


def to_objective(given: Holed, W, H, row: Row) -> float:
    """Seconds that a default call takes to what a model loses over the observed entries."""
    data = observed(given.X, given.missing)
    problem = pose_observed(False, data, resolve("loss", row.loss), [NonNegative()] * 2, row.rank)
    target = 1.0001 * problem.objective((W, np.ascontiguousarray(H.T)))
    begun = time.perf_counter()
    pw.factorize(given.X, row.rank, loss=row.loss, missing=given.missing, random_state=0, target=target)
    return time.perf_counter() - begun


# -- to the objective of multiplicative updates ------------------------------------------------------------


def race(row: Row) -> list[list]:
    """Iterations and seconds of the solvers to what `mu` reaches in 200 iterations, from the same start."""
    given = row.load()
    problem = pose_observed(
        False, observed(given.X, given.missing), resolve("loss", row.loss), [NonNegative()] * 2, row.rank
    )
    ratios, steps = [], []
    for seed in range(STARTS):
        W, H = pw.init.Random()(problem, np.random.RandomState(seed))
        call = partial(pw.factorize, given.X, row.rank, loss=row.loss, missing=given.missing, init=(W, H.T), tol=0)
        call(max_iter=2)
        begun = time.perf_counter()
        theirs = call(solver=MU(), max_iter=STEPS["masked MU"])
        middle = time.perf_counter()
        found = call(max_iter=STEPS["ours"], target=theirs.objective)
        ratios.append((middle - begun) / (time.perf_counter() - middle))
        steps.append(found.n_iter if found.status == "target" else np.inf)
    mean = np.exp(np.mean(np.log(ratios)))
    return [[row.name, row.rank, row.loss, found.solver.split("(")[0], " ".join(map(str, steps)), f"**{mean:.1f}**", 5]]


# -- planted parts ---------------------------------------------------------------------------------------------


SIZES = {"frobenius": (600, 500), "kl": (600, 500), "l1": (400, 300)}


def planted(loss: str, rank: int, rng) -> tuple:
    """Factors, their product, and that with the noise that the loss is made for."""
    m, n = SIZES[loss]
    W, H = rng.gamma(0.6, size=(m, rank)), rng.gamma(0.6, size=(rank, n))
    if loss == "kl":
        return 20 * W, H, 20 * W @ H, rng.poisson(20 * W @ H).astype(float)
    Y = W @ H
    noise = rng.standard_normal(Y.shape) if loss == "frobenius" else rng.laplace(size=Y.shape)
    return W, H, Y, np.maximum(Y + 0.05 * Y.std() * noise, 0)


def at_random(share: float, shape, rng) -> np.ndarray:
    return rng.uniform(size=shape) < share


def in_segments(shape, rng) -> np.ndarray:
    """Half of a third of the rows, in one piece."""
    hidden, half = np.zeros(shape, bool), shape[1] // 2
    for i in rng.choice(shape[0], shape[0] // 3, replace=False):
        start = rng.integers(half)
        hidden[i, start : start + half] = True
    return hidden


def in_blocks(shape, rng) -> np.ndarray:
    hidden = np.zeros(shape, bool)
    for _ in range(30):
        i, j = rng.integers(shape[0] - 30), rng.integers(shape[1] - 20)
        hidden[i : i + 30, j : j + 20] = True
    return hidden


HIDDEN = {f"{share:.0%} of the entries": partial(at_random, share) for share in (0.1, 0.3, 0.5, 0.8)}
HIDDEN |= {"segments of rows": in_segments, "blocks": in_blocks}


def found_again(task: tuple[str, int, str]) -> tuple[int, float, float]:
    """In how many of the seeds all parts have cosines of 0.99 or more in both factors; the median over seeds of the
    error of hidden entries over that of the planted model; and what it is at least, about, with as many parameters."""
    loss, rank, name = task
    hits, errors = 0, []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        W, H, Y, X = planted(loss, rank, rng)
        hidden = HIDDEN[name](X.shape, rng)
        result = pw.factorize(np.where(hidden, np.nan, X), rank, loss=loss, random_state=0, max_iter=sized(2000, 5))
        order = match_components((W, H.T), result)
        pairs = (W, result.W[:, order]), (H.T, result.H[order].T)
        cosines = [np.sum(A * B, axis=0) / np.linalg.norm(A, axis=0) / np.linalg.norm(B, axis=0) for A, B in pairs]
        hits += bool(np.min(cosines) >= 0.99)
        value = [resolve("loss", loss).value(X[hidden], M[hidden]) for M in (result.W @ result.H, Y)]
        errors.append((value[0] / value[1]) ** resolve("loss", loss).error_power)
    least = np.sqrt(1 + rank * sum(X.shape) / np.count_nonzero(~hidden))
    return hits, float(np.median(errors)), least


# -- what an iteration costs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Residuals(BlockDescent):
    """Coordinate descent that keeps the residuals of a row: O(nnz rank) a sweep. It is the kernel of the smoothed L1
    loss with all residuals in its quadratic part."""

    sweeps: int = 1
    extrapolate: bool = True

    def supports(self, problem):
        return None

    def prefer(self, problem):
        return 0.0, ""

    def expand(self, problem, mode, state):
        return None

    def update(self, problem, mode, state, rows):
        points = list(state.points)
        for _ in range(self.sweeps):
            rule = state.boxes[mode], 0.0, False, PerRow(np.full(len(rows), 2.0**20))
            (points[mode],), _ = problem.data.map(kernels.of(points[mode]).smooth_l1, points, mode, *rule)
        return Update(points[mode], 1.0)


def costs(rank: int) -> list[list]:
    """Of an iteration, and to 1% above the best objective, in the time of the first way."""
    given = ratings(min(rank, 30))
    rng = np.random.default_rng(1)
    start = [np.abs(rng.standard_normal(shape)) for shape in ((given.X.shape[0], rank), (rank, given.X.shape[1]))]
    ways = {
        "a Gram matrix for each row, Newton": Newton(),
        "a Gram matrix for each row, HALS": HALS(),
        "residuals, one sweep": Residuals(1),
        "residuals, three sweeps": Residuals(3),
    }
    runs = {}
    for name, solver in ways.items():
        call = partial(pw.factorize, given.X, rank, missing="zeros", init=tuple(start), tol=0, solver=solver)
        call(max_iter=1)
        times, begun = [], time.perf_counter()
        result = call(
            max_iter=80, time_limit=PATIENCE, callbacks=lambda *_, b=begun, t=times: t.append(time.perf_counter() - b)
        )
        runs[name] = np.array(times), np.array([record.objective for record in result.history][-len(times) :])
    goal = 1.01 * min(objectives[-1] for _, objectives in runs.values())
    there = {name: next((t for t, o in zip(*run, strict=True) if o <= goal), np.inf) for name, run in runs.items()}
    (first, _), *_ = runs.values()
    unit, to_goal = first[-1] / len(first), min(there.values())
    return [
        [
            rank,
            name,
            f"{t[-1] / len(t) / unit:.2g}",
            f"{there[name] / to_goal:.2g}" if there[name] < np.inf else f"not in {PATIENCE:g} s",
        ]
        for name, (t, _) in runs.items()
    ]


# -- the page ------------------------------------------------------------------------------------------------------


def planted_line(task: tuple[str, int, str]) -> list[list]:
    hits, error, least = found_again(task)
    return [[*task, f"{hits} of {SEEDS}", f"{error:.3f}", f"{least:.3f}" if task[0] != "l1" else ""]]


ABOUT = ["data", "rank", "loss"]
RANKS = sized((10, 30, 100), (3,))


def tables() -> list[Table]:
    kinds = [(loss, rank, name) for loss in ("frobenius", "kl", "l1") for rank in (5, 10) for name in HIDDEN]
    planted = [Task(", ".join(map(str, kind)), partial(planted_line, kind)) for kind in kinds if kind[:2] != ("l1", 10)]
    return [
        Table(
            "race",
            [*ABOUT, "solver", "its iterations", "times faster", "asked"],
            [Task(row.name, partial(race, row)) for row in ROWS],
            25,
            "Time to the objective that plain multiplicative updates of observed entries (our compiled `mu`) reach in "
            f"{STEPS['masked MU']} iterations, the same start, geometric mean of {STARTS}:",
        ),
        Table(
            "held out",
            [*ABOUT, "way", "held-out error", "time, ours = 1", "ours to its objective"],
            [Task(row.name, partial(hold_out, row)) for row in ROWS],
            30,
            "Whole calls at default settings, the error of entries that were held out beside the holes (root mean "
            "square, or under KL the mean deviance), and how many times faster ours is at the objective of each way "
            "over the observed entries:",
        ),
        Table(
            "planted",
            ["loss", "rank", "hidden", "found", "error", "at best"],
            planted,
            2,
            f"Planted parts, 600 x 500 (L1: 400 x 300), noise of 5% (Poisson for KL, Laplace for L1), {SEEDS} seeds: "
            "all parts found (cosines of 0.99 or more in both factors), the error of hidden entries over that of the "
            "planted model, and about what it is at best with so many parameters, `sqrt(1 + parameters / observed)`:",
        ),
        Table(
            "costs",
            ["rank", "way", "iteration", "to the objective"],
            [Task(f"rank {rank}", partial(costs, rank)) for rank in RANKS],
            18,
            "Two ways to write an iteration on ratings: a Gram matrix for each row, O(nnz rank^2), or residuals kept, "
            "O(nnz rank) a sweep. Time of an iteration, and to 1% above the best objective:",
        ),
    ]
