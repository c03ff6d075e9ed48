"""Layers: convolutions, pools, products, normalisation, activations, resizing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.attributes import depthwise, many, pads, result, windows
from relaylang.export.onnx.emitter import Emitter
from relaylang.export.onnx.families.blocks import dense_of_blocks
from relaylang.export.onnx.families.shape import channels_first
from relaylang.export.walk import Value
from relaylang.ir import Call, TensorType
from relaylang.ops.record import Op


def geometry(attrs: Any, count: int) -> dict[str, Any]:
    """The attributes that windows have in common."""
    return {"strides": many(attrs.strides, count), "pads": pads(attrs.padding, count), "dilations": many(attrs.dilation, count)}


def kernel_first(e: Emitter, w: Value, layout: str, order: str) -> Value:
    """A kernel in another order of axes."""
    plain = order + "".join(c for c in layout if c in "DHW")
    if sorted(layout) != sorted(plain):
        raise Unsupported(f"the kernel's layout {layout} has blocks")
    return e.transpose(w, [layout.index(c) for c in plain])


def _conv(count: int) -> Any:
    def rule(e: Emitter, call: Call, x: Value, w: Value, bias: Value | None = None) -> Value:
        a: Any = call.attrs
        if "int" in x.dtype and "int" in w.dtype:
            x, w = x.narrow or x, w.narrow or w
        data, back = channels_first(e, x, a.data_layout, a.out_layout)
        kernel = kernel_first(e, w, a.kernel_layout, "OI")
        if a.groups > 1 and kernel.rank == w.rank and (shape := depthwise(kernel, call)) is not None:
            kernel = e.reshape(kernel, shape)
        attrs = {"group": a.groups, **geometry(a, count)}
        dtype = result(call).dtype
        if "int" in x.dtype and "int" in w.dtype and "int" in dtype:
            return back(_whole_conv(e, data, kernel, dtype, attrs))
        wide = _wide(x, w, dtype)
        conv_out = e.op("Conv", e.cast(data, wide), e.cast(kernel, wide), bias, **attrs)
        return e.cast(back(conv_out), dtype, conv_out.dtype)

    return rule


def _wide(x: Value, w: Value, dtype: str) -> str:
    """The element type of both operands of a convolution, since ONNX has one for both. Raises `Unsupported` for integers."""
    if not all("float" in name for name in (x.dtype, w.dtype, dtype)):
        raise Unsupported(f"ONNX does not convolve {x.dtype} with {w.dtype} to {dtype}")
    return max(x.dtype, w.dtype, key=lambda name: np.dtype(name).itemsize)


def _whole_conv(e: Emitter, x: Value, w: Value, dtype: str, attrs: dict[str, Any]) -> Value:
    """A convolution of integers. ONNX has that of 8 bits; wider numbers are sums of bytes, and the sums wrap alike."""
    wide = "int64" if "64" in dtype else "int32"
    total: Value | None = None
    for i, low in enumerate(_bytes(e, x)):
        for j, other in enumerate(_bytes(e, w)):
            if 8 * (i + j) >= int(wide[3:]):
                continue
            (data, at), (kernel, zero) = _unsigned(e, low), _unsigned(e, other)
            part = e.cast(e.op("ConvInteger", data, kernel, at, zero, **attrs), wide)
            if i + j:
                part = e.op("Mul", part, e.scalar(np.asarray(1 << 8 * (i + j)).astype(wide), wide))
            total = part if total is None else e.op("Add", total, part)
    assert total is not None
    return e.cast(total, dtype, wide)


def _unsigned(e: Emitter, x: Value) -> tuple[Value, Value]:
    """Bytes as unsigned ones and their zero point. Products with signed ones saturate in onnxruntime where the processor
    lacks VNNI."""
    zero = e.scalar(128 if x.dtype == "int8" else 0, "uint8", "zero")
    if x.dtype == "uint8":
        return x, zero
    if x.data is not None:
        return e.array((x.data.astype(np.int16) + 128).astype(np.uint8), x.name), zero
    return e.op("Add", e.cast(x, "uint8"), zero, ty=TensorType(x.type.shape, "uint8")), zero


def _bytes(e: Emitter, x: Value) -> list[Value]:
    """Integers as bytes, the lowest first; the highest of signed ones has the sign."""
    if x.dtype in ("int8", "uint8"):
        return [x]
    if x.data is not None and x.data.size and -128 <= x.data.min() <= x.data.max() <= 127:
        return [e.array(x.data.astype(np.int8), x.name)]
    rest, parts, base = e.cast(x, "int64"), [], e.scalar(256, "int64")
    for _ in range(np.dtype(x.dtype).itemsize - 1):
        low = e.op("Mod", rest, base)
        parts.append(e.cast(low, "uint8"))
        rest = e.op("Div", e.op("Sub", rest, low), base)
    return [*parts, e.cast(e.op("Mod", rest, base), "uint8") if x.dtype.startswith("u") else e.cast(rest, "int8")]


def _conv_transpose(count: int) -> Any:
    def rule(e: Emitter, call: Call, x: Value, w: Value) -> Value:
        a: Any = call.attrs
        data, back = channels_first(e, x, a.data_layout, a.out_layout)
        extra = [int(n) for n in a.output_padding]
        dtype = result(call).dtype
        wide = _wide(x, w, dtype)
        kernel = kernel_first(e, e.cast(w, wide), a.kernel_layout, "IO")
        conv_out = e.op(
            "ConvTranspose",
            e.cast(data, wide),
            kernel,
            group=a.groups,
            output_padding=(extra * count if len(extra) == 1 else extra)[:count],
            **geometry(a, count),
        )
        return e.cast(back(conv_out), dtype, conv_out.dtype)

    return rule


def _elements(x: Value) -> None:
    """Raises `Unsupported` for data without elements, but for that of no batch: onnxruntime refuses to pool it."""
    if 0 in x.shape[1:]:
        raise Unsupported("it has no elements to pool")


def _pool(kind: str, count: int) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        data, back = channels_first(e, x, a.layout, a.out_layout)
        _elements(data)
        w = windows(call, x)
        attrs: dict[str, Any] = {"kernel_shape": w["size"], "strides": w["strides"], "pads": w["padding"], "dilations": w["dilation"]}
        if kind == "AveragePool":
            attrs["count_include_pad"] = int(bool(a.count_include_pad))
        return back(e.op(kind, data, **attrs))

    return rule


def _global(kind: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        data, back = channels_first(e, x, a.layout, a.out_layout)
        _elements(data)
        return back(e.op(kind, data))

    return rule


def _adaptive(kind: str, count: int) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        data, back = channels_first(e, x, a.layout, a.out_layout)
        _elements(data)
        output_size = a.output_size
        out = many(output_size, count) if output_size is not None and output_size != () else None
        if out is not None and all(n == 1 for n in out):
            return back(e.op(f"Global{kind}", data))
        space = [x.extent(a.layout.index(c)) for c in a.layout if c in "DHW"]
        out = out or space
        if any(n % m for n, m in zip(space, out)):
            raise Unsupported("its windows have several sizes")
        size = [n // m for n, m in zip(space, out)]
        return back(e.op(kind, data, kernel_shape=size, strides=size))

    return rule


def dense(e: Emitter, call: Call, x: Value, w: Value) -> Value:
    sparse = dense_of_blocks(e, call, x)
    return _product(e, call, x, e.transpose(w, [1, 0])) if sparse is None else sparse


def _product(e: Emitter, call: Call, x: Value, y: Value) -> Value:
    dtype = result(call).dtype
    if {x.dtype, y.dtype} <= {"int8", "uint8"} and dtype == "int32":  # ONNX multiplies bytes to 32 bits
        (left, at), (right, zero) = _unsigned(e, x), _unsigned(e, y)
        return e.op("MatMulInteger", left, right, at, zero)
    return e.cast(e.op("MatMul", e.cast(x, dtype), e.cast(y, dtype)), dtype)


def matmul(e: Emitter, call: Call, x: Value, y: Value) -> Value:
    a: Any = call.attrs
    left = e.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2]) if a.transpose_a else x
    right = e.transpose(y, [*range(y.rank - 2), y.rank - 1, y.rank - 2]) if a.transpose_b else y
    return _product(e, call, left, right)


def along(e: Emitter, v: Value, axis: int, rank: int) -> Value:
    """A vector that lies along an axis of a tensor of so many axes."""
    behind = rank - 1 - axis % rank
    return e.reshape(v, [-1, *[1] * behind]) if behind and v.rank == 1 else v


def bias_add(e: Emitter, call: Call, x: Value, bias: Value) -> Value:
    a: Any = call.attrs
    definition = e.defined(call.args[0])
    node = definition[0] if definition is not None else None
    if definition is not None and isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "nn.conv2d":
        data, weight = (definition[1][arg] for arg in node.args)  # type: ignore[index]
        layout = node.attrs.out_layout or node.attrs.data_layout
        if a.axis % x.rank == layout.find("C") and data.dtype == weight.dtype == bias.dtype == x.dtype == "float32":
            return _conv(2)(e, node, data, weight, bias)  # a layer without the bias is dropped where nothing else takes it
    return e.op("Add", x, along(e, bias, a.axis, x.rank))


def leaky_relu(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    return e.op("LeakyRelu", x, alpha=float(a.alpha))


def prelu(e: Emitter, call: Call, x: Value, slope: Value) -> Value:
    a: Any = call.attrs
    slopes = along(e, e.cast(slope, x.dtype), a.axis, x.rank)
    if "int" in x.dtype:
        return e.op("Where", e.op("Less", x, e.scalar(0, x.dtype)), e.op("Mul", x, slopes), x)
    return e.op("PRelu", x, slopes)


def _softmax(kind: str) -> Any:
    def rule(e: Emitter, call: Call, x: Value) -> Value:
        a: Any = call.attrs
        return e.op(kind, x, axis=a.axis)

    return rule


def dropout(e: Emitter, call: Call, x: Value) -> list[Value]:
    return [e.op("Identity", x), e.op("Expand", e.scalar(1, x.dtype), e.op("Shape", x))]


def _parameter(e: Emitter, v: Value, used: bool, value: float) -> Value:
    return v if used else e.array(np.full(v.static(), value, np.dtype(v.dtype)), v.name, v.dtype)


def batch_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> list[Value]:
    a: Any = call.attrs
    axis = a.axis % x.rank
    order = [i for i in range(x.rank) if i != axis]
    order.insert(min(1, x.rank - 1), axis)
    data = e.transpose(x, order)
    scale, shift = _parameter(e, gamma, a.scale, 1), _parameter(e, beta, a.center, 0)
    normalised = e.op("BatchNormalization", data, scale, shift, mean, var, epsilon=float(a.epsilon))
    return [e.transpose(Value(normalised.name, data.type), [order.index(i) for i in range(x.rank)]), mean, var]


def instance_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    order = [i for i in range(x.rank) if i != axis]
    order.insert(1, axis)
    data = e.transpose(x, order)
    normalised = e.op(
        "InstanceNormalization", data, _parameter(e, gamma, a.scale, 1), _parameter(e, beta, a.center, 0), epsilon=float(a.epsilon)
    )
    return e.transpose(Value(normalised.name, data.type), [order.index(i) for i in range(x.rank)])


def layer_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    axis = a.axis % x.rank
    scale, shift = _parameter(e, gamma, a.scale, 1), _parameter(e, beta, a.center, 0)
    if axis == x.rank - 1:
        return e.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=float(a.epsilon))
    ones = e.ints([axis], "axes")
    apart = e.op("Sub", x, e.op("ReduceMean", x, ones, keepdims=1))
    spread = e.op("ReduceMean", e.op("Mul", apart, apart), ones, keepdims=1)
    normalised = e.op("Div", apart, e.op("Sqrt", e.op("Add", spread, e.scalar(a.epsilon, x.dtype))))
    return e.op("Add", e.op("Mul", normalised, along(e, scale, axis, x.rank)), along(e, shift, axis, x.rank))


def group_norm(e: Emitter, call: Call, x: Value, gamma: Value, beta: Value) -> Value:
    a: Any = call.attrs
    if a.axis % x.rank != 1:
        raise Unsupported("its axis is not 1")
    scale, shift = _parameter(e, gamma, a.scale, 1), _parameter(e, beta, a.center, 0)
    return e.op("GroupNormalization", x, scale, shift, num_groups=a.num_groups, epsilon=float(a.epsilon))


def lrn(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    if a.axis % x.rank != 1:
        raise Unsupported("its axis is not 1")
    # onnxruntime has a kernel for images alone.
    image = x if x.rank == 4 else e.reshape(x, [0, 0, -1, 1])
    normalised = e.op("LRN", image, size=a.size, alpha=float(a.alpha), beta=float(a.beta), bias=float(a.bias))
    return normalised if x.rank == 4 else e.reshape(normalised, x.static("its data"))


def l2_normalize(e: Emitter, call: Call, x: Value) -> Value:
    a: Any = call.attrs
    axes = [int(n) % x.rank for n in a.axis] if a.axis else list(range(x.rank))
    total = e.op("ReduceSumSquare", x, e.ints(axes, "axes"), keepdims=1)
    return e.op("Div", x, e.op("Sqrt", e.op("Max", total, e.scalar(a.eps, x.dtype))))


# ---- resizing

_NEAREST = {
    "round": "round_prefer_ceil",
    "floor": "floor",
    "ceil": "ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round_prefer_ceil": "round_prefer_ceil",
    "": "floor",
}
_METHODS = {
    "nearest_neighbor": "nearest",
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}


def resize(e: Emitter, call: Call, x: Value, *_: Value) -> Value:
    a: Any = call.attrs
    method = _METHODS[a.method]
    mode = getattr(a, "coordinate_transformation_mode", "align_corners" if getattr(a, "align_corners", False) else "asymmetric")
    shape = [n if isinstance(n, int) else -1 for n in result(call).shape]
    if -1 in shape:
        raise Unsupported("an extent of the result is open")
    data, back = channels_first(e, x, a.layout)
    order = "NC" + "".join(c for c in a.layout if c not in "NC")
    sizes = [shape[a.layout.index(c)] for c in order]
    roi = None
    attrs: dict[str, Any] = {"mode": method, "coordinate_transformation_mode": mode}
    rounding = getattr(a, "rounding_method", "")
    if method == "nearest":
        attrs["nearest_mode"] = _nearest(rounding, mode)
    if method == "cubic":
        attrs["cubic_coeff_a"] = float(getattr(a, "cubic_alpha", -0.5))
        attrs["exclude_outside"] = int(getattr(a, "cubic_exclude", 0) or 0)
    if "int" in x.dtype and method != "nearest":
        raise Unsupported("runtimes round integers differently")
    if mode == "tf_crop_and_resize" and not hasattr(a, "roi"):
        raise Unsupported("it has no region to crop")
    if mode == "tf_crop_and_resize":
        count = len(order) - 2
        roi_values = [float(v) for v in a.roi]
        roi = e.array(np.asarray([0, 0, *roi_values[:count], 1, 1, *roi_values[count:]], np.float32), "roi")
        attrs["extrapolation_value"] = float(a.extrapolation_value)
    resized = _copied(e, data, lambda part: e.op("Resize", part, roi, None, e.ints(sizes, "sizes"), **attrs))
    return e.cast(back(resized), result(call).dtype, x.dtype)


def _copied(e: Emitter, x: Value, copy: Callable[[Value], Value]) -> Value:
    """Copies of elements. Of integers that onnxruntime has no kernel for, the low and the high 32 bits are copied."""
    if x.dtype == "uint32":
        return e.op("Cast", copy(e.cast(x, "int32")), to=e.kind("uint32"))
    if x.dtype not in ("int64", "uint64"):
        return copy(x)
    wide, above = e.cast(x, "int64"), e.scalar(1 << 32, "int64")
    low = e.op("Cast", wide, to=e.kind("int32"))
    high = e.op("Div", e.op("Sub", wide, e.op("Cast", low, to=e.kind("int64"))), above)
    parts = [e.op("Cast", copy(part), to=e.kind("int64")) for part in (low, e.op("Cast", high, to=e.kind("int32")))]
    joined = e.op("Add", e.op("Mul", parts[1], above), parts[0])
    return e.op("Cast", joined, to=e.kind("uint64")) if x.dtype == "uint64" else joined


def dyn_resize(e: Emitter, call: Call, x: Value, size: Value, roi: Value) -> Value:
    a: Any = call.attrs
    if a.layout != "NCHW" or a.coordinate_transformation_mode == "tf_crop_and_resize":
        raise Unsupported("its sizes are computed, and it crops or its layout is not NCHW")
    sizes = e.op("Concat", e.op("Shape", x, end=2), e.cast(size, "int64"), axis=0)
    attrs: dict[str, Any] = {"mode": _METHODS[a.method], "coordinate_transformation_mode": a.coordinate_transformation_mode}
    if attrs["mode"] == "nearest":
        attrs["nearest_mode"] = _nearest(a.rounding_method, a.coordinate_transformation_mode)
    if attrs["mode"] == "cubic":
        attrs |= {"cubic_coeff_a": float(a.cubic_alpha), "exclude_outside": int(a.cubic_exclude or 0)}
    resized = _copied(e, x, lambda part: e.op("Resize", part, None, None, sizes, **attrs))
    return e.cast(resized, result(call).dtype, x.dtype)


def _nearest(rounding: str, mode: str) -> str:
    return _NEAREST[rounding or ("round" if mode == "align_corners" else "floor")]


def grid_sample(e: Emitter, call: Call, x: Value, grid: Value) -> Value:
    a: Any = call.attrs
    if a.layout not in ("NCHW", "NCDHW"):
        raise Unsupported(f"the layout is {a.layout}")
    mode = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}[a.method]
    moved = e.op("Transpose", grid, perm=[0, *range(2, grid.rank), 1])
    return e.op("GridSample", x, moved, mode=mode, padding_mode=a.padding_mode, align_corners=int(bool(a.align_corners)))


def roi_align(e: Emitter, call: Call, x: Value, rois: Value) -> Value:
    a: Any = call.attrs
    if a.layout != "NCHW" or a.mode not in (b"avg", "avg", 0):
        raise Unsupported("ONNX has the mean over windows in the layout NCHW only")
    if x.dtype != rois.dtype:
        raise Unsupported(f"ONNX has one element type of the data, {x.dtype}, and the regions, {rois.dtype}")
    which, boxes = e.op("Split", rois, e.ints([1, 4], "sizes"), axis=1, outputs=2)
    size, scale = many(a.pooled_size, 2), float(a.spatial_scale)
    if x.dtype == "float64":  # the attribute is a float32, by which a point moves over the border
        boxes, scale = e.op("Mul", boxes, e.scalar(scale, "float64")), 1.0
    return e.op(
        "RoiAlign",
        x,
        boxes,
        e.cast(e.op("Squeeze", which, e.ints([1])), "int64", rois.dtype),
        mode="avg",
        coordinate_transformation_mode="output_half_pixel",
        output_height=size[0],
        output_width=size[1],
        sampling_ratio=max(int(a.sample_ratio), 0),
        spatial_scale=scale,
    )


def non_max_suppression(e: Emitter, call: Call, boxes: Value, scores: Value, most: Value, overlap: Value, least: Value) -> list[Value]:
    """ONNX gives the rows that there are, Relay behind them zeros; `padded` notes both. Relay's count 0 means all, and
    its boxes are dropped that reach the threshold of overlap, ONNX's those beyond."""
    a: Any = call.attrs
    if a.output_format != "onnx":
        raise Unsupported(f"its output_format is {a.output_format}")
    if overlap.data is None or overlap.data <= 0:
        raise Unsupported("its threshold of overlap is computed, or not above 0")
    overlap = e.array(np.nextafter(overlap.data.astype(np.float32), np.float32(-np.inf)).reshape(()), "overlap")
    count = e.cast(most, "int64")
    if count.data is None or count.data <= 0:
        count = e.op("Where", e.op("Greater", count, e.scalar(0, "int64")), count, e.scalar(2**31 - 1, "int64"))
    operands = [e.cast(boxes, "float32"), e.cast(scores, "float32")]
    limits = [count, overlap, e.cast(least, "float32")]
    rows = e.op("NonMaxSuppression", *operands, *[e.reshape(v, [1]) for v in limits], ty=TensorType((-1, 3), "int64"))
    row_count = e.op("Shape", rows, end=1)
    classes = e.op("ReduceProd", e.op("Shape", scores, end=2), e.ints([0]), keepdims=1)
    every = e.op("Mul", e.op("Shape", boxes, start=1, end=2), classes)
    widths = e.op("Concat", e.ints([0, 0]), e.op("Sub", every, row_count), e.ints([0]), axis=0)
    padded = e.op("Pad", rows, widths)
    e.padded[padded.name] = rows, row_count
    return [padded, row_count]


