"""Random networks of convolutions and related operators, for the passes that change layouts."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    const,
    post_order,
)
from relaylang.ir.typed import typed
from relaylang.ops.build import op_call
from relaylang.testing.generators.programs import BINARY
from relaylang.typing import check, type_of

UNARY = ("nn.relu", "negative", "abs", "tanh", "sigmoid", "copy", "floor", "zeros_like")


def named(mod: IRModule, name: str, entry: str = "main") -> list[Call]:
    """The calls of an operator in a function."""
    return [n for n in post_order(mod[entry]) if isinstance(n, Call) and getattr(n.op, "name", "") == name]


def shape_of(expr: Expr) -> tuple[int, ...]:
    ty = type_of(expr)
    assert isinstance(ty, TensorType)
    return tuple(ty.shape)  # type: ignore[arg-type]


class Networks:
    """Makes modules of one seed: `@main` over an image `(1, channels, 6, 6)`, and a function that it calls."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.made = 0

    def const(self, *shape: int) -> Expr:
        return const((self.numbers.integers(-4, 5, shape) / 4).astype("float32"))

    def module(self, size: int = 8) -> IRModule:
        mod = IRModule()
        helper = GlobalVar("part")
        x = Var("x", TensorType((1, 4, 6, 6)))
        part = Function([x], self.step(self.conv(x, 8), [x]))
        mod[helper] = part
        y = Var("y", TensorType((1, self.rng.choice([3, 4, 8]), 6, 6)))
        body = self.block([y], size)
        if self.rng.random() < 0.5:
            body = Tuple([body, Call(helper, [self.conv(y, 4)])])
        mod[GlobalVar("main")] = Function([y], body)
        check(mod)
        return mod

    def block(self, known: list[Expr], size: int) -> Expr:
        known = list(known)
        lets: list[tuple[Var, Expr]] = []
        for _ in range(size):
            value = self.step(self.pick(known), known)
            if self.rng.random() < 0.3:
                self.made += 1
                annotation = type_of(value) if self.rng.random() < 0.5 else None
                var = typed(Var(f"v{self.made}", annotation), type_of(value))
                lets.append((var, value))
                value = var
            known.append(value)
        body: Expr = Tuple(known[-3:])
        for var, value in reversed(lets):
            body = Let(var, value, body)
        return body

    def pick(self, known: list[Expr]) -> Expr:
        images = [k for k in known if isinstance(type_of(k), TensorType) and len(shape_of(k)) == 4]
        return self.rng.choice(images[-4:])

    def conv(self, x: Expr, channels: int | None = None, groups: int = 1) -> Expr:
        rng = self.rng
        inputs = shape_of(x)[1]
        out = channels or rng.choice([4, 6, 8, 12])
        if channels is None and rng.random() < 0.25:
            groups = out = inputs
        size = rng.choice([1, 3])
        if min(shape_of(x)[2:]) < 3:
            size = 1
        weight = self.const(out, inputs // groups, size, size)
        return op_call(
            "nn.conv2d", [x, weight], kernel_size=[size, size], channels=out, padding=[size // 2] * 4, strides=[1, 1], groups=groups
        )

    def step(self, x: Expr, known: list[Expr]) -> Expr:
        for _ in range(20):
            step = self.try_step(x, known)
            if step is not None:
                return step
        return self.conv(x)

    def try_step(self, x: Expr, known: list[Expr]) -> Expr | None:
        return STEPS[self.rng.randrange(len(STEPS))](self, x, known)

    def alike(self, known: list[Expr], x: Expr, axes: slice = slice(None)) -> list[Expr]:
        """The known tensors with the extents of an image along some axes."""
        return [k for k in known if isinstance(type_of(k), TensorType) and shape_of(k)[axes] == shape_of(x)[axes]]

    def bias(self, x: Expr, known: list[Expr]) -> Expr:
        return op_call("nn.bias_add", [x, self.const(shape_of(x)[1])])

    def with_constant(self, x: Expr, known: list[Expr]) -> Expr:
        n, c, h, w = shape_of(x)
        rng = self.rng
        other = self.const(*rng.choice([(), (c, 1, 1), (1, c, 1, 1), (w,), (h, w), (1, 1, h, w), (n, c, h, w), (1,)]))
        pair = [x, other] if rng.random() < 0.6 else [other, x]
        return op_call(rng.choice(BINARY), pair)

    def with_known(self, x: Expr, known: list[Expr]) -> Expr | None:
        same = self.alike(known, x)
        return op_call(self.rng.choice(BINARY), [x, self.rng.choice(same)]) if same else None

    def pool(self, x: Expr, known: list[Expr]) -> Expr:
        if min(shape_of(x)[2:]) < 2:
            return op_call("nn.global_avg_pool2d", [x])
        name = self.rng.choice(["nn.max_pool2d", "nn.avg_pool2d"])
        return op_call(name, [x], pool_size=[2, 2], strides=[self.rng.choice([1, 2])] * 2)

    def concatenate(self, x: Expr, known: list[Expr]) -> Expr | None:
        parts = self.alike(known, x, slice(2, None))[-3:]
        return op_call("concatenate", [Tuple([x, *parts])], axis=self.rng.choice([1, -3])) if parts else None

    def split(self, x: Expr, known: list[Expr]) -> Expr | None:
        channels = shape_of(x)[1]
        if channels % 2:
            return None
        sections: Any = self.rng.choice([2, (channels // 2,), (1,)])
        halves = op_call("split", [x], indices_or_sections=sections, axis=1)
        return TupleGetItem(halves, self.rng.randrange(2))

    def batch_norm(self, x: Expr, known: list[Expr]) -> Expr:
        c = shape_of(x)[1]
        moments = [*[self.const(c) for _ in range(3)], op_call("abs", [self.const(c)])]
        return TupleGetItem(op_call("nn.batch_norm", [x, *moments], epsilon=0.5), 0)

    def reduce(self, x: Expr, known: list[Expr]) -> Expr:
        name = self.rng.choice(["sum", "mean", "max", "min"])
        axis = self.rng.choice([[1], [2, 3], [-1], [0, 1]])
        return op_call(name, [x], axis=axis, keepdims=True, exclude=False)

    def pad(self, x: Expr, known: list[Expr]) -> Expr:
        widths = [[0, 0], self.rng.choice([[0, 0], [0, 0], [1, 1]]), [1, 0], [0, 1]]
        return op_call("nn.pad", [x, const(np.float32(0.5))], pad_width=widths)

    def transpose(self, x: Expr, known: list[Expr]) -> Expr:
        order = self.rng.choice([[0, 2, 3, 1], [0, 1, 3, 2], [1, 0, 2, 3], [-4, 3, 2, 1]])
        turned = op_call("transpose", [op_call("nn.relu", [op_call("transpose", [x], axes=order)])], axes=None)
        return op_call("transpose", [turned], axes=list(np.argsort([order[3 - i] % 4 for i in range(4)])))

    def slice_to_end(self, x: Expr, known: list[Expr]) -> Expr | None:
        n, c, h, w = shape_of(x)
        all_axes = [n, c, h, w]
        ranges = [([0, 0, 0, 0], all_axes), ([0, c // 2, 0, 0], all_axes), ([0, 1], [n, c]), ([0, -c, 0], [n, c, max(h - 1, 1)])]
        begin, end = self.rng.choice(ranges)
        return op_call("strided_slice", [x], begin=begin, end=end, strides=[1]) if begin[1] < c else None

    def slice_channels(self, x: Expr, known: list[Expr]) -> Expr:
        end = [max(shape_of(x)[1] // 2, 1)]
        return op_call("strided_slice", [x], begin=[0], end=end, strides=[1], axes=[1], slice_mode=self.rng.choice(["end", "size"]))

    def normalize(self, x: Expr, known: list[Expr]) -> Expr:
        c, name = shape_of(x)[1], self.rng.choice(["nn.layer_norm", "nn.instance_norm"])
        return op_call(name, [x, self.const(c), self.const(c)], axis=1, epsilon=0.5)

    def upsampling(self, x: Expr, known: list[Expr]) -> Expr | None:
        h, w = shape_of(x)[2:]
        return op_call("nn.upsampling", [x], scale_h=2, scale_w=1) if h * w < 100 else None

    def branch(self, x: Expr, known: list[Expr]) -> Expr:
        c = shape_of(x)[1]
        cond = op_call("less", [op_call("sum", [x]), const(np.float32(0))])
        return If(cond, self.conv(x, c), op_call("nn.relu", [self.conv(x, c)]))

    def call(self, x: Expr, known: list[Expr]) -> Expr:
        param = Var("p", TensorType(shape_of(x)))
        body = op_call("add", [self.conv(param, shape_of(x)[1]), x])
        return Call(Function([param], body), [op_call("nn.relu", [x])])

    def scale_channels(self, x: Expr, known: list[Expr]) -> Expr:
        squeezed = op_call("squeeze", [op_call("nn.global_max_pool2d", [x])], axis=[2, 3])
        factors = op_call("reshape", [op_call("nn.relu", [squeezed])], newshape=[1, shape_of(x)[1], 1, 1])
        return op_call("multiply", [x, factors])

    def arg_max(self, x: Expr, known: list[Expr]) -> Expr:
        index = op_call("argmax", [x], axis=[1], keepdims=True)
        return op_call("add", [x, op_call("cast", [index], dtype="float32")])


#: The kinds of a step, as often as they are to occur.
STEPS: tuple[Callable[[Networks, Expr, list[Expr]], Expr | None], ...] = (
    *[lambda net, x, known: net.conv(x)] * 8,
    Networks.bias,
    Networks.with_constant,
    *[Networks.with_known] * 2,
    lambda net, x, known: op_call(net.rng.choice(UNARY), [x]),
    Networks.pool,
    Networks.concatenate,
    Networks.split,
    Networks.batch_norm,
    Networks.reduce,
    Networks.pad,
    Networks.transpose,
    Networks.slice_to_end,
    Networks.slice_channels,
    lambda net, x, known: op_call("nn.prelu", [x, net.const(shape_of(x)[1])], axis=1),
    Networks.normalize,
    lambda net, x, known: op_call("nn.l2_normalize", [x], eps=0.5, axis=[1]),
    Networks.upsampling,
    Networks.branch,
    Networks.call,
    Networks.scale_channels,
    Networks.arg_max,
)
