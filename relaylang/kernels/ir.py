"""The nodes of the loop language: expressions, and statements that hold lists of statements.

A type is a text: `float32`, `float32x16` (a vector of 16), or `index` (a loop variable, C's long). `const float32*` is a
pointer to read through, `float32*` one to write through. Buffers, locals and pointers have names.
Nodes never change after construction. Rewrites make new ones and share what stays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from relaylang.kernels.dtypes import element_of, vector, vector_of
from relaylang.kernels.ops import TESTS
from relaylang.kernels.sizes import Size

#: How a loop runs. The iterations of a parallel loop are units of work for threads. Those of a vector loop may run in any
#: order. An unrolled loop is written out, once for each iteration.
SERIAL, PARALLEL, VECTOR, UNROLLED = "serial", "parallel", "vector", "unrolled"
KINDS = (SERIAL, PARALLEL, VECTOR, UNROLLED)
#: Where a local array lies: on the stack, aligned for vectors, or in registers (its indices are constants).
STACK, REGISTERS = "stack", "registers"
INDEX = "index"
#: Operations that have an index as their result, of indices.
ARITHMETIC = ("add", "sub", "mul", "quotient", "remainder")


# -- expressions ---------------------------------------------------------------------------------------------------------


def _operator(name: str, swapped: bool = False) -> Callable[[Expr, Any], Expr]:
    """The method of an operator: index arithmetic of indices, else an operation of values."""

    def apply(left: Expr, right: Any) -> Expr:
        operands = (right, left) if swapped else (left, right)
        on_indices = name in ARITHMETIC and any(isinstance(x, Expr) and x.type == INDEX for x in operands)
        return binary(name, *operands) if on_indices else op(name, *operands)

    return apply


class Expr:
    """An expression. Operators make index arithmetic of indices, and operations of values (`op`).

    On indices, `//` and `%` are of numbers that are not negative; on integers, they round towards zero.
    Comparisons but `==` make tests.
    """

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()
    type: str

    __add__, __radd__ = _operator("add"), _operator("add", True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", True)
    __truediv__, __floordiv__, __mod__ = _operator("div"), _operator("quotient"), _operator("remainder")
    __lt__, __le__, __gt__, __ge__ = _operator("lt"), _operator("le"), _operator("gt"), _operator("ge")
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("shr")
    #: Whether two values are equal, and whether they are not (`==` compares nodes).
    eq, ne = _operator("eq"), _operator("ne")

    def __neg__(self) -> Expr:
        return self * -1 if self.type == INDEX else op("neg", self)

    def op(self, name: str, *others: Expr | float) -> Expr:
        """An operation with this value as its first operand, of this value's type."""
        return op(name, self, *others)

    def cast(self, dtype: str) -> Expr:
        """The value as another type: floats are cut to integers, integers wrap, anything but zero and nan is True."""
        return cast(self, dtype)

    def select(self, yes: Expr, no: Expr | float) -> Expr:
        """One of two values by this test; the other is not computed."""
        return select(self, yes, lifted(no, yes))


@dataclass(slots=True, eq=False)
class Var(Expr):
    """A name: a loop's variable, or what a `Let` or the C around it defines."""

    name: str
    type: str = INDEX


@dataclass(slots=True, eq=False)
class Const(Expr):
    """A number of an element type."""

    value: Any
    type: str


@dataclass(slots=True, eq=False)
class Linear(Expr):
    """`const + sum(factor * atom)`: an index. Constants are `Linear` without terms."""

    terms: tuple[tuple[Expr, int], ...]
    const: int = 0
    type: ClassVar[str] = INDEX  # type: ignore[misc]


@dataclass(slots=True, eq=False)
class Op(Expr):
    """An operation of `relaylang.kernels.ops` by its name, on values or vectors."""

    name: str
    args: tuple[Expr, ...]
    type: str


@dataclass(slots=True, eq=False)
class Extent(Expr):
    """A size of the kernel, which is known when it runs."""

    size: Size
    type: ClassVar[str] = INDEX  # type: ignore[misc]


@dataclass(slots=True, eq=False)
class Load(Expr):
    """The element at an index of a buffer; of a vector type, so many elements from there on."""

    buffer: str
    index: Expr
    type: str
    aligned: bool = False


@dataclass(slots=True, eq=False)
class Address(Expr):
    """A pointer to the element at an index."""

    buffer: str
    index: Expr
    type: str


@dataclass(slots=True, eq=False)
class Intrinsic(Expr):
    """An operation of the machine by its name in `ops.INTRINSICS`; its operands choose the variant."""

    name: str
    args: tuple[Expr, ...]
    type: str


@dataclass(slots=True, eq=False)
class Cast(Expr):
    """A value converted to another type (`relaylang.kernels.ops.cast_form`)."""

    value: Expr
    type: str


def fma(x: Expr, y: Expr, z: Expr) -> Expr:
    """`x * y + z`, of scalars or vectors."""
    return Intrinsic("fma", (x, y, z), z.type)


