"""Tensors of other libraries: `sparse`, TensorLy and pyttb. They are known by the names of their types, so that none of
these libraries is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Entries(NamedTuple):
    """The nonzeros of a sparse tensor."""

    coords: np.ndarray  # (nnz, order)
    values: np.ndarray  # (nnz,)
    shape: tuple[int, ...]


def foreign(X, name: str = "X") -> np.ndarray | Entries | None:
    """A tensor of another library as an array or by its nonzeros; None for anything else. Models, such as CP tensors,
    are multiplied out."""
    kinds = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(X).__mro__}
    for kind, convert in CONVERTERS.items():
        if kind in kinds:
            try:
                return convert(X)
            except Exception as error:  # other libraries raise all kinds of things
                raise ValueError(f"{name}, of type {kind}, cannot be taken for a tensor: {error}") from error
    return None


def kruskal_factors(X) -> list[np.ndarray] | None:
    """The factors of a CP tensor of TensorLy, or of a Kruskal tensor of pyttb, with the weights in the first; None for
    anything else."""
    root, name = type(X).__module__.partition(".")[0], type(X).__name__
    if (root, name) not in (("tensorly", "CPTensor"), ("pyttb", "ktensor")):
        return None
    first, *others = map(np.asarray, X.factors if root == "tensorly" else X.factor_matrices)
    return [first if X.weights is None else first * np.asarray(X.weights), *others]


def of_sparse(X) -> Entries:
    """An array of `sparse`, https://sparse.pydata.org."""
    if X.fill_value != 0:
        raise ValueError(f"entries that are not listed are {X.fill_value} there, and must be 0 here")
    coo = X if type(X).__name__ == "COO" else X.asformat("coo")
    return Entries(coo.coords.T, coo.data, tuple(coo.shape))


CONVERTERS: dict[str, Callable[[Any], np.ndarray | Entries]] = {
    **dict.fromkeys(("sparse.COO", "sparse.GCXS", "sparse.DOK"), of_sparse),
    **dict.fromkeys(
        ("tensorly.CPTensor", "tensorly.TuckerTensor", "tensorly.TTTensor", "tensorly.TRTensor"),
        lambda X: np.asarray(X.to_tensor()),
    ),
    "pyttb.tensor": lambda X: X.data,
    "pyttb.sptensor": lambda X: Entries(X.subs, np.ravel(X.vals), tuple(X.shape)),
    **dict.fromkeys(("pyttb.ktensor", "pyttb.ttensor"), lambda X: X.full().data),
}
