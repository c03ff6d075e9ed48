"""Weights of quantised layers, and the layers: `quantized.conv2d`, `quantized.linear` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Unsupported, nn
from relaylang.frontends.common import quantized as common
from relaylang.frontends.torch.torchscript.embedding import embedding, embedding_bag
from relaylang.frontends.torch.torchscript.quantized import at_scale, operands, real, relu, whole
from relaylang.frontends.torch.torchscript.values import Packed, Quant, Record, Stored, Tensor
from relaylang.ir import Expr

# ---- packing


def _array(value: Any) -> np.ndarray:
    array: np.ndarray = value.array
    return array


def packed(record: Record) -> Packed:
    """The weights that one of PyTorch's own objects holds, from the state that the file has for it."""
    state = record.state
    if record.kind.endswith("LinearPackedParamsBase"):
        return Packed(state[0], state[1])
    if record.kind.endswith("EmbeddingPackedParamsBase"):
        return Packed(state[1][0], None)
    if isinstance(state[0], str):  # a tensor of numbers, the weights; the bias
        numbers, weight, bias = [int(n) for n in _array(state[1][0])], state[1][1], state[2][0]
    else:
        numbers, weight, bias = [int(n) for n in state[1]], state[2][1], state[2][2]
    count, rest = numbers[0], numbers[1:]
    stride, padding, dilation, output = (rest[i * count : (i + 1) * count] for i in range(4))
    window = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output}
    return Packed(weight, bias, {**window, "groups": rest[4 * count], "transposed": bool(rest[4 * count + 1])})


def unpacked(value: Packed) -> tuple[Any, Any]:
    """The weights and the bias."""
    return value.weight, value.bias


def _prepack(name: str, args: Sequence[Any]) -> Packed:
    weight, bias, *rest = args
    if name.startswith("linear"):
        return Packed(weight, bias)
    names = ["stride", "padding", "dilation", "groups"]
    if "transpose" in name:
        names = ["stride", "padding", "output_padding", "dilation", "groups"]
    window = dict(zip(names, rest))
    return Packed(weight, bias, {"output_padding": [0] * len(window["stride"]), **window, "transposed": "transpose" in name})


# ---- weights


def _stored(value: Any) -> Stored:
    if not isinstance(value, Stored):
        raise Unsupported("its weights are computed")
    return value


def _quant(x: Any) -> Quant:
    if not isinstance(x, Tensor) or x.quant is None or x.quant.scale.ndim:
        raise Unsupported("its operand is not quantised by one scale")
    return x.quant


def _weight(b: Builder, layer: Packed, array: np.ndarray, quant: Quant) -> Expr:
    """Whole numbers. As parameters of the program they are real numbers that it quantises, unless the caller keeps them."""
    name = f"{layer.name}_weight" if layer.name else "weight"
    if b.options.freeze:
        return b.const(array)
    if b.options.keep_quantized:
        return b.weight(name, array)
    scale, zero = (np.reshape(v, (-1, *[1] * (array.ndim - 1))) if np.ndim(v) else v for v in (quant.scale, quant.zero))
    reals = ((array.astype(np.int32) - zero) * scale).astype(np.float32)
    return b.op("qnn.quantize", b.weight(name, reals), *operands(b, quant), out_dtype=array.dtype.name, axis=0)


def _with_bias(b: Builder, layer: Packed, sums: Expr, scale: np.ndarray) -> Expr:
    """Sums with the bias, which has their scale."""
    if layer.bias is None:
        return sums
    bias = _stored(layer.bias).array.astype(np.float32)
    if b.options.freeze or b.options.keep_quantized:
        ints = np.rint(bias.astype(np.float64) / scale).astype(np.int32)
        return b.op("nn.bias_add", sums, b.const(ints), axis=1)
    quant = Quant(scale, np.zeros((), np.int32), 0)
    name = f"{layer.name}_bias" if layer.name else "bias"
    axis = 0 if np.ndim(scale) else -1
    ints = b.op("qnn.quantize", b.weight(name, bias), *operands(b, quant), out_dtype="int32", axis=axis)
    return b.op("nn.bias_add", sums, ints, axis=1)


