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
ENOUGH = 0.5  # of the mean use: atoms used less are given up. Below 0.3 far less is recovered from few samples
SETTLE = 0.1  # of the iterations, at the end, in which no atom is given up: a new one needs some to find its place
NOTHING = 1e-14  # relative: a residual's largest product with an atom, or its square, that is rounding
DEPENDENT = 1e-12  # squared distance of an atom from the span of others, below which it is in it
RECOVERED = 0.01  # an atom is recovered at this distance (27)
WEIGHT = 0.03  # of the l1 penalty, relative to the norm of a sample: best of 0.01 ... 0.3 on `noisy_dictionary`
# sweeps of coordinate descent at most, and the share of the first one's gain at which a row is done
SOLVE = (100, 1e-4)
IMPROVE = (4, 0.02)  # what `partwise.solvers.HALS` has for factors that take turns

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})


def unit_rows(A: np.ndarray) -> np.ndarray:
    """Rows with norm 1; zero rows stay."""
    norms = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(norms > 0, norms, 1)


def places(rng: np.random.RandomState, n: int, p: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of k entries a row, at random."""
    return np.arange(n)[:, None], rng.random_sample((n, p)).argpartition(k, axis=1)[:, :k]


def exact_dictionary(seed: int, m: int = 40, p: int = 60, n: int = 1500, k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Section 4.1: `X = codes D` with unit rows, codes at k random places a row, both normal. Returns X, D."""
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


@compiled
def _add(a, factor, b):
    for c in range(a.size):
        a[c] += factor * b[c]


@compiled
def _dot(a, b):
    total = 0.0
    for c in range(a.size):
        total += a[c] * b[c]
    return total


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
def _largest(a):
    """Where |a| is largest."""
    j = 0
    for q in range(a.size):
        if abs(a[q]) > abs(a[j]):
            j = q
    return j


@compiled
def _pursue(products, gram, k, codes):
    """`codes` row by row, zeros at first, from the products of samples and atoms."""
    L, chosen, x, a = np.zeros((k, k)), np.zeros(k, np.int64), np.zeros(k), np.zeros(len(gram))
    for i in range(len(products)):
        b, size = products[i], 0
        a[:] = b  # products of the residual with the atoms
        least = NOTHING * abs(b[_largest(b)])
        while size < k:
            j = _largest(a)
            if abs(a[j]) <= least or not _extended(L, gram, chosen, size, j):
                break
            chosen[size] = j
            size += 1
            _solved(L, b, chosen, size, x)
            a[:] = b
            for r in range(size):
                _add(a, -x[r], gram[chosen[r]])
            for r in range(size):
                a[chosen[r]] = 0  # as it is but for rounding
        for r in range(size):
            codes[i, chosen[r]] = x[r]


def orthogonal_matching_pursuit(Y: np.ndarray, D: np.ndarray, k: int) -> np.ndarray:
    """Codes with at most k nonzeros a row: the atom nearest to the residual joins, then least squares over all so far.

    Batch OMP of Rubinstein, Zibulevsky and Elad (2008), "Efficient implementation of the K-SVD algorithm using batch
    orthogonal matching pursuit", Technion CS-2008-08: with `D D'` and `Y D'` no residual is ever formed, since its
    products with the atoms are `a = D y - (D D')_I x`; a Cholesky factor of `(D D')_II` grows by a row for each atom.
    """
    codes = np.zeros((len(Y), len(D)))
    _pursue(Y @ D.T, D @ D.T, k, codes)
    return codes


@compiled
def _update_atoms(R, D, codes, order, steps):
    """Each atom d in turn with its codes g, by `steps` power iterations on `E = R_I + g d'`. R, D and codes change."""
    for j in order:
        rows, d = np.flatnonzero(codes[:, j]), D[j]
        if rows.size == 0:
            continue
        for i in rows:
            _add(R[i], codes[i, j], d)
        for _ in range(steps):
            d[:] = 0
            for i in rows:
                _add(d, codes[i, j], R[i])
            d /= np.sqrt(_dot(d, d))
            for i in rows:
                codes[i, j] = _dot(R[i], d)
        for i in rows:
            _add(R[i], -codes[i, j], d)


def replaced(Y: np.ndarray, D: np.ndarray, codes: np.ndarray, least: float) -> np.ndarray:
    """D with samples for the atoms that are used less often than `least` or nearly another one: those samples that are
    represented worst, each once."""
    alike = np.triu(np.abs(D @ D.T), 1).max(axis=1) > ALIKE  # a later atom: of a pair only one goes
    gone = np.flatnonzero((np.count_nonzero(codes, axis=0) < least) | alike)
    errors, squares = (np.square(A).sum(axis=1) for A in (Y - codes @ D, Y))
    worst = np.argsort(-errors)[: len(gone)]
    worst = worst[errors[worst] > NOTHING * squares[worst]]  # where all is well there is no better atom
    D = D.copy()
    D[gone[: len(worst)]] = unit_rows(Y[worst])
    return D


def ksvd_steps(
    Y: np.ndarray, D0: np.ndarray, k: int, iterations: int = 200, *, steps: int = 4, enough: float = ENOUGH, seed=0
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

    `steps` power iterations from the present atom stand for the SVD of E_j: 1 is the approximate K-SVD of Rubinstein et
    al. (2008), 30 are the SVD to many digits, and neither recovers more atoms than 4. `enough`: the share of the mean
    use `n k / p` that an atom must have; 0 replaces unused atoms alone. `seed`: of the order in which atoms change.
    Returns D and codes.
    """
    *_, last = ksvd_steps(Y, D0, k, iterations, **options)
    return last


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


def least_squares(
    X: np.ndarray, A: np.ndarray, B: np.ndarray, allowed: np.ndarray | None = None, inner=SOLVE
) -> np.ndarray:
    """`min |X - A B'|^2` over A >= 0, zero where not allowed, from A on, by the kernels of this library."""
    lower = np.zeros((1, A.shape[1]))
    upper = np.full_like(lower, np.inf) if allowed is None else np.where(allowed, np.inf, 0.0)
    cross, gram, box = cpu.dense_product(X, B, 1.0), cpu.gram(B), (np.float64(0), lower, upper)
    return cpu.hals(A, cross, gram, box, np.arange(A.shape[1]), inner, np.arange(len(A)))[0]


def largest(parts: np.ndarray, k: int) -> np.ndarray:
    """Which entries of each column are its k largest."""
    keep = np.zeros(parts.shape, dtype=bool)
    np.put_along_axis(keep, np.argpartition(-parts, k - 1, axis=0)[:k], True, axis=0)
    return keep


def sparse_nmf_steps(
    X: np.ndarray, W0: np.ndarray, H0: np.ndarray, k: int, *, updates: int = 5
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """W and H of each iteration of `sparse_nmf_l0`, without end."""
    W, parts = np.array(W0, dtype=np.float64), np.array(H0.T, dtype=np.float64, order="C")
    while True:
        W = least_squares(X, W, parts)
        parts = least_squares(X.T, parts, W)  # pixels that were cut may come back here
        support = largest(parts, k)
        parts *= support
        for _ in range(updates):
            W = least_squares(X, W, parts, inner=IMPROVE)
            parts = least_squares(X.T, parts, W, support, inner=IMPROVE)
        yield W, parts.T


def sparse_nmf_l0(
    X: np.ndarray, W0: np.ndarray, H0: np.ndarray, k: int, iterations: int = 60, *, updates: int = 5
) -> tuple[np.ndarray, np.ndarray, list[tuple[float, float]]]:
    """`min |X - W H|^2` over W, H >= 0 with at most k nonzeros in each row of H.

    In the manner of NMFl0-W of Peharz and Pernkopf (2012), "Sparse nonnegative matrix factorization with
    l0-constraints", Neurocomputing 80: nonnegative least squares for W and then for H, all but the k largest entries of
    each row of H to zero, then `updates` of both factors that leave zeros at zero, and again. They take whatever solves
    or improves least squares for these steps; here it is coordinate descent.

    Returns W, H and, after each iteration, the seconds so far and the SNR, for which the clock stands still.
    """
    trace, seconds = [], 0.0
    steps = sparse_nmf_steps(X, W0, H0, k, updates=updates)
    with cpu.alone():
        for _ in range(iterations):
            start = time.perf_counter()
            W, H = next(steps)
            seconds += time.perf_counter() - start
            trace.append((seconds, decibels(X, W, H)))
    return W, H, trace
