"""What the kernels of beta-divergences, of Huber and of L1 share: one row of X against its model, entry by entry.

The row of a factor is `w`, and the other factor is turned, `H[k]` being the entries of component k that go with those
of the row: all of them, or, where entries that are not listed cost nothing or a linear amount, those that are listed,
gathered. All are padded with zeros to whole vectors. The model is `y = sum_k w_k H[k]`; for a divergence its slope and
curvature in `w_k` are

    g_k = s_k + sum_j m_j d'(x_j, y_j) H[k, j],    q_kl = sum_j m_j d''(x_j, y_j) H[k, j] H[l, j],

with d' and d'' the derivatives of the divergence in y and m the weights of entries. For KL `s` holds the sums of the
other factor, each row as often as its entry counts, and d' = -x / y. d'' is that of the convex part where a divergence
is not convex (beta < 1, beta > 2): what is left out lies below its tangent, so a step that lowers the rest lowers the
whole.
"""

from typing import Any, NamedTuple

import numpy as np

from ..records import EntryLoss
from .arrays import column_sums
from .base import INT, aligned, helper, inlined, maker, padded_to
from .divergences import divergence
from .panels import Panel, stride_of
from .products import gather_vectors
from .simd import FLOOR, VECTOR, combine, dots

_padded_to, _stride_of = helper(padded_to), helper(stride_of)


class Row(NamedTuple):
    """The row of X at hand: entries, their weights (empty: all 1), and their model."""

    x: np.ndarray
    m: np.ndarray
    y: np.ndarray
    indices: np.ndarray  # those of all rows; empty where x has all entries, in order
    extent: np.ndarray  # where its indices begin, how many entries x has, and that with padding


class Used(NamedTuple):
    """The components that a row uses: `parts[a]` is at `H[places[a]:]` and has the weight `c[a]`, a < number[0]."""

    parts: np.ndarray
    places: np.ndarray
    c: np.ndarray
    number: np.ndarray


class Rule(NamedTuple):
    """What the objective of a row is: a divergence, of its linear term what is more than `base`, and
    `constant' w + l2 / 2 |w|^2`; `costs` are the slopes of weights that are large."""

    loss: EntryLoss
    base: float
    l2: Any
    constant: np.ndarray
    costs: np.ndarray


# -- before there is a row -----------------------------------------------------------------------------


@helper
def is_weighted(X):
    """Whether some entries of X may count more than others."""
    return X.weights.size > 0 or X.unlisted != 1


@helper
def base_of(X):
    """What the linear term of KL counts in entries without a say of their own: sums of the other factor give that."""
    if not is_weighted(X):
        return 1.0
    return 0.0 if X.full else X.unlisted


@helper
def longest(X, start, stop):
    """How many entries are listed in a row of X, at most."""
    most = 0
    for i in range(start, stop):
        most = max(most, X.indptr[i + 1] - X.indptr[i])
    return most


@helper
def longest_of(X, rows, start, stop):
    """The same of `rows[start:stop]`."""
    most = 0
    for t in range(start, stop):
        most = max(most, longest(X, rows[t], rows[t] + 1))
    return most


@maker
def room_for(X, panel, rank, n):
    """The panel and a row with room for n listed entries, and how long it is with padding."""
    B, length = panel.B, _padded_to(panel.dim if panel.whole else n, panel.B.itemsize)
    H, stride = panel.H, panel.stride
    if not panel.whole:
        stride = _stride_of(n, B.itemsize)
        H = aligned(rank * stride, B.dtype)
    weighted = X.weights.size > 0 or (panel.whole and not X.full and X.unlisted != 1)
    m = aligned(length if weighted else 0, B.dtype)
    row = Row(aligned(length, B.dtype), m, aligned(length, B.dtype), X.indices, aligned(np.int64(3), INT))
    return Panel(B, panel.dim, panel.width, H, stride, panel.whole), row, length


@maker
def no_parts(rank, dtype):
    """An empty list with room for all components."""
    return Used(aligned(rank, INT), aligned(rank, INT), aligned(rank, dtype), aligned(np.int64(1), INT))


