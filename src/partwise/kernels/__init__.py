"""Compiled functions on arrays. `of(array)` picks the module for the array's type and imports it then."""

import importlib
from functools import cache
from types import ModuleType

import numpy as np

from .. import garbage

MODULES: dict[type, str] = {np.ndarray: ".cpu"}  # relative to this package, or absolute


def of(array) -> ModuleType:
    """The kernel module for this kind of array; every module offers the same functions."""
    return for_type(type(array))  # type: ignore[arg-type]  # classes are hashable


@cache
def for_type(array_type: type) -> ModuleType:
    """The same from the type of the arrays."""
    for kind, name in MODULES.items():
        if issubclass(array_type, kind):
            with garbage.put_off():
                return importlib.import_module(name, __name__)
    raise TypeError(f"partwise has no kernels for arrays of type {array_type.__name__}")
