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
def test_importing_costs_less_than_scikit_learn():
    assert seconds("import partwise") <= 0.7 * seconds("import sklearn.decomposition")


@pytest.mark.slow
def test_estimators_cost_at_most_half_again_as_much_as_those_of_scikit_learn():
    assert seconds("import partwise; partwise.NMF") <= 1.5 * seconds("import sklearn.decomposition")


# a fit of an array, what is imported before it and with it, and how many functions were compiled
PROGRAM = """
import sys
import partwise as pw
before = set(sys.modules)
import numpy as np
from numba.core import event
X = np.arange(1.0, 13).reshape(4, 3)
with event.install_recorder("numba:compile") as compiled:
    pw.{fit}
print(len(compiled.buffer), before & {{"numba"}}, set(sys.modules) & set(sys.argv[1:]))
"""
OURS = ("partwise.io", "partwise.report", "partwise.run.checkpoint", "partwise.selection")
OTHERS = ("sklearn", "pandas", "pyarrow", "scipy.optimize", "scipy.stats")  # what scikit-learn imports
NOT_NEEDED = {
    "factorize(X, 2)": (*OURS, "matplotlib", "jinja2", "scipy.signal", *OTHERS),
    "factorize(X, 2, max_iter=1)": OTHERS,  # which warns
    "NMF(2).fit(X)": (*OURS, "matplotlib", "jinja2", "scipy.signal"),
}


@pytest.mark.parametrize("fit", NOT_NEEDED)
def test_a_fit_imports_what_it_needs_and_a_later_process_compiles_nothing(fit):
    command = [sys.executable, "-c", PROGRAM.format(fit=fit), *NOT_NEEDED[fit]]
    first, later = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.split(maxsplit=1) for _ in range(2)
    )
    assert first[1] == later[1] == "set() set()\n"
    assert later[0] == "0"


@pytest.mark.parametrize("fit", NOT_NEEDED)
def test_a_later_process_imports_no_packages_that_extend_numba(fit):
    """`sparse` is one."""
    command = [sys.executable, "-c", PROGRAM.format(fit=fit), "sparse"]
    _, later = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert later == "0 set() set()\n"


@pytest.mark.parametrize("known", [False, True])
def test_a_run_that_has_not_converged_warns_as_scikit_learn_where_its_class_is_known(known):
    imported = "from sklearn.exceptions import ConvergenceWarning as theirs" if known else "theirs = None"
    program = (
        f"import sys, warnings, partwise\n{imported}\n"
        + """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    partwise.factorize([[1.0, 2.0], [3.0, 1.0], [0.0, 1.0]], 2, max_iter=1)
print(caught[0].category is theirs, caught[0].category.__name__, "sklearn" in sys.modules)
"""
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == f"{known} ConvergenceWarning {known}\n"


@pytest.mark.parametrize("name", partwise.LATER)
def test_names_that_are_imported_later_are_those_of_their_modules(name):
    home, known_as = partwise.LATER[name]
    module = import_module(f"partwise.{home}")
    assert getattr(partwise, name) is (module if known_as is None else getattr(module, known_as))


def test_names_that_are_not_there_are_said_to_be_missing():
    with pytest.raises(AttributeError, match="module 'partwise' has no attribute 'nmf'"):
        _ = partwise.nmf


# what is taken from inside of Numba and llvmlite, which may change with any version: `pyproject.toml` bounds these
INSIDE = {
    "kernels/cpu/cache.py": {
        "numba.core": ["event"],
        "numba.core.caching": ["NullCache"],
        "numba.core.runtime": ["rtsys"],
        "numba.core.serialize": ["dumps"],
    },
    "kernels/cpu/calls.py": {
        "llvmlite": ["ir"],
        "numba.core": ["cgutils", "types"],
        "numba.core.callconv": ["RETCODE_NONE", "RETCODE_OK"],
        "numba.core.callwrapper": ["PyCallWrapper"],
        "numba.core.compiler_machinery": ["register_pass"],
        "numba.core.lowering": ["Lower"],
        "numba.core.typed_passes": ["NativeLowering"],
    },
    "kernels/cpu/linked.py": {
        "llvmlite": ["binding"],
        "numba.core": ["config"],
        "numba.core.codegen": ["JITCodeLibrary"],
        "numba.core.compiler": ["Compiler", "CompileResult", "compile_result"],
        "numba.core.typed_passes": ["InlineOverloads", "NopythonRewrites"],
        "numba.core.untyped_passes": ["InlineClosureLikes"],
    },
    "kernels/cpu/serving.py": {
        "llvmlite": ["binding", "ir"],
        "numba.core": ["cgutils"],
        "numba.core.codegen": ["JITCodeLibrary"],
        "numba.core.compiler_lock": ["global_compiler_lock"],
        "numba.core.registry": ["cpu_target"],
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
    import_module("numba")  # which imports the parts of llvmlite
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
    from numba.core.callwrapper import PyCallWrapper
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult
    from numba.core.compiler_machinery import PassManager
    from numba.core.lowering import Lower
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys
    from numba.core.typed_passes import NativeLowering

    assert all(hasattr(event, name) for name in ("Listener", "register"))
    kernel = njit(lambda x: x, _nrt=False)
    assert isinstance(kernel._cache, NullCache) and hasattr(kernel, "_compilation_chain_init_hook")
    assert all(hasattr(NullCache, name) for name in ("cache_path", "load_overload", "save_overload"))
    assert all(hasattr(CompileResult, name) for name in ("_reduce", "_rebuild", "codegen", "library"))
    library = ("_optimize_functions", "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
    library += ("_verify_declare_only_symbols", "_ensure_finalized", "_get_module_for_linking", "enable_object_caching")
    library += ("get_pointer_to_function", "serialize_using_object_code", "codegen")
    library += ("create_ir_module", "add_ir_module", "finalize")
    assert all(hasattr(JITCodeLibrary, name) for name in library)
    assert hasattr(Compiler, "define_pipelines") and hasattr(PassManager(""), "passes")
    assert hasattr(rtsys, "initialize")
    assert hasattr(Lower, "create_cpython_wrapper") and hasattr(PyCallWrapper, "build")
    assert hasattr(NativeLowering, "lowering_class")
    context = cpu_target.target_context
    assert all(hasattr(context, name) for name in ("get_executable", "make_array", "make_tuple", "get_abi_sizeof"))
    assert all(hasattr(context, name) for name in ("create_module", "get_arg_packer", "call_conv"))
    triple, name, features = context.codegen().magic_tuple()
    assert all(isinstance(text, str) for text in (triple, name, features))
    assert all(hasattr(context.codegen(), name) for name in ("_tm", "_data_layout"))
