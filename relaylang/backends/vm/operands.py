"""What variables stand for at compile time, and how they become registers.

A variable stands for a register, a constant, or a result of the open region. It may also stand for a tuple's fields, as long
as nobody needs the tuple as one. `Operands` gives each the number of a register when an instruction reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relaylang.backends.cpu.kernel import unsupported
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.kernels import NoCode, RegionCode
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import Region, alone, fields_of, is_static, specs_of
from relaylang.backends.vm.scopes import Uses
from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    MetaRef,
    TensorType,
    TupleType,
    Type,
    Var,
    children,
    rebuild,
)
from relaylang.ir.typed import typed, typed_tuple
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS
from relaylang.runtime.vm.program import Packed


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
        value = self.env.get(atom)
        if value is None:  # a let that reads its own variable
            value = self.env[atom] = self.new(atom.checked_type)
        return self.arrived(value)

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
        if isinstance(value, Fields) and value not in self.loaded:
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
        if self._emitted(region):
            return
        ways, whys = self._ways_alone(region)
        # Calls that cannot be compiled as one may be compiled one by one.
        apart = all(r == region.ways for r in ways.values())
        if len(ways) > 1:
            region.results = {}
            for part in _parts(region, ways, apart):
                if not part.ways:
                    part.why = whys.get(next(iter(part.members)), "")
                self._emit(part)
                region.results.update(part.results or {})
        else:
            self._emit(region)

    def _emit(self, region: Region) -> None:
        """Emit a region, interpreted where it cannot be compiled."""
        if not self._emitted(region):
            region.ways = frozenset()
            self._emitted(region)

    def _emitted(self, region: Region) -> bool:
        """Emit the kernel of a region, if something needs its results. False says that it cannot be compiled."""
        needed = [v for v in region.members if region.escapes(v, self.uses.users, self.uses.values)]
        wanted = [part for v in needed for part in fields_of(region.members[v])]
        last = next(reversed(region.members.values()))
        numbers = list(region.inputs)
        view = len(region.members) == len(wanted) == 1 and _is_view(last, numbers)
        module = region.module(wanted)
        code = self.pool.lower(module, region.ways) if wanted and not view else None
        if isinstance(code, NoCode) and region.ways:
            region.why = code.why
            return False
        targets = [self.new(node.checked_type) for node in wanted]
        left = iter(targets)
        region.results = {}
        for variable in needed:
            values = [next(left) for _ in fields_of(region.members[variable])]
            tuple_of = isinstance(region.members[variable].checked_type, TupleType)
            region.results[variable] = Fields(values) if tuple_of else values[0]
        if view:
            spec = self.pool.spec(last.checked_type)  # type: ignore[arg-type]
            self.code.emit("ReshapeTensor", ("d", targets[0].number), ("t", numbers[0]), ("y", spec), node=last)
        elif wanted:
            region_code = code if isinstance(code, RegionCode) else None
            packed = Packed(len(numbers), specs_of(wanted) if region_code else (), len(wanted), module=module)
            if isinstance(code, NoCode):
                packed.why = (region.why or code.why,)
            operands = [
                ("p", self.pool.kernel(packed, region_code)),
                ("#", len(numbers)),
                ("#", len(wanted)),
                *[("r", n) for n in numbers],
            ]
            self.code.emit("InvokePacked", *operands, *[("d", t.number) for t in targets], node=last)
        return True

    def _ways_alone(self, region: Region) -> tuple[dict[Var, frozenset[str]], dict[Var, str]]:
        """The ways in which each call of a region can be compiled on its own, and why others have none."""
        calls = {variable: alone(node) for variable, node in region.members.items() if isinstance(node, Call)}
        if len(calls) == 1:
            return dict.fromkeys(calls, region.ways), {}
        codes = {v: {w: self.pool.lower(m, frozenset({w})) for w in sorted(region.ways)} for v, m in calls.items()}
        ways = {v: frozenset(w for w, code in each.items() if isinstance(code, RegionCode)) for v, each in codes.items()}
        whys = {v: code.why for v, each in codes.items() for code in each.values() if isinstance(code, NoCode)}
        return ways, whys


def _is_view(node: Expr, numbers: Sequence[int]) -> bool:
    """Whether a call only changes the shape of a value."""
    if not (isinstance(node, Call) and isinstance(node.op, Op) and Trait.RESHAPE in node.op.traits):
        return False
    ty, source = node.checked_type, node.args[0].checked_type
    if not (isinstance(ty, TensorType) and isinstance(source, TensorType) and is_static(ty) and is_static(source)):
        return False
    same = bool(ty.shape and source.shape) and ty.dtype == source.dtype
    return same and len(numbers) == 1 and isinstance(node.args[0], Var)


def _parts(region: Region, ways: Mapping[Var, frozenset[str]], apart: bool) -> Iterator[Region]:
    """A region in parts whose calls have a way in common, or with `apart`, in its calls. Each part needs its results before the
    next one is asked for."""
    numbers = {id(param): number for number, param in region.inputs.items()}
    homes: dict[int, tuple[Region, Var]] = {}
    part: Region | None = None

    def operand(node: Expr) -> Expr:
        assert part is not None
        if isinstance(node, (Constant, Function)):
            return node
        if isinstance(node, Var):
            return part.input(numbers[id(node)], node.checked_type)
        if id(node) not in homes:
            return typed(rebuild(node, tuple([operand(c) for c in children(node)])), node.checked_type)
        home, variable = homes[id(node)]
        if home is part:
            return part.members[variable]
        assert home.results is not None
        result = home.results[variable]
        if isinstance(result, Fields):
            return typed_tuple([part.input(f.number, f.ty) for f in result.fields])  # type: ignore[attr-defined]
        return part.input(result.number, result.ty)

    for variable, node in region.members.items():
        possible = ways.get(variable, part.ways if part is not None else region.ways)
        if part is None or (apart and variable in ways) or not part.takes(possible):
            if part is not None:
                yield part
            part = Region(possible)
        part.ways &= possible
        part.add(variable, typed(rebuild(node, tuple([operand(c) for c in children(node)])), node.checked_type))
        homes[id(node)] = part, variable
    if part is not None:
        yield part
