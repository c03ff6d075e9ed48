"""Layers: convolutions, pools, products, normalisation, activations, resizing by weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import depthwise, many, pads, result, shape_of, space, windows
from relaylang.export.stablehlo.emitter import Emitter, limits
from relaylang.export.stablehlo.families.shape import reversed_along
from relaylang.export.walk import Value
from relaylang.ir import Call


def _numbers(layout: str, letters: str) -> str:
    """A layout as dimension numbers: `NCHW` with the letters b and f is [b, f, 0, 1]."""
    space = [c for c in layout if c in "DHW"]
    names = {**dict(zip(letters[::2], letters[1::2])), **{c: str(i) for i, c in enumerate(space)}}
    if any(c not in names for c in layout):
        raise Unsupported(f"the layout {layout} has blocks")
    return f"[{', '.join(names[c] for c in layout)}]"


def _pairs(padding: Any, count: int) -> list[list[int]]:
    """Padding before and behind each axis."""
    flat_pads = pads(padding, count)
    return [list(p) for p in zip(flat_pads[:count], flat_pads[count:])]


def convolution(e: Emitter, call: Call, x: Value, w: Value) -> Value:
    a: Any = call.attrs
    layout, kernel, out = a.data_layout, a.kernel_layout, a.out_layout or a.data_layout
    count = sum(c in "DHW" for c in layout)
    shape, dtype = shape_of(call), result(call).dtype
    x, w = (e.cast(v, dtype) if v.dtype != dtype else v for v in (x, w))
    order = [kernel.index(c) for c in ("O", "I")] if kernel.isalpha() else []
    if a.groups > 1 and order:
        order += [i for i in range(w.rank) if i not in order]
        plain = e.transpose(w, order)
        if (wide := depthwise(plain, call)) is not None:
            w, kernel = e.reshape(plain, wide), "OI" + "".join(c for c in kernel if c in "DHW")
    text = (
        f"stablehlo.convolution(%{x.name}, %{w.name}) dim_numbers = {_numbers(layout, 'NbCf')}x{_numbers(kernel, 'OoIi')}"
        f"->{_numbers(out, 'NbCf')}, window = {{stride = {many(a.strides, count)}, pad = {_pairs(a.padding, count)}, "
        f"lhs_dilate = {[1] * count}, rhs_dilate = {many(a.dilation, count)}}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {a.groups} : i64}}"
    )
    return e.op(text, [x, w], shape, dtype)


def convolution_transpose(e: Emitter, call: Call, x: Value, w: Value) -> Value:
    """A convolution over data with zeros between its elements, and the kernel turned round."""
    a: Any = call.attrs
    layout = a.data_layout
    count = sum(c in "DHW" for c in layout)
    groups, space = a.groups, [c for c in a.kernel_layout if c in "DHW"]
    order = [a.kernel_layout.index(c) for c in ("I", "O", *space)]
    w = e.transpose(w, order)
    inputs, outputs, *kernel = w.static()
    w = reversed_along(e, w, list(range(2, 2 + count)))
    split = e.reshape(w, [groups, inputs // groups, outputs, *kernel])
    turned = e.transpose(split, [0, 2, 1, *range(3, 3 + count)])
    weight = e.reshape(turned, [groups * outputs, inputs // groups, *kernel])
    dilation, extra = many(a.dilation, count), many(a.output_padding, count)[:count]
    reach = [(k - 1) * d for k, d in zip(kernel, dilation)]
    padding = [(r - p, r - q + x_) for r, (p, q), x_ in zip(reach, _pairs(a.padding, count), extra)]
    letters = "OI" + "".join(space)
    text = (
        f"stablehlo.convolution(%{x.name}, %{weight.name}) dim_numbers = {_numbers(layout, 'NbCf')}x{_numbers(letters, 'OoIi')}"
        f"->{_numbers(a.out_layout or layout, 'NbCf')}, window = {{stride = {[1] * count}, pad = {[list(p) for p in padding]}, "
        f"lhs_dilate = {many(a.strides, count)}, rhs_dilate = {dilation}}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}"
    )
    return e.op(text, [x, weight], shape_of(call), x.dtype)


def _windows(call: Call, x: Value) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    """Sizes, strides, dilation and padding of a pool for all axes."""
    a: Any = call.attrs
    if a.out_layout and a.out_layout != a.layout:
        raise Unsupported("its result has another layout than its data")
    w, axes = windows(call, x), space(a.layout)
    sizes, strides, dilation = [1] * x.rank, [1] * x.rank, [1] * x.rank
    around = [(0, 0)] * x.rank
    for i, axis in enumerate(axes):
        sizes[axis], strides[axis], dilation[axis] = w["size"][i], w["strides"][i], w["dilation"][i]
        around[axis] = (w["padding"][i], w["padding"][len(axes) + i])
    return sizes, strides, dilation, around


def max_pool(e: Emitter, call: Call, x: Value) -> Value:
    return e.window(x, limits(x.dtype)[0], "maximum", *_windows(call, x))


def avg_pool(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    sizes, strides, dilation, around = _windows(call, x)
    total = e.window(x, 0, "add", sizes, strides, dilation, around)
    counts = np.ones([1] * x.rank)
    for axis, (k, s, d, (low, high)) in enumerate(zip(sizes, strides, dilation, around)):
        first, last = (-low, x.extent(axis) + high) if a.count_include_pad else (0, x.extent(axis))
        line = [max(sum(first <= i * s - low + j * d < last for j in range(k)), 1) for i in range(total.extent(axis))]
        counts = counts * np.asarray(line, float).reshape([-1 if i == axis else 1 for i in range(x.rank)])
    if not np.any(counts != counts.reshape(-1)[0]):
        return e.two("divide", total, e.scalar(counts.reshape(-1)[0], x.dtype))
    return e.two("divide", total, e.array(counts.astype(np.dtype(x.dtype)), x.dtype))


def global_max_pool(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.reshape(e.reduce(x, space(a.layout), "maximum", limits(x.dtype)[0]), shape_of(call))


def global_avg_pool(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axes = space(a.layout)
    total = e.reduce(x, axes, "add", 0)
    count = math.prod(x.static()[i] for i in axes)
    return e.reshape(e.two("divide", total, e.scalar(count, x.dtype)), shape_of(call))


def adaptive(mean: bool) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        out, sizes = shape_of(call), [1] * x.rank
        for axis in space(a.layout):
            if x.static()[axis] % out[axis]:
                raise Unsupported("its windows have several sizes")
            sizes[axis] = x.static()[axis] // out[axis]
        nothing = [(0, 0)] * x.rank
        pooled = e.window(x, 0 if mean else limits(x.dtype)[0], "add" if mean else "maximum", sizes, sizes, [1] * x.rank, nothing)
        return e.two("divide", pooled, e.scalar(math.prod(sizes), x.dtype)) if mean else pooled

    return rule


def dense(e: Emitter, call: Call, x: Value, w: Value) -> Value:
    dtype = result(call).dtype
    return e.dot(e.cast(x, dtype), e.cast(w, dtype), [], [(x.rank - 1, 1)])


def matmul(e: Emitter, call: Call, x: Value, y: Value) -> Value:
    a: Any = call.attrs
    dtype = result(call).dtype
    x, y = e.cast(x, dtype), e.cast(y, dtype)
    if x.rank == 3 and y.rank == 3:
        batch = max(x.static()[0], y.static()[0])
        x, y = (e.broadcast(v, [batch, *v.static()[1:]]) for v in (x, y))
        return e.dot(x, y, [(0, 0)], [(1 if a.transpose_a else 2, 2 if a.transpose_b else 1)])
    if y.rank != 2:
        raise Unsupported("its operands have other ranks than 2 and 3")
    last = x.rank - 1
    if a.transpose_a:
        x = e.transpose(x, [*range(last - 1), last, last - 1])
    return e.dot(x, y, [], [(last, 1 if a.transpose_b else 0)])


def along(e: Emitter, v: Value, axis: int, shape: tuple[int, ...]) -> Value:
    """A vector along an axis of a shape."""
    return e.broadcast(v, shape, [axis % len(shape)])


def bias_add(e: Emitter, call: Call, x: Value, bias: Value) -> Value:
    a: Any = call.attrs
    return e.same("add", x, along(e, bias, a.axis, x.static()))


def relu(e: Emitter, call: Call, x: Value) -> Value:
    return e.same("maximum", x, e.splat(0, x))


def leaky_relu(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.select(e.compare("GT", x, e.splat(0, x)), x, e.same("multiply", x, e.splat(a.alpha, x)))


def prelu(e: Emitter, call: Call, x: Value, slope: Value) -> Value:
    a: Any = call.attrs
    other = e.same("multiply", x, along(e, slope, a.axis, x.static()) if slope.rank == 1 else e.broadcast(slope, x.static()))
    return e.select(e.compare("GT", x, e.splat(0, x)), x, other)


def softmax(log: bool) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        axes = [a.axis % x.rank]
        top = e.keep(e.reduce(x, axes, "maximum", -np.inf), axes, x.rank)
        apart = e.two("subtract", x, top)
        powers = e.same("exponential", apart)
        total = e.keep(e.reduce(powers, axes, "add", 0), axes, x.rank)
        return e.two("subtract", apart, e.same("log", total)) if log else e.two("divide", powers, total)

    return rule


def dropout(e: Emitter, call: Call, x: Value) -> list[Value]:
    return [x, e.splat(1, x)]


def batch_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> list[Value]:
    a: Any = call.attrs
    scale = e.same("rsqrt", e.same("add", var, e.splat(a.epsilon, var)))
    if a.scale:
        scale = e.same("multiply", scale, gamma)
    shift = e.same("negate", e.same("multiply", mean, scale))
    if a.center:
        shift = e.same("add", shift, beta)
    shape = x.static()
    return [e.same("add", e.same("multiply", x, along(e, scale, a.axis, shape)), along(e, shift, a.axis, shape)), mean, var]


def _normalised(e: Emitter, x: Value, axes: list[int], epsilon: float) -> Value:
    count = e.scalar(math.prod(x.static()[i] for i in axes), x.dtype)
    mean = e.two("divide", e.keep(e.reduce(x, axes, "add", 0), axes, x.rank), count)
    apart = e.two("subtract", x, mean)
    var = e.two("divide", e.keep(e.reduce(e.same("multiply", apart, apart), axes, "add", 0), axes, x.rank), count)
    return e.two("multiply", apart, e.same("rsqrt", e.same("add", var, e.splat(epsilon, var))))


def _scaled(e: Emitter, x: Value, gamma: Value, beta: Value, axis: int, a: Any) -> Value:
    if a.scale:
        x = e.same("multiply", x, along(e, gamma, axis, x.static()))
    return e.same("add", x, along(e, beta, axis, x.static())) if a.center else x


def layer_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    return _scaled(e, _normalised(e, x, [a.axis % x.rank], a.epsilon), gamma, beta, a.axis, a)


def instance_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    axes = [i for i in range(1, x.rank) if i != a.axis % x.rank]
    return _scaled(e, _normalised(e, x, axes, a.epsilon), gamma, beta, a.axis, a)


def group_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    axis, shape = a.axis % x.rank, list(x.static())
    wide = [*shape[:axis], a.num_groups, shape[axis] // a.num_groups, *shape[axis + 1 :]]
    split = e.reshape(x, wide)
    axes = [i for i in range(1, len(wide)) if i != axis]
    return _scaled(e, e.reshape(_normalised(e, split, axes, a.epsilon), shape), gamma, beta, axis, a)


def l2_normalize(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axes = [int(i) % x.rank for i in a.axis] if a.axis else list(range(x.rank))
    total = e.keep(e.reduce(e.same("multiply", x, x), axes, "add", 0), axes, x.rank)
    return e.two("multiply", x, e.same("rsqrt", e.same("maximum", total, e.splat(a.eps, total))))


def lrn(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    sizes = [a.size if i == axis else 1 for i in range(x.rank)]
    around = [((a.size - 1) // 2, a.size // 2) if i == axis else (0, 0) for i in range(x.rank)]
    total = e.window(e.same("multiply", x, x), 0, "add", sizes, [1] * x.rank, [1] * x.rank, around)
    base = e.same("add", e.same("multiply", total, e.splat(a.alpha / a.size, x)), e.splat(a.bias, x))
    return e.same("divide", x, e.same("power", base, e.splat(a.beta, x)))


RULES = {
    **{f"nn.conv{n}d": convolution for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": convolution_transpose for n in (1, 2, 3)},
    **{f"nn.max_pool{n}d": max_pool for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": avg_pool for n in (1, 2, 3)},
    **{f"nn.adaptive_max_pool{n}d": adaptive(False) for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": adaptive(True) for n in (1, 2, 3)},
    "nn.global_max_pool2d": global_max_pool,
    "nn.global_avg_pool2d": global_avg_pool,
    "nn.dense": dense,
    "nn.matmul": matmul,
    "nn.batch_matmul": matmul,
    "nn.bias_add": bias_add,
    "nn.relu": relu,
    "nn.leaky_relu": leaky_relu,
    "nn.prelu": prelu,
    "nn.softmax": softmax(False),
    "nn.fast_softmax": softmax(False),
    "nn.log_softmax": softmax(True),
    "nn.dropout": dropout,
    "nn.batch_norm": batch_norm,
    "nn.layer_norm": layer_norm,
    "nn.instance_norm": instance_norm,
    "nn.group_norm": group_norm,
    "nn.l2_normalize": l2_normalize,
    "nn.lrn": lrn,
}

__all__ = ["RULES"]