def _requantized(b: Builder, layer: Packed, sums: Expr, x: Quant, w: Quant, scale: Any, zero: Any, with_relu: bool) -> Tensor:
    """Sums with the bias, at the scale of the result, as TVM writes it: in int32, then held in the range of uint8."""
    product = np.asarray(x.scale * w.scale, np.float32)
    out = Quant.of(scale, zero)
    sums = _with_bias(b, layer, sums, product)
    ends = [b.const(product), b.const(0, "int32"), *operands(b, out)]
    sums = b.op("qnn.requantize", sums, *ends, axis=1, out_dtype="int32")
    sums = b.op("clip", sums, a_min=float(out.zero) if with_relu else 0.0, a_max=255.0)
    return Tensor(b.cast(sums, "uint8"), out)


# ---- layers


def convolution(name: str) -> Callable[..., Any]:
    """A convolution of one or two axes as `qnn.conv2d`; others compute with real numbers."""
    with_relu = name.endswith("_relu")

    def convert(b: Builder, x: Any, layer: Packed, *rest: Any) -> Any:
        scale, zero = rest[-2:]
        weight, quant = _stored(layer.weight), _quant(x)
        own = weight.quant
        if own is None:
            raise Unsupported("its weights are not quantised")
        array, value, single = weight.array, x.read(), False
        if layer.window["transposed"] or array.ndim > 4 or b.rank(value) > 4:
            sums = _convolved(b, real(b, x), layer)
            return whole(b, b.op("nn.relu", sums) if with_relu else sums, scale, zero)
        window = {key: list(layer.window[key]) for key in ("stride", "padding", "dilation")}
        if b.rank(value) == 3:
            single, value = True, b.unsqueeze(value, [2])
            array = array[:, :, None] if array.ndim == 3 else array
            for key, fill in (("stride", 1), ("padding", 0), ("dilation", 1)):
                window[key] = [fill, window[key][-1]]
        if any(window["padding"]):
            widths = [[0, 0], [0, 0], *[[p, p] for p in window["padding"]]]
            value = b.op("nn.pad", value, b.const(float(quant.zero), "float32"), pad_width=widths)
        conv = b.op(
            "qnn.conv2d",
            value,
            _weight(b, layer, array, own),
            *_zeros_and_scales(b, quant, own),
            strides=window["stride"],
            padding=[0, 0],
            dilation=window["dilation"],
            groups=int(layer.window["groups"]),
            channels=array.shape[0],
            kernel_size=array.shape[2:],
            out_dtype="int32",
        )
        result = _requantized(b, layer, conv, quant, own, scale, zero, with_relu)
        return Tensor(b.squeeze(result.value, [2]), result.quant) if single else result

    return convert


def _zeros_and_scales(b: Builder, x: Quant, w: Quant) -> list[Expr]:
    (x_scale, x_zero), (w_scale, w_zero) = operands(b, x), operands(b, w)
    return [x_zero, w_zero, x_scale, w_scale]


def _real_weight(b: Builder, layer: Packed) -> Expr:
    weight = _stored(layer.weight)
    array, quant = weight.array, weight.quant
    if quant is None:
        return b.const(array.astype(np.float32))
    shape = [1] * array.ndim
    shape[quant.axis if np.ndim(quant.scale) else 0] = -1
    return b.const(((array.astype(np.int32) - np.reshape(quant.zero, shape)) * np.reshape(quant.scale, shape)).astype(np.float32))


