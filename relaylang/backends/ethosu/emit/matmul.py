"""The writer of products of two computed matrices."""

from __future__ import annotations

from relaylang.backends.ethosu.emit.writer import Composite, Value, Write, Writer
from relaylang.backends.ethosu.tosa import Tensor
from relaylang.partition.targets.ethos_u.matmul import MatMul, WideMatMul


def matmul(w: Writer, layer: MatMul, at: Composite) -> Value:
    values = [at.operand(node) for node in layer.sides]

    def matrices(value: Value, turned: bool) -> Tensor:
        rank = len(value.shape)
        x = w.in_order(value, (*range(rank - 2), rank - 1, rank - 2) if turned else None)
        return w.graph.reshape(x, (1,) * (3 - rank) + x.shape)

    left, right = (matrices(value, turned) for value, turned in zip(values, layer.turned))
    zero_points = [zero_point - value.offset for zero_point, value in zip(layer.zero_points, values)]
    out = w.finish(w.graph.matmul(left, right, *zero_points), layer.out)
    return Value(layer.out.dtype, {tuple(range(len(at.shape))): w.graph.reshape(out, at.shape)})


WRITERS: dict[type, Write] = {MatMul: matmul, WideMatMul: matmul}
