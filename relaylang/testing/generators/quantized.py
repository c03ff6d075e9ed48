"""Random quantized programs: floats between dequantize and quantize, the operators of the qnn dialect, layers of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.ir import Expr, IRModule, TensorType, Tuple, Var, const
from relaylang.ops.build import op_call
from relaylang.testing.generators.networks import Maker, module


def scale(value: float) -> Any:
    return const(np.float32(value))


def zero(value: int) -> Any:
    return const(np.int32(value))


def real(x: Expr, by: Expr, point: Expr) -> Expr:
    return op_call("qnn.dequantize", [x, by, point], out_dtype="float32")


class Fake(Maker):
    """Floats between `qnn.dequantize` and `qnn.quantize`."""

    def module(self, size: int = 4) -> IRModule:
        self.dtype = self.one("int8", "uint8")
        x = Var("x", TensorType((1, 4, 6, 6), self.dtype))
        value: Expr = self.real(x)
        shape: tuple[int, ...] = (1, 4, 6, 6)
        for _ in range(size):
            value, shape = self.step(value, shape)
        quantized = op_call("qnn.quantize", [value, scale(self.one(0.1, 0.25)), zero(self.one(0, 5))], out_dtype=self.dtype)
        if self.rng.random() < 0.2:
            quantized = op_call("nn.relu", [real(quantized, scale(0.1), zero(0))])
        return module([x], quantized)

    def real(self, x: Expr) -> Expr:
        return real(x, scale(self.one(0.05, 0.125)), zero(self.one(0, 3)))

    def again(self, x: Expr) -> Expr:
        """Through integers and back."""
        point = zero(self.one(0, 5))
        by = scale(self.one(0.1, 0.0625))
        return real(op_call("qnn.quantize", [x, by, point], out_dtype=self.dtype), by, point)

    def step(self, x: Expr, s: tuple[int, ...]) -> tuple[Expr, tuple[int, ...]]:
        kinds = ["relu", "clip", "add", "mul", "reshape", "activation", "again", "sub"]
        if len(s) == 4:
            kinds += ["conv", "conv", "pool", "mean", "pad", "concat", "transpose", "bias"]
        if len(s) == 2:
            kinds += ["dense", "dense"]
        match self.one(*kinds):
            case "relu":
                return op_call("nn.relu", [x]), s
            case "clip":
                return op_call("clip", [x], a_min=0.0, a_max=6.0), s
            case "add":
                return op_call("add", [x, self.again(x)]), s
            case "sub":
                return op_call("subtract", [x, op_call("nn.relu", [x])]), s
            case "mul":
                return op_call("multiply", [x, self.again(x)]), s
            case "reshape":
                n = int(np.prod(s))
                return op_call("reshape", [x], newshape=[1, n]), (1, n)
            case "activation":
                x = self.again(x)
                return self.again(op_call(self.one("sigmoid", "tanh", "exp", "erf"), [x])), s
            case "conv":
                out, k = self.one(3, 4), self.one(1, 3)
                k = k if min(s[2:]) >= k else 1
                w = real(self.integers(out, s[1], k, k), scale(0.02), zero(0))
                layer = op_call("nn.conv2d", [self.again(x), w], kernel_size=[k, k], channels=out, padding=[k // 2] * 4)
                return layer, (1, out, *s[2:])
            case "bias":
                b = real(self.integers(s[1], dtype="int32"), scale(0.01), zero(0))
                return op_call("nn.bias_add", [x, b]), s
            case "dense":
                units = self.one(3, 5)
                w = real(self.integers(units, s[1]), scale(0.02), zero(0))
                return op_call("nn.dense", [self.again(x), w], units=units), (1, units)
            case "pool":
                if min(s[2:]) < 2:
                    return x, s
                name = self.one("nn.max_pool2d", "nn.avg_pool2d")
                return op_call(name, [x], pool_size=[2, 2], strides=[2, 2]), (*s[:2], s[2] // 2, s[3] // 2)
            case "mean":
                return op_call("nn.global_avg_pool2d", [x]), (*s[:2], 1, 1)
            case "pad":
                layer = op_call("nn.pad", [x, const(np.float32(0))], pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]])
                return layer, (*s[:2], s[2] + 1, s[3] + 1)
            case "concat":
                return op_call("concatenate", [Tuple([x, self.again(x)])], axis=1), (s[0], 2 * s[1], *s[2:])
            case "transpose":
                return op_call("transpose", [x], axes=[0, 1, 3, 2]), (*s[:2], s[3], s[2])
        return self.again(x), s


class Qnn(Maker):
    """Operators of the qnn dialect in a row."""

    def module(self, size: int = 4) -> IRModule:
        self.dtype = self.one("int8", "uint8")
        x = Var("x", TensorType((1, 4, 6, 6), self.dtype))
        value: Expr = x
        shape: tuple[int, ...] = (1, 4, 6, 6)
        for _ in range(size):
            value, shape = self.step(value, shape)
        if self.rng.random() < 0.5:
            value = real(value, scale(0.05), zero(1))
        return module([x], value)

    def requantize(self, x: Expr, channels: int = 0) -> Expr:
        by = const(np.array([0.01 * (i + 1) for i in range(channels)], "float32")) if channels else scale(0.02)
        return op_call(
            "qnn.requantize",
            [x, by, zero(0), scale(self.one(0.5, 0.3)), zero(self.one(0, 4))],
            axis=1,
            rounding=self.one("UPWARD", "TONEAREST"),
            compute_dtype=self.one("int64", "float32", "int64"),
            out_dtype=self.dtype,
        )

    def step(self, x: Expr, s: tuple[int, ...]) -> tuple[Expr, tuple[int, ...]]:
        a, b, c = scale(self.one(0.1, 0.05)), scale(0.07), scale(self.one(0.2, 0.11))
        za, zb, zc = zero(self.one(0, 3)), zero(self.one(0, 2)), zero(self.one(0, 7))
        kinds = ["add", "subtract", "mul", "round", "unary", "relu", "dense", *["softmax"] * (self.dtype == "int8")]
        if len(s) == 4:
            kinds += ["conv", "conv", "conv", "concat", "transposed", "average", "depthwise"]
        match self.one(*kinds):
            case "add" | "subtract" | "mul" as name:
                other = op_call("nn.relu", [x]) if self.rng.random() < 0.5 else self.integers(*s, dtype=self.dtype)
                return op_call(f"qnn.{name}", [x, other, a, za, b, zb, c, zc]), s
            case "round":
                floats = real(x, a, za)
                return op_call("qnn.quantize", [floats, b, zb], out_dtype=self.dtype), s
            case "unary":
                name = self.one("tanh", "sigmoid", "exp", "sqrt", "rsqrt", "erf", "abs", "log")
                return op_call(f"qnn.{name}", [x, a, za, c, zc]), s
            case "relu":
                if self.rng.random() < 0.5:
                    return op_call("qnn.leaky_relu", [x, a, za, c, zc], alpha=0.25), s
                return op_call("nn.relu", [x]), s
            case "softmax":
                return op_call("qnn.softmax", [x, scale(0.1), zero(0), scale(1 / 256), zero(-128)], axis=-1), s
            case "dense":
                n, units = int(np.prod(s)), self.one(3, 4)
                flat = op_call("reshape", [x], newshape=[1, n])
                sums = op_call("qnn.dense", [flat, self.integers(units, n), za, zero(0), a, b], units=units, out_dtype="int32")
                return self.requantize(op_call("nn.bias_add", [sums, self.integers(units, dtype="int32")])), (1, units)
            case "conv" | "depthwise" as kind:
                k, groups = self.one(1, 3), s[1] if kind == "depthwise" else 1
                k = k if min(s[2:]) >= k else 1
                out = s[1] if kind == "depthwise" else self.one(3, 4)
                w = self.integers(out, s[1] // groups, k, k, dtype=self.one("int8", self.dtype))
                p = self.one(0, k // 2)
                sums = op_call(
                    "qnn.conv2d",
                    [x, w, za, zero(self.one(0, 0, 2)), a, b],
                    kernel_size=[k, k],
                    channels=out,
                    groups=groups,
                    padding=[p] * 4,
                    out_dtype="int32",
                )
                biased = op_call("nn.bias_add", [sums, self.integers(out, dtype="int32")])
                channels = out if self.rng.random() < 0.3 else 0
                return self.requantize(biased, channels), (1, out, *[d + 2 * p - k + 1 for d in s[2:]])
            case "transposed":
                w = self.integers(s[1], 3, 3, 3, dtype="int8")
                sums = op_call(
                    "qnn.conv2d_transpose",
                    [x, w, za, zero(0), a, b],
                    kernel_size=[3, 3],
                    channels=3,
                    padding=[1, 1, 1, 1],
                    kernel_layout="IOHW",
                    out_dtype="int32",
                )
                return self.requantize(sums), (1, 3, *s[2:])
            case "average":
                if min(s[2:]) < 2:
                    return x, s
                pooled = op_call(
                    "qnn.avg_pool2d", [x, a, za, c, zc], pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], dilation=[1, 1]
                )
                return pooled, (*s[:2], s[2] // 2, s[3] // 2)
        two = [x, op_call("nn.relu", [x])]
        sums = op_call("qnn.concatenate", [Tuple(two), Tuple([a, b]), Tuple([za, zb]), c, zc], axis=1)
        return sums, (s[0], 2 * s[1], *s[2:])


class Layers(Maker):
    """Quantized layers as importers write them, NHWC, for the accelerators' tables."""

    def module(self, size: int = 5) -> IRModule:
        shape: tuple[int, ...] = (1, 8, 8, 4)
        x = Var("x", TensorType(shape, "int8"))
        value: Expr = x
        for _ in range(size):
            value, shape = self.step(value, shape)
        return module([x], value)

    def requantize(self, x: Expr, axis: int = 3) -> Expr:
        requantized = op_call(
            "qnn.requantize", [x, scale(0.0001), zero(0), scale(self.one(0.5, 0.3)), zero(self.one(0, 4))], axis=axis, out_dtype="int8"
        )
        if self.rng.random() < 0.5:
            requantized = op_call("clip", [requantized], a_min=float(self.one(0, -128)), a_max=127.0)
        return requantized

    def step(self, x: Expr, s: tuple[int, ...]) -> tuple[Expr, tuple[int, ...]]:
        kinds = ["add", "mul", "softmax"]
        if len(s) == 4:
            kinds += ["conv", "conv", "conv", "depthwise", "max", "average", "flat", "pad"]
        else:
            kinds += ["dense"] * 4
        a, b, c = scale(0.1), scale(0.07), scale(0.2)
        match self.one(*kinds):
            case "conv" | "depthwise" as kind:
                k = self.one(1, 3) if min(s[1:3]) >= 3 else 1
                groups = s[3] if kind == "depthwise" else 1
                out, p, step = groups if groups > 1 else self.one(4, 8), self.one(0, k // 2), self.one(1, 1, 2)
                w = self.integers(k, k, s[3], 1) if groups > 1 else self.integers(k, k, s[3], out)
                layout = "HWOI" if groups > 1 else "HWIO"
                if p and self.rng.random() < 0.5:
                    x = op_call("nn.pad", [x, const(np.float32(0))], pad_width=[[0, 0], [p, p], [p, p], [0, 0]])
                    s, p = (s[0], s[1] + 2 * p, s[2] + 2 * p, s[3]), 0
                sums = op_call(
                    "qnn.conv2d",
                    [x, w, zero(0), zero(0), a, b],
                    kernel_size=[k, k],
                    channels=out,
                    groups=groups,
                    padding=[p] * 4,
                    strides=[step] * 2,
                    data_layout="NHWC",
                    kernel_layout=layout,
                    out_dtype="int32",
                )
                if self.rng.random() < 0.8:
                    sums = op_call("nn.bias_add", [sums, self.integers(out, dtype="int32")], axis=3)
                return self.requantize(sums), (s[0], *[(d + 2 * p - k) // step + 1 for d in s[1:3]], out)
            case "max":
                if min(s[1:3]) < 2:
                    return x, s
                pooled = op_call("nn.max_pool2d", [x], pool_size=[2, 2], strides=[2, 2], layout="NHWC")
                return pooled, (s[0], s[1] // 2, s[2] // 2, s[3])
            case "average":
                if min(s[1:3]) < 2:
                    return x, s
                wide = op_call("cast", [x], dtype="int32")
                pooled = op_call("nn.avg_pool2d", [wide], pool_size=[2, 2], strides=[2, 2], layout="NHWC")
                return op_call("cast", [pooled], dtype="int8"), (s[0], s[1] // 2, s[2] // 2, s[3])
            case "flat":
                n = int(np.prod(s))
                return op_call("reshape", [x], newshape=[1, n]), (1, n)
            case "pad":
                width = [[0, 0], [1, 0], [0, 1], [0, 0]]
                return op_call("nn.pad", [x, const(np.float32(0))], pad_width=width), (s[0], s[1] + 1, s[2] + 1, s[3])
            case "dense":
                units = self.one(4, 6)
                w = self.integers(units, s[1])
                sums = op_call("qnn.dense", [x, w, zero(0), zero(0), a, b], units=units, out_dtype="int32")
                if self.rng.random() < 0.8:
                    sums = op_call("nn.bias_add", [sums, self.integers(units, dtype="int32")])
                return self.requantize(sums, 1), (1, units)
            case "add" | "mul" as name:
                other = op_call("nn.relu", [x]) if self.rng.random() < 0.5 else self.integers(*s)
                return op_call(f"qnn.{name}", [x, other, a, zero(0), b, zero(1), c, zero(2)]), s
        floats = real(x, scale(0.05), zero(0))
        soft = op_call("nn.softmax", [floats])
        return op_call("qnn.quantize", [soft, scale(1 / 256), zero(-128)], out_dtype="int8"), s
