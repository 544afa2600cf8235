"""Callbacks that tell how a run goes."""

from .problem import Factors
from .solve import Record


def print_line(record: Record, factors: Factors) -> None:
    """One line per iteration on standard output: what `verbose` of scikit-learn's NMF asks for."""
    print(
        f"iteration {record.n_iter:4d}  objective {record.objective:.8g}  "
        f"stationarity {record.stationarity:.2e}  {record.time:.2f} s"
    )
