"""FoldExplicitPadding: nn.pad in front of a convolution or pool becomes its padding. FlattenAtrousConv: a convolution
between space_to_batch_nd and batch_to_space_nd becomes the dilated convolution that it is."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, IRModule
from relaylang.ir.tensors import static_shape
from relaylang.ops import make_attrs
from relaylang.ops.record import Op
from relaylang.passes.rewriting import per_function, rewrite_typed

_CONVS = frozenset({"nn.conv1d", "nn.conv2d", "nn.conv3d", "qnn.conv2d", "nn.contrib_conv2d_NCHWc"})
_MAX_POOLS = frozenset({"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"})
_AVG_POOLS = frozenset({"nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"})


def _is(expr: Expr, *names: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def with_attrs(call: Call, args: list[Expr], **changed: Any) -> Call:
    """A call with some attributes (and its operands) changed."""
    cls = type(call.attrs)
    values = {name: getattr(call.attrs, name) for name in cls.schema}
    return Call(call.op, args, make_attrs(cls, {**values, **changed}), call.type_args, call.span)


def _padding(call: Call, rank: int) -> list[int]:
    """Padding in front of each spatial axis, then behind each, from any of the forms that it may be written in."""
    given = list(call.attrs.padding)
    if len(given) == 1:
        return given * (2 * rank)
    if len(given) == rank:
        return given * 2
    return given


def _scalar(expr: Expr) -> float | None:
    return float(expr.data.reshape(-1)[0]) if isinstance(expr, Constant) and expr.data.size == 1 else None


def fold_explicit_padding(mod: IRModule) -> IRModule:
    """A typed module in which nn.pad is part of the convolution or pool behind it, where that computes the same."""

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not new.args or not _is(new.args[0], "nn.pad"):
            return new
        name, pad = new.op.name, new.args[0]
        assert isinstance(pad, Call)
        if name not in _CONVS | _MAX_POOLS | _AVG_POOLS or pad.attrs.pad_mode != "constant":
            return new
        layout = new.attrs.data_layout if name in _CONVS else new.attrs.layout
        parts = re.findall(r"\d*[A-Za-z]", layout)
        axes = [i for i, c in enumerate(parts) if c in ("D", "H", "W")]
        widths = [(int(b), int(a)) for b, a in pad.attrs.pad_width]
        if len(parts) != len(widths) or any(w != (0, 0) for i, w in enumerate(widths) if i not in axes):
            return new
        if any(w < 0 for pair in widths for w in pair) or not _fills(name, new, pad):
            return new
        own = _padding(new, len(axes))
        total = [own[i] + widths[a][0] for i, a in enumerate(axes)]
        total += [own[len(axes) + i] + widths[a][1] for i, a in enumerate(axes)]
        # What was padded before is counted in averages, whatever the pool says of its own padding.
        counted = {"count_include_pad": True} if name in _AVG_POOLS else {}
        return with_attrs(new, [pad.args[0], *new.args[1:]], padding=total, **counted)

    return per_function(mod, lambda f: rewrite_typed(f, put))


def _fills(name: str, call: Call, pad: Call) -> bool:
    """Whether what the pad fills in is what the operator's own padding stands for."""
    value = _scalar(pad.args[1])
    if value is None:
        return False
    if name == "qnn.conv2d":
        zero_point = _scalar(call.args[2])
        return zero_point is not None and value == zero_point
    if name in _CONVS:
        return value == 0
    nothing = all(p == 0 for p in call.attrs.padding)
    if name in _AVG_POOLS:
        return value == 0 and not call.attrs.ceil_mode and (nothing or call.attrs.count_include_pad)
    ty = pad.args[0].checked_type
    dtype = getattr(ty, "dtype", "")
    if dtype.startswith(("int", "uint")):
        return value == np.iinfo(dtype).min
    return value == -np.inf or value <= float(np.finfo(dtype).min if dtype.startswith("float") else -np.inf)


def flatten_atrous_conv(mod: IRModule) -> IRModule:
    """A typed module in which space_to_batch_nd, (qnn.)conv2d, batch_to_space_nd is one dilated convolution."""

    def put(old: Expr, new: Expr) -> Expr:
        if not _is(new, "nn.batch_to_space_nd") or not isinstance(new, Call):
            return new
        conv = new.args[0]
        if not _is(conv, "nn.conv2d", "qnn.conv2d") or not isinstance(conv, Call):
            return new
        split = conv.args[0]
        if not _is(split, "nn.space_to_batch_nd") or not isinstance(split, Call):
            return new
        block = tuple(new.attrs.block_shape)
        attrs = conv.attrs
        if len(block) != 2 or tuple(split.attrs.block_shape) != block or attrs.data_layout != "NHWC":
            return new
        if tuple(attrs.strides) != (1, 1) or tuple(attrs.dilation) != (1, 1) or any(attrs.padding):
            return new
        fill = _scalar(conv.args[2]) if _is(conv, "qnn.conv2d") else 0.0
        shape, out = static_shape(split.args[0].checked_type), static_shape(old.checked_type)
        if fill is None or float(split.attrs.pad_value) != fill or shape is None or out is None:
            return new
        # Output row i reads rows i * 1 + k * block of the padded input, begun by the crop; so the padding in front is
        # the split's less the crop, and that behind is what gives the output its extent.
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
