"""What importing costs, and what it does not bring in."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import partwise


def seconds(statement):
    program = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


@pytest.mark.slow
def test_importing_costs_at_most_half_again_as_much_as_scikit_learn():
    assert seconds("import partwise") <= 1.5 * seconds("import sklearn.decomposition")


def test_optional_and_compiled_modules_wait_until_they_are_needed():
    program = "import partwise, sys; print({'numba', 'matplotlib', 'jinja2'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# what is taken from inside of Numba and llvmlite, which may change with any version: `pyproject.toml` bounds these
INSIDE = {
    "kernels/cpu/cache.py": {
        "numba.core": ["event"],
        "numba.core.caching": ["NullCache"],
        "numba.core.compiler": ["CompileResult"],
        "numba.core.serialize": ["dumps"],
    },
    "kernels/cpu/simd/sizes.py": {"numba.core.registry": ["cpu_target"]},
    "kernels/cpu/simd/llvm.py": {"llvmlite": ["ir"]},
    "kernels/cpu/simd/vectors.py": {
        "llvmlite": ["ir"],
        "numba.core": ["cgutils"],
        "numba.core.errors": ["TypingError"],
    },
}
PUBLIC = {"numba", "numba.extending"}


def test_what_is_taken_from_inside_of_numba():
    found = {}
    root = Path(partwise.__file__).parent
    for file in root.rglob("*.py"):
        text = file.read_text()
        for node in ast.walk(ast.parse(text)) if "numba" in text or "llvmlite" in text else ():
            module = str(getattr(node, "module", ""))
            if module.partition(".")[0] in ("numba", "llvmlite") and module not in PUBLIC:
                names = [alias.name for alias in node.names]
                found.setdefault(file.relative_to(root).as_posix(), {})[module] = names
                assert all(hasattr(import_module(module), name) for name in names)
    assert found == INSIDE


def test_what_else_is_used_inside_of_numba():
    """Methods and attributes that no import names."""
    from numba import njit
    from numba.core import event
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult
    from numba.core.registry import cpu_target

    assert all(hasattr(event, name) for name in ("Listener", "register"))
    assert isinstance(njit(lambda x: x, _nrt=False)._cache, NullCache)
    assert all(hasattr(NullCache, name) for name in ("cache_path", "load_overload", "save_overload"))
    assert all(hasattr(CompileResult, name) for name in ("_reduce", "_rebuild", "codegen", "library"))
    context = cpu_target.target_context
    assert all(hasattr(context, name) for name in ("refresh", "make_array", "make_tuple", "get_abi_sizeof"))
    triple, name, features = context.codegen().magic_tuple()
    assert all(isinstance(text, str) for text in (triple, name, features))
