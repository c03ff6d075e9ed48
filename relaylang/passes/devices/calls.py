"""Calls that name devices: `on_device`, `device_copy`, and operators with operands on several devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relaylang.ir import Call, Constructor, Expr, Function, GlobalVar, Tuple, Var, children
from relaylang.ir.typed import retype
from relaylang.ops import get, make_attrs
from relaylang.ops.record import Op
from relaylang.passes.devices.virtual_device import VirtualDevice
from relaylang.passes.rewriting import is_primitive
from relaylang.rules.placement import DEVICE_COPY, ON_DEVICE, RULES


@dataclass(frozen=True)
class OnDevice:
    """An `on_device` call: which of what it takes and what it gives lies on the device."""

    body: Expr
    device: VirtualDevice
    constrains_body: bool
    constrains_result: bool

    @property
    def is_normal(self) -> bool:
        """Whether only what it takes is placed, as users write it."""
        return self.constrains_body and not self.constrains_result


def on_device_of(node: Expr) -> OnDevice | None:
    """What an `on_device` call says. Raises `RelayError` (R0529)."""
    if not (type(node) is Call and type(node.op) is Op and node.op.name == ON_DEVICE and node.args):
        return None
    attrs: Any = node.attrs
    return OnDevice(node.args[0], VirtualDevice.of(attrs.virtual_device), bool(attrs.constrain_body), bool(attrs.constrain_result))


def copy_of(node: Expr) -> tuple[Expr, VirtualDevice, VirtualDevice] | None:
    """What a `device_copy` call copies, from where, and where to. Raises `RelayError` (R0529)."""
    if not (type(node) is Call and type(node.op) is Op and node.op.name == DEVICE_COPY and node.args):
        return None
    attrs: Any = node.attrs
    return node.args[0], VirtualDevice.of(attrs.src_virtual_device), VirtualDevice.of(attrs.dst_virtual_device)


def placed(body: Expr, device: VirtualDevice, fixed: bool = True) -> Expr:
    """The value, said to lie on a device; with `fixed` whoever uses it finds it there."""
    inner = on_device_of(body)
    annotation = _call(
        ON_DEVICE,
        inner.body if inner is not None and fixed else body,
        virtual_device=device,
        constrain_result=fixed,
        constrain_body=True,
    )
    return retype(annotation, body)


def fixed(body: Expr, device: VirtualDevice) -> Expr:
    """The same where the value does not say it itself, as variables and functions do."""
    return body if isinstance(body, (Var, GlobalVar, Op, Constructor, Function)) else placed(body, device)


def copied(body: Expr, source: VirtualDevice, target: VirtualDevice) -> Expr:
    """The value on another device."""
    return retype(_call(DEVICE_COPY, body, src_virtual_device=source, dst_virtual_device=target), body)


def _call(name: str, body: Expr, **values: Any) -> Call:
    op = get(name)
    assert op.attrs is not None
    return Call(op, [body], make_attrs(op.attrs, values), (), body.span)


def stripped(node: Expr) -> Expr:
    """The value below `on_device` calls."""
    while (said := on_device_of(node)) is not None:
        node = said.body
    return node


def callee_and_operands(call: Call) -> tuple[Expr, tuple[Expr, ...]]:
    """The function of a call and its operands; `call_lowered` calls its first operand with the fields of its second."""
    rule = RULES.get(call.op.name) if type(call.op) is Op else None
    if rule is not None and rule.calls_operand and len(call.args) == 2 and isinstance(call.args[1], Tuple):
        return call.args[0], call.args[1].fields
    return call.op, call.args


def inside(node: Expr) -> tuple[Expr, ...]:
    """A node's children, but not those of kernels."""
    return () if is_primitive(node) else children(node)


def downwards(root: Expr) -> Iterator[Expr]:
    """Every node once, before its children, which come in order; a call's operator before its operands."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        inner = inside(node)
        stack += (*inner[:-1][::-1], inner[-1]) if isinstance(node, Call) else inner[::-1]


def upwards(root: Expr, from_right: bool = False) -> Iterator[Expr]:
    """Every node once, behind its children."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            inner = inside(node)
            stack += [(c, False) for c in (inner if from_right else inner[::-1])]


__all__ = [
    "OnDevice",
    "callee_and_operands",
    "copied",
    "copy_of",
    "downwards",
    "fixed",
    "inside",
    "on_device_of",
    "placed",
    "stripped",
    "upwards",
]
