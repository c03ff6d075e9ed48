"""Calls whose arguments may contradict the callee's type: a kernel without results looks at the extents before the call.

Where they contradict, the interpreter evaluates the call of a function of the same type, and gives the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from relaylang.backends.cpu.program import Program
from relaylang.backends.vm.kernels import RegionCode, Shapes
from relaylang.backends.vm.operands import Fields, Operands, Value
from relaylang.backends.vm.regions import specs_of, tensors_of
from relaylang.interpreter.signatures import may_contradict
from relaylang.ir import ANY, Call, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, TupleType, Type, TypeVar, Var
from relaylang.ir.extents import names_in, with_names
from relaylang.ir.typed import typed_tuple, typed_var
from relaylang.ir.types import ComputedDim, Dim, dim_text
from relaylang.runtime.vm.program import Packed
from relaylang.typing import check

#: An extent that C computes as its text says.
_PLAIN = re.compile(r"(?:d\[\d+\]|[-+*() \d])+")


def check_contract(operands: Operands, call: Call, function: Function) -> None:
    """Emit what looks at the extents of a call's arguments, where the checker left some open."""
    pairs = [(a, p) for a, p in zip(call.args, function.params) if tensors_of(p.checked_type) is not None]
    assert isinstance(call.op, GlobalVar)
    if call.op.name_hint == "main" or not any(may_contradict(a.checked_type, p.checked_type) for a, p in pairs):
        return
    leaves: list[Var] = []
    args = [_opened(a.checked_type, leaves) for a, _ in pairs]
    numbers = [n for a, p in pairs for n in _numbers(operands, operands.value(a), p.checked_type, call)]
    wanted = [p for _, p in pairs]
    callee = GlobalVar(call.op.name_hint)
    declared = Function(wanted, Tuple([]), None, function.type_params)
    main = Function(leaves, Call(callee, args, None, (), call.span))
    module = IRModule({callee: declared, GlobalVar("main"): main})
    check(module)
    extents = [d for p in wanted for ty in tensors_of(p.checked_type) or () for d in ty.shape]
    code = RegionCode(Program(), Shapes((), tuple(_checks(extents)), (), "0"))
    packed = Packed(len(leaves), (), 0, module=module, takes=specs_of(leaves))
    number = operands.pool.kernel(packed, code)
    operands.code.emit("InvokePacked", ("p", number), ("#", len(leaves)), ("#", 0), *[("r", n) for n in numbers], node=call)


def _opened(ty: Type | None, leaves: list[Var]) -> Expr:
    """An argument of a type whose extents are numbers or open. Its tensors are new variables."""
    if isinstance(ty, TupleType):
        return typed_tuple([_opened(field, leaves) for field in ty.fields])
    assert isinstance(ty, TensorType)
    shape = [d if isinstance(d, int) else ANY for d in ty.shape]
    leaves.append(typed_var(f"x{len(leaves)}", TensorType(shape, ty.dtype)))
    return leaves[-1]


def _numbers(operands: Operands, value: Value, ty: Type | None, call: Call) -> Iterator[int]:
    """The registers of the tensors of a value."""
    if not isinstance(ty, TupleType):
        yield operands.number(value, call)
        return
    for index, field in enumerate(ty.fields):
        if isinstance(value, Fields):
            part = operands.arrived(value.fields[index])
        else:
            part = operands.new(field)
            number = operands.number(value, call)
            operands.code.emit("GetField", ("d", part.number), ("t", number), ("m", index), node=call)  # type: ignore[attr-defined]
        yield from _numbers(operands, part, field, call)


def _checks(extents: list[Dim]) -> Iterator[str]:
    """What must hold of the extents of a call's tensors, as C; they are `d[0]`, `d[1]`, ... there."""
    places: dict[int, int] = {}
    for place, extent in enumerate(extents):
        if isinstance(extent, TypeVar) and not isinstance(extent, ComputedDim):
            places.setdefault(id(extent), place)
    for place, extent in enumerate(extents):
        if extent is ANY:
            continue
        if any(id(name) not in places for name in names_in(extent)):
            yield "0"  # it takes an equation to find the extent
            return
        named = with_names(extent, lambda name: TypeVar(f"d[{places[id(name)]}]", name.kind))
        text = str(int(named)) if isinstance(named, int) else dim_text(named)
        yield f"d[{place}] == {text}" if _PLAIN.fullmatch(text) else "0"


__all__ = ["check_contract"]
