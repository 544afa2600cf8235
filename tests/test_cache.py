"""Compiled kernels on disk: fresh after every change, right for several processes at once, and never in the way."""

import ast
import gc
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from partwise.kernels.compiling import compile_seconds
from partwise.kernels.cpu import cache

PROGRAM = """
import sys
import numpy as np
from partwise.kernels.cpu import cache

def doubled(x):
    return 2 * x

kernel = cache.compiler("llvm")(doubled)
result, stats = kernel(np.ones(1, sys.argv[1]))[0], kernel.stats
print(result, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def start(folder, dtype="float64"):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, dtype], env=environment, stdout=subprocess.PIPE, text=True)


def doubled(x):
    return 2 * x


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the sources, and no user's cache."""
    here = tmp_path / "sources" / "cpu"
    shutil.copytree(cache.HERE, here, ignore=shutil.ignore_patterns("__pycache__"))
    other = Path(shutil.copy(cache.OUTSIDE[0], tmp_path / "sources" / "beta.py"))
    monkeypatch.setattr(cache, "HERE", here)
    monkeypatch.setattr(cache, "OUTSIDE", (other,))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    (tmp_path / "no folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no folder"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "no folder"))
    monkeypatch.setenv("HOME", str(tmp_path / "no folder"))
    cache.folder_for.cache_clear()
    yield here
    cache.folder_for.cache_clear()


@pytest.mark.parametrize("changed", ["products.py", "simd/llvm.py", "../beta.py"])
def test_a_change_of_any_source_changes_the_folder(sources, changed):
    before = cache.digest_of("llvm")
    assert cache.digest_of("llvm") == before
    with (sources / changed).open("a") as file:
        file.write("\n# changed\n")
    assert cache.digest_of("llvm") != before


def test_versions_and_the_way_of_compiling_change_the_folder(sources, monkeypatch):
    before = {cache.digest_of("llvm"), cache.digest_of("plain")}
    monkeypatch.setattr(np, "__version__", "9.9")
    assert len(before | {cache.digest_of("llvm")}) == 3


NOT_COMPILED = "threads", "errors", "compiling", "checks", "garbage", "run"


def test_all_that_is_compiled_into_kernels_is_a_source():
    """Modules that kernels import from are hashed, or Python code that is not compiled."""
    for file in cache.HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = file.parents[node.level - 1]
                modules = [node.module] if node.module else [alias.name for alias in node.names]
                for module in modules:
                    path = folder.joinpath(*module.split("."))
                    inside = path.is_relative_to(cache.HERE)
                    hashed = inside or path.with_suffix(".py") in cache.OUTSIDE
                    assert hashed or path.name in NOT_COMPILED, (file, module)


def test_beside_the_sources_else_in_the_users_cache_else_nowhere(sources, tmp_path, monkeypatch):
    assert cache.folder_for("llvm").parent == sources / "__pycache__"
    cache.folder_for.cache_clear()
    shutil.rmtree(sources / "__pycache__")
    (sources / "__pycache__").touch()  # as good as read-only, for root too
    assert cache.folder_for("llvm") is None
    assert cache.compiler("llvm")(doubled)(2) == 4
    cache.folder_for.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.folder_for("llvm").parent == tmp_path / "user" / "partwise"
    cache.folder_for.cache_clear()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))
    assert cache.folder_for("llvm").parent == tmp_path / "numba"


def test_nothing_is_kept_where_sources_are_no_files(sources):
    shutil.rmtree(sources)
    assert cache.folder_for("llvm") is None


def test_old_folders_go_and_foreign_files_stay(sources):
    place = sources / "__pycache__"
    place.mkdir()
    foreign = [place / name for name in ("sums._sum-1.py311.nbi", "partwise-notes.txt", "partwise-other")]
    for name in foreign:
        name.mkdir() if name.suffix == "" else name.touch()
        os.utime(name, (1, 1))
    old = [place / f"partwise-{number:032x}" for number in range(cache.KEPT + 3)]
    for number, folder in enumerate(old):
        folder.mkdir()
        (folder / "code.nbc").touch()
        os.utime(folder, (number + 10, number + 10))
    (old[0] / "mine.txt").touch()
    os.utime(old[0], (10, 10))
    folder = cache.folder_for("llvm")
    assert all(name.exists() for name in foreign)
    assert [name.exists() for name in old] == [True, False, False, False] + [True] * (cache.KEPT - 1)
    assert os.listdir(old[0]) == ["mine.txt"]
    assert folder.is_dir()


def test_a_damaged_file_is_compiled_again(sources):
    assert cache.compiler("llvm")(doubled)(2) == 4
    (file,) = cache.folder_for("llvm").glob("*.nbc")
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"nonsense"):
        file.write_bytes(damaged)
        again = cache.compiler("llvm")(doubled)
        assert again(2) == 4
        assert sum(again.stats.cache_misses.values()) == 1
    another = cache.compiler("llvm")(doubled)
    assert another(2) == 4
    assert sum(another.stats.cache_hits.values()) == 1


