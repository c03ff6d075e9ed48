"""A region as a TOSA graph. Each composite is written by the function of its layer.

TOSA wants NHWC, and int8 or int16. A tensor is stored with its channels last where a layer asked for that. It is transposed back
where the region ends. A uint8 tensor is stored less 128, in int8. A rescale converts it at the region's edges, the one
place where TOSA knows unsigned numbers. The graph's inputs and outputs have the shapes, layouts and bytes that the
Relay function has.
"""

from __future__ import annotations

from relaylang.backends.ethosu.layers.table import read_layer
from relaylang.backends.ethosu.layers.writer import Composite, Value, Writer
from relaylang.backends.ethosu.tosa import Graph
from relaylang.ir import Call, Function, Tuple, TupleGetItem, post_order


def emit_region(func: Function, name: str, is_u85: bool = False) -> Graph:
    """The TOSA graph of a region function whose types have been found; its body consists of composite calls.

    `is_u85` is `Writer`'s.
    """
    writer = Writer(Graph(name, layer="input"), is_u85)
    for param in func.params:
        writer.values[id(param)] = writer.input(param)
    for node in post_order(func.body):
        if isinstance(node, Call) and isinstance(node.op, Function):
            writer.values[id(node)] = _composite(writer, node)
        elif isinstance(node, TupleGetItem):
            fields = writer.values[id(node.tuple_value)]
            assert isinstance(fields, list)
            writer.values[id(node)] = fields[node.index]
    outputs = func.body.fields if isinstance(func.body, Tuple) else (func.body,)
    writer.graph.layer = "output"
    for out in outputs:
        writer.output(writer.value(out))
    writer.hold_shared()
    return writer.graph


def _composite(writer: Writer, call: Call) -> Value | list[Value]:
    func = call.op
    assert isinstance(func, Function)
    place = f" line {call.span.line}" if call.span is not None and call.span.source.text else ""
    layer, calls, value = read_layer(call)
    writer.graph.layer = layer.name + place
    inputs = {id(param): writer.value(arg) for param, arg in zip(func.params, call.args)}
    return layer.write(writer, value, Composite(writer, calls, inputs, call.checked_type or func.ret_type))


__all__ = ["emit_region"]
