"""Columns of given norms with a common sum, one after another: least squares in a factor under sparsity budgets.

With its norm held, a column enters `1/2 tr(A gram A') - tr(A' cross)` through `-b'a` alone, `b = cross - sum of the
others`. Its best value is `(b - mu)_+` up to its length: for a given sum of the column, which fixes mu, or for a given
mu, the price of that sum. Potluru et al. (2013), Block coordinate descent for sparse NMF, do the former; the latter
moves budget between columns.
"""

import numpy as np

from .base import compiled
from .budgets import with_budgets
from .projections import _direction

BLOCK = 8  # columns whose b come out of one product
GUESSES = 12  # of a price, before it is found from all entries
EPS = np.finfo(np.float64).eps
TIED, PRECISE = 1e-9, 1e-13  # relative: so few entries are as good as a single choice of them; what a sum may be off by


@compiled
def _above(b, mu, x):
    """`x = (b - mu)_+`: how many entries are positive, their sum and that of their squares."""
    count, first, second = 0.0, 0.0, 0.0
    for j in range(b.size):
        x[j] = max(b[j] - mu, 0.0)
    for j in range(b.size):
        count += 1.0 if x[j] > 0 else 0.0
        first += x[j]
        second += x[j] * x[j]
    return count, first, second


@compiled
def _scaled(x, factor):
    for j in range(x.size):
        x[j] *= factor


@compiled
def _by_price(b, mu, x):
    """The best x >= 0 of norm 1 with its sum at this price; the sum, and by how much it falls as the price rises."""
    if mu == -np.inf:
        x[:] = 1 / np.sqrt(b.size)
        return np.sqrt(b.size), 0.0
    count, first, second = _above(b, mu, x)
    if second <= 0:  # the largest entry alone
        x[:] = 0
        x[np.argmax(b)] = 1
        return 1.0, 0.0
    norm = np.sqrt(second)
    _scaled(x, 1 / norm)
    return first / norm, (count - first * first / second) / norm


@compiled
def _by_sum(b, total, mu, x):
    """The best x >= 0 of norm 1 and this sum, from a guess of its price; that price, and by how much the sum falls as
    the price rises.

    If the p entries above mu stay, the price is `mu + s / p - total sqrt((t - s^2 / p) / (p (p - total^2)))`, with s
    their sum and t that of their squares, from mu. It is never too large: more entries only add to the sum. So prices
    rise from the second on, and once the entries are the same, the price is exact.
    """
    before, square = -1.0, total * total
    precise = PRECISE * max(np.finfo(b.dtype).eps / EPS, 1.0)
    for _ in range(GUESSES if mu > -np.inf else 0):
        count, first, second = _above(b, mu, x)
        if not count > square * (1 + TIED):
            break
        if count == before and abs(first - total * np.sqrt(second)) <= precise * first:
            norm = np.sqrt(second)
            _scaled(x, 1 / norm)
            return mu, (count - square) / norm
        mu += first / count - total * np.sqrt(max(second - first * first / count, 0.0) / (count * (count - square)))
        before = count
    # a poor guess, or ties decide
    mu, norm = _direction(b, np.ones(b.size, np.bool_), total, np.empty(b.size), x)
    count = 0.0
    for j in range(b.size):
        count += 1.0 if x[j] > 0 else 0.0
    return mu, (max(count - square, 0.0) / norm if norm > 0 else 0.0)


