"""Random networks of images and features, their weights as constants; quantized ones; ones with operands that are shapes.

Every class makes one module of a seed. It applies layers to a pool of values until there are enough, and joins the last
results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.ir import Constant, Expr, Function, IRModule, TensorType, Tuple, TupleGetItem, Var, const
from relaylang.ops.build import op_call
from relaylang.typing import infer


def module(params: list[Var], body: Expr) -> IRModule:
    mod = IRModule.from_expr(Function(params, body))
    wrong = [d for d in infer(mod) if d.severity == "error"]
    assert wrong == [], "\n".join(map(str, wrong))
    return mod


class Maker:
    """Values with their shapes, by the rank of what they are."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def floats(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Constant:
        steps = self.numbers.integers(round(low * 16), round(high * 16) + 1, shape)
        return const((steps / 16).astype("float32"))

    def integers(self, *shape: int, dtype: str = "int8", bound: int = 100) -> Constant:
        low = 0 if dtype.startswith("u") else -bound
        return const(self.numbers.integers(low, bound, shape), dtype)

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)


class Image(Maker):
    """Convolutions and their surroundings on `float32[1, C, H, W]`; `layers` are the methods that it takes from.

    A value is kept with its shape.
    """

    LAYERS = (
        "conv",
        "conv",
        "conv",
        "depthwise",
        "bias",
        "relu",
        "norm",
        "dropout",
        "scale",
        "residual",
        "pool",
        "pad",
        "activation",
        "concat",
        "atrous",
    )

    def __init__(self, seed: int, layers: Sequence[str] | None = None) -> None:
        super().__init__(seed)
        self.layers = layers or self.LAYERS

    def module(self, size: int = 8) -> IRModule:
        shape: tuple[int, ...] = (1, self.one(3, 4, 8), 8, 8)
        x = Var("x", TensorType(shape))
        pool: list[tuple[Expr, tuple[int, ...]]] = [(x, shape)]
        for _ in range(size):
            layer = getattr(self, self.one(*self.layers))(*self.one(*pool[-2:]), pool)
            if min(layer[1]) > 0:
                pool.append(layer)
        last, shape = pool[-1]
        for other, other_shape in pool[-3:-1]:
            if other_shape == shape and self.rng.random() < 0.5:
                last = op_call("add", [last, other])
        return module([x], last)

    def conv(self, x: Expr, s: Any, pool: Any) -> Any:
        out, k = self.one(4, 8), self.one(1, 3)
        k = k if min(s[2:]) >= k else 1
        p, step = self.one(0, k // 2), self.one(1, 1, 2)
        conv = op_call(
            "nn.conv2d", [x, self.floats(out, s[1], k, k)], kernel_size=[k, k], channels=out, padding=[p] * 4, strides=[step] * 2
        )
        return conv, (s[0], out, *[(d + 2 * p - k) // step + 1 for d in s[2:]])

    def depthwise(self, x: Expr, s: Any, pool: Any) -> Any:
        k = 3 if min(s[2:]) >= 3 else 1
        conv = op_call(
            "nn.conv2d", [x, self.floats(s[1], 1, k, k)], kernel_size=[k, k], channels=s[1], groups=s[1], padding=[k // 2] * 4
        )
        return conv, s

    def bias(self, x: Expr, s: Any, pool: Any) -> Any:
        return op_call("nn.bias_add", [x, self.floats(s[1])], axis=1), s

    def relu(self, x: Expr, s: Any, pool: Any) -> Any:
        return op_call("nn.relu", [x]), s

    def norm(self, x: Expr, s: Any, pool: Any) -> Any:
        f = self.floats
        kind = self.one("batch_norm", "batch_norm", "batch_norm", "layer_norm", "instance_norm", "group_norm", "l2_normalize")
        c = s[1]
        if kind == "batch_norm":
            args = [x, f(c, low=0.5), f(c), f(c), f(c, low=0.5)]
            return TupleGetItem(op_call("nn.batch_norm", args), 0), s
        if kind == "layer_norm":
            return op_call("nn.layer_norm", [x, f(c), f(c)], axis=1), s
        if kind == "instance_norm":
            return op_call("nn.instance_norm", [x, f(c), f(c)], axis=1), s
        if kind == "group_norm":
            return op_call("nn.group_norm", [x, f(c), f(c)], num_groups=1), s
        return op_call("nn.l2_normalize", [x], eps=0.001, axis=[1]), s

    def dropout(self, x: Expr, s: Any, pool: Any) -> Any:
        return TupleGetItem(op_call("nn.dropout", [x]), 0), s

    def scale(self, x: Expr, s: Any, pool: Any) -> Any:
        by = self.floats(s[1], 1, 1, low=0.25)
        return op_call("multiply", [x, by] if self.rng.random() < 0.7 else [by, x]), s

    def residual(self, x: Expr, s: Any, pool: Any) -> Any:
        same = [o for o, t in pool if t == s]
        return op_call("add", [x, self.one(*same)]), s

    def pool(self, x: Expr, s: Any, pool: Any) -> Any:
        if min(s[2:]) < 2:
            return x, s
        name = self.one("nn.max_pool2d", "nn.avg_pool2d")
        return op_call(name, [x], pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]), (*s[:2], *[d // 2 for d in s[2:]])

    def pad(self, x: Expr, s: Any, pool: Any) -> Any:
        """A padding in front of a convolution or a pool."""
        fill = self.one(0.0, 0.0, 0.0, 1.0)
        padded = op_call("nn.pad", [x, const(np.float32(fill))], pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])
        t = (*s[:2], s[2] + 2, s[3] + 2)
        return self.conv(padded, t, pool) if self.rng.random() < 0.6 else self.pool(padded, t, pool)

    def activation(self, x: Expr, s: Any, pool: Any) -> Any:
        name = self.one("sigmoid", "tanh", "exp", "clip", "nn.leaky_relu", "erf", "nn.softmax", "nn.prelu")
        if name == "clip":
            return op_call(name, [x], a_min=0.0, a_max=6.0), s
        if name == "nn.prelu":
            return op_call(name, [x, self.floats(s[1])], axis=1), s
        if name == "exp":
            return op_call("exp", [op_call("negative", [op_call("abs", [x])])]), s
        return op_call(name, [x], **({"alpha": 0.25} if name == "nn.leaky_relu" else {"axis": 1} if name == "nn.softmax" else {})), s

    def concat(self, x: Expr, s: Any, pool: Any) -> Any:
        same = [o for o, t in pool if t == s]
        return op_call("concatenate", [Tuple([x, self.one(*same)])], axis=1), (s[0], 2 * s[1], *s[2:])

    def atrous(self, x: Expr, s: Any, pool: Any) -> Any:
        """A dilated convolution as one between two rearrangements."""
        if s[2] != 8 or s[3] != 8:
            return x, s
        turned = op_call("transpose", [x], axes=[0, 2, 3, 1])
        spread = op_call("nn.space_to_batch_nd", [turned], block_shape=[2, 2], paddings=[[2, 2], [2, 2]], pad_value=0.0)
        conv = op_call(
            "nn.conv2d",
            [spread, self.floats(3, 3, s[1], s[1])],
            kernel_size=[3, 3],
            channels=s[1],
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
        joined = op_call("nn.batch_to_space_nd", [conv], block_shape=[2, 2], crops=[[0, 0], [0, 0]])
        return op_call("transpose", [joined], axes=[0, 3, 1, 2]), s


class Parallel(Image):
    """Products of one input: convolutions, dense layers, batches of matrices."""

    def joined(self, values: list[Expr]) -> Expr:
        return Tuple(values)

    def tail(self, value: Expr, bias: Callable[[], Expr], steps: int) -> Expr:
        for step in range(steps):
            if step % 2:
                value = op_call("nn.relu", [value])
            else:
                value = op_call("add", [value, bias()])
        return value

    def of_conv(self, count: int) -> IRModule:
        x = Var("x", TensorType((1, 4, 6, 6)))
        same, steps, k = self.one(True, False), self.one(0, 1, 2, 3), self.one(1, 3)
        values: list[Expr] = []
        for _ in range(count):
            out = self.one(2, 4, 8)
            conv = op_call(
                "nn.conv2d",
                [x, self.floats(out, 4, k, k)],
                kernel_size=[k, k],
                channels=out,
                padding=[k // 2] * 4,
                strides=[1, 1] if self.rng.random() < 0.8 else [2, 2],
            )
            values.append(self.tail(conv, lambda out=out: self.floats(out, 1, 1), steps if same else self.one(0, 1, 2)))  # type: ignore
        if self.rng.random() < 0.4:
            values.append(op_call("nn.max_pool2d", [x], pool_size=[2, 2], padding=[0, 0, 0, 0]))
        return module([x], self.joined(values))

    def of_dense(self, count: int) -> IRModule:
        x = Var("x", TensorType((2, 6)))
        same, units, steps = self.one(True, False), self.one(3, 5), self.one(0, 1, 2, 3)
        values: list[Expr] = []
        for _ in range(count):
            n = units if same else self.one(3, 5)
            dense = op_call("nn.dense", [x, self.floats(n, 6)], units=n)
            values.append(self.tail(dense, lambda n=n: self.floats(n), steps))  # type: ignore[misc]
        return module([x], self.joined(values))

    def of_batch(self, count: int) -> IRModule:
        x = Var("x", TensorType((2, 3, 4)))
        steps = self.one(0, 1, 2)
        values: list[Expr] = []
        for _ in range(count):
            n = self.one(3, 5)
            product = op_call("nn.batch_matmul", [x, self.floats(2, n, 4)], transpose_b=True)
            values.append(self.tail(product, lambda n=n: self.floats(2, 1, n), steps))  # type: ignore[misc]
        return module([x], self.joined(values))


class Dense(Maker):
    """Dense layers, matrix products, and related operators, on `float32[2, n]`."""

    def module(self, size: int = 8) -> IRModule:
        x = Var("x", TensorType((2, 6)))
        value: Expr = x
        n = 6
        for _ in range(size):
            match self.one("dense", "dense", "bias", "scale", "act", "matmul", "norm", "residual"):
                case "dense":
                    m = self.one(4, 6)
                    value, n = op_call("nn.dense", [value, self.floats(m, n)], units=m), m
                case "matmul":
                    left = op_call("expand_dims", [value], axis=0)
                    product = op_call("nn.batch_matmul", [left, self.floats(1, n, n)], transpose_b=True)
                    value = op_call("squeeze", [product], axis=[0])
                case "bias":
                    value = op_call(self.one("nn.bias_add", "add"), [value, self.floats(n)])
                case "scale":
                    value = op_call("multiply", [value, self.floats(n, low=0.25)])
                case "norm":
                    value = op_call("nn.layer_norm", [value, self.floats(n), self.floats(n)])
                case "residual":
                    value = op_call("add", [value, op_call("nn.relu", [value])])
                case _:
                    value = op_call(self.one("nn.relu", "tanh", "sigmoid", "erf", "nn.softmax", "nn.log_softmax"), [value])
        return module([x], value)


class Smooth(Maker):
    """Operators that have gradients in TVM, on `float32[2, 3]`, as a graph."""

    def module(self, size: int = 7) -> IRModule:
        x, y = Var("x", TensorType((2, 3))), Var("y", TensorType((2, 3)))
        pool: list[Expr] = [x, y]
        for _ in range(size):
            pool.append(self.step(self.one(*pool[-3:]), self.one(*pool)))
        return module([x, y], pool[-1])

    def step(self, x: Expr, y: Expr) -> Expr:
        def positive(v: Expr) -> Expr:
            return op_call("add", [op_call("multiply", [v, v]), const(np.float32(1))])

        one = self.one
        match one("unary", "unary", "binary", "binary", "positive", "dense", "turn", "reduce", "soft", "bias", "clip", "concat"):
            case "unary":
                name = one("tanh", "sigmoid", "exp", "negative", "nn.relu", "cos", "sin", "copy", "erf")
                return op_call(name, [op_call("tanh", [x])])
            case "binary":
                return op_call(one("add", "subtract", "multiply"), [x, y])
            case "positive":
                return op_call(one("sqrt", "log", "rsqrt"), [positive(x)])
            case "dense":
                return op_call("nn.dense", [x, self.floats(3, 3)], units=3)
            case "turn":
                return op_call("transpose", [op_call("transpose", [x], axes=[1, 0])], axes=[1, 0])
            case "reduce":
                total = op_call(one("sum", "mean", "max"), [x], axis=[1], keepdims=True)
                return op_call("multiply", [y, total])
            case "soft":
                return op_call(one("nn.softmax", "nn.log_softmax"), [x])
            case "bias":
                return op_call(one("nn.bias_add", "add", "multiply"), [x, self.floats(3)])
            case "clip":
                return op_call("clip", [x], a_min=-1.0, a_max=2.0)
        joined = op_call("concatenate", [Tuple([x, y])], axis=0)
        return op_call("strided_slice", [joined], begin=[1, 0], end=[3, 3], strides=[1, 1])


class Zeros(Smooth):
    """Sums and products with tensors of zeros and ones."""

    def step(self, x: Expr, y: Expr) -> Expr:
        if self.rng.random() < 0.4:
            return super().step(x, y)
        filled = self.one(
            lambda: op_call("zeros_like", [x]),
            lambda: op_call("ones_like", [x]),
            lambda: op_call("zeros", [], shape=[2, 3], dtype="float32"),
            lambda: op_call("ones", [], shape=[2, 3], dtype="float32"),
        )()
        return op_call(self.one("add", "multiply"), [filled, y] if self.rng.random() < 0.5 else [y, filled])


class Rewrites(Maker):
    """What a simplifier looks for: reshapes of reshapes, casts of casts, neutral elements, twice the same."""

    def module(self, size: int = 10) -> IRModule:
        x = Var("x", TensorType((2, 6, 4)))
        pool: list[Expr] = [x]
        for _ in range(size):
            pool.append(self.step(self.one(*pool[-2:]), pool))
        tail: list[Expr] = [op_call("reshape", [v], newshape=[2, 6, 4]) for v in pool[-2:]]
        return module([x], op_call("add", tail))

    def step(self, x: Expr, pool: list[Expr]) -> Expr:
        one = self.one
        match one(
            "reshape",
            "transpose",
            "cast",
            "neutral",
            "constants",
            "full",
            "sum",
            "same",
            "layout",
            "math",
            "clip",
            "slice",
            "where",
            "div",
            "concat",
        ):
            case "reshape":
                shapes = [[12, 4], [2, 24], [-1], [4, 3, 4], [0, -1]]
                return op_call("reshape", [op_call("reshape", [x], newshape=one(*shapes))], newshape=[2, 6, 4])
            case "transpose":
                axes = one([1, 0, 2], [2, 0, 1], [1, 2, 0])
                inverse = [axes.index(i) for i in range(3)]
                turned = op_call("transpose", [x], axes=axes)
                turned = op_call("nn.relu", [turned]) if self.rng.random() < 0.3 else turned
                return op_call("transpose", [turned], axes=inverse)
            case "cast":
                return op_call("cast", [op_call("cast", [x], dtype=one("float32", "float64", "float16"))], dtype="float32")
            case "neutral":
                zero, unit = const(np.zeros(one((), (4,), (2, 6, 4)), "float32")), const(np.ones(one((), (4,)), "float32"))
                return one(
                    lambda: op_call("add", [x, zero]),
                    lambda: op_call("multiply", [x, unit]),
                    lambda: op_call("add", [zero, x]),
                    lambda: op_call("subtract", [x, zero]),
                    lambda: op_call("divide", [x, unit]),
                )()
            case "constants":
                name = one("add", "multiply")
                return op_call(name, [op_call(name, [x, self.floats(4)]), self.floats(one(4, 1))])
            case "full":
                like = one("zeros_like", "ones_like")
                return op_call("add", [x, op_call(like, [x])])
            case "sum":
                total = op_call("sum", [x], axis=[1], keepdims=True)
                return op_call("broadcast_to_like" if one(0, 1) else "add", [total, x])
            case "same":
                name = one("tanh", "sigmoid", "abs")
                return op_call("multiply", [op_call(name, [x]), op_call(name, [x])])
            case "layout":
                first = op_call("layout_transform", [op_call("expand_dims", [x], axis=0)], src_layout="NCHW", dst_layout="NHWC")
                return op_call("squeeze", [op_call("layout_transform", [first], src_layout="NHWC", dst_layout="NCHW")], axis=[0])
            case "math":
                return op_call(one("exp", "tanh", "erf", "nn.softmax", "rsqrt"), [op_call("clip", [x], a_min=0.125, a_max=3.0)])
            case "clip":
                return op_call("clip", [op_call("clip", [x], a_min=-4.0, a_max=6.0)], a_min=one(0.0, -8.0), a_max=5.0)
            case "slice":
                half = op_call("strided_slice", [x], begin=[0, 0, 0], end=[2, 6, 4], strides=[1, 1, 1])
                return half
            case "where":
                return op_call("where", [op_call("less", [x, const(np.float32(0.5))]), x, op_call("nn.relu", [x])])
            case "div":
                return op_call("divide", [x, const(np.float32(one(2.0, 4.0)))])
        parts = [op_call("strided_slice", [x], begin=[0, b, 0], end=[2, b + 3, 4], strides=[1, 1, 1]) for b in (0, 3)]
        return op_call("concatenate", [Tuple(parts)], axis=1)


class Casts(Maker):
    """Narrow integers widened for several users."""

    def module(self, size: int = 4) -> IRModule:
        x = Var("x", TensorType((1, 4, 6, 6), self.one("int8", "uint8")))
        wide = op_call("cast", [x], dtype="int32")
        values: list[Expr] = []
        for _ in range(self.one(1, 2, 3)):
            value: Expr = wide
            for _ in range(self.one(1, 2)):
                value = self.one(
                    lambda v: op_call("add", [v, self.integers(4, 1, 1, dtype="int32")]),
                    lambda v: op_call("nn.relu", [v]),
                    lambda v: op_call("right_shift", [v, const(np.int32(1))]),
                    lambda v: op_call("multiply", [v, wide]),
                )(value)
            if self.rng.random() < 0.5:
                value = op_call("cast", [op_call("clip", [value], a_min=-128.0, a_max=127.0)], dtype="int8")
                value = op_call("cast", [value], dtype="int32")
            values.append(value)
        return module([x], Tuple(values))


class Dynamic(Maker):
    """Operators whose shapes are operands: constants, or shapes of known values."""

    def module(self, size: int = 5) -> IRModule:
        x = Var("x", TensorType((2, 3, 4)))
        value: Expr = x
        for _ in range(size):
            value = self.step(value)
            value = op_call("reshape", [value], newshape=[2, 3, 4])
        return module([x], value)

    def step(self, x: Expr) -> Expr:
        def ints(*numbers: int) -> Constant:
            return const(numbers, "int64")

        match self.one(
            "reshape", "shape", "tile", "broadcast", "slice", "full", "zeros", "onehot", "topk", "expand", "pad", "squeeze", "resize"
        ):
            case "reshape":
                return op_call("dyn.reshape", [x, ints(*self.one((6, 4), (24,), (2, 12), (4, 6)))])
            case "shape":
                return op_call("dyn.reshape", [x, op_call("shape_of", [x], dtype="int64")])
            case "tile":
                tiled = op_call("dyn.tile", [x, ints(1, 2, 1)])
                return op_call("strided_slice", [tiled], begin=[0, 0, 0], end=[2, 3, 4], strides=[1, 1, 1])
            case "broadcast":
                row = op_call("sum", [x], axis=[0], keepdims=True)
                return op_call("dyn.broadcast_to", [row, ints(2, 3, 4)])
            case "slice":
                return op_call("dyn.strided_slice", [x, ints(0, 0, 0), ints(2, 3, 4), ints(1, 1, 1)])
            case "full":
                return op_call("add", [x, op_call("dyn.full", [const(np.float32(2)), ints(2, 3, 4)], dtype="float32")])
            case "zeros":
                return op_call("add", [x, op_call(self.one("dyn.zeros", "dyn.ones"), [ints(2, 3, 4)], dtype="float32")])
            case "onehot":
                index = op_call("cast", [op_call("clip", [x], a_min=0.0, a_max=3.0)], dtype="int32")
                hot = op_call(
                    "dyn.one_hot", [index, const(np.float32(1)), const(np.float32(0)), const(2, "int64")], axis=-1, dtype="float32"
                )
                return op_call("sum", [hot], axis=[3])
            case "topk":
                best = op_call("dyn.topk", [x, const([4], "int64")], axis=-1, ret_type="values")
                return best
            case "expand":
                return op_call("dyn.expand_dims", [x, const(1, "int64")], num_newaxis=1)
            case "squeeze":
                return op_call("dyn.squeeze", [op_call("expand_dims", [x], axis=0), ints(0)])
            case "pad":
                padded = op_call("dyn.nn.pad", [x, const([[0, 0], [0, 0], [1, 1]], "int64"), const(np.float32(0))])
                return op_call("strided_slice", [padded], begin=[0, 0, 1], end=[2, 3, 5], strides=[1, 1, 1])
        image = op_call("expand_dims", [x], axis=0)
        sized = op_call("dyn.image.resize2d", [image, ints(3, 4), const(np.zeros(4, "float32"))], layout="NCHW")
        return op_call("squeeze", [sized], axis=[0])


class Wide(Maker):
    """Concatenations of many values."""

    def module(self, size: int = 8) -> IRModule:
        x = Var("x", TensorType((2, 3)))
        parts: list[Expr] = [op_call(self.one("tanh", "nn.relu", "abs"), [x]) for _ in range(self.rng.randint(2, 9))]
        joined = op_call("concatenate", [Tuple(parts)], axis=self.one(0, 1))
        if self.rng.random() < 0.5:
            joined = op_call("concatenate", [Tuple([joined] * self.rng.randint(1, 6))], axis=0)
        return module([x], op_call("nn.relu", [joined]))
