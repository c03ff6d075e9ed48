"""Gradients of neural networks' operators: softmax, products of matrices, convolutions, pools and losses."""

from __future__ import annotations

import math
import re

from relaylang.ir import Call, Expr, TensorType
from relaylang.ir.tensors import static_shape
from relaylang.ops import get, make_attrs
from relaylang.ops.build import op_call
from relaylang.rules.gradient.common import (
    Gradient,
    Grads,
    div,
    extents,
    in_layout,
    mul,
    number,
    of,
    of_dtype,
    rank_of,
    sub,
)
from relaylang.rules.padding import both_sides


def _softmax(call: Call, grad: Expr) -> Grads:
    inner = mul(grad, call)
    total = of("sum", inner, axis=[call.attrs.axis], keepdims=True)
    return [mul(sub(grad, total), call)]


def _bias_add(call: Call, grad: Expr) -> Grads:
    rank = rank_of(call)
    axis = call.attrs.axis % rank
    return [grad, of("sum", grad, axis=[i for i in range(rank) if i != axis])]


def _flat(x: Expr) -> Expr:
    shape = static_shape(x.checked_type)
    return x if shape is not None and len(shape) == 2 else of("reshape", x, newshape=[-1, shape[-1] if shape else 1])


def _turned(x: Expr) -> Expr:
    return of("transpose", x, axes=[1, 0])


def _dense(call: Call, grad: Expr) -> Grads:
    data, weight = call.args
    grad = of_dtype(grad, call, data)
    flat_shape = extents(call, "nn.dense")
    flat_grad = grad if len(flat_shape) == 2 else of("reshape", grad, newshape=[-1, flat_shape[-1]])
    d_data = of("nn.dense", flat_grad, _turned(weight))
    if len(flat_shape) != 2:
        d_data = of("reshape_like", d_data, data)
    return [d_data, of("nn.dense", _turned(flat_grad), _turned(_flat(data)))]


def _product(name: str, call: Call, grad: Expr) -> Grads:
    """The gradients of a product of matrices whose sides may be transposed."""
    x, y = call.args
    grad = of_dtype(grad, call, x)
    ta, tb = call.attrs.transpose_a, call.attrs.transpose_b

    def product(a: Expr, b: Expr, turn_a: bool, turn_b: bool) -> Expr:
        return of(name, a, b, transpose_a=turn_a, transpose_b=turn_b)

    dx = product(y, grad, tb, True) if ta else product(grad, y, False, not tb)
    dy = product(grad, x, True, ta) if tb else product(x, grad, not ta, False)
    return [dx, dy]


def _matmul(call: Call, grad: Expr) -> Grads:
    return _product("nn.matmul", call, grad)


def _batches(grad: Expr, operand: Expr) -> Expr:
    ty = operand.checked_type
    assert isinstance(ty, TensorType)
    if not isinstance(ty.shape[0], int):
        return of("collapse_sum_like", grad, operand)
    return of("sum", grad, axis=[0], keepdims=True) if ty.shape[0] == 1 else grad


def _conv2d(call: Call, grad: Expr) -> Grads:
    """The gradients of a 2-D convolution, in NCHW and OIHW, with changes to the call's layouts around them."""
    attrs = call.attrs
    layouts = [attrs.data_layout, attrs.kernel_layout, attrs.out_layout or attrs.data_layout]
    plain = ["NCHW", "OIHW", "NCHW"]
    shapes = [plain_extents(e, *layouts) for e, *layouts in zip((*call.args, call), layouts, plain)]
    data, weight = (in_layout(e, *layouts) for e, *layouts in zip(call.args, layouts, plain))
    grad = in_layout(of_dtype(grad, call, call.args[0]), layouts[2], "NCHW")
    (_, channels, h, w), (filters, _, kh, kw), (_, _, oh, ow) = shapes
    top, left, bottom, right = both_sides(attrs.padding, 2)
    sh, sw = attrs.strides
    dh, dw = attrs.dilation
    out_pad = (
        h - ((oh - 1) * sh - top - bottom + (kh - 1) * dh + 1),
        w - ((ow - 1) * sw - left - right + (kw - 1) * dw + 1),
    )
    d_data = op_call(
        "nn.conv2d_transpose",
        [grad, weight],
        strides=[sh, sw],
        padding=[top, left, bottom, right],
        dilation=[dh, dw],
        groups=attrs.groups,
        output_padding=list(out_pad),
        channels=channels,
        kernel_size=[kh, kw],
    )
    kept = {n: getattr(attrs, n) for n in get("nn.conv2d_backward_weight").schema}
    kept.update(padding=[top, left, bottom, right], kernel_size=[kh, kw], channels=filters, out_dtype=None)
    kept.update(data_layout="NCHW", kernel_layout="NCHW", out_layout="OIHW")
    op = get("nn.conv2d_backward_weight")
    assert op.attrs is not None
    d_weight = Call(op, [grad, data], make_attrs(op.attrs, kept))
    return [in_layout(d_data, "NCHW", layouts[0]), in_layout(d_weight, "OIHW", layouts[1])]


def plain_extents(expr: Expr, layout: str, plain: str) -> tuple[int, ...]:
    """A tensor's extents in the order of `plain`, with the parts of a split axis multiplied."""
    shape = extents(expr, "nn.conv2d")
    logical = dict.fromkeys(plain, 1)
    for (_, axis), extent in zip(re.findall(r"(\d*)([A-Za-z])", layout), shape):
        logical[axis.upper()] *= extent
    return tuple(logical.values())


def _pool(name: str) -> Gradient:
    def gradient(call: Call, grad: Expr) -> Grads:
        op = get(name)
        assert op.attrs is not None
        kept = {n: getattr(call.attrs, n) for n in op.schema}
        return [Call(op, [grad, call.args[0]], make_attrs(op.attrs, kept))]

    return gradient


def _global_average(call: Call, grad: Expr) -> Grads:
    data = call.args[0]
    seen = math.prod(extents(data, "nn.global_avg_pool2d")) // max(math.prod(extents(call, "nn.global_avg_pool2d")), 1)
    return [of("broadcast_to_like", div(grad, number(seen, call)), data)]


def _cross_entropy(logits: bool) -> Gradient:
    def gradient(call: Call, grad: Expr) -> Grads:
        x, y = call.args
        scaled = div(grad, number(extents(x, "a loss")[0], x))
        return [of("negative", mul(scaled, d)) for d in ((y, x) if logits else (div(y, x), of("log", x)))]

    return gradient


RULES: dict[str, Gradient] = {
    "nn.softmax": _softmax,
    "nn.log_softmax": lambda call, grad: [sub(grad, mul(of("exp", call), of("sum", grad, axis=[call.attrs.axis], keepdims=True)))],
    "nn.bias_add": _bias_add,
    "nn.dense": _dense,
    "nn.matmul": _matmul,
    "nn.batch_matmul": lambda call, grad: [
        _batches(part, side) for part, side in zip(_product("nn.batch_matmul", call, grad), call.args)
    ],
    "nn.conv2d": _conv2d,
    "nn.max_pool2d": _pool("nn.max_pool2d_grad"),
    "nn.avg_pool2d": _pool("nn.avg_pool2d_grad"),
    "nn.global_avg_pool2d": _global_average,
    "nn.cross_entropy": _cross_entropy(False),
    "nn.cross_entropy_with_logits": _cross_entropy(True),
}
