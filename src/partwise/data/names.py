"""What users read of factors and modes: their names, and labels along them."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np


def factor_names(order: int) -> tuple[str, ...]:
    """W and H of a matrix; A1 to Ad of data with d modes."""
    return ("W", "H") if order == 2 else tuple(f"A{mode + 1}" for mode in range(order))


def matrix_only(what: str, order: int) -> str | None:
    """None for a matrix, else the sentence that something is not made for X."""
    return None if order == 2 else f"{what} is for matrices, and X has {order} modes"


def counted(count: int, noun: str) -> str:
    """`1 part`, `2 parts`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def letters(order: int) -> str:
    """One letter for each mode, for `numpy.einsum`; z is left for the components."""
    return string.ascii_letters.replace("z", "")[:order]


Labels = tuple[str | float, ...]
SAMPLES_AND_FEATURES = ("samples", "features")  # what rows and columns are called where nobody says otherwise


@dataclass(frozen=True)
class Mode:
    """A mode of X: what it is called, and what stands along it."""

    name: str
    labels: Labels | None = None

    @property
    def numeric(self) -> bool:
        """Whether the labels are numbers, such as wavelengths."""
        return self.labels is not None and not any(isinstance(label, str) for label in self.labels)


def checked_modes(modes, shape: tuple[int, ...]) -> tuple[Mode, ...]:
    """Modes from what users state: a list of names, or a dict of names with labels or None, in the order of the modes;
    () where nothing is stated."""
    if modes is None or (isinstance(modes, tuple) and not modes):
        return ()
    if isinstance(modes, str | bytes) or not isinstance(modes, Iterable):
        raise TypeError(f"modes must be a list of names, or a dict from names to labels or None; got {modes!r}")
    if isinstance(modes, Mapping):
        stated = list(modes.items())
    else:
        stated = [(mode.name, mode.labels) if isinstance(mode, Mode) else (mode, None) for mode in modes]
    names = [name for name, _ in stated]
    if len(names) != len(shape):
        raise ValueError(f"modes must name every mode of X once, in order: X has {len(shape)}, and there are {names!r}")
    for name in names:
        if not isinstance(name, str) or not name:
            raise TypeError(f"names of modes must be text, got {name!r} among them")
    if len(set(names)) != len(names):
        raise ValueError(f"modes must have different names, got {names!r}")
    return tuple(
        Mode(name, checked_labels(labels, size, name)) for (name, labels), size in zip(stated, shape, strict=True)
    )


def checked_labels(labels, size: int, name: str) -> Labels | None:
    """One label for each index of a mode: all text, or all finite numbers. Others, such as dates, become text."""
    if labels is None:
        return None
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise TypeError(f"labels of the mode {name!r} must be a list of text or numbers, or None; got {labels!r}")
    plain = [label.item() if isinstance(label, np.number) else label for label in labels]
    if len(plain) != size:
        raise ValueError(f"the mode {name!r} has size {size}, and there are {len(plain)} labels for it")
    if all(isinstance(label, Real) and not isinstance(label, bool) and math.isfinite(label) for label in plain):
        return tuple(label if isinstance(label, int) else float(label) for label in plain)
    return tuple(map(str, plain))


def modes_of(X: Any) -> tuple[Mode, ...]:
    """What an xarray.DataArray, an AnnData object or a frame of pandas or polars says of its modes; () for anything
    else, and for a matrix without names."""
    library = type(X).__module__.partition(".")[0]
    if library == "xarray" and hasattr(X, "dims"):
        coords = {str(dim): X.coords[dim].values if dim in X.coords else None for dim in X.dims}
        return checked_modes(coords, tuple(X.shape))
    if all(hasattr(X, name) for name in ("X", "obs_names", "var_names")):  # an AnnData object
        return matrix_modes(X.obs_names, X.var_names)
    if library == "pandas" and hasattr(X, "columns"):
        return matrix_modes(*(None if counts_only(axis) else axis for axis in (X.index, X.columns)))
    if library == "partwise" and hasattr(X, "modes"):  # a file that was opened
        return X.modes
    return matrix_modes(None, X.columns) if library == "polars" and hasattr(X, "columns") else ()


def matrix_modes(rows, columns) -> tuple[Mode, ...]:
    """The modes of a matrix from the names of its rows and of its columns, None where there are none; () if there are
    none at all."""
    if rows is None and columns is None:
        return ()
    axes = zip((rows, columns), SAMPLES_AND_FEATURES, strict=True)
    return tuple(
        Mode(name, None if labels is None else checked_labels(labels, len(labels), name)) for labels, name in axes
    )


def counts_only(axis: Any) -> bool:
    """Whether an index of pandas is the one that it makes itself: 0, 1, 2, ..."""
    return type(axis).__name__ == "RangeIndex" and axis.start == 0 and axis.step == 1


def columns_by_name(given: Sequence[Mode], wanted: Sequence[Mode]) -> list[int] | None:
    """The columns of a new matrix in the order of a fitted one, by their names; None where either has none, or they are
    the same. Columns that were not fitted are left out."""
    if len(given) != 2 or len(wanted) != 2 or given[1].labels is None or wanted[1].labels is None:
        return None
    new, old = (list(map(str, modes[1].labels or ())) for modes in (given, wanted))
    if new == old:
        return None
    if missing := sorted(set(old) - set(new)):
        told = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise ValueError(
            f"X lacks {len(missing)} of the {len(old)} features that were fitted: {told}. Add them, as columns of "
            "NaN of a frame where they were not measured"
        )
    known = set(old)
    if len(known) < len(old) or sum(name in known for name in new) > len(old):
        raise ValueError("features cannot be matched by name, since some names stand more than once: make them differ")
    places = {name: place for place, name in enumerate(new)}
    return [places[name] for name in old]
