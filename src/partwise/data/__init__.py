"""How X is stored. Nothing outside this folder asks whether X is dense or sparse."""

from scipy.sparse import issparse

from .base import Data, Rows
from .coordinates import Coordinates
from .dense import Dense
from .sparse import Sparse
from .summary import Summary
from .tensor import SparseTensor

__all__ = ["Coordinates", "Data", "Dense", "Rows", "Sparse", "SparseTensor", "as_data"]


def as_data(X, summary: Summary | None = None) -> Data:
    """Data of a validated NumPy array, SciPy sparse matrix or sparse tensor, with its summary where that is known (see
    `partwise.data.validation`)."""
    if isinstance(X, SparseTensor):
        data: Data = Coordinates.of(X)
    elif issparse(X):
        data = Sparse.of(X, keep_zeros=summary is not None and summary.n_nonzeros == X.nnz)
    else:
        data = Dense.of(X)
    if summary is not None:
        data.__dict__["summary"] = summary
    return data
