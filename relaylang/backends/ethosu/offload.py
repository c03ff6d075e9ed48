"""A program partitioned for the Ethos-U, and a note for every call that stays on the host."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.backends.ethosu.layers.operands import op_name
from relaylang.backends.ethosu.layers.table import pattern_table
from relaylang.diagnostics import Diagnostic, error
from relaylang.ir import Call, Function, GlobalVar, IRModule, TensorType, post_order
from relaylang.ops.record import Op
from relaylang.partition.composites import composite_name, composite_nodes
from relaylang.partition.engine import Judge, Refuse, Trace, run
from relaylang.partition.scope import scope_nodes
from relaylang.partition.targets.ethos_u import RECIPE


@dataclass(frozen=True)
class Partitioned:
    """A module whose entry calls regions, and a note for every call of the entry that stays on the host."""

    module: IRModule
    notes: list[Diagnostic]
    offloaded: int
    kept: int


def offload(
    mod: IRModule, entry: str = "main", refuse: Refuse | None = None, prefix: str = "", judge: Judge | None = None
) -> Partitioned:
    """Partition a checked module, whose parameters are bound and whose constants are folded.

    `refuse`, `judge` and `prefix` are those of the engine's `run`. The new module is typed.
    """
    outcome = run(mod, pattern_table(), RECIPE, entry=entry, prefix=prefix, refuse=refuse, judge=judge)
    notes, offloaded, kept = _notes(outcome.traces[mod.get_global_var(entry)], mod)
    return Partitioned(outcome.module, notes, offloaded, kept)


def _notes(trace: Trace, mod: IRModule) -> tuple[list[Diagnostic], int, int]:
    notes: list[Diagnostic] = []
    offloaded = kept = 0
    for node in scope_nodes(trace.func.body):
        if not isinstance(node, Call):
            continue
        region = mod[node.op] if isinstance(node.op, GlobalVar) else None
        if isinstance(region, Function) and region.attrs.get("Compiler") == RECIPE.name:  # it came as one
            offloaded += sum(isinstance(n, Call) and isinstance(n.op, Op) for n in post_order(region.body))
            continue
        if id(node) in trace.inside:
            assert isinstance(node.op, Function)
            offloaded += _count(node.op)
            continue
        kept += _count(node.op) if isinstance(node.op, Function) and composite_name(node) else 1
        what, reason = _reason(node, trace.reasons)
        notes.append(error("R0620", f"{what} stays on the host: {reason}", node.span, severity="note"))
    return notes, offloaded, kept


def _count(func: Function) -> int:
    return sum(1 for node in composite_nodes(func) if isinstance(node, Call))


def _reason(node: Call, reasons: dict[int, str]) -> tuple[str, str]:
    what = "a call of a function"
    if isinstance(node.op, Op):
        what = node.op.name
    elif isinstance(node.op, Function) and composite_name(node):
        what = " + ".join(op_name(n) for n in composite_nodes(node.op) if isinstance(n, Call))
    found = reasons.get(id(node))
    if found is not None:
        return what, found
    if not isinstance(node.op, Op):
        return what, "only calls of operators are taken"
    floats = [
        ty.dtype
        for ty in (node.checked_type, *(a.checked_type for a in node.args[:1]))
        if isinstance(ty, TensorType) and ty.dtype.startswith(("float", "bfloat"))
    ]
    if floats:
        return what, f"it works on {floats[0]}, the accelerator on int8 and int16"
    return what, "the accelerator's pattern table has no row for it"


__all__ = ["Partitioned", "offload"]
