"""Matrices with a known number of parts, for the benchmark of rank selection: what is planted, and what can be seen of
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from partwise.init import Given
from partwise.result import Result
from partwise.selection.path import extended
from partwise.selection.setting import Setting

from .data import Absent, archive
from .scale import sized

SEEDS = (2,)
SHAPE = sized((200, 100), (40, 30))
N_SEEDS = sized(3, 1)  # of matrices without structure, and of those that are transposed


class Instance(NamedTuple):
    """Data, their expectation, and how they are to be fitted."""

    name: str  # of the suite it belongs to
    X: np.ndarray
    truth: np.ndarray
    rank: int
    most: int  # the largest rank tried
    loss: str


# -- factors -----------------------------------------------------------------------------------------------


def semi_sparse(rng, m, n, rank):
    """Most entries small, parts that overlap."""
    return rng.gamma(0.5, 1, (m, rank)), rng.gamma(0.5, 1, (rank, n))


def half_zeros(rng, m, n, rank):
    W, H = (rng.uniform(size=shape) * (rng.uniform(size=shape) >= 0.5) for shape in ((m, rank), (rank, n)))
    return W, H


def alike(rng, m, n, rank):
    """No zeros at all: parts have cosines of 0.75, and are not unique."""
    return rng.uniform(size=(m, rank)), rng.uniform(size=(rank, n))


def correlated(rng, m, n, rank):
    """Parts that share a profile, with cosines of about 0.8, and samples of few parts."""
    shared = rng.gamma(1, 1, n)
    H = 0.5 * shared + 0.3 * rng.gamma(0.3, 1 / 0.3, (rank, n))
    return rng.gamma(0.4, 1, (m, rank)), H


def unequal(rng, m, n, rank):
    """Strengths from 1 down to 0.15."""
    W, H = semi_sparse(rng, m, n, rank)
    return W * np.geomspace(1, 0.15, rank), H


def bumps(x, centres, widths):
    return np.exp(-0.5 * ((x - centres) / widths) ** 2)


def smooth(rng, m, n, rank):
    """Peaks that elute one after another, with spectra of three bands each."""
    t, nm = np.linspace(0, 1, m)[:, None], np.linspace(0, 1, n)
    centres = np.linspace(0.1, 0.9, rank) + rng.normal(0, 0.02, rank)
    W = bumps(t, centres, rng.uniform(0.03, 0.08, rank))
    H = np.zeros((rank, n))
    for _ in range(3):
        heights = rng.uniform(0.3, 1, (rank, 1))
        places = rng.uniform(0, 1, (rank, 1))
        H += heights * bumps(nm, places, rng.uniform(0.03, 0.12, (rank, 1)))
    return W * rng.uniform(0.5, 1.5, rank), H


def topics(rng, m, n, rank):
    """Documents of few topics, topics of few words, words of unequal frequency."""
    frequency = np.arange(3, n + 3) ** -0.7
    H = rng.dirichlet(0.1 * n * frequency / frequency.sum(), rank)
    return rng.dirichlet(np.full(rank, 1 / rank), m), H


KINDS = {
    "gamma": semi_sparse,
    "zeros": half_zeros,
    "uniform": alike,
    "correlated": correlated,
    "unequal": unequal,
    "smooth": smooth,
    "topics": topics,
}


# -- data --------------------------------------------------------------------------------------------------


def noisy(shape, rank, kind, noise, seed):
    """`W H` and normal noise of that share of its norm, cut at 0; and `W H`."""
    rng = np.random.default_rng([seed, rank, shape[0]])
    W, H = KINDS[kind](rng, *shape, rank)
    truth = W @ H
    E = rng.standard_normal(truth.shape)
    E *= noise * np.linalg.norm(truth) / np.linalg.norm(E)
    return np.maximum(truth + E, 0), truth


def drawn(rng, truth, theta=None):
    """Poisson counts, or with theta negative binomial ones, of variance `mu + mu^2 / theta`."""
    means = truth if theta is None else truth * rng.gamma(theta, 1 / theta, truth.shape)
    return rng.poisson(means).astype(float)


def counted(shape, rank, kind, mean, seed, *, theta=None):
    """Counts of that mean; documents differ in length."""
    rng = np.random.default_rng([seed, rank, shape[0], 1])
    W, H = KINDS[kind](rng, *shape, rank)
    W = W * (mean * shape[0] * shape[1] / (W @ H).sum())
    if kind == "topics":
        W = W * rng.gamma(4, 1 / 4, (shape[0], 1))
    truth = W @ H
    return drawn(rng, truth, theta), truth


def catalogues(n_samples, rank, seed, theta=None):
    """Mutations by kind: COSMIC signatures, each in 6 of 10 samples, about 3000 mutations in a sample."""
    with np.load(archive("cosmic_sbs")) as file:
        known = file["signatures_v3_4"]
    rng = np.random.default_rng([seed, rank, n_samples, 2])
    H = known[:, rng.choice(known.shape[1], rank, replace=False)].T
    W = rng.gamma(0.5, 1, (n_samples, rank)) * (rng.uniform(size=(n_samples, rank)) < 0.6)
    shares = W / W.sum(axis=1, keepdims=True).clip(1e-9)
    truth = shares * 3000 * rng.lognormal(0, 0.8, (n_samples, 1)) @ H
    return drawn(rng, truth, theta), truth


# -- suites ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A row of a suite, one instance a seed."""

    suite: str
    kind: str
    rank: int
    noise: float = 0.0
    mean: float = 0.0
    theta: float | None = None

    def instance(self, seed: int) -> Instance:
        if self.noise:
            X, truth = noisy(SHAPE, self.rank, self.kind, self.noise, seed)
            return Instance(self.suite, X, truth, self.rank, sized(13, 9), "frobenius")
        if self.kind == "signatures":
            X, truth = catalogues(100, self.rank, seed, self.theta)
        else:
            shape = (250, 400) if self.kind == "topics" else SHAPE
            X, truth = counted(shape, self.rank, self.kind, self.mean, seed, theta=self.theta)
        there = np.ix_(X.sum(axis=1) > 0, X.sum(axis=0) > 0)
        return Instance(self.suite, X[there], truth[there], self.rank, sized(12, 9), "kl")


