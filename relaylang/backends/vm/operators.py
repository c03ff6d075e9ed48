"""Calls of operators: scalar instructions (`scalars`), or members of a region (`regions`)."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.placement import check_on_cpu
from relaylang.backends.vm.elements import is_followed, is_small, shapes_in, source_of
from relaylang.backends.vm.loops import ways_of_loop
from relaylang.backends.vm.operands import Atom, Coming, Fields, Operands, Reg, Value, is_scalar
from relaylang.backends.vm.regions import SIZED, STATIC, Region, ways_of
from relaylang.backends.vm.scalars import row_of
from relaylang.ir import Call, Constant, Expr, Function, TensorType, Tuple, TupleType, Type, Var
from relaylang.ir.typed import typed
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait


def operator_value(operands: Operands, variable: Var, call: Call) -> Value:
    """The value of an operator's call, which a let binds to `variable`."""
    assert isinstance(call.op, Op)
    check_on_cpu(call)
    if Trait.PLACEMENT in call.op.traits:  # there is one device
        return operands.value(call.args[0])
    args = [operands.value(a) for a in call.args]
    if not _is_extent(operands, call, args):
        scalar = _scalar(operands, call, args)
        if scalar is not None:
            return scalar
    if not all(_is_known(operands.region, args[n]) for n in shapes_in(call)):
        operands.flush()  # its elements are read where they lie
        args = [operands.arrived(a) for a in args]
    return _member(operands, variable, call, call.op, args, ways_of(call))


def external_value(operands: Operands, variable: Var, call: Call, function: Function) -> Value:
    """The value of a call of another compiler's function, or of a loop that a region takes whole."""
    ways = frozenset({STATIC}) if "Compiler" in function.attrs else ways_of_loop(function)
    args = [operands.value(a) for a in call.args]
    if SIZED in ways and not all(_is_known(operands.region, v) for v, a in zip(args, call.args) if is_small(a.checked_type)):
        operands.flush()  # its limit may be read where it lies
        args = [operands.arrived(a) for a in args]
    return _member(operands, variable, call, function, args, ways)


def _member(operands: Operands, variable: Var, call: Call, callee: Op | Function, args: list[Value], ways: frozenset[str]) -> Value:
    """The value of a call that joins a region."""
    if operands.region is not None and not operands.region.takes(ways):
        operands.flush()
        args = [operands.arrived(a) for a in args]
    # What an operand needs may end the region that is open; it begins behind it.
    ready = [_prepared(operands, value, a) for value, a in zip(args, call.args)]
    if operands.region is None:
        operands.region = Region(ways)
    region = operands.region
    region.ways &= ways
    inside = [_inside(operands, region, value, a.checked_type) for value, a in zip(ready, call.args)]
    node = typed(Call(callee, inside, call.attrs, call.type_args, call.span), call.checked_type)
    if is_followed(node, region.followed):
        region.followed.add(id(node))
    region.add(variable, node)
    return Coming(region, variable, node)


def _is_extent(operands: Operands, call: Call, args: Sequence[Value]) -> bool:
    """Whether a call computes with elements that the open region knows. Then the region knows its result, too."""
    region = operands.region
    if region is None or SIZED not in region.ways or not any(isinstance(v, Coming) for v in args):
        return False
    return all(_is_known(region, v) for v in args) and is_followed(call, ())


def _is_known(region: Region | None, value: Value) -> bool:
    """Whether a region knows a value's elements, or reads them."""
    if isinstance(value, Fields):
        return all(_is_known(region, f) for f in value.fields)
    return not isinstance(value, Coming) or (value.region is region and id(source_of(value.node)) in value.region.followed)


def _scalar(operands: Operands, call: Call, args: Sequence[Value]) -> Value | None:
    """The result of the scalar instruction for a call; None where there is none."""
    if not is_scalar(call.checked_type):
        return None
    types = [a.checked_type for a in call.args]
    if not all(is_scalar(ty) for ty in types):
        return None
    assert isinstance(call.op, Op) and isinstance(call.checked_type, TensorType)
    row = row_of().get((call.op.name, tuple(ty.dtype for ty in types), call.checked_type.dtype))  # type: ignore[union-attr]
    if row is None:
        return None
    numbers = [operands.number(v, call) for v in args]
    output = operands.new(call.checked_type)
    operands.code.emit(row.name, ("s", output.number), *[("r", n) for n in numbers], node=call)
    return output


def _prepared(operands: Operands, value: Value, node: Expr) -> Value:
    """A value that a region may read: constants and its own results stay, others are registers, tuples have fields."""
    ty = node.checked_type
    value = operands.arrived(value)
    if isinstance(value, Reg) and isinstance(value.ty or ty, TupleType):
        return _fields(operands, value, value.ty or ty, node)
    if isinstance(value, Fields) and any(
        isinstance(f, Fields) or (isinstance(f, Reg) and isinstance(f.ty, TupleType)) for f in value.fields
    ):
        return Fields([_prepared(operands, f, node) for f in value.fields])
    return value


def _fields(operands: Operands, value: Reg, ty: Type | None, node: Expr) -> Fields:
    """The fields of a tuple in a register, each in a register of its own."""
    key = ("fields", value.number)
    if key not in operands.loaded:
        assert isinstance(ty, TupleType)
        fields: list[Value] = []
        for n, inner in enumerate(ty.fields):
            part = operands.new(inner)
            operands.code.emit("GetField", ("d", part.number), ("t", value.number), ("m", n), node=node)
            fields.append(_fields(operands, part, inner, node) if isinstance(inner, TupleType) else part)
        operands.loaded[key] = Fields(fields)
    return operands.loaded[key]  # type: ignore[no-any-return]


def _inside(operands: Operands, region: Region, value: Value, ty: Type | None) -> Expr:
    """A value as an expression of a region."""
    value = operands.arrived(value)
    if isinstance(value, Coming):
        assert value.region is region
        return value.node
    if isinstance(value, Fields):
        types = ty.fields if isinstance(ty, TupleType) else [None] * len(value.fields)
        return typed(Tuple([_inside(operands, region, f, t) for f, t in zip(value.fields, types)]), ty)
    if isinstance(value, Atom):
        if isinstance(value.node, Constant):
            return typed(value.node, TensorType(value.node.data.shape, value.node.dtype))
        return region.input(operands.number(value, value.node), ty)
    assert isinstance(value, Reg)
    return region.input(value.number, value.ty if isinstance(value.ty, TensorType) else ty)