def _convolved(b: Builder, x: Expr, layer: Packed) -> Expr:
    """A convolution of real numbers. Weights of one axis are packed with a second axis of extent 1."""
    weight, window = _real_weight(b, layer), layer.window
    count = b.rank(x) - 2
    if b.rank(weight) > count + 2:
        weight = b.squeeze(weight, [2])
        window = {key: v[-count:] if isinstance(v, (list, tuple)) else v for key, v in window.items()}
    kernel = b.static_shape(weight)
    groups = int(window["groups"])
    attrs = {
        "strides": list(window["stride"]),
        "padding": list(window["padding"]) * 2,
        "dilation": list(window["dilation"]),
        "groups": groups,
        "kernel_size": kernel[2:],
    }
    if window["transposed"]:
        attrs |= {"output_padding": list(window["output_padding"]), "channels": kernel[1] * groups}
    else:
        attrs["channels"] = kernel[0]
    conv = b.op(f"nn.conv{count}d{'_transpose' if window['transposed'] else ''}", x, weight, **attrs)
    if layer.bias is not None:
        conv = b.op("nn.bias_add", conv, b.const(_stored(layer.bias).array), axis=1)
    return conv


def linear(name: str) -> Callable[..., Any]:
    with_relu = "_relu" in name

    def convert(b: Builder, x: Any, layer: Packed, scale: Any, zero: Any) -> Any:
        quant, own = _quant(x), _stored(layer.weight).quant
        if own is None:
            raise Unsupported("its weights are not quantised")
        value, array = x.read(), _stored(layer.weight).array
        rank = b.rank(value)
        flat = nn.flatten_front(b, value, rank - 1) if rank > 2 else value
        sums = b.op(
            "qnn.dense",
            flat,
            _weight(b, layer, array, own),
            *_zeros_and_scales(b, quant, own),
            units=array.shape[0],
            out_dtype="int32",
        )
        result = _requantized(b, layer, sums, quant, own, scale, zero, with_relu)
        return Tensor(nn.unflatten_front(b, result.value, value, rank - 1), result.quant) if rank > 2 else result

    return convert


def dynamic_linear(name: str) -> Callable[..., Any]:
    """Data is quantised by its own range; then both are real numbers again."""

    def convert(b: Builder, x: Tensor, layer: Packed, reduce_range: bool = False) -> Any:
        dense = dynamic_product(b, x.read(), layer, reduce_range)
        return Tensor(b.op("nn.relu", dense) if "_relu" in name else dense)

    return convert


def dynamic_product(b: Builder, value: Expr, given: Packed, reduce_range: bool = False) -> Expr:
    """Data times packed weights and the bias. Where the weights are whole numbers, data is quantised by its own range."""
    weight = _real_weight(b, given)
    if _stored(given.weight).quant is not None:
        value = _rounded(b, value, 127.0 if reduce_range else 255.0)
    rank = b.rank(value)
    flat = nn.flatten_front(b, value, rank - 1) if rank > 2 else value
    dense = b.op("nn.dense", flat, weight, units=b.extent(weight, 0))
    dense = nn.unflatten_front(b, dense, value, rank - 1) if rank > 2 else dense
    return dense if given.bias is None else b.op("add", dense, b.const(_stored(given.bias).array.astype(np.float32)))


def dynamic_convolution(name: str) -> Callable[..., Any]:
    """A convolution of data that is quantised by its own range; the result is rounded to the same numbers."""

    def convert(b: Builder, x: Tensor, layer: Packed, reduce_range: bool = False) -> Any:
        value = x.read()
        scale, zero = _range(b, value, 127.0 if reduce_range else 255.0)
        conv = _convolved(b, _at_steps(b, value, scale, zero, 255.0), layer)
        return Tensor(_at_steps(b, conv, scale, zero, 255.0))

    return convert


def _rounded(b: Builder, value: Expr, most: float) -> Expr:
    """Numbers as a quantisation by their range, which has 0 inside, leaves them."""
    return _at_steps(b, value, *_range(b, value, most), most)


