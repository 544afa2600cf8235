"""Peers for structure-enforced factorization, and the data that Xu, Yu and Zhang (2013) race on.

Xu, Yu and Zhang (2013), "An alternating direction and projection algorithm for structure-enforced matrix
factorization", sections 4.1 to 4.3: dictionaries, against K-SVD, and faces with few pixels a part, against NMF with
l0-constraints. Here samples are rows: `Y ~ codes D` with the atoms in the rows of D, and `X ~ W H`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import numpy as np
from numba import njit
from sklearn.decomposition import DictionaryLearning
from sklearn.exceptions import ConvergenceWarning

from partwise.kernels import cpu

ALIKE = 0.99  # the cosine of two atoms from which on one of them is given up (Aharon, Elad and Bruckstein 2006)
ENOUGH = 0.5  # of the mean use: atoms used less are given up. Measured: 0 loses up to half of the atoms of few samples
SETTLE = 0.1  # of the iterations, at the end, in which no atom is given up: a new one needs some to find its place
NOTHING = 1e-14  # of the largest product of a sample with an atom: a residual that is rounding
DEPENDENT = 1e-12  # squared distance of an atom from the span of others, below which it is in it
RECOVERED = 0.01  # an atom is recovered at this distance (27)
WEIGHT = 0.03  # of the l1 penalty, relative to the norm of a sample: best of 0.01 ... 0.3 on `noisy_dictionary`
SWEEPS, EPS = 100, 1e-4  # of coordinate descent where least squares are to be solved, not only to be improved

compiled = njit(cache=True, nogil=True, error_model="numpy")


# ---- data and judges --------------------------------------------------------------------------------------------


def unit_rows(A: np.ndarray) -> np.ndarray:
    """Rows with norm 1; zero rows stay."""
    norms = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(norms > 0, norms, 1)


def places(rng: np.random.RandomState, n: int, p: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of k entries a row, at random."""
    return np.arange(n)[:, None], rng.random_sample((n, p)).argpartition(k, axis=1)[:, :k]