@maker
def rule_for(sums, l1, l2, loss, base):
    """Costs from the sums of the other factor; with rows that have their own, the linear term of KL counts `base`."""
    constant, costs = aligned(sums.size, sums.dtype), aligned(sums.size, sums.dtype)
    for k in range(sums.size):
        constant[k] = (sums.dtype.type(base) * sums[k] if loss.beta == 1 else 0) + l1
        costs[k] = sums[k] + l1 + l2
    return Rule(loss, base, l2, constant, costs)


# -- one row -------------------------------------------------------------------------------------------


@inlined
def read_row(X, i, panel, row):
    """Put row i of X in its place; the model is not computed. An entry that counts nothing is read as 0. Returns how
    many entries there are, and that with padding."""
    x, m, extent, indices, first, last = row.x, row.m, row.extent, row.indices, X.indptr[i], X.indptr[i + 1]
    scattered = panel.whole and not X.full
    n = panel.dim if scattered else last - first
    length = _padded_to(n, x.itemsize)
    extent[0], extent[1], extent[2] = first, n, length
    if scattered:
        for j in range(length):
            x[j] = 0
        for p in range(first, last):
            x[indices[p]] = X.values[p] * X.scale
    else:
        values = X.values[first:last]
        for j in range(values.size):
            x[j] = values[j] * X.scale
        for j in range(n, length):
            x[j] = 0
    if m.size > 0:
        for j in range(length):
            m[j] = X.unlisted if scattered and j < n else 0
        for p in range(first, last):
            m[indices[p] if scattered else p - first] = X.weights[p] if X.weights.size > 0 else 1
        for j in range(n):
            x[j] = x[j] if m[j] > 0 else 0
    return n, length


@helper
def weigh(row, values):
    """Multiply numbers, one for each entry, by the weights of these."""
    for j in range(row.extent[2] if row.m.size > 0 else 0):
        values[j] *= row.m[j]


@helper
def gather_panel(row, panel, used, begun):
    """`H[a]` for the parts `begun <= a` of a list of components: their entries where those of the row are."""
    B, H, stride, width, parts, n_parts = panel.B, panel.H, panel.stride, panel.width, used.parts, used.number[0]
    n, length = row.extent[1], row.extent[2]
    here = row.indices[row.extent[0] : row.extent[0] + n]
    for j in range(here.size):
        # unsigned numbers need no check for being negative
        line = np.uint64(here[j]) * np.uint64(width)
        for a in range(begun, n_parts):
            H[np.uint64(a * stride + j)] = B[line + np.uint64(parts[np.uint64(a)])]
    for a in range(begun, n_parts):
        for j in range(n, length):
            H[a * stride + j] = 0


@inlined
def take_parts(w, row, panel, used):
    """List the components that a row uses; its model goes to y."""
    n, parts, places, c, stride = 0, used.parts, used.places, used.c, panel.stride
    for k in range(w.size):
        if w[k] != 0:
            parts[n], places[n], c[n] = k, (k if panel.whole else n) * stride, w[k]
            n += 1
    used.number[0] = n
    if not panel.whole:
        gather_panel(row, panel, used, np.int64(0))
    combine(c, places, n, panel.H, row.extent[2], row.y)


@helper
def join_parts(w, slope, l1, low, high, row, panel, used):
    """Add to the list the components at 0 that would gain by moving, and may; returns how many it has then. `l1` is the
    weight of `|w|`, where that is not in the slope."""
    begun = n = used.number[0]
    for k in range(w.size):
        wanted = (slope[k] + l1 < 0 and high[k] > 0) or (slope[k] - l1 > 0 and low[k] < 0)
        if wanted and w[k] == 0:
            listed = False
            for a in range(begun):
                listed |= used.parts[a] == k
            if not listed:
                used.parts[n], used.places[n], used.c[n] = k, (k if panel.whole else n) * panel.stride, 0
                n += 1
    used.number[0] = n
    if not panel.whole and n > begun:
        gather_panel(row, panel, used, begun)
    return n


@helper
def sums_of(z, row, panel, out):
    """`out[k] = sum_j z_j h_kj` for all components."""
    if not panel.whole:
        gather_sums(z, row, panel.B, panel.width, out)
    else:
        H, stride, length = panel.H, panel.stride, row.extent[2]
        rank = H.size // stride
        for k in range(0, rank - rank % 4, 4):
            dots(4, z, H, k * stride, stride, length, out, k)
        for k in range(rank - rank % 4, rank):
            dots(1, z, H, k * stride, stride, length, out, k)


