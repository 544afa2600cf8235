"""How Numba turns kernels into machine code, made quicker: half of the first call is that.

Numba makes every function that it compiles ready to run: it is optimised and turned into machine code, and what calls
it gets a copy of the optimised code, which is optimised and turned into machine code again. Here a function that never
runs by itself is left as it is, for those that call it. And kernels are optimised with less effort: the loops that take
the time are written for vector registers already, and others are vectorised all the same.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result
from numba.core.typed_passes import InlineOverloads, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

EFFORT = 1  # of 3: measured, more takes a fifth longer to compile, for the same speed and the same bits
# of Numba's passes: closures and comprehensions, other code that asks to be inlined, and expressions of whole arrays,
# which kernels have none of; to look for them takes a twelfth of the time
NEEDLESS = InlineClosureLikes, InlineOverloads, NopythonRewrites
BITCODE = "linked"  # the kind of serialized code, beside those of Numba's


def effort_allowed() -> int:
    """`EFFORT`, or less where NUMBA_OPT says so."""
    return min(EFFORT, int(vars(config)["OPT"]))


class Quick(JITCodeLibrary):
    """Code that is optimised with little effort, and without unrolling loops: those that take the time are written that
    way. The steps are Numba's; each of them mattered to the speed of some kernel."""

    def _builder(self, effort: int) -> Any:
        options = binding.create_pipeline_tuning_options(effort)
        options.loop_vectorization = effort > 0 and bool(vars(config)["LOOP_VECTORIZE"])
        options.loop_unrolling = options.slp_vectorization = False
        return binding.create_pass_builder(self._codegen._tm, options)

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout
        builder = self._builder(effort_allowed())
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self):
        for effort in (0, effort_allowed()):
            builder = self._builder(effort)
            passes = builder.getModulePassManager()
            if effort == 0:  # to put functions into those that call them, and find what counts references for nothing
                passes.add_loop_rotate_pass()
                passes.add_instruction_combine_pass()
                passes.add_jump_threading_pass()
            passes.add_refprune_pass()
            passes.run(self._final_module, builder)


class Nowhere:
    """Where code is that cannot be run."""

    def set_env(self, name: str, environment: Any) -> None:
        """Take note of Python objects that belong to it: there are none, and callers have theirs."""


class Linked(Quick):
    """Code that is run only as a part of other code, and optimised there."""

    codegen = Nowhere()

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self):
        return self.name, BITCODE, self._get_module_for_linking().as_bitcode()


class QuickCompiler(Compiler):
    """Numba's compiler with another place for code, and without the passes that find nothing in kernels."""

    library: type[JITCodeLibrary] = Quick

    def __init__(self, typing, target, _, *more):
        library = self.library(target.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typing, target, library, *more)

    def define_pipelines(self):
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [(kind, about) for kind, about in pipeline.passes if kind not in NEEDLESS]
        return [pipeline]


class LinkedCompiler(QuickCompiler):
    """The same for functions that only compiled functions call."""

    library = Linked


def rebuilt(context: Any, code: tuple, *about: Any) -> CompileResult:
    """What was compiled, from `CompileResult._reduce`."""
    name, kind, data = code
    if kind != BITCODE:
        return CompileResult._rebuild(context, code, *about)
    library, (description, environment, signature) = Linked(context.codegen(), name), about[:3]
    library._final_module = binding.parse_bitcode(data)
    library._finalize_final_module()
    return compile_result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=context.get_executable(library, description, environment),
        fndesc=description,
        signature=signature,
        objectmode=False,
        lifted=(),
    )
