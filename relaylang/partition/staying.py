"""What stays on the host when a program is partitioned for an accelerator, and why."""

from __future__ import annotations

from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import Call, Function, GlobalVar, IRModule, TensorType, post_order
from relaylang.ops.record import Op
from relaylang.partition.checks import op_name
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.engine import Trace
from relaylang.partition.scope import scope_nodes


def host_notes(trace: Trace, mod: IRModule, compiler: str, types: str) -> tuple[list[Diagnostic], int, int]:
    """A note for each call of a function that stays on the host; how many calls go to the accelerator, and how many stay.

    `types` are the element types that the accelerator takes.
    """
    notes: list[Diagnostic] = []
    offloaded = kept = 0
    for node in scope_nodes(trace.func.body):
        if not isinstance(node, Call):
            continue
        region = mod[node.op] if isinstance(node.op, GlobalVar) else None
        if isinstance(region, Function) and region.attrs.get("Compiler") == compiler:  # it came as one
            offloaded += sum(isinstance(n, Call) and isinstance(n.op, Op) for n in post_order(region.body))
            continue
        if id(node) in trace.inside:
            assert isinstance(node.op, Function)
            offloaded += _count(node.op)
            continue
        kept += _count(node.op) if isinstance(node.op, Function) and composite_name(node) else 1
        what, reason = _reason(node, trace.reasons, types)
        notes.append(error("R0620", f"{what} stays on the host: {reason}", node.span, severity="note"))
    return notes, offloaded, kept


def _count(func: Function) -> int:
    return sum(1 for node in composite_nodes(func) if isinstance(node, Call))


def _reason(node: Call, reasons: dict[int, str], types: str) -> tuple[str, str]:
    what = "a call of a function"
    if isinstance(node.op, Op):
        what = node.op.name
    elif isinstance(node.op, Function) and composite_name(node):
        what = " + ".join(op_name(n) for n in composite_nodes(node.op) if isinstance(n, Call))
    if id(node) in reasons:
        return what, reasons[id(node)]
    if not isinstance(node.op, Op):
        return what, "only calls of operators are taken"
    floats = [
        ty.dtype
        for ty in (node.checked_type, *(a.checked_type for a in node.args[:1]))
        if isinstance(ty, TensorType) and ty.dtype.startswith(("float", "bfloat"))
    ]
    if floats:
        return what, f"it works on {floats[0]}, the accelerator on {types}"
    return what, "the accelerator's pattern table has no row for it"


__all__ = ["host_notes"]
