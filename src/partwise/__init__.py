"""partwise: nonnegative data taken apart into meaningful parts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import garbage

with garbage.put_off():
    from . import init, losses, oracles, solvers, structures
    from .data.tensor import SparseTensor
    from .factorize import factorize
    from .holdout import Holdout, holdout
    from .problem import Problem
    from .result import Result

if TYPE_CHECKING:
    from . import datasets, metrics, sc, selection
    from .estimators import NMF, NTF, Dictionary, MiniBatchNMF, non_negative_factorization
    from .io import LazyMatrix, Table, load
    from .io import open_lazily as open  # as `numpy.load` and `gzip.open`
    from .io.read import read
    from .selection import RankSelection, select_rank
    from .selection.stability import Stability, stability

__version__ = "0.1.0"

LATER = {  # what is imported when it is first asked for, since `factorize` needs none of it: its module and name there
    "NMF": ("estimators", "NMF"),
    "NTF": ("estimators", "NTF"),
    "Dictionary": ("estimators", "Dictionary"),
    "MiniBatchNMF": ("estimators", "MiniBatchNMF"),
    "non_negative_factorization": ("estimators", "non_negative_factorization"),
    "LazyMatrix": ("io", "LazyMatrix"),
    "Table": ("io", "Table"),
    "load": ("io", "load"),
    "open": ("io", "open_lazily"),
    "read": ("io", "read"),
    "RankSelection": ("selection", "RankSelection"),
    "Stability": ("selection", "Stability"),
    "select_rank": ("selection", "select_rank"),
    "stability": ("selection", "stability"),
    "datasets": ("datasets", None),
    "metrics": ("metrics", None),
    "sc": ("sc", None),
    "selection": ("selection", None),
}

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


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'partwise' has no attribute {name!r}")
    home, known_as = LATER[name]
    with garbage.put_off():
        module = import_module(f".{home}", __name__)
    value = globals()[name] = module if known_as is None else getattr(module, known_as)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
