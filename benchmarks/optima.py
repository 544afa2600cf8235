"""Local optima: from the same starts, who ends above the other, and how often."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from partwise.bench import Contest, partwise, scikit_learn
from partwise.init import Random

from . import data
from .runs import Table, Task
from .scale import sized

STARTS = sized(20, 2)
ITERATIONS = sized(200, 3)
DOCUMENTS, LEAST = sized((1500, 3), (100, 1))
RANK = sized(20, 4)
ABOVE = 1.001  # times the other's objective
TEXTS = {
    "news20": lambda: data.tf_idf("news20"),
    "rcv1": lambda: data.stored("rcv1_subsets"),
    "k1b": lambda: data.tf_idf("k1b"),
    "tdt2": lambda: data.tf_idf("tdt2"),
}
HEADER = [
    "data",
    "size",
    "**partwise ends above**",
    "scikit-learn ends above",
    "our objective over theirs, mean ± its standard error",
    "least",
    "largest",
    "best start of ours over theirs",
]
ABOUT = (
    f"{STARTS} random starts, the same for both sides, {RANK} parts, {ITERATIONS} iterations of both (an iteration of "
    f"ours makes several sweeps), a sample of {DOCUMENTS} documents and the words that {LEAST} of these have: in how "
    "many a side ends more than 0.1% above the other. Asked: no more often ours than theirs."
)


def tables() -> list[Table]:
    tasks = [Task(name, partial(measured, name)) for name in TEXTS]
    return [Table("local optima", HEADER, tasks, 35, ABOUT)]


def sample(X) -> sparse.csr_array:
    """Some rows, drawn at random, with the words that `LEAST` of them have, without empty rows."""
    chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:DOCUMENTS])
    X = sparse.csr_array(X[chosen])
    X = X[:, np.flatnonzero(X.astype(bool).sum(axis=0) >= LEAST)]
    return sparse.csr_array(X[np.flatnonzero(abs(X).sum(axis=1) > 0)])


def end(side, contest: Contest, start) -> float:
    """The objective after all iterations."""
    factors = None
    for factors in islice(side(contest, *start), ITERATIONS):  # noqa: B007  # the last is wanted
        pass
    return contest.problem.objective(factors())


def measured(name: str) -> list[list]:
    contest = Contest(name, sample(TEXTS[name]()), RANK)
    starts = [Random()(contest.problem, check_random_state(seed)) for seed in range(STARTS)]
    ends = np.array([[end(side, contest, start) for side in (partwise, scikit_learn)] for start in starts])
    ratio, (best, other) = ends[:, 0] / ends[:, 1], ends.min(axis=0)
    counts = [f"{(over > ABOVE).sum()} of {STARTS}" for over in (ratio, 1 / ratio)]
    mean = f"{np.exp(np.log(ratio).mean()):.5f} ± {np.log(ratio).std(ddof=1) / np.sqrt(STARTS):.5f}"
    figures = ratio.min(), ratio.max(), best / other
    return [[name, contest.size, *counts, mean, *(f"{figure:.4f}" for figure in figures)]]