def _range(b: Builder, value: Expr, most: float) -> tuple[Expr, Expr]:
    """The scale and the zero point of a tensor by its range, which has 0 inside."""
    low, high = b.op("minimum", b.op("min", value), 0.0), b.op("maximum", b.op("max", value), 0.0)
    scale = b.op("divide", b.op("subtract", high, low), most)
    scale = b.op("where", b.op("equal", scale, 0.0), b.op("ones_like", scale), scale)
    zero = b.op("clip", b.op("round", b.op("negative", b.op("divide", low, scale))), a_min=0.0, a_max=most)
    return scale, zero


def _at_steps(b: Builder, value: Expr, scale: Expr, zero: Expr, most: float) -> Expr:
    """Numbers rounded to those that whole numbers up to `most` stand for."""
    whole_steps = b.op("add", common.round_even(b, b.op("divide", value, scale)), zero)
    steps = b.op("clip", whole_steps, a_min=0.0, a_max=most)
    rounded: Expr = b.op("multiply", b.op("subtract", steps, zero), scale)
    return rounded


def binary(op: str, with_relu: bool = False) -> Callable[..., Any]:
    """qnn.add and qnn.mul."""

    def convert(b: Builder, x: Any, y: Any, scale: Any, zero: Any) -> Any:
        out = Quant.of(scale, zero)
        ends = [*operands(b, _quant(x)), *operands(b, _quant(y)), *operands(b, out)]
        result = b.op(op, x.read(), y.read(), *ends)
        return Tensor(relu(b, result, int(out.zero)) if with_relu else result, out)

    return convert


def _known_number(b: Builder, value: Any) -> float:
    """A number, or the element of a constant."""
    if isinstance(value, Tensor):
        value = value.read()
    return float(b.need(value, "its number").reshape(())) if isinstance(value, Expr) else float(value)


def with_scalar(function: Callable[..., Any], with_relu: bool = False) -> Callable[..., Any]:
    """A function of a quantised tensor and a number, in either order."""

    def convert(b: Builder, x: Any, number: Any) -> Any:
        if not isinstance(x, Tensor) or x.quant is None:
            x, number = number, x
        result = function(b, x, number)
        return Tensor(relu(b, result.read(), int(result.quant.zero)), result.quant) if with_relu else result

    return convert


def either(tensors: Callable[..., Any], scalar: Callable[..., Any]) -> Callable[..., Any]:
    """The overloads of two tensors, and of a tensor and a number."""
    return lambda b, *args: (tensors if len(args) > 2 else scalar)(b, *args)


def scalar_multiply(b: Builder, x: Any, factor: Any) -> Any:
    """A positive factor changes the scale only; a negative one reverses the whole numbers as well."""
    quant, factor = _quant(x), _known_number(b, factor)
    low, high = common.limits(b.dtype(x.value))
    if factor > 0:
        return Tensor(x.read(), Quant.of(quant.scale * factor, quant.zero))
    if factor == 0:
        return Tensor(b.op("zeros_like", x.read()), Quant.of(1.0, 0))
    reversed_ = b.op("subtract", b.const(low + high, "int32"), b.cast(x.read(), "int32"))
    return Tensor(b.cast(reversed_, b.dtype(x.value)), Quant.of(quant.scale * -factor, low + high - int(quant.zero)))


def scalar_add(b: Builder, x: Any, term: Any) -> Any:
    """The zero point moves; where it would leave the range of the element type, the scale and the numbers change, as in PyTorch."""
    quant, term = _quant(x), _known_number(b, term)
    zero, scale = int(quant.zero) - int(np.rint(term / quant.scale)), float(quant.scale)
    low, high = (int(v) for v in common.limits(b.dtype(x.value)))
    if low <= zero <= high:
        return Tensor(x.read(), Quant.of(scale, zero))
    if zero < low:
        out = Quant.of((high - zero) / (high - low) * scale, low)
    else:
        out = Quant.of((zero - low) / (high - low) * scale, high)
    return Tensor(at_scale(b, Tensor(x.read(), Quant.of(scale, zero)), out), out)


