"""What may be given as X, checked once, at the door."""

import math
from array import array
from dataclasses import dataclass, replace
from numbers import Integral, Number
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array, issparse

from .. import kernels
from ..checks import AT_LEAST_0, is_positive_int
from ..errors import NotAMatrixError
from .foreign import Entries, foreign
from .summary import Summary, summarised
from .tensor import SparseTensor

NEVER = "never"  # what `missing` is where X can have no missing values
OFF_DIAGONAL = "off-diagonal"
SYMMETRIES = (False, True, OFF_DIAGONAL)  # what `symmetric` may be
INTERVAL = 60.0  # seconds between checkpoints, unless the user says otherwise
DTYPES = (np.float64, np.float32)
MOST_NESTED = 16  # lists inside each other that are taken for a tensor
SPARSE = ("csr", "csc")  # other sparse formats are converted
NOT_FINITE = (("NaN", np.isnan), ("infinite", np.isinf))  # numbers that are none


@dataclass(frozen=True, eq=False)
class Checked:
    """X as `checked_data` returns it, and what was seen of its entries: it is not looked at again."""

    data: Any
    summary: Summary | None = None  # None where entries are NaN, or listed twice, or do not lie in a row in memory

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype


def checked_data(X, name="X", any_order=False, missing: str | None = NEVER):
    """X as a float array or CSR/CSC matrix, of its own precision where that is float32 or float64; where it may have
    `any_order`, as a tensor too. `missing`: as the user says it; where NaN is taken, it stands for masked entries too,
    and where missing values have no meaning it is NEVER."""
    return checked(X, name, any_order, missing).data


def checked(X, name="X", any_order=False, missing: str | None = NEVER) -> Checked:
    """The same, with what was seen of its entries."""
    X = as_matrix(X, name, any_order, with_nan=missing not in (None, NEVER))
    if not any_order and getattr(X, "ndim", 2) > 2:
        raise not_a_matrix(name, f"got a tensor with {X.ndim} modes, which pw.NTF and pw.factorize take")
    if is_frame(X):
        X = frame_as_matrix(X, name, any_order)
    if isinstance(X, SparseTensor):
        X = checked_tensor(X, name)
        X = csr_array((X.values, tuple(X.coords.T)), shape=X.shape) if X.ndim == 2 else X
    if not isinstance(X, SparseTensor):
        X = in_floats(checked_shape(X, name, any_order))
    if 0 in X.shape:
        raise not_a_matrix(name, f"got a tensor without entries, of shape {X.shape}", any_order)
    values = X.data if issparse(X) else getattr(X, "values", X)
    summary = summary_of(values, X.shape)
    if summary is None:
        check_finite(values, name, X.ndim, missing)
    elif values is not X and max(-summary.lowest, summary.highest) > np.finfo(X.dtype).max / max(values.size, 1):
        check_finite(added_up(X), name, X.ndim, missing)  # finite numbers so large that sums of them need not be
    once = values is X or (issparse(X) and X.has_canonical_format)
    return Checked(X, summary if once else None)


def summary_of(values: np.ndarray, shape: tuple[int, ...]) -> Summary | None:
    """Of the entries that are listed, where all are finite; of an array, where they lie in a row."""
    if values.ndim > 1 and not values.flags.forc:
        return None
    summary = summarised([values.ravel(order="K")], math.prod(shape), kernels.of(values))
    return summary if summary.finite else None


def check_finite(values: np.ndarray, name: str, order: int, missing: str | None = NEVER) -> None:
    """Raise an error if some of the values of X are not finite, NaN apart where that is taken."""
    if kernels.of(values).all_finite(values):
        return
    for bad, is_bad in NOT_FINITE if missing in (None, NEVER) else NOT_FINITE[1:]:
        count = sum(np.count_nonzero(is_bad(rows)) for rows in np.array_split(values, 64))
        if count:
            held = "rows or columns" if order == 2 else "slices"
            refused = "; missing=None was passed, and missing='nan' would leave them out of the fit"
            nan = f"Fill them in, or drop the {held} that hold them{refused if missing is None else ''}."
            infinite = f"Put NaN in their place if they are missing, or drop the {held} that hold them."
            raise ValueError(
                f"{name} contains {count} {bad} {'entry' if count == 1 else 'entries'}: finite numbers are needed "
                f"here. {nan if bad == 'NaN' else infinite}"
            )