def test_a_folder_that_vanishes_is_made_again(sources):
    first = cache.compiler("llvm")(doubled)
    shutil.rmtree(cache.folder_for("llvm"))
    assert first(2) == 4
    assert len(list(cache.folder_for("llvm").glob("*.nbc"))) == 1


def calling(inner):
    def outer(x):
        return inner(x) + 1

    return outer


def test_a_function_that_others_call_is_kept_for_these_and_has_no_machine_code(sources):
    for misses in (1, 0):
        inner = cache.compiler("llvm", inner=True)(doubled)
        assert cache.compiler("llvm")(calling(inner))(3) == 7
        (result,) = inner.overloads.values()
        assert result.library.get_pointer_to_function(result.fndesc.llvm_func_name) == 0
        assert sum(inner.stats.cache_misses.values()) == misses
        (file,) = cache.folder_for("llvm").glob("test_cache.calling*")
        file.unlink()  # so that the next is compiled again


def test_compiling_leaves_numbas_settings_and_the_collector_of_garbage_as_they_were(sources):
    kernel, frozen = cache.compiler("llvm")(doubled), gc.get_freeze_count()  # Python 3.12 has some itself
    gc.disable()
    try:
        assert kernel(2) == 4
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert kernel(1.5) == 3
    assert gc.isenabled() and gc.get_freeze_count() <= frozen
    assert numba.config.OPT == 3


def test_objects_that_a_user_has_frozen_stay_so(sources):
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert cache.compiler("llvm")(doubled)(2) == 4
        assert 0 < gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


def test_there_is_no_garbage_to_collect_while_functions_are_compiled_inside_each_other():
    listener, event = cache.Compilations(), SimpleNamespace(data={"dispatcher": cache.compiler("llvm")(doubled)})
    listener.on_start(event)
    listener.on_start(event)
    listener.on_end(event)
    assert not gc.isenabled()
    listener.on_end(event)
    assert gc.isenabled()


def test_the_stopwatch_runs_while_a_kernel_is_compiled_and_kept(sources):
    before, began = compile_seconds(), time.perf_counter()
    assert cache.compiler("llvm")(lambda x: max(x, 2))(1) == 2
    assert compile_seconds() - before > 0.5 * (time.perf_counter() - began)


def test_what_users_compile_is_their_own():
    before = compile_seconds()
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert compile_seconds() == before and gc.isenabled()


def test_types_that_are_compiled_at_once_do_not_mix(sources):
    """Each has a file of its own name: in Numba's index both would be the first, and one read as the other."""
    single, double = cache.compiler("llvm")(doubled), cache.compiler("llvm")(doubled)
    assert (single(np.float32(1.5)), double(1.5)) == (3, 3)
    assert len(list(cache.folder_for("llvm").iterdir())) == 2
    later = cache.compiler("llvm")(doubled)
    assert (later(np.float32(1.5)), later(1.5)) == (3, 3)
    assert sum(later.stats.cache_hits.values()) == 2


FIT = """
import numpy as np, scipy.sparse, partwise as pw
from partwise.kernels.cpu import cache
X = np.random.default_rng(0).uniform(size=(40, 30))
sparse = scipy.sparse.csr_array(X * (X > 0.8))
pw.factorize({arguments}, max_iter=3, tol=0)
for kernel in cache.KERNELS:
    inner = bool(kernel.targetoptions.get("no_cpython_wrapper"))
    print(kernel.__module__.rpartition(".")[2] + "." + kernel.__name__, inner, len(kernel.overloads))
"""
# kernels that a fit calls, at most: each takes a tenth of a second to compile, or up to two
CALLED = {
    "X, 3": 6,
    "sparse, 3": 9,
    "X, 3, loss='kl'": 9,
    "sparse, 3, loss='kl'": 12,
    "X, 3, loss='huber(0.1)'": 8,
    "X, 3, loss='l1'": 8,
}


@pytest.mark.parametrize("arguments", CALLED)
def test_a_fit_compiles_few_kernels_and_each_for_one_kind_of_arguments(arguments):
    program = FIT.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    kernels = {name: (inner == "True", int(count)) for name, inner, count in map(str.split, done.stdout.splitlines())}
    called = {name: count for name, (inner, count) in kernels.items() if count and not inner}
    assert len(called) <= CALLED[arguments]
    assert max(called.values()) == 1
    # helpers too, where they are compiled now; of arrays that are made there are two kinds
    assert {name for name, (inner, count) in kernels.items() if count > 1} <= {"base.aligned"}
    assert kernels["base.aligned"][1] <= 2
    assert kernels["newton._minimise_exactly"][1] == 0  # for rows to the end, which no fit asks for


@pytest.mark.slow
def test_processes_that_start_at_once_and_later_ones(tmp_path):
    both = [start(tmp_path, dtype) for dtype in ("float64", "float32")]
    assert [process.communicate()[0].split() for process in both] == [["2.0", "0", "1"]] * 2
    (folder,) = tmp_path.iterdir()
    assert cache.NAME.fullmatch(folder.name)
    assert {file.suffix for file in folder.iterdir()} == {".nbc"}
    assert start(tmp_path).communicate()[0].split() == ["2.0", "1", "0"]
