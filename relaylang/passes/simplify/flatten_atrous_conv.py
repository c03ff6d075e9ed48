"""FlattenAtrousConv: replace a convolution between space_to_batch_nd and batch_to_space_nd by one dilated convolution."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import Call, Expr, IRModule
from relaylang.ir.tensors import static_shape
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call, per_function, rewrite_typed, with_attrs
from relaylang.rules.atrous import JOIN, RULES, SPLIT


def flatten_atrous_conv(mod: IRModule) -> IRModule:
    """A typed module in which space_to_batch_nd, (qnn.)conv2d, batch_to_space_nd is one dilated convolution."""

    def put(old: Expr, new: Expr) -> Expr:
        if not is_call(new, JOIN) or not isinstance(new, Call):
            return new
        conv = new.args[0]
        if not is_call(conv, *RULES) or not isinstance(conv, Call):
            return new
        split = conv.args[0]
        if not is_call(split, SPLIT) or not isinstance(split, Call):
            return new
        block = tuple(new.attrs.block_shape)
        attrs = conv.attrs
        if len(block) != 2 or tuple(split.attrs.block_shape) != block or attrs.data_layout != "NHWC":
            return new
        if tuple(attrs.strides) != (1, 1) or tuple(attrs.dilation) != (1, 1) or any(attrs.padding):
            return new
        fill = RULES[conv.op.name](conv)  # type: ignore[attr-defined]
        shape, out = static_shape(split.args[0].checked_type), static_shape(old.checked_type)
        if fill is None or float(split.attrs.pad_value) != fill or shape is None or out is None:
            return new
        # Output row i reads rows i * 1 + k * block of the padded input, begun by the crop. So the padding in front is
        # the split's less the crop, and the padding behind gives the output its extent.
        pads = []
        for axis, b in enumerate(block):
            kernel = int(attrs.kernel_size[axis])
            front = int(split.attrs.paddings[axis][0]) - int(new.attrs.crops[axis][0])
            behind = out[axis + 1] - 1 + (kernel - 1) * b + 1 - front - shape[axis + 1]
            if front < 0 or behind < 0:
                return new
            pads.append((front, behind))
        padding = [pads[0][0], pads[1][0], pads[0][1], pads[1][1]]
        return with_attrs(conv, [split.args[0], *conv.args[1:]], padding=padding, dilation=list(block))

    return per_function(mod, lambda f: rewrite_typed(f, put))


@dataclass(frozen=True)
class FlattenAtrousConv(Pass):
    """Replace a convolution between space_to_batch_nd and batch_to_space_nd by one dilated convolution."""

    def run(self, mod: IRModule) -> IRModule:
        return flatten_atrous_conv(mod)
