"""Writers of comparisons, logic and choices, which the U85 has."""

from __future__ import annotations

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.partition.targets.ethos_u.logic import Choice, Comparison, Plain, TruthCast


def comparison(w: Writer, layer: Comparison, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args)
    sides = [w.as_int32(x) for x, _ in found]
    out = w.graph.binary(layer.op, *(reversed(sides) if layer.swapped else sides), dtype="bool")
    return at.broadcast("bool", perm, w.graph.unary("LOGICAL_NOT", out) if layer.negated else out)


def plain(w: Writer, layer: Plain, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args)
    sides = [x for x, _ in found]
    out = w.graph.binary(layer.op, *sides) if len(sides) == 2 else w.graph.unary(layer.op, *sides)
    return at.broadcast(at.dtype, perm, out)


def choice(w: Writer, layer: Choice, at: Composite) -> Value:
    perm, found = w.operands(at, at.calls[0].args)
    return at.broadcast(at.dtype, perm, w.graph.select(*[x for x, _ in found]))


def cast(w: Writer, layer: TruthCast, at: Composite) -> Value:
    perm, x = w.any_order(at.source)
    return Value(at.dtype, {perm: w.graph.cast(x, at.dtype)})


WRITERS: dict[type, Write] = {Comparison: comparison, Plain: plain, Choice: choice, TruthCast: cast}