def concatenate(with_relu: bool) -> Callable[..., Any]:
    def convert(b: Builder, tensors: list[Any], dim: int, scale: Any = None, zero: Any = None) -> Any:
        out = _quant(tensors[0]) if scale is None else Quant.of(scale, zero)
        parts = []
        for t in tensors:
            _quant(t)
            parts.append(at_scale(b, t, out))
        joined = b.concat(parts, dim % b.rank(parts[0]))
        return Tensor(relu(b, joined, int(out.zero)) if with_relu else joined, out)

    return convert


def by_reals(function: Callable[..., Expr]) -> Callable[..., Any]:
    """A function of real numbers; the scale and the zero point of the result are its last arguments."""

    def convert(b: Builder, x: Any, *rest: Any) -> Any:
        *args, scale, zero = [a.read() if isinstance(a, Tensor) else a for a in rest]
        return whole(b, function(b, real(b, x), *args), scale, zero, b.dtype(x.value))

    return convert


def _softmax(b: Builder, x: Expr, dim: int) -> Expr:
    shares: Expr = b.op("nn.softmax", x, axis=dim)
    return shares


def _sigmoid(b: Builder, x: Expr) -> Expr:
    share: Expr = b.op("sigmoid", x)
    return share


def _layer_norm(b: Builder, x: Expr, shape: list[int], weight: Any, bias: Any, eps: float) -> Expr:
    return nn.layer_norm(b, x, b.rank(x) - len(shape), float(eps), weight, bias)


def batch_norm(with_relu: bool) -> Callable[..., Any]:
    def apply(b: Builder, x: Expr, weight: Any, bias: Any, mean: Any, variance: Any, eps: float) -> Expr:
        gamma = weight if weight is not None else b.op("ones_like", mean)
        beta = bias if bias is not None else b.op("zeros_like", mean)
        normalised = b.field(b.op("nn.batch_norm", x, gamma, beta, mean, variance, axis=1, epsilon=float(eps)), 0)
        return b.op("nn.relu", normalised) if with_relu else normalised

    return by_reals(apply)


def elu(b: Builder, x: Any, scale: Any, zero: Any, alpha: Any = 1.0, factor: Any = 1.0, inner: Any = 1.0) -> Any:
    return whole(b, nn.elu(b, real(b, x), float(alpha), float(factor), float(inner)), scale, zero)


def celu(b: Builder, x: Any, scale: Any, zero: Any, alpha: Any = 1.0) -> Any:
    return whole(b, nn.elu(b, real(b, x), float(alpha), 1.0, 1.0 / float(alpha)), scale, zero, b.dtype(x.value))


def product(b: Builder, x: Any, y: Any, scale: Any, zero: Any) -> Any:
    """The product of two quantised matrices."""
    return whole(b, nn.matmul(b, real(b, x), real(b, y)), scale, zero, b.dtype(x.value))


def _instance_norm(b: Builder, x: Expr, weight: Any, bias: Any, eps: float) -> Expr:
    normalised = nn.normalise(b, x, list(range(2, b.rank(x))), float(eps))
    return _scaled(b, normalised, weight, bias)


def _group_norm(b: Builder, x: Expr, groups: int, weight: Any, bias: Any, eps: float) -> Expr:
    parts = b.op("reshape", x, newshape=(0, groups, -1))
    return _scaled(b, b.reshape_to(nn.normalise(b, parts, [2], float(eps)), b.shape_of(x)), weight, bias)


def _scaled(b: Builder, x: Expr, weight: Any, bias: Any) -> Expr:
    """Channels times their weights, and their biases."""
    shape = [1, -1] + [1] * (b.rank(x) - 2)
    return nn.scale_and_shift(b, x, *(None if v is None else b.reshape(v, shape) for v in (weight, bias)))