def exact_dictionary(seed: int, m: int = 40, p: int = 60, n: int = 1500, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Section 4.1: `X = codes D` with D normal and of unit rows, codes normal at k random places a row. Returns X, D."""
    rng = np.random.RandomState(seed)
    D = unit_rows(rng.standard_normal((p, m)))
    codes = np.zeros((n, p))
    codes[places(rng, n, p, k)] = rng.standard_normal((n, k))
    return codes @ D, D


def noisy_dictionary(
    seed: int, n: int, k: int = 3, snr: float = 20, *, m: int = 20, p: int = 50, low: float = -1
) -> tuple[np.ndarray, np.ndarray]:
    """Section 4.2: `X = codes D + noise` with both uniform, noise normal with `20 log10(|codes D| / |noise|) = snr`.

    The papers say uniform and not from where to where; from -1 to 1, K-SVD recovers what they report, while from 0 on
    (`low`) all atoms point the same way and it recovers next to nothing. Returns X, D.
    """
    rng = np.random.RandomState(seed)
    D = unit_rows(rng.uniform(low, 1, (p, m)))
    codes = np.zeros((n, p))
    codes[places(rng, n, p, k)] = rng.uniform(low, 1, (n, k))
    X, noise = codes @ D, rng.standard_normal((n, m))
    return X + noise * (10 ** (-snr / 20) * np.linalg.norm(X) / np.linalg.norm(noise)), D


def distances(D: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Formula (27): `1 - max_i |<d_j, found_i>|` of each atom of D, for unit vectors."""
    return 1 - np.abs(unit_rows(D) @ unit_rows(found).T).max(axis=1)


def distance(D: np.ndarray, found: np.ndarray) -> float:
    """Formula (28): the mean of (27)."""
    return float(distances(D, found).mean())


def recovered(D: np.ndarray, found: np.ndarray) -> float:
    """The share of atoms of D whose distance (27) is at most 0.01."""
    return float((distances(D, found) <= RECOVERED).mean())


def decibels(X: np.ndarray, W: np.ndarray, H: np.ndarray) -> float:
    """`SNR = 20 log10(|X| / |X - W H|)`."""
    return float(20 * np.log10(np.linalg.norm(X) / np.linalg.norm(X - W @ H)))


# ---- K-SVD ------------------------------------------------------------------------------------------------------


@compiled
def _extended(L, gram, chosen, s, j):
    """Row s of the Cholesky factor for one more atom j; returns whether j is independent of the others."""
    left = gram[j, j]
    for r in range(s):
        t = gram[j, chosen[r]]
        for q in range(r):
            t -= L[s, q] * L[r, q]
        L[s, r] = t / L[r, r]
        left -= L[s, r] ** 2
    if left <= DEPENDENT:
        return False
    L[s, s] = np.sqrt(left)
    return True


@compiled
def _solved(L, b, chosen, size, x):
    """The x with `L L' x = b[chosen]`, of so many entries."""
    for r in range(size):
        x[r] = b[chosen[r]]
        for q in range(r):
            x[r] -= L[r, q] * x[q]
        x[r] /= L[r, r]
    for r in range(size - 1, -1, -1):
        for q in range(r + 1, size):
            x[r] -= L[q, r] * x[q]
        x[r] /= L[r, r]


@compiled
def _pursue(products, gram, k, codes):
    """`codes` row by row, from the products of samples and atoms."""
    L, chosen, x = np.zeros((k, k)), np.zeros(k, np.int64), np.zeros(k)
    for i in range(products.shape[0]):
        b, a, size = products[i], products[i].copy(), 0  # a: products of the residual and the atoms
        least = NOTHING * np.abs(b).max()
        while size < k:
            j = np.argmax(np.abs(a))
            if np.abs(a[j]) <= least or not _extended(L, gram, chosen, size, j):
                break
            chosen[size] = j
            size += 1
            _solved(L, b, chosen, size, x)
            a[:] = b
            for r in range(size):
                a -= x[r] * gram[chosen[r]]
            a[chosen[:size]] = 0  # but for rounding
        codes[i] = 0
        for r in range(size):
            codes[i, chosen[r]] = x[r]


def orthogonal_matching_pursuit(Y: np.ndarray, D: np.ndarray, k: int) -> np.ndarray:
    """Codes with at most k nonzeros a row: the atom nearest to the residual joins, then least squares over all so far.

    Batch OMP of Rubinstein, Zibulevsky and Elad (2008), "Efficient implementation of the K-SVD algorithm using batch
    orthogonal matching pursuit", Technion CS-2008-08: with `D D'` and `Y D'` no residual is ever formed, since its
    products with the atoms are `a = D y - (D D')_I x`; a Cholesky factor of `(D D')_II` grows by a row for each atom.
    """
    codes = np.empty((len(Y), len(D)))
    _pursue(Y @ D.T, D @ D.T, k, codes)
    return codes


@compiled
def _update_atoms(R, D, codes, order, steps):
    """Each atom in turn with its codes, by `steps` power iterations on `E = R_I + g d'`. R, D and codes change."""
    for j in order:
        rows = np.flatnonzero(codes[:, j])
        if rows.size == 0:
            continue
        d = D[j]
        for i in rows:
            R[i] += codes[i, j] * d
        for _ in range(steps):
            d[:] = 0
            for i in rows:
                d += codes[i, j] * R[i]
            d /= np.sqrt((d * d).sum())
            for i in rows:
                codes[i, j] = (R[i] * d).sum()
        for i in rows:
            R[i] -= codes[i, j] * d


def replaced(Y: np.ndarray, D: np.ndarray, codes: np.ndarray, least: float) -> np.ndarray:
    """D with a new atom for each that is used less often than `least` or is nearly another one: the sample that is
    represented worst, each sample once."""
    D, errors = D.copy(), np.square(Y - codes @ D).sum(axis=1)
    use = np.count_nonzero(codes, axis=0)
    for j in range(len(D)):
        cosines = np.abs(D @ D[j])  # with the atoms as they are now: of a pair only one goes
        cosines[j] = 0
        worst = errors.argmax()
        if errors[worst] > 0 and (use[j] < least or cosines.max() > ALIKE):
            D[j] = Y[worst] / np.linalg.norm(Y[worst])
            errors[worst] = 0
    return D


def ksvd_steps(
    Y: np.ndarray, D0: np.ndarray, k: int, iterations: int = 200, *, steps: int = 1, enough: float = ENOUGH, seed=0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The D and codes of each iteration of `ksvd`."""
    rng, D = np.random.RandomState(seed), unit_rows(np.array(D0, dtype=np.float64))
    least = max(1, enough * k * len(Y) / len(D))
    for i in range(iterations):
        codes = orthogonal_matching_pursuit(Y, D, k)
        _update_atoms(Y - codes @ D, D, codes, rng.permutation(len(D)), steps)
        yield D.copy(), codes
        if i < (1 - SETTLE) * iterations - 1:
            D = replaced(Y, D, codes, least)


def ksvd(Y: np.ndarray, D0: np.ndarray, k: int, iterations: int = 200, **options) -> tuple[np.ndarray, np.ndarray]:
    """`min |Y - codes D|^2` with unit rows of D and at most k nonzeros in each row of codes, from the atoms D0.

    Aharon, Elad and Bruckstein (2006), "K-SVD: an algorithm for designing overcomplete dictionaries for sparse
    representation", IEEE Trans. Signal Processing 54(11): codes by orthogonal matching pursuit, then each atom with
    its codes to the best rank-one approximation of `E_j = Y - sum_{i != j} codes_i d_i` over the samples I that use it.
    Atoms not used enough, or nearly the same as another, become the sample represented worst.

    `steps` power iterations stand for the singular vectors of E_j. 1 is the approximate K-SVD of Rubinstein et al.
    (2008); many are the SVD, and recover no more. `enough`: the share of the mean use `n k / p` that an atom must have;
    0 replaces unused atoms alone. `seed`: of the order of atoms. Returns D and codes.
    """
    *_, last = ksvd_steps(Y, D0, k, iterations, **options)
    return last


# ---- an l1 penalty in place of the count ------------------------------------------------------------------------


def learned_dictionary(
    Y: np.ndarray, p: int, k: int, seed: int, *, weight: float = WEIGHT, iterations: int = 400
) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's `min 1/2 |Y - codes D|^2 + alpha |codes|_1`, then k nonzeros a row by orthogonal matching pursuit.

    Mairal, Bach, Ponce and Sapiro (2009), "Online dictionary learning for sparse coding", ICML. Y is scaled to samples
    of mean square 1, so that alpha = `weight` means the same for all data. Measured: "cd" finds what "lars" does in a
    tenth of the time, its own start is better than samples, mini-batches recover less. Returns D and codes.
    """
    scale = np.linalg.norm(Y) / np.sqrt(len(Y))
    model = DictionaryLearning(p, alpha=weight, max_iter=iterations, fit_algorithm="cd", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the codes in early iterations, where it does no harm
        D = unit_rows(model.fit(Y / scale).components_)
    return D, orthogonal_matching_pursuit(Y, D, k)
