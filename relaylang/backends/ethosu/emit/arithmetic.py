"""Writers of element-wise layers."""
from __future__ import annotations

from relaylang.backends.ethosu.emit.writer import Composite, Value, Writer
from relaylang.partition.fixed_point import IDENTITY, Rescale
from relaylang.partition.targets.ethos_u.arithmetic import Add, Elementwise


def add(w: Writer, layer: Add, at: Composite) -> Value:
    left, right = (at.operand(node) for node in at.calls[0].args[:2])
    perm, x = w.any_order(left)
    y = w.in_order(right, perm)
    sides = []
    for tensor, value, operand in ((x, left, layer.operands[0]), (y, right, layer.operands[1])):
        sides.append(w.rescale(tensor, operand.rescale, "int32", operand.input_zp - value.offset))
    total = w.graph.binary("ADD", sides[0], sides[1])
    back = Rescale((IDENTITY[0],), (IDENTITY[1],), layer.output_zp)
    out = w.clamp(w.rescale(total, back, layer.out.dtype), layer.out)
    return Value(layer.out.dtype, {perm: out})


def elementwise(w: Writer, layer: Elementwise, at: Composite) -> Value:
    rescale = layer.out.rescale
    perm, x = w.any_order(at.source, rescale.axis if rescale is not None else None)
    zero_point = layer.input_zp - at.source.offset if rescale is not None else 0
    return Value(layer.out.dtype, {perm: w.finish(x, layer.out, zero_point)})


WRITERS = {Add: add, Elementwise: elementwise}
