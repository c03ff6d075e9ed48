"""Random small quantised networks: all that the Ethos-U backend takes, in many layouts, shapes and scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, Tuple, TupleGetItem, const, var
from relaylang.ir.typed import typed
from relaylang.ops import get, make_attrs
from relaylang.typing import check

RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


def call(name: str, *args: Any, **attrs: Any) -> Call:
    """A checked call; numbers and arrays become constants."""
    op = get(name)
    operands = [a if isinstance(a, Expr) else Constant(a) if isinstance(a, np.ndarray) else const(a) for a in args]
    made = Call(op, operands, make_attrs(op.attrs, attrs) if op.attrs is not None else None)
    check(made)
    return made


class Builder:
    """Grows one network from one input; every choice comes from the seed. Tensors have one of `dtypes`."""

    def __init__(self, seed: int, dtypes: Sequence[str] = ("int8", "uint8")) -> None:
        self.dtypes = dtypes
        self.rng = np.random.default_rng(seed)
        self.layout = self.pick("NCHW", "NCHW", "NHWC")
        dtype = self.pick(*dtypes)
        sizes = self.input_sizes()
        self.x = var("x", shape=[sizes[a] for a in self.layout], dtype=dtype)
        check(self.x)
        self.value: Expr = self.x
        self.zero_point = self.zero(dtype)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both of them included."""
        return int(self.rng.integers(low, high + 1))

    def zero(self, dtype: str) -> int:
        """A zero point; that of int16 is 0."""
        return 0 if dtype == "int16" else self.number(*RANGE[dtype])

    def fitted(self, top: float, dtype: str) -> float:
        """The largest scale from the value's type to another: so much less where that is narrower."""
        return top / 256 if self.is_wide and dtype != "int16" else top

    def extent(self, axis: str) -> int:
        return self.value.checked_type.shape[self.layout.index(axis)]  # type: ignore[union-attr]

    @property
    def dtype(self) -> str:
        return self.value.checked_type.dtype  # type: ignore[union-attr]

    @property
    def is_wide(self) -> bool:
        return self.dtype == "int16"

    @property
    def sums(self) -> str:
        """A type for sums of products."""
        return self.pick("int32", "int64") if self.is_wide else "int32"

    # ---- parts

    def input_sizes(self) -> dict[str, int]:
        """The extents of the input by its axes."""
        return {"N": self.pick(1, 1, 1, 2), "C": self.number(1, 8), "H": self.number(6, 13), "W": self.number(6, 13)}

    def weights(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """A constant operand of a product."""
        low, high = RANGE[dtype]
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def scale(self, top: float, count: int | None = None) -> np.ndarray:
        return (self.rng.random(count) * top + top / 10).astype("float32") if count else np.float32(self.rng.random() * top + top / 10)

    def requantized(self, value: Expr, dtype: str, zero_point: int, top: float, axis: int, count: int) -> Expr:
        scale = self.scale(top, count if self.pick(0, 1) else None)
        rounding = {"rounding": self.pick("UPWARD", "TONEAREST")} if self.pick(0, 0, 1) else {}
        attrs = {"axis": axis, "out_dtype": dtype, **rounding}
        return call("qnn.requantize", value, scale, 0, np.float32(1), zero_point, **attrs)

    def limited(self, value: Expr, dtype: str) -> Expr:
        kind = self.pick("none", "none", "relu", "clip")
        if kind == "none":
            return value
        if kind == "relu":
            return call("nn.relu", value)
        low = self.number(RANGE[dtype][0], 0 if dtype == "int8" else 127)
        return call("clip", value, a_min=float(low), a_max=float(low + self.number(1, 120 if dtype != "int16" else 30000)))

    def behind_sum(self, value: Expr, axis: int, channels: int, terms: int, bias_shape: list[int]) -> None:
        """Bias, relu, requantize in one of its two forms, limits. The builder's value is still that in front of the sum."""
        most = 5000 << 8 * self.is_wide
        bias = self.rng.integers(-most, most, channels).astype(value.checked_type.dtype)  # type: ignore[union-attr]
        kind = self.pick("none", "bias_add", "add")
        if kind == "bias_add":
            value = call("nn.bias_add", value, bias, axis=axis)
        elif kind == "add":
            value = call("add", value, bias.reshape(bias_shape))
        if bias.dtype == np.int64 and self.pick(0, 1):
            self.value = self.shifted(value, bias_shape, terms)
            return
        if self.pick(0, 0, 1):
            value = call("nn.relu", value)
        dtype = self.pick(*self.dtypes)
        low, high = RANGE[dtype]
        self.zero_point = self.zero(dtype)
        top = self.fitted(0.02 / terms**0.5, dtype)
        if self.pick(0, 1):
            value = self.requantized(value, dtype, self.zero_point, top, axis, channels)
            self.value = self.limited(value, dtype)
        else:
            value = self.requantized(value, "int32", self.zero_point, top, axis, channels)
            self.value = call("cast", call("clip", value, a_min=float(low), a_max=float(high)), dtype=dtype)

    def shifted(self, value: Expr, shape: list[int], terms: int) -> Expr:
        """Sums of int64 times numbers of 15 bits, one or those of `shape`, shifted to the right, as int16."""
        self.zero_point = 0
        given = self.pick(shape, [1] * len(shape))
        shift = np.full(given, 21 + int(np.log2(terms)) // 2) + self.rng.integers(-1, 2, given)
        value = call("multiply", value, self.rng.integers(1 << 14, 1 << 15, given))
        value = call("right_shift", call("add", value, np.int64(1) << shift - 1), shift)
        return call("cast", call("clip", value, a_min=-32768.0, a_max=32767.0), dtype="int16")

    # ---- layers

    def conv(self, depthwise: bool = False) -> None:
        channels = self.extent("C")
        if self.pick(0, 0, 1):
            before = self.number(0, 1)
            widths = [[0, 0] if a in "NC" else [before, 1] for a in self.layout]
            self.value = call("nn.pad", self.value, np.float32(self.zero_point), pad_width=widths)
        kernel = [self.number(1, min(3, self.extent(a))) for a in "HW"]
        dilation = [self.pick(1, 2), 1]
        if (kernel[0] - 1) * dilation[0] >= self.extent("H"):
            dilation = [1, 1]
        if depthwise:
            multiplier = self.pick(1, 1, 2)
            out, groups = channels * multiplier, channels
            layout = "OIHW" if self.layout == "NCHW" or channels == 1 else "HWOI"
            sizes = {"O": out, "I": 1} if layout == "OIHW" else {"O": channels, "I": multiplier}
        else:
            out, groups, layout = self.number(1, 8), 1, self.pick("OIHW", "HWIO", "OHWI")
            sizes = {"O": out, "I": channels}
        sizes.update(H=kernel[0], W=kernel[1])
        dtype = self.pick("int8", "int8", "uint8")
        weight = self.weights([sizes[a] for a in layout], dtype)
        summed = call(
            "qnn.conv2d",
            self.value,
            weight,
            self.zero_point,
            self.pick(0, 0, 3),
            np.float32(0.1),
            np.float32(0.1),
            strides=[self.number(1, 3), self.number(1, 3)],
            padding=[self.number(0, 1) for _ in range(4)],
            dilation=dilation,
            groups=groups,
            channels=out,
            kernel_size=kernel,
            data_layout=self.layout,
            kernel_layout=layout,
            out_dtype=self.sums,
        )
        terms = kernel[0] * kernel[1] * (1 if depthwise else channels)
        self.behind_sum(summed, self.layout.index("C"), out, terms, [out if a == "C" else 1 for a in self.layout])

    def grouped(self) -> None:
        """A convolution whose outputs have half of the inputs each."""
        channels = self.extent("C")
        if channels % 2 or channels < 4:
            return
        out, layout = 2 * self.number(1, 4), self.pick("OIHW", "HWIO")
        sizes = {"O": out, "I": channels // 2, "H": self.number(1, 2), "W": self.number(1, 2)}
        self.product("qnn.conv2d", sizes, layout, out, sizes["H"] * sizes["W"] * sizes["I"], groups=2)

    def transposed(self) -> None:
        out, layout = self.number(1, 6), self.pick("IOHW", "HWIO", "OIHW")
        sizes = {"O": out, "I": self.extent("C"), "H": self.number(2, 4), "W": self.number(2, 4)}
        strides = self.pick([1, 1], [2, 2], [2, 2], [2, 1], [3, 3])
        padding = [self.number(0, 1) for _ in range(4)]
        extra = [self.number(0, min(1, stride - 1)) for stride in strides]
        terms = sizes["H"] * sizes["W"] * sizes["I"] // (strides[0] * strides[1])
        self.product("qnn.conv2d_transpose", sizes, layout, out, terms, strides=strides, padding=padding, output_padding=extra)

    def product(self, name: str, sizes: dict[str, int], layout: str, out: int, terms: int, **attrs: Any) -> None:
        """A convolution of this kind, and the calls behind its sums."""
        weight = self.weights([sizes[axis] for axis in layout], "int8")
        how = {"strides": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, **attrs}
        summed = call(
            name,
            self.value,
            weight,
            self.zero_point,
            0,
            np.float32(0.1),
            np.float32(0.1),
            **how,
            channels=out,
            kernel_size=[sizes["H"], sizes["W"]],
            data_layout=self.layout,
            kernel_layout=layout,
            out_dtype=self.sums,
        )
        shape = [out if axis == "C" else 1 for axis in self.layout]
        self.behind_sum(summed, self.layout.index("C"), out, max(terms, 1), shape)

    def depthwise(self) -> None:
        self.conv(depthwise=True)

    def window(self) -> dict[str, Any]:
        sizes = [self.number(1, min(3, self.extent(a))) for a in "HW"]
        return {"pool_size": sizes, "strides": [self.number(1, 3), self.number(1, 3)], "layout": self.layout}

    def max_pool(self) -> None:
        window = self.window()
        if min(window["pool_size"]) > 1:
            window["padding"] = [self.number(0, 1) for _ in range(4)]
        self.value = call("nn.max_pool2d", self.value, **window, ceil_mode=bool(self.pick(0, 1)))

    def average(self) -> None:
        kind = self.pick("global", "plain", *(["quantised"] if not self.is_wide else []))
        dtype, zero_point = self.dtype, self.zero_point
        if kind == "quantised":
            scale = np.float32(0.1)
            self.value = call("qnn.avg_pool2d", self.value, scale, zero_point, scale, zero_point, **self.window())
            return
        wide = call("cast", self.value, dtype="int32")
        if kind == "global":
            average = call("nn.global_avg_pool2d", wide, layout=self.layout)
        else:
            window = self.window()
            if min(window["pool_size"]) > 1 and self.pick(0, 1):
                window.update(padding=[1, 1], count_include_pad=True)
            average = call("nn.avg_pool2d", wide, **window)
        if self.pick(0, 1):
            self.value = call("cast", average, dtype=dtype)
        else:
            self.value = call(
                "qnn.requantize", average, self.scale(0.9), zero_point, np.float32(1), zero_point, axis=1, out_dtype=dtype
            )

    def add(self) -> None:
        low, high = RANGE[self.dtype]
        other = self.pick(self.value, call("clip", self.value, a_min=float(low + 3), a_max=float(high - 3)))
        result = self.zero(self.dtype)
        scales = [self.scale(1.0), self.pick(np.float32(0.5), self.scale(1.0))]
        total = call(
            "qnn.add", self.value, other, scales[0], self.zero_point, scales[1], self.zero(self.dtype), np.float32(0.5), result
        )
        self.value, self.zero_point = self.limited(total, self.dtype), result

    def concatenate(self) -> None:
        other = call("nn.max_pool2d", self.value, pool_size=[1, 1], layout=self.layout)
        if self.pick(0, 1):
            self.value = call("concatenate", Tuple([self.value, other, self.value]), axis=self.number(1, 3))
            return
        zero_points = Tuple([const(self.zero_point), const(self.zero_point)])
        scales = [self.scale(1.0), self.scale(1.0)]
        self.value = call(
            "qnn.concatenate",
            Tuple([self.value, other]),
            Tuple([const(s) for s in scales]),
            zero_points,
            self.pick(np.float32(0.3), scales[0]),
            self.zero_point,
            axis=self.number(1, 3),
        )

    def requantize(self) -> None:
        dtype = self.pick(*self.dtypes)
        axis = self.number(1, 3)
        count = self.value.checked_type.shape[axis]  # type: ignore[union-attr]
        top = self.fitted(1.5, dtype)
        scale = self.scale(top, count) if self.pick(0, 1) else self.scale(top)
        result = self.zero(dtype)
        value = call("qnn.requantize", self.value, scale, self.zero_point, np.float32(1), result, axis=axis, out_dtype=dtype)
        self.value, self.zero_point = self.limited(value, dtype), result

    def pad(self) -> None:
        widths = [[0, 0], [0, 1], [1, 0], [1, 1]]
        self.value = call("nn.pad", self.value, np.float32(self.zero_point), pad_width=widths)

    def dense(self) -> None:
        if self.pick(0, 1):
            flat = call("nn.batch_flatten", self.value)
        else:
            flat = call("reshape", self.value, newshape=[self.value.checked_type.shape[0], -1])  # type: ignore[union-attr]
        inputs, units = flat.checked_type.shape[1], self.number(1, 11)  # type: ignore[union-attr]
        weight = self.weights((units, inputs), "int8")
        summed = call(
            "qnn.dense", flat, weight, self.zero_point, 0, np.float32(0.1), np.float32(0.1), units=units, out_dtype=self.sums
        )
        if self.pick(0, 1, 1) or summed.checked_type.dtype == "int64":  # type: ignore[union-attr]
            self.behind_sum(summed, 1, units, inputs, [1, units])
        else:
            self.value = summed

    # ---- element-wise

    def function(self) -> None:
        """A function of each element, quantised or on real numbers, alone or in a chain."""
        names = ("qnn.sigmoid", "qnn.tanh", "qnn.exp", "qnn.rsqrt", "qnn.abs", "qnn.hardswish", "leaky", "chain")
        name = "chain" if self.is_wide else self.pick(*names)
        top = self.fitted(0.1, "int8")
        scales = self.scale(top), self.scale(top)
        result = self.zero(self.dtype)
        if name == "leaky":
            self.value = call("qnn.leaky_relu", self.value, scales[0], self.zero_point, scales[1], result, alpha=0.3)
        elif name == "chain":
            real = call("qnn.dequantize", self.value, scales[0], self.zero_point, out_dtype="float32", axis=-1)
            gate = call("clip", call("add", real, np.float32(3)), a_min=0.0, a_max=6.0)
            real = call("multiply", real, self.pick(gate, call("sigmoid", real), np.float32(1.5)))
            self.value = call("qnn.quantize", real, scales[1], result, out_dtype=self.dtype, axis=-1)
        else:
            self.value = call(name, self.value, scales[0], self.zero_point, scales[1], result)
        self.zero_point = result

    def binary(self) -> None:
        """qnn.subtract, qnn.mul or an extreme of the value and another one, which may be a constant or broadcast."""
        low, high = RANGE[self.dtype]
        shape = self.value.checked_type.shape  # type: ignore[union-attr]
        shape = self.pick(shape, shape[1:], [self.pick(1, d) for d in shape])
        other = self.pick(
            self.value,
            call("clip", self.value, a_min=float(low + 3), a_max=float(high - 3)),
            self.rng.integers(low, high + 1, shape).astype(self.dtype),
        )
        name = self.pick("qnn.subtract", "qnn.mul", "minimum", "maximum")
        operands = [self.value, other] if self.pick(0, 1) else [other, self.value]
        if name.startswith("qnn."):
            zero_points = [self.zero_point, self.zero(self.dtype), self.zero(self.dtype)]
            tops = [0.5, 0.5, 5e3 if self.is_wide and name == "qnn.mul" else 0.5]
            numbers = [n for top, zero_point in zip(tops, zero_points) for n in (self.scale(top), zero_point)]
            self.value, self.zero_point = self.limited(call(name, *operands, *numbers), self.dtype), zero_points[2]
        else:
            self.value = self.limited(call(name, *operands), self.dtype)

    # ---- movement

    def slice(self) -> None:
        shape = self.value.checked_type.shape  # type: ignore[union-attr]
        begin = [self.number(0, min(2, d - 1)) for d in shape]
        end = [self.number(b + 1, d) if self.pick(0, 1) else d for b, d in zip(begin, shape)]
        strides = [self.pick(1, 1, 1, 2, 3) for _ in shape]
        self.value = call("strided_slice", self.value, begin=begin, end=end, strides=strides, axes=None)

    def split(self) -> None:
        """Two or three parts, which are scaled apart and joined in another order."""
        axis = self.number(1, 3)
        extent = self.value.checked_type.shape[axis]  # type: ignore[union-attr]
        if extent < 3:
            return
        at = sorted(self.rng.choice(np.arange(1, extent), self.number(1, 2), replace=False).tolist())
        whole = call("split", self.value, indices_or_sections=tuple(at), axis=axis)
        parts = [typed(TupleGetItem(whole, i), ty) for i, ty in enumerate(whole.checked_type.fields)]  # type: ignore[union-attr]
        scale, zero = self.scale(0.5), self.zero_point
        parts[0] = call("qnn.add", parts[0], parts[0], scale, zero, scale, zero, self.scale(0.5), zero)
        self.value = call("concatenate", Tuple(parts[::-1]), axis=axis)

    def move(self) -> None:
        """A mirrored border, repetitions, the other direction, or other axes and back again with a layer between."""
        kind = self.pick("border", "tile", "repeat", "reverse", "transpose", "resize", "take")
        axis = self.number(1, 3)
        widths = [[0, 0], [0, 0], [self.number(0, 1), 1], [1, self.number(0, 1)]]
        if kind == "border":
            mode, shape = self.pick("SYMMETRIC", "REFLECT"), self.value.checked_type.shape  # type: ignore[union-attr]
            self.value = self.pick(
                call("nn.mirror_pad", self.value, mode=mode if min(shape[2:]) > 1 else "SYMMETRIC", pad_width=widths),
                call("nn.pad", self.value, 0, pad_mode=self.pick("edge", "reflect"), pad_width=widths),
            )
        elif kind == "tile":
            self.value = call("tile", self.value, reps=[1, *[self.number(1, 2) for _ in "CHW"]])
        elif kind == "repeat":
            self.value = call("repeat", self.value, repeats=self.number(2, 3), axis=axis)
        elif kind == "reverse":
            self.value = call("reverse", self.value, axis=axis)
        elif kind == "take":
            extent = self.value.checked_type.shape[axis]  # type: ignore[union-attr]
            self.value = call("take", self.value, self.rng.integers(0, extent, 4).astype("int32"), axis=axis)
        elif kind == "transpose":
            self.value = call("transpose", self.value, axes=[0, *(self.rng.permutation(3) + 1).tolist()])
        else:
            modes = ("asymmetric", "half_pixel", "align_corners")
            size = [self.extent(a) * 2 if self.pick(0, 1) else self.number(3, 14) for a in "HW"]
            self.value = call(
                "image.resize2d",
                self.value,
                size=size,
                layout=self.layout,
                method="nearest_neighbor",
                roi=[0.0] * 4,
                coordinate_transformation_mode=self.pick(*modes),
                rounding_method=self.pick("floor", "round", "ceil"),
            )

    def reduce(self) -> None:
        """Numbers combined along axes, which stay."""
        axes = self.pick([2], [3], [1], [2, 3], [1, 2], [1, 3])
        name = self.pick("sum", "mean", "max", "min")
        if name in ("max", "min"):
            self.value = call(name, self.value, axis=axes, keepdims=True, exclude=False)
            return
        made = call(name, call("cast", self.value, dtype="int32"), axis=axes, keepdims=True, exclude=False)
        self.value = call(
            "qnn.requantize", made, self.scale(0.1), self.zero_point, np.float32(1), self.zero_point, axis=1, out_dtype=self.dtype
        )


LAYERS = ("conv", "conv", "depthwise", "max_pool", "average", "add", "concatenate", "requantize", "pad")
#: Layers of later networks, whose seeds are their own.
FURTHER = ("function", "binary", "slice", "split", "move", "reduce", "grouped", "transposed", "add")


#: Layers of networks of int16.
WIDE = tuple(dict.fromkeys((*LAYERS, *FURTHER)))


def random_network(seed: int, layers: Sequence[str] = LAYERS) -> Function:
    """A network of one to four layers; the input is `%x`, int8 or uint8, for `WIDE` layers mostly int16."""
    builder = Builder(seed, ("int16", "int16", "int8")) if layers is WIDE else Builder(seed)
    for _ in range(builder.number(1, 3)):
        if min(builder.extent("H"), builder.extent("W")) < 2:
            break
        getattr(builder, builder.pick(*layers))()
    if builder.pick(0, 1):
        builder.dense()
    made = Function([builder.x], builder.value)
    check(made)
    return made


def residual_network() -> Function:
    """Three residual blocks, of which two halve the image, and a dense layer: int8, NHWC."""
    rng = np.random.default_rng(0)
    zero = -5

    def requantized(summed: Expr, terms: int, axis: int) -> Expr:
        channels = summed.checked_type.shape[axis]  # type: ignore[union-attr]
        biased = call("nn.bias_add", summed, rng.integers(-3000, 3000, channels).astype("int32"), axis=axis)
        scale = (rng.uniform(0.5, 1, channels) * 0.02 / terms**0.5).astype(np.float32)
        return call("qnn.requantize", biased, scale, 0, np.float32(1), zero, axis=axis, out_dtype="int8")

    def conv(value: Expr, outputs: int, size: int, stride: int) -> Expr:
        inputs = value.checked_type.shape[3]  # type: ignore[union-attr]
        weight = rng.integers(-127, 128, (size, size, inputs, outputs)).astype("int8")
        summed = call(
            "qnn.conv2d",
            value,
            weight,
            zero,
            0,
            np.float32(0.1),
            np.float32(0.1),
            strides=[stride] * 2,
            padding=[size // 2] * 4,
            channels=outputs,
            kernel_size=[size] * 2,
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_dtype="int32",
        )
        return requantized(summed, size * size * inputs, 3)

    def positive(value: Expr) -> Expr:
        return call("clip", value, a_min=float(zero), a_max=127.0)

    x = var("x", shape=[1, 32, 32, 3], dtype="int8")
    check(x)
    value = positive(conv(x, 16, 3, 1))
    for outputs, stride in ((16, 1), (32, 2), (64, 2)):
        beside = value if stride == 1 else conv(value, outputs, 1, stride)
        inner = conv(positive(conv(value, outputs, 3, stride)), outputs, 3, 1)
        scales = [np.float32(s) for s in (0.1, 0.07, 0.12)]
        operands = [inner, beside, scales[0], zero, scales[1], zero, scales[2], zero]
        value = positive(call("qnn.add", *operands))
    mean = call("nn.global_avg_pool2d", call("cast", value, dtype="int32"), layout="NHWC")
    flat = call("reshape", call("cast", mean, dtype="int8"), newshape=[1, -1])
    weight = rng.integers(-127, 128, (10, 64)).astype("int8")
    summed = call("qnn.dense", flat, weight, zero, 0, np.float32(0.1), np.float32(0.1), units=10, out_dtype="int32")
    made = Function([x], requantized(summed, 64, 1))
    check(made)
    return made


def random_input(network: Function, seed: int) -> np.ndarray:
    ty = network.params[0].type_annotation
    low, high = RANGE[ty.dtype]  # type: ignore[union-attr]
    return np.random.default_rng(seed).integers(low, high + 1, ty.shape).astype(ty.dtype)  # type: ignore[union-attr]


def fields(value: Any) -> list[np.ndarray]:
    """The tensors of a result: one, or those of a tuple."""
    return [np.asarray(field) for field in value] if isinstance(value, (tuple, list)) else [np.asarray(value)]
