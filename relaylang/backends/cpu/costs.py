"""What the instructions of a run cost: multiply-accumulates and bytes, for profiles."""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.program import Branch, Copy, Instruction, Outside, PackIn, Program, Run, Slot, Turns, View, walk
from relaylang.diagnostics.source import Span
from relaylang.ir import Call, Function, TensorType, post_order
from relaylang.kernels.dtypes import SIZES
from relaylang.ops.record import Op
from relaylang.rules.macs import RULES
from relaylang.runtime.manifest import Step


def profiled(program: Program) -> list[Instruction]:
    """The instructions of a run whose time a profile has, in order."""
    skipped = (item for item in walk(program.run) if isinstance(item, Copy) and item.source.slot is item.outputs[0])
    without = {id(item) for item in skipped}
    return [item for item in walk(program.run) if not isinstance(item, Branch) and id(item) not in without]


def step_of(item: Instruction) -> Step:
    """An instruction's name, place and cost."""
    read = _read(item)
    written = item.results if isinstance(item, (Run, Outside, Turns)) else _views(item.outputs)
    weights = sum(_size(v) for v in _once(read) if _is_weight(v.slot))
    data = sum(_size(v) for v in _once([*(v for v in read if not _is_weight(v.slot)), *written]))
    if isinstance(item, (Run, Outside, Turns)):
        names, ty, span, dtype, macs = _function(item.function)
        place, line = place_of(span)
        others = dict.fromkeys(place_of(call.span)[0] for call in calls_of(item.function) if call.span is not None)
        return Step(names, ty, place, line, dtype, macs, weights, data, tuple(p for p in others if p != place))
    out = item.outputs[0]
    name = "weights into the kernel's layout" if isinstance(item, PackIn) else "copy"
    return Step(name, f"{out.dtype}{list(out.shape)}", "", "", out.dtype, 0, weights, data)


def place_of(span: Span | None) -> tuple[str, str]:
    """A place for people, and the program's line there."""
    if span is None:
        return "", ""
    return f"{span} {span.label}".strip(), span.source.line(span.line).strip()[:160]


def _function(function: Function) -> tuple[str, str, Span | None, str, int]:
    """A kernel's operators, type, place, the dtype of its products, and their number.

    The place is that of the operator with the most products, or of the first operator that has one.
    """
    names, span, dtype, total, most = [], None, "", 0, -1
    for node in post_order(function.body):
        if not isinstance(node, Call) or not isinstance(node.op, Op):
            continue
        rule = RULES.get(node.op.name)
        macs = rule(node) if rule is not None else 0
        # What inference and layouts add has no place, and says little.
        if node.span is not None or macs:
            names.append(node.op.name)
        total += macs
        if macs > most and (node.span is not None or macs):
            most, span = macs, node.span or span
            ty = node.args[0].checked_type if macs else node.checked_type
            dtype = ty.dtype if isinstance(ty, TensorType) else ""
    if not names:
        names = [n.op.name for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Op)]
    return " > ".join(names), repr(function.body.checked_type), span or function.body.span, dtype, total


def _views(slots: Sequence[Slot]) -> list[View]:
    return [View(s, s.shape) for s in slots]


def _read(item: Instruction) -> list[View]:
    """The tensors that an instruction reads: of one that is packed before, only the packed one."""
    if isinstance(item, (PackIn, Outside, Turns)):
        return item.inputs
    if not isinstance(item, Run):
        return _views(item.reads())
    return [*item.read, *_views(item.packs)]


def _once(views: Sequence[View]) -> list[View]:
    return list({(id(v.slot), v.start, v.size): v for v in views}.values())


def _is_weight(slot: Slot) -> bool:
    return slot.kind == "param" or slot.fixed


def _size(view: View) -> int:
    return SIZES[view.slot.dtype] * view.size
