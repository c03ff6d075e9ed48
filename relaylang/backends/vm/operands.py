"""What variables stand for at compile time, and how they become registers.

A variable stands for a register, a constant, or a result of the open region. It may also stand for a tuple's fields, as long
as nobody needs the tuple as one. `Operands` gives each the number of a register when an instruction reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylang.backends.cpu.kernel import unsupported
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import Region, field_of, is_static, tensors_of
from relaylang.backends.vm.scopes import Uses
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Constructor, Expr, GlobalVar, MetaRef, TensorType, TupleType, Type, Var
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS
from relaylang.runtime.vm.program import Packed, Spec


class Value:
    """A variable's value at compile time."""

    __slots__ = ()


class Reg(Value):
    """A value of the code, and its type."""

    __slots__ = ("number", "ty")

    def __init__(self, number: int, ty: Type | None) -> None:
        self.number = number
        self.ty = ty


class Atom(Value):
    """A constant, a module's function or a constructor."""

    __slots__ = ("node",)

    def __init__(self, node: Expr) -> None:
        self.node = node


class Fields(Value):
    """A tuple, which is made where somebody needs it as one value."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[Value]) -> None:
        self.fields = tuple(fields)


class Coming(Value):
    """A result of a region."""

    __slots__ = ("node", "region", "variable")

    def __init__(self, region: Region, variable: Var, node: Expr) -> None:
        self.region = region
        self.variable = variable
        self.node = node


def is_scalar(ty: Type | None) -> bool:
    """Whether values of a type are scalars, which lie in registers."""
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype in DTYPE_NUMBERS


class Operands:
    """The values of one function: what its variables stand for (`env`), and the region that is open.

    `loaded` has the registers of constants and tuples that were made on every way to the current place.
    """

    def __init__(self, pool: Pool, uses: Uses, code: FunctionCode) -> None:
        self.pool = pool
        self.uses = uses
        self.code = code
        self.env: dict[Var, Value] = {}
        self.region: Region | None = None
        self.loaded: dict[Any, Any] = {}

    def new(self, ty: Type | None) -> Reg:
        """A register for a value of a type."""
        return Reg(self.code.value(is_scalar(ty)), ty)

    def value(self, atom: Expr) -> Value:
        """What an atom stands for."""
        if not isinstance(atom, Var):
            return Atom(atom)
        found = self.env.get(atom)
        if found is None:  # a let that reads its own variable
            found = self.env[atom] = self.new(atom.checked_type)
        return self.arrived(found)

    def arrived(self, value: Value) -> Value:
        """The value itself, or the result that a region gave for it."""
        if isinstance(value, Coming) and value.region.results is not None:
            return value.region.results.get(value.variable, value)  # nothing needs the others
        return value

    def number(self, value: Value, node: Expr) -> int:
        """The register of a value, which is loaded or made here."""
        if isinstance(value, Coming):
            self.flush()
            value = self.arrived(value)
        assert not isinstance(value, Coming)
        if isinstance(value, Reg):
            return value.number
        key: Any = id(value.node) if isinstance(value, Atom) else value
        if key in self.loaded:
            return self.loaded[key]  # type: ignore[no-any-return]
        ty = None
        if isinstance(value, Atom) and isinstance(value.node, Constant):
            ty = TensorType(value.node.data.shape, value.node.dtype)
        number = self.code.value(is_scalar(ty))
        self.load(value, number, node)
        self.loaded[key] = number
        return number

    def load(self, value: Value, number: int, node: Expr) -> None:
        """Put a value into a register."""
        value = self.arrived(value)
        if isinstance(value, Fields):
            self._load_tuple(value, number, node)
        elif isinstance(value, Atom):
            self._load_atom(value.node, number, node)
        else:
            self.code.emit("Move", ("d", number), ("t", self.number(value, node)), node=node)

    def _load_tuple(self, value: Fields, number: int, node: Expr) -> None:
        """Make a tuple, and before it the tuples inside."""
        stack = [value]
        while stack:
            item = stack[-1]
            fields = [self.arrived(f) for f in item.fields]
            waiting = [f for f in fields if isinstance(f, Fields) and f not in self.loaded]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if item in self.loaded:
                continue
            parts = [("t", self.number(self.arrived(f), node)) for f in fields]
            target = number if item is value else self.code.value(False)
            self.code.emit("AllocTuple", ("d", target), ("#", len(parts)), *parts, node=node)
            if item is not value:
                self.loaded[item] = target

    def _load_atom(self, atom: Expr, number: int, node: Expr) -> None:
        emit = self.code.emit
        match atom:
            case Constant(data):
                small = data.ndim == 0 and data.dtype.kind in "biu" and -(1 << 31) <= int(data) < 1 << 31
                if small and self.code.scalar[number] and data.dtype.name in DTYPE_NUMBERS:
                    emit("LoadConsti", ("s", number), ("e", DTYPE_NUMBERS[data.dtype.name]), ("i", int(data)), node=node)
                else:
                    emit("LoadConst", ("d", number), ("c", self.pool.constant(data)), node=node)
            case GlobalVar():
                emit("AllocClosure", ("d", number), ("f", self.pool.function(atom)), ("#", 0), node=node)
            case Constructor():
                emit("AllocClosure", ("d", number), ("f", self.pool.builder(atom)), ("#", 0), node=node)
            case MetaRef():
                raise RelayError(error("R0403", f"the constant {atom.name_hint} has no value", atom.span))
            case Op(name):
                raise unsupported(f"the operator {name} as a value cannot be compiled", node)
            case _:
                raise unsupported(f"{type(atom).__name__} cannot be compiled", node)

    # --- the end of a region ---

    def flush(self) -> None:
        """Emit the open region, if something needs its results."""
        region, self.region = self.region, None
        if region is None:
            return
        results: dict[Var, Any] = {}
        wanted: list[Expr] = []
        targets: list[Reg] = []

        def result(node: Expr) -> Reg:
            wanted.append(node)
            targets.append(self.new(node.checked_type))
            return targets[-1]

        for variable, node in region.members.items():
            if not region.escapes(variable, self.uses.users, self.uses.values):
                continue
            if isinstance(node.checked_type, TupleType):
                results[variable] = Fields([result(field_of(node, n)) for n in range(len(node.checked_type.fields))])
            else:
                results[variable] = result(node)
        region.results = results
        if not wanted:
            return
        last = next(reversed(region.members.values()))
        numbers = list(region.inputs)
        if len(region.members) == 1 and len(wanted) == 1 and self._reshaped(last, numbers, targets[0]):
            return
        types = [tensors_of(node.checked_type) for node in wanted]
        outputs: tuple[Spec, ...] = ()
        if region.native:
            outputs = tuple((t.dtype, tuple(t.shape)) for (t,) in types)  # type: ignore[misc, arg-type]
        kernel = self.pool.kernel(Packed(len(numbers), outputs, len(wanted), module=region.module(wanted)))
        operands = [("p", kernel), ("#", len(numbers)), ("#", len(wanted)), *[("r", n) for n in numbers]]
        self.code.emit("InvokePacked", *operands, *[("d", t.number) for t in targets], node=last)

    def _reshaped(self, node: Expr, numbers: Sequence[int], target: Reg) -> bool:
        """Emit another view of a tensor for a call that only changes its shape."""
        if not (isinstance(node, Call) and isinstance(node.op, Op) and Trait.RESHAPE in node.op.traits):
            return False
        ty, source = node.checked_type, node.args[0].checked_type
        if not (isinstance(ty, TensorType) and isinstance(source, TensorType) and is_static(ty)):
            return False
        if not (ty.shape and source.shape) or len(numbers) != 1 or not isinstance(node.args[0], Var) or ty.dtype != source.dtype:
            return False
        self.code.emit("ReshapeTensor", ("d", target.number), ("t", numbers[0]), ("y", self.pool.spec(ty)), node=node)
        return True
