"""Python values as JSON and arrays, and back: numbers, text, containers, arrays, and the dataclasses named here.

Nothing outside the list `kinds()` is ever made from a file, and nothing is called but `__post_init__`, which checks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..errors import ArchiveError
from ..solvers import Solver

PLAIN = (bool, int, str, type(None))


def kinds() -> dict[str, Any]:
    """The classes that files may hold, by name: ours, and the states of all solvers there are."""
    return _own_kinds() | {cls.__name__: cls for solver in heirs(Solver) for cls in solver.states}


@cache
def _own_kinds() -> dict[str, Any]:
    from .. import certificate, losses, result, solve, structures  # noqa: PLC0415  # they import this package

    own = [certificate.Certificate, result.Result, solve.Record, solve.Run, solve.Snapshot]
    own += [structures.algebra.Dykstra, structures.algebra.Successive, structures.vectors.Vectors]  # bound ones
    named = {cls.__name__: cls for cls in own}
    for kind, module in (("loss", losses), ("structure", structures)):
        # L1 is both
        named |= {
            f"{kind} {name}": vars(module)[name] for name in module.__all__ if isinstance(vars(module)[name], type)
        }
    return named


def name_of(value: Any) -> str | None:
    """The name of its class among those that files may hold."""
    return next((name for name, cls in kinds().items() if cls is type(value)), None)


def heirs(cls: Any) -> list[Any]:
    return [cls, *(heir for child in cls.__subclasses__() for heir in heirs(child))]


def encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON tree; arrays go into `arrays` under new names, without a copy."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, tuple) and value and all(type(item).__name__ == "Record" for item in value):
        return {"history": encode(np.array(value, dtype=np.float64), arrays)}  # thousands of lines: better as numbers
    if name := name_of(value):
        return {"object": name, "fields": {n: encode(v, arrays) for n, v in fields(value).items()}}
    for kind, write in WRITERS.items():
        if isinstance(value, kind):
            return write(value, arrays)
    raise TypeError(f"{type(value).__name__} cannot be saved")


def write_array(value: np.ndarray, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    name = f"array{len(arrays)}"
    arrays[name] = value
    return {"array": name}


WRITERS: dict[type, Callable[[Any, dict[str, np.ndarray]], Any]] = {
    float: lambda value, arrays: {"number": repr(value)},  # infinity and NaN, which JSON does not have
    np.ndarray: write_array,
    list: lambda value, arrays: {"list": [encode(item, arrays) for item in value]},
    tuple: lambda value, arrays: {"tuple": [encode(item, arrays) for item in value]},
    dict: lambda value, arrays: {"dict": {str(name): encode(item, arrays) for name, item in value.items()}},
}


def fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass or named tuple, but for those that are made anew."""
    if hasattr(value, "_asdict"):
        return dict(zip(value._fields, value))
    skipped = getattr(value, "made_anew", ())
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.name not in skipped}


def decode(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value that a tree stands for."""
    if isinstance(tree, (*PLAIN, float)):
        return tree
    if isinstance(tree, dict) and tree:
        kind, content = next(iter(tree.items()))
        if kind in READERS:
            return READERS[kind](content, tree, arrays)
    raise ArchiveError(f"there is something unknown in it: {str(tree)[:60]}")


def read_object(name: Any, tree: dict, arrays: dict[str, np.ndarray]) -> Any:
    """An instance of a listed class, its fields set and checked."""
    cls = kinds().get(name) if isinstance(name, str) else None
    stored = tree.get("fields")
    if cls is None or not isinstance(stored, dict):
        raise ArchiveError(f"it holds an unknown {str(name)[:60]}")
    values = {field: decode(item, arrays) for field, item in stored.items()}
    expected = set(getattr(cls, "_fields", ()) or (f.name for f in dataclasses.fields(cls)))
    if set(values) != expected - set(getattr(cls, "made_anew", ())):
        raise ArchiveError(f"its {name} has the fields {', '.join(sorted(values))}, not those of this version")
    if hasattr(cls, "_make"):
        return cls(**values)
    value = object.__new__(cls)
    for field, item in values.items():
        object.__setattr__(value, field, item)
    getattr(value, "__post_init__", lambda: None)()
    return value


def read_array(name: Any, tree: dict, arrays: dict[str, np.ndarray]) -> np.ndarray:
    if name not in arrays:
        raise ArchiveError(f"the array {str(name)[:60]} is missing")
    return arrays.pop(name)  # each is named once: a small file cannot ask for much memory


def read_history(content: Any, tree: dict, arrays: dict[str, np.ndarray]) -> tuple:
    lines = decode(content, arrays)
    if not isinstance(lines, np.ndarray) or lines.ndim != 2 or lines.shape[1] != len(kinds()["Record"]._fields):
        raise ArchiveError("its history is not a table of records")
    if not len(lines):
        raise ArchiveError("its history is empty")
    return tuple(kinds()["Record"](int(n_iter), *map(float, rest)) for n_iter, *rest in lines)


READERS = {
    "number": lambda text, tree, arrays: float(str(text)),
    "array": read_array,
    "list": lambda items, tree, arrays: [decode(item, arrays) for item in items],
    "tuple": lambda items, tree, arrays: tuple(decode(item, arrays) for item in items),
    "dict": lambda items, tree, arrays: {name: decode(item, arrays) for name, item in items.items()},
    "object": read_object,
    "history": read_history,
}
