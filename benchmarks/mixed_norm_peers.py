"""Peers for sparsity budgets over groups of parts: what was there before, and the paper's own algorithm.

Potluru, Le Roux, Pearlmutter, Hershey and Brand (2013), "Coordinate descent for mixed-norm NMF":

    min 1/2 |X - W A'|^2    such that    W, A >= 0,    |a_i|_2 = 1,    sum_{i in g} |a_i|_1 = budget_g.

Here samples are rows of X, and the parts are columns of A; inside they are the rows of `H = A'`, which are contiguous.
`hoyer` and `single_columns` hold the sum of each part as it is at the start; `pairwise` shares it out.

With the norm of a part held, the objective is linear in it: `-b'y` with `b = cross_i - sum_{l != i} gram_il h_l`. All
peers need the y >= 0 with |y|_2 = 1 and sum k that has the largest b'y, which is also the projection of b:
`y = (b - mu)_+ / |(b - mu)_+|`, with mu such that the sum is k. All yield W and A after each iteration. They are best
run within `cpu.alone()`: large products go to the threads of this library in pieces, as its own do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from partwise.kernels import cpu, threads

from .semf_peers import IMPROVE

BLOCK = 8  # parts whose b come out of one product
ROUNDING = 1e-13  # relative: sums this near to those of a single nonzero or of equal entries are the same
SEARCHES = 100  # most passes over a vector in a search for mu; it takes about five
STEP, GROWTH, SHRINKAGE, SMALLEST = 1.0, 1.2, 0.5, 1e-200  # of Hoyer's steps, as in his nmfsc
TINY = 1e-9  # keeps the denominators of multiplicative updates from zero, there as well

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})


@compiled
def _above(b, mu):
    """How many entries are above mu, and the sums of `(b - mu)_+` and its square."""
    count, first, second = 0.0, 0.0, 0.0
    for c in range(b.size):
        d = b[c] - mu
        d = d if d > 0 else 0.0
        count += 1.0 if d > 0 else 0.0
        first += d
        second += d * d
    return count, first, second


@compiled
def _below(b, k):
    """The mu at which `b - mu`, unclipped, has the sum k and norm 1 up to its length: never above the mu sought."""
    mean, square = 0.0, 0.0
    for c in range(b.size):
        mean += b[c]
    mean /= b.size
    for c in range(b.size):
        square += (b[c] - mean) ** 2
    return mean - k * np.sqrt(square / (b.size * (b.size - k * k)))


@compiled
def _price(b, k, mu):
    """The mu sought, from a guess.

    For the p entries above some mu, with sum s and sum of squares t of `b - mu`, another one suits k if they stay:
    `mu + s / p - k sqrt((t - s^2 / p) / (p (p - k^2)))`. From below this rises and never passes the mu sought, as
    clipping only adds to the sum and takes from the norm; once p stays it is exact. From above one step leads below,
    or there are too few entries: then all entries are a start.
    """
    last, fresh = -1.0, False
    for _ in range(SEARCHES):
        p, s, t = _above(b, mu)
        if p <= k * k:
            if fresh:
                break
            mu, fresh, last = _below(b, k), True, -1.0
            continue
        mu += s / p - k * np.sqrt(max(t - s * s / p, 0.0) / (p * (p - k * k)))
        if p == last:
            break
        last = p
    return mu


@compiled
def _best(b, k, length, mu, y):
    """The y >= 0 of this norm and the sum `k length` with the largest b'y, and its mu, from a guess of it.

    Where more than k^2 entries are largest, all zero for a part that is not in use, many y are as good: it stays.
    """
    if k <= 1 + ROUNDING:
        y[:] = 0
        y[np.argmax(b)] = length
        return mu
    if k * k >= b.size * (1 - ROUNDING):
        y[:] = length / np.sqrt(b.size)
        return mu
    mu = _price(b, k, mu)
    second = _above(b, mu)[2]
    if second > 0:
        factor = length / np.sqrt(second)
        for c in range(b.size):
            d = b[c] - mu
            y[c] = d * factor if d > 0 else 0.0
    return mu


def equal_start(m: int, budgets: np.ndarray, groups: list[np.ndarray], rng) -> np.ndarray:
    """Section 3: each part the best y for a uniformly random b, with an equal share of the budget of its group."""
    H = np.empty((sum(map(len, groups)), m))
    for group, budget in zip(groups, budgets, strict=True):
        for i in group:
            _best(rng.uniform(size=m), budget / len(group), 1.0, 0.0, H[i])
    return np.ascontiguousarray(H.T)


def pieces(n: int) -> list[int]:
    """Boundaries of n rows, a piece for each thread: BLAS packs the other matrix anew for every piece."""
    return [n * i // threads.count() for i in range(threads.count() + 1)]


def crossed(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """`W'X`, whose rows belong to the parts."""
    out = np.empty((W.shape[1], X.shape[1]))

    def piece(start, stop):
        np.matmul(W.T, X[:, start:stop], out=out[:, start:stop])

    threads.map_chunks(piece, pieces(X.shape[1]))
    return out


def multiplied(X: np.ndarray, H: np.ndarray) -> np.ndarray:
    """`X H'`."""
    out = np.empty((len(X), len(H)))

    def piece(start, stop):
        out[start:stop] = (H @ X[start:stop].T).T  # 1.4 times as fast as `X @ H.T` on faces

    threads.map_chunks(piece, pieces(len(X)))
    return out


def improved(X: np.ndarray, W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """W after sweeps of coordinate descent, by the kernel of this library."""
    n, rank = W.shape
    box = np.float64(0), np.zeros((1, rank)), np.full((1, rank), np.inf)
    return cpu.hals(W, multiplied(X, H), H @ H.T, box, np.arange(rank), IMPROVE, np.arange(n))[0]


@compiled
def _step_rows(H, G, step, held, out):
    """Rows of H a step down G, projected, into `new`, their changes into D; returns `<G, D>`."""
    (sums, prices), (new, D, (start, stop)) = held, out
    moved, slope = np.empty(H.shape[1]), 0.0
    for i in range(start, stop):
        h, g, y, d = H[i], G[i], new[i], D[i]
        for c in range(h.size):
            moved[c] = h[c] - step * g[c]
        y[:] = h
        prices[i] = _best(moved, sums[i], 1.0, prices[i], y)
        for c in range(h.size):
            d[c] = y[c] - h[c]
            slope += g[c] * d[c]
    return slope


def stepped(H: np.ndarray, gram: np.ndarray, cross: np.ndarray, held: tuple, step: float) -> tuple[np.ndarray, float]:
    """H after a projected step that does not raise the objective, and the step to try next."""
    G, new, D = gram @ H, np.empty_like(H), np.empty_like(H)
    G -= cross

    def change(step):
        slopes = threads.map_chunks(lambda i, j: _step_rows(H, G, step, held, (new, D, (i, j))), pieces(len(H)))
        return sum(slopes) + np.vdot(gram, D @ D.T) / 2

    while step > SMALLEST:
        if change(step) <= 0:
            return new, step * GROWTH
        step *= SHRINKAGE
    return H, step


def hoyer(
    X: np.ndarray, W: np.ndarray, A: np.ndarray, groups: list[np.ndarray], budgets: np.ndarray, *, updates: int = 10
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hoyer (2004), "Non-negative matrix factorization with sparseness constraints", JMLR 5, with the sums held.

    A step down the gradient of A and the projection of each part, half as long until the objective does not rise and
    1.2 times as long the next time; then W by the multiplicative update `W * (X A) / (W A'A)`. No residual is formed:
    with `D = H_new - H` the objective changes by `<G, D> + 1/2 <gram, D D'>`. `updates`: of each factor, with `X A` and
    `W'X` at hand. His algorithm has one; with 10 the objective on faces is lower after the same time.
    """
    H, step = np.array(A.T, dtype=np.float64, order="C"), STEP
    held = H.sum(axis=1), np.zeros(len(H))
    while True:
        gram, cross = W.T @ W, crossed(X, W)
        for _ in range(updates):
            H, step = stepped(H, gram, cross, held, step)
        gram, cross = H @ H.T, multiplied(X, H)
        for _ in range(updates):
            W = W * cross / (W @ gram + TINY)
        yield W, H.T


