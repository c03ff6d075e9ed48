"""Products whose results lie side by side along one axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from relaylang.ir import Call, Expr
from relaylang.ir.tensors import tensor_type
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.rules.joining.common import (
    Step,
    are_alike,
    call_with,
    concatenated,
    expanded,
    shape_of,
    total_extent,
    type_of,
    widened,
)


class SideBySide:
    """Products whose results lie side by side along one axis.

    `outputs` names the attribute with their number, if any. A later step may have one operand for all outputs. With
    `stretch` it is repeated for each; else the step is not joined. With `full` a slice's attributes name every axis,
    else those up to the sliced axis.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[Call], Hashable | None],
        axis: Callable[[Call], int],
        weight_axis: Callable[[Call], int],
        outputs: str | None,
        stretch: bool,
        full: bool = False,
        written: int | None = None,
    ) -> None:
        self.name = name
        self.key = key
        self.axis = axis
        self.weight_axis = weight_axis
        self.outputs = outputs
        self.stretch = stretch
        self.full = full
        self.written = written

    def _others_fit(self, calls: list[Call], position: int, new: int) -> bool:
        """Whether the operands of broadcasting calls, but for the one at `position`, join along the axis `new` of the results."""
        rank = len(shape_of(calls[0]))
        for i in range(len(calls[0].args)):
            if i == position:
                continue
            operands = [c.args[i] for c in calls]
            if tensor_type(operands[0]) is None:
                return False
            own = len(shape_of(operands[0]))
            at = new - rank + (own or int(self.stretch))
            if not are_alike(operands, at):
                return False
            for call, operand in zip(calls, operands):
                extent = shape_of(operand)[at] if own else 1
                if extent != shape_of(call)[new] and not (self.stretch and extent == 1):
                    return False
        return True

    def fits(self, calls: list[Call], position: int, axis: int) -> int | None:
        first = calls[0]
        before = tensor_type(first.args[position])
        if before is None or any([tensor_type(c) is None for c in calls]):
            return None
        assert isinstance(first.op, Op)
        traits, rank = first.op.traits, len(shape_of(first))
        if Trait.UNARY in traits:
            return axis
        if first.op.name == "expand_dims":
            at = first.attrs.axis % (len(before.shape) + 1)
            return axis + first.attrs.num_newaxis if at <= axis else axis
        if Trait.VECTOR in traits:
            if position != 0 or first.attrs.axis not in (axis, axis - rank):
                return None
            widths = [shape_of(c)[axis] for c in calls]
            return axis if [tensor_type(c.args[1]) and shape_of(c.args[1]) for c in calls] == [(w,) for w in widths] else None
        if Trait.BROADCAST not in traits:
            return None
        new = axis + rank - len(before.shape)
        if any([shape_of(c)[new] != shape_of(c.args[position])[axis] for c in calls]):
            return None
        return new if self._others_fit(calls, position, new) else None

    def product(self, step: Step, data: Expr, weights: list[Expr]) -> Expr:
        first, total = step.calls[0], total_extent(step.calls, step.axis)
        weight = concatenated(weights, self.weight_axis(first))
        changed: dict[str, object] = {self.outputs: total} if self.outputs else {}
        return call_with(first, [data, weight], widened(type_of(first), step.axis, total), **changed)

    def follow(self, step: Step, whole: Expr, others: list[list[Expr]]) -> Expr:
        first, axis = step.calls[0], step.axis
        assert isinstance(first.op, Op)
        rank = len(shape_of(first))
        args: list[Expr] = []
        for i, operands in enumerate(others):
            if i == step.position:
                args.append(whole)
            elif Trait.VECTOR in first.op.traits:
                args.append(concatenated(operands, 0, self.written))
            else:
                at = axis - rank + (len(shape_of(operands[0])) or 1)
                wide = [self.stretched(o, at, shape_of(c)[axis]) for o, c in zip(operands, step.calls)]
                args.append(concatenated(wide, at, self.written))
        return call_with(first, args, widened(type_of(first), axis, total_extent(step.calls, axis)))

    def stretched(self, operand: Expr, axis: int, extent: int) -> Expr:
        """An operand with as many outputs as its branch."""
        scalar = not shape_of(operand)
        if scalar:
            operand = expanded(operand, -1, 1)
        if not scalar and shape_of(operand)[axis] == extent:
            return operand
        ty = widened(type_of(operand), axis, extent)
        return op_call("repeat", [operand], ty, repeats=extent, axis=axis)

    def parts(self, step: Step, whole: Expr) -> list[Expr]:
        axis = step.axis
        branches: list[Expr] = []
        begin = 0
        for call in step.calls:
            ty = type_of(call)
            extent, behind = ty.shape[axis], (len(ty.shape) - axis - 1 if self.full else 0)
            assert isinstance(extent, int)
            branches.append(
                op_call(
                    "strided_slice",
                    [whole],
                    ty,
                    begin=[0] * axis + [begin] + [0] * behind,
                    end=[-1] * axis + [extent] + [-1] * behind,
                    strides=[1] * (axis + 1 + behind),
                    slice_mode="size",
                )
            )
            begin += extent
        return branches
