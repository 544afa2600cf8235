"""The experiments of Xu, Yu and Zhang (2013) again: dictionaries, faces with few pixels a part, Swimmer; and costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.figure import Figure

import partwise as pw
from docs import pictures
from partwise import structures as s
from partwise.solvers import ADMM, PALM

from . import data
from .pages import ROOT, table
from .runs import Outcome, Table, Task, failures, values
from .runs import rows as as_rows
from .scale import sized
from .semf_peers import (
    decibels,
    exact_dictionary,
    ksvd,
    learned_dictionary,
    noisy_dictionary,
    recovered,
    sparse_nmf_l0,
    unit_rows,
)

EXACT = 1e-10  # root mean squared error of an exact factorization
NEARLY = 1e-6  # relative error from which on it is only a matter of iterations
SEARCH = 800
PENALTIES = [(0.1 * 10.0**k, 10.0**k) for k in range(-1, 5)]  # of codes and atoms, in units of |X|: six pairs
EXACT_SEEDS, FIXED_SEEDS = sized((2, 1), (1, 1))
SAMPLES = sized([200, 400, 1000], [60, 80])
SEEDS, SLOW_SEEDS = 5, 1  # the picture shows fifths of the runs
STEP, MOST = sized((200, 1000), (60, 60))
NONZEROS = sized([1, 3, 5], [1])
NOISE = sized([10, 20, 30, np.inf], [20])
SHARES = {0.33: (14.945, 14.973), 0.25: (14.832, 14.858), 0.10: (14.237, 14.291)}  # dB in the paper: NMFl0, SeMF
FACE_SEEDS, FACE_ITERATIONS = 1, 60
SWIMMER_SEEDS = sized(6, 1)

TORSO = s.NonNegative() & s.OrthogonalTo(16, nonzeros=17, method="successive")
LIMBS = s.NonNegative() & s.Pattern([4, 4, 4, 4, 1], 1)
SETS = {
    "(32)": (s.NonNegative() & s.Sparse(5), s.NonNegative()),
    "(33)": (s.NonNegative() & s.EqualNonzeros(5), s.NonNegative()),
    "(34)": (s.NonNegative() & s.Sparse(5), TORSO),
    "(35)": (LIMBS, TORSO),
    "(35) + equal": (LIMBS & s.EqualNonzeros(5), TORSO),
}
WANTED = ("(34)", "(35)", "(35) + equal")


def tables() -> list[Table]:
    samples = f"3 nonzeros, 20 dB, means over {SEEDS} runs (scikit-learn: {SLOW_SEEDS})"
    faces_title = f"**Section 4.3: ORL faces in 25 parts, means over {FACE_SEEDS} runs of the feasible factors.**"
    return [
        Table("Swimmer", SWIMMERS, tasks(swimmers, SETS), 10, "**Section 4.4: Swimmer.**", write_swimmers),
        Table("faces", FACES, [Task(f"{share:.0%}", partial(faces, share)) for share in SHARES], 25, faces_title),
        Table(
            "penalties", [], [Task(name, partial(exact_share, *pair)) for name, pair in EXACT_TASKS.items()], 8,
            "**Section 4.1: runs that find an exact factorization.**", write_penalties,
        ),
        Table(
            "dictionaries", [], tasks(dictionaries, DICTIONARIES), 10,
            f"**Section 4.2: share of 50 atoms recovered, {samples}.**", write_dictionaries,
        ),
    ]  # fmt: skip


def tasks(measure: Callable, names) -> list[Task]:
    return [Task(name, partial(measure, name)) for name in names]


# -- section 4.1 ---------------------------------------------------------------------------------------


def dictionary(X: np.ndarray, p: int, k: int, seed: int, *, solver="auto", **settings) -> pw.Result:
    """The atoms and codes of section 4.1 and 4.2 from one start."""
    settings = {"n_init": 1, "random_state": seed, "normalize": None, **settings}
    return pw.factorize(X, p, structure_W=s.Sparse(k), structure_H=s.UnitNorm(), solver=solver, **settings)


def exact_share(pair: tuple[float, float], adapt: bool) -> list[str]:
    """In how many runs the factorization is exact, from a first pair of penalties; and after the search alone."""
    exact, found, seeds = 0, 0, EXACT_SEEDS if adapt else FIXED_SEEDS
    for seed in range(seeds):
        X, _ = exact_dictionary(seed)
        solver = ADMM(penalty=pair, patience=SEARCH, search=SEARCH, adapt=adapt)
        result = dictionary(X, 60, 3, seed, solver=solver, tol=1e-11, max_iter=sized(2000 if adapt else 900, 5))
        exact += np.sqrt(np.mean(np.square(X - result.W @ result.H))) < EXACT
        objective = result.history[min(SEARCH, result.n_iter)].objective
        found += np.sqrt(2 * objective) < NEARLY * np.linalg.norm(X)
    return [f"{exact} of {seeds}", f"{found} of {seeds}"]


EXACT_TASKS = {
    f"{'adaptive' if adapt else 'fixed'}, {pair[0]:g} and {pair[1]:g}": (pair, adapt)
    for adapt in (True, False)
    for pair in PENALTIES
}


def write_penalties(outcomes: list[Outcome]) -> str:
    header = ["first penalties of codes and atoms, in units of the norm of X", *(f"{a:g}, {b:g}" for a, b in PENALTIES)]
    told = [outcome.value or [outcome.failure] * 2 for outcome in outcomes]
    adaptive, fixed = told[: len(PENALTIES)], told[len(PENALTIES) :]
    lines = [
        ["`admm`: root mean squared error below 1e-10", *(end for end, _ in adaptive)],
        ["its search alone: relative error below 1e-6", *(search for _, search in adaptive)],
        ["penalties fixed, and the same descent at the end: below 1e-10", *(end for end, _ in fixed)],
        ["penalties fixed, search alone: relative error below 1e-6", *(search for _, search in fixed)],
    ]
    return table(header, lines)


# -- section 4.2 ---------------------------------------------------------------------------------------

METHODS: dict[str, Callable] = {
    "`admm`": lambda X, p, k, seed: dictionary(X, p, k, seed).H,
    "K-SVD": lambda X, p, k, seed: ksvd(X, first_atoms(X, p, seed), k)[0],
    "scikit-learn": lambda X, p, k, seed: learned_dictionary(X, p, k, seed)[0],
}


QUICK = ("`admm`", "K-SVD")


def first_atoms(X: np.ndarray, p: int, seed: int) -> np.ndarray:
    """Random atoms, of no relation to X."""
    return unit_rows(np.random.RandomState(seed).standard_normal((p, X.shape[1])))


def recovery(n: int, k: int = 3, snr: float = 20, peers=tuple(METHODS)) -> dict[str, tuple[np.ndarray, float]]:
    """The shares of atoms that each method recovers, run by run, and its mean seconds. scikit-learn's takes long, and
    has fewer runs."""
    found = {}
    for name in peers:
        shares, start = [], time.perf_counter()
        for seed in range(SLOW_SEEDS if name == "scikit-learn" else SEEDS):
            X, D = noisy_dictionary(seed, n, k, snr)
            shares.append(recovered(D, METHODS[name](X, 50, k, seed)))
        found[name] = np.array(shares), (time.perf_counter() - start) / len(shares)
    return found


def samples_needed(k: int) -> dict[str, float]:
    """The fewest samples, in steps of `STEP`, from which each method recovers 90% on average; NaN: more than `MOST`."""
    needed: dict[str, float] = {}
    for n in range(STEP, MOST + 1, STEP):
        for name, (shares, _) in recovery(n, k, peers=[name for name in QUICK if name not in needed]).items():
            if shares.mean() >= 0.9:
                needed[name] = n
    return {name: needed.get(name, np.nan) for name in QUICK}


DICTIONARIES: dict[str, Callable[[], dict]] = (
    {f"{n} samples": partial(recovery, n) for n in SAMPLES}
    | {f"{k} nonzeros": partial(samples_needed, k) for k in NONZEROS}
    | {f"{snr:g} dB": partial(recovery, 500, snr=snr, peers=QUICK) for snr in NOISE}
)


def dictionaries(name: str) -> dict:
    return DICTIONARIES[name]()


def write_dictionaries(outcomes: list[Outcome]) -> str:
    """Three tables, and the picture of them."""
    found = values(outcomes)
    by_size = {n: shares_of(found[f"{n} samples"]) for n in SAMPLES if f"{n} samples" in found}
    by_k = {k: found[f"{k} nonzeros"] for k in NONZEROS if f"{k} nonzeros" in found}
    by_noise = {snr: shares_of(found[f"{snr:g} dB"]) for snr in NOISE if f"{snr:g} dB" in found}
    if len(found) == len(outcomes):
        draw(by_size, by_k, by_noise)
    sizes = [[n, *(f"{v.mean():.0%} ({t:.1f} s)" for v, t in row.values())] for n, row in by_size.items()]
    needs = [[k, *(f"more than {MOST}" if np.isnan(v) else v for v in row.values())] for k, row in by_k.items()]
    noise = [
        ["none" if snr == np.inf else f"{snr:g} dB", *(f"{v.mean():.1%}" for v, _ in row.values())]
        for snr, row in by_noise.items()
    ]
    blocks = [
        table(["samples", *METHODS], sizes),
        f"Samples needed to recover 90% (from {STEP} on, in steps of {STEP}):",
        table(["nonzeros", *QUICK], needs),
        "Against noise, 500 samples:",
        table(["signal to noise", *QUICK], noise),
    ]
    return "\n\n".join(blocks) + failures(outcomes)


def shares_of(stored: dict[str, list]) -> dict[str, tuple[np.ndarray, float]]:
    return {name: (np.array(shares), seconds) for name, (shares, seconds) in stored.items()}


def draw(by_size: dict, by_k: dict, by_noise: dict) -> None:
    """The paper's figures 2 to 4."""
    figure = Figure(figsize=(10, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for name, colour in zip(METHODS, ("#2b6cb0", "#c05621", "#718096"), strict=True):
        label, style = name.strip("`"), {"color": colour, "marker": "o", "markersize": 3}
        left.plot(SAMPLES, [100 * by_size[n][name][0].mean() for n in SAMPLES], label=label, **style)
        if name in QUICK:
            middle.plot(NONZEROS, [by_k[k][name] for k in NONZEROS], **style)
            for place, snr in enumerate(NOISE):
                fifths = np.sort(by_noise[snr][name][0]).reshape(5, -1).mean(axis=1) * 50
                right.plot(place + np.linspace(-0.2, 0.2, 5), fifths, **style)
    left.set(title="atoms recovered, %", xlabel="samples", ylim=(0, 102))
    middle.set(title="samples needed for 90%", xlabel="nonzeros in a sample", ylim=(0, None))
    right.set(title="atoms recovered of 50, in fifths of the runs", xlabel="signal to noise, dB", ylim=(0, 52))
    right.set_xticks(range(len(NOISE)), ["no noise" if snr == np.inf else f"{snr:g}" for snr in NOISE])
    left.legend(frameon=False, fontsize=8)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(10)
    figure.savefig(ROOT / "docs" / "dictionaries.png", dpi=130)
    pictures.stamp("dictionaries.png")


# -- section 4.3 ---------------------------------------------------------------------------------------


FACES = ["nonzeros", "`admm`, dB", "`palm`, dB", "l0-NMF of ours, dB", "their SeMF (infeasible)", "their NMFl0"]


def faces(share: float) -> list[list]:
    X = data.images("orl")
    theirs, k, rows = SHARES[share], int(share * X.shape[1]), {"ours": [], "palm": [], "l0": []}
    for seed in range(FACE_SEEDS):
        for name, solver in (("ours", ADMM()), ("palm", PALM())):
            start = time.perf_counter()
            sparse = s.NonNegative() & s.Sparse(k, per="component")
            settings = {"n_init": 1, "random_state": seed} | sized({}, {"max_iter": 3})
            result = pw.factorize(X, 25, structure_H=sparse, solver=solver, **settings)
            assert result.certificate.feasible
            rows[name].append((decibels(X, result.W, result.H), time.perf_counter() - start))
        rng = np.random.RandomState(seed)
        first = rng.uniform(size=(len(X), 25)), rng.uniform(size=(25, X.shape[1]))
        _, _, trace = sparse_nmf_l0(X, *first, k, sized(FACE_ITERATIONS, 2))
        rows["l0"].append((trace[-1][1], trace[-1][0]))
    means = {name: np.mean(values, axis=0) for name, values in rows.items()}
    told = [f"{means[name][0]:.3f} ({means[name][1]:.0f} s)" for name in ("ours", "palm", "l0")]
    return [[f"{share:.0%}", *told, theirs[1], theirs[0]]]


# -- section 4.4 ---------------------------------------------------------------------------------------


def parts_found(H: np.ndarray, truth: np.ndarray) -> int:
    cosines = unit_rows(H) @ unit_rows(truth).T
    return int((cosines.max(axis=0) > 0.999).sum())


def in_groups(H: np.ndarray, truth: np.ndarray) -> bool:
    """Whether each group of four parts is one limb, and the torso is the last part."""
    place = np.argmax(unit_rows(H) @ unit_rows(truth).T, axis=1)
    limbs = place[:16].reshape(4, 4) // 4
    return bool(np.all(limbs == limbs[:, :1]) and place[16] == 16)


SWIMMERS = ["sets", "runs with all 17 parts", "and groups", "parts found, mean", "starts, mean (4 at most)"]


def swimmers(name: str) -> dict:
    """One line, and the parts of the first run."""
    swimmer, (codes, parts) = pw.datasets.make_swimmer(), SETS[name]
    seeds = SWIMMER_SEEDS if name in WANTED else 1
    settings = {"structure_W": codes, "structure_H": parts, "tol": 1e-6} | sized({}, {"max_iter": 20})
    results = [pw.factorize(swimmer.X, 17, random_state=seed, **settings) for seed in range(seeds)]
    found = [parts_found(result.H, swimmer.H) for result in results]
    starts = np.mean([len(result.objectives) for result in results])
    grouped = [n == 17 and in_groups(r.H, swimmer.H) for n, r in zip(found, results, strict=True)]
    groups = sum(grouped) if "35" in name else "-"
    all_found = f"{sum(n == 17 for n in found)} of {seeds}"
    return {"lines": [[name, all_found, groups, f"{np.mean(found):.1f}", f"{starts:.1f}"]], "H": results[0].H}


def write_swimmers(outcomes: list[Outcome]) -> str:
    shown = {name: np.array(value["H"]) for name, value in values(outcomes).items()}
    if len(shown) == len(SETS):
        draw_swimmers(shown)
    return as_rows(SWIMMERS, outcomes)


def draw_swimmers(shown: dict[str, np.ndarray]) -> None:
    shown = {name: H for name, H in shown.items() if "equal" not in name}
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for block, (name, H) in zip(figure.subfigures(1, len(shown), wspace=0.06), shown.items(), strict=True):
        block.suptitle(name, fontsize=10)
        for k, ax in enumerate(block.subplots(5, 4).ravel()):
            if k >= len(H):
                ax.axis("off")
                continue
            ax.imshow(H[k].reshape(32, 32)[1:30, 4:29], cmap="gray_r", vmin=0)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_color("#cccccc")
    figure.savefig(ROOT / "docs" / "swimmer.png", dpi=130)
    pictures.stamp("swimmer.png")


# -- costs ---------------------------------------------------------------------------------------------


def median_of(function: Callable, repeats: int = 15) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))
