"""Compiled functions on arrays. `of(array)` picks the module for the array's type and imports it then."""

import importlib
from types import ModuleType

import numpy as np

MODULES = {np.ndarray: "cpu"}


def of(array) -> ModuleType:
    """The kernel module for this kind of array; every module offers the same functions."""
    for kind, name in MODULES.items():
        if isinstance(array, kind):
            return importlib.import_module(f"{__name__}.{name}")
    raise TypeError(f"partwise has no kernels for arrays of type {type(array).__name__}")
