"""Python values as JSON and arrays, and back: numbers, text, containers, arrays, and the dataclasses named here.

Nothing outside the list `kinds()` is ever made from a file, every field is of the type that its class declares, and
nothing is called but `__post_init__`, which checks.

A version reads what its predecessors wrote: a field that a file lacks gets its default, and `FORMER` tells what became
of classes and fields that are gone. So a new field of a class in files needs a default, and a name that is changed or
given up needs a line there.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from .. import kernels
from ..errors import ArchiveError
from ..solvers import Solver

PLAIN = (bool, int, str, NoneType)
# a class, or "Class.field" with the present name of the class, in files of earlier versions: what that is called now,
# "Class.field" again for a field, and None where it is given up
FORMER: dict[str, str | None] = {
    "Certificate.dead_parts": "Certificate.zero_components",
    "Certificate.unsettled": "Certificate.n_suboptimal",
    "Growth": "GreedyState",
    "Momentum.resting": "Momentum.rest",
    "Outcome.likeness": None,
    "Rung": "PathStep",
    "SharedState.patience": None,
    "structure All": "structure Intersection",
}
COLUMNS = ("n_iter", "time", "objective", "stationarity")  # of a history that does not name them


def kinds() -> dict[str, Any]:
    """The classes that files may hold, by name: ours, and the states of all solvers there are."""
    return _own_kinds() | {cls.__name__: cls for solver in all_subclasses(Solver) for cls in solver.states}


@cache
def _own_kinds() -> dict[str, Any]:
    from .. import losses, structures  # noqa: PLC0415  # they import this package
    from ..data.names import Mode  # noqa: PLC0415
    from ..result import Result  # noqa: PLC0415
    from ..result.certificate import Certificate  # noqa: PLC0415
    from ..result.provenance import Provenance  # noqa: PLC0415
    from ..run.records import Record, Run, Snapshot  # noqa: PLC0415
    from ..selection.base import Outcome  # noqa: PLC0415
    from ..selection.selected import RankRow, RankSelection  # noqa: PLC0415
    from ..selection.stability import Part, Stability  # noqa: PLC0415

    own = [
        Certificate,
        Mode,
        Outcome,
        Part,
        Provenance,
        RankRow,
        RankSelection,
        Result,
        Record,
        Run,
        Snapshot,
        Stability,
    ]
    own += [structures.alternating.Dykstra, structures.alternating.Successive, structures.vectors.Vectors]  # bound ones
    named: dict[str, Any] = {cls.__name__: cls for cls in own}
    for kind, module in (("loss", losses), ("structure", structures)):  # L1 is both
        public: dict[str, Any] = {f"{kind} {name}": vars(module)[name] for name in module.__all__}
        named |= {name: cls for name, cls in public.items() if dataclasses.is_dataclass(cls)}
    return {name: cls for name, cls in named.items() if not inspect.isabstract(cls)}


def name_of(value: Any) -> str | None:
    """The name of its class among those that files may hold."""
    return next((name for name, cls in kinds().items() if cls is type(value)), None)


def all_subclasses(cls: Any) -> list[Any]:
    return [cls, *(subclass for child in cls.__subclasses__() for subclass in all_subclasses(child))]


def encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON tree; arrays go into `arrays` under new names, without a copy."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple(kernels.MODULES)):  # wherever its rows are
        value = kernels.of(value).to_numpy(value)
    if isinstance(value, PLAIN) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, tuple) and value and all(type(item).__name__ == "Record" for item in value):
        # thousands of lines: better as numbers
        return {"history": encode(np.array(value, dtype=np.float64), arrays), "columns": list(value[0]._fields)}
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
    """The fields of a dataclass or named tuple, but for transient ones."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    skipped = getattr(value, "transient", ())
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
    name = FORMER.get(name, name) if isinstance(name, str) else None
    cls, stored = kinds().get(name), tree.get("fields")
    if cls is None or not isinstance(stored, dict):
        raise ArchiveError(f"it holds an unknown {str(tree.get('object'))[:60]}")
    values = defaults(cls)
    for field, item in stored.items():
        key = FORMER.get(f"{name}.{field}", f"{name}.{field}")
        if key is not None:
            values[key.removeprefix(f"{name}.")] = decode(item, arrays)
    check_fields(name, cls, values)
    if hasattr(cls, "_make"):
        return cls(**values)
    value = object.__new__(cls)
    for field, item in values.items():
        object.__setattr__(value, field, item)
    getattr(value, "__post_init__", lambda: None)()
    return value


