"""A result as files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from ..certificate import Optimality
from ..result import Result


def write_result(
    result: Result, folder: str | Path, optimality: Optimality | None = None, feature_names=None
) -> list[Path]:
    """W.npy, H.npy and result.json in a folder, which is made if it does not exist."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, A in (("W.npy", result.W), ("H.npy", np.ascontiguousarray(result.H))):
        np.save(folder / name, A)
    about = summary(result, optimality)
    if feature_names is not None:
        about["feature_names"] = list(feature_names)
    (folder / "result.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return [folder / name for name in ("W.npy", "H.npy", "result.json")]


def summary(result: Result, optimality: Optimality | None = None) -> dict:
    """What a result says of itself, as plain numbers and text."""
    m, n = (A.shape[0] for A in result.factors)
    certificate = result.certificate
    about = {
        "shape": [m, n],
        "rank": result.rank,
        "loss": repr(result.loss),
        "structures": {name: repr(s) for name, s in zip("WH", result.structures)},
        "symmetric": result.symmetric,
        "solver": result.solver,
        "reason": result.reason,
        "status": result.status,
        "n_iter": result.n_iter,
        "seconds": result.history[-1].time,
        "objective": finite(result.objective),
        "relative_error": finite(result.relative_error),
        "objectives_of_all_starts": [finite(f) for f in result.objectives],
        "certificate": {
            "feasible": certificate.feasible,
            "largest_violation": finite(max(certificate.violations)),
            "stationary": certificate.stationary,
            "stationarity": finite(certificate.stationarity),
            "tol": certificate.tol,
            "dead_parts": list(certificate.dead_parts),
            "unreached": certificate.unreached,
            "unsettled": certificate.unsettled and list(certificate.unsettled),
            "disagreements": certificate.disagreements and list(certificate.disagreements),
        },
        "details": {name: value for name, value in result.details.items() if name != "path"},
    }
    if result.path:
        names = ("rank", "objective", "relative_error", "gain", "bound", "status")
        about["path"] = [{name: finite(getattr(rung, name)) for name in names} for rung in result.path]
    if optimality is not None:
        about["optimality"] = {
            "statement": str(optimality),
            "bound": optimality.bound,
            "relative_error": optimality.relative_error,
            "rigorous": optimality.rigorous,
        }
        if more := optimality.one_more:
            about["one_more"] = {name: finite(getattr(more, name)) for name in ("gain", "bound", "loss", "status")}
    return about


def finite(value):
    """A number, or None for those that JSON does not have; text as it is."""
    return value if isinstance(value, str) or math.isfinite(value) else None
