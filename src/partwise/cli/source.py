"""Earlier results, and what they say of the command that made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..io import load
from ..result import Result
from ..result.provenance import Provenance


def opened_model(path: str) -> Result:
    """The result in a file, or the one that a search for a rank or a study of stability ended with."""
    found: Any = load(model_in(path))
    result = found if isinstance(found, Result) else found.result
    if result is None:
        raise ValueError(f"{path} holds no fit: the search was interrupted before there was one")
    return result


def model_in(path: str) -> Path:
    """The file of a result, in the folder that a command wrote, where that is named."""
    inside = Path(path, "model.partwise")
    return inside if inside.is_file() else Path(path)


def recorded(path: str) -> Provenance:
    """Where a result.json or model.partwise comes from."""
    place = Path(path)
    if not place.is_file():
        raise ValueError(f"{path}: no such file")
    about = from_json(place) if place.suffix.lower() == ".json" else opened_model(path).provenance
    if about is None:
        raise ValueError(f"{path} does not say where it comes from: it was written by an earlier version of partwise")
    return about


def from_json(path: Path) -> Provenance | None:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))["provenance"]
        return Provenance(**about)
    except KeyError:
        return None
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a result.json that partwise wrote: {error}") from error


def recorded_options(path: str, known: set[str]) -> dict:
    """The options of the `partwise fit` that made a result, those that this version knows."""
    about = recorded(path)
    if not about.call.startswith("partwise fit ") or not isinstance(about.options, dict):
        raise ValueError(f"{path} was not made by partwise fit, and cannot be repeated by it, but by: {about.call}")
    kept = {name: value for name, value in about.options.items() if name in known}
    return kept | ({"image": tuple(kept["image"])} if kept.get("image") else {})
