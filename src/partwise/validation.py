"""What may be given as X, checked once, at the door."""

from numbers import Real
from pathlib import Path

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

OFF_DIAGONAL = "off-diagonal"
SYMMETRIES = (False, True, OFF_DIAGONAL)  # what `symmetric` may be
INTERVAL = 60.0  # seconds between checkpoints, unless the user says otherwise
DTYPES = (np.float64, np.float32)
SPARSE = ("csr", "csc")  # other sparse formats are converted


def checked_data(X, name="X"):
    """X as a float array or CSR/CSC matrix, of its own precision where that is float32 or float64."""
    if np.ma.is_masked(X):
        raise ValueError(
            f"{name} has masked entries: partwise does not take missing values yet. Fill them in, or drop them."
        )
    if not issparse(X) and not hasattr(X, "columns"):  # not a frame
        X = np.asarray(X)
        if X.dtype.kind in "SUMmV":
            raise ValueError(f"{name} must be a matrix of numbers, dense or sparse: got an array of {X.dtype}")
        X = X.astype(X.dtype.newbyteorder("="), copy=False)
    try:
        X = check_array(X, accept_sparse=SPARSE, dtype=DTYPES, ensure_all_finite=False, input_name=name)
    except (TypeError, ValueError) as error:
        first, *rest = str(error).splitlines()  # which show the array, and may say what to do
        advice = "".join(f". {line}" for line in rest if line.startswith("Reshape"))
        raise type(error)(
            f"{name} must be a matrix of numbers, dense or sparse: {first.rstrip(':')}{advice}"
        ) from error
    values = X.data if issparse(X) else X
    for bad, is_bad in (("NaN", np.isnan), ("infinite", np.isinf)):
        count = sum(np.count_nonzero(is_bad(rows)) for rows in np.array_split(values, 64))
        if count:
            raise ValueError(
                f"{name} contains {count} {bad} entries: partwise takes finite numbers only, no missing values yet. "
                "Fill them in, with sklearn.impute for one, or drop the rows or columns that hold them."
            )
    return X


def checked_random_state(random_state) -> np.random.RandomState:
    """What scikit-learn takes, and NumPy's generators."""
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**32))
    return check_random_state(random_state)


def checked_callbacks(callbacks) -> list:
    """A list of callables, from one or several."""
    callbacks = [callbacks] if callable(callbacks) else callbacks
    if not isinstance(callbacks, list | tuple) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks must be functions of (record, factors), in a list; got {callbacks!r}")
    return list(callbacks)


def checked_rank(rank) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or rank < 1:
        raise ValueError(f"the rank must be a whole number >= 1, got {rank!r}")
    return int(rank)


def checked_symmetric(symmetric) -> bool | str:
    """One of the `SYMMETRIES`; numbers that equal True or False are not taken for them."""
    if not isinstance(symmetric, bool | np.bool_ | str) or symmetric not in SYMMETRIES:
        raise ValueError(f"symmetric must be True, False or {OFF_DIAGONAL!r}, got {symmetric!r}")
    return symmetric if isinstance(symmetric, str) else bool(symmetric)


def checked_threads(n_threads) -> int | None:
    if n_threads is not None and (
        isinstance(n_threads, bool) or not isinstance(n_threads, int | np.integer) or n_threads < 1
    ):
        raise ValueError(f"n_threads must be a whole number >= 1, or None for all there are; got {n_threads!r}")
    return None if n_threads is None else int(n_threads)


def checked_checkpoint(checkpoint) -> tuple[Path, float]:
    """Path and seconds, from either form that `factorize` takes; the folder must be there now."""
    pair = checkpoint if isinstance(checkpoint, tuple) and len(checkpoint) == 2 else (checkpoint, INTERVAL)
    path, interval = pair
    number = isinstance(interval, Real) and not isinstance(interval, bool) and float(interval) >= 0
    if not isinstance(path, str | Path) or not number:
        raise ValueError(f"checkpoint must be a path, or a pair (path, seconds >= 0); got {checkpoint!r}")
    if Path(path).is_dir():
        raise ValueError(f"the checkpoint {path} is a folder: name a file")
    if not Path(path).absolute().parent.is_dir():
        raise ValueError(f"the checkpoint {path} cannot be written: {Path(path).absolute().parent} is not a folder")
    return Path(path), float(interval)
