"""What may be given as X, checked once, at the door."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

DTYPES = (np.float64, np.float32)
SPARSE = ("csr", "csc")  # other sparse formats are converted


def checked_data(X):
    """X as a float array or CSR/CSC matrix, of its own precision where that is float32 or float64."""
    try:
        X = check_array(X, accept_sparse=SPARSE, dtype=DTYPES, ensure_all_finite=False, input_name="X")
    except (TypeError, ValueError) as error:
        raise type(error)(f"X must be a matrix of numbers, dense or sparse: {error}") from error
    values = X.data if issparse(X) else X
    for name, is_bad in (("NaN", np.isnan), ("infinite", np.isinf)):
        count = sum(np.count_nonzero(is_bad(rows)) for rows in np.array_split(values, 64))
        if count:
            raise ValueError(
                f"X contains {count} {name} entries: partwise does not take them as missing yet. "
                "Fill them in, or drop the rows or columns that hold them."
            )
    return X


def checked_rank(rank) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or rank < 1:
        raise ValueError(f"the rank must be a whole number >= 1, got {rank!r}")
    return int(rank)