@helper
def gather_sums(z, row, B, width, out):
    """`out = sum_j z_j b_j` over the listed entries of a row, b_j being the rows of B that go with these."""
    here, lanes = row.indices[row.extent[0] : row.extent[0] + row.extent[1]], VECTOR // B.itemsize
    for offset in range(0, width, 4 * lanes):
        some = min(4 * lanes, width - offset)
        gather_vectors(some // lanes, z, here, (0, here.size), B, offset, width, some, out[offset:])


@helper
def excess(row, base, out):
    """What the linear term of KL counts in each entry more than `base`, what it counts in the others."""
    for j in range(row.extent[2]):
        out[j] = 0
    for j in range(row.extent[1]):
        out[j] = (row.m[j] if row.m.size > 0 else 1) - base


@helper
def loss_of(row, loss, base):
    """The divergence of a row from its model; of the linear term of KL only what it counts more than `base`."""
    x, y, m, n = row.x, row.y, row.m, row.extent[1]
    total, at_once = 0.0, 1 if m.size > 0 else max(n, 1)
    for j in range(0, n, at_once):
        weight = np.float64(m[j]) if m.size > 0 else 1.0
        if weight > 0:
            total += weight * divergence(x[j:], y[j:], at_once, loss)
    if loss.beta == 1 and (m.size > 0 or base != 1):
        for j in range(n):
            total += (np.float64(m[j] if m.size > 0 else 1) - base) * np.float64(y[j])
    return total


def linear_term(X, A, others, rows=None):
    """`sum Y` of all or some rows under KL, as often as entries without a say of their own count: sums of the factors
    give that, and kernels add what others count more."""
    A = A if rows is None or rows.size == len(A) else A[rows]
    return linear_base(X) * float(column_sums(A) @ others.sums())


def linear_terms(X, A, others):
    """The same of each row."""
    return linear_base(X) * (A @ others.sums())


def linear_base(X):
    """`base_of`, for what is not compiled."""
    return (0.0 if X.full else X.unlisted) if X.weights.size or X.unlisted != 1 else 1.0


# -- rows whose model does not reach their entries -----------------------------------------------------


@inlined
def unreached(row):
    """How many positive entries have a model of 0."""
    found, x, y = 0, row.x, row.y
    for j in range(row.extent[1]):
        found += y[j] <= FLOOR * x[j] and x[j] > 0
    return found


@helper
def value_of(row, used, rule):
    """The objective of a row, in double precision."""
    total = loss_of(row, rule.loss, rule.base)
    for a in range(used.number[0]):
        weight = np.float64(used.c[a])
        total += weight * (rule.constant[used.parts[a]] + rule.l2 * weight / 2)
    return total


@helper
def revive(w, row, panel, rule, lower, upper):
    """Give mass to a row where its model is 0 under a positive entry that its free components could reach: for
    beta <= 1 nothing costs more, and beyond Newton's method leaves there slowly. It goes along `h_j`, and comes to
    `x_j` in all, each weight at its cost, or for beta > 1 to a little of that. Returns whether any was given."""
    share, changed, x, y, first = (1.0 if rule.loss.beta <= 1 else 2.0**-10), False, row.x, row.y, row.extent[0]
    for j in range(row.extent[1]):
        if x[j] > 0 and y[j] <= FLOOR * x[j]:
            place = panel.width * np.int64(j if panel.whole else row.indices[first + j])
            line = panel.B[place : place + panel.width]
            total, own = 0.0, 0.0
            for k in range(w.size):
                if upper[k] > lower[k]:
                    total += np.float64(line[k]) * rule.costs[k]
                    own += np.float64(line[k]) * np.float64(line[k])
            if own > FLOOR * total:
                for k in range(w.size):
                    if upper[k] > lower[k]:
                        w[k] = min(w[k] + share * line[k] * x[j] / total, upper[k])
                changed = True
    return changed


@helper
def rescue(w, before, row, panel, used, rule, lower, upper):
    """Revive a row whose model is 0 under positive entries, unless its objective would rise from that at `before`."""
    value = value_of(row, used, rule)
    if revive(w, row, panel, rule, lower, upper):
        for attempt in range(2):
            take_parts(w, row, panel, used)
            if attempt == 1 or value_of(row, used, rule) <= value:
                break
            for k in range(w.size):
                w[k] = before[k]