def as_matrix(X, name="X", any_order=False, with_nan=False):
    """X as an array of numbers, a frame, or a CSR/CSC matrix with valid indices: what is safe to hand to compiled code,
    frames apart. Of an AnnData object, and of what `partwise.read` returns, its matrix.

    NumPy asks an object that is none of these for one item after the other, which may take hours.
    """
    if is_annotated(X):
        X = annotated_matrix(X, name)
    if is_table(X):
        X = X.X
    if (other := foreign(X, name)) is not None:
        X = SparseTensor(*other) if isinstance(other, Entries) else other
    if np.ma.is_masked(X):
        if not with_nan:
            raise ValueError(f"{name} has masked entries, which are not taken here: fill them in, or drop them.")
        X = X.astype(X.dtype if X.dtype in DTYPES else np.float64).filled(np.nan)
    if issparse(X):
        return checked_sparse(X, name, any_order)
    if isinstance(X, SparseTensor):
        return X
    if is_frame(X):
        return X
    deepest = MOST_NESTED if any_order else 4
    if not (offers_array(type(X)) or (isinstance(X, list | tuple) and is_nested(X, deepest - 1))):
        raise not_a_matrix(name, f"got {described(X)}", any_order)
    try:
        X = np.asarray(X)
    except Exception as error:  # other libraries raise all kinds of things, for data on a GPU for one
        raise not_a_matrix(name, f"{type(X).__name__} gives no array ({error})", any_order) from error
    return as_numbers(X, name, any_order)


def is_frame(X) -> bool:
    """Whether it is a table with names of its columns, as those of pandas and polars."""
    return hasattr(type(X), "columns") and offers_array(type(X))


def frame_as_matrix(X, name: str, any_order: bool):
    """Of a frame: scikit-learn knows of missing values and sparse columns in frames."""
    from sklearn.utils.validation import check_array  # noqa: PLC0415  # slow to import

    try:
        return check_array(X, accept_sparse=SPARSE, dtype=DTYPES, ensure_all_finite=False, input_name=name)
    except (TypeError, ValueError) as error:
        raise not_a_matrix(name, str(error).splitlines()[0].rstrip(":"), any_order) from error


def checked_shape(X, name: str, any_order: bool):
    """The same array or sparse matrix, unless it is no matrix, or an empty one. In words that scikit-learn's checks of
    estimators look for."""
    if X.ndim < 2:
        got = "1D array" if X.ndim else "scalar array"
        advice = "Reshape your data: X.reshape(1, -1) is one sample, X.reshape(-1, 1) samples of one feature"
        raise not_a_matrix(name, f"Expected 2D array, got {got} instead. {advice}", any_order)
    for number, what in zip(X.shape, ("sample(s)", "feature(s)"), strict=False):
        if number == 0:
            raise not_a_matrix(
                name, f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required.", any_order
            )
    return X


