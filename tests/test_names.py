"""Names of modes and labels along them, as users state them."""

import numpy as np
import pandas as pd
import pytest

from partwise.data.names import Mode, checked_modes, modes_of

SHAPE = (2, 3, 2)
GOOD = {
    "names": (["a", "b", "c"], (Mode("a"), Mode("b"), Mode("c"))),
    "nothing": (None, ()),
    "labels": (
        {"who": ["x", "y"], "nm": np.array([1.5, 2.5, 3.5]), "when": None},
        (Mode("who", ("x", "y")), Mode("nm", (1.5, 2.5, 3.5)), Mode("when")),
    ),
    "whole numbers": (
        {"a": range(2), "b": None, "c": np.array([7, 8], np.uint8)},
        (Mode("a", (0, 1)), Mode("b"), Mode("c", (7, 8))),
    ),
    "dates": (
        {"a": pd.to_datetime(["2020-01-01", "2020-01-02"]), "b": None, "c": None},
        (Mode("a", ("2020-01-01 00:00:00", "2020-01-02 00:00:00")), Mode("b"), Mode("c")),
    ),
    "text and numbers": ({"a": ["x", 1], "b": None, "c": None}, (Mode("a", ("x", "1")), Mode("b"), Mode("c"))),
    "modes": ((Mode("a"), Mode("b", (1, 2, 3)), Mode("c")), (Mode("a"), Mode("b", (1, 2, 3)), Mode("c"))),
}
WRONG = {
    "too few": (["a", "b"], ValueError, "must name every mode of X once, in order: X has 3"),
    "text": ("abc", TypeError, "modes must be a list of names, or a dict"),
    "a number": (3, TypeError, "modes must be a list of names, or a dict"),
    "numbers": ([1, 2, 3], TypeError, "names of modes must be text, got 1"),
    "twice": (["a", "b", "a"], ValueError, "different names"),
    "labels too few": ({"a": ["x"], "b": None, "c": None}, ValueError, "'a' has size 2, and there are 1 labels"),
    "labels in one text": ({"a": "xy", "b": None, "c": None}, TypeError, "labels of the mode 'a' must be a list"),
}


@pytest.mark.parametrize("modes, expected", GOOD.values(), ids=GOOD)
def test_modes_as_people_state_them(modes, expected):
    assert checked_modes(modes, SHAPE) == expected


@pytest.mark.parametrize("modes, error, message", WRONG.values(), ids=WRONG)
def test_what_does_not_name_the_modes(modes, error, message):
    with pytest.raises(error, match=message):
        checked_modes(modes, SHAPE)


def test_numbers_are_for_axes():
    assert Mode("nm", (1.5, 2)).numeric
    assert not Mode("who", ("x", "y")).numeric
    assert not Mode("who").numeric


def test_an_xarray_knows_its_modes():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    X = xarray.DataArray(np.ones(SHAPE), dims=["a", "b", "c"], coords={"b": [1.0, 2.0, 3.0]})
    assert modes_of(X) == (Mode("a"), Mode("b", (1.0, 2.0, 3.0)), Mode("c"))


def test_what_looks_like_an_xarray():
    """The same without xarray: a type of that module with its attributes."""

    class Coordinate:
        values = np.array([1.0, 2.0, 3.0])

    class DataArray:
        __module__ = "xarray.core.dataarray"
        dims, coords, shape = ("a", "b", "c"), {"b": Coordinate}, SHAPE

    assert modes_of(DataArray()) == (Mode("a"), Mode("b", (1.0, 2.0, 3.0)), Mode("c"))
    assert modes_of(np.ones(SHAPE)) == ()
