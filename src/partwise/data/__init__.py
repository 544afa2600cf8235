"""How X is stored. Nothing outside this folder asks whether X is dense or sparse."""

from scipy.sparse import issparse

from .base import Data, Rows
from .dense import Dense
from .sparse import Sparse

__all__ = ["Data", "Dense", "Rows", "Sparse", "as_data"]


def as_data(X) -> Data:
    """Data of a validated NumPy array or SciPy sparse matrix (see `partwise.data.validation`)."""
    return Sparse.of(X) if issparse(X) else Dense.of(X)
