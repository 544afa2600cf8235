"""How X is stored. Nothing outside this folder asks whether X is dense or sparse."""

from scipy.sparse import issparse

from .base import Data, Rows
from .coordinates import Coordinates
from .dense import Dense
from .sparse import Sparse
from .tensor import SparseTensor

__all__ = ["Coordinates", "Data", "Dense", "Rows", "Sparse", "SparseTensor", "as_data"]


def as_data(X) -> Data:
    """Data of a validated NumPy array, SciPy sparse matrix or sparse tensor (see `partwise.data.validation`)."""
    if isinstance(X, SparseTensor):
        return Coordinates.of(X)
    return Sparse.of(X) if issparse(X) else Dense.of(X)
