"""Well-typed programs over one tensor type: branches, lets, closures, tuples, and calls of other functions.

Numbers are small whole ones and quotients of them, so that a sum in another order stays near.
"""

from __future__ import annotations

import random

import numpy as np

from relaylang.ir import (
    Call,
    Constant,
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
)
from relaylang.ops.build import op_call
from relaylang.typing import check

SHAPE = (2, 3)
T = TensorType(SHAPE, "float32")
UNARY = ("nn.relu", "negative", "abs", "tanh", "exp", "sigmoid", "copy", "floor", "zeros_like")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")


class Programs:
    """Makes modules of one seed: `@main` over tensors, branches, lets, closures, tuples, and calls of other functions.

    Every value is a `float32[2, 3]`, or a tuple of two such.
    """

    def __init__(self, seed: int, *, functions: int = 2, control: bool = True) -> None:
        self.rng = random.Random(seed)
        self.control = control
        self.globals: list[tuple[GlobalVar, int]] = []
        self.made = 0
        self.functions = functions

    def module(self, size: int = 12) -> IRModule:
        mod = IRModule()
        for i in range(self.functions):
            gv = GlobalVar(f"f{i}")
            func = self.function(size // 2, self.rng.randint(1, 2))
            mod[gv] = func
            self.globals.append((gv, len(func.params)))
        mod[GlobalVar("main")] = self.function(size, 2)
        check(mod)
        return mod

    def function(self, size: int, params: int) -> Function:
        variables = [self.var(T) for _ in range(params)]
        return Function(variables, self.block(list(variables), size), T)

    def var(self, ty: TensorType | None = None) -> Var:
        self.made += 1
        return Var(f"v{self.made}", ty)

    def constant(self, shape: tuple[int, ...] = SHAPE) -> Constant:
        return const(np.array([self.rng.randint(-3, 3) for _ in range(int(np.prod(shape)))], "float32").reshape(shape))

    def block(self, known: list[Expr], size: int) -> Expr:
        """A chain of lets and plain values, in graph form where a value is used twice without a let."""
        known = list(known)
        lets: list[tuple[Var, Expr]] = []
        for _ in range(size):
            value = self.value(known)
            if self.rng.random() < 0.3:
                var = self.var()
                lets.append((var, value))
                known.append(var)
            else:
                known.append(value)
        body = self.pick(known[-3:])
        for var, value in reversed(lets):
            body = Let(var, value, body)
        return body

    def pick(self, known: list[Expr]) -> Expr:
        return self.rng.choice(known[-6:])

    def value(self, known: list[Expr]) -> Expr:
        rng = self.rng
        kind = rng.randrange(14 if self.control else 9)
        if kind < 3:
            return op_call(rng.choice(UNARY), [self.pick(known)])
        if kind < 6:
            left, right = self.pick(known), self.pick(known)
            if rng.random() < 0.3:
                right = self.constant(rng.choice([SHAPE, (3,), ()]))
            return op_call(rng.choice(BINARY), [left, right] if rng.random() < 0.7 or right in known else [right, left])
        if kind == 6:
            pair = Tuple([self.pick(known), self.pick(known)])
            return TupleGetItem(pair, rng.randrange(2))
        if kind == 7:
            turned = op_call("transpose", [self.pick(known)], axes=[1, 0])
            return op_call("transpose", [turned], axes=[1, 0])
        if kind == 8:
            dense = op_call("nn.dense", [self.pick(known), self.constant((3, 3))], units=3)
            return op_call("clip", [dense], a_min=-50.0, a_max=50.0)
        if kind == 9:
            cond = op_call("less", [op_call("sum", [self.pick(known)]), op_call("sum", [self.pick(known)])])
            return If(cond, self.block(known, 3), self.block(known, 3))
        if kind == 10:
            param = self.var(T)
            function = Function([param], self.block([*known, param], 3), T)
            if rng.random() < 0.5:
                return Call(function, [self.pick(known)])
            name = self.var()
            twice = Call(name, [Call(name, [self.pick(known)])])
            return Let(name, function, twice)
        if kind == 11 and self.globals:
            gv, arity = rng.choice(self.globals)
            return Call(gv, [self.pick(known) for _ in range(arity)])
        if kind == 12:
            var = self.var()
            return Let(var, Tuple([self.pick(known), self.pick(known)]), TupleGetItem(var, rng.randrange(2)))
        return op_call("add", [self.constant(), self.constant()])


def inputs(seed: int, func: Function) -> list[np.ndarray]:
    """Arguments of a function: small numbers of its parameters' element types."""
    rng = np.random.default_rng(seed)
    arrays = []
    for param in func.params:
        ty = param.checked_type or param.type_annotation
        assert isinstance(ty, TensorType)
        shape = [extent for extent in ty.shape if isinstance(extent, int)]
        if ty.dtype.startswith(("int", "uint")):
            arrays.append(rng.integers(0, 10, shape).astype(ty.dtype))
        elif ty.dtype == "bool":
            arrays.append(rng.integers(0, 2, shape).astype(bool))
        else:
            arrays.append((rng.integers(-8, 9, shape) / 4).astype(ty.dtype))
    return arrays
