"""What a factorization returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from .. import kernels
from ..data.base import khatri_rao
from ..data.names import Labels, Mode, counted, factor_names, matrix_only, modes_of
from ..data.observed import complete
from ..data.units import product_of_norms, unit_columns
from ..errors import warn
from ..losses import Loss
from ..problem import Factors
from ..problem.parts import diagonal_weight, part_sums
from ..problem.symmetric import pose_as
from ..run.records import Record
from ..structures import Structure
from . import plots
from .certificate import Certificate, Optimality, optimality
from .certificate import one_more as one_more_part
from .html import result_html
from .impute import MOST_ENTRIES, filled_in
from .provenance import Provenance
from .transform import data_from, transformed


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Parts and how they came about, in the user's units. It never holds X.

    Attributes
    ----------
    factors : tuple of ndarray
        The factors, tall, (dim, rank); of a matrix also `W` and `H`.
    objective : float
        Loss and penalties.
    fit : float
        The loss alone.
    relative_error : float
        The error over `data_norm`: `|X - W H| / |X|` for least squares.
    data_norm : float
        The error of the null model: of 0 for least squares and L1, else of the mean of X.
    status : str
        Why the run ended: "converged", "max_iter", "target", "ftol", "time_limit", "callback", "interrupted" or
        "stalled".
    history : tuple of Record
        Iteration, time, objective and stationarity, from the start on.
    certificate : Certificate
        Whether the factors are feasible and the run has converged.
    loss : Loss
        The loss that was minimised.
    structures : tuple of Structure
        As they were stated.
    solver, reason : str
        What ran, and why it was taken.
    objectives : tuple of float
        The final objective of every start.
    details : dict
        What else the solver tells of the run.
    symmetric : bool or str
        True or "off-diagonal" where all factors are one.
    modes : tuple of Mode
        Names and labels of the modes of X, where they are known.
    n_missing : int
        Entries of X that are missing, or have weight 0.
    weighted : bool
        Whether entries that count do so by weights that differ.
    provenance : Provenance or None
        What was called, of which data, and when.
    compile_seconds : float
        Time to get kernels ready, which the times of `history` leave out.

    Examples
    --------
    >>> import partwise as pw
    >>> X = pw.datasets.make_parts(20, 12, 3, noise=0.05, random_state=0).X
    >>> result = pw.factorize(X, 3, random_state=0)
    >>> result.W.shape, result.H.shape, result.status
    ((20, 3), (3, 12), 'converged')
    >>> bool(result.explained > 0.95), result.certificate.feasible
    (True, True)
    """

    factors: Factors  # tall, (dim, rank)
    objective: float
    fit: float  # the loss alone, without penalties
    relative_error: float  # error / data_norm, the error being |X - model|, sum |X - model| for L1, else sqrt(2 fit)
    data_norm: float  # the error of the null model: of 0 for least squares and L1, which is |X|, else of the mean of X
    # why the run ended: "converged", "stalled", "max_iter", "target", "ftol", "time_limit", "callback" or "interrupted"
    status: str
    history: tuple[Record, ...]
    certificate: Certificate
    loss: Loss
    structures: tuple[Structure, ...]  # as the user stated them
    solver: str
    reason: str  # why this solver
    objectives: tuple[float, ...]  # the final objective of every start
    details: dict[str, Any]  # what else the solver tells of the run
    symmetric: bool | str = False  # True, or "off-diagonal": both factors are A, of X ~ A A'
    modes: tuple[Mode, ...] = ()  # names and labels of the modes of X, where they are known
    n_missing: int = 0  # entries of X that are missing, or have weight 0
    weighted: bool = False  # entries that count do so by weights that differ
    provenance: Provenance | None = None  # what was called, of which data, and when
    compile_seconds: float = 0.0  # of getting kernels ready, which the times of `history` leave out

    @property
    def W(self) -> np.ndarray:
        """(n_samples, rank)."""
        return self.of_matrix[0]

    @property
    def H(self) -> np.ndarray:
        """(rank, n_features)."""
        return self.of_matrix[1].T

    @property
    def of_matrix(self) -> Factors:
        """The factors, if they are two."""
        if why := matrix_only("a pair of W and H", len(self.factors)):
            raise AttributeError(f"{why}: see result.named")
        return self.factors

    @property
    def named(self) -> dict[str, np.ndarray]:
        """W and H, or where X has more than two modes A1, A2, ..., (dim, rank)."""
        names = factor_names(len(self.factors))
        return {"W": self.W, "H": self.H} if len(names) == 2 else dict(zip(names, self.factors, strict=True))

    @property
    def weights(self) -> np.ndarray:
        """The norm of each component, the product of its norms in all modes, (rank,)."""
        return product_of_norms(self.factors)

    @property
    def shares(self) -> np.ndarray:
        """The share of each component in the sum of all entries of the model, of their absolute values, where entries
        of X count."""
        sizes = part_sums(self.in_memory().factors, self.symmetric)
        return sizes / sizes.sum() if sizes.sum() > 0 else sizes

    def reconstruct(self) -> np.ndarray:
        """The model as an array of the shape of X: `W H`, or the sum of the outer products of all components.

        Examples
        --------
        >>> import numpy as np, partwise as pw
        >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
        >>> result = pw.factorize(X, 3)
        >>> np.allclose(result.reconstruct(), result.W @ result.H)
        True
        """
        if math.prod(self.shape) > MOST_ENTRIES:
            raise ValueError(
                f"the model has {math.prod(self.shape):.3g} entries, more than are multiplied out here: compute the "
                "slices that you need from result.factors"
            )
        return model_of(self.factors)

    def transform(self, X: Any, *, mask: Any = None, weights: Any = None, missing: str | None = "nan") -> np.ndarray:
        """The first factor for new rows of X, or slices along its first mode, with the other factors held: each row on
        its own, from what is observed of it, with the loss and the structure of this result and in its scale.

        Parameters
        ----------
        X : array-like, SciPy sparse matrix or SparseTensor
            New data with the features of those that were fitted; where both have names, they are matched by name.
        mask, weights, missing
            Which entries count, and how much, as in `partwise.factorize`.

        Returns
        -------
        ndarray of shape (n_samples, rank)
            A row of which nothing is observed is 0 where the structure allows.

        Examples
        --------
        >>> import numpy as np, partwise as pw
        >>> X = np.outer([1, 2, 3, 4], [1.0, 2.0, 1.0])
        >>> result = pw.factorize(X, 1, tol=1e-8)
        >>> new = result.transform([[10.0, 20.0, 10.0]])
        >>> result.inverse_transform(new).round(3)
        array([[10., 20., 10.]])
        """
        return transformed(self, X, modes_of(X), {"missing": missing, "mask": mask, "weights": weights})

    def inverse_transform(self, W: Any) -> np.ndarray:
        """`W H` for weights of shape (n_samples, rank), as `transform` gives them; for a tensor, slices of it.

        Examples
        --------
        >>> import numpy as np, partwise as pw
        >>> X = pw.datasets.make_parts(20, 12, 3, random_state=0).X
        >>> result = pw.factorize(X, 3)
        >>> np.allclose(result.inverse_transform(result.W[:2]), result.reconstruct()[:2])
        True
        """
        return data_from(W, self.factors[1:])

    @property
    def names(self) -> tuple[Labels | None, ...]:
        """What stands along each mode of X, rows and columns of a matrix: text or numbers; None where it is not known.
        From a frame, an AnnData object, an xarray.DataArray, a file, or `modes=`; see also `modes`."""
        return tuple(mode.labels for mode in self.modes) or (None,) * len(self.shape)

    def impute(self, X: Any, missing: str | None = "nan", mask: Any = None, weights: Any = None) -> Any:
        """X with its missing entries filled in by the model, all others as they are.

        Parameters
        ----------
        X : array-like, SciPy sparse matrix or SparseTensor
            The data of this result.
        missing : "nan", "zeros" or None
            Which entries are missing, as in `partwise.factorize`.
        mask : array or sparse matrix of bool, optional
            True where an entry is observed, as there.
        weights : array or sparse matrix, or tuple of vectors, optional
            Entries of weight 0 are missing, as there.

        Returns
        -------
        ndarray, or DataFrame where X is one of pandas
            Floating-point numbers of the type of X; whole numbers in the columns of a frame that are complete. A sparse
            X gives an array too.

        Examples
        --------
        >>> import numpy as np, partwise as pw
        >>> X = np.outer([1, 2, 3, 4], [1.0, 2.0, 1.0])
        >>> X[1, 2] = np.nan
        >>> pw.factorize(X, 1, tol=1e-8).impute(X).round(3)
        array([[1., 2., 1.],
               [2., 4., 2.],
               [3., 6., 3.],
               [4., 8., 4.]])
        """
        filled, n_filled = filled_in(self.factors, X, missing, mask, weights)
        if self.n_missing and not n_filled:
            warn(
                f"nothing was filled in: {self.n_missing} entries were missing in the fit, and none is in this X. Say "
                "here what was said there: missing='zeros', mask= or weights=."
            )
        return filled

    def to_tensorly(self) -> Any:
        """The model as a CP tensor of TensorLy, which has to be installed: factors with columns of norm 1, and
        `weights`."""
        try:
            from tensorly.cp_tensor import CPTensor  # noqa: PLC0415  # optional
        except ImportError as error:
            raise ImportError("to_tensorly needs TensorLy: pip install tensorly") from error
        return CPTensor((self.weights.astype(self.factors[0].dtype), list(unit_factors(self.factors))))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of X."""
        return tuple(A.shape[0] for A in self.factors)

    @property
    def rank(self) -> int:
        """Number of parts."""
        return self.factors[0].shape[1]

    @property
    def n_iter(self) -> int:
        """Iterations of the best start."""
        return self.history[-1].n_iter

    @property
    def explained(self) -> float:
        """`1 - fit / (the loss of the null model)`: 1 where the model is X, 0 where it is no better than the null one,
        and below 0 where it is worse. The null model is 0 for least squares, `1 - |X - model|^2 / |X|^2`, and for L1;
        for other losses it is the mean of X, and this the share of the deviance explained (D^2)."""
        return 1 - self.relative_error ** (1 / self.loss.error_power)

    @property
    def path(self) -> tuple:
        """One `partwise.solvers.greedy.PathStep` for every number of parts, where the solver adds one at a time."""
        return self.details.get("path", ())

    @property
    def converged(self) -> bool:
        """Whether the run ended because `tol` was reached; see `status`."""
        return self.status == "converged"

    def certify(self, X: Any, one_more: bool = False) -> Optimality:
        """How far the fit is from the best any factorization of this rank could reach (needs the data); `one_more`: and
        how much any one more part could gain, with the present parts held.

        Examples
        --------
        >>> import partwise as pw
        >>> X = pw.datasets.make_parts(20, 12, 3, noise=0.05, random_state=0).X
        >>> known = pw.factorize(X, 3).certify(X)
        >>> known.bound <= known.relative_error
        True
        """
        if self.unbounded:
            raise ValueError(self.unbounded)
        data = complete(X)
        if data.shape != self.shape:
            raise ValueError(f"X has shape {data.shape}, but this result is of one of shape {self.shape}")
        problem = pose_as(self.symmetric, data, self.loss, self.structures, self.rank).normalized()
        factors = problem.from_user(tuple(A.astype(data.dtype, copy=False) for A in self.factors))
        known = optimality(data, problem.relative_error(factors), self.rank, symmetric=bool(self.symmetric))
        return replace(known, one_more=one_more_part(problem, factors)) if one_more else known

    @property
    def unbounded(self) -> str | None:
        """Why `certify` knows no bound, where it does not."""
        if not self.loss.quadratic:
            return f"certify knows a bound for least squares only, this result minimised {self.loss}"
        if not diagonal_weight(self.symmetric):
            return "certify knows no bound where the diagonal of X does not count (symmetric='off-diagonal')"
        if self.observed:
            return "certify knows no bound where entries of X are missing, or count by weights"
        return None

    @property
    def plot(self) -> Plots:
        """Pictures, matplotlib Figures that a notebook shows by itself: `result.plot.parts(image_shape)`,
        `.features()`, `.codes(labels)`, `.modes()`, `.residual(X)`, `.convergence()`, `.path()`."""
        return Plots(self)

    def report(self, path: Any, **options: Any) -> Path:
        """Write a page about this result, one file that needs no network and no scripts: what was asked, what was
        found, who has it, how good it is, how the run went, and where it comes from.

        Parameters
        ----------
        path : str or Path
            An .html file.
        title : str
        X : array-like or sparse, optional
            The data: for where the model fails, and for samples beside their model. Entries that count are stated by
            `missing`, `mask` and `weights`, as in `partwise.factorize`.
        labels : sequence, optional
            One label for each sample, such as a cell type: shares of parts are shown by them.
        image_shape : (height, width), optional
            Of samples that are images; `columns`: images of parts in a row.
        show : "image", "curve" or "list", optional
            How parts are shown; without it, by what they look like.
        feature_names : sequence of str, optional
            Where the data have none of their own.
        optimality : Optimality, optional
            What `certify(X)` returned.

        Examples
        --------
        >>> import partwise as pw
        >>> digits = pw.datasets.load_digits()
        >>> result = pw.factorize(digits.X, 10, random_state=0)
        >>> page = result.report("digits.html", X=digits.X, image_shape=digits.image_shape)  # doctest: +SKIP
        """
        from ..report import write_report  # noqa: PLC0415  # needs the optional drawing libraries

        return write_report(self.in_memory(), path, **options)

    def in_memory(self) -> Result:
        """The result with its factors as NumPy arrays, wherever they are, such as W of a Dask array.

        Examples
        --------
        >>> import partwise as pw
        >>> result = pw.factorize(pw.datasets.make_parts(20, 12, 3, random_state=0).X, 3)
        >>> type(result.in_memory().W).__name__
        'ndarray'
        """
        return replace(self, factors=tuple(kernels.of(A).to_numpy(A) for A in self.factors))

    def save(self, path: Any) -> Path:
        """Write everything to one file, arrays and JSON, that `partwise.load` reads back exact to the bit.

        Examples
        --------
        >>> import os, tempfile, numpy as np, partwise as pw
        >>> result = pw.factorize(pw.datasets.make_parts(20, 12, 3, random_state=0).X, 3)
        >>> path = result.save(os.path.join(tempfile.mkdtemp(), "model.partwise"))
        >>> np.array_equal(pw.load(path).H, result.H)
        True
        """
        from ..io import save  # noqa: PLC0415  # it is built on this class

        return save(self, path)

    def __repr__(self):
        return (
            f"<partwise result: {' x '.join(map(str, self.shape))}{self.kind} in {counted(self.rank, 'part')}, "
            f"{self.quality}, {self.status} after {counted(self.n_iter, 'iteration')} of {self.solver}>"
        )

    def _repr_html_(self) -> str:
        return result_html(self.in_memory())

    @property
    def kind(self) -> str:
        """What is special about the model and the data, in a word or two."""
        words = [self.observed] if self.observed else []
        if self.symmetric:
            words.append("symmetric" if diagonal_weight(self.symmetric) else "symmetric off the diagonal")
        return f", {', '.join(words)}," if words else ""

    @property
    def n_observed(self) -> int:
        """How many entries of X are neither missing nor have weight 0."""
        return math.prod(self.shape) - self.n_missing

    @property
    def observed(self) -> str:
        """How entries of X count, in a few words; nothing where all count alike."""
        share = self.n_observed / math.prod(self.shape)
        told = f"{100 * share:.3g}% observed" if share < 0.9995 else f"all but {self.n_missing} of the entries observed"
        return ", ".join([*([told] if self.n_missing else []), *(["weighted"] if self.weighted else [])])

    @property
    def quality(self) -> str:
        """How good the fit is, in a few words."""
        if self.loss.quadratic:
            return f"relative error {self.relative_error:.4g}"
        if not self.loss.smooth:
            return f"relative {type(self.loss).__name__} error {self.relative_error:.4g}"
        return f"{self.loss} = {self.fit:.6g}, {self.explained:.1%} of {self.loss.explains} explained"


def model_of(factors: Factors) -> np.ndarray:
    """`[[A_1, ..., A_d]]` as an array."""
    return (factors[0] @ khatri_rao(factors[1:]).T).reshape([len(A) for A in factors])


def unit_factors(factors: Factors) -> Factors:
    """The factors with their columns divided by their norms; columns of zeros as they are."""
    return tuple(unit_columns(A)[0].astype(A.dtype, copy=False) for A in factors)


def drawn_by(function: Callable) -> Callable:
    """A picture of a result as a method of its `plot`, with the words of the function."""

    @wraps(function)
    def method(self, *args, **options):
        return function(self.result.in_memory(), *args, **options)

    return method


@dataclass(frozen=True)
class Plots:
    """The functions of `partwise.result.plots` on one result."""

    result: Result

    parts = drawn_by(plots.parts)
    features = drawn_by(plots.features)
    codes = drawn_by(plots.codes)
    modes = drawn_by(plots.modes)
    residual = drawn_by(plots.residual)
    convergence = drawn_by(plots.convergence)
    path = drawn_by(plots.path)