def splat(value: Expr, lanes: int) -> Expr:
    """A vector all of whose lanes have a value."""
    return Intrinsic("splat", (value,), vector(value.type, lanes)) if lanes > 1 else value


def cast(value: Expr, ty: str) -> Expr:
    """A value as another type; itself where it has that type. Floats of 16 bits become others by way of float32."""
    if value.type == ty:
        return value
    if {value.type, ty} & {"float16", "bfloat16"} and "float32" not in (value.type, ty) and (value.type, ty) != ("float64", "float16"):
        value = Cast(value, "float32")
    return Cast(value, ty)


def mix(one: Expr, two: Expr, lanes: Sequence[int]) -> Expr:
    """A vector of lanes of two, which are numbered on from the first to the second."""
    return Intrinsic("mix", (one, two, *map(number, lanes)), one.type)


def lane(vector: Expr, number_of: int) -> Expr:
    """A lane of a vector."""
    return Intrinsic("lane", (vector, number(number_of)), vector_of(vector.type)[0])


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """One of two values by a condition; the other is not computed."""
    return Op("select", (condition, yes, no), yes.type)


def lifted(value: Expr | float, like: Expr) -> Expr:
    """A number as a constant of the type of another operand; a size, as its value there."""
    if isinstance(value, Expr):
        return value
    if like.type == INDEX:
        return expr(value)  # type: ignore[arg-type]
    dtype, count = vector_of(like.type)
    return splat(cast(expr(value), dtype) if isinstance(value, Size) else Const(value, dtype), count)


def op(name: str, *args: Expr | float, type: str = "") -> Expr:
    """An operation; its type is that of the first operand that is no number, or a truth value, or as given."""
    like = next(a for a in args if isinstance(a, Expr))
    operands = tuple(lifted(a, like) for a in args)
    return Op(name, operands, type or ("bool" if name in TESTS else like.type))


def number(value: int) -> Expr:
    return Linear((), value)


def expr(value: Expr | int | str) -> Expr:
    """A number, a variable's name or an expression as an index expression."""
    if isinstance(value, Size):
        return Extent(value)
    if isinstance(value, int):
        return Linear((), value)
    if isinstance(value, str):
        return Var(value)
    return value


def constant_of(value: Expr) -> int | None:
    """The number that an index always is, if there is one."""
    match value:
        case Linear(terms, const) if not terms and not isinstance(const, Size):
            return const
        case Const(number, _) if isinstance(number, int):
            return number
    return None


def _linear(value: Expr | int | str) -> Linear:
    value = expr(value)
    return value if isinstance(value, Linear) else Linear(((value, 1),))


def key(value: Expr) -> Any:
    """What makes two expressions equal: their structure."""
    match value:
        case Var(name):
            return name
        case Linear(terms, const):
            return ("linear", const, *sorted(((key(a), c) for a, c in terms), key=repr))
    parts = [getattr(value, f.name) for f in fields(value)]  # type: ignore[arg-type]
    parts = [tuple(map(key, p)) if isinstance(p, tuple) else key(p) if isinstance(p, Expr) else p for p in parts]
    return (type(value).__name__, *parts)


def plus(left: Expr | int, right: Expr | int) -> Expr:
    """The sum of two indices."""
    one, two = _linear(left), _linear(right)
    if not one.terms or not two.terms:
        terms: Sequence[tuple[Expr, int]] = one.terms or two.terms
    else:
        atoms: dict[Any, tuple[Expr, int]] = {}
        for atom, factor in (*one.terms, *two.terms):
            name = key(atom)
            atoms[name] = (atom, atoms[name][1] + factor) if name in atoms else (atom, factor)
        terms = [t for t in atoms.values() if t[1] != 0]
    return plain(Linear(tuple(terms), one.const + two.const))


def times(left: Expr | int, right: Expr | int) -> Expr:
    """The product of two indices."""
    one, two = _linear(left), _linear(right)
    if one.terms and two.terms:
        return Op("mul", (plain(one), plain(two)), INDEX)
    value, factor = (one, two.const) if one.terms else (two, one.const)
    return plain(Linear(tuple((a, c * factor) for a, c in value.terms if factor != 0), value.const * factor))


def plain(value: Linear) -> Expr:
    """A single atom as itself."""
    return value.terms[0][0] if len(value.terms) == 1 and value.terms[0][1] == 1 and value.const == 0 else value


#: Operations on indices whose results of constants are known.
FOLDED: dict[str, Callable[[int, int], int]] = {"quotient": operator.floordiv, "remainder": operator.mod, "min": min, "max": max}


def binary(name: str, left: Expr | int, right: Expr | int) -> Expr:
    """An operation on indices; of constants, its result."""
    if name == "add":
        return plus(left, right)
    if name == "sub":
        return plus(left, times(right, -1))
    if name == "mul":
        return times(left, right)
    one, two = expr(left), expr(right)
    a, b = constant_of(one), constant_of(two)
    if a is not None and b is not None and name in FOLDED and a >= 0 and (b > 0 or name in ("min", "max")):
        return number(FOLDED[name](a, b))
    if name in ("quotient", "remainder") and b == 1:
        return one if name == "quotient" else number(0)
    return Op(name, (one, two), INDEX)