def started(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H, the sums of its rows, and for each a guess of its mu."""
    H = np.array(A.T, dtype=np.float64, order="C")
    return H, H.sum(axis=1), np.zeros(len(H))


@compiled
def _columns(B, block, state):
    """Some rows of H to their best values one after another.

    B has `b - cross` for them; what they change enters those of the rows after them. `state`: H, its sums and prices,
    gram and cross.
    """
    H, sums, prices, gram, cross = state
    old = np.empty(H.shape[1])
    for p in range(block.size):
        i, y, b = block[p], H[block[p]], B[p]
        for c in range(y.size):
            old[c] = y[c]
            b[c] += cross[i, c]
        prices[i] = _best(b, sums[i], 1.0, prices[i], y)
        for c in range(y.size):
            old[c] -= y[c]
        for q in range(p + 1, block.size):
            b, z = B[q], gram[i, block[q]]
            for c in range(y.size):
                b[c] += z * old[c]


def sweep(state: tuple) -> None:
    """Each row of H to its best value of norm 1 and its sum, in place."""
    H, _, _, gram, _ = state
    for start in range(0, len(H), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(H)))
        others = -gram[block]
        others[np.arange(block.size), block] = 0
        _columns(others @ H, block, state)


def single_columns(
    X: np.ndarray, W: np.ndarray, A: np.ndarray, groups: list[np.ndarray], budgets: np.ndarray, *, sweeps: int = 3
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Potluru, Plis, Le Roux, Pearlmutter, Calhoun and Hayes (2013), "Block coordinate descent for sparse NMF", ICLR.

    Each part in turn to its best value with its own sum held, `sweeps` times over; then W by coordinate descent.
    """
    H, sums, prices = started(A)
    while True:
        H = H.copy()  # the last one is the caller's
        state = H, sums, prices, W.T @ W, crossed(X, W)
        for _ in range(sweeps):
            sweep(state)
        W = improved(X, W, H)
        yield W, H.T


@compiled
def _places(mask):
    """Where entries go if those with a true mask come first, and how many these are."""
    size, out = mask.sum(), np.empty(mask.size, np.int64)
    first, second = 0, size
    for c in range(mask.size):  # without branches, which would be mispredicted half of the time
        k = np.int64(mask[c])
        out[c] = second + k * (first - second)
        first += k
        second += 1 - k
    return out, size


@compiled
def _parted(B, block, p, where, state):
    """b and present values of the pair at p of a block: of the first part where the mask is true, then of the second
    one elsewhere."""
    H, _, _, gram, cross = state
    mask, places = where
    i, j = block[p], block[p + 1]
    first, second, e, f, x, y, z, w = B[p], B[p + 1], cross[i], cross[j], H[i], H[j], gram[i, i], gram[j, j]
    b, now = np.empty(mask.size), np.empty(mask.size)
    for c in range(mask.size):
        u, v = first[c] + e[c] + z * x[c], second[c] + f[c] + w * y[c]
        first[c] = u if mask[c] else v  # not needed any more
        u, v = x[c], y[c]
        second[c] = u if mask[c] else v
    for c in range(mask.size):
        b[places[c]] = first[c]
        now[places[c]] = second[c]
    return b, now


@compiled
def _sparse_trans(a):
    """Algorithm 3 for a in rising order: sums `s(p)` of the p largest entries, `t(p)` of their squares, and `k(p)^2`,
    where `k(p) = (s - p a_p) / sqrt(t - 2 a_p s + p a_p^2)` is the sum of y for mu at the p-th largest entry."""
    s, t, k = np.zeros(a.size + 1), np.zeros(a.size + 1), np.zeros(a.size + 1)
    falling, first, second = a[::-1].copy(), 0.0, 0.0
    for p in range(a.size):
        first += falling[p]
        second += falling[p] * falling[p]
        s[p + 1] = first
        t[p + 1] = second
    for p in range(a.size):
        mu, count, total = falling[p], np.float64(p + 1), s[p + 1]
        above = total - count * mu
        k[p + 1] = above * above / (t[p + 1] - mu * (total + above))
    return s, t, k


@compiled
def _value(path, k):
    """Algorithm 4: the largest b'y for the sum k and norm 1, `(k s + sqrt((p t - s^2) (p - k^2))) / p`, where p, the
    number of entries that are positive, is the last one with `k(p) <= k`."""
    s, t, squares = path
    p, size, square = 1, s.size - 1, k * k
    while size > 1:  # bisection without branches; k(p) is NaN while all entries are the same, and p goes on
        half = size // 2
        p += 0 if squares[p + half] > square else half
        size -= half
    return (k * s[p] + np.sqrt(max(p * t[p] - s[p] ** 2, 0.0) * max(p - square, 0.0))) / p


@compiled
def _sparse_biopt(a, b, total, lengths, grid):
    """Algorithm 1: the share of the total for the first of two vectors that is best, of so many in the range that can
    be had, for vectors in rising order."""
    f, g = lengths
    low, high = max(f, total - g * np.sqrt(b.size)), min(f * np.sqrt(a.size), total - g)
    first, second = _sparse_trans(a), _sparse_trans(b)
    best, largest = low, -np.inf
    for n in range(grid):
        share = low + (high - low) * n / max(grid - 1, 1)
        value = f * _value(first, share / f) + g * _value(second, (total - share) / g)
        if value > largest:
            best, largest = share, value
    return best


@compiled
def _norm(x):
    square = 0.0
    for c in range(x.size):
        square += x[c] * x[c]
    return np.sqrt(square)


@compiled
def _shared(b, rising, x, size, grid):
    """The best values of two vectors, one after the other as in `_parted`, for the best share of their sum, and by how
    much that of the first one grows; and whether they are better than x, what is there."""
    y, now, total = x.copy(), x[:size].sum(), x.sum()
    f, g = _norm(x[:size]), _norm(x[size:])
    if not min(f, g) > 0:
        return y, 0.0, False
    share = _sparse_biopt(rising[:size], rising[size:], total, (f, g), grid)
    _best(b[:size], share / f, f, 0.0, y[:size])
    _best(b[size:], (total - share) / g, g, 0.0, y[size:])
    gain = 0.0
    for c in range(b.size):
        gain += b[c] * (y[c] - x[c])
    return y, share - now, gain > 0


@compiled
def _enter(B, block, p, found, state):
    """What was found for the pair at p of a block into H, and its change into B of the parts after it."""
    H, sums, _, gram, _ = state
    mask, places, found_values, moved = found
    i, j, change = block[p], block[p + 1], found_values[places]
    sums[i] += moved
    sums[j] -= moved
    x, y = H[i], H[j]
    for c in range(mask.size):
        new, u, v = change[c], x[c], y[c]
        x[c] = new if mask[c] else u
        y[c] = v if mask[c] else new
        change[c] = new - (u if mask[c] else v)
    for q in range(p + 2, block.size):
        b, z, w = B[q], gram[block[q], i], gram[block[q], j]
        for c in range(mask.size):
            b[c] -= (z if mask[c] else w) * change[c]


def change_pairs(order: np.ndarray, masks: np.ndarray, grid: int, state: tuple) -> None:
    """Algorithm 2 for the pairs that follow each other in `order`, each part in one of them, in place.

    `B = -gram H` for some pairs at a time, then kept up to date for those of them still to come: less work than to
    keep it for all parts. Which entries are positive is told by mu, so that values are sorted and not their places.
    """
    H, _, _, gram, _ = state
    for start in range(0, order.size, BLOCK):
        block = order[start : start + BLOCK]
        B = -gram[block] @ H
        for p in range(0, block.size, 2):
            mask = masks[(start + p) // 2]
            places, size = _places(mask)
            if not 0 < size < mask.size:
                continue
            b, x = _parted(B, block, p, (mask, places), state)
            rising = b.copy()
            rising[:size].sort()
            rising[size:].sort()
            y, moved, better = _shared(b, rising, x, size, grid)
            if better:
                _enter(B, block, p, (mask, places, y, moved), state)


@dataclass
class Pairs:
    """How `pairwise` goes about it: tries of Algorithm 1, pairs of each group (half as many as it has parts, unless
    given), rounds of pairs and single parts for each update of W, seed."""

    grid: int = 100
    pairs: int | None = None
    rounds: int = 3
    seed: int = 0

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)

    def orders(self, groups: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Parts of a group, two by two at random; none is in a second pair before the others had their turn."""
        for g in self.rng.permutation(len(groups)):
            most = len(groups[g]) // 2
            left = most if self.pairs is None else self.pairs
            while most and left > 0:
                yield self.rng.permutation(groups[g])[: 2 * min(left, most)]
                left -= most


def pairwise(
    X: np.ndarray, W: np.ndarray, A: np.ndarray, groups: list[np.ndarray], budgets: np.ndarray, **options
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Potluru, Le Roux, Pearlmutter, Hershey and Brand (2013), "Coordinate descent for mixed-norm NMF", Algorithm 2.

    Random pairs of parts of a group, one on random entries and the other one on the rest, to their best values with
    the norms of both and their joint sum held: Algorithm 1 tries `grid` ways to share it. Then each part with its sum
    held, as section 2.2 has it; and W by coordinate descent. Options: those of `Pairs`.
    """
    (H, sums, prices), how = started(A), Pairs(**options)
    while True:
        H = H.copy()  # the last one is the caller's
        state = H, sums, prices, W.T @ W, crossed(X, W)
        for _ in range(how.rounds):
            for order in how.orders(groups):
                masks = how.rng.integers(0, 2, (order.size // 2, H.shape[1]), dtype=bool)
                change_pairs(order, masks, how.grid, state)
            sweep(state)
        W = improved(X, W, H)
        yield W, H.T