LEAST_SQUARES, COUNTS, OVERDISPERSED, NAMED = "least squares", "counts", "counts, overdispersed", "topics, signatures"


def cases() -> Iterator[Case]:
    for kind in ("gamma", "zeros", "uniform", "correlated", "unequal", "smooth"):
        for noise in (0.3, 0.6):
            yield from (Case(LEAST_SQUARES, kind, rank, noise=noise) for rank in (4, 8))
    for rank in (4, 8):
        poisson = {"gamma": (5, 1, 0.3), "zeros": (2,), "correlated": (5,), "unequal": (2,)}
        for kind, means in poisson.items():
            yield from (Case(COUNTS, kind, rank, mean=mean) for mean in means)
        yield Case(OVERDISPERSED, "gamma", rank, mean=5, theta=5)
        yield Case(OVERDISPERSED, "unequal", rank, mean=5, theta=2)
        yield from (Case(NAMED, "topics", rank, mean=mean) for mean in (0.1, 0.3))
        yield Case(NAMED, "signatures", rank)
        yield Case(OVERDISPERSED, "signatures", rank, theta=20)


def instances() -> Iterator[tuple[Case, int, Instance]]:
    """Those of all seeds; what needs data that are not here is named and left out."""
    for seed in SEEDS:
        for case in islice(cases(), None, None, sized(1, 12)):
            try:
                yield case, seed, case.instance(seed)
            except Absent as error:
                print(f"{case.kind}: {error}")


def structureless(seed: int) -> Iterator[Instance]:
    """Columns shuffled, each on its own; and one part, with noise that is nowhere cut at 0."""
    rng = np.random.default_rng([seed, 7])
    X, Y = noisy(SHAPE, 5, "gamma", 0.3, seed)[0], counted(SHAPE, 5, "gamma", 3, seed)[0]
    for name, shuffled, loss in (("shuffled", X, "frobenius"), ("shuffled counts", Y, "kl")):
        yield Instance(name, rng.permuted(shuffled, axis=0), np.ones((1, 1)), 1, 10, loss)
    w, h = rng.uniform(1, 2, (200, 1)), rng.uniform(1, 2, (1, 100))
    E = rng.standard_normal((200, 100))
    X = w @ h + 0.1 * np.linalg.norm(w @ h) / np.linalg.norm(E) * E
    assert X.min() > 0
    yield Instance("one part and noise", X, w @ h, 1, 10, "frobenius")
    yield Instance("one part, counts", drawn(rng, 2 * w @ h), 2 * w @ h, 1, 10, "kl")


def turned(seed: int) -> Iterator[Instance]:
    """To be compared with their transposes."""
    yield Instance("noise 0.3", *noisy(SHAPE, 5, "gamma", 0.3, seed), 5, 10, "frobenius")
    yield Instance("counts of mean 3", *counted(SHAPE, 5, "gamma", 3, seed), 5, 10, "kl")


# -- what can be seen --------------------------------------------------------------------------------------


def path_of(setting: Setting, most: int) -> list[Result]:
    """Fits of all of X with 1, 2, ... parts, each from the one before, as close as `factorize` goes: what counts as
    detectable must not depend on how a search fits."""
    found: list[Result] = []
    for rank in range(1, most + 1):
        start = Given(extended(setting.given.data, found[-1].factors, rank, rank)) if found else None
        found.append(setting.fit(rank, rank, start, normalize=None, sort=False))
    return found


def detectable_rank(instance: Instance, path: list[Result]) -> int:
    """The rank whose fit is nearest to the expectation, by the loss: nothing that predicts can find more."""
    return 1 + int(np.argmin([distance(instance, result.W @ result.H) for result in path]))


def distance(instance: Instance, model: np.ndarray) -> float:
    if instance.loss == "frobenius":
        return float(np.square(model - instance.truth).sum())
    rows, columns = instance.X.sum(axis=1) + 0.5, instance.X.sum(axis=0) + 0.5
    model = model + 1e-6 * (np.outer(rows, columns) / columns.sum() - model)  # nowhere 0
    return float((model - instance.truth * np.log(model)).sum())
