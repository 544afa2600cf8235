"""Every public name is listed, documented and shown at work, and nothing else is in sight."""

import doctest
import inspect
import sys
from types import ModuleType

import pytest
from numpydoc.docscrape import NumpyDocString

import partwise as pw

MODULES = [pw, *(value for name in pw.__all__ if isinstance(value := getattr(pw, name), ModuleType))]
CLASSES = [pw.NMF, pw.NTF, pw.Dictionary, pw.Result, pw.RankSelection, pw.Stability, pw.Holdout, pw.SparseTensor]
# as scikit-learn has them: the example of the class shows them
AS_IN_SCIKIT_LEARN = {"fit", "fit_transform", "transform", "inverse_transform", "score"}
# steps on the way that users have no reason to call
INSIDE = {
    "RankSelection.cell",
    "RankSelection.remark",
    "Stability.with_consensus",
    "Holdout.measured",
    "Holdout.checked",
}
OPTIONAL = {"Result.to_tensorly", "Result.report", "RankSelection.report"}  # need libraries; docs show them


def public_names():
    for module in MODULES:
        for name in module.__all__:
            yield pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")


def methods():
    for cls in CLASSES:
        own = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items() if is_ours(base)}
        for name, value in own.items():
            function, full = getattr(value, "__func__", value), f"{cls.__name__}.{name}"
            if inspect.isfunction(function) and not name.startswith("_") and full not in INSIDE:
                yield pytest.param(name, function, id=full)


def is_ours(cls) -> bool:
    return cls.__module__.startswith("partwise")


HOMES = sorted({thing.__module__ for (thing,) in (p.values for p in public_names()) if not inspect.ismodule(thing)})


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_only_public_names_are_listed(module):
    shown = [name for name in dir(module) if not name.startswith("_")]
    assert shown == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("thing", public_names())
def test_every_public_name_is_shown_at_work(thing):
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert ">>> " in (own or ""), "its docstring has no example"


@pytest.mark.parametrize("thing", [p for p in public_names() if callable(p.values[0])])
def test_every_public_name_says_what_it_takes_and_returns(thing):
    doc = NumpyDocString(inspect.getdoc(thing))
    told = {
        name.lstrip("*")
        for section in ("Parameters", "Attributes")
        for p in doc[section]
        for name in p.name.split(", ")
    }
    # what a base class takes is up to those made of it
    taken = set() if inspect.isabstract(thing) else set(inspect.signature(thing).parameters)
    assert taken <= told, f"its docstring does not tell of {taken - told}"
    assert inspect.isclass(thing) or doc["Returns"] or inspect.signature(thing).return_annotation in (None, "None")


@pytest.mark.parametrize("name, function", methods())
def test_methods_are_documented(name, function):
    doc = function.__doc__ or ""
    assert doc, "it has no docstring"
    shown = name in AS_IN_SCIKIT_LEARN or function.__qualname__ in OPTIONAL
    assert shown or ">>> " in doc, "its docstring has no example"


def test_properties_are_documented():
    properties = [(cls, name) for cls in CLASSES for name, value in vars(cls).items() if isinstance(value, property)]
    bare = [f"{cls.__name__}.{name}" for cls, name in properties if name[0] != "_" and not vars(cls)[name].__doc__]
    assert not bare


@pytest.mark.slow_cases(r"\.(sparse|norm|orthogonal|shape|columns|select|selected|blocks|holdout|dictionary)$")
@pytest.mark.parametrize("name", HOMES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failures, tests = doctest.testmod(sys.modules[name])
    assert failures == 0
    assert tests > 0


def test_examples_of_modules_run():
    for module in MODULES[1:]:
        examples = doctest.DocTestFinder(recurse=False).find(module)
        assert [doctest.DocTestRunner().run(example).failed for example in examples] == [0] * len(examples)


def test_the_finder_sees_a_name_without_an_example():
    """That the tests above can fail."""
    assert ">>> " not in (inspect.getdoc(pw.errors.IncompatibleError) or "")
    assert not NumpyDocString(inspect.getdoc(pw.errors.IncompatibleError))["Parameters"]
    assert "errors" in vars(pw)
    assert "errors" not in dir(pw)
