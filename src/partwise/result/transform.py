"""New rows of X in the parts of a result: the first factor, with the others held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from ..data.base import khatri_rao
from ..data.names import Mode, columns_by_name, factor_names
from ..data.observed import Observed, check_unmasked, observed, place_of, provisional
from ..data.validation import checked_data
from ..data.weighted import observed_sums
from ..errors import NothingObservedError, warn
from ..losses import Loss
from ..problem import Factors
from ..structures import Fixed, Free, NonNegative, Structure
from .doubts import warn_of_unobserved

if TYPE_CHECKING:
    from .result import Result


def transformed(result: Result, X, modes: Sequence[Mode], counts: dict[str, Any]) -> np.ndarray:
    """The first factor for new data, whose features are matched by name where both have names; `modes` are those of
    X, `counts` says which entries count, as `factorize` takes it."""
    if result.symmetric:
        raise ValueError(
            f"transform is for rows that are new, and with symmetric={result.symmetric!r} rows and columns are the "
            "same items: fit all of them together"
        )
    if place_of(X) is not None:
        check_slices(X.shape, result.shape)
        structure, tol = structure_for_new_rows(result), result.certificate.tol
        return projected_rows(X, result.factors[1:], structure, result.loss, counts, tol=tol)
    order = columns_by_name(modes, result.modes)
    X = checked_data(X, any_order=True, missing=provisional(counts["missing"], counts["mask"], counts["weights"]))
    if order is not None:
        X, counts = X[:, order], {**counts, **{name: reordered(counts[name], order) for name in ("mask", "weights")}}
    check_slices(X.shape, result.shape)
    structure, tol = structure_for_new_rows(result), result.certificate.tol
    return projected_rows(X, result.factors[1:], structure, result.loss, counts, tol=tol)


def reordered(given, order: list[int]):
    """What is said of the entries of a matrix, for its columns in another order."""
    if given is None:
        return None
    if isinstance(given, tuple):
        return (given[0], *(None if vector is None else np.asarray(vector)[order] for vector in given[1:]))
    return given.tocsr()[:, order] if issparse(given) else np.asarray(given)[:, order]


def projected(
    X, parts: Factors, structure: Structure, loss: Loss, counts: dict[str, Any], *, solver="auto", **settings
) -> Result:
    """The fit of X with all factors but the first held, `parts`, each (dim, rank): every row on its own.

    `counts`: `missing`, `mask` and `weights`; `settings`: what else `factorize` takes.
    """
    from ..factorize import factorize  # noqa: PLC0415  # it returns the results that this is of

    held = [np.ascontiguousarray(B, X.dtype) for B in parts]
    given = observed(X, **counts)
    init: Any = (flat_start(given, held, loss), *(None for _ in held)) if loss.smooth else loss.start
    return factorize(
        given,
        held[0].shape[1],
        structures=[structure, *map(Fixed, [held[0].T] if len(held) == 1 else held)],
        init=init,
        loss=loss,
        # with the parts held the problem is convex (for 1 <= beta <= 2) and smooth: every solver ends at the same rows
        solver="auto" if loss.smooth else solver,
        **settings,
        n_init=1,
        normalize=None,
        sort=False,
        progress=False,
    )


def projected_rows(X, parts: Factors, structure: Structure, loss: Loss, counts: dict[str, Any], **settings):
    """The first factor of `projected`; rows of which nothing is observed are 0 where the structure allows. Of data in
    blocks, block by block, where and when these are worked on."""
    if (place := place_of(X)) is not None:
        check_unmasked(counts["mask"], counts["weights"])
        kind = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        return place.rows_of(BlockRows(parts, structure, loss, counts, settings), parts[0].shape[1], kind)
    try:
        found = projected(X, parts, structure, loss, counts, **settings)
    except NothingObservedError:
        return of_nothing(structure, X.shape[0], parts[0].shape[1], len(parts) + 1, X.dtype)
    if found.status == "interrupted":  # rows that are not finished are of no use
        raise KeyboardInterrupt
    return found.factors[0]


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The rows of one block."""

    parts: Factors
    structure: Structure
    loss: Loss
    counts: dict[str, Any]
    settings: dict[str, Any]

    def __call__(self, block, **settings) -> np.ndarray:
        X = checked_data(block, "a block of X", missing=self.counts["missing"])
        return projected_rows(X, self.parts, self.structure, self.loss, self.counts, **{**self.settings, **settings})


def flat_start(given: Observed, parts: list[np.ndarray], loss: Loss) -> np.ndarray:
    """A start for the first factor with the parts held, each row from its own data: 0, or where that is a place from
    which some losses do not move, equal weights that add up to the row, as far as it is observed."""
    start = np.zeros((given.data.shape[0], parts[0].shape[1]), dtype=parts[0].dtype)
    if loss.quadratic or min(B.min() for B in parts) < 0:
        return start
    sums, totals = observed_sums(given.data, [start, *parts], 0)
    return start + (sums / np.where(totals > 0, totals, 1.0))[:, None].astype(start.dtype)


def of_nothing(structure: Structure, n_rows: int, rank: int, order: int, dtype) -> np.ndarray:
    """The factor of rows of which nothing at all is observed: 0 where its structure allows."""
    warn_of_unobserved({0: n_rows}, order)
    bound = structure.bind((n_rows, rank), transposed=False, name=factor_names(order)[0])
    return bound.settle(np.zeros((n_rows, rank), dtype))


def for_new_rows(stated: Structure | None, name: str, instead: str) -> Structure | None:
    """A structure of the first factor, unless it speaks of the rows that were seen alone; `instead`: what is then
    taken."""
    if stated is None or stated.applies_to_new_rows:
        return stated
    warn(f"{name}={stated} speaks of the training samples and has no meaning for new ones: transform takes {instead}.")
    return None


def structure_for_new_rows(result: Result) -> Structure:
    """What a result asks of its first factor, as far as that holds for new rows too."""
    stated, name = result.structures[0], factor_names(len(result.shape))[0]
    if stated.bind(result.factors[0].shape, transposed=False, name=name).nonnegative:
        return for_new_rows(stated, f"the structure of {name}", f"{name} to be nonnegative only") or NonNegative()
    return for_new_rows(stated, f"the structure of {name}", f"any {name}") or Free()


def check_slices(shape: tuple[int, ...], fitted: tuple[int, ...]) -> None:
    """Whether new data have the columns of a matrix, or the slices of a tensor, that were seen."""
    if shape[1:] == fitted[1:]:
        return
    if len(shape) == len(fitted) == 2:
        raise ValueError(f"X has {shape[1]} features, and the parts have {fitted[1]}: give the features of the fit")
    raise ValueError(
        f"transform takes slices of shape {fitted[1:]}, as fit got them, in an array of order {len(fitted)}; got an "
        f"array of shape {shape}"
    )


def data_from(weights, parts: Factors) -> np.ndarray:
    """Rows, or slices, from weights as `transform` gives them, (n, rank): `weights @ H` for a matrix."""
    given = checked_data(weights, "weights")
    rank = parts[0].shape[1]
    if given.shape[1] != rank:
        raise ValueError(
            f"inverse_transform takes weights of shape (n_samples, {rank}), as transform gives them; got shape "
            f"{given.shape}"
        )
    W = given.toarray() if issparse(given) else given
    return (W @ khatri_rao(parts).T).reshape(len(W), *(len(B) for B in parts))
