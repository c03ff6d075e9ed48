"""CombineParallelDense: nn.dense of one input become one batch of products, or one wider product."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from relaylang.ir import (
    Call,
    Expr,
    IRModule,
    TensorType,
    TupleGetItem,
    TupleType,
)
from relaylang.ir.tensors import tensor_type
from relaylang.ops.build import op_call
from relaylang.passes.fusion.combine_parallel import (
    BROADCAST,
    UNARY,
    Step,
    are_alike,
    call_with,
    combine,
    expanded,
    is_known,
    op_name,
    shape_of,
    stacked,
    type_of,
)
from relaylang.passes.fusion.side_by_side import SideBySide
from relaylang.passes.manager import Pass


class _Batch:
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
        name, rank = op_name(first), len(shape_of(first))
        if name in UNARY or name == "expand_dims":
            return 0
        if name == "nn.bias_add" and first.attrs.axis not in (-1, rank - 1):
            return None
        if name not in BROADCAST and name != "nn.bias_add":
            return None
        others = [[c.args[i] for c in calls] for i in range(len(first.args)) if i != position]
        return 0 if rank == len(before.shape) and all([are_alike(o) for o in others]) else None

    def product(self, step: Step, data: Expr, weights: list[Expr]) -> Expr:
        first, number = step.calls[0], len(step.calls)
        ty = type_of(first)
        args = [stacked([data] * number), stacked(weights)]
        whole = TensorType((number, *ty.shape), ty.dtype)
        return op_call("nn.batch_matmul", args, whole, out_dtype=first.attrs.out_dtype, transpose_b=True)

    def follow(self, step: Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        first = step.calls[0]
        ty = type_of(first)
        made = TensorType((len(step.calls), *ty.shape), ty.dtype)
        args: list[Expr] = []
        for i, operands in enumerate(others):
            if i == step.position:
                args.append(whole)
                continue
            missing = len(ty.shape) - len(shape_of(operands[0]))
            args.append(stacked([expanded(o, 0, missing) if missing else o for o in operands]))
        if op_name(first) == "nn.bias_add":
            return op_call("add", args, made)
        if op_name(first) == "expand_dims" and first.attrs.axis >= 0:
            return call_with(first, args, made, axis=first.attrs.axis + 1)
        return call_with(first, args, made)

    def parts(self, step: Step, whole: Expr) -> list[Expr]:
        ty, number = type_of(step.calls[0]), len(step.calls)
        part_type = TensorType((1, *ty.shape), ty.dtype)
        parts = op_call("split", [whole], TupleType([part_type] * number), indices_or_sections=number, axis=0)
        found: list[Expr] = []
        for i in range(number):
            part = TupleGetItem(parts, i)
            part.checked_type = part_type
            found.append(op_call("squeeze", [part], ty, axis=[0]))
        return found


def _dense_key(call: Call) -> Hashable | None:
    weight, ty = tensor_type(call.args[1]), tensor_type(call)
    if weight is None or ty is None or len(weight.shape) != 2 or not is_known(weight.shape):
        return None
    return (call.attrs.out_dtype, weight.dtype, weight.shape[1])


_DENSE = SideBySide(
    "nn.dense",
    _dense_key,
    axis=lambda call: len(shape_of(call)) - 1,
    weight_axis=lambda _: 0,
    outputs="units",
    stretch=True,
    full=True,
)


_BATCH = _Batch()


def combine_parallel_dense(mod: IRModule, min_num_branches: int = 3, to_batch: bool = True) -> IRModule:
    """nn.dense of one input. `to_batch`: weights of one shape as a batch; else weights side by side, of any widths."""
    return combine(mod, _BATCH if to_batch else _DENSE, min_num_branches)


@dataclass(frozen=True)
class CombineParallelDense(Pass):
    """nn.dense calls of one input become one batch_matmul, or (`to_batch=False`) one wider nn.dense."""

    min_num_branches: int = 3
    to_batch: bool = True

    opt_level = 4

    def run(self, mod: IRModule) -> IRModule:
        return combine_parallel_dense(mod, self.min_num_branches, self.to_batch)
