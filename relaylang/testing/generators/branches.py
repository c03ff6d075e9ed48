"""Random programs of parallel products: convolutions, dense layers and matrix products of one input, and what follows."""

from __future__ import annotations

import random

import numpy as np

from relaylang.ir import Constant, Expr, Function, IRModule, TensorType, Tuple, Var, const
from relaylang.ops.build import op_call
from relaylang.testing.generators.programs import BINARY
from relaylang.typing import check

UNARY = ("nn.relu", "negative", "abs", "tanh", "sigmoid")


class Branches:
    """Makes modules of one seed. `family`: "conv2d", "dense" or "batch_matmul".

    With `plain`, every step's operand has one value an output, as after CanonicalizeOps: what TVM joins as well.
    """

    def __init__(self, seed: int, family: str, *, plain: bool = False) -> None:
        self.rng = random.Random(f"{family} {seed}")
        self.family = family
        self.plain = plain
        self.params: list[Var] = []

    def module(self) -> IRModule:
        shape = {"conv2d": (1, 4, 5, 5), "dense": (2, 4), "batch_matmul": (2, 3, 4)}[self.family]
        x = Var("x", TensorType(shape))
        self.params = [x]
        outs = self.stage(x, shape[self.axis])
        if self.rng.random() < 0.5:
            widths = self.widths
            wide = op_call("concatenate", [Tuple(outs)], axis=self.axis) if len(outs) > 1 else outs[0]
            outs = [*self.stage(wide, sum(widths)), wide]
        mod = IRModule.from_expr(Function(self.params, Tuple(outs)))
        check(mod)
        return mod

    @property
    def axis(self) -> int:
        return {"conv2d": 1, "dense": 1, "batch_matmul": 2}[self.family]

    def numbers(self, *shape: int) -> Expr:
        """A constant, or a new parameter."""
        if self.rng.random() < 0.3:
            param = Var(f"p{len(self.params)}", TensorType(shape))
            self.params.append(param)
            return param
        return self.constant(*shape)

    def constant(self, *shape: int) -> Constant:
        count = int(np.prod(shape))
        return const(np.array([self.rng.randint(-3, 3) for _ in range(count)], "float32").reshape(shape))

    def stage(self, x: Expr, inputs: int) -> list[Expr]:
        """Branches of one input."""
        rng = self.rng
        same = rng.random() < 0.5
        self.widths = [3 if same else rng.choice([1, 2, 3, 5]) for _ in range(rng.randint(2, 5))]
        branches = [self.product(x, w, inputs) for w in self.widths]
        for _ in range(rng.randint(0, 4)):
            branches = self.step(branches)
        return branches

    def product(self, x: Expr, width: int, inputs: int) -> Expr:
        odd = self.rng.random() < 0.1
        if self.family == "conv2d":
            size = 1 if odd else 3
            weight = self.numbers(width, inputs, size, size)
            return op_call("nn.conv2d", [x, weight], channels=width, kernel_size=[size, size], padding=[size // 2] * 4)
        if self.family == "dense":
            return op_call("nn.dense", [x, self.numbers(width, inputs)], units=width)
        return op_call("nn.batch_matmul", [x, self.numbers(2, width, inputs)], transpose_b=True)

    def operand(self, kind: str, width: int) -> tuple[int, ...]:
        """The shape of a step's operand."""
        if self.family == "conv2d":
            return {"bias": (width, 1, 1), "full": (1, width, 5, 5), "one": (1,), "scalar": (), "wide": (1, 1, 5, 5)}[kind]
        rows = 2 if self.family == "dense" else 3
        data_shape = (rows, width) if self.family == "dense" else (2, rows, width)
        return {"bias": (width,), "full": data_shape, "one": (1,), "scalar": (), "wide": (rows, 1)}[kind]

    def step(self, branches: list[Expr]) -> list[Expr]:
        """One more operator behind each branch: mostly the same one."""
        rng = self.rng
        draw = rng.random()
        kinds = ["bias", "full"] if self.plain else ["bias", "full", "one", "scalar", "wide"]
        kind, name, unary = rng.choice(kinds), rng.choice(BINARY), rng.choice(UNARY)
        turned = not self.plain and rng.random() < 0.2
        odd = rng.randrange(len(branches)) if rng.random() < 0.15 else -1
        steps: list[Expr] = []
        for i, branch in enumerate(branches):
            width = self.widths[i]
            if i == odd:
                steps.append(op_call("clip", [branch], a_min=-2.0, a_max=2.0))
            elif draw < 0.4:
                steps.append(op_call(unary, [branch]))
            elif draw < 0.5 and not self.plain:
                steps.append(op_call("nn.bias_add", [branch, self.numbers(width)], axis=self.axis))
            elif draw < 0.95:
                other = self.numbers(*self.operand(kind, width))
                steps.append(op_call(name, [other, branch] if turned else [branch, other]))
            else:
                steps.append(op_call("add", [branch, branch]))
        return steps
