"""Layers: convolutions, pools, products, normalisation, activations, resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import depthwise, many, name_of, pads, result, shape_of, space, windows
from relaylang.export.relax.emitter import Emitter
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType


def letters(layout: str) -> str:
    """A layout as Relax writes it: blocks are refused, as their kernels are."""
    if not layout.isalpha() or not layout.isupper():
        raise Unsupported(f"the layout {layout} has blocks")
    return layout


def convolution(e: Emitter, call: Call, x: Value, w: Value) -> Value:
    a: Any = call.attrs
    count = sum(c in "DHW" for c in a.data_layout)
    dtype = result(call).dtype
    if x.dtype != w.dtype:
        x, w = e.cast(x, dtype), e.cast(w, dtype)
    kernel = letters(a.kernel_layout)
    if a.groups > 1 and not name_of(call).endswith("_transpose"):
        order = [kernel.index(c) for c in ("O", "I")]
        plain = e.transpose(w, [*order, *[i for i in range(w.rank) if i not in order]])
        if (wide := depthwise(plain, call)) is not None:
            w, kernel = e.reshape(plain, wide), "OI" + "".join(c for c in kernel if c in "DHW")
    transposed = name_of(call).endswith("_transpose")
    extra = f", output_padding={many(a.output_padding, count)[:count]}" if transposed else ""
    text = (
        f"R.{name_of(call)}({x.name}, {w.name}, strides={many(a.strides, count)}, padding={pads(a.padding, count)}{extra}, "
        f'dilation={many(a.dilation, count)}, groups={a.groups}, data_layout="{letters(a.data_layout)}", '
        f'kernel_layout="{kernel}", out_layout="{letters(a.out_layout or a.data_layout)}", out_dtype="{dtype}")'
    )
    return e.op(text, shape_of(call), dtype)


def pool(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    w, mean = windows(call, x), "avg" in name_of(call)
    if mean and "float" not in x.dtype:
        raise Unsupported("the mean of integers has another type")
    extra = f", count_include_pad={bool(a.count_include_pad)}" if mean else ""
    text = (
        f"R.{name_of(call)}({x.name}, pool_size={w['size']}, strides={w['strides']}, padding={w['padding']}, "
        f'dilation={w["dilation"]}{extra}, layout="{letters(a.layout)}", out_layout="{letters(a.out_layout or a.layout)}")'
    )
    return e.op(text, shape_of(call), x.dtype)


def whole(name: str) -> Any:
    """A pool over all of the space, as a reduction."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        axes = space(a.layout)
        if name == "mean" and "float" not in x.dtype:
            raise Unsupported("the mean of integers has another type")
        return e.op(f"R.{name}({x.name}, axis={axes}, keepdims=True)", shape_of(call), x.dtype)

    return rule


