"""Well-typed programs over tensors of several shapes: values shared and reshaped, tuples, branches, parameters as results."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Function, If, Let, TensorType, Tuple, TupleGetItem, Var, const
from relaylang.ops import get, make_attrs
from relaylang.testing.generators.programs import BINARY
from relaylang.typing import check

SHAPES = [(2, 3, 4, 4), (1, 4, 5, 3), (3, 5), (4, 4), (7,), ()]
UNARY = ("tanh", "sigmoid", "negative", "abs", "nn.relu", "exp")


class Program:
    """Grows values of known types; every choice comes from the seed."""

    def __init__(self, seed: int, size: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.params = [Var(f"x{n}", TensorType(shape, self.pick("float32", "float32", "int32"))) for n, shape in enumerate(SHAPES)]
        self.flag = Var("flag", TensorType((), "bool"))
        self.values: list[Expr] = list(self.params)
        self.lets: list[tuple[Var, Expr]] = []
        for param in (*self.params, self.flag):
            check(param)
        for _ in range(size):
            self.grow(self.values)
        results: list[Expr] = [self.pick(*self.values) for _ in range(4)] + self.values[-3:]
        body: Expr = Tuple([results[0], Tuple(results[1:3]), *results[3:]])
        for variable, value in reversed(self.lets):
            body = Let(variable, value, body)
        self.function = Function([*self.params, self.flag], body)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def call(self, name: str, *args: Expr, **attrs: Any) -> Expr:
        op = get(name)
        made = Call(op, list(args), make_attrs(op.attrs, attrs) if op.attrs is not None else None)
        check(made)
        return made

    def shape(self, x: Expr) -> tuple[int, ...]:
        return x.checked_type.shape  # type: ignore[union-attr, return-value]

    def dtype(self, x: Expr) -> str:
        return x.checked_type.dtype  # type: ignore[union-attr]

    def grow(self, values: list[Expr]) -> None:
        """One more value; a `let` now and then keeps it under a name."""
        x = self.pick(*values[-12:], *values)
        made = self.step(x, values)
        if made is None:
            return
        if values is self.values and self.pick(0, 0, 0, 1):
            name = Var(f"v{len(self.lets)}", made.checked_type)
            check(name)
            self.lets.append((name, made))
            made = name
        values.append(made)

    def step(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape, rank = self.shape(x), len(self.shape(x))
        real = self.dtype(x) == "float32"
        same = [v for v in values if self.shape(v) == shape and self.dtype(v) == self.dtype(x)]
        kind = self.pick(
            "unary",
            "binary",
            "binary",
            "scalar",
            "cast",
            "reshape",
            "transpose",
            "reduce",
            "slice",
            "concat",
            "split",
            "pad",
            "conv",
            "dense",
            "softmax",
            "pool",
            "take",
            "if",
            "broadcast",
            "topk",
        )
        if kind == "unary":
            return self.call(self.pick(*UNARY) if real else self.pick("negative", "abs", "nn.relu"), x)
        if kind == "binary":
            return self.bounded(self.call(self.pick(*BINARY), x, self.pick(*same)))
        if kind == "scalar":
            return self.bounded(self.call(self.pick(*BINARY), x, const(self.pick(2, 3, -1), self.dtype(x))))
        if kind == "cast":
            return self.call("cast", x, dtype="int32" if real else "float32")
        if kind == "reshape":
            return self.call("reshape", x, newshape=[-1] if self.pick(0, 1) or rank < 2 else [shape[0], -1])
        if kind == "transpose" and rank > 1:
            return self.call("transpose", x, axes=[int(a) for a in self.rng.permutation(rank)])
        if kind == "reduce" and rank:
            axis = int(self.rng.integers(rank))
            return self.bounded(self.call(self.pick("sum", "max", "mean"), x, axis=[axis], keepdims=bool(self.pick(0, 1))))
        if kind == "slice" and rank and shape[0] > 1:
            return self.call("strided_slice", x, begin=[int(self.rng.integers(shape[0] - 1))], end=[shape[0]], strides=[1])
        if kind == "concat" and rank:
            joined = Tuple([x, *[self.pick(*same) for _ in range(self.pick(1, 2))]])
            check(joined)
            return self.call("concatenate", joined, axis=int(self.rng.integers(rank))) if np.prod(shape) < 400 else None
        if kind == "split" and rank and shape[-1] > 1:
            parts = self.call("split", x, indices_or_sections=[1], axis=rank - 1)
            values += [self.field(parts, 0)]
            return self.field(parts, 1)
        if kind == "pad" and rank and np.prod(shape) < 300:
            return self.call("nn.pad", x, const(1, self.dtype(x)), pad_width=[[0, 1]] + [[1, 0]] * (rank - 1))
        if kind == "conv" and rank == 4 and real:
            groups = shape[1] if self.pick(0, 0, 1) else 1
            weight = self.constant(3 if groups == 1 else groups, shape[1] // groups, 3, 3)
            channels = self.shape(weight)[0]
            made = self.call("nn.conv2d", x, weight, padding=[1, 1], channels=channels, kernel_size=[3, 3], groups=groups)
            return self.call("nn.bias_add", made, self.constant(channels)) if self.pick(0, 1) else made
        if kind == "dense" and rank == 2 and real:
            return self.call("nn.dense", x, self.constant(4, shape[1]), units=4)
        if kind == "softmax" and rank and real:
            return self.call("nn.softmax", x, axis=self.pick(0, -1))
        if kind == "pool" and rank == 4 and min(shape[2:]) > 1:
            return self.call("nn.max_pool2d", x, pool_size=[2, 2], strides=[1, 1], padding=[0, 0])
        if kind == "take" and rank:
            return self.call("take", x, const(np.asarray([0, shape[0] - 1, 0], np.int32)), axis=0)
        if kind == "if":
            # A branch computes some things for itself, one of them perhaps with a branch of its own.
            mine = list(values)
            for _ in range(3):
                self.grow(mine)
            fits = [v for v in mine if v.checked_type == x.checked_type]
            made = If(self.flag, self.pick(*fits), self.pick(fits[-1], x))
            check(made)
            return made
        if kind == "broadcast" and rank == 1 and shape[0] < 20:
            return self.call("broadcast_to", x, shape=[3, shape[0]])
        if kind == "topk" and rank and shape[-1] > 1:
            return self.field(self.call("topk", x, k=2, axis=-1, dtype="int32"), 0)
        return None

    def bounded(self, x: Expr) -> Expr:
        """Chains of products stay where floats are exact enough and whole numbers small."""
        return self.call("clip", x, a_min=-50.0, a_max=50.0)

    def field(self, x: Expr, index: int) -> Expr:
        made = TupleGetItem(x, index)
        check(made)
        return made

    def constant(self, *shape: int) -> Expr:
        made = Constant((self.rng.standard_normal(shape) / max(1.0, float(np.prod(shape[1:])) ** 0.5)).astype("float32"))
        check(made)
        return made
