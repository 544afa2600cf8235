"""Measures of parts: how sparse they are, whether two runs found the same ones, and whether they had to.

Where factors are asked for, a `Result` or a fitted estimator will do, and so will a list of tall factors `(dim, rank)`,
a pair `(W, H)` as `factorize` takes it for `init`, data sets with planted factors, and the CP tensors of TensorLy and
pyttb.

>>> import partwise as pw
>>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
>>> one, other = (pw.factorize(X, 3, init="random", tol=1e-6, random_state=seed) for seed in (0, 1))
>>> bool(pw.metrics.factor_match(one, other) > 0.95)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from .data.foreign import kruskal_factors
from .data.names import factor_names
from .data.units import exponent_of, product_of_norms, root, unit_columns
from .data.validation import checked_data
from .result import Result

__all__ = [
    "Uniqueness",
    "aligned",
    "core_consistency",
    "factor_match",
    "kruskal_ranks",
    "match_components",
    "similarity",
    "sparsity",
    "uniqueness",
]

MOST_SUBSETS = 20_000  # of columns that are tried for one answer about Kruskal ranks


def __dir__() -> list[str]:
    return sorted(__all__)


def sparsity(parts: Any) -> np.ndarray:
    """Hoyer's sparsity of each row of `parts`, such as `result.H`: 0 for a flat row of n entries, 1 for one nonzero::

        (sqrt(n) - |a|_1 / |a|_2) / (sqrt(n) - 1)

    (Hoyer 2004). NaN for rows of zeros, and where n is 1.

    Parameters
    ----------
    parts : array-like of shape (n_parts, n_features)
        One part a row.

    Returns
    -------
    ndarray of shape (n_parts,)
        Between 0 and 1.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.metrics.sparsity([[1, 1, 1, 1], [0, 0, 5, 0]])
    array([0., 1.])
    """
    A = np.abs(np.atleast_2d(np.asarray(parts, dtype=np.float64)))
    largest = A.max(axis=1, keepdims=True)
    A = np.divide(A, largest, out=np.zeros_like(A), where=largest > 0)  # or squares of tiny numbers vanish
    root = np.sqrt(A.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return (root - A.sum(axis=1) / np.linalg.norm(A, axis=1)) / (root - 1)


# -- the same parts twice ------------------------------------------------------------------------------------


def similarity(one: Any, other: Any) -> np.ndarray:
    """`(rank of one, rank of other)`: the products over modes of the absolute cosines between components.

    Parameters
    ----------
    one, other : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The two sets of components.

    Returns
    -------
    ndarray of shape (rank of one, rank of other)
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> W, H = np.eye(4)[:, :2], np.eye(2, 3)
    >>> pw.metrics.similarity((W, H), (W[:, ::-1], 7 * H[::-1]))
    array([[0., 1.],
           [1., 0.]])
    """
    pairs = zip(*checked_pair(one, other), strict=True)
    return np.prod([np.abs(unit_columns(A)[0].T @ unit_columns(B)[0]) for A, B in pairs], axis=0)


def match_components(one: Any, other: Any) -> np.ndarray:
    """The component of `other` that goes with each of `one`, so that their cosines are largest in all; -1 where `other`
    has none left.

    With as many components on both sides it is a permutation: `A[:, match_components(one, other)]` has the columns of a
    factor of `other` in the order of `one`.

    Parameters
    ----------
    one, other : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The two sets of components.

    Returns
    -------
    ndarray of int
        As many as `one` has components.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> W, H = np.eye(4)[:, :2], np.eye(2, 3)
    >>> pw.metrics.match_components((W, H), (W[:, ::-1], 7 * H[::-1]))
    array([1, 0])
    """
    return assigned(similarity(one, other))


def factor_match(one: Any, other: Any, *, combine: str = "mean", weights: bool = False) -> float:
    """The factor match score (Acar, Dunlavy and Kolda 2011): 1 where both have the same components, up to their order
    and scale::

        mean over matched pairs k of  prod over modes i of  |a_ik' b_ik| / (|a_ik| |b_ik|).

    Components without a counterpart count 0.

    Parameters
    ----------
    one, other : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The two sets of components.
    combine : "mean", "product" or "min"
        How pairs of components are put together.
    weights : bool
        Whether scales have to agree as well: each pair is multiplied by `1 - |s - t| / max(s, t)`, s and t being
        the norms of the two components.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_parts(20, 12, 3, random_state=0)
    >>> result = pw.factorize(planted.X, 3, tol=1e-6)
    >>> bool(pw.metrics.factor_match(planted, result) > 0.95)
    True
    """
    if combine not in COMBINE:
        raise ValueError(f"combine must be one of {', '.join(map(repr, COMBINE))}, got {combine!r}")
    scores = similarity(one, other)
    if weights:
        s, t = map(product_of_norms, checked_pair(one, other))
        largest = np.maximum(s[:, None], t)
        scores = scores * (1 - np.divide(np.abs(s[:, None] - t), largest, out=np.zeros_like(scores), where=largest > 0))
    found = assigned(scores)
    matched = np.zeros(max(scores.shape))
    matched[: np.sum(found >= 0)] = scores[found >= 0, found[found >= 0]]
    return float(COMBINE[combine](matched))


def aligned(one: Any, other: Any) -> tuple[np.ndarray, ...]:
    """The factors of `other` in the order, the scale and the sign of `one`: tall, one for each mode.

    Columns get the norm that they have in `one` in all modes but the first, which takes what is left, so that the model
    is the same but for components that `one` has no counterpart for.

    Parameters
    ----------
    one, other : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The two sets of components.

    Returns
    -------
    tuple of ndarray
        The factors of `other`, one for each mode.

    Examples
    --------
    >>> import numpy as np, partwise as pw
    >>> W, H = np.eye(4)[:, :2], np.eye(2, 3)
    >>> A, B = pw.metrics.aligned((W, H), (W[:, ::-1], 7 * H[::-1]))
    >>> A[:2], B.T
    (array([[7., 0.],
           [0., 7.]]), array([[1., 0., 0.],
           [0., 1., 0.]]))
    """
    factors, found = checked_pair(one, other)
    order = match_components(one, other)
    if (order < 0).any():
        raise ValueError(
            f"the first has {len(order)} components and the second only {found[0].shape[1]}: align the first to the "
            "second, or ask match_components which of them go together"
        )
    found = [B[:, order] for B in found]
    rest = np.ones(len(order))
    for mode in range(1, len(factors)):
        (A, s, p), (B, t, q) = unit_columns(factors[mode]), unit_columns(found[mode])
        ratio = np.ldexp(s / np.where(t > 0, t, 1), p - q)
        ratio = np.where(ratio > 0, ratio, 1) * np.where(np.sum(A * B, axis=0) < 0, -1, 1)
        found[mode], rest = found[mode] * ratio, rest / ratio
    return (found[0] * rest, *found[1:])


COMBINE: dict[str, Any] = {"mean": np.mean, "product": np.prod, "min": np.min}


def assigned(scores: np.ndarray) -> np.ndarray:
    """For each row the column with which all scores together are largest, -1 for rows beyond the columns."""
    rows, columns = scipy.optimize.linear_sum_assignment(scores, maximize=True)
    found = np.full(len(scores), -1)
    found[rows] = columns
    return found


# -- the number of parts -------------------------------------------------------------------------------------


def core_consistency(T: Any, factors: Any) -> float:
    """CORCONDIA, the core consistency diagnostic (Bro and Kiers 2003), in percent::

        100 (1 - |G - I|^2 / |I|^2),  G = argmin_G |T - G x_1 A_1 ... x_d A_d|,

    I being 1 where all indices are equal. Near 100 the components are what T is made of; far below, or negative, they
    share what should be fewer components. Factors are scaled so that each component has the same norm in every mode.

    G is T times the pseudoinverses of the factors, one mode at a time: no Kronecker product is made, and a sparse T
    stays sparse. Factors of deficient rank are allowed.

    Parameters
    ----------
    T : array-like or SparseTensor
        The data.
    factors : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The model.

    Returns
    -------
    float
        At most 100.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_cp((8, 7, 6), 2, noise=0.02, random_state=0)
    >>> pw.metrics.core_consistency(planted.X, pw.factorize(planted.X, 2)) > 90
    True
    """
    given = as_factors(factors)
    rank, order = given[0].shape[1], len(given)
    data = checked_data(T, "T", any_order=True)
    shape = tuple(len(A) for A in given)
    if data.shape != shape:
        raise ValueError(f"T has shape {data.shape}, but the factors are of data of shape {shape}")
    values = stored(data)
    unit = exponent_of(float(np.abs(values).max(initial=0)))
    # |component|^(1/order), in units of T
    sizes = root(product_of_norms(given, unit), order)
    QR = [np.linalg.qr(unit_columns(A)[0]) for A in given]
    compressed = np.ldexp(contracted(data, [Q for Q, _ in QR]), -unit)
    G = multiplied(compressed, [np.linalg.pinv(R * sizes) for _, R in QR])
    G[(np.arange(rank),) * order] -= 1
    return float(100 * (1 - np.square(G).sum() / rank))


def stored(data) -> np.ndarray:
    """The entries that a tensor or matrix lists."""
    return data if isinstance(data, np.ndarray) else data.data if sparse.issparse(data) else data.values


def contracted(data, matrices: list[np.ndarray]) -> np.ndarray:
    """`T x_1 Q_1' ... x_d Q_d'`, dense or sparse, in double precision."""
    if isinstance(data, np.ndarray):
        # in the type of T, which would be copied otherwise; matrices with orthonormal columns lose nothing by it
        return multiplied(data, [Q.T.astype(data.dtype) for Q in matrices]).astype(np.float64)
    if sparse.issparse(data):
        coo = data.tocoo()
        return contracted_entries(np.stack(coo.coords, axis=1), coo.data, matrices)
    return contracted_entries(data.coords, data.values, matrices)


def multiplied(T: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """`T x_1 M_1 ... x_d M_d`, beginning where T shrinks most."""
    for mode in sorted(range(T.ndim), key=lambda mode: matrices[mode].shape[0] / matrices[mode].shape[1]):
        T = np.moveaxis(np.tensordot(matrices[mode], T, axes=(1, mode)), 0, mode)
    return T


def contracted_entries(coords: np.ndarray, values: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    """The same for coordinates `(nnz, order)`: what is left of a mode multiplies the columns of `values`, and entries
    that then lie in the same place are added up."""
    block, left = np.asarray(values, dtype=np.float64).reshape(-1, 1), list(range(len(matrices)))
    done: list[int] = []
    coords = np.asarray(coords, dtype=np.int64)
    while left:
        # the mode without which entries fall together most; one place in all where it is the last
        keys = {mode: fibers(coords, [m for m in left if m != mode]) for mode in left}
        mode = min(left, key=lambda m: keys[m][0].size)
        first, place = keys[mode]
        Q = matrices[mode][coords[:, mode]]
        sums = [sparse.csr_array((q, (place, np.arange(len(place)))), (first.size, len(place))) @ block for q in Q.T]
        block = np.stack(sums, axis=-1).reshape(first.size, -1) if sums else np.zeros((first.size, 0))
        coords = coords[first]
        left.remove(mode)
        done.append(mode)
    core = block.sum(axis=0).reshape([matrices[mode].shape[1] for mode in done])  # no row where nothing is listed
    return np.moveaxis(core, range(len(done)), done)


def fibers(coords: np.ndarray, modes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """An entry of every fiber, those with the same indices in `modes`, and the number of the fiber of each entry."""
    if not modes:
        return np.arange(min(len(coords), 1)), np.zeros(len(coords), dtype=np.int64)
    _, first, place = np.unique(coords[:, modes], axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


# -- whether other parts would do as well --------------------------------------------------------------------


@dataclass(frozen=True)
class Uniqueness:
    """What Kruskal's condition says of a CP model; `str()` of it is a sentence.

    Attributes
    ----------
    rank : int
        The number of components.
    kruskal_ranks : tuple of int
        Of each factor.
    unique : bool or None
        Up to order and scale of the components; None where it is not known.
    collinear : int or None
        A mode without which the components are linearly dependent.

    Examples
    --------
    >>> import partwise as pw
    >>> planted = pw.datasets.make_cp((8, 7, 6), 2, random_state=0)
    >>> found = pw.metrics.uniqueness(planted)
    >>> found.unique, found.kruskal_ranks
    (True, (2, 2, 2))
    >>> str(found).split(":")[0]
    'The model is unique up to the order and scale of its components'
    """

    rank: int
    kruskal_ranks: tuple[int, ...]
    unique: bool | None  # up to order and scale of the components; None where it is not known
    collinear: int | None = None  # a mode without which the components are linearly dependent

    @property
    def needed(self) -> int:
        """`2 rank + order - 1`, what the Kruskal ranks have to add up to."""
        return 2 * self.rank + len(self.kruskal_ranks) - 1

    def __str__(self):
        names = factor_names(len(self.kruskal_ranks))
        ranks = f"the Kruskal ranks {' + '.join(map(str, self.kruskal_ranks))} = {sum(self.kruskal_ranks)}"
        if self.rank == 1 and self.unique:
            return "The model is unique up to scale: it has one component."
        if self.collinear is not None:
            return (
                f"The model is not unique: without {names[self.collinear]} its components are linearly dependent, so "
                "other components give the same model. Take a smaller rank, or say more of the factors."
            )
        if self.unique:
            return (
                f"The model is unique up to the order and scale of its components: {ranks} reach "
                f"2 rank + order - 1 = {self.needed} (Kruskal's condition)."
            )
        if len(names) == 2:
            return (
                "Kruskal's condition says nothing of matrices with more than one part: W M and inverse(M) H give the "
                "same model, and only structures, or zeros in nonnegative factors, make the parts unique."
            )
        return (
            f"It is not known whether the model is unique: {ranks} do not reach 2 rank + order - 1 = {self.needed}, "
            "which would be enough but is not necessary. Structures may make it unique all the same."
        )


def uniqueness(factors: Any, *, tol: float = 1e-8) -> Uniqueness:
    """Whether a CP model has other components that give the same tensor: it has not if the Kruskal ranks of its d
    factors add up to `2 rank + d - 1` (Kruskal 1977; Sidiropoulos and Bro 2000 for any order), and it has if without
    one of its modes the components are linearly dependent (Liu and Sidiropoulos 2001).

    It is of the model without structures: nonnegative factors may be unique where these conditions do not say so.

    Parameters
    ----------
    factors : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The model.
    tol : float
        As in `kruskal_ranks`.

    Returns
    -------
    Uniqueness
        `unique`, `kruskal_ranks`, and a sentence as `str()`.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.metrics.uniqueness(pw.datasets.make_cp((8, 7, 6), 2, random_state=0)).unique
    True
    """
    given = as_factors(factors)
    rank, order = given[0].shape[1], len(given)
    ranks = kruskal_ranks(given, tol=tol)
    if rank == 1:
        return Uniqueness(rank, ranks, unique=min(ranks) == 1 or None)
    grams = [columns.T @ columns for columns, *_ in map(unit_columns, given)]
    for mode in range(order):
        others = np.prod([gram for other, gram in enumerate(grams) if other != mode], axis=0)
        if np.linalg.eigvalsh(others)[0] <= rank * squared(tol):
            return Uniqueness(rank, ranks, unique=False, collinear=mode)
    return Uniqueness(rank, ranks, unique=(order > 2 and sum(ranks) >= 2 * rank + order - 1) or None)


def kruskal_ranks(factors: Any, *, tol: float = 1e-8) -> tuple[int, ...]:
    """For each factor the largest k such that any k of its columns are linearly independent: such that the least
    singular value of any k columns, scaled to norm 1, is above `tol` (for factors in single precision take 1e-5).

    Found by trying all sets of k columns, up to 20,000 of them for one k. Where there are more, which may be at ranks
    above 16, the answer is a lower bound: the largest k whose sets were tried, or 1 / (the largest cosine between two
    columns), if that is more.

    Parameters
    ----------
    factors : Result, list of arrays of shape (dim, rank), or pair (W, H)
        The model.
    tol : float
        The least singular value of columns that count as independent.

    Returns
    -------
    tuple of int
        One for each factor.

    Examples
    --------
    >>> import partwise as pw
    >>> pw.metrics.kruskal_ranks(pw.datasets.make_cp((8, 7, 6), 3, random_state=0))
    (3, 3, 3)
    """
    return tuple(kruskal_rank(A, tol) for A in as_factors(factors))


def kruskal_rank(A: np.ndarray, tol: float) -> int:
    columns = unit_columns(A)[0]
    rank = columns.shape[1]
    R = np.linalg.qr(columns)[1]
    if not columns.any(axis=0).all():
        return 0
    most = int(np.sum(np.linalg.svd(R, compute_uv=False) > tol))
    if most == rank:
        return rank
    cosine = np.abs(np.triu(columns.T @ columns, 1)).max()
    least = max(
        1, math.ceil((1 - squared(tol)) / cosine)
    )  # their squared singular values are at least 1 - (k - 1) cosine
    for k in range(most, least, -1):
        if math.comb(rank, k) <= MOST_SUBSETS and independent(R, k, tol):
            return k
    return least


def squared(tol: float) -> float:
    """A tolerance for squares of singular values, which are known up to rounding."""
    return max(tol**2, 4 * float(np.finfo(np.float64).eps))


def independent(R: np.ndarray, k: int, tol: float) -> bool:
    """Whether any k columns are linearly independent."""
    subsets = np.array(list(combinations(range(R.shape[1]), k)))
    return all(
        np.linalg.svd(np.moveaxis(R[:, some], 0, 1), compute_uv=False)[:, -1].min() > tol
        for some in np.array_split(subsets, math.ceil(len(subsets) / 1000))
    )


# -- what may be given ---------------------------------------------------------------------------------------


def as_factors(given) -> list[np.ndarray]:
    """Tall factors in double precision, of whatever has any."""
    given = getattr(given, "result_", given)  # of an estimator
    if isinstance(given, Result):
        factors = list(given.factors)
    elif (foreign := kruskal_factors(given)) is not None:
        factors = foreign
    elif hasattr(given, "factors"):  # of data sets
        factors = list(given.factors)
    else:
        factors = [given.W, given.H] if hasattr(given, "W") and hasattr(given, "H") else given
        if not isinstance(factors, list | tuple) or len(factors) < 2 or any(np.ndim(A) != 2 for A in factors):
            raise TypeError(
                "factors must be a Result, a list of two or more arrays of shape (dim, rank), or a pair (W, H); got "
                f"an object of type {type(given).__name__}"
            )
        if len(factors) == 2 and np.shape(factors[0])[1] == np.shape(factors[1])[0]:
            factors = [factors[0], np.transpose(factors[1])]
    factors = [np.asarray(A, dtype=np.float64) for A in factors]
    if len({A.shape[1] for A in factors}) != 1 or not all(A.size and np.all(np.isfinite(A)) for A in factors):
        shapes = ", ".join(str(A.shape) for A in factors)
        raise ValueError(f"factors must be finite, with one column for each component in all of them; got {shapes}")
    return factors


def checked_pair(one, other) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Factors of two models of data of the same shape."""
    pair = as_factors(one), as_factors(other)
    first, second = (tuple(len(A) for A in factors) for factors in pair)
    if first != second:
        raise ValueError(f"the two are models of data of different shape, {first} and {second}")
    return pair
