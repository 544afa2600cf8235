"""A result as files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..data.names import SAMPLES_AND_FEATURES, Mode, matrix_only
from ..errors import warn
from ..result import Result
from ..result.certificate import Optimality
from .archive import replacing
from .tables import as_path, write_table
from .tables import checked_file as checked_file  # noqa: PLC0414  # the page is written with it

if TYPE_CHECKING:
    from ..selection.selected import RankSelection
    from ..selection.stability import Stability


TABLES = {"csv": ".csv", "parquet": ".parquet"}  # kinds of tables that factors are written to, and their endings


def write_result(
    result: Result,
    folder: str | Path,
    optimality: Optimality | None = None,
    feature_names=None,
    tables: str | None = None,
) -> list[Path]:
    """W.npy and H.npy, or what else the factors are called, as tables too where there are names (W.csv, H.csv) or
    `tables`, one of TABLES, says so, result.json, and model.partwise for `partwise.load`; in a folder, made if it does
    not exist."""
    if tables not in (None, *TABLES):
        raise ValueError(f"tables must be {' or '.join(map(repr, TABLES))}, or None; got {tables!r}")
    folder, result = checked_folder(folder), with_names(result, feature_names)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, A in result.named.items():
        written.append(folder / f"{name}.npy")
        write_table(written[-1], np.ascontiguousarray(A))
    written += write_tables(result, folder, tables)
    written.append(write_json(folder / "result.json", summary(result, optimality)))
    try:
        written.append(result.save(folder / "model.partwise"))
    except TypeError as error:  # such as a loss of the user's own
        warn(f"model.partwise is not written: {error}")
    return written


def write_json(path: Path, about: dict) -> Path:
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return path


def write_tables(result: Result, folder: Path, kind: str | None = None) -> list[Path]:
    """The factors as tables of a kind such as csv: H with its features as columns, all others with names as rows. For
    None csv, of modes with names alone."""
    parts = part_names(result.rank)
    written = []
    for (name, A), labels in zip(result.named.items(), result.names, strict=True):
        for suffix in TABLES.values():  # one of an earlier result would be taken for one of this
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
        if labels is None and kind is None:
            continue
        written.append(folder / f"{name}{TABLES[kind or 'csv']}")
        write_table(written[-1], A, *((labels, parts) if name == "H" else (parts, labels)))
    return written


def part_names(rank: int) -> list[str]:
    """As tables call parts."""
    return [f"part {k + 1}" for k in range(rank)]


def with_names(result: Result, feature_names) -> Result:
    """The result with these names of its features, if there are any."""
    names = checked_names(feature_names, result)
    if names is None:
        return result
    rows = result.modes[0] if result.modes else Mode(SAMPLES_AND_FEATURES[0])
    columns = result.modes[1].name if result.modes else SAMPLES_AND_FEATURES[1]
    return replace(result, modes=(rows, Mode(columns, tuple(names))))


def write_stability(stability: Stability, folder: str | Path) -> list[Path]:
    """stability.json, stability.partwise for `partwise.load`, and the consensus parts as `write_result` writes them, or
    those of the reference where there is no consensus."""
    written = write_result(stability.consensus or stability.result, folder)
    place = write_json(Path(folder) / "stability.json", stability_summary(stability))
    return [place, stability.save(Path(folder) / "stability.partwise"), *written]


def write_selection(selection: RankSelection, folder: str | Path) -> list[Path]:
    """rank.json, rank.partwise for `partwise.load`, and the fit at the rank picked as `write_result` writes it, where
    the search got that far."""
    written = write_result(selection.result, folder) if selection.result else []
    folder = checked_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    place = write_json(folder / "rank.json", selection_summary(selection))
    return [place, selection.save(place.with_suffix(".partwise")), *written]


def checked_folder(folder: str | Path) -> Path:
    """A folder that can be written in, or made: now rather than after the work."""
    folder = as_path(folder)
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ValueError(f"cannot write to {folder}: {nearest} is not a folder, or not one to write in")
    return folder


def checked_names(names: Iterable | None, result: Result) -> list[str] | None:
    """Names of the features of a result, as text; numbers are names too, such as the columns of a frame."""
    if names is None:
        return None
    if why := matrix_only("feature_names", len(result.shape)):
        raise ValueError(f"{why}: name them and their labels with factorize(..., modes=...)")
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"feature_names must be a list of text, one for each feature; got {names!r}")
    listed, count = list(names), result.H.shape[1]
    if len(listed) != count:
        raise ValueError(f"feature_names must name every feature once: there are {count}, and {len(listed)} names")
    for name in listed:
        if not isinstance(name, str | Real):
            raise TypeError(f"feature_names must be text, got {name!r} among them")
    return list(map(str, listed))


def summary(result: Result, optimality: Optimality | None = None) -> dict:
    """What a result says of itself, as plain numbers and text."""
    certificate = result.certificate
    about = {
        "shape": list(result.shape),
        "rank": result.rank,
        "loss": repr(result.loss),
        "structures": dict(zip(result.named, map(repr, result.structures), strict=True)),
        "symmetric": result.symmetric,
        "n_missing": result.n_missing,
        "weighted": result.weighted,
        "solver": result.solver,
        "reason": result.reason,
        "status": result.status,
        "n_iter": result.n_iter,
        "seconds": result.history[-1].time,
        "objective": finite(result.objective),
        "fit": finite(result.fit),
        "relative_error": finite(result.relative_error),
        "explained": finite(result.explained),
        "objectives_of_all_starts": [finite(f) for f in result.objectives],
        "certificate": {
            "feasible": certificate.feasible,
            "largest_violation": finite(max(certificate.violations)),
            "stationary": certificate.stationary,
            "stationarity": finite(certificate.stationarity),
            "tol": certificate.tol,
            "zero_components": list(certificate.zero_components),
            "unreached": certificate.unreached,
            "n_suboptimal": certificate.n_suboptimal and list(certificate.n_suboptimal),
            "disagreements": certificate.disagreements and list(certificate.disagreements),
        },
        "details": {name: value for name, value in result.details.items() if name != "path"},
    }
    if result.provenance:
        about["provenance"] = result.provenance.as_dict()
    if result.modes:
        about["modes"] = [{"name": mode.name, "labels": mode.labels and list(mode.labels)} for mode in result.modes]
    if result.path:
        names = ("rank", "objective", "relative_error", "gain", "bound", "status")
        about["path"] = [{name: finite(getattr(step, name)) for name in names} for step in result.path]
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


def stability_summary(stability: Stability) -> dict:
    """How parts come again, as plain numbers and text."""
    consensus = stability.consensus
    return {
        "sentence": stability.sentence,
        "rank": stability.rank,
        "resample": stability.resample,
        "n_runs": stability.n_runs,
        "n_asked": stability.n_asked,
        "weakest": stability.weakest,
        "mean": stability.mean,
        "parts": [part._asdict() for part in stability.parts],
        "objectives": [finite(objective) for objective in stability.objectives],
        "statuses": list(stability.statuses),
        "reference": summary(stability.result),
        "consensus": summary(consensus) if consensus else None,
        "without_consensus": stability.without_consensus,
        "provenance": provenance(stability.result),
    }


def selection_summary(selection: RankSelection) -> dict:
    """How many parts, and what speaks for it, as plain numbers and text."""
    stability = selection.stability
    return {
        "sentence": selection.sentence,
        "rank": selection.rank,
        "best": selection.best,
        "near": selection.near,
        "window": list(selection.window),
        "table": [{name: finite(value) for name, value in row._asdict().items()} for row in selection.table],
        "curves": [[finite(loss) for loss in curve] for curve in selection.curves.tolist()],
        "candidates": list(selection.candidates),
        "dispersion": finite(selection.dispersion),
        "n_fits": selection.n_fits,
        "method": selection.method,
        "loss": repr(selection.loss),
        "shape": list(selection.shape),
        "n_starts": selection.n_starts,
        "share": selection.share,
        "random_state": selection.random_state,
        "status": selection.status,
        "stability": stability_summary(stability) if stability else None,
        "result": summary(selection.result) if selection.result else None,
        "provenance": provenance(selection.result),
    }


def provenance(result: Result | None) -> dict | None:
    return result.provenance.as_dict() if result is not None and result.provenance else None


def finite(value):
    """A number, or None for those that JSON does not have; text as it is."""
    return value if isinstance(value, str) or math.isfinite(value) else None
