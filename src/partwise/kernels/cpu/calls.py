"""Kernels that any thread can call, without the GIL: their arguments lie in memory.

A record is such memory, given by its address: words of eight bytes, and from `ARGUMENTS` on the arguments of a kernel.
What Python calls is compiled to put them there, instead of to call the kernel.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.callconv import RETCODE_NONE, RETCODE_OK
from numba.core.callwrapper import PyCallWrapper
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

from .linked import QuickCompiler

# words of a record: code that runs a task, the address of its ends, whether there is one task only, whether one
# failed, and two ends
FUNCTION, BOUNDARIES, ALONE, FAILED, ENDS = 0, 1, 2, 3, 4
ARGUMENTS, ROOM = 64, 512  # where arguments begin, and how many words they may take

INT, FLAG = ir.IntType(64), ir.IntType(32)
TASK = ir.FunctionType(FLAG, [INT, INT])  # of a record and the number of the task: not 0 where it failed
OF_TASK = 3  # parameters of a kernel that are not in a record, the last ones: `number`, `start` and `stop`


def word(builder: ir.IRBuilder, record: ir.Value, place: ir.Value, kind: ir.Type = INT) -> ir.Value:
    """The address of a word of a record."""
    address = builder.add(record, builder.mul(place, INT(8)))
    return builder.inttoptr(address, kind.as_pointer())


def owners(context, kind):
    """Which of the numbers that an argument is passed as own the memory of arrays. In a record they are left out, and
    nobody counts references to what the caller keeps."""
    if isinstance(kind, types.Array):
        return [True, True] + [False] * (3 + 2 * kind.ndim)
    if isinstance(kind, types.BaseTuple):
        return [owner for part in kind.types for owner in owners(context, part)]
    return [False] * len(context.get_arg_packer((kind,)).argument_types)


class TaskLower(Lower):
    """Code of a kernel, and in the place of what Python calls it by: code that puts the arguments into a record, the
    address of which comes as `stop`, and the address of code that runs one task."""

    def create_cpython_wrapper(self, release_gil=False):
        context, about = self.context, self.fndesc
        module = context.create_module("task")
        kind = context.call_conv.get_function_type(about.restype, about.argtypes)
        self.kernel = ir.Function(module, kind, about.llvm_func_name)
        self.given = self.kernel.args[2:-OF_TASK]  # after the places for a result and an error
        self.room = ir.LiteralStructType([value.type for value in self.given])
        if context.get_abi_sizeof(self.room) > 8 * ROOM:
            raise ValueError(f"the arguments of {about.qualname} take more than {ROOM} words")
        self.owns = owners(context, types.Tuple(about.argtypes[:-OF_TASK]))
        task = ir.Function(module, TASK, f"{about.llvm_func_name}.task")
        enter = ir.Function(module, kind, f"{about.llvm_func_name}.enter")
        task.linkage = enter.linkage = "internal"
        self.emit_task(task)
        self.emit_enter(enter, task)
        PyCallWrapper(context, module, enter, about, self.env, self.call_helper, release_gil).build()
        for function in module.functions:
            if not function.is_declaration:  # no loop: not worth the time to make it faster
                function.attributes.add("noinline")
                function.attributes.add("optnone")
        self.library.add_ir_module(module)

    def emit_task(self, task: ir.Function) -> None:
        """Call the kernel with the arguments in a record, and number and ends of the task."""
        record, number = task.args
        code = ir.IRBuilder(task.append_basic_block("entry"))
        room = word(code, record, INT(ARGUMENTS), self.room)
        given = [
            cgutils.get_null_value(value.type) if owner else code.load(cgutils.gep_inbounds(code, room, 0, i))
            for i, (value, owner) in enumerate(zip(self.given, self.owns, strict=True))
        ]
        ends = code.inttoptr(code.load(word(code, record, INT(BOUNDARIES))), INT.as_pointer())
        start, stop = (code.load(code.gep(ends, [code.add(number, INT(i))])) for i in (0, 1))
        results = [cgutils.alloca_once(code, place.type.pointee) for place in self.kernel.args[:2]]
        status = code.call(self.kernel, [*results, *given, number, start, stop], attrs=("noinline",))
        fails = [code.icmp_signed("!=", status, good) for good in (RETCODE_OK, RETCODE_NONE)]
        code.ret(code.zext(code.and_(*fails), FLAG))

    def emit_enter(self, enter: ir.Function, task: ir.Function) -> None:
        """Fill a record, and where there is one task only, run it."""
        code, (*given, _, _, record) = ir.IRBuilder(enter.append_basic_block("entry")), enter.args[2:]
        room = word(code, record, INT(ARGUMENTS), self.room)
        for i, owner in enumerate(self.owns):
            if not owner:
                code.store(given[i], cgutils.gep_inbounds(code, room, 0, i))
        code.store(code.ptrtoint(task, INT), word(code, record, INT(FUNCTION)))
        alone = word(code, record, INT(ALONE))
        with code.if_then(cgutils.is_not_null(code, code.load(alone))):
            failed = code.zext(code.call(task, [record, INT(0)]), INT)
            code.store(failed, word(code, record, INT(FAILED)))
        code.ret(RETCODE_NONE)


@register_pass(mutates_CFG=True, analysis_only=False)
class TaskLowering(NativeLowering):
    """The step of Numba's that emits code, here with `TaskLower`."""

    _name = "partwise_task_lowering"

    @property
    def lowering_class(self):
        return TaskLower


class TaskCompiler(QuickCompiler):
    """Numba's compiler for kernels that `team.over` maps."""

    def define_pipelines(self):
        (pipeline,) = super().define_pipelines()
        steps = {NativeLowering: TaskLowering}
        pipeline.passes = [(steps.get(kind, kind), about) for kind, about in pipeline.passes]
        return [pipeline]