def _prelu(b: Builder, x: Expr, weight: Expr) -> Expr:
    shape = [1, -1] + [1] * (b.rank(x) - 2) if b.shape(weight) != (1,) else [1] * b.rank(x)
    return nn.prelu(b, x, b.reshape(weight, shape))


def clipped(b: Builder, x: Any, most: float = 6.0) -> Any:
    """relu6 at the scale of its operand."""
    quant = _quant(x)
    ends = [int(quant.zero), int(np.rint(most / quant.scale)) + int(quant.zero)]
    dtype = b.dtype(x.value)
    clamped = b.op("maximum", x.read(), b.const(ends[0], dtype))
    return Tensor(b.op("minimum", clamped, b.const(min(ends[1], np.iinfo(dtype).max), dtype)), quant)


_LAYERS: dict[str, Callable[..., Any]] = {
    **{name: convolution(name) for d in (1, 2, 3) for name in (f"conv{d}d", f"conv{d}d_relu", f"conv_transpose{d}d")},
    **{name: linear(name) for name in ("linear", "linear_relu")},
    **{name: dynamic_linear(name) for name in ("linear_dynamic", "linear_relu_dynamic", "linear_dynamic_fp16")},
    **{f"batch_norm{d}{r}": batch_norm(bool(r)) for d in ("", "1d", "2d", "3d") for r in ("", "_relu")},
    **{
        f"{name}{r}": either(binary(f"qnn.{name}", bool(r)), with_scalar(function, bool(r)))
        for name, function in (("add", scalar_add), ("mul", scalar_multiply))
        for r in ("", "_relu")
    },
    **{
        f"{name}_scalar{r}": with_scalar(function, bool(r))
        for name, function in (("add", scalar_add), ("mul", scalar_multiply))
        for r in ("", "_relu")
    },
    **{f"{name}_dynamic": dynamic_convolution(name) for d in (1, 2, 3) for name in (f"conv{d}d", f"conv_transpose{d}d")},
    "celu": celu,
    "matmul": product,
    "instance_norm": by_reals(_instance_norm),
    "group_norm": by_reals(_group_norm),
    "prelu": by_reals(_prelu),
    "cat": concatenate(False),
    "cat_relu": concatenate(True),
    "hardswish": by_reals(nn.hard_swish),
    "leaky_relu": by_reals(lambda b, x, slope, inplace: b.op("nn.leaky_relu", x, alpha=float(slope))),
    "softmax": by_reals(_softmax),
    "sigmoid": by_reals(_sigmoid),
    "layer_norm": by_reals(_layer_norm),
    "elu": elu,
    "relu6": clipped,
    "dropout": lambda b, x, *rest: x,
    "embedding_byte": embedding,
    "embedding_bag_byte": embedding_bag,
    "embedding_4bit": partial(embedding, bits=4),
    "embedding_bag_4bit": partial(embedding_bag, bits=4),
    "embedding_bag_byte_rowwise_offsets": embedding_bag,
    **{f"embedding_bag_{n}bit_rowwise_offsets": partial(embedding_bag, bits=n) for n in (2, 4)},
}


def quantised_call(b: Builder, name: str, args: Sequence[Any], named: dict[str, Any] | None = None) -> Any:
    """The result of `quantized.name`. Raises `Unsupported`."""
    if name.startswith("embedding") and name.endswith("pack"):
        raise Unsupported("it packs or unpacks a table; a table that is packed before is possible")
    if "prepack" in name:
        return _prepack(name, args)
    if "unpack" in name:
        return unpacked(args[0])
    if name not in _LAYERS:
        raise Unsupported
    return _LAYERS[name](b, *args, **(named or {}))


#: The names of all layers.
LAYERS = tuple(sorted(_LAYERS))

__all__ = ["LAYERS", "packed", "quantised_call", "unpacked"]
