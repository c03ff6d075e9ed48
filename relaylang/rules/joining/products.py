"""How products of each operator are joined."""

from __future__ import annotations

from collections.abc import Hashable

from relaylang.ir import Call, Expr, TensorType, TupleType
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import typed_field
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.rules.joining.common import (
    Step,
    are_alike,
    attr_values,
    call_with,
    expanded,
    is_known,
    shape_of,
    stacked,
    type_of,
)
from relaylang.rules.joining.side_by_side import SideBySide


class DenseBatch:
    """Dense products of one shape as a batch of matrix products."""

    name = "nn.dense"

    def key(self, call: Call) -> Hashable | None:
        types = [tensor_type(a) for a in call.args]
        if any([t is None or len(t.shape) != 2 for t in types]) or not is_known(shape_of(call.args[1])):
            return None
        weight = type_of(call.args[1])
        return (call.attrs.out_dtype, weight.dtype, weight.shape)

    def axis(self, call: Call) -> int:
        return 0

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        first = calls[0]
        before = tensor_type(first.args[position])
        if before is None or tensor_type(first) is None:
            return None
        assert isinstance(first.op, Op)
        name, traits, rank = first.op.name, first.op.traits, len(shape_of(first))
        if Trait.UNARY in traits or name == "expand_dims":
            return 0
        if name == "nn.bias_add" and first.attrs.axis not in (-1, rank - 1):
            return None
        if Trait.BROADCAST not in traits and name != "nn.bias_add":
            return None
        others = [[c.args[i] for c in calls] for i in range(len(first.args)) if i != position]
        return 0 if rank == len(before.shape) and all([are_alike(o) for o in others]) else None

    def product(self, step: Step, data: Expr, weights: list[Expr]) -> Expr:
        first, number = step.calls[0], len(step.calls)
        ty = type_of(first)
        args = [stacked([data] * number), stacked(weights)]
        batch_type = TensorType((number, *ty.shape), ty.dtype)
        return op_call("nn.batch_matmul", args, batch_type, out_dtype=first.attrs.out_dtype, transpose_b=True)

    def follow(self, step: Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        first = step.calls[0]
        ty = type_of(first)
        batch_type = TensorType((len(step.calls), *ty.shape), ty.dtype)
        args: list[Expr] = []
        for i, operands in enumerate(others):
            if i == step.position:
                args.append(whole)
                continue
            missing = len(ty.shape) - len(shape_of(operands[0]))
            args.append(stacked([expanded(o, 0, missing) if missing else o for o in operands]))
        assert isinstance(first.op, Op)
        if first.op.name == "nn.bias_add":
            return op_call("add", args, batch_type)
        if first.op.name == "expand_dims" and first.attrs.axis >= 0:
            return call_with(first, args, batch_type, axis=first.attrs.axis + 1)
        return call_with(first, args, batch_type)

    def parts(self, step: Step, whole: Expr) -> list[Expr]:
        ty, number = type_of(step.calls[0]), len(step.calls)
        part_type = TensorType((1, *ty.shape), ty.dtype)
        parts = op_call("split", [whole], TupleType([part_type] * number), indices_or_sections=number, axis=0)
        branches: list[Expr] = []
        for i in range(number):
            branches.append(op_call("squeeze", [typed_field(parts, i)], ty, axis=[0]))
        return branches


def _dense_key(call: Call) -> Hashable | None:
    weight, ty = tensor_type(call.args[1]), tensor_type(call)
    if weight is None or ty is None or len(weight.shape) != 2 or not is_known(weight.shape):
        return None
    return (call.attrs.out_dtype, weight.dtype, weight.shape[1])


DENSE = SideBySide(
    "nn.dense",
    _dense_key,
    axis=lambda call: len(shape_of(call)) - 1,
    weight_axis=lambda _: 0,
    outputs="units",
    stretch=True,
    full=True,
)


def _conv2d_key(call: Call) -> Hashable | None:
    attrs, weight, ty = call.attrs, tensor_type(call.args[1]), tensor_type(call)
    data, kernel = attrs.data_layout, attrs.kernel_layout
    if weight is None or ty is None or not is_known(weight.shape) or attrs.groups != 1:
        return None
    if "O" not in kernel or "C" not in data or any(c.islower() for c in kernel + data):
        return None
    if attrs.out_layout not in ("", data):
        return None
    axis = kernel.index("O")
    return (attr_values(call, "channels", "kernel_size"), weight.shape[:axis], weight.shape[axis + 1 :], weight.dtype)


CONV2D = SideBySide(
    "nn.conv2d",
    _conv2d_key,
    axis=lambda call: str(call.attrs.data_layout).index("C"),
    weight_axis=lambda call: str(call.attrs.kernel_layout).index("O"),
    outputs="channels",
    stretch=False,
)


def _batch_matmul_key(call: Call) -> Hashable | None:
    right, ty, attrs = tensor_type(call.args[1]), tensor_type(call), call.attrs
    if right is None or ty is None or len(right.shape) != 3 or not is_known(right.shape):
        return None
    return (attrs.out_dtype, attrs.transpose_a, attrs.transpose_b, right.dtype, right.shape[0])


BATCH_MATMUL = SideBySide(
    "nn.batch_matmul",
    _batch_matmul_key,
    axis=lambda _: 2,
    weight_axis=lambda call: 1 if call.attrs.transpose_b else 2,
    outputs=None,
    stretch=True,
    written=-1,
)

DENSE_BATCH = DenseBatch()