@compiled
def _columns(B, Y, C, gram, block, lengths, price, total, give, priced):
    """Some rows of Y anew, with `b - cross` in the rows of B; by how much the objective falls."""
    gain, step = 0.0, np.empty_like(Y[0])
    for p in range(block.size):
        i, b = block[p], B[p]
        x, length = Y[i], lengths[block[p]]
        if gram[i, i] == 0 or length == 0:  # the other factor does not use it: anything is as good
            continue
        for j in range(b.size):
            step[j] = x[j]
            b[j] += C[i, j]
        if priced:
            total[i], give[i] = _by_price(b, price[i], x)
            total[i] *= length
        else:
            price[i], give[i] = _by_sum(b, total[i] / length, price[i], x)
        give[i] *= length
        change = 0.0
        for j in range(b.size):
            x[j] *= length
            step[j] = x[j] - step[j]
        for j in range(b.size):
            change += b[j] * step[j]
        gain += change
        for q in range(p + 1, block.size):
            z, other = gram[i, block[q]], B[q]
            for j in range(b.size):
                other[j] -= z * step[j]
    return gain


def sweep(Y, C, gram, lengths, price, total, give, priced):
    gain = 0.0
    for start in range(0, len(Y), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(Y)))
        others = -gram[block]
        others[np.arange(block.size), block] = 0
        gain += _columns(others @ Y, Y, C, gram, block, lengths, price, total, give, priced)
    return gain


def restored(total, give, least, most, budget):
    """Sums of the columns of a group, brought to the budget: where they give way most easily."""
    for _ in range(len(total) + 1):
        lack = budget - total.sum()
        room = most - total if lack > 0 else total - least
        if abs(lack) <= 1e-15 * budget or room.sum() <= 0:
            break
        weight = np.where(room > 0, give, 0.0)
        weight = weight if weight.sum() > 0 else room
        total = np.clip(total + lack * weight / weight.sum(), least, most)
    return total


def whole_groups(Y, C, gram, groups, lengths, budgets):
    """All columns at once: the exact minimiser of a majoriser, `sum_k L_k/2 |y_k - v_k|^2` with `L_k = sum_j |gram_kj|`
    and `L_k v_k = L_k y_k - gradient`; with norms held, only the direction of `L_k v_k` matters."""
    V = np.abs(gram).sum(axis=1, dtype=np.float64)[:, None] * Y + C - gram @ Y
    return np.ascontiguousarray(with_budgets(np.ascontiguousarray(V.T), groups, lengths, budgets).T, dtype=Y.dtype)


def fall(Y, Z, C, gram):
    """By how much the objective at Z is below that at Y."""
    step = Z.astype(np.float64) - Y
    return float(np.vdot(step, C - gram @ (Y + step / 2)))


def mixed_norm(A, cross, gram, groups, lengths, budgets, rounds):
    """Exact updates of all columns with their sums held; then `rounds` times all columns at a common price in each
    group, and again with sums held, brought back to the budgets; or, where that is no descent, a step of all columns at
    once. Returns A and by how much the objective fell."""
    Y, C = (np.array(B.T, order="C") for B in (A, cross))
    total, price, give = Y.sum(axis=1, dtype=np.float64), np.zeros(len(Y)), np.zeros(len(Y))
    known, used = (C, gram, lengths, price, total, give), np.diag(gram) > 0
    gain = sweep(Y, *known, False)
    for _ in range(rounds):
        before = Y.copy()
        for group in groups:
            easy = group[give[group] > 0]
            if easy.size:
                price[group] = np.vdot(give[easy], price[easy]) / give[easy].sum()
        gained = sweep(Y, *known, True)
        for group, budget in zip(groups, budgets, strict=True):
            k = group[used[group]]  # others stay as they are
            rest = budget - total[group[~used[group]]].sum()
            total[k] = restored(total[k], give[k], lengths[k], lengths[k] * np.sqrt(Y.shape[1]), rest)
        gained += sweep(Y, *known, False)
        if gained < 0:  # prices far apart: what is best for each at a common one is not for all together
            Y[:] = whole_groups(before, C, gram, groups, lengths, budgets)
            gained = fall(before, Y, C, gram)
            if gained < 0:  # by rounding
                Y[:] = before
                break
            total[:] = Y.sum(axis=1, dtype=np.float64)
            gained += sweep(Y, *known, False)
        gain += gained
    return np.ascontiguousarray(Y.T), gain