def minimum(left: Expr | int, right: Expr | int) -> Expr:
    return binary("min", left, right)


def maximum(left: Expr | int, right: Expr | int) -> Expr:
    return binary("max", left, right)


# -- statements ----------------------------------------------------------------------------------------------------------


class Stmt:
    """A statement."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()


Body = list[Stmt]


@dataclass(slots=True, eq=False)
class Let(Stmt):
    """A name for a value; with `mutable`, `Assign` changes it."""

    name: str
    value: Expr
    mutable: bool = False

    @property
    def var(self) -> Var:
        return Var(self.name, self.value.type)


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """A mutable name gets another value."""

    name: str
    value: Expr


@dataclass(slots=True, eq=False)
class Local(Stmt):
    """A local array, of elements or vectors; with `zero`, filled with zeros.

    An array in registers is one C variable for each element, so its indices are constants once loops are unrolled.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    space: str = STACK
    zero: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(slots=True, eq=False)
class Store(Stmt):
    """Write an element, or a vector of elements, at an index of a buffer."""

    buffer: str
    index: Expr
    value: Expr
    aligned: bool = False


@dataclass(slots=True, eq=False)
class Reduce(Stmt):
    """`buffer[index] = op(buffer[index], value)`, by an operation whose order is of no account."""

    op: str
    buffer: str
    index: Expr
    value: Expr


@dataclass(slots=True, eq=False)
class Loop(Stmt):
    """A variable runs from `low` up to, without, `high`.

    A parallel loop is the outermost of a stage, and runs from 0 to a constant or a size. Its iterations are the stage's units.
    """

    var: str
    low: Expr
    high: Expr
    body: Body
    kind: str = SERIAL
    step: int = 1

    @property
    def trips(self) -> int | None:
        """How many iterations there are, if that is constant."""
        low, high = constant_of(self.low), constant_of(self.high)
        return None if low is None or high is None else max(0, -(-(high - low) // self.step))


@dataclass(slots=True, eq=False)
class If(Stmt):
    """Statements that run where a condition holds, and others where it does not."""

    condition: Expr
    body: Body
    otherwise: Body = field(default_factory=list)


@dataclass(slots=True, eq=False)
class While(Stmt):
    """Statements that run as long as a condition holds."""

    condition: Expr
    body: Body


@dataclass(slots=True, eq=False)
class Block(Stmt):
    """Statements whose names end with them."""

    body: Body


@dataclass(slots=True, eq=False)
class Call(Stmt):
    """A call of a function of the kernel (`Function`), or of a C function."""

    name: str
    args: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Note(Stmt):
    """A comment."""

    text: str


@dataclass(slots=True, eq=False)
class Param:
    """A parameter of a function. What its pointers lead to does not overlap."""

    name: str
    type: str


@dataclass(slots=True, eq=False)
class Function:
    """A function that stages call: a micro-kernel. Equal functions of all kernels are one in the C."""

    name: str
    params: list[Param]
    body: Body
    doc: str = ""


def loop(var: str, low: Expr | int | str, high: Expr | int | str, body: Sequence[Stmt], kind: str = SERIAL) -> Loop:
    """A loop; its bounds may be numbers or C texts."""
    return Loop(var, expr(low), expr(high), list(body), kind)


def offset(shape: Sequence[int], index: Sequence[Expr | int]) -> Expr:
    """The offset of an element of a C-contiguous array; a lone index is an offset already."""
    if len(index) == 1:
        return expr(index[0])
    total = number(0)
    for n, i in enumerate(index):
        total = plus(total, times(i, math.prod(shape[n + 1 :])))
    return total


def dtype_of(array: Any) -> str:
    """The element type of a buffer, a local array or a pointer."""
    return element_of(array.type) if isinstance(array, (Local, Param, Var)) else array.dtype


def load(array: Any, *index: Expr | int, lanes: int = 1, aligned: bool = False) -> Load:
    """An element (or `lanes` elements) of a buffer, a local array or a pointer, by its index or its offset."""
    return Load(array.name, offset(getattr(array, "shape", ()), index), vector(dtype_of(array), lanes), aligned)


def store(array: Any, value: Expr, *index: Expr | int, aligned: bool = False) -> Store:
    """Write an element (or a vector) of a buffer, a local array or a pointer; see `load`."""
    return Store(array.name, offset(getattr(array, "shape", ()), index), value, aligned)


def address(array: Any, *index: Expr | int, written: bool = False) -> Address:
    """A pointer into a buffer, a local array or from another pointer, to read or to write through."""
    ty = f"{'' if written else 'const '}{dtype_of(array)}*"
    return Address(array.name, offset(getattr(array, "shape", ()), index), ty)
