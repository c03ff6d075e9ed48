"""Well-typed programs over tensors of several shapes: values shared and reshaped, tuples, branches, parameters as results."""

from __future__ import annotations

from collections.abc import Callable
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
        call = Call(op, list(args), make_attrs(op.attrs, attrs) if op.attrs is not None else None)
        check(call)
        return call

    def shape(self, x: Expr) -> tuple[int, ...]:
        return x.checked_type.shape  # type: ignore[union-attr, return-value]

    def dtype(self, x: Expr) -> str:
        return x.checked_type.dtype  # type: ignore[union-attr]

    def grow(self, values: list[Expr]) -> None:
        """One more value; a `let` now and then keeps it under a name."""
        x = self.pick(*values[-12:], *values)
        value = self.step(x, values)
        if value is None:
            return
        if values is self.values and self.pick(0, 0, 0, 1):
            name = Var(f"v{len(self.lets)}", value.checked_type)
            check(name)
            self.lets.append((name, value))
            value = name
        values.append(value)

    def step(self, x: Expr, values: list[Expr]) -> Expr | None:
        """A value of one more operator, or None where `x` does not fit the chosen operator."""
        return STEPS[int(self.rng.integers(len(STEPS)))](self, x, values)

    def same(self, x: Expr, values: list[Expr]) -> Expr:
        return self.pick(*[v for v in values if self.shape(v) == self.shape(x) and self.dtype(v) == self.dtype(x)])

    def is_real(self, x: Expr) -> bool:
        return self.dtype(x) == "float32"

    def unary(self, x: Expr, values: list[Expr]) -> Expr:
        return self.call(self.pick(*UNARY) if self.is_real(x) else self.pick("negative", "abs", "nn.relu"), x)

    def binary(self, x: Expr, values: list[Expr]) -> Expr:
        return self.bounded(self.call(self.pick(*BINARY), x, self.same(x, values)))

    def scalar(self, x: Expr, values: list[Expr]) -> Expr:
        return self.bounded(self.call(self.pick(*BINARY), x, const(self.pick(2, 3, -1), self.dtype(x))))

    def cast(self, x: Expr, values: list[Expr]) -> Expr:
        return self.call("cast", x, dtype="int32" if self.is_real(x) else "float32")

    def reshape(self, x: Expr, values: list[Expr]) -> Expr:
        shape = self.shape(x)
        return self.call("reshape", x, newshape=[-1] if self.pick(0, 1) or len(shape) < 2 else [shape[0], -1])

    def transpose(self, x: Expr, values: list[Expr]) -> Expr | None:
        rank = len(self.shape(x))
        return self.call("transpose", x, axes=[int(a) for a in self.rng.permutation(rank)]) if rank > 1 else None

    def reduce(self, x: Expr, values: list[Expr]) -> Expr | None:
        rank = len(self.shape(x))
        if not rank:
            return None
        axis = int(self.rng.integers(rank))
        return self.bounded(self.call(self.pick("sum", "max", "mean"), x, axis=[axis], keepdims=bool(self.pick(0, 1))))

    def slice(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        if not shape or shape[0] < 2:
            return None
        return self.call("strided_slice", x, begin=[int(self.rng.integers(shape[0] - 1))], end=[shape[0]], strides=[1])

    def concatenate(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        if not shape:
            return None
        joined = Tuple([x, *[self.same(x, values) for _ in range(self.pick(1, 2))]])
        check(joined)
        return self.call("concatenate", joined, axis=int(self.rng.integers(len(shape)))) if np.prod(shape) < 400 else None

    def split(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        if not shape or shape[-1] < 2:
            return None
        parts = self.call("split", x, indices_or_sections=[1], axis=len(shape) - 1)
        values += [self.field(parts, 0)]
        return self.field(parts, 1)

    def pad(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        if not shape or np.prod(shape) >= 300:
            return None
        return self.call("nn.pad", x, const(1, self.dtype(x)), pad_width=[[0, 1]] + [[1, 0]] * (len(shape) - 1))

    def conv(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        if len(shape) != 4 or not self.is_real(x):
            return None
        groups = shape[1] if self.pick(0, 0, 1) else 1
        weight = self.constant(3 if groups == 1 else groups, shape[1] // groups, 3, 3)
        channels = self.shape(weight)[0]
        image = self.call("nn.conv2d", x, weight, padding=[1, 1], channels=channels, kernel_size=[3, 3], groups=groups)
        return self.call("nn.bias_add", image, self.constant(channels)) if self.pick(0, 1) else image

    def dense(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        fits = len(shape) == 2 and self.is_real(x)
        return self.call("nn.dense", x, self.constant(4, shape[1]), units=4) if fits else None

    def softmax(self, x: Expr, values: list[Expr]) -> Expr | None:
        return self.call("nn.softmax", x, axis=self.pick(0, -1)) if self.shape(x) and self.is_real(x) else None

    def pool(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        if len(shape) != 4 or min(shape[2:]) < 2:
            return None
        return self.call("nn.max_pool2d", x, pool_size=[2, 2], strides=[1, 1], padding=[0, 0])

    def take(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        return self.call("take", x, const(np.asarray([0, shape[0] - 1, 0], np.int32)), axis=0) if shape else None

    def branch(self, x: Expr, values: list[Expr]) -> Expr:
        # A branch computes some things for itself, one of them perhaps with a branch of its own.
        mine = list(values)
        for _ in range(3):
            self.grow(mine)
        fits = [v for v in mine if v.checked_type == x.checked_type]
        choice = If(self.flag, self.pick(*fits), self.pick(fits[-1], x))
        check(choice)
        return choice

    def broadcast(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        return self.call("broadcast_to", x, shape=[3, shape[0]]) if len(shape) == 1 and shape[0] < 20 else None

    def top_k(self, x: Expr, values: list[Expr]) -> Expr | None:
        shape = self.shape(x)
        return self.field(self.call("topk", x, k=2, axis=-1, dtype="int32"), 0) if shape and shape[-1] > 1 else None

    def bounded(self, x: Expr) -> Expr:
        """Chains of products stay where floats are exact enough and whole numbers small."""
        return self.call("clip", x, a_min=-50.0, a_max=50.0)

    def field(self, x: Expr, index: int) -> Expr:
        field = TupleGetItem(x, index)
        check(field)
        return field

    def constant(self, *shape: int) -> Expr:
        constant = Constant((self.rng.standard_normal(shape) / max(1.0, float(np.prod(shape[1:])) ** 0.5)).astype("float32"))
        check(constant)
        return constant


#: The kinds of a step, as often as they are to occur.
STEPS: tuple[Callable[[Program, Expr, list[Expr]], Expr | None], ...] = (
    Program.unary,
    *[Program.binary] * 2,
    Program.scalar,
    Program.cast,
    Program.reshape,
    Program.transpose,
    Program.reduce,
    Program.slice,
    Program.concatenate,
    Program.split,
    Program.pad,
    Program.conv,
    Program.dense,
    Program.softmax,
    Program.pool,
    Program.take,
    Program.branch,
    Program.broadcast,
    Program.top_k,
)