def in_floats(X):
    """In single precision if it is, else in double."""
    if X.dtype in DTYPES:
        return X
    if issparse(X):  # its `astype` would copy the indices
        converted = type(X)((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape, copy=False)
        converted.has_canonical_format = X.has_canonical_format
        return converted
    return X.astype(np.float64)


def as_numbers(values: np.ndarray, name: str, any_order: bool) -> np.ndarray:
    """An array of real numbers, not text or dates, in the byte order of this machine and at most double precision."""
    objects, kind = values.dtype.kind == "O", values.dtype.kind
    if kind in "SUMmVT" or (objects and any(issubclass(cell, str | bytes) for cell in set(map(type, values.flat)))):
        raise not_a_matrix(name, f"got an array of {'text' if objects else values.dtype}", any_order)
    if kind == "c":
        raise not_a_matrix(name, "Complex data not supported", any_order)
    if objects or (kind == "f" and values.dtype.itemsize > 8):
        try:
            with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is told of as such
                return values.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise not_a_matrix(name, str(error), any_order) from error
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def checked_sparse(X, name: str, any_order: bool):
    """A new CSR or CSC matrix with the arrays of X, once all their indices are in range."""
    if X.ndim != 2:
        raise not_a_matrix(name, f"got a sparse array with {X.ndim} dimensions", any_order)
    try:
        if X.format not in SPARSE:
            coo = X.tocoo(copy=False)
            return checked_sparse(sparse.coo_array((coo.data, coo.coords), shape=coo.shape).tocsr(), name, any_order)
        make = sparse.csr_array if X.format == "csr" else sparse.csc_array
        values = as_numbers(np.asarray(X.data), name, any_order)
        X = make((values, X.indices, X.indptr), shape=X.shape, copy=False)
    except NotAMatrixError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from error
    check_indices(X, name)
    return X


def check_indices(X, name: str) -> None:
    """Raise an error if an index of a CSR or CSC matrix is out of range. Where the indices of each row rise, the matrix
    is told that it is canonical, which SciPy would take longer to find out."""
    if np.any(X.indptr[1:] < X.indptr[:-1]):
        raise ValueError(f"{name} is not a valid sparse matrix: its indptr decreases somewhere")
    if not X.indices.size:
        return
    nonempty = X.indptr[1:] > X.indptr[:-1]
    firsts, lasts = X.indices[X.indptr[:-1][nonempty]], X.indices[X.indptr[1:][nonempty] - 1]
    rising = kernels.of(X.indices).falls(X.indices) == np.count_nonzero(firsts[1:] <= lasts[:-1])
    least, most = (firsts.min(), lasts.max()) if rising else (X.indices.min(), X.indices.max())
    length = X.shape[X.format == "csr"]
    if not (least >= 0 and most < length):
        raise ValueError(
            f"{name} is not a valid sparse matrix: its indices go from {least} to {most}, not from 0 to {length - 1}"
        )
    if rising:
        X.has_canonical_format = True


def checked_tensor(X: SparseTensor, name: str) -> SparseTensor:
    """With values as floating-point numbers."""
    values = as_numbers(X.values, name, any_order=True)
    if values.dtype not in DTYPES:
        values = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    return replace(X, values=values)


def added_up(X) -> np.ndarray:
    """The sums of the values that X lists at the same place."""
    if issparse(X):
        X = X.copy()
        X.sum_duplicates()
        return X.data
    _, place = np.unique(X.coords, axis=0, return_inverse=True)
    sums = np.zeros(X.nnz, X.dtype)
    with np.errstate(over="ignore"):
        np.add.at(sums, place.reshape(-1), X.values)
    return sums


def is_annotated(X) -> bool:
    """Whether it is an AnnData object: a matrix X with names of its rows and columns."""
    return all(hasattr(X, name) for name in ("X", "obs_names", "var_names"))


def is_table(X) -> bool:
    """Whether it is a `Table` that `partwise.read` returned."""
    return all(hasattr(X, name) for name in ("X", "row_names", "column_names"))


def annotated_matrix(X, name: str):
    """The matrix of an AnnData object, if it is in memory."""
    if getattr(X, "isbacked", False):
        raise ValueError(f"{name} is an {type(X).__name__} object in a file: pass {name}.to_memory()")
    if X.X is None:
        layers = list(map(str, getattr(X, "layers", ())))
        there = f"pass a layer, such as {name}.layers[{layers[0]!r}]" if layers else "and it has no layers"
        told = f" (there are {', '.join(layers[:20])})" if len(layers) > 1 else ""
        raise ValueError(
            f"{name} is an {type(X).__name__} object without a matrix, {name}.X is None: {there}{told}"
            + ("; partwise.sc.nmf takes layer=" if layers else "")
        )
    return X.X


def offers_array(kind: type) -> bool:
    """Whether NumPy gets an array from an object of this type in one go."""
    protocols = ("__array__", "__array_interface__", "__array_struct__")
    return issubclass(kind, array | memoryview | range) or any(hasattr(kind, name) for name in protocols)


def is_nested(X, depth: int) -> bool:
    """Whether it is a list of numbers or arrays, or of such lists, at most so many inside each other."""
    kinds = set(map(type, X))
    lists = {kind for kind in kinds if issubclass(kind, list | tuple)}
    plain = all(issubclass(kind, Number | str | bytes | None) or offers_array(kind) for kind in kinds - lists)
    inner = {id(item): item for item in X if type(item) in lists} if lists else {}  # a list that is in it twice, once
    return plain and (not lists or (depth > 0 and all(is_nested(item, depth - 1) for item in inner.values())))


def described(X) -> str:
    """What was given in place of a matrix, and what to do about it."""
    if isinstance(X, str | bytes | PathLike):
        return f"the text {str(X)[:60]!r}: if that names a file, read it first, such as with partwise.read"
    return f"an object of type {type(X).__name__}: make a NumPy array of it first"


def not_a_matrix(name: str, why: str, any_order: bool = False) -> NotAMatrixError:
    wanted = "matrix or tensor" if any_order else "matrix"
    return NotAMatrixError(f"{name} must be a {wanted} of numbers, dense or sparse: {why}")


def checked_random_state(random_state) -> np.random.RandomState:
    """What scikit-learn takes, and NumPy's generators. None is NumPy's own state, which `np.random.seed` sets."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand
    if isinstance(random_state, np.random.Generator):
        random_state = random_state.integers(2**32)
    if not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state must be None, a whole number, a numpy.random.RandomState or a numpy.random.Generator; got "
            f"{random_state!r}"
        )
    return np.random.RandomState(int(random_state))


def checked_callbacks(callbacks) -> list:
    """A list of callables, from one or several."""
    callbacks = [callbacks] if callable(callbacks) else callbacks
    if not isinstance(callbacks, list | tuple) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks must be functions of (record, factors), in a list; got {callbacks!r}")
    return list(callbacks)


def checked_rank(rank) -> int:
    if not is_positive_int(rank):
        raise ValueError(f"the rank must be a whole number >= 1, got {rank!r}")
    return int(rank)


def checked_symmetric(symmetric) -> bool | str:
    """One of the `SYMMETRIES`; numbers that equal True or False are not taken for them."""
    if not isinstance(symmetric, bool | np.bool_ | str) or symmetric not in SYMMETRIES:
        raise ValueError(f"symmetric must be True, False or {OFF_DIAGONAL!r}, got {symmetric!r}")
    return symmetric if isinstance(symmetric, str) else bool(symmetric)


def checked_threads(n_threads) -> int | None:
    if n_threads is not None and not is_positive_int(n_threads):
        raise ValueError(f"n_threads must be a whole number >= 1, or None for all there are; got {n_threads!r}")
    return None if n_threads is None else int(n_threads)


def checked_checkpoint(checkpoint) -> tuple[Path, float]:
    """Path and seconds, from either form that `factorize` takes."""
    pair = checkpoint if isinstance(checkpoint, tuple) and len(checkpoint) == 2 else (checkpoint, INTERVAL)
    path, interval = pair
    if not isinstance(path, str | Path) or not AT_LEAST_0.holds(interval):
        raise ValueError(f"checkpoint must be a path, or a pair (path, seconds >= 0); got {checkpoint!r}")
    return Path(path), float(interval)
