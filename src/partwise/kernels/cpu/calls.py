"""Calls of a kernel with arguments that lie in memory, so that any thread can make them, without the GIL.

A record is such memory, given by its address: words of eight bytes, and from `ARGUMENTS` on the arguments of a kernel.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

FUNCTION, BOUNDARIES, ALONE = 0, 1, 2  # words of a record: code and ends of its tasks, whether there is one task only
ARGUMENTS, ROOM = 64, 512  # where arguments begin, and how many words they may take

INT, FLAG = ir.IntType(64), ir.IntType(32)
TASK = ir.FunctionType(FLAG, [INT, INT])  # of a record and the number of the task: not 0 where it failed
WORD = types.int64


def word(builder, record, place, kind=INT):
    """The address of a word of a record."""
    address = builder.add(record, builder.mul(place, INT(8)))
    return builder.inttoptr(address, kind.as_pointer())


def borrowed(context, builder, kind, value):
    """A value that does not own the memory of its arrays: nobody counts references to what the caller keeps."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value, len(kind)), strict=True)
        return context.make_tuple(builder, kind, [borrowed(context, builder, *part) for part in parts])
    return value


def emit_task(context, builder, kernel, call, kinds):
    """A function that runs one task: it calls the kernel with the arguments in a record, the task's number if the
    kernel asks for it, and its ends."""
    compiled = kernel.dispatcher.overloads[call.args]
    context.active_code_library.add_linking_library(compiled.library)
    function = ir.Function(builder.module, TASK, f"{builder.function.name}.task")
    function.linkage = "internal"
    record, number = function.args
    code = ir.IRBuilder(function.append_basic_block("entry"))
    given = code.load(word(code, record, INT(ARGUMENTS), context.get_value_type(kinds)))
    ends = code.inttoptr(code.load(word(code, record, INT(BOUNDARIES))), INT.as_pointer())
    start, stop = (code.load(code.gep(ends, [code.add(number, INT(i))])) for i in (0, 1))
    own = [number, start, stop][len(kinds) - len(call.args) :]
    arguments = [*cgutils.unpack_tuple(code, given, len(kinds)), *own]
    status, _ = context.call_internal_no_propagate(code, compiled.fndesc, call, arguments)
    code.ret(code.zext(status.is_error, FLAG))
    return function


@intrinsic
def enter(typingctx, kernel, record, arguments):
    """Put the arguments of a kernel into a record, all but the last two or three, `start` and `stop` or `number`,
    `start` and `stop`, and the code that runs its tasks. Where there is one task only, run it: that word of the record
    then says whether it failed."""
    n_parameters = kernel.dispatcher.py_func.__code__.co_argcount
    call = kernel.get_call_type(typingctx, (*arguments.types, *[WORD] * (n_parameters - len(arguments))), {})
    signature = types.void(kernel, WORD, arguments)

    def generate(context, builder, signature, values):
        _, record, given = values
        if context.get_abi_sizeof(given.type) > 8 * ROOM:
            raise TypingError(f"the arguments of a kernel take more than {ROOM} words: {arguments}")
        task = emit_task(context, builder, kernel, call, arguments)
        place = word(builder, record, INT(ARGUMENTS), given.type)
        builder.store(borrowed(context, builder, arguments, given), place)
        builder.store(builder.ptrtoint(task, INT), word(builder, record, INT(FUNCTION)))
        alone = word(builder, record, INT(ALONE))
        with builder.if_then(cgutils.is_not_null(builder, builder.load(alone))):
            builder.store(builder.zext(builder.call(task, [record, INT(0)]), INT), alone)
        return context.get_dummy_value()

    return signature, generate