def adaptive(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axes = space(a.layout)
    out = [shape_of(call)[i] for i in axes]
    mean = "avg" in name_of(call)
    if all(n == 1 for n in out):
        return whole("mean" if mean else "max")(e, call, x)
    if mean:
        layout = letters(a.layout)
        text = f'R.{name_of(call)}({x.name}, output_size={out}, layout="{layout}", out_layout="{layout}")'
        return e.op(text, shape_of(call), x.dtype)
    if any(x.extent(i) % m for i, m in zip(axes, out)):
        raise Unsupported("its windows have several sizes")
    size = [x.extent(i) // m for i, m in zip(axes, out)]
    name = name_of(call).replace("adaptive_", "")
    return e.op(f'R.{name}({x.name}, pool_size={size}, strides={size}, layout="{letters(a.layout)}")', shape_of(call), x.dtype)


def _turned(e: Emitter, x: Value) -> Value:
    return e.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def dense(e: Emitter, call: Call, x: Value, w: Value) -> Value:
    return _product(e, call, x, _turned(e, w))


def matmul(e: Emitter, call: Call, x: Value, y: Value) -> Value:
    a: Any = call.attrs
    return _product(e, call, _turned(e, x) if a.transpose_a else x, _turned(e, y) if a.transpose_b else y)


def _product(e: Emitter, call: Call, x: Value, y: Value) -> Value:
    dtype = result(call).dtype
    return e.op(f'R.matmul({x.name}, {y.name}, out_dtype="{dtype}")', shape_of(call), dtype)


def along(e: Emitter, v: Value, axis: int, rank: int) -> Value:
    return e.reshape(v, [v.static()[0], *[1] * (rank - 1 - axis % rank)]) if v.rank == 1 else v


def bias_add(e: Emitter, call: Call, x: Value, bias: Value) -> Value:
    a: Any = call.attrs
    return e.same("add", x, along(e, bias, a.axis, x.rank))


def leaky_relu(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op(f"R.nn.leakyrelu({x.name}, alpha={float(a.alpha)!r})", x.static(), x.dtype)


def prelu(e: Emitter, call: Call, x: Value, slope: Value) -> Value:
    a: Any = call.attrs
    other = e.same("multiply", x, along(e, slope, a.axis, x.rank))
    positive = e.compare("greater", x, e.scalar(0, x.dtype))
    return e.op(f"R.where({positive.name}, {x.name}, {other.name})", x.static(), x.dtype)


def softmax(name: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        return e.op(f"R.nn.{name}({x.name}, axis={a.axis})", x.static(), x.dtype)

    return rule


def dropout(e: Emitter, call: Call, x: Value) -> list[Value]:
    return [x, e.op(f'R.ones(R.shape({list(x.static())}), dtype="{x.dtype}")', x.static(), x.dtype)]


def batch_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> list[Value]:
    a: Any = call.attrs
    text = (
        f"R.nn.batch_norm({x.name}, {gamma.name}, {beta.name}, {mean.name}, {var.name}, axis={a.axis % x.rank}, "
        f"epsilon={float(a.epsilon)!r}, center={bool(a.center)}, scale={bool(a.scale)}, training=False)"
    )
    types = [TensorType(x.type.shape, x.dtype), mean.type, var.type]
    return [e.fields("normalised", text, types)[0], mean, var]


def _norm(e: Emitter, call: Call, name: str, operands: list[Value], place: str) -> Value:
    """TVM's normalisations do not look at center and scale, so unused operands are zeros and ones."""
    a: Any = call.attrs
    x, gamma, beta = operands
    if not a.scale:
        gamma = e.array(np.ones(gamma.static(), np.dtype(gamma.dtype)), gamma.dtype, "ones")
    if not a.center:
        beta = e.array(np.zeros(beta.static(), np.dtype(beta.dtype)), beta.dtype, "zeros")
    text = f"R.nn.{name}({x.name}, {gamma.name}, {beta.name}, {place}, epsilon={float(a.epsilon)!r})"
    return e.op(text, x.static(), x.dtype)


def layer_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    return _norm(e, call, "layer_norm", [x, gamma, beta], f"axes=[{a.axis % x.rank}]")


def instance_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    axes = [i for i in range(1, x.rank) if i != axis]
    return _norm(e, call, "instance_norm", [x, gamma, beta], f"channel_axis={axis}, axes={axes}")


def group_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    axes = [i for i in range(1, x.rank) if i != axis]
    return _norm(e, call, "group_norm", [x, gamma, beta], f"num_groups={a.num_groups}, channel_axis={axis}, axes={axes}")


def l2_normalize(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axes = [int(i) % x.rank for i in a.axis] if a.axis else list(range(x.rank))
    square = e.same("multiply", x, x)
    kept = [1 if i in axes else n for i, n in enumerate(x.static())]
    total = e.op(f"R.sum({square.name}, axis={axes}, keepdims=True)", kept, x.dtype)
    return e.same("multiply", x, e.same("rsqrt", e.same("maximum", total, e.scalar(a.eps, x.dtype))))


def resize2d(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    dtype = result(call).dtype
    rounding = a.rounding_method or ("round" if a.coordinate_transformation_mode == "align_corners" else "floor")
    rounding = "round_prefer_ceil" if rounding == "round" else rounding
    text = (
        f"R.image.resize2d({x.name}, R.shape({[int(n) for n in a.size]}), roi={[float(v) for v in a.roi or (0.0,) * 4]}, "
        f'layout="{letters(a.layout)}", method="{a.method}", coordinate_transformation_mode="{a.coordinate_transformation_mode}", '
        f'rounding_method="{rounding}", cubic_alpha={float(a.cubic_alpha)!r}, cubic_exclude={int(a.cubic_exclude)}, '
        f'extrapolation_value={float(a.extrapolation_value)!r}, out_dtype="{dtype}")'
    )
    return e.op(text, shape_of(call), dtype)


def grid_sample(e: Emitter, call: Call, x: Value, grid: Value) -> Value:
    a: Any = call.attrs
    text = (
        f'R.image.grid_sample({x.name}, {grid.name}, method="{a.method}", layout="{a.layout}", padding_mode="{a.padding_mode}", '
        f"align_corners={bool(a.align_corners)})"
    )
    return e.op(text, shape_of(call), x.dtype)


def blocks(forwards: bool) -> Any:
    """depth_to_space and space_to_depth by reshapes."""

    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        if a.layout != "NCHW" or a.mode not in ("DCR", "CDR", "CRD"):
            raise Unsupported(f"the layout is {a.layout}")
        n, c, h, w = x.static()
        b = a.block_size
        if not forwards:
            cut = e.reshape(x, [n, c, h // b, b, w // b, b])
            return e.reshape(e.transpose(cut, [0, 3, 5, 1, 2, 4]), [n, c * b * b, h // b, w // b])
        deep = c // (b * b)
        if a.mode != "DCR":
            return e.reshape(e.transpose(e.reshape(x, [n, deep, b, b, h, w]), [0, 1, 4, 2, 5, 3]), [n, deep, h * b, w * b])
        return e.reshape(e.transpose(e.reshape(x, [n, b, b, deep, h, w]), [0, 3, 4, 1, 5, 2]), [n, deep, h * b, w * b])

    return rule


def lrn(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    if axis != 1 or x.rank < 3:
        raise Unsupported("its axis is not 1")
    n, c, *rest = x.static()
    line = e.reshape(e.same("multiply", x, x), [n, 1, c, math.prod(rest)])
    low, high = (a.size - 1) // 2, a.size // 2
    text = (
        f"R.nn.avg_pool2d({line.name}, pool_size=[{a.size}, 1], strides=[1, 1], padding=[{low}, 0, {high}, 0], count_include_pad=True)"
    )
    mean = e.reshape(e.op(text, line.static(), x.dtype), x.static())
    base = e.same("add", e.same("multiply", mean, e.scalar(a.alpha, x.dtype)), e.scalar(a.bias, x.dtype))
    return e.same("divide", x, e.same("power", base, e.scalar(a.beta, x.dtype)))


RULES = {
    **{f"nn.conv{n}d": convolution for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": convolution for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": pool for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_{kind}_pool{n}d": adaptive for kind in ("max", "avg") for n in (1, 2, 3)},
    "nn.global_max_pool2d": whole("max"),
    "nn.global_avg_pool2d": whole("mean"),
    "nn.dense": dense,
    "nn.matmul": matmul,
    "nn.batch_matmul": matmul,
    "nn.bias_add": bias_add,
    "nn.leaky_relu": leaky_relu,
    "nn.prelu": prelu,
    "nn.softmax": softmax("softmax"),
    "nn.fast_softmax": softmax("softmax"),
    "nn.log_softmax": softmax("log_softmax"),
    "nn.dropout": dropout,
    "nn.batch_norm": batch_norm,
    "nn.layer_norm": layer_norm,
    "nn.instance_norm": instance_norm,
    "nn.group_norm": group_norm,
    "nn.l2_normalize": l2_normalize,
    "nn.lrn": lrn,
    "nn.depth_to_space": blocks(True),
    "nn.space_to_depth": blocks(False),
    "image.resize2d": resize2d,
    "image.grid_sample": grid_sample,
}

__all__ = ["RULES"]
