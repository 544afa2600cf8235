"""Code for vector registers, emitted instruction by instruction: what the functions of `llvm.py` are made of."""

from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import TypingError

from .sizes import FLOOR, HUGE, TINY, VECTOR

INT = ir.IntType(64)


def check(*arrays) -> None:
    """The code here reads memory as it comes: arrays of one type, without gaps."""
    if any(array.layout != "C" or array.dtype != arrays[0].dtype for array in arrays):
        raise TypingError(f"arrays must be contiguous and of one type, got {', '.join(map(str, arrays))}")


def check_narrower(values, like) -> None:
    """Numbers that are converted to the type of an array as they are read."""
    check(values)
    if values.dtype.bitwidth > like.dtype.bitwidth:
        raise TypingError(f"arrays must be contiguous and of one type, or X of single precision, got {values}, {like}")


class Vectors:
    """Loads, stores and multiply-adds of vectors in one function's code."""

    def __init__(self, context, builder, element):
        self.context, self.builder, self.element = context, builder, element
        self.itemsize = context.get_abi_sizeof(element)
        self.width = VECTOR // self.itemsize
        self.type = ir.VectorType(element, self.width)

    @classmethod
    def of_product(cls, context, builder, signature, arguments):
        """For arguments as `row_tile` has them, and where X, B and the result are."""
        kinds = signature.args
        code = cls(context, builder, context.get_value_type(kinds[5].dtype))
        X = builder.inttoptr(arguments[1], context.get_value_type(kinds[2].dtype).as_pointer())
        return code, (X, *(code.pointer(kinds[i], arguments[i]) for i in (5, 8)))

    def pointer(self, kind, array):
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def at(self, pointer, index, number):
        """The address of vector `number` after `pointer[index]`."""
        offset = self.builder.add(index, INT(number * self.width))
        return self.builder.bitcast(self.builder.gep(pointer, [offset]), self.type.as_pointer())

    def load(self, pointer, index, number):
        return self.builder.load(self.at(pointer, index, number), align=self.itemsize)

    def load_row(self, pointer, index, numbers, width):
        """Vectors of these numbers, `width` entries in all: of the last one no more is read, and the rest is zeros."""
        first = numbers[-1] * self.width
        lanes = ir.Constant(ir.VectorType(INT, self.width), list(range(first, first + self.width)))
        mask = self.builder.icmp_signed("<", lanes, self.spread(width))
        address, align = self.at(pointer, index, numbers[-1]), ir.IntType(32)(self.itemsize)
        kind = ir.FunctionType(self.type, [address.type, align.type, mask.type, self.type])
        of = f"v{self.width}f{8 * self.itemsize}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.masked.load.{of}.p0{of}")
        last = self.builder.call(function, [address, align, mask, self.zero])
        return [*(self.load(pointer, index, i) for i in numbers[:-1]), last]

    def store(self, value, pointer, index, number):
        self.builder.store(value, self.at(pointer, index, number), align=self.itemsize)

    def integer(self, pointer, index):
        """`pointer[index]`, of 32 or 64 bits, as one of 64."""
        value = self.builder.load(self.builder.gep(pointer, [index]))
        return self.builder.sext(value, INT) if value.type.width < INT.width else value

    def number(self, pointer, index):
        """`pointer[index]`, of single or double precision, in the type of the vectors."""
        value = self.builder.load(self.builder.gep(pointer, [index]))
        return value if value.type == self.element else self.builder.fpext(value, self.element)

    def spread(self, scalar):
        """A vector of equal entries, of the type of a scalar."""
        empty, index = ir.Constant(ir.VectorType(scalar.type, self.width), ir.Undefined), ir.IntType(32)
        one = self.builder.insert_element(empty, scalar, index(0))
        return self.builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(index, self.width), [0] * self.width))

    def multiply_add(self, a, b, c):
        name = f"llvm.fma.v{self.width}f{8 * self.itemsize}"
        kind = ir.FunctionType(self.type, [self.type] * 3)
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [a, b, c])

    def constant(self, number):
        return ir.Constant(self.type, [number] * self.width)

    @property
    def zero(self):
        return self.constant(0.0)

    def count(self, n):
        """How many vectors n entries are."""
        return self.builder.sdiv(n, INT(self.width))

    def total(self, vector):
        """The sum of a vector's entries."""
        kind = ir.FunctionType(self.element, [self.element, self.type])
        name = f"llvm.vector.reduce.fadd.v{self.width}f{8 * self.itemsize}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [self.element(0.0), vector], fastmath=("reassoc",))

    def above_floor(self, value, model):
        """The model, but at least `FLOOR value`, and not 0."""
        floor = self.multiply_add(self.constant(FLOOR), value, self.constant(TINY[self.itemsize]))
        return self.builder.select(self.builder.fcmp_ordered(">", model, floor), model, floor)

    def below_huge(self, value):
        """The value, but at most `HUGE`."""
        huge = self.constant(HUGE[self.itemsize])
        return self.builder.select(self.builder.fcmp_ordered("<", value, huge), value, huge)

    def accumulate(self, first, last, initial, turn, step=1):
        """`for p in range(first, last, step): sums = turn(p, sums)`, sums in registers; returns them."""
        builder = self.builder
        entry = builder.block
        head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        counter, sums = builder.phi(INT), [builder.phi(self.type) for _ in initial]
        builder.cbranch(builder.icmp_signed("<", counter, last), body, done)
        builder.position_at_end(body)
        renewed = turn(counter, sums)
        for phi, start, following in zip(
            [counter, *sums], [first, *initial], [builder.add(counter, INT(step)), *renewed], strict=True
        ):
            phi.add_incoming(start, entry)
            phi.add_incoming(following, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        return sums