def defaults(cls: Any) -> dict[str, Any]:
    """What fields have that a file says nothing of."""
    if hasattr(cls, "_make"):
        return dict(cls._field_defaults)
    own = {field.name: field for field in dataclasses.fields(cls) if field.name not in getattr(cls, "transient", ())}
    made = {name: f.default_factory() for name, f in own.items() if f.default_factory is not dataclasses.MISSING}
    return made | {name: f.default for name, f in own.items() if f.default is not dataclasses.MISSING}


def check_fields(name: str, cls: Any, values: dict[str, Any]) -> None:
    """Whether all fields are there, no others, and each of its type."""
    expected = set(getattr(cls, "_fields", ()) or (field.name for field in dataclasses.fields(cls)))
    expected -= set(getattr(cls, "transient", ()))
    if missing := expected - set(values):
        raise ArchiveError(f"its {name} lacks {', '.join(sorted(missing))}")
    if unknown := set(values) - expected:
        raise ArchiveError(
            f"its {name} has {', '.join(sorted(unknown))[:60]}, unknown to this version: upgrade partwise"
        )
    hints = hints_of(cls)
    for field, value in values.items():
        if not conforms(value, hint := hints.get(field, Any)):
            raise ArchiveError(f"its {name} has {str(value)[:60]} for {field}, which is not a {hint}")


@cache
def hints_of(cls: Any) -> dict[str, Any]:
    """The types of the fields; none are known where a state of somebody's own solver names types out of reach."""
    try:
        return get_type_hints(cls)
    except NameError:
        return {}


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that an annotation names; whole numbers are numbers, truth values are not."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin in (Union, UnionType):
        return hint is Any or any(conforms(value, argument) for argument in arguments)
    kind: Any = int | float if hint is float else origin or hint
    if not isinstance(value, kind) or (isinstance(value, bool) and hint is not bool):
        return False
    if origin is tuple and arguments[-1] is not Ellipsis:
        return len(value) == len(arguments) and all(map(conforms, value, arguments))
    if origin is dict:
        return all(conforms(item, arguments[1]) for item in value.values())
    return origin not in (tuple, list, Sequence) or all(conforms(item, arguments[0]) for item in value)


def read_array(name: Any, tree: dict, arrays: dict[str, np.ndarray]) -> np.ndarray:
    if name not in arrays:
        raise ArchiveError(f"the array {str(name)[:60]} is missing")
    return arrays.pop(name)  # each is named once: a small file cannot ask for much memory


def read_history(content: Any, tree: dict, arrays: dict[str, np.ndarray]) -> tuple:
    """Records, one from each line of a table."""
    lines, record = decode(content, arrays), kinds()["Record"]
    names = [FORMER.get(f"Record.{name}", f"Record.{name}") for name in tree.get("columns", COLUMNS)]
    if not isinstance(lines, np.ndarray) or lines.ndim != 2 or lines.shape[1] != len(names) or not len(lines):
        raise ArchiveError("its history is not a table of records")
    table = {
        name.removeprefix("Record."): column
        for name, column in zip(names, lines.T.tolist(), strict=True)
        if name is not None
    }
    table["n_iter"] = list(map(int, table["n_iter"]))
    usual = defaults(record)
    check_fields("Record", record, usual | {name: column[0] for name, column in table.items()})
    return tuple(record(**(usual | dict(zip(table, line, strict=True)))) for line in zip(*table.values(), strict=True))


def check_history(history: tuple) -> None:
    """One record for every iteration, from 0 on, without holes."""
    if not history or [record.n_iter for record in history] != list(range(len(history))):
        raise ArchiveError("its history is empty, or has holes")
    if any(math.isnan(value) for record in history for value in record) or not 0 <= history[-1].time < math.inf:
        raise ArchiveError("its history has entries that are not numbers")


READERS = {
    "number": lambda text, tree, arrays: float(str(text)),
    "array": read_array,
    "list": lambda items, tree, arrays: [decode(item, arrays) for item in items],
    "tuple": lambda items, tree, arrays: tuple(decode(item, arrays) for item in items),
    "dict": lambda items, tree, arrays: {name: decode(item, arrays) for name, item in items.items()},
    "object": read_object,
    "history": read_history,
}