RULES = {
    **{f"nn.conv{n}d": _conv(n) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": _conv_transpose(n) for n in (1, 2, 3)},
    **{f"nn.max_pool{n}d": _pool("MaxPool", n) for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": _pool("AveragePool", n) for n in (1, 2, 3)},
    **{f"nn.adaptive_max_pool{n}d": _adaptive("MaxPool", n) for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": _adaptive("AveragePool", n) for n in (1, 2, 3)},
    "nn.global_max_pool2d": _global("GlobalMaxPool"),
    "nn.global_avg_pool2d": _global("GlobalAveragePool"),
    "nn.dense": dense,
    "nn.matmul": matmul,
    "nn.batch_matmul": matmul,
    "nn.bias_add": bias_add,
    "nn.leaky_relu": leaky_relu,
    "nn.prelu": prelu,
    "nn.softmax": _softmax("Softmax"),
    "nn.fast_softmax": _softmax("Softmax"),
    "nn.log_softmax": _softmax("LogSoftmax"),
    "nn.dropout": dropout,
    "nn.batch_norm": batch_norm,
    "nn.instance_norm": instance_norm,
    "nn.layer_norm": layer_norm,
    "nn.group_norm": group_norm,
    "nn.lrn": lrn,
    "nn.l2_normalize": l2_normalize,
    "nn.upsampling": resize,
    "nn.upsampling3d": resize,
    "image.resize1d": resize,
    "image.resize2d": resize,
    "image.resize3d": resize,
    "image.grid_sample": grid_sample,
    "dyn.image.resize2d": dyn_resize,
    "vision.roi_align": roi_align,
    "vision.all_class_non_max_suppression": non_max_suppression,
}

__all__ = ["RULES", "geometry", "kernel_first"]
