"""Random networks of convolutions and related operators, for the passes that change layouts."""

from __future__ import annotations

import random
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
            made = self.try_step(x, known)
            if made is not None:
                return made
        return self.conv(x)

    def try_step(self, x: Expr, known: list[Expr]) -> Expr | None:
        rng = self.rng
        kind = rng.randrange(30)
        n, c, h, w = shape_of(x)
        if kind < 8:
            return self.conv(x)
        if kind == 8:
            return op_call("nn.bias_add", [x, self.const(c)])
        if kind == 9:
            other = self.const(*rng.choice([(), (c, 1, 1), (1, c, 1, 1), (w,), (h, w), (1, 1, h, w), (n, c, h, w), (1,)]))
            pair = [x, other] if rng.random() < 0.6 else [other, x]
            return op_call(rng.choice(BINARY), pair)
        if kind in (10, 11):
            same = [k for k in known if isinstance(type_of(k), TensorType) and shape_of(k) == shape_of(x)]
            return op_call(rng.choice(BINARY), [x, rng.choice(same)]) if same else None
        if kind == 12:
            return op_call(rng.choice(UNARY), [x])
        if kind == 13:
            if min(h, w) < 2:
                return op_call("nn.global_avg_pool2d", [x])
            pool = rng.choice(["nn.max_pool2d", "nn.avg_pool2d"])
            return op_call(pool, [x], pool_size=[2, 2], strides=[rng.choice([1, 2])] * 2)
        if kind == 14:
            parts = [k for k in known if isinstance(type_of(k), TensorType) and shape_of(k)[2:] == (h, w)][-3:]
            return op_call("concatenate", [Tuple([x, *parts])], axis=rng.choice([1, -3])) if parts else None
        if kind == 15:
            if c % 2:
                return None
            how: Any = rng.choice([2, (c // 2,), (1,)])
            halves = op_call("split", [x], indices_or_sections=how, axis=1)
            return TupleGetItem(halves, rng.randrange(2))
        if kind == 16:
            norm = op_call("nn.batch_norm", [x, *[self.const(c) for _ in range(3)], op_call("abs", [self.const(c)])], epsilon=0.5)
            return TupleGetItem(norm, 0)
        if kind == 17:
            how = rng.choice(["sum", "mean", "max", "min"])
            axis = rng.choice([[1], [2, 3], [-1], [0, 1]])
            return op_call(how, [x], axis=axis, keepdims=True, exclude=False)
        if kind == 18:
            widths = [[0, 0], rng.choice([[0, 0], [0, 0], [1, 1]]), [1, 0], [0, 1]]
            return op_call("nn.pad", [x, const(np.float32(0.5))], pad_width=widths)
        if kind == 19:
            order = rng.choice([[0, 2, 3, 1], [0, 1, 3, 2], [1, 0, 2, 3], [-4, 3, 2, 1]])
            turned = op_call("transpose", [op_call("nn.relu", [op_call("transpose", [x], axes=order)])], axes=None)
            return op_call("transpose", [turned], axes=list(np.argsort([order[3 - i] % 4 for i in range(4)])))
        if kind == 20:
            begin, end = rng.choice(
                [
                    ([0, 0, 0, 0], [n, c, h, w]),
                    ([0, c // 2, 0, 0], [n, c, h, w]),
                    ([0, 1], [n, c]),
                    ([0, -c, 0], [n, c, max(h - 1, 1)]),
                ]
            )
            if begin[1] >= c:
                return None
            return op_call("strided_slice", [x], begin=begin, end=end, strides=[1])
        if kind == 21:
            return op_call(
                "strided_slice", [x], begin=[0], end=[max(c // 2, 1)], strides=[1], axes=[1], slice_mode=rng.choice(["end", "size"])
            )
        if kind == 22:
            return op_call("nn.prelu", [x, self.const(c)], axis=1)
        if kind == 23:
            kind_of_norm = rng.choice(["nn.layer_norm", "nn.instance_norm"])
            return op_call(kind_of_norm, [x, self.const(c), self.const(c)], axis=1, epsilon=0.5)
        if kind == 24:
            return op_call("nn.l2_normalize", [x], eps=0.5, axis=[1])
        if kind == 25:
            return op_call("nn.upsampling", [x], scale_h=2, scale_w=1) if h * w < 100 else None
        if kind == 26:
            cond = op_call("less", [op_call("sum", [x]), const(np.float32(0))])
            return If(cond, self.conv(x, c), op_call("nn.relu", [self.conv(x, c)]))
        if kind == 27:
            param = Var("p", TensorType((n, c, h, w)))
            return Call(Function([param], op_call("add", [self.conv(param, c), x])), [op_call("nn.relu", [x])])
        if kind == 28:
            squeezed = op_call("squeeze", [op_call("nn.global_max_pool2d", [x])], axis=[2, 3])
            return op_call("multiply", [x, op_call("reshape", [op_call("nn.relu", [squeezed])], newshape=[1, c, 1, 1])])
        index = op_call("argmax", [x], axis=[1], keepdims=True)
        return op_call("add", [x, op_call("cast", [index], dtype="float32")])
