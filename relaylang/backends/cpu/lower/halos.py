"""Borders of convolutions' data: a padding of its own in front of each convolution that wants one.

The kernel that makes the data writes them inside the border (`views`). So the convolution reads them in place and copies
nothing. Several convolutions of the same data share the widest border.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.backends.cpu.lower import HALOS
from relaylang.ir import Call, Expr, Function, TensorType, TupleGetItem, post_order, rewrite
from relaylang.ir.typed import retype
from relaylang.kernels.sizes import usual
from relaylang.ops.build import op_call, scalar
from relaylang.ops.record import Op, OpPattern
from relaylang.passes.rewriting import with_attrs
from relaylang.rules.decompositions.common import dtype_of, shape_of

#: From this extent on, lines of results lose little when they do not follow each other in memory.
_LINE = 24
#: The most operators to look through for the convolution before.
_NEAR = 12


def with_halos(function: Function) -> Function:
    """Let paddings stand in front of convolutions whose data other kernels make."""
    widths: dict[int, list[tuple[int, int]]] = {}
    wanted: dict[int, Sequence[tuple[int, int]]] = {}
    for node in post_order(function.body):
        halo = HALOS.get(node.op.name) if isinstance(node, Call) and isinstance(node.op, Op) else None
        data_widths = halo(node) if halo is not None else None  # type: ignore[arg-type]
        if data_widths is None:
            continue
        data = node.args[0]  # type: ignore[attr-defined]
        if not isinstance(data, (Call, TupleGetItem)) or _is_joined(data):
            continue
        wanted[id(node)] = data_widths
        known = widths.get(id(data), data_widths)
        widths[id(data)] = [(max(a, c), max(b, d)) for (a, b), (c, d) in zip(known, data_widths)]
    if not wanted:
        return function
    wide: dict[int, Call] = {}

    def change(old: Expr, new: Expr) -> Expr:
        if id(old) not in wanted:
            return retype(new, old)
        assert isinstance(old, Call) and isinstance(new, Call)
        data, own = old.args[0], wanted[id(old)]
        if id(data) not in wide:
            wide[id(data)] = _padded(new.args[0], data, widths[id(data)])
        extent = widths[id(data)]
        held: Expr = wide[id(data)]
        if list(own) != extent:
            begin = [c - a for (a, _), (c, _) in zip(own, extent)]
            extents = [n + a + b for n, (a, b) in zip(_shape(data), own)]
            end = [first + extent for first, extent in zip(begin, extents)]
            held = op_call("strided_slice", [held], TensorType(extents, dtype_of(data)), begin=begin, end=end, strides=[1])
        return retype(with_attrs(new, [held, *new.args[1:]], padding=[0] * len(new.attrs.padding)), old)

    body = rewrite(function.body, change)
    return retype(Function(function.params, body, function.ret_type, (), function.attrs, function.span), function)


def _shape(data: Expr) -> tuple[int, ...]:
    shape = shape_of(data)
    assert shape is not None
    return shape


def _padded(new: Expr, old: Expr, widths: Sequence[tuple[int, int]]) -> Call:
    dtype = dtype_of(old)
    extents = [n + a + b for n, (a, b) in zip(_shape(old), widths)]
    return op_call(
        "nn.pad", [new, scalar(0, dtype)], TensorType(extents, dtype), pad_width=[list(w) for w in widths], pad_mode="constant"
    )


def _is_joined(data: Expr) -> bool:
    """Whether the data come from a convolution that takes short lines as one: a border would part them."""
    todo = [data]
    for node in todo:
        if not isinstance(node, Call) or not isinstance(node.op, Op):
            continue
        if node.op.name in HALOS:
            shape = shape_of(node)
            return shape is None or (min(map(usual, shape[1:-1])) < _LINE and HALOS[node.op.name](node) is None)
        if node.op.pattern in (OpPattern.ELEMWISE, OpPattern.BROADCAST) and len(todo) < _NEAR:
            todo += node.args
    return False
