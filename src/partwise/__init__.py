"""partwise: nonnegative data taken apart into meaningful parts."""

from . import datasets, init, losses, metrics, oracles, sc, selection, solvers, structures
from .data.tensor import SparseTensor
from .estimators import NMF, NTF, Dictionary, MiniBatchNMF, non_negative_factorization
from .factorize import factorize
from .holdout import Holdout, holdout
from .io import LazyMatrix, Table, load, read
from .io import open_lazily as open  # as `numpy.load` and `gzip.open`
from .problem import Problem
from .result import Result
from .selection import RankSelection, Stability, select_rank, stability

__version__ = "0.1.0"

__all__ = [
    "NMF",
    "NTF",
    "Dictionary",
    "Holdout",
    "LazyMatrix",
    "MiniBatchNMF",
    "Problem",
    "RankSelection",
    "Result",
    "SparseTensor",
    "Stability",
    "Table",
    "datasets",
    "factorize",
    "holdout",
    "init",
    "load",
    "losses",
    "metrics",
    "non_negative_factorization",
    "open",
    "oracles",
    "read",
    "sc",
    "select_rank",
    "selection",
    "solvers",
    "stability",
    "structures",
]


def __dir__() -> list[str]:
    return sorted(__all__)
